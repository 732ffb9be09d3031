//! Verdicts and warnings that say no more and no less than the figures beside them.

use crate::shared::common::{Scratch, run};
use serde_json::Value;

/// The result of a file, as JSON.
#[track_caller]
pub(crate) fn simulated(scratch: &Scratch, source: &str, more: &[&str]) -> Value {
    let file = scratch.file("f.star", source);
    let args: Vec<&str> =
        ["sim", &file, "-q", "--output", "json"].into_iter().chain(more.iter().copied()).collect();
    let ran = run(&args);
    serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.err))
}

/// The warnings of the scenarios, one line each.
pub(crate) fn warnings(result: &Value) -> String {
    let all = result["scenarios"].as_array().expect("scenarios").iter();
    all.flat_map(|s| s["warnings"].as_array().expect("warnings"))
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("\n")
}

fn bounds(estimate: &Value) -> (f64, f64, f64) {
    let at = |key: &str| estimate[key].as_f64().unwrap_or_else(|| panic!("{key} of {estimate}"));
    (at("low"), at("value"), at("high"))
}

/// No request of a hundred failed: that proves 96.4 %, not 99.99 %, and one replication by its one-sided bound 97.0 %.
#[test]
fn a_share_is_judged_by_what_so_many_requests_can_prove() {
    let scratch = Scratch::new("evidence-shares");
    let source = |bound: &str| {
        format!(
            "scenario(\"few\", server(), traffic.poisson(rate=100), requests=20)\n\
             expect(\"few\", success=\">={bound}\", errors={{\"timeout\": \"<=5%\"}})\n"
        )
    };
    for (bound, replications, holds) in [
        ("99.99%", "10", None),
        ("96%", "10", Some(true)),
        ("97%", "10", None),
        ("70%", "1", Some(true)),
        ("80%", "1", None),
    ] {
        let result = simulated(&scratch, &source(bound), &["--replications", replications]);
        let success = &result["expectations"][0];
        assert_eq!(success["holds"].as_bool(), holds, "{bound} of {replications}: {success}");
        assert_eq!(success["value"]["value"], 1.0);
    }
    let file = scratch.file("g.star", source("99.99%"));
    let text = run(&["sim", &file, "-q"]);
    assert_eq!(text.code, Some(1));
    assert!(text.out.contains("undecided") && text.out.contains("(96.4..100.0) %"), "{}", text.out);
}

/// Seven systems of which the mean is known (Pollaczek and Khinchine, Erlang, Burke), begun empty: what is left after the
/// cut agrees with it to three half-widths. The cut is one number for all, and no replication chooses it for itself.
#[test]
fn a_warm_up_is_cut_without_looking_at_the_figure() {
    let scratch = Scratch::new("evidence-auto");
    let systems = [
        ("mm1_half", "line(exp)", 50.0, 20.0),
        ("mm1", "line(exp)", 90.0, 100.0),
        ("md1", "line(10*ms)", 90.0, 10.0 + 0.9 * 10.0 / (2.0 * 0.1)),
        (
            "mh1",
            "line(dist.hyperexponential([(0.1, 55*ms), (0.9, 5*ms)]))",
            80.0,
            10.0 + 0.08 * 650.0 / (2.0 * 0.2),
        ),
        ("mm10", "line(exp, 10)", 900.0, 10.0 + erlang_c(10, 9.0) * 10.0),
        ("tandem", "sequence([line(exp), line(exp)])", 80.0, 100.0),
        ("sharing", "server(model=concurrent(exp, cores=1))", 80.0, 50.0),
        ("none", "delay(exp, server())", 90.0, 10.0),
    ];
    let mut source = "exp = dist.exponential(10*ms)\n\
                      def line(time, n=1): return queue(delay(time, server()), concurrency=n)\n"
        .to_owned();
    for (name, node, rate, _) in systems {
        source += &format!(
            "scenario(\"{name}\", {node}, traffic.poisson(rate={rate}), requests=20000, window=\"auto\")\n"
        );
    }
    let result = simulated(&scratch, &source, &["--replications", "40"]);
    for (at, (name, _, _, wanted)) in systems.into_iter().enumerate() {
        let of = &result["scenarios"][at];
        let (low, mean, high) = bounds(&of["latency_ms"]["all"]["mean"]);
        assert!((mean - wanted).abs() < 1.5 * (high - low), "{name}: {low} {mean} {high}, not {wanted}");
        let (selected, total) =
            (of["requests"]["selected"].as_u64().unwrap(), of["requests"]["total"].as_u64().unwrap());
        assert_eq!((total, (total - selected) % 40), (800_000, 0), "the same number of each replication");
        if name == "none" {
            assert!(selected >= 792_000, "what has no start-up loses at most 1 %: {selected}");
        }
    }
}

