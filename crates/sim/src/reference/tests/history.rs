//! Histories: in any topology, the stages that count add up to the latency without a gap.

use super::random::random_plan;
use super::{Case, engine, options, plan};
use crate::record::{History, Selection};
use crate::results::rerun::RecordOptions;
use crate::results::rerun::{Recording, record};
use crate::results::run::{Options, run_with};
use crate::results::threads::Observer;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;
use weir_policy::history::StageKind;
use weir_policy::{Kind, TargetId};

pub(super) fn recorded<'p>(plan: &'p Plan, options: &Options, trace: Selection) -> Recording<'p> {
    let looks = RecordOptions { trace: Some(trace), explain: true };
    record(plan, options, &looks, &Observer::new(&|_, _| {}, &AtomicBool::new(false)))
        .unwrap()
        .unwrap()
        .remove(0)
}

/// Each stage that counts begins where the previous one ended, from the arrival to the answer.
fn check(of: &History, source: &str) {
    let counting = of.stages.iter().filter(|stage| stage.counts);
    let mut at = 0;
    for stage in counting {
        assert_eq!(stage.from_ns, at, "{of:?}\n{source}");
        assert!(stage.what != StageKind::Hold && stage.to_ns >= at, "{of:?}\n{source}");
        at = stage.to_ns;
    }
    match of.latency_ns {
        Some(latency) => assert_eq!(at, latency, "{of:?}\n{source}"),
        None => assert_eq!((at, of.outcome), (0, Some(Kind::Lost)), "{of:?}\n{source}"),
    }
}

/// All requests of any topology: the stages that count add up to the latency of each, and by site to the engine's
/// figures.
#[test]
fn stages_that_count_add_up_to_the_latency() {
    let random = (0..400).map(random_plan).chain((0..400).map(|seed| {
        let source = engine::file(seed);
        (plan(&source), source)
    }));
    let mut seen = BTreeMap::new();
    for (plan, source) in random {
        let options = options();
        let Ok(results) = run_with(&plan, &options, &|_, _| {}, &AtomicBool::new(false), true) else {
            continue;
        };
        let found = recorded(&plan, &options, Selection::All);
        let scenario = &results.scenarios[0];
        assert_eq!(found.histories.len() as u64, scenario.requests.total, "{source}");
        let (mut sum, mut answered, mut parts) = (0u64, 0u64, BTreeMap::new());
        for of in &found.histories {
            check(of, &source);
            of.stages.iter().for_each(|stage| *seen.entry((stage.what, stage.counts)).or_insert(0) += 1);
            let Some(latency) = of.latency_ns.filter(|_| of.selected) else { continue };
            (sum, answered) = (sum + latency, answered + 1);
            for stage in of.stages.iter().filter(|stage| stage.counts) {
                let site = found.point.nodes[stage.node as usize].site;
                *parts.entry(&found.point.sites[site as usize].label).or_insert(0) +=
                    stage.to_ns - stage.from_ns;
            }
        }
        let longest = found.histories.iter().filter(|of| of.selected).filter_map(|of| of.latency_ns).max();
        let max = scenario.latency_all.max;
        assert_eq!(longest.map(|ns| ns as f64 / 1e6), max.filter(|_| answered > 0), "{source}");
        for node in &scenario.nodes {
            let all: u64 = *parts.get(&node.place).unwrap_or(&0);
            let said = node.latency_part_ms.value.unwrap_or(0.0) * answered as f64 * 1e6;
            assert!(
                (said - all as f64).abs() <= 1e-12 * sum as f64,
                "{}: {all} {said}\n{source}",
                node.place
            );
        }
    }
    for what in [StageKind::Wait, StageKind::Work, StageKind::Cross, StageKind::Backoff, StageKind::Answer] {
        for counts in [true, false] {
            assert!(seen.get(&(what, counts)).is_some_and(|n| *n > 20), "{what:?} {counts}: {seen:?}");
        }
    }
    assert!(seen.get(&(StageKind::Hold, false)).is_some_and(|n| *n > 20), "{seen:?}");
}

