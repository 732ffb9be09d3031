//! The page of `weir sim --html`: its verdict in words, its baseline, and what it shows of an outage.

use crate::shared::common::{Scratch, run};

/// Scenarios without chance: of 10, 10, 20 and 30 ms, the last of which fails for a quarter of its time.
const FIXED: &str = r#"
at = lambda ms_: queue(delay(ms_ * ms, server()), concurrency = 100)
every = traffic.constant(every = 10 * ms)
dark = block(dist.fixed(6 * s), dist.fixed(2 * s), pool(4, lambda: at(30)), mode = "refuse")
scenario("fast", at(10), every, requests = 4000, window = "all")
scenario("same", at(10), every, requests = 4000, window = "all")
scenario("slow", at(20), every, requests = 4000, window = "all")
scenario("dark", lb.round_robin(dark), every, requests = 4000, window = "all")
expect("fast", p99 = "<15ms")
expect("slow", p99 = "<15ms")
"#;

/// The page of these scenarios.
#[track_caller]
fn page(scratch: &Scratch, more: &[&str]) -> String {
    let (file, html) = (scratch.file("fixed.star", FIXED), scratch.path("page.html"));
    let args = ["sim", &file, "-q", "--replications", "3", "--html", &html];
    let ran = run(&args.into_iter().chain(more.iter().copied()).collect::<Vec<_>>());
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    std::fs::read_to_string(html).expect("it was written")
}

/// Its verdict.
#[track_caller]
fn verdict(page: &str) -> &str {
    let (_, rest) = page.split_once("<p class=\"verdict\">").expect("there is a verdict");
    rest.split_once("</p>").expect("it ends").0
}

#[test]
fn the_verdict_says_what_the_differences_bear() {
    let scratch = Scratch::new("page-verdict");
    let two = page(&scratch, &["fast", "slow"]);
    assert_eq!(
        verdict(&two),
        "1 of 2 expectations fails (slow: p99&lt;15ms). In p99, slow takes 2.0000 ±0.0010 times as long as fast. fast is best in all that is \
         shown."
    );
    let slower = page(&scratch, &["slow", "fast", "same", "--baseline", "slow"]);
    assert!(
        verdict(&slower).ends_with(
            "fast answers p99 in 0.5000 ±0.0002 of slow&#39;s time, same in 0.5000 ±0.0002. None is significantly better than all others in \
             anything that is shown."
        ),
        "{}",
        verdict(&slower)
    );
    let equal = page(&scratch, &["same", "fast"]);
    assert_eq!(
        verdict(&equal),
        "What the file expects holds. No significant difference in p99 between same and fast."
    );
}

/// Along a sweep the scenarios are compared at each of its points; one scenario alone, with its first point.
#[test]
fn a_sweep_is_judged_at_its_points() {
    let scratch = Scratch::new("page-sweep");
    let source = "time = param(\"time\", 5, sweep = [5, 10, 20])\nevery = traffic.constant(every = 50*ms)\n\
                  scenario(\"short\", delay(time * ms, server()), every, requests = 3000)\n\
                  scenario(\"fixed\", delay(10*ms, server()), every, requests = 3000)\n";
    let (file, html) = (scratch.file("sweep.star", source), scratch.path("sweep.html"));
    run(&["sim", &file, "-q", "--replications", "3", "--html", &html]).succeeds();
    let page = std::fs::read_to_string(&html).expect("it was written");
    assert_eq!(verdict(&page), "Against short, in p99, of 3 points: fixed is faster at 1, slower at 1.");
    run(&["sim", &file, "short", "-q", "--replications", "3", "--html", &html]).succeeds();
    let page = std::fs::read_to_string(&html).expect("it was written");
    assert_eq!(
        verdict(&page),
        "In p99, short (time=20) takes 4.000 ±0.002 times as long as short (time=5), another takes longer too. short (time=5) \
         is best in all that is shown."
    );
}

#[test]
fn the_baseline_can_be_chosen() {
    let scratch = Scratch::new("page-baseline");
    let page = page(&scratch, &["fast", "slow", "--baseline", "slow"]);
    assert!(page.contains("<h2>Against slow</h2>"));
    assert!(
        verdict(&page).contains("fast answers p99 in 0.5000 ±0.0002 of slow&#39;s time."),
        "{}",
        verdict(&page)
    );
    assert!(
        page.contains("<td class=\"n good\">▼ -10<small>×0.5</small></td>"),
        "the difference in ms, and the quotient"
    );
    let (file, html) = (scratch.file("a.star", FIXED), scratch.path("no.html"));
    run(&["sim", &file, "fast", "--html", &html, "--baseline", "slow"])
        .fails(2, "no such scenario in this run; there are fast");
    run(&["sim", &file, "--baseline", "slow"]).fails(2, "--html");
    assert!(!std::path::Path::new(&html).exists());
}

