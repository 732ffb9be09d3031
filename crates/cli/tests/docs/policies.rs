//! `docs/policies.md` says what `examples/policies.star`, `docs/probes.star` and `docs/failing.star` print, and advises
//! what follows from it.
//!
//! The sections between `<!-- NAME -->` and `<!-- end -->` are written by
//! `UPDATE=1 cargo test -p weir --test docs -- policies::`.

use crate::shared::figures::{Estimate, figure, named, root, scenarios};
use crate::shared::pages::{assert_shown, lower, shown, table};
use serde_json::Value;
use weir_topology::manual::missing_balancers;

/// What a policy needs to know, when to take it, and when not.
struct Advice(&'static str, &'static str, &'static str, &'static str);

const ADVICE: [Advice; 10] = [
    Advice("random", "nothing", "nothing else is available", "latency matters"),
    Advice(
        "round_robin",
        "whose turn it is",
        "requests are alike, and servers too",
        "servers differ, or are busy",
    ),
    Advice(
        "least_conn",
        "its requests at each target",
        "one balancer, or a few, send most of the traffic: the fastest",
        "dozens of balancers share the targets: `p2c` does equally well and inspects only two",
    ),
    Advice(
        "p2c",
        "its requests at two targets",
        "dozens of balancers share very many targets",
        "few balancers: `least_conn` is faster",
    ),
    Advice("p2c_replacement", "the same", "to match Envoy", "never better than `p2c`"),
    Advice(
        "peak_ewma",
        "answer times too",
        "servers differ and their weights are unknown",
        "servers are alike: it is `p2c`",
    ),
    Advice(
        "zuul",
        "failures, the load that targets report, its requests at two targets",
        "servers say how busy they are, and some fail or begin cold",
        "requests must be even among servers",
    ),
    Advice(
        "ring_hash",
        "the request's key",
        "a user must stay at a server, and servers are half idle",
        "some users send far more than others, and servers are busy",
    ),
    Advice("maglev", "the request's key", "as `ring_hash`", "the same"),
    Advice(
        "maglev_bound",
        "key, and its requests at each target",
        "a user should stay at a server, and some send far more",
        "no keys: it is slower than `least_conn`",
    ),
];

const POLICIES: &str = "examples/policies.star";
const FAILING: &str = "docs/failing.star";
const PROBES: &str = "docs/probes.star";
const CHOICE: &str = "docs/choice-of-two.star";

fn run_of(file: &str, options: &str) -> Vec<Value> {
    let path = root().join(file);
    let all: Vec<&str> = [path.to_str().expect("UTF-8")].into_iter().chain(options.split(' ')).collect();
    scenarios(&all)
}