/// The share of those that wait for one of `servers` (Erlang's second formula), `load` of which are busy on average.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let blocked = (1..=servers).fold(1.0, |b, n| load * b / (f64::from(n) + load * b));
    blocked / (1.0 - load / f64::from(servers) * (1.0 - blocked))
}

/// A closed loop that ends by time is cut by number too; the parts of a run are cut as the whole is.
#[test]
fn parts_of_a_run_are_cut_as_the_whole() {
    let scratch = Scratch::new("evidence-parts");
    let file = scratch.file(
        "f.star",
        "q = queue(delay(dist.exponential(10*ms), server()))\n\
         scenario(\"open\", q, traffic.poisson(rate=80), requests=2000, window=\"auto\")\n\
         scenario(\"closed\", q, traffic.closed(users=5, think=dist.exponential(50*ms)), duration=20*s, window=\"auto\")\n",
    );
    let whole = scratch.path("whole.json");
    run(&["sim", &file, "-q", "--replications", "5", "--save", &whole]).succeeds();
    let parts = ["1/2", "2/2"].map(|shard| {
        let path = scratch.path(&format!("part{}.json", &shard[..1]));
        run(&["sim", &file, "-q", "--replications", "5", "--shard", shard, "--save", &path]).succeeds();
        path
    });
    let merged = scratch.path("merged.json");
    run(&["merge", &parts[0], &parts[1], "--save", &merged]).succeeds();
    let [whole, merged] = [whole, merged].map(|path| std::fs::read_to_string(path).expect("a result"));
    assert_eq!(whole, merged);
}

/// The verdict on a member of a pool does not depend on what is shown; a name that means two places, or none, is
/// refused.
#[test]
fn a_node_is_judged_by_its_name() {
    let scratch = Scratch::new("evidence-nodes");
    let pool = "p = pool(3, lambda i: queue(delay(dist.exponential(10*ms), server()), name=\"desk%d\" % i))\n\
                scenario(\"c\", lb.random(p), traffic.poisson(rate=60), requests=8000)\n\
                scenario(\"other\", queue(server(), name=\"till\"), traffic.poisson(rate=60), requests=100)\n";
    let judged = |more: &[&str]| {
        let source = format!(
            "{pool}expect(\"c\", node=\"desk1\", utilisation=[\"<0.7\", \">0.15\"], wait_ms=\"<9\")\n"
        );
        simulated(&scratch, &source, more)["expectations"].clone()
    };
    let plain = judged(&[]);
    assert_eq!(plain, judged(&["--nodes", "all"]));
    assert!(plain.as_array().unwrap().iter().all(|e| e["holds"] == true), "{plain}");
    for (expect, says) in [
        (
            "expect(\"c\", node=\"till\", utilisation=\"<1\")",
            "no request of the scenario \"c\" comes to the node \"till\"",
        ),
        ("expect(\"c\", node=\"desk9\", utilisation=\"<1\")", "does not exist"),
    ] {
        let file = scratch.file("wrong.star", format!("{pool}{expect}\n"));
        run(&["check", &file]).fails(2, says);
    }
    let twice = "scenario(\"c\", sequence([queue(server(), name=\"a\"), queue(server(), name=\"a\")]), \
                 traffic.poisson(rate=1), requests=10)\nexpect(\"c\", node=\"a\", utilisation=\"<1\")\n";
    let file = scratch.file("twice.star", twice);
    run(&["check", &file]).fails(2, "\"a\" is the name of 2 places in the scenario \"c\"");
}