/// Any number of threads and any selection give the same histories.
#[test]
fn a_selection_is_of_all_histories() {
    let (plan, _) = random_plan(3);
    let of = |threads, trace| {
        let options = Options { replications: 3, threads, ..options() };
        recorded(&plan, &options, trace).histories
    };
    let all = of(1, Selection::All);
    assert_eq!(all, of(3, Selection::All));
    let mut slowest: Vec<&History> = all.iter().filter(|h| h.selected).collect();
    slowest.sort_by_key(|h| (std::cmp::Reverse(h.latency_ns), h.replication, h.request));
    slowest.truncate(7);
    assert_eq!(slowest, of(2, Selection::Slowest(7)).iter().collect::<Vec<_>>());
    let these: Vec<&History> = all.iter().filter(|h| [3, 80].contains(&h.request)).collect();
    assert_eq!(these, of(2, Selection::These(vec![80, 3])).iter().collect::<Vec<_>>());
    let sample = of(2, Selection::Sample(0.2));
    assert!((all.len() / 10..all.len() / 3).contains(&sample.len()), "{}", sample.len());
    assert!(sample.iter().all(|h| all.contains(h)));
}

/// A case worked out by hand: waits, work, and targets.
#[test]
fn a_history_says_what_happened() {
    let case = Case::with(
        &[0, 1, 1],
        "root = cable(1 * ms, retry(2, lb.first([timeout(5 * ms, queue(delay(4 * ms, server(\"a\"))))]), backoff = 2 * ms, on = [\"timeout\"]))",
        "",
    );
    let found = recorded(&case.plan, &options(), Selection::All);
    let told = |request: usize| {
        let of = &found.histories[request];
        let stages = of.stages.iter().map(|s| {
            let site = &found.point.sites[found.point.nodes[s.node as usize].site as usize];
            let kind = &found.point.places[site.place as usize].kind;
            format!("{} {}..{} {kind} {}", s.what.name(), s.from_ns / 1000, s.to_ns / 1000, s.attempt)
        });
        stages.collect::<Vec<_>>()
    };
    check(&found.histories[0], "");
    let all = told(1);
    assert_eq!(found.histories[0].latency_ns, Some(6_000_000), "{:?}", told(0));
    assert!(told(0)[0].starts_with("cross 0..1000 cable"), "{:?}", told(0));
    assert!(all.iter().any(|s| s.starts_with("wait 1000..4000 queue") && s.ends_with(" 1")), "{all:?}");
    assert!(all.iter().any(|s| s.starts_with("work 4000..6000 delay") && s.ends_with(" 1")), "{all:?}");
    assert!(all.iter().any(|s| s.starts_with("answer 6000..6000 timeout")), "{all:?}");
    assert!(all.iter().any(|s| s.starts_with("backoff 6000..") && s.ends_with(" 2")), "{all:?}");
    let answered = found.histories[1].stages.iter().rev().find(|s| s.what == StageKind::Work).unwrap();
    assert_eq!((answered.target.map(|t| t.1), answered.attempt), (Some(TargetId(0)), 2));
}

