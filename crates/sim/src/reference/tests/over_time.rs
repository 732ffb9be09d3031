//! Parts of a run to the number, in cases worked out by hand; both engines give the same.

use super::{Case, options, plan};
use crate::results::over_time::OverTime;
use crate::results::run::{Options, run_with};
use std::sync::atomic::AtomicBool;
use weir_policy::Kind;

fn told(source: &str) -> OverTime {
    Case::from_file(source).run().result.over_time.expect("it has `every`")
}

/// Requests at 1, 2, ... 3,000 ms, each served in 5 ms.
#[test]
fn constant_arrivals_are_known_to_the_number() {
    let of = told(
        "scenario(\"s\", delay(5 * ms, server()), traffic.constant(every = 1 * ms), duration = 3 * s, every = 1 * s)\n",
    );
    assert_eq!(of.arrivals_per_s, [999.0, 1_000.0, 1_001.0]);
    assert_eq!(of.ok, of.arrivals_per_s);
    assert_eq!(of.responses_per_s, [994.0, 1_000.0, 1_001.0], "what is served after the end is in no part");
    // The last five of the first part are inside for 0 to 4 ms of it, and nothing is when it begins.
    assert_eq!(of.in_flight, [(994.0 * 5.0 + 15.0) / 1e3, 5.0, 5.0]);
    let [p50, p95, p99, p999, max] = &of.latency_ms;
    assert_eq!((p50, p95), (&vec![Some(5.0); 3], &vec![Some(5.0); 3]));
    assert_eq!(*p99, [None, Some(5.0), Some(5.0)], "999 requests are too few");
    assert_eq!((p999, max), (&vec![None; 3], &vec![Some(5.0); 3]));
    assert_eq!(of.peak.map(|e| e.value), [Some(5.0), Some(5.0), Some(5.0), None, Some(5.0)]);
    assert!(of.errors.is_empty() && of.connections.is_none() && of.watched.is_empty() && of.acts.is_empty());
}

/// A node that is slow in the second second, and refuses in the third.
#[test]
fn an_outage_is_in_the_parts_in_which_its_requests_arrived() {
    let of = told(
        r#"
slow = faulty(dist.fixed(1 * s), dist.fixed(1 * s), delay(2 * ms, server()), mode = "slow", slow = 450)
dead = faulty(dist.fixed(2 * s), dist.fixed(1 * s), slow, mode = "refuse")
scenario("s", dead, traffic.constant(every = 1 * ms), duration = 4 * s, window = "all", every = 1 * s)
"#,
    );
    // A fault flips before what happens at its instant.
    assert_eq!(of.ok, [999.0, 1_000.0, 0.0, 1_001.0]);
    let [(Kind::Refused, refused)] = &of.errors[..] else { panic!("{:?}", of.errors) };
    assert_eq!(*refused, [0.0, 0.0, 1_000.0, 0.0]);
    let [.., max] = &of.latency_ms;
    assert_eq!(max[..3], [Some(2.0), Some(900.0), Some(0.0)]);
    assert_eq!(of.latency_ms[0][..3], [Some(2.0), Some(900.0), Some(0.0)]);
    // Those that arrived in the second before are answered 0.9 s later.
    assert_eq!(of.responses_per_s[..2], [997.0, 102.0]);
    assert_eq!(of.responses_per_s[2], 1_900.0);
}

/// Without a duration the parts end with the last arrival, and what is lost is an error that stays in flight.
#[test]
fn requests_that_are_lost_have_no_latency() {
    let of = told(
        r#"
dark = faulty(dist.fixed(1 * s), dist.fixed(9 * s), delay(1 * ms, server()), mode = "blackhole")
scenario("s", dark, traffic.constant(every = 10 * ms), requests = 150, window = "all", every = 1 * s)
"#,
    );
    assert_eq!(of.arrivals_per_s, [99.0, 102.0], "51 in the last half second");
    assert_eq!(of.errors, [(Kind::Lost, vec![0.0, 102.0])]);
    assert_eq!((of.ok[1], of.latency_ms[4][1], of.responses_per_s[1]), (0.0, None, 0.0));
    // One more is inside after each 10 ms.
    let inside: f64 = (0..51).map(|n| 0.5 - 0.01 * f64::from(n)).sum();
    assert!((of.in_flight[1] - inside / 0.5).abs() < 1e-9, "{:?}", of.in_flight);
}

