//! The pages of `weir sim --html` and `weir verify --html` in a browser: on a telephone, a screen and paper, light and
//! dark, with few scenarios and many.

use crate::shared::common::{Scratch, run};
use crate::shared::serve::browser::Browser;
use std::io::Write;
use weir_stats::Estimate;
use weir_verify::{
    AtQuantile, BothWorlds, Calibration, Connections, ScenarioVerified, Statistic, TargetShares, Unit,
    Verdict, Verification,
};

/// Scenarios `n_1`, `n_2`, ... over one pool; the last of them cannot keep up, and refuses.
const MANY: &str = r#"
count = param("count", 11)
apps = pool(20, lambda: queue(delay(dist.exponential(20 * ms), server("app")), capacity = 20))

def router(n):
    return pool(n, lambda: cable(1 * ms, lb.least_conn(apps, ties = "first")))

for n in range(1, count + 1):
    scenario("n_%d" % n, lb.random(router(1 + n % 16)), traffic.poisson(rate = 950 if n % 4 else 1050), requests = 2000)
"#;

fn page(scratch: &Scratch, count: u32) -> String {
    let file = scratch.file("many.star", MANY);
    let html = scratch.path(&format!("{count}.html"));
    let count = format!("count={count}");
    run(&["sim", &file, "-p", &count, "--replications", "3", "--html", &html, "--quiet"]).succeeds();
    html
}

/// Nothing is wider than the screen, and no word smaller than 10 px.
const WELL: &str = "(() => {
    const room = document.documentElement.clientWidth, wrong = [];
    if (document.documentElement.scrollWidth > room) wrong.push('the page is ' + document.documentElement.scrollWidth + ' wide');
    for (const element of document.querySelectorAll('body *')) {
        const box = element.getBoundingClientRect();
        if (!box.width || element.closest('.wide, script')) continue;
        if (box.right > room + 1 || box.left < -1) wrong.push(element.outerHTML.slice(0, 90) + ' ends at ' + box.right);
        if (element.childElementCount === 0 && element.textContent.trim() && parseFloat(getComputedStyle(element).fontSize) < 10)
            wrong.push(element.outerHTML.slice(0, 90) + ' is small');
    }
    return wrong.slice(0, 5).join('; ');
})()";

/// Labels of charts that lie on each other.
const CLEAR: &str = "(() => {
    const wrong = [];
    for (const plot of document.querySelectorAll('.plot')) {
        const labels = [...plot.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
        labels.forEach(([a, one], i) => labels.slice(i + 1).forEach(([b, other]) => {
            if (one.width && one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom)
                wrong.push(a + ' on ' + b);
        }));
    }
    return wrong.slice(0, 5).join('; ');
})()";

fn skipped() {
    let _ = writeln!(std::io::stderr(), "skipped: there is no Chromium here");
}

#[test]
fn it_is_well_at_every_width_in_every_light() {
    let scratch = Scratch::new("pages");
    let Some(mut browser) = Browser::watching() else { return skipped() };
    for count in [1, 11, 200] {
        let url = format!("file://{}", page(&scratch, count));
        let screens = [390, 1024, 1600].map(|width| [(width, false, "screen"), (width, true, "screen")]);
        // A sheet of A4 with narrow margins.
        for (width, dark, media) in screens.into_iter().flatten().chain([(718, false, "print")]) {
            browser.screen(width, dark, media);
            browser.go(&url);
            assert_eq!(browser.value(WELL), "", "{count} scenarios, {width} px, dark: {dark}, {media}");
            assert_eq!(browser.value(CLEAR), "", "{count} scenarios, {width} px, {media}");
            assert_eq!(browser.complaints(), [""; 0]);
        }
        // It begins with what would mislead, and every scenario has its line.
        let first = browser.value("document.querySelector('h1 + *').className");
        assert!(count == 1 || first == "warning", "{first}");
        let lines =
            "new Set([...document.querySelectorAll('.chosen .s')].map((line) => line.dataset.s)).size";
        assert_eq!(browser.value(lines), count);
    }
}

