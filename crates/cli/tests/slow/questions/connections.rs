//! How many connections a fleet of proxies has (`examples/zuul/fleet.star`), and what subsets save over a week
//! (`examples/zuul/week.star`).

use crate::shared::answers::{name, run_of};
use crate::shared::figures;
use crate::shared::figures::scenarios;
use crate::shared::pages::table;
use serde_json::Value;

const FLEET: &str = "examples/zuul/fleet.star";
const WEEK: &str = "examples/zuul/week.star";

fn held(of: &Value, figure: &str) -> f64 {
    let figure = &of["connections"][figure];
    figure["value"].as_f64().or(figure.as_f64()).expect("connections are simulated")
}

/// The fleet at a tenth of its size: as many connections for each instance, and a tenth of all.
pub(super) fn fleet() -> String {
    let args = [FLEET, "-p", "instances=10", "-p", "requests=600000", "--replications", "1", "--explain"];
    let got = run_of(&args);
    let row = |of: &Value| {
        let rates = requests_per_s(&of["series"], &format!("{} apps", name(of)));
        let parts = rates["median"].as_array().map_or(0, Vec::len);
        let spread = (0..parts).map(|i| widest(rates, i)).sum::<f64>() / parts as f64;
        let count = |figure: &str| format!("{:.0}", held(of, figure));
        [
            name(of).to_owned(),
            count("open"),
            count("peak"),
            count("opened_per_s"),
            format!("{:.0} %", held(of, "reused") * 100.0),
            format!("{spread:.2}"),
            format!("{:.0}", of["latency_ms"]["all"]["p99"]["value"].as_f64().expect("a latency")),
        ]
    };
    let by_name = |wanted: &str| got.iter().find(|of| name(of) == wanted).expect("a row of the file");
    for protocol in ["HTTP/1.1", "HTTP/2"] {
        let (all, subsets) = (by_name(protocol), by_name(&format!("{protocol} subsets")));
        assert!(held(all, "open") > 3.0 * held(subsets, "open"), "{protocol}: subsets save connections");
        assert!(held(all, "opened_per_s") > 3.0 * held(subsets, "opened_per_s"), "{protocol}: and openings");
    }
    let heading = [
        "row",
        "connections",
        "most",
        "opened/s",
        "reused",
        "requests of a server: 95 % over median",
        "p99, ms",
    ];
    let command = args.join(" ");
    format!("```\nweir sim {command}\n```\n\n{}", table(heading, got.iter().map(row).collect()))
}

/// The rates of requests of a fleet's members over time.
fn requests_per_s<'a>(series: &'a Value, fleet: &str) -> &'a Value {
    let mut fleets = series["fleets"].as_array().into_iter().flatten();
    &fleets.find(|of| of["fleet"] == fleet).expect("the fleet")["requests_per_s"]
}

/// How much a busy member has beyond the one in the middle, in a part of a series.
fn widest(rates: &Value, part: usize) -> f64 {
    let rate = |of: &str| rates[of][part].as_f64().expect("a number");
    rate("p95") / rate("median")
}

/// Of the parts of a series that end within these hours of a day of the week (Monday is 0): a figure of each.
fn within(series: &Value, day: f64, hours: (f64, f64), of: &dyn Fn(usize) -> f64) -> Vec<f64> {
    let part = series["part_s"].as_f64().expect("a length");
    let count = series["arrivals_per_s"].as_array().map_or(0, Vec::len);
    let hour = |i: usize| (i + 1) as f64 * part - day * 24.0;
    (0..count).filter(|i| (hours.0..hours.1).contains(&hour(*i))).map(of).collect()
}

/// Tuesday, before the proxies have subsets, and Thursday, with them.
pub(super) fn week() -> String {
    let path = figures::root().join(WEEK);
    let got = scenarios(&[path.to_str().expect("UTF-8"), "--replications", "1", "--explain"]);
    let series = &got[0]["series"];
    let servers = series["connections"].as_array().expect("there are some");
    let servers = servers.iter().find(|of| of["site"].as_str().is_some_and(|site| site.contains("server")));
    let servers = servers.expect("the servers have connections");
    let of = |figure: &str, i: usize| servers[figure][i].as_f64().expect("a number");
    let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len().max(1) as f64;
    let most = |all: Vec<f64>| all.into_iter().fold(0.0, f64::max);
    // Twice as many subsets where more than four of a hundred targets each are needed.
    let subsets = &series["subsets"][0];
    let number = |of: &str, i: usize| subsets[of][i].as_u64().expect("a number");
    let parts = subsets["count"].as_array().map_or(0, Vec::len);
    let seen: Vec<(u64, u64)> = (0..parts).map(|i| (number("count", i), number("targets", i))).collect();
    assert!(
        seen.iter().any(|(count, _)| *count == 4) && seen.iter().any(|(count, _)| *count == 8),
        "{seen:?}"
    );
    assert!(seen.iter().all(|(count, targets)| *targets <= 400 || *count == 8), "{seen:?}");
    let rates = requests_per_s(series, "apps");
    let spread = |i: usize| widest(rates, i);
    let [tuesday, thursday] = [1.0, 3.0].map(|day| {
        let open = mean(within(series, day, (21.0, 24.0), &|i| of("open", i)));
        let opened = mean(within(series, day, (0.0, 24.0), &|i| of("opened_per_s", i)));
        let after = mean(within(series, day, (20.0, 24.0), &|i| of("opened_per_s", i)));
        let peak = most(within(series, day, (0.0, 24.0), &|i| of("opened_per_s", i)));
        let even = mean(within(series, day, (20.0, 24.0), &spread));
        [open, opened, peak, after, even]
    });
    assert!(tuesday[0] / thursday[0] > 7.5, "connections: {tuesday:?} {thursday:?}");
    assert!(tuesday[1] / thursday[1] > 2.0, "openings: {tuesday:?} {thursday:?}");
    assert!(tuesday[2] > 1000.0 && thursday[3] < 100.0, "{tuesday:?} {thursday:?}");
    assert!((tuesday[4] - thursday[4]).abs() < 0.1, "rates are even: {tuesday:?} {thursday:?}");
    let number = |x: f64| weir_report::group_digits(x.round() as u64, ',');
    let row = |what: &str, at: usize| {
        let ratio = tuesday[at] / thursday[at].max(1e-9);
        let ratio = if ratio > 1000.0 { "–".to_owned() } else { format!("{ratio:.1}") };
        [what.to_owned(), number(tuesday[at]), number(thursday[at]), ratio]
    };
    let mut rows = vec![
        row("connections, 21 to 24 h", 0),
        row("opened a second, all day", 1),
        row("the most in a part of an hour", 2),
        row("20 to 24 h, five hours after a deploy", 3),
    ];
    let even = |x: f64| format!("{x:.2}");
    rows.push([
        "requests of a server: 95 % over median".to_owned(),
        even(tuesday[4]),
        even(thursday[4]),
        String::new(),
    ]);
    let heading = ["", "Tuesday", "Thursday, with subsets", "ratio"];
    format!("```\nweir sim {WEEK} --replications 1 --html week.html\n```\n\n{}", table(heading, rows))
}
