//! Fleets whose source may be doubted: what becomes of members that a short list lacks, from arithmetic, in both engines.

use super::history::recorded;
use super::{Case, options, plan};
use crate::record::Selection;
use crate::results::result::{Results, ScenarioResult};
use crate::results::run::{Options, run_with};
use crate::results::timetable::timetable;
use std::sync::atomic::AtomicBool;
use weir_plan::fleets::TargetNews;
use weir_stats::Key;

fn results(source: &str) -> Results {
    let (plan, options) = (plan(source), Options { members: true, ..options() });
    let run = |fast| {
        run_with(&plan, &options, &|_, _| {}, &AtomicBool::new(false), fast)
            .unwrap_or_else(|e| panic!("{e:?}\n{source}"))
    };
    let (fast, slow) = (run(true), run(false));
    assert_eq!(fast, Results { events: fast.events, ..slow }, "the engines differ");
    fast
}

fn only(source: &str) -> ScenarioResult {
    results(source).scenarios.remove(0)
}

/// Requests at each member called `a`.
fn requests(result: &ScenarioResult) -> Vec<u64> {
    let servers = result.nodes.iter().filter(|node| node.kind == "server" && node.name == "a");
    servers.map(|node| node.requests).collect()
}

const SERVERS: &str = "lambda: queue(delay(dist.exponential(20 * ms), server(\"a\")))";
const FORGETS: &str = ", events = [change.unlist(a, at = 20 * s, lasts = 30 * s, share = 0.6)]";

/// A member that was kept is listed again before its grace is over: for the balancer nothing happens.
#[test]
fn a_doubted_list_changes_nothing() {
    let file = |events: &str| {
        format!(
            "a = find.file(\"a.json\", {SERVERS}, size = 10)\n\
             scenario(\"s\", lb.p2c(a), traffic.poisson(rate = 250), requests = 20000, window = \"all\"{events})\n"
        )
    };
    let (doubted, still) = (only(&file(FORGETS)), only(&file("")));
    assert_eq!((&doubted.requests, &doubted.latency_all), (&still.requests, &still.latency_all));
    assert_eq!((&doubted.latency_ok, &doubted.curve_all), (&still.latency_ok, &still.curve_all));
    assert_eq!(requests(&doubted), requests(&still));
}

/// All that a result has, with a list that is believed because of `shrink`, and one that no list is too short for.
#[test]
fn without_shrink_it_is_a_fleet() {
    let file = |fleet: &str| {
        format!(
            "a = {fleet}\n\
             scenario(\"s\", lb.p2c(a), traffic.poisson(rate = 250), requests = 20000{FORGETS})\n"
        )
    };
    let fleet = only(&file(&format!("fleet(10, {SERVERS})")));
    for shrink in ["None", "1", "0.6"] {
        let find = only(&file(&format!("find.file(\"a.json\", {SERVERS}, size = 10, shrink = {shrink})")));
        assert_eq!(find, fleet, "shrink = {shrink}");
    }
}

/// A newcomer that has booted and a leaver that its place frees are two lists at one instant, and seen at one.
#[test]
fn of_two_lists_that_are_seen_at_once_the_newer_counts() {
    let file = |shrink: &str| {
        format!(
            "a = find.file(\"a.json\", {SERVERS}, size = 4, shrink = {shrink}, lag = 30 * s, \
             life = life(boot = 5 * s, drain = 40 * s))\n\
             scenario(\"s\", lb.least_conn(a), traffic.poisson(rate = 20), duration = 100 * s, \
             events = [change.rolling(a, at = 15 * s, batch = 1, every = 10 * s)])\n"
        )
    };
    let believed = only(&file("None"));
    assert_eq!(believed.requests.failed, 0);
    assert_eq!(only(&file("1")), believed);
}

/// Two balancers of 1000 requests per second each see a change 2 s after it was made: at 12 s, and at 32 s that all are
/// listed again. At 17 s the grace of six of the ten members ends.
#[test]
fn grace_ends_at_each_balancer_and_a_list_brings_members_back() {
    let source = "a = find.file(\"a.json\", lambda: server(\"a\", model = 1 * ms), size = 10, shrink = 0.5, grace = 5 * s, lag = 2 * s)\n\
        both = fanout([lb.round_robin(a), lb.round_robin(a)])\n\
        scenario(\"s\", both, traffic.constant(rate = 1000), requests = 40000, window = \"all\", \
        events = [change.unlist(a, at = 10 * s, lasts = 20 * s, share = 0.6)])\n";
    let mut counts = requests(&only(source));
    counts.sort_unstable();
    let close = |of: &[u64], n: u64| of.iter().all(|of| of.abs_diff(2 * n) <= 8);
    assert!(close(&counts[..6], 100 * (17 + 8)), "{counts:?}");
    assert!(close(&counts[6..], 100 * 17 + 250 * 15 + 100 * 8), "{counts:?}");
}

