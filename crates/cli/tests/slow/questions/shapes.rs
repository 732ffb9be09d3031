//! How servers, groups and cables lie: bursts, concurrent servers, unequal cables.

use crate::shared::answers::{Answer, list, more, ms, run_of, sign};
use crate::shared::figures::{figure, named};
use crate::shared::pages::{lower, shown, table};
use serde_json::Value;

pub(crate) fn bursts() -> Answer {
    let args = vec!["examples/timelike/questions/08-bursts.star"];
    let got = run_of(&args);
    let of = |traffic: &str, groups: &str| named(&got, &format!("{traffic}_{groups}"));
    let kinds = [
        ("one_pool", "one router over all"),
        ("disjoint", "ten groups, disjoint"),
        ("a_tenth", "overlapping by a tenth"),
        ("a_quarter", "by a quarter"),
        ("a_half", "by a half"),
        ("ten_over_all", "ten routers over all"),
    ];
    let rows = kinds.map(|(kind, says)| {
        let cell = |traffic: &str| {
            let s = of(traffic, kind);
            format!("{} / {} / {}", ms(s, "mean"), ms(s, "p50"), ms(s, "p99"))
        };
        let dearer = more(of("bursts", kind), of("bursts", "one_pool"), "mean");
        let dearer = if kind == "one_pool" { "–".to_owned() } else { format!("+{}", shown(dearer)) };
        [says.to_owned(), cell("even"), cell("bursts"), dearer]
    });
    let heading =
        ["groups", "mean / p50 / p99 ms, even traffic", "in bursts", "mean in bursts, above one router's"];
    let dearer = |traffic: &str, kind: &str| more(of(traffic, kind), of(traffic, "one_pool"), "mean");
    // From one row to the next all means rise, certainly.
    for traffic in ["even", "bursts"] {
        for pair in kinds.windows(2) {
            let d = more(of(traffic, pair[1].0), of(traffic, pair[0].0), "mean");
            assert_eq!(sign(d), Some(true), "{traffic}: {} is not certainly slower", pair[1].0);
        }
    }
    let verdict = format!(
        "a router that sees all servers takes bursts best, disjoint groups cost {} ms of the mean more then ({} ms where traffic is \
         even), and overlap only harms: a tenth {} ms, a quarter {} ms, a half {} ms, everything {} ms.",
        shown(dearer("bursts", "disjoint")),
        shown(dearer("even", "disjoint")),
        shown(dearer("bursts", "a_tenth")),
        shown(dearer("bursts", "a_quarter")),
        shown(dearer("bursts", "a_half")),
        shown(dearer("bursts", "ten_over_all")),
    );
    Answer { name: "08", commands: vec![args], table: table(heading, rows.to_vec()), verdict }
}

const SKEWS: [(f64, &str); 3] =
    [(1.0, "racks alike"), (1.25, "one rack gets a quarter more"), (1.5, "one gets half as much again")];
const DISTANCES: [&str; 3] = ["1ms", "5ms", "20ms"];

pub(crate) fn unequal_cables() -> Answer {
    let args = vec!["examples/timelike/questions/11-unequal-cables.star"];
    let got = run_of(&args);
    let verdict = format!(
        "the fastest by the mean is {}; near servers first and far ones when all near are busy {}; \
         `prequal`, whose probes travel, is {} than `peak_ewma`.",
        list(&SKEWS.map(|(skew, says)| describe_fastest(&got, skew, says))),
        describe_spills(&got),
        list(&DISTANCES.map(|far| compare_probes(&got, far))),
    );
    Answer { name: "11", commands: vec![args], table: tabulate_cables(&got), verdict }
}

#[track_caller]
fn find_run<'a>(got: &'a [Value], name: &str, skew: f64, far: &str) -> &'a Value {
    let here = |s: &&Value| s["name"] == name && s["params"]["skew"] == skew && s["params"]["far"] == far;
    got.iter().find(here).unwrap_or_else(|| panic!("no {name} at {skew} and {far}"))
}

/// A row for each skew and distance, a column for each policy.
fn tabulate_cables(got: &[Value]) -> String {
    let policies = [
        "nearest",
        "near_then_far",
        "near_at_random",
        "least_conn",
        "peak_ewma",
        "prequal",
        "prequal_cost",
        "least_work",
    ];
    let mut rows = Vec::new();
    for (skew, says) in SKEWS {
        for far in DISTANCES {
            let cells = policies.map(|policy| {
                let s = find_run(got, policy, skew, far);
                format!("{} / {}", ms(s, "mean"), ms(s, "p99"))
            });
            rows.push([vec![says.to_owned(), far.to_owned()], cells.to_vec()].concat());
        }
    }
    let heading = [&["mean / p99 ms", "far"], &policies[..]].concat();
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    line(&heading.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>())
        + &format!("|{}\n", "---|".repeat(heading.len()))
        + &rows.iter().map(|row| line(row)).collect::<String>()
}