#[test]
fn a_pointer_finds_figures_and_a_choice_changes_what_is_drawn() {
    let scratch = Scratch::new("clicks");
    let Some(mut browser) = Browser::watching() else { return skipped() };
    browser.screen(1024, false, "screen");
    browser.go(&format!("file://{}", page(&scratch, 30)));
    let on = "document.querySelectorAll('.chosen .s.on:not(.dashed)').length";
    assert_eq!(browser.value(on), 12);

    // Hovering: at the middle of the plot, all twelve lines are said in the order in which they lie.
    let place = "(() => { const plot = document.querySelector('.chosen .plot'); plot.scrollIntoView({block: 'center'});
        const box = plot.getBoundingClientRect(); return [box.left + box.width * 0.4, box.top + box.height / 2]; })()";
    let at = browser.value(place);
    browser.point(at[0].as_f64().expect("x"), at[1].as_f64().expect("y"), false);
    let tip = browser.value("document.querySelector('.chosen .tip').innerText");
    let tip = tip.as_str().expect("a text");
    assert!(tip.starts_with('p') && tip.lines().count() > 6 && tip.contains("ms n_"), "{tip}");
    browser.point(1.0, 1.0, false);
    assert_eq!(browser.value("document.querySelector('.chosen .tip').hidden"), true);

    // Choosing: one more has a line, rows and a colour; a second click takes it back.
    let key = "[...document.querySelectorAll('.choose .key')].find((key) => key.classList.contains('off'))";
    let number = browser.value(&format!("window.key = {key}, key.querySelector('input').dataset.s"));
    let number = number.as_str().expect("a number").to_owned();
    let seen = format!(
        "[...document.querySelectorAll('.row[data-s=\"{number}\"]')].filter((row) => row.offsetHeight).length"
    );
    assert_eq!(browser.value(&seen), 0);
    let middle = "(() => { key.scrollIntoView({block: 'center'}); const box = key.querySelector('input').getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2]; })()";
    let at = browser.value(middle);
    let (x, y) = (at[0].as_f64().expect("x"), at[1].as_f64().expect("y"));
    browser.point(x, y, true);
    assert_eq!(browser.value(on), 13);
    assert!(browser.value(&seen).as_u64() > Some(1));
    let line = format!(
        "getComputedStyle(document.querySelector('.chosen .s[data-s=\"{number}\"] .line')).strokeWidth"
    );
    assert_eq!(browser.value(&line), "2px");
    browser.point(x, y, true);
    assert_eq!((browser.value(on), browser.value(&seen)), (12.into(), 0.into()));

    // Finding one by its name.
    browser.value("(() => { const find = document.querySelector('.find'); find.value = 'n_17'; find.dispatchEvent(new Event('input')); })()");
    let left = "[...document.querySelectorAll('.choose .key')].filter((key) => key.offsetHeight).map((key) => key.textContent).join()";
    assert_eq!(browser.value(left), "n_17");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn it_is_whole_without_scripts() {
    let scratch = Scratch::new("no-scripts");
    let Some(mut browser) = Browser::watching() else { return skipped() };
    browser.screen(390, false, "screen");
    browser.scripts(false);
    browser.go(&format!("file://{}", page(&scratch, 30)));
    assert_eq!(browser.value("document.documentElement.className"), "");
    let sizes = "[...document.querySelectorAll('.s.on .line')].filter((line) => line.getBoundingClientRect().width > 200).length";
    assert!(browser.value(sizes).as_u64() >= Some(12), "lines are drawn");
    // Over time, of the first scenarios: rates, requests on their way, lines.
    let over_time = "[...document.querySelectorAll('section')].find((s) => s.querySelector('h2').textContent === 'Over time')";
    let drawn = format!(
        "[...{over_time}.querySelectorAll('.s.on .line')].filter((line) => line.getBoundingClientRect().width > 200).length"
    );
    assert!(browser.value(&drawn).as_u64() >= Some(8), "{}", browser.value(&drawn));
    let typical =
        "[...document.querySelectorAll('.row small')].filter((small) => small.textContent === 'p99').length";
    assert_eq!(browser.value(typical), 30);
    assert_eq!(
        browser.value("[...document.querySelectorAll('input')].filter((box) => box.offsetHeight).length"),
        0
    );
    assert_eq!(
        browser
            .value("[...document.querySelectorAll('.choose .key')].filter((key) => key.offsetHeight).length"),
        12
    );
    assert_eq!(browser.value(WELL), "");
}