/// Results come first; over time there are latency, failures, and when the site was down; what fails is open.
#[test]
fn an_outage_is_where_it_was() {
    let scratch = Scratch::new("page-outage");
    let page = page(&scratch, &[]);
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("`{text}` is not on the page"));
    let order = [
        "Summary",
        "Expectations",
        "Scenarios",
        "Against fast",
        "Over time",
        "Latency by percentile",
        "Topology",
    ];
    let places = order.map(|heading| at(&format!("<h2>{heading}</h2>")));
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.contains("<b>A</b> dark: all 4 down (refuse) from 6 s to 8 s"));
    assert!(page.contains("<b>E</b> dark: all 4 down (refuse) from 38 s to 40 s"));
    assert!(
        page.contains("<td class=\"bad\"><b>fails</b></td>")
            && page.contains("<td class=\"good\"><b>holds</b></td>")
    );
    assert!(page.contains("<details open><summary>slow over time"), "its expectation fails");
    assert!(page.contains("<details><summary>fast over time"), "all is well there");
    for chart in ["Latency of all requests, ms", "Latency of the successes, ms", "Failed per second, by kind"]
    {
        assert!(page.contains(&format!("<figcaption>{chart}")), "{chart}");
    }
}

/// Retries around an outage: some replications recover, some do not, and the page shows which.
#[test]
fn two_outcomes_are_drawn_by_replication() {
    let scratch = Scratch::new("page-outcomes");
    let source = "db = queue(delay(100*ms, server(\"db\")), concurrency=30, on_cancel=\"finish\")\n\
                  one = timeout(1*s, faulty(dist.fixed(60*s), dist.fixed(10*s), db, mode=\"blackhole\"))\n\
                  scenario(\"two tries\", retry(2, one, on=[\"timeout\"]), traffic.poisson(rate=280), duration=130*s, \
                  window=\"all\", deadline=2*s)\n";
    let (file, html) = (scratch.file("two.star", source), scratch.path("two.html"));
    run(&["sim", &file, "-q", "--html", &html]).succeeds();
    let page = std::fs::read_to_string(html).expect("it was written");
    let (_, section) = page.split_once("<h2>Two outcomes</h2>").expect("it has a section");
    let (section, _) = section.split_once("</section>").expect("it ends");
    assert_eq!(section.matches("<circle").count(), 10);
    assert_eq!(section.matches(" of 10 replications: ").count(), 2, "{section}");
}

/// A figure that is unknown says what it needs, on the page and in the message of the expectation.
#[test]
fn an_unknown_quantile_says_why() {
    let scratch = Scratch::new("page-unknown");
    let source = "scenario(\"main\", delay(1*ms, server()), traffic.constant(every=2*ms), requests=977, window=\"all\")\n\
                  expect(\"main\", p99=\"<100ms\")\n";
    let (file, html) = (scratch.file("short.star", source), scratch.path("short.html"));
    let ran = run(&["sim", &file, "-q", "--html", &html]);
    assert_eq!(ran.code, Some(1));
    let why = "p99 needs 1 000 requests a replication, has 977";
    assert!(ran.err.contains(why), "{}", ran.err);
    let page = std::fs::read_to_string(html).expect("it was written");
    assert!(page.contains(&format!("<p class=\"note\">{why} (main)</p>")));
    assert!(page.contains(&format!("nothing can be said<small>{why}</small>")));
}

#[test]
fn a_comparison_has_a_page() {
    let scratch = Scratch::new("page-compare");
    let (file, html) = (scratch.file("fixed.star", FIXED), scratch.path("compared.html"));
    let args = ["compare", &file, "--scenarios", "slow,fast", "-q", "--replications", "3"];
    let plain = run(&args);
    let ran = run(&[&args[..], &["--html", &html]].concat());
    assert_eq!(ran.succeeds(), plain.succeeds(), "the result is the same");
    let page = std::fs::read_to_string(&html).expect("it was written");
    assert!(page.contains("<h2>slow → fast</h2>"));
    assert!(
        verdict(&page).starts_with(
            "fast answers p99 in 0.5000 ±0.0002 of slow&#39;s time. Significantly less: mean, p50,"
        ),
        "{}",
        verdict(&page)
    );
    run(&[&args[..], &["--html", &file]].concat()).fails(2, "would be overwritten");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), FIXED);
}