/// Eight of ten leave at once: the list is doubted, and the leavers are picked and serve for their grace. Two of ten
/// may leave.
#[test]
fn a_large_leave_is_doubted_and_a_small_one_is_not() {
    let file = |k: u64| {
        format!(
            "a = find.file(\"a.json\", lambda: server(\"a\", model = 1 * ms), size = 10, grace = 5 * s)\n\
             scenario(\"s\", lb.round_robin(a), traffic.constant(rate = 1000), requests = 20000, window = \"all\", \
             events = [change.leave(a, at = 10 * s, k = {k})])\n"
        )
    };
    for (k, grace) in [(8, 5), (2, 0)] {
        let result = only(&file(k));
        assert_eq!(result.requests.failed, 0);
        let counts = requests(&result);
        let (left, stayed) = counts.split_at(k as usize);
        let before = 100 * (10 + grace);
        let after = 1000 / (10 - k) * (10 - grace);
        assert!(left.iter().all(|n| n.abs_diff(before) <= 2), "{k}: {counts:?}");
        assert!(stayed.iter().all(|n| n.abs_diff(before + after) <= 5), "{k}: {counts:?}");
    }
}

/// A fleet of one that the registry forgets from 5 s to 25 s, while its process is down from 10 s to 30 s.
fn forgotten(mode: &str, around: &str) -> String {
    format!(
        "a = find.file(\"a.json\", lambda: faulty(dist.fixed(10 * s), dist.fixed(20 * s), server(\"a\"), mode = \"{mode}\"))\n\
         root = lb.round_robin(a{around}, pass_over = 1 * ms, panic = 0)\n"
    )
}

const FROM_5_TO_25: &str = ", events = [change.unlist(a, at = 5 * s, lasts = 20 * s)]";

/// The first connection that fails ends the member; once it is listed it is a target again, whose connections fail until
/// its process is back.
#[test]
fn a_failed_connection_ends_a_withdrawn_member() {
    let at_ms = [4_000, 6_000, 9_000, 11_000, 12_000, 24_999, 25_000, 26_000, 31_000];
    let source = forgotten("crash", "");
    Case::with(&at_ms, &source, FROM_5_TO_25).gives(&[
        "0 ok",
        "0 ok",
        "0 ok",
        "0 connect_failed",
        "0 no_target",
        "0 no_target",
        "0 connect_failed",
        "0 connect_failed",
        "0 ok",
    ]);
    // A member that is listed stays, whatever fails.
    Case::new(&at_ms[3..6], &source).gives(&["0 connect_failed"; 3]);
}

/// A refusal is the answer of a process that is there. Without checks and ejection it ends nothing; the first check that
/// fails does, and so does an ejection.
#[test]
fn a_failed_check_or_an_ejection_ends_a_withdrawn_member() {
    let at_ms = [9_900, 10_100, 10_200, 12_000, 24_000, 25_000, 31_900];
    let (up, no, none) = ("0 ok", "0 refused", "0 no_target");
    let case = |around: &str, at_ms: &[u64]| Case::with(at_ms, &forgotten("refuse", around), FROM_5_TO_25);
    case("", &at_ms).gives(&[up, no, no, no, no, no, up]);
    // Two failures in a row at 10.2 s.
    let ejects = ", eject = eject(consecutive = 2, base = 100 * s, max_percent = 100)";
    case(ejects, &at_ms).gives(&[up, no, no, none, none, no, up]);
    // A check between 10 and 11 s.
    let checks = ", health = health.tcp(interval = 1 * s, timeout = 500 * ms, fall = 9)";
    case(checks, &[9_900, 12_000, 24_000, 25_000, 31_900]).gives(&[up, none, none, no, up]);
}

/// Ejections without an answer: by a `timeout` around the balancer, whose second one in a row is at 6.005 s, and by a
/// comparison of all targets, the first one of which with failures is at 11 s. Both would be over at 20 s.
#[test]
fn every_ejection_ends_a_withdrawn_member() {
    let slow = "a = find.file(\"a.json\", lambda: delay(20 * ms, server(\"a\")))\n\
                root = timeout(5 * ms, lb.round_robin(a, panic = 0, eject = eject(consecutive = 2, base = 1 * s, max_percent = 100)))\n";
    Case::with(&[4_000, 6_000, 20_000, 25_000], slow, FROM_5_TO_25).gives(&[
        "5 timeout",
        "5 timeout",
        "0 no_target",
        "5 timeout",
    ]);
    // Listed again before its ejection is over, it is a target without one.
    let soon = ", events = [change.unlist(a, at = 5 * s, lasts = 1500 * ms)]";
    Case::with(&[4_000, 6_000, 6_600], slow, soon).gives(&["5 timeout"; 3]);
    let compares = ", eject = outlier(interval = 1 * s, base_ejection_time = 1 * s, max_ejection_percent = 100, \
                    enforcing_consecutive_5xx = 0, enforcing_failure_percentage = 100, \
                    failure_percentage_minimum_hosts = 1, failure_percentage_request_volume = 2)";
    Case::with(
        &[9_000, 10_200, 10_400, 12_500, 20_000, 25_000],
        &forgotten("refuse", compares),
        FROM_5_TO_25,
    )
    .gives(&["0 ok", "0 refused", "0 refused", "0 no_target", "0 no_target", "0 refused"]);
}