/// A window between two instants counts what arrives in it, whatever happens before and after.
#[test]
fn a_window_between_two_instants_is_half_open() {
    let counted = |traffic: &str, window: &str| {
        let source = format!(
            "scenario(\"s\", delay(5 * ms, server()), {traffic}, duration = 1 * s, window = {window})\n"
        );
        Case::from_file(&source).run().result
    };
    let of = counted("traffic.constant(every = 10 * ms)", "(100 * ms, 200 * ms)");
    assert_eq!((of.requests.selected, of.requests.total), (10, 100));
    let of = counted("traffic.constant(every = 10 * ms)", "(0 * s, 10 * s)");
    assert_eq!((of.requests.selected, of.warnings.len()), (100, 0), "{:?}", of.warnings);
    let of = counted("traffic.closed(1, 5 * ms)", "(100 * ms, 200 * ms)");
    assert_eq!(of.requests.selected, 10, "one is sent each 10 ms, at 5, 15, ...");
    for traffic in ["traffic.constant(every = 10 * ms)", "traffic.closed(1, 5 * ms)"] {
        for window in ["(0 * s, 5 * ms)", "(101 * ms, 104 * ms)", "(2 * s, 3 * s)"] {
            let of = counted(traffic, window);
            assert_eq!(of.requests.selected, 0, "{traffic} {window}");
            assert_eq!((of.latency_all.mean.value, of.request_rate_per_s.value), (None, None));
            assert!(of.warnings.iter().any(|w| w.starts_with("nothing selected")), "{:?}", of.warnings);
        }
    }
}

/// Pooled quantiles, and the mean of the replications' peaks; threads and shards change nothing.
#[test]
fn replications_are_pooled_and_their_peaks_averaged() {
    let source = "scenario(\"s\", queue(delay(dist.exponential(2 * ms), server())), traffic.poisson(every = 4 * ms), duration = 4 * s, window = \"all\", every = 1 * s)\n";
    let plan = plan(source);
    let run = |threads, replications| {
        let options = Options { threads, replications, ..options() };
        let results = run_with(&plan, &options, &|_, _| {}, &AtomicBool::new(false), true).unwrap();
        results.scenarios.into_iter().next().unwrap()
    };
    let (one, all) = (run(1, 1), run(2, 8));
    let of = |s: &crate::ScenarioResult| s.over_time.clone().unwrap();
    let (one, pooled) = (of(&one), of(&all));
    assert_eq!(one.latency_ms[2], [None; 4], "250 requests are too few for p99");
    assert!(pooled.latency_ms[2].iter().all(Option::is_some), "2,000 are not");
    assert_eq!(pooled.peak[2].value, None, "in each replication it stays unknown");
    let mean = pooled.arrivals_per_s.iter().sum::<f64>() / 4.0;
    let all_requests = all.requests.total as f64 / 8.0 / 4.0;
    assert!((mean - all_requests).abs() < 1e-9, "{mean} {all_requests}");
    let most = pooled.latency_ms[4].iter().flatten().copied().fold(0.0, f64::max);
    assert_eq!(Some(most), all.latency_all.max, "all requests count");
    let peak = pooled.peak[4];
    assert!(peak.value.unwrap() < most && peak.low.unwrap() < peak.value.unwrap());
    assert_eq!(run(1, 8).over_time, run(2, 8).over_time);
}

/// A fleet of four under round robin: a fifth joins at 2.3 s and has its share at once, so the first of two parts in a row is
/// that which begins at 3 s, and it is seen 200 ms later than it is listed.
#[test]
fn a_newcomer_is_watched_beside_the_others() {
    let of = told(
        r#"
apps = fleet(4, lambda: delay(10 * ms, server(name = "app")), lag = 200 * ms)
scenario("s", lb.round_robin(apps), traffic.constant(every = 1 * ms), duration = 6 * s, window = "all", every = 1 * s,
         events = [change.join(apps, at = 2300 * ms, k = 1), change.leave(apps, at = 4 * s, k = 1)])
expect("s", node = "app", regained = "<2s")
"#,
    );
    let acts: Vec<_> = of.acts.iter().map(|act| (act.at_ns / 1_000_000, act.what, act.change)).collect();
    let wanted = [
        (2_300, "runs", 0),
        (2_300, "listed", 0),
        (2_500, "seen", 0),
        (2_500, "eligible", 0),
        (4_000, "unlisted", 1),
        (4_000, "stops", 1),
        (4_200, "seen", 1),
    ];
    assert_eq!(acts, wanted);
    let [oldest, newcomer] = &of.watched[..] else { panic!("{:?}", of.watched) };
    assert_eq!(newcomer.process, ["none", "none", "runs", "runs", "runs", "runs"]);
    assert_eq!(newcomer.share, [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(newcomer.requests_per_s[..2], [0.0, 0.0]);
    let near = |got: f64, want: f64| (got - want).abs() <= 1.0;
    assert!(
        near(newcomer.requests_per_s[2], 100.0) && near(newcomer.requests_per_s[3], 200.0),
        "{newcomer:?}"
    );
    assert!((newcomer.in_flight[3] - 2.0).abs() < 0.02, "200 requests per second for 10 ms");
    assert_eq!(oldest.process, ["runs", "runs", "runs", "runs", "stops", "stops"]);
    assert_eq!(oldest.share, [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
    assert!(near(of.others.requests_per_s[3], 200.0) && near(of.others.requests_per_s[5], 250.0), "{of:?}");
    let regained = of.regained[0].value.value.unwrap();
    assert!((regained - 1.7).abs() < 1e-9, "{regained}");
}
