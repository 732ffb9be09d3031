//! Fleets that change during a verification: the same members come and go in both worlds, seen by the same balancers at the
//! same instants. Requests come 50 or 100 ms apart and changes fall between them, so that a busy machine changes no pick.

use super::requests::{recorded, served};
use crate::shared::common::{Scratch, run};
use crate::shared::figures::root;
use serde_json::Value;
use std::collections::BTreeMap;

const APP: &str = "\
def app():
    return queue(delay(dist.exponential(3*ms), server(\"app\")))

def bad():
    return flaky(0.5, app())

def unreached():
    return flaky(0.4, app(), kind = \"connect_failed\")

def ill():
    return flaky(0.3, app())

def crashing():
    return faulty(dist.fixed(830*ms), dist.fixed(500*ms), app(), mode = \"crash\")

def relaying():
    return server(\"app\", model = lambda: lb.first([flaky(0.4, delay(3*ms, server()), kind = \"connect_failed\")], pass_over = None))

";

/// A scenario: a name, its fleets, its node, its changes.
struct Changing<'a>(&'a str, &'a str, &'a str, &'a str);

const STATELESS: [Changing<'static>; 9] = [
    Changing("join", "fleet(4, app)", "lb.random(f)", "change.join(f, at = 1025*ms, k = 2)"),
    Changing(
        "leave",
        "fleet(5, app)",
        "lb.random(f)",
        "change.leave(f, at = 1025*ms, k = 2, which = \"random\")",
    ),
    Changing(
        "scale",
        "fleet(5, app)",
        "lb.random(f)",
        "change.scale(f, at = 525*ms, to = 2), change.scale(f, at = 1225*ms, to = 6)",
    ),
    Changing(
        "unlist",
        "fleet(4, app)",
        "lb.random(f)",
        "change.unlist(f, at = 525*ms, lasts = 800*ms, share = 0.5), change.scale(f, at = 1625*ms, to = 5)",
    ),
    Changing("rolling", "fleet(4, app)", "lb.random(f)", "change.rolling(f, at = 325*ms, every = 400*ms)"),
    Changing(
        "begins",
        "fleet(3, app)",
        "lb.random(f)",
        "change.rolling(f, at = 0*s, batch = 3, every = 1*s, first = \"leave\")",
    ),
    Changing(
        "two routers",
        "fleet(4, app)",
        "lb.random(pool(2, lambda: cable(1*ms, lb.random(f))))",
        "change.rolling(f, at = 325*ms, batch = 2, every = 500*ms, which = \"random\")",
    ),
    Changing(
        "retried",
        "fleet(4, bad)",
        "retry(3, lb.random(f), on = [\"refused\"], backoff = 60*ms)",
        "change.rolling(f, at = 325*ms, every = 400*ms)",
    ),
    Changing(
        "hashed",
        "fleet(4, app)",
        "lb.maglev(f, key = key.client())",
        "change.leave(f, at = 525*ms), change.join(f, at = 1225*ms, k = 2)",
    ),
];

/// The scenarios of a file. Each has fleets of its own: a change belongs to a scenario.
fn scenarios(all: &[Changing]) -> String {
    write_scenarios(all, 20, 40)
}

/// The same with this number of requests, which come at this rate.
fn write_scenarios(all: &[Changing], rate: u32, requests: u32) -> String {
    let of = |(i, Changing(name, fleet, node, events)): (usize, &Changing)| {
        let own = |text: &str| text.replace("(f)", &format!("(f{i})")).replace("(f,", &format!("(f{i},"));
        let constant = format!("traffic.constant(rate = {rate})");
        let traffic = match *name {
            "hashed" => format!("traffic.mix({constant}, [(1, request(key = keys.uniform(20)))])"),
            _ => constant,
        };
        format!(
            "f{i} = {fleet}\nscenario(\"{name}\", {}, {traffic}, requests = {requests}, window = \"all\", events = [{}])\n",
            own(node),
            own(events)
        )
    };
    APP.to_owned() + &all.iter().enumerate().map(of).collect::<String>()
}

/// Requests of each scenario that came to each server in the first replication, by the order of their nodes.
fn simulated(file: &str) -> BTreeMap<String, Vec<u64>> {
    let args = ["sim", file, "--replications", "1", "--nodes", "all", "--output", "json", "--quiet"];
    let found: Value = serde_json::from_str(run(&args).succeeds()).expect("JSON");
    let scenarios = found["scenarios"].as_array().expect("scenarios");
    let of = |scenario: &Value| {
        // What a built-in server begins with, or has one of.
        let kind = match scenario["name"].as_str() {
            Some("retried") => "flaky",
            Some("relaying") => "server",
            _ => "queue",
        };
        let is_it = |n: &&Value| n["kind"] == kind && (kind != "server" || n["name"] == "app");
        let nodes = scenario["nodes"].as_array().expect("nodes").iter().filter(is_it);
        let counts = nodes.filter_map(|n| n["requests"].as_u64()).filter(|n| *n > 0).collect();
        (scenario["name"].as_str().expect("a name").to_owned(), counts)
    };
    scenarios.iter().map(of).collect()
}

/// Before, during and after changes: requests go where the simulation sends them, and a record of it, which has the
/// changes of targets, replays to the same picks.
#[test]
fn members_come_and_go_in_both_worlds() {
    let scratch = Scratch::new("verify-changes");
    let text = scenarios(&STATELESS);
    let runs = recorded(&scratch, &text);
    let simulated = simulated(&scratch.path("t.star"));
    for Changing(name, ..) in STATELESS {
        assert_eq!(served(&runs[name]), simulated[name], "{name}");
        // Of one loop, and of the owner of health.
        let changes = count_changes(&runs[name]);
        assert!(changes >= 2, "{name}: {changes}");
    }
}

/// How often a balancer got other targets, on any thread.
fn count_changes(run: &[Value]) -> usize {
    let changes = run.iter().filter_map(|line| line["did"][2]["change"]["changes"].as_array());
    changes.filter(|changes| !changes.is_empty()).count()
}

/// A source whose lists may be doubted: the members that a short list lacks serve on, until their grace is over. Where every
/// list is believed they get nothing.
#[test]
fn lists_are_doubted_in_both_worlds() {
    let scratch = Scratch::new("verify-lists");
    let half = "change.unlist(f, at = 525*ms, lasts = 800*ms, share = 0.5)";
    let everything = "change.unlist(f, at = 525*ms, lasts = 800*ms)";
    let doubting = "find.file(\"f.json\", app, size = 6, shrink = 0.4)";
    let short = "find.file(\"f.json\", app, size = 6, shrink = 0.4, grace = 400*ms)";
    let believing = "find.file(\"f.json\", app, size = 6, shrink = None)";
    // How often targets change, on two threads: not at all, as the grace ends or the list comes, and as all are listed again.
    let all = [
        (Changing("half, doubted", doubting, "lb.random(f)", half), 0),
        (Changing("half, believed", believing, "lb.random(f)", half), 4),
        (Changing("everything, doubted", doubting, "lb.random(f)", everything), 0),
        (Changing("everything, believed", believing, "lb.random(f)", everything), 4),
        (Changing("for a while", short, "lb.random(f)", half), 4),
        (Changing("left", short, "lb.random(f)", "change.leave(f, at = 525*ms, k = 4)"), 2),
    ];
    let (changing, counts): (Vec<Changing>, Vec<usize>) = all.into_iter().unzip();
    let runs = recorded(&scratch, &scenarios(&changing));
    let simulated = simulated(&scratch.path("t.star"));
    for (Changing(name, ..), changes) in changing.iter().zip(counts) {
        assert_eq!(served(&runs[*name]), simulated[*name], "{name}");
        assert_eq!(count_changes(&runs[*name]), changes, "{name}");
    }
}

/// What loops see decides about members that the last list lacks: the first connection that fails ends one, or an ejection.
/// One that is listed stays, and so does one in whose model a balancer has found no process.
#[test]
fn withdrawn_members_that_fail_are_picked_no_more_in_both_worlds() {
    let scratch = Scratch::new("verify-withdrawn");
    let forgets = "change.unlist(f, at = 550*ms, lasts = 1300*ms)";
    let random = "lb.random(f, pass_over = None)";
    let ejecting = "lb.random(f, eject = eject(consecutive = 1, base = 60*s, max_percent = 100), panic = 0)";
    let fleet = |name: &str| format!("find.file(\"f.json\", {name}, size = 6, shrink = 0.4)");
    let [unreached, crashing, ill, relaying] = ["unreached", "crashing", "ill", "relaying"].map(fleet);
    let all = [
        Changing("unreached", &unreached, random, forgets),
        Changing("crashing", &crashing, random, forgets),
        Changing("ill", &ill, ejecting, forgets),
        Changing("relaying", &relaying, random, forgets),
    ];
    let runs = recorded(&scratch, &write_scenarios(&all, 10, 22));
    let simulated = simulated(&scratch.path("t.star"));
    for Changing(name, ..) in &all {
        assert_eq!(served(&runs[*name]), simulated[*name], "{name}");
        // Members are removed, and are new targets as they are listed again.
        let changes = count_changes(&runs[*name]);
        assert!(if *name == "relaying" { changes == 0 } else { changes >= 4 }, "{name}: {changes}");
    }
}

/// Rows of the example, in a twentieth of their time: with every list believed 20 of 55 parts of the window have no target.
#[test]
fn a_registry_that_forgets_costs_the_same_in_both_worlds() {
    let file = root().join("examples/discovery.star");
    let file = file.to_str().expect("UTF-8");
    for (doubt, low, high) in [("doubt=True", 1.0, 1.0), ("doubt=False", 0.5, 0.75)] {
        let rows = ["verify", file, "half", "everything", "-p", doubt, "-p", "second=50ms"];
        let ran = run(&[&rows[..], &["--runs", "2", "--output", "json", "--quiet"]].concat());
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
        let found: Value = serde_json::from_str(&ran.out).expect("JSON");
        let scenarios = found["scenarios"].as_array().expect("scenarios");
        assert_eq!(scenarios.len(), 2, "{found}");
        for scenario in scenarios {
            let statistics = scenario["statistics"].as_array().expect("statistics");
            let success = statistics.iter().find(|s| s["name"] == "success").expect("the statistic");
            let simulated = success["simulated"]["value"].as_f64().expect("a share");
            if scenario["name"] == "everything" {
                assert!((low..=high).contains(&simulated), "{doubt}: {scenario}");
            }
            // On a machine that was too busy for every run there is nothing to compare.
            if scenario["runs"] == 0 {
                continue;
            }
            let real = success["real"]["value"].as_f64().expect("a share");
            assert!((simulated - real).abs() < 0.03, "{doubt}: {scenario}");
            // What the five get together that get least: a third where the list without them is believed, else a half.
            let targets = scenario["targets"].as_array().expect("targets");
            let share = |of: &Value, world: &str| of[world]["value"].as_f64().expect("a share");
            let of = |of: &Value| (share(of, "simulated_share"), share(of, "real_share"));
            let mut shares: Vec<(f64, f64)> = targets.iter().map(of).collect();
            shares.sort_by(|a, b| a.0.total_cmp(&b.0));
            let least = shares[..5].iter().fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
            assert!((least.0 - least.1).abs() < 0.1, "{doubt}: {least:?} of {scenario}");
        }
    }
}

/// What is simulated only is said with its line before anything runs, and how the others are verified.
#[test]
fn what_is_not_played_is_said_with_its_line() {
    let file = root().join("examples/discovery.star");
    let file = file.to_str().expect("UTF-8");
    let text = std::fs::read_to_string(file).expect("the example");
    let line = 1 + text.lines().position(|l| l.contains("change.rolling(")).expect("a deploy");
    let ran = run(&["verify", file, "--quiet"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let place = format!("discovery.star:{line}:");
    for says in [
        "scenario \"lags\" has a change of a fleet with `life` (",
        "scenario \"lags, drains\" has a change of a fleet with `life` (",
        &place,
        "name the others behind the file: right half everything flaps 'cut off' 'cut off, ejects'",
    ] {
        assert!(ran.err.contains(says), "{says}: {}", ran.err);
    }
    assert_eq!(ran.err.matches("`life`").count(), 2, "each once: {}", ran.err);
}

/// A run that ends before its changes says so.
#[test]
fn changes_that_a_run_does_not_come_to_are_said() {
    let scratch = Scratch::new("verify-unreached");
    let file = scratch.file(
        "t.star",
        scenarios(&[Changing("late", "fleet(4, app)", "lb.random(f)", "change.leave(f, at = 1525*ms)")]),
    );
    let ran = run(&["verify", &file, "--runs", "2", "--requests", "20", "--output", "json", "--quiet"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.err);
    let says = "1 of its 1 changes come after the last request of a run";
    assert!(ran.out.contains(says) && ran.out.contains("t.star:"), "{}", ran.out);
    assert!(ran.out.contains("send more requests (--requests)"), "{}", ran.out);
}

/// Balancers see a change late: each at its own instant, all its loops at once.
#[test]
fn balancers_see_late() {
    let scratch = Scratch::new("verify-lag");
    let lagging = [
        Changing(
            "late",
            "fleet(4, app, lag = 300*ms)",
            "lb.random(f)",
            "change.join(f, at = 1025*ms, k = 2)",
        ),
        Changing(
            "apart",
            "fleet(4, app, lag = 300*ms)",
            "listen(\"127.0.0.1:0\", lb.random(f), loops = 2, name = \"web\")",
            "change.rolling(f, at = 225*ms, every = 400*ms)",
        ),
    ];
    let runs = recorded(&scratch, &scenarios(&lagging));
    let simulated = simulated(&scratch.path("t.star"));
    for Changing(name, ..) in lagging {
        assert_eq!(served(&runs[name]), simulated[name], "{name}");
    }
}

/// Whatever state a policy has of its targets: the picks of a record with changes are the same again.
#[test]
fn picks_with_changes_are_the_same_again() {
    let scratch = Scratch::new("verify-changes-replay");
    let rolling = "change.rolling(f, at = 325*ms, every = 400*ms), change.unlist(f, at = 625*ms, lasts = 300*ms, share = 0.5)";
    let checked = "lb.least_conn(f, slow_start = slow_start(1*s), health = health.tcp(interval = 200*ms))";
    let all = [
        Changing("least", "fleet(4, app)", "lb.least_conn(f)", rolling),
        Changing("p2c", "fleet(4, app)", "lb.p2c(f)", rolling),
        Changing("peak", "fleet(4, app)", "lb.peak_ewma(f)", rolling),
        Changing("zuul", "fleet(4, app)", "lb.zuul(f)", rolling),
        Changing("turns", "fleet(4, app)", "lb.round_robin(f)", rolling),
        Changing("checked", "fleet(4, app)", checked, rolling),
    ];
    let runs = recorded(&scratch, &scenarios(&all));
    for Changing(name, ..) in all {
        let picks = runs[name].iter().filter(|line| line["did"][2].get("pick").is_some()).count();
        assert!(picks >= 40, "{name}: {picks}");
    }
}