/// Typical requests: the parts add up to the latency near the quantile. Series: they contain every arrival.
#[test]
fn typical_requests_and_series_add_up() {
    let source = r#"
dyno = lambda: queue(delay(dist.exponential(8 * ms), server()))
scenario("s", cable(1 * ms, lb.random(pool(3, dyno))), traffic.poisson(every = 4 * ms), requests = 4000, window = "all")
"#;
    let plan = plan(source);
    let found = recorded(&plan, &options(), Selection::Slowest(1));
    let qs: Vec<f64> = found.typical.iter().map(|t| t.q).collect();
    assert_eq!(qs, [0.5, 0.9, 0.95, 0.99]);
    for typical in &found.typical {
        let sum: f64 = typical.parts.iter().map(|part| part.ms).sum();
        assert!((sum / typical.ms - 1.0).abs() < 1e-9, "{typical:?}");
        assert!((typical.parts.iter().map(|part| part.share).sum::<f64>() - 1.0).abs() < 1e-9);
    }
    let p99 = &found.typical[3];
    assert!(p99.parts[0].what == StageKind::Wait && p99.parts[0].share > 0.4, "{p99:?}");
    let results = run_with(&plan, &options(), &|_, _| {}, &AtomicBool::new(false), true).unwrap();
    let said = results.scenarios[0].latency_all.p99.value.unwrap();
    assert!((p99.ms / said - 1.0).abs() < 0.05, "{} {said}", p99.ms);
    let series = found.series.as_ref().unwrap();
    assert!((100..=200).contains(&series.arrivals.len()), "{}", series.arrivals.len());
    assert_eq!(series.arrivals.iter().sum::<u64>(), 4000);
    assert_eq!(series.responses.iter().sum::<u64>(), 4000);
    let (busy, of): (f64, f64) = (series.queues[0].busy.iter().sum(), series.queues[0].busy.len() as f64);
    assert!((busy / of - 2.0).abs() < 0.2 && series.queues[0].count == 3, "{busy} {of}");
}

/// A target that always fails is ejected for good here; one that is down for half of the time fails its checks then.
#[test]
fn what_balancers_leave_out_is_in_the_series() {
    let source = r#"
bad = [flaky(1.0, server(), kind = "status_5xx")] + pool(3, server)
ejecting = lb.round_robin(bad, eject = eject(consecutive = 5, base = 300 * s), name = "ejecting")
dark = [faulty(dist.fixed(4 * s), dist.fixed(4 * s), server(), mode = "blackhole")] + pool(3, server)
checking = lb.round_robin(dark, health = health.tcp(interval = 100 * ms, timeout = 50 * ms, fall = 1, rise = 1), name = "checking")
scenario("s", lb.random([ejecting, checking]), traffic.poisson(every = 4 * ms), requests = 4000, window = "all")
"#;
    let plan = plan(source);
    let found = recorded(&plan, &options(), Selection::Slowest(1));
    let pools = found.series.unwrap().pools;
    let of = |name: &str| pools.iter().find(|pool| pool.place.contains(name)).unwrap();
    let parts = |counts: &[u64]| counts.iter().filter(|n| **n == 1).count() as f64 / counts.len() as f64;
    let (ejecting, checking) = (of("ejecting"), of("checking"));
    assert_eq!((ejecting.count, checking.count), (4, 4));
    assert!(parts(&ejecting.ejected) > 0.97 && parts(&ejecting.down) == 0.0, "{ejecting:?}");
    let down = parts(&checking.down);
    assert!((0.3..0.8).contains(&down) && parts(&checking.ejected) == 0.0, "{checking:?}");
}

/// Without chance every figure of every part is known: an answer each millisecond, half a millisecond after its
/// request.
#[test]
fn a_series_of_equal_requests_is_level_until_the_end() {
    let source = r#"
scenario("s", queue(delay(500 * us, server())), traffic.constant(every = 1 * ms), requests = 4096, window = "all")
"#;
    let plan = plan(source);
    let series = recorded(&plan, &options(), Selection::Slowest(1)).series.unwrap();
    let parts = series.arrivals.len();
    assert_eq!(series.end_ns, 4_096_500_000, "the last answer");
    assert_eq!((series.ends_ns().last(), series.ends_ns().count()), (Some(series.end_ns), parts));
    assert_eq!(series.latency_all, series.latency_ok);
    assert!(series.latency_all.p50.iter().all(|ms| *ms == Some(0.5)), "{series:?}");
    // Parts of some thirty requests.
    assert!(series.latency_all.p95.iter().all(|ms| *ms == Some(0.5)), "{series:?}");
    assert!(series.latency_all.p99.iter().all(Option::is_none));
    assert_eq!((series.good.iter().sum::<u64>(), series.failures.len(), series.marks.len()), (4096, 0, 0));
    assert_eq!(series.good, series.responses);
    let mut from = 0;
    for (to, (arrived, good)) in series.ends_ns().zip(series.arrivals.iter().zip(&series.good)) {
        let ns = to - std::mem::replace(&mut from, to);
        assert!(ns * 2 >= series.part_ns && ns * 2 <= series.part_ns * 3, "{ns} of {}", series.part_ns);
        let expected = ns as f64 / 1e6;
        assert!((*arrived as f64 - expected).abs() <= 1.0 && (*good as f64 - expected).abs() <= 1.0);
    }
}