/// Whether it drifts by so much that a longer run would say something else.
fn overloaded(s: &Value) -> bool {
    let warnings = s["warnings"].to_string();
    let drift = warnings
        .split("mean latency is ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    warnings.contains("will not settle") || drift.is_some_and(|percent| percent > 30.0)
}

/// "p50 / p99", or that it grows.
fn both(s: &Value) -> String {
    if overloaded(s) {
        return "grows".to_owned();
    }
    format!("{} / {}", shown(figure(s, "p50")), shown(figure(s, "p99")))
}

fn with_command(file: &str, options: &str, table: &str) -> String {
    format!("```\nweir sim {file} {options}\n```\n\n{table}")
}

/// Whether one is certainly faster than the other, by p99.
#[track_caller]
fn faster(of: &[Value], a: &str, b: &str) -> bool {
    lower(figure(named(of, a), "p99"), figure(named(of, b), "p99")) == Some(true)
}

fn at_utilisation(of: &[Value], load: f64) -> Vec<Value> {
    of.iter().filter(|s| s["params"]["utilisation"] == load).cloned().collect()
}

// One test, so that no other writes the page.
#[test]
fn the_page_says_what_the_file_prints() {
    let page = "docs/policies.md";
    let advised: Vec<String> = ADVICE.iter().map(|advice| format!("lb.{}", advice.0)).collect();
    // Probes have a table of their own; the others are not for sharing load.
    assert_eq!(
        missing_balancers(advised.iter().map(String::as_str)),
        ["lb.first", "lb.prequal", "lb.least_work"]
    );
    by_utilisation(page);
    with_a_slow_server(page);
    over_routers(page);
    probes(page);
    failing(page);
    choice_of_two(page);
}

fn by_utilisation(page: &str) {
    let options = "--sweep utilisation=0.5,0.8,0.95 -p length=4000 --replications 5";
    let got = run_of(POLICIES, options);
    let loads = [0.5, 0.8, 0.95].map(|load| at_utilisation(&got, load));
    let rows = ADVICE.iter().map(|Advice(name, knows, take, leave)| {
        let [a, b, c] = loads.each_ref().map(|of| both(named(of, name)));
        [format!("`{name}`"), a, b, c, knows.to_string(), take.to_string(), leave.to_string()]
    });
    let heading = ["policy", "p50 / p99 at 0.5", "at 0.8", "at 0.95", "knows", "take it when", "not when"];
    assert_shown(page, "utilisation", &with_command(POLICIES, options, &table(heading, rows.collect())));
    for of in &loads {
        let load = &of[0]["params"]["utilisation"];
        assert!(
            ["p2c", "random", "round_robin", "maglev_bound"].iter().all(|b| faster(of, "least_conn", b)),
            "{load}"
        );
        let p50 = |name: &str| figure(named(of, name), "p50");
        assert_eq!(lower(p50("round_robin"), p50("random")), Some(true), "{load}");
        assert!(!faster(of, "peak_ewma", "p2c") && !faster(of, "p2c_replacement", "p2c"), "{load}");
        assert!(faster(of, "maglev_bound", "maglev"), "{load}");
    }
    assert!(!faster(&loads[0], "p2c", "round_robin") && faster(&loads[1], "p2c", "round_robin"));
}

fn with_a_slow_server(page: &str) {
    let options = "-p utilisation=0.5 -p slow=5 -p length=10000 --replications 5";
    let slow = run_of(POLICIES, options);
    let names = [
        "random",
        "round_robin",
        "round_robin_weighted",
        "least_conn",
        "least_conn_weighted",
        "p2c",
        "p2c_weighted",
        "peak_ewma",
        "zuul",
        "maglev",
        "maglev_bound",
    ];
    let rows = names.iter().map(|name| [format!("`{name}`"), both(named(&slow, name))]);
    assert_shown(
        page,
        "slow",
        &with_command(POLICIES, options, &table(["policy", "p50 / p99"], rows.collect())),
    );
    assert!(faster(&slow, "peak_ewma", "p2c") && faster(&slow, "least_conn", "p2c"));
    assert!(faster(&slow, "least_conn_weighted", "least_conn") && faster(&slow, "p2c_weighted", "p2c"));
    assert!(overloaded(named(&slow, "random")) && overloaded(named(&slow, "round_robin")));
}

fn over_routers(page: &str) {
    let options = "-p utilisation=0.8 --sweep routers=1,8,64 -p length=4000 --replications 5";
    let many = run_of(POLICIES, options);
    let of = |n: u64| many.iter().filter(|s| s["params"]["routers"] == n).cloned().collect::<Vec<Value>>();
    let (one, eight, most) = (of(1), of(8), of(64));
    let names = ["random", "round_robin", "least_conn", "p2c", "peak_ewma", "zuul", "maglev_bound"];
    let rows = names.iter().map(|name| {
        let [a, b, c] = [&one, &eight, &most].map(|of| both(named(of, name)));
        [format!("`{name}`"), a, b, c]
    });
    let heading = ["policy", "p50 / p99, one router", "eight", "sixty-four"];
    assert_shown(page, "routers", &with_command(POLICIES, options, &table(heading, rows.collect())));
    assert!(!faster(&most, "least_conn", "p2c") && !faster(&most, "p2c", "least_conn"));
    assert!(faster(&one, "least_conn", "p2c") && faster(&eight, "least_conn", "random"));
}

fn probes(page: &str) {
    let options = "--replications 5";
    let got = run_of(PROBES, options);
    let of = |far: &str, n: u64| -> Vec<Value> {
        let here = |s: &&Value| s["params"]["far"] == far && s["params"]["routers"] == n;
        got.iter().filter(here).cloned().collect()
    };
    let points = ["0s", "1ms", "10ms"].into_iter().flat_map(|far| [(far, 1), (far, 8)]);
    let names = ["least_conn", "p2c", "prequal", "prequal_cost", "prequal_many"];
    let rows = points.clone().map(|(far, n)| {
        let here = of(far, n);
        let [a, b, c, d, e] = names.map(|name| both(named(&here, name)));
        [far.to_owned(), n.to_string(), a, b, c, d, e]
    });
    let heading = [
        "cable",
        "routers",
        "p50 / p99, `least_conn`",
        "`p2c`",
        "`prequal`",
        "`prequal_cost`",
        "`prequal_many`",
    ];
    assert_shown(page, "probes", &with_command(PROBES, options, &table(heading, rows.collect())));
    for (far, n) in points {
        assert!(faster(&of(far, n), "p2c", "prequal"), "{far}, {n} routers");
    }
    assert!(faster(&of("0s", 8), "prequal_many", "least_conn"));
    assert!(faster(&of("10ms", 8), "least_conn", "prequal_many"));
    assert!(
        faster(&of("1ms", 1), "prequal_cost", "prequal") && !faster(&of("1ms", 8), "prequal_cost", "prequal")
    );
}

/// The share of requests that failed: what the target got that always fails.
fn failed(s: &Value) -> Estimate {
    let Estimate { value, half } = figure(s, "success");
    Estimate { value: 1.0 - value, half }
}

/// Shares as percentages: two decimals where the tenth would say nothing.
fn percent(Estimate { value, half }: Estimate) -> String {
    match (value * 100.0, half * 100.0) {
        (share, half) if half < 0.005 => format!("{share:.2}").trim_end_matches(".00").to_owned(),
        (share, half) if half < 0.05 => format!("{share:.2} ±{half:.2}"),
        (share, half) => format!("{share:.1} ±{half:.1}"),
    }
}

fn failing(page: &str) {
    let options = "--sweep n=2,10 --replications 5";
    let got = run_of(FAILING, options);
    let of = |n: u64| got.iter().filter(|s| s["params"]["n"] == n).cloned().collect::<Vec<Value>>();
    let both = [of(2), of(10)];
    let names = [
        "random",
        "round_robin",
        "least_conn",
        "p2c",
        "peak_ewma",
        "zuul",
        "prequal",
        "ring_hash",
        "maglev",
        "first",
    ];
    let calls = names.map(|name| format!("lb.{name}"));
    assert_eq!(missing_balancers(calls.iter().map(String::as_str)), ["lb.least_work"], "it is never served");
    let rows = names.map(|name| {
        let share = |n: usize, with: &str| {
            let found = both[n].iter().find(|s| s["name"] == format!("{name}{with}").as_str());
            found.map_or("–".to_owned(), |s| percent(failed(s)))
        };
        let [a, b, c] = ["", ", eject", ", error_hold"].map(|with| share(0, with));
        let [d, e, f] = ["", ", eject", ", error_hold"].map(|with| share(1, with));
        [format!("`{name}`"), a, b, c, d, e, f]
    });
    let heading = [
        "policy",
        "of two, %",
        "with `eject()`",
        "`error_hold=1*s`",
        "of ten, %",
        "with `eject()`",
        "`error_hold=1*s`",
    ];
    assert_shown(page, "failing", &with_command(FAILING, options, &table(heading, rows.to_vec())));

    for (of, even) in both.iter().zip([0.5, 0.1]) {
        let share = |name: &str| failed(named(of, name));
        for name in ["peak_ewma", "prequal"] {
            let Estimate { value, half } = share(name);
            assert!(value - half <= even && value < even * 1.02, "{name}: {value} of {even}");
        }
        for name in ["least_conn", "p2c"] {
            let Estimate { value, half } = share(name);
            assert!(value - half > even, "{name}: {value} of {even}");
            assert_eq!(
                lower(share(&format!("{name}, error_hold")), Estimate { value: even, half: 0.0 }),
                Some(true)
            );
        }
        for name in names {
            assert!(share(&format!("{name}, eject")).value < 0.002, "{name}");
        }
        assert!(share("first").value > 0.999);
    }
}

/// The row of the servers of this name.
fn row<'a>(s: &'a Value, name: &str) -> &'a Value {
    let rows = s["nodes"].as_array().expect("rows");
    let of = |row: &&Value| row["kind"] == "server" && row["name"] == name;
    rows.iter().find(of).unwrap_or_else(|| panic!("no row `{name}`"))
}