/// A balancer inside of a member's model has a target without a process; that of the member is there.
#[test]
fn a_failed_connection_behind_a_member_is_none_to_it() {
    let source = "a = find.file(\"a.json\", lambda: server(\"a\", model = lambda: \
                  lb.first([faulty(10 * s, 90 * s, server(), starts = \"down\", mode = \"crash\")])))\n\
                  root = lb.round_robin(a)\n";
    Case::with(&[4, 6, 7], source, ", events = [change.unlist(a, at = 5 * ms, lasts = 20 * ms)]")
        .gives(&["0 connect_failed"; 3]);
}

/// Requests that wait because all targets are full go on when the end of a grace leaves none.
#[test]
fn the_end_of_a_grace_comes_before_an_arrival_at_that_instant() {
    let source = "a = find.file(\"a.json\", lambda: delay(30 * ms, server(\"a\")), grace = 100 * ms)\n\
                  root = lb.least_conn(a, max_in_flight = 1)\n";
    let forgets = ", events = [change.unlist(a, at = 1 * s, lasts = 1 * s)]";
    Case::with(&[1_000, 1_099, 1_100], source, forgets).gives(&["30 ok", "30 ok", "0 no_target"]);
    Case::with(&[1_080, 1_090, 1_110], source, forgets).gives(&["30 ok", "10 no_target", "0 no_target"]);
    let never = source.replace("100 * ms", "0 * s");
    Case::with(&[999, 1_000, 1_999, 2_000], &never, forgets).gives(&[
        "30 ok",
        "0 no_target",
        "0 no_target",
        "30 ok",
    ]);
}

/// A run in reality gets whole lists where a balancer may doubt them, since what they mean depends on what fails there.
#[test]
fn a_timetable_has_the_lists_that_may_be_doubted() {
    let found = |shrink: &str| {
        let plan = plan(&format!(
            "a = find.file(\"a.json\", {SERVERS}, size = 4, shrink = {shrink})\n\
             scenario(\"s\", lb.random(a), traffic.constant(rate = 10), requests = 90, window = \"all\", \
             events = [change.unlist(a, at = 2 * s, lasts = 3 * s, share = 0.75)])\n"
        ));
        let (point, scenario) = plan.points[0].grown(&plan.points[0].scenarios[0]);
        timetable(point, scenario, Key::new(1)).unwrap_or_else(|e| panic!("{e:?}"))
    };
    let doubted = found("0.5");
    let all = &doubted.first[0].1;
    let doubts: Vec<_> = doubted.doubts.iter().map(|of| (of.lb, of.doubt.shrink, &of.first)).collect();
    assert_eq!(doubts, [(doubted.first[0].0, Some(0.5), all)]);
    let lists: Vec<(u64, usize)> = doubted
        .sights
        .iter()
        .flat_map(|sight| sight.news.iter().map(move |of| (sight.at_ns, of)))
        .map(|(at_ns, of)| match of {
            TargetNews::List(list) => (at_ns, list.targets.len()),
            news => panic!("{news:?}"),
        })
        .collect();
    assert_eq!(lists, [(2_000_000_000, 1), (5_000_000_000, 4)]);
    let believed = found("None");
    assert_eq!((believed.doubts.len(), believed.sights.len()), (0, 2));
    assert!(believed.sights[0].news.iter().all(|of| matches!(of, TargetNews::Remove(_))), "{believed:?}");
    assert_eq!(believed.sights[0].news.len(), 3);
}

/// They are about the registry, whatever balancers still pick.
#[test]
fn series_count_what_is_listed() {
    let file = |grace: &str| {
        format!(
            "a = find.file(\"a.json\", {SERVERS}, size = 10, grace = {grace})\n\
             scenario(\"s\", lb.p2c(a), traffic.constant(rate = 100), requests = 8000, window = \"all\"{FORGETS})\n"
        )
    };
    for grace in ["0 * s", "5 * minutes"] {
        let series =
            recorded(&plan(&file(grace)), &options(), Selection::Slowest(1)).series.expect("asked for");
        let fleet = &series.fleets[0];
        assert!(fleet.members.iter().all(|n| *n == 10), "{fleet:?}");
        let unlisted = fleet.unlisted.iter().filter(|n| **n == 6).count() as f64;
        assert!((unlisted / fleet.unlisted.len() as f64 - 30.0 / 80.0).abs() < 0.02, "{fleet:?}");
        assert!(fleet.unlisted.iter().all(|n| [0, 6].contains(n)), "{fleet:?}");
    }
}