/// The policies of which the fastest is said: those that are no variants of another.
const SINGLE: [&str; 5] = ["nearest", "near_at_random", "least_conn", "peak_ewma", "prequal"];

/// Of these, each that is certainly slower than none, by the mean.
fn find_fastest(got: &[Value], of: &[&'static str], skew: f64, far: &str) -> Vec<&'static str> {
    let find = |policy: &str| find_run(got, policy, skew, far);
    let mean = |policy: &str| figure(find(policy), "mean").value;
    let best = *of.iter().min_by(|a, b| mean(a).total_cmp(&mean(b))).expect("some");
    let slower = |p: &&str| sign(more(find(p), find(best), "mean")) == Some(true);
    of.iter().copied().filter(|p| !slower(p)).collect()
}

/// The fastest policies at a skew; by distance, where that matters.
fn describe_fastest(got: &[Value], skew: f64, says: &str) -> String {
    let each = DISTANCES.map(|far| find_fastest(got, &SINGLE, skew, far));
    let named = |which: &[&str]| list(&which.iter().map(|p| format!("`{p}`")).collect::<Vec<_>>());
    if each.iter().all(|which| *which == each[0]) {
        return format!("{} at any distance with {says}", named(&each[0]));
    }
    let by_far = each.iter().zip(DISTANCES).map(|(which, far)| format!("{} at {far}", named(which)));
    format!("{} where {says}", list(&by_far.collect::<Vec<_>>()).replace("ms", " ms"))
}

/// What stays near while it can, against the best of these.
fn describe_spills(got: &[Value]) -> String {
    let with = [&["near_then_far"], &SINGLE[..]].concat();
    let mut slower = Vec::new();
    for (skew, says) in SKEWS {
        let fast = |far: &&&str| find_fastest(got, &with, skew, far).contains(&"near_then_far");
        for far in DISTANCES.iter().filter(|far| !fast(far)) {
            let best = find_fastest(got, &SINGLE, skew, far)[0];
            let mean = |policy: &str| ms(find_run(got, policy, skew, far), "mean");
            let (a, b) = (mean("near_then_far"), mean(best));
            slower.push(format!("{} with {says}, {a} against {b} ms", far.replace("ms", " ms")));
        }
    }
    assert!(slower.len() <= 2, "near_then_far is slower at {slower:?}");
    match slower[..] {
        [] => "is never slower than any of these".to_owned(),
        _ => format!("is slower than any of these only at {}", list(&slower)),
    }
}

/// How much slower `prequal` is than `peak_ewma` at a distance, racks being alike.
fn compare_probes(got: &[Value], far: &str) -> String {
    let find = |policy: &str| find_run(got, policy, 1.0, far);
    let d = more(find("prequal"), find("peak_ewma"), "mean");
    let word = match sign(d) {
        Some(true) => "slower",
        Some(false) => "faster",
        None => "not to be told apart from it",
    };
    format!("at {} {:.1} ms {word}", far.replace("ms", " ms"), d.value.abs())
}

pub(crate) fn concurrent() -> Answer {
    let args = vec!["examples/timelike/questions/09-concurrent-servers.star"];
    let got = run_of(&args);
    let kinds = [
        ("queue", "queues"),
        ("core", "one shared core"),
        ("cores", "four cores"),
        ("contended", "four cores in contention"),
    ];
    let (mut pays, mut hardly, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, says) in kinds {
        let p99 = |routing: &str| figure(named(&got, &format!("{kind}_{routing}")), "p99");
        let (random, shared, own) = (p99("random"), p99("one_pool"), p99("ten_pools"));
        let gain = 1.0 - own.value / shared.value;
        let both = format!("{says} ({:.0} %)", gain * 100.0);
        assert!(lower(own, shared) == Some(true), "{kind}: ten pools are not certainly better: {gain}");
        if gain >= 0.1 { &mut pays } else { &mut hardly }.push(both);
        let p50 = |routing: &str| ms(named(&got, &format!("{kind}_{routing}")), "p50");
        let medians = format!("{} / {} / {}", p50("random"), p50("one_pool"), p50("ten_pools"));
        let gain = format!("{:.0} %", gain * 100.0);
        rows.push([says.to_owned(), medians, shown(random), shown(shared), shown(own), gain]);
    }
    let heading = [
        "servers",
        "p50 ms, in this order",
        "p99 ms, random",
        "ten routers, one pool",
        "ten routers, ten pools",
        "gain",
    ];
    let verdict = format!(
        "one pool per router lowers p99 by a tenth or more over {}, and hardly over {}: what makes the architecture needless \
         is cores to spare, and not that a server takes many requests at once.",
        list(&pays),
        list(&hardly),
    );
    // The last clause is about these.
    assert!(pays.len() == 3 && hardly[0].starts_with("four cores ("), "{pays:?} {hardly:?}");
    Answer { name: "09", commands: vec![args], table: table(heading, rows), verdict }
}