/// The share of all requests that came to the servers of this name, percent.
fn share_of(s: &Value, name: &str) -> f64 {
    let number = |n: &Value| n.as_f64().expect("a number");
    100.0 * number(&row(s, name)["requests"]) / number(&s["requests"]["selected"])
}

/// How unevenly requests are spread among the servers: their standard deviation, percent of the mean.
fn spread(s: &Value) -> Estimate {
    let cv = &row(s, "app")["spread"]["cv"];
    let [value, low, high] = ["value", "low", "high"].map(|key| 100.0 * cv[key].as_f64().expect("a number"));
    Estimate { value, half: (high - low) / 2.0 }
}

fn choice_of_two(page: &str) {
    let options = "--replications 5";
    let got = run_of(CHOICE, options);
    let of = |name: &str, which: &str| named(&got, &format!("{name}, {which}"));
    let names = ["round_robin", "least_conn", "p2c", "peak_ewma", "zuul"];
    let p999 = |s: &Value| if overloaded(s) { "grows".to_owned() } else { shown(figure(s, "p999")) };
    let rows = names.map(|name| {
        let slow = of(name, "slow");
        [
            format!("`{name}`"),
            format!("{:.1}", share_of(slow, "slow")),
            p999(slow),
            format!("{:.2}", share_of(of(name, "failing"), "failing")),
            p999(of(name, "cold")),
            shown(spread(of(name, "alike"))),
            shown(spread(of(name, "unlike"))),
        ]
    });
    let heading = [
        "policy",
        "slow: its share, %",
        "p99.9",
        "failing: its share, %",
        "cold: p99.9",
        "alike: spread, %",
        "unlike: spread, %",
    ];
    assert_shown(page, "choice-of-two", &with_command(CHOICE, options, &table(heading, rows.to_vec())));
    let failing = |name: &str| share_of(of(name, "failing"), "failing");
    assert!(failing("least_conn") > 50.0 && failing("p2c") > 6.0 && failing("zuul") < 0.2);
    let cold = |name: &str| figure(of(name, "cold"), "p999");
    for other in ["round_robin", "least_conn", "p2c", "peak_ewma"] {
        assert_eq!(lower(cold("zuul"), cold(other)), Some(true), "{other}");
    }
    assert!(share_of(of("zuul", "slow"), "slow") < share_of(of("p2c", "slow"), "slow"));
    for other in ["round_robin", "p2c"] {
        assert_eq!(lower(spread(of(other, "unlike")), spread(of("zuul", "unlike"))), Some(true), "{other}");
    }
}