#[test]
fn its_bytes_do_not_depend_on_threads() {
    let scratch = Scratch::new("page-threads");
    let file = scratch.file("many.star", MANY);
    let page = |threads: &str| {
        let html = scratch.path(&format!("{threads}.html"));
        run(&["sim", &file, "-p", "count=3", "--replications", "3", "--threads", threads, "--html", &html])
            .succeeds();
        std::fs::read_to_string(html).expect("it was written")
    };
    assert!(page("1") == page("2"));
}

/// Scenarios that differ: an outage, an expectation that fails, and one that holds.
const OUTAGE: &str = r#"
at = lambda n: queue(delay(n * ms, server()), concurrency = 100)
every = traffic.constant(every = 10 * ms)
dark = block(dist.fixed(6 * s), dist.fixed(2 * s), pool(4, lambda: at(30)), mode = "refuse")
scenario("fast", at(10), every, requests = 4000, window = "all")
scenario("dark", lb.round_robin(dark), every, requests = 4000, window = "all")
expect("fast", p99 = "<15ms")
expect("dark", p99 = "<15ms")
"#;

/// The parts of a page that only some runs have, and the page of a comparison.
#[test]
fn verdicts_outages_and_comparisons_are_well_too() {
    let scratch = Scratch::new("verdicts");
    let file = scratch.file("outage.star", OUTAGE);
    let (one, two, both) = (scratch.path("one.html"), scratch.path("two.html"), scratch.path("both.html"));
    let sim = |more: &[&str]| {
        let ran = run(&[&["sim", &file, "--quiet", "--replications", "3"], more].concat());
        assert_eq!(ran.code, Some(1), "an expectation fails: {}", ran.err);
    };
    sim(&["dark", "--html", &one]);
    sim(&["--html", &two]);
    run(&["compare", &file, "--scenarios", "fast,dark", "--replications", "3", "--quiet", "--html", &both])
        .succeeds();
    let Some(mut browser) = Browser::watching() else { return skipped() };
    for page in [one, two, both] {
        for (width, dark) in [(360, false), (800, true), (1400, false)] {
            browser.screen(width, dark, "screen");
            browser.go(&format!("file://{page}"));
            assert_eq!(
                (browser.value(WELL), browser.value(CLEAR)),
                ("".into(), "".into()),
                "{page}, {width} px"
            );
            assert_eq!(browser.complaints(), [""; 0]);
        }
        assert_eq!(
            browser.value("document.querySelector('.verdict').textContent.length > 20"),
            true,
            "{page}"
        );
    }
}

fn estimate(value: f64, half: f64) -> Estimate {
    Estimate { value: Some(value), low: Some(value - half), high: Some(value + half) }
}

/// A statistic of which reality has `off` per cent more.
fn make_statistic(name: &'static str, unit: Unit, off: f64, verdict: Verdict) -> Statistic {
    Statistic {
        name,
        simulated: estimate(100.0, 1.0),
        real: estimate(100.0 + off, 1.0),
        difference: estimate(off / 100.0, 0.01),
        relative: estimate(off / 100.0, 0.01),
        tolerance: if unit == Unit::Points { 2.0 } else { 0.03 },
        unit,
        verdict,
        no_matter_ms: Some(1.0),
        runs_needed: None,
    }
}