/// 100 requests a second, of which each 2,000th takes 20 s: 99.95 a second come back within a second.
#[test]
fn one_slow_answer_is_no_time_without_answers() {
    let scratch = Scratch::new("evidence-rates");
    for window in ["middle", "all"] {
        let source = format!(
            "app = delay(dist.empirical([10*ms] * 1999 + [20*s]), server())\n\
             scenario(\"a\", app, traffic.constant(rate=100), requests=4000, deadline=1*s, window=\"{window}\")\n"
        );
        let result = simulated(&scratch, &source, &[]);
        for (rate, wanted) in [("goodput_per_s", 99.95), ("response_rate_per_s", 100.0)] {
            let (_, value, _) = bounds(&result["scenarios"][0][rate]);
            assert!((value - wanted).abs() < 0.6, "{window}, {rate}: {value}");
        }
    }
}

/// What is said of a run, and of which it is not said.
#[test]
fn warnings_are_about_what_is_wrong() {
    let scratch = Scratch::new("evidence-warnings");
    let queue = "queue(delay(dist.exponential(1*s), server()))";
    let often = "faulty(4*s, 400*ms, queue(delay(5*ms, server()))), traffic.poisson(rate=100), duration=60*s";
    let clones = "fanout(pool(3, lambda: queue(delay(dist.exponential(10*ms), server()), on_cancel=\"stop\")), need=1)";
    for (scenario, said, unsaid) in [
        (
            format!("lb.random(pool(100, lambda: {queue})), traffic.poisson(rate=90), requests=40000"),
            "start-up: ",
            "overloaded",
        ),
        (
            format!("lb.least_conn(pool(100, lambda: {queue})), traffic.poisson(rate=90), requests=40000"),
            "",
            "start-up",
        ),
        ("delay(dist.pareto(1*ms, 1.0), server()), traffic.poisson(rate=10), requests=1000".to_owned(), "has no mean", ""),
        ("delay(dist.pareto(1*ms, 1.5), server()), traffic.poisson(rate=10), requests=1000".to_owned(), "has no variance", ""),
        ("delay(dist.pareto(1*ms, 2.5), server()), traffic.poisson(rate=10), requests=1000".to_owned(), "", "has no"),
        (
            "faulty(dist.fixed(20*s), dist.fixed(20*s), queue(delay(5*ms, server()))), traffic.poisson(rate=100), \
             duration=60*s"
                .to_owned(),
            "",
            "few outages",
        ),
        (
            "faulty(20*s, 2*s, queue(delay(5*ms, server()))), traffic.poisson(rate=100), duration=60*s".to_owned(),
            "few outages",
            "",
        ),
        // Of 14 outages half are in the middle.
        (format!("{often}, window=\"all\""), "", "few outages"),
        (format!("{often}, window=\"middle\""), "few outages", ""),
        (format!("{clones}, traffic.poisson(rate=150), requests=4000"), "", "offered load"),
    ] {
        let result = simulated(&scratch, &format!("scenario(\"s\", {scenario})\n"), &[]);
        let all = warnings(&result);
        assert!(all.contains(said), "{scenario}: {said} is not in {all}");
        assert!(unsaid.is_empty() || !all.contains(unsaid), "{scenario}: {unsaid} is in {all}");
    }
}

/// One place of the file makes the nodes of two scenarios: the warning is about the one that it concerns.
#[test]
fn a_heavy_tail_concerns_its_own_scenario() {
    let scratch = Scratch::new("evidence-tails");
    let source = "def of(name, time): scenario(name, delay(time, server()), traffic.poisson(rate=10), requests=1000)\n\
                  of(\"light\", dist.exponential(1*ms))\nof(\"heavy\", dist.pareto(1*ms, 1.5))\n";
    let result = simulated(&scratch, source, &[]);
    let of = |i: usize| result["scenarios"][i]["warnings"].to_string();
    assert!(!of(0).contains("has no variance") && of(1).contains("has no variance"), "{} {}", of(0), of(1));
}