/// A zone that is black from 2 to 3 seconds: what goes there then fails after 100 ms, and nothing else does.
#[test]
fn a_fixed_outage_is_in_the_series_where_it_was() {
    let source = r#"
zone = lambda: pool(5, lambda: delay(1 * ms, server()))
dark = block(dist.fixed(2 * s), dist.fixed(1 * s), zone(), mode = "blackhole")
slow = faulty(dist.fixed(1 * s), dist.fixed(9 * s), delay(1 * ms, server()), mode = "slow", slow = 3)
both = timeout(100 * ms, lb.round_robin(dark + zone()))
scenario("s", lb.round_robin([both, slow]), traffic.constant(every = 1 * ms), requests = 4500, window = "all", deadline = 2 * ms)
"#;
    let plan = plan(source);
    let series = recorded(&plan, &options(), Selection::Slowest(1)).series.unwrap();
    let told: Vec<_> =
        series.marks.iter().map(|m| (m.what, m.from_ns, m.to_ns, m.members, m.count)).collect();
    let s = 1_000_000_000;
    assert_eq!(told, [("slow", s, series.end_ns, 1, 1), ("blackhole", 2 * s, 3 * s, 5, 5)]);
    // A quarter of the requests of that second, 100 ms later.
    let [(Kind::Timeout, failed)] = &series.failures[..] else { panic!("{:?}", series.failures) };
    assert_eq!(failed.iter().sum::<u64>(), 250);
    let ends: Vec<u64> = series.ends_ns().collect();
    let part = series.part_ns;
    for ((end, failed), p95) in ends.iter().zip(failed).zip(&series.latency_all.p95) {
        let is_dark = *end > 2_100_000_000 + part && *end <= 3_100_000_000;
        let is_light = *end <= 2_100_000_000 || *end > 3_100_000_000 + part;
        assert!(if is_dark { *failed > 0 } else { !is_light || *failed == 0 }, "{end}: {failed}");
        let p95 = p95.unwrap();
        assert!(if is_dark { (p95 - 100.0).abs() < 0.8 } else { !is_light || p95 <= 3.0 }, "{end}: {p95}");
    }
    // From one second on, half of the answers take 3 ms, which is too late.
    let good: u64 = series.good.iter().sum();
    assert!((500 + 500 + 1750 - 250 - 5..=500 + 500 + 1750 - 250 + 5).contains(&good), "{good}");
    assert!(series.latency_ok.p95.iter().flatten().all(|ms| *ms <= 3.0), "{:?}", series.latency_ok);
}

/// A request that is never answered: the run ends with its last answer, whatever fails and is repaired after that.
#[test]
fn a_series_ends_where_the_run_ends() {
    let source = r#"
dark = faulty(dist.fixed(1 * s), dist.fixed(1 * s), delay(1 * ms, server()), mode = "blackhole")
scenario("s", dark, traffic.constant(every = 10 * ms), requests = 150, window = "all")
"#;
    let plan = plan(source);
    let series = recorded(&plan, &options(), Selection::Slowest(1)).series.unwrap();
    let lost: u64 = series.failures.iter().map(|(_, counts)| counts.iter().sum::<u64>()).sum();
    assert_eq!((series.failures[0].0, lost), (Kind::Lost, 51));
    assert_eq!((series.arrivals.iter().sum::<u64>(), series.responses.iter().sum::<u64>()), (150, 150));
    assert_eq!(series.end_ns, 1_500_000_000, "the last arrival");
    assert_eq!(series.ends_ns().last(), Some(series.end_ns));
    assert_eq!(series.marks.last().map(|m| (m.from_ns, m.to_ns)), Some((1_000_000_000, 1_500_000_000)));
}