/// A made-up scenario, with statistics that agree, that differ, and that are undecided.
fn make_scenario(name: &str, verdict: Verdict) -> ScenarioVerified {
    let curve = [0.5, 0.9, 0.95, 0.99, 0.999].iter().zip(1..).map(|(q, n)| AtQuantile {
        q: *q,
        simulated: estimate(f64::from(40 * n), 2.0),
        real: estimate(f64::from(41 * n), 4.0),
    });
    let targets = (0..12).map(|n| TargetShares {
        name: format!("app-{n}"),
        simulated: estimate(0.08 + f64::from(n) / 1000.0, 0.001),
        real: estimate(0.08 + f64::from(n) / 990.0, 0.001),
    });
    ScenarioVerified {
        name: name.to_owned(),
        params: Vec::new(),
        runs: 5,
        void: vec!["the client sent too late".to_owned()],
        statistics: vec![
            make_statistic("mean", Unit::Ratio, 1.0, Verdict::Agrees),
            make_statistic("p99", Unit::Ratio, 9.0, Verdict::Differs),
            make_statistic("success", Unit::Points, 2.5, Verdict::Undecided),
        ],
        omissions: Vec::new(),
        curve: curve.collect(),
        targets: targets.collect(),
        asked_runs: 5,
        interrupted: false,
        verdict,
        ejections: Some(BothWorlds { simulated: estimate(4.0, 0.5), real: estimate(3.8, 0.4) }),
        connections: Connections {
            client: BothWorlds { simulated: estimate(10.0, 1.0), real: estimate(11.0, 1.0) },
            server: BothWorlds { simulated: estimate(40.0, 2.0), real: estimate(41.0, 3.0) },
            server_takes_ms: Some(0.1),
        },
        timers_late_ns: None,
        warnings: Vec::new(),
    }
}

/// A verification that differs and agrees.
fn make_verification() -> Verification {
    Verification {
        against: weir_verify::Router::Weir,
        file: "t<s>.star".to_owned(),
        plan: "0123456789abcdef0123456789abcdef".to_owned(),
        seed: 1,
        calibration: Some(Calibration {
            client_hop_ns: 1.0,
            server_hop_ns: 1.0,
            connect_ns: 1.0,
            work_ns: 1.0,
            late_ns: 1.0,
            most_per_s: 1.0,
            ..Calibration::default()
        }),
        scenarios: vec![make_scenario("one", Verdict::Differs), make_scenario("other", Verdict::Agrees)],
        missing: Vec::new(),
    }
}

#[test]
fn a_verification_is_well_too() {
    let scratch = Scratch::new("verified");
    let mut page = Vec::new();
    weir_report::verify_html(&make_verification(), &mut page).expect("memory has room");
    let url = format!("file://{}", scratch.file("verified.html", &page));
    let Some(mut browser) = Browser::watching() else { return skipped() };
    for (width, dark) in [(390, false), (1024, true), (1600, false)] {
        browser.screen(width, dark, "screen");
        browser.go(&url);
        assert_eq!((browser.value(WELL), browser.value(CLEAR)), ("".into(), "".into()), "{width} px");
        assert_eq!(browser.complaints(), [""; 0]);
    }
    let place = "(() => { const plot = document.querySelector('.plot'); plot.scrollIntoView({block: 'center'});
        const box = plot.getBoundingClientRect(); return [box.left + box.width * 0.9, box.top + box.height / 2]; })()";
    let at = browser.value(place);
    browser.point(at[0].as_f64().expect("x"), at[1].as_f64().expect("y"), false);
    let tip = browser.value("document.querySelector('.tip').innerText");
    assert_eq!(tip, "p99.9\n205 ±4 ms real\n200 ±2 ms simulated");
}