/// Retries around an outage: some replications recover, some do not, and the mean is the figure of neither.
#[test]
fn two_outcomes_are_told_apart() {
    let scratch = Scratch::new("evidence-outcomes");
    let source = "def db(): return queue(delay(100*ms, server(\"db\")), concurrency=30, on_cancel=\"finish\")\n\
                  def network(node): return faulty(dist.fixed(60*s), dist.fixed(10*s), node, mode=\"blackhole\")\n\
                  one = timeout(1*s, network(db()))\n\
                  scenario(\"two tries\", retry(2, one, on=[\"timeout\"]), traffic.poisson(rate=280), duration=130*s, \
                  window=\"all\", deadline=2*s)\n";
    let all = warnings(&simulated(&scratch, source, &[]));
    assert!(all.contains("two outcomes: in ") && all.contains(" of 10 replications "), "{all}");
}

/// A server that gets slower the more requests are inside never clears its backlog; the scenario beside it stands.
#[test]
fn an_overload_takes_no_other_scenario_along() {
    let scratch = Scratch::new("evidence-overload");
    let fine = "scenario(\"fine\", delay(5*ms, server()), traffic.poisson(rate=100), requests=5000)\n";
    let retrograde = "scenario(\"retrograde\", concurrent(dist.exponential(10*ms), cores=4, coherency=0.01), \
                      traffic.poisson(rate=200), requests=100000)\n";
    let both = simulated(&scratch, &format!("{fine}{retrograde}"), &["--replications", "2"]);
    let alone = simulated(&scratch, fine, &["--replications", "2"]);
    assert_eq!(both["scenarios"][0]["latency_ms"], alone["scenarios"][0]["latency_ms"]);
    let overloaded = &both["scenarios"][1];
    assert!(overloaded["latency_ms"]["all"]["mean"]["value"].is_null(), "{overloaded}");
    assert!(warnings(&both).contains("146 years of virtual time"), "{}", warnings(&both));
}

/// What differs only in its numbers is one warning of several scenarios too, with the names of all, in text and on the page;
/// the JSON has each scenario's own. `check` sends nothing, and so counts no attempts.
#[test]
fn several_scenarios_have_one_warning_of_a_kind() {
    let scratch = Scratch::new("evidence-several");
    let file = scratch.file(
        "f.star",
        "n = param(\"n\", 2, sweep=[2, 3])\nx = retry(2, flaky(0.1, delay(5*ms, server()), kind=\"reset\"))\n\
         scenario(\"a\", x, traffic.poisson(rate=50 * n), requests=3000)\n\
         scenario(\"b\", x, traffic.poisson(rate=60 * n), requests=4000)\n",
    );
    let page = scratch.path("page.html");
    let text = run(&["sim", &file, "-q", "--html", &page])
        .succeeds()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(text.matches("warning: taken as GET").count(), 1, "{text}");
    assert!(text.contains("(numbers of a (n=2)) [a (n=2), a (n=3), b (n=2), b (n=3)]"), "{text}");
    let page = std::fs::read_to_string(&page).unwrap();
    assert_eq!(page.matches("taken as GET:").count(), 1);
    let json = run(&["sim", &file, "-q", "--output", "json"]);
    assert_eq!(json.succeeds().matches("taken as GET:").count(), 4);
    let check = run(&["check", &file]);
    assert!(
        !check.succeeds().contains("taken as GET") && !check.err.contains("taken as GET"),
        "{}",
        check.err
    );
}

/// Along a sweep one warning is enough; the text warns of the quantiles that it shows, and says how it was made.
#[test]
fn a_sweep_has_one_warning_of_a_kind() {
    let scratch = Scratch::new("evidence-sweep");
    let file = scratch.file(
        "f.star",
        "n = param(\"n\", 2, sweep=[2, 3, 4, 5])\nw = param(\"w\", 5*ms)\n\
         x = retry(2, flaky(0.1, delay(w, server()), kind=\"reset\"))\n\
         scenario(\"s\", x, traffic.poisson(rate=50 * n), requests=4000)\n",
    );
    let text = run(&["sim", &file, "-q", "-p", "w=7ms", "--requests", "3000"]).succeeds().to_owned();
    assert_eq!(text.matches("warning: taken as GET").count(), 1, "{text}");
    assert!(text.contains("[s (n=2), s (n=3), s (n=4), s (n=5)]") || text.contains("and 0 more"), "{text}");
    assert!(text.contains("\nwith w=7ms, --requests 3000\n"), "{text}");
}
