//! Crashes, black holes, branches and attempts: how each request is answered, and where its time counts.

use super::{Case, run_reference};
use weir_model::Traffic;
use weir_policy::Kind;

/// A node that is down from the start to the end.
fn dead(mode: &str, node: &str) -> String {
    format!("faulty(1 * ms, 100000 * hours, {node}, mode = \"{mode}\", starts = \"down\")")
}

/// Parses "latency kind".
fn latency(answer: &str) -> f64 {
    answer.split(' ').next().unwrap().parse().unwrap()
}

/// A process that is killed resets everything inside at one instant; later arrivals find it down.
#[test]
fn a_crash_resets_what_is_inside() {
    let source = r#"
inside = [delay(1 * hours, server()), queue(delay(1 * hours, server()), on_cancel = "finish"), concurrent(1 * hours, on_cancel = "finish"),
          cable(1 * hours, server()), timeout(9 * hours, delay(1 * hours, server())), fanout([delay(1 * hours, server()), delay(2 * hours, server())]),
          retry(2, flaky(1.0, server()), on = ["status_5xx"], backoff = 100 * hours)]
root = faulty(50 * ms, 100000 * hours, lb.round_robin(inside, start = "first"), mode = "crash")
"#;
    let at = [0, 0, 0, 0, 0, 0, 0, 0, 10_000];
    let went = Case::new(&at, source).run();
    let when = latency(&went.answers[0]);
    assert!(when > 0.0 && when < 10_000.0);
    assert_eq!(went.answers[..8], vec![format!("{when} reset"); 8]);
    assert_eq!(went.answers[8], "0 connect_failed");
    assert_eq!(went.errors("faulty", Kind::Reset), 8);
    assert_eq!(went.errors("lb.round_robin", Kind::Reset), 0, "those are cut off in it");
}

/// At the nanosecond of a crash, work that ends has ended, and a request that arrives finds the node down.
#[test]
fn a_crash_comes_after_ends_and_before_arrivals() {
    let case = |work: &str| {
        Case::new(
            &[0, 0],
            &format!("root = faulty(50 * ms, 100000 * hours, delay({work}, server()), mode = \"crash\")"),
        )
    };
    let (seen, _) = run_reference(&case("1 * hours").plan, false, None).unwrap();
    let when = seen.answers[0].2.unwrap();
    for (work, says) in [(when, None), (when + 1, Some(Kind::Reset))] {
        let mut case = case(&format!("{work} * ns"));
        let arrivals_ns = vec![0, when];
        case.plan.points[0].scenarios[0].traffic = Traffic::Trace { file: "t.csv".into(), arrivals_ns };
        let answers = run_reference(&case.plan, false, None).unwrap().0.answers;
        assert_eq!(answers[0], (0, 0, Some(when), says));
        assert_eq!(answers[1], (1, when, Some(0), Some(Kind::ConnectFailed)));
    }
}

/// A crash also kills requests that were left behind, and frees the slots outside of them.
#[test]
fn a_crash_kills_what_nobody_waits_for() {
    let source = r#"
dies = faulty(50 * ms, 1 * us, queue(delay(1 * hours, server()), on_cancel = "finish", name = "inner"), mode = "crash")
root = timeout(5 * ms, queue(dies, on_cancel = "finish", name = "outer"))
"#;
    let went = Case::new(&[0, 10_000], source).gives(&["5 timeout"; 2]);
    let (outer, _) = went.busy_and_waiting("outer", 10_000.0);
    let (inner, _) = went.busy_and_waiting("inner", 10_000.0);
    assert_eq!(outer, inner);
    assert!(outer > 5.0 && outer < 9_000.0, "it was killed: {outer}");
}

/// After each crash a process is cold again: work takes three times, twice, once as long.
#[test]
fn warm_ups_begin_anew() {
    let source = "root = faulty(300 * ms, 1 * us, warmup(delay(10 * ms, server()), 3.0, requests = 2), mode = \"crash\")";
    let at: Vec<u64> = (0..200).map(|i| 50 * i).collect();
    let went = Case::new(&at, source).run();
    let mut colds = 0;
    let mut last = 0.0;
    for answer in went.answers.iter().filter(|a| a.ends_with("ok")) {
        let ms = latency(answer);
        assert!([30.0, 20.0, 10.0].contains(&ms), "{answer}");
        assert!(ms == 30.0 || ms == last - 10.0 || ms == 10.0 && last == 10.0, "{ms} after {last}");
        colds += u32::from(ms == 30.0);
        last = ms;
    }
    assert!(colds > 5, "{colds}");
}

/// A request that a black hole swallows, or a cable loses, is never answered: no latency, one warning. It holds its
/// slot until it is cancelled.
#[test]
fn lost_is_no_latency() {
    let hole = dead("blackhole", "server()");
    for root in [hole.clone(), format!("queue({hole})"), "cable(1 * ms, server(), loss = 1.0)".into()] {
        let went = Case::new(&[0, 1], &format!("root = {root}")).gives(&["lost"; 2]);
        assert_eq!(went.result.latency_all.mean.value, None);
        assert_eq!((went.result.requests.selected, went.result.requests.failed), (2, 2));
        assert!(went.result.warnings.iter().any(|w| w.starts_with("lost: 2 of 2 requests")));
        let went = Case::new(&[0, 11], &format!("root = timeout(10 * ms, {root})")).gives(&["10 timeout"; 2]);
        assert!(!went.result.warnings.iter().any(|w| w.starts_with("lost")));
        Case::with(&[0, 11], &format!("root = {root}"), ", patience = 10 * ms").gives(&["10 cancelled"; 2]);
    }
    let went = Case::new(&[0, 3], &format!("root = timeout(10 * ms, {hole})")).gives(&["10 timeout"; 2]);
    assert_eq!((went.part("faulty"), went.part("timeout")), (10.0, 0.0), "it stood in the hole");
}

/// A crash ends the lost requests inside.
#[test]
fn a_crash_ends_what_is_lost() {
    let hole = dead("blackhole", "server()");
    let went =
        Case::new(&[0, 1], &format!("root = faulty(50 * ms, 100000 * hours, {hole}, mode = \"crash\")"))
            .run();
    assert!(went.answers.iter().all(|a| a.ends_with("reset")), "{:?}", went.answers);
}

/// The other modes do not touch what is inside.
#[test]
fn modes_other_than_crash() {
    for mode in ["refuse", "blackhole", "slow"] {
        let source =
            format!("root = faulty(50 * ms, 100000 * hours, delay(1 * s, server()), mode = \"{mode}\")");
        let late = match mode {
            "refuse" => "0 refused",
            "slow" => "10000 ok",
            _ => "lost",
        };
        Case::new(&[0, 0, 10_000], &source).gives(&["1000 ok", "1000 ok", late]);
    }
    // Work is multiplied; cables and waiting are not.
    let slow = dead("slow", "cable(3 * ms, queue(delay(5 * ms, concurrent(2 * ms))))");
    Case::new(&[0, 0], &format!("root = {slow}")).gives(&["76 ok", "146 ok"]);
    // Only the work behind it, one inside another; a failure behind it leaves it as well.
    let slow = dead("slow", "flaky(1.0, warmup(delay(1 * ms, server()), 3.0, time = 9 * hours))");
    let source = format!(
        "root = retry(2, lb.round_robin([{slow}, delay(1 * ms, server())], start = \"first\"), on = [\"status_5xx\"])"
    );
    Case::new(&[0], &source).gives(&["31 ok"]);
    let source =
        "root = sequence([warmup(delay(1 * ms, server()), 3.0, time = 9 * hours), delay(1 * ms, server())])";
    Case::new(&[0], source).gives(&["4 ok"]);
}

/// A fan-out ends with the branch that decides it: all, the first, the second; an error as soon as too few are left,
/// with the last error. The others are cut off: their queues are free.
#[test]
fn fanouts_end_when_decided() {
    let three = "delay(10 * ms, server(\"a\")), delay(20 * ms, server(\"b\")), delay(30 * ms, server(\"c\"))";
    for (need, says) in [("", "30 ok"), (", need = 1", "10 ok"), (", need = 2", "20 ok")] {
        let went = Case::new(&[0], &format!("root = fanout([{three}]{need}, name = \"f\")")).gives(&[says]);
        let parts: f64 = went.result.nodes.iter().map(|n| n.latency_part_ms.value.unwrap()).sum();
        assert_eq!(parts, latency(says), "along the branch that decided");
        assert_eq!(went.part("f"), 0.0);
    }
    let bad = |ms: u32, kind: &str| format!("flaky(1.0, delay({ms} * ms, server()), kind = \"{kind}\")");
    let source = format!("root = fanout([{}, queue(delay(20 * ms, server()))])", bad(5, "reset"));
    let went = Case::new(&[0, 6], &source).gives(&["5 reset"; 2]);
    assert_eq!(went.busy_and_waiting("queue", 6.0), (5.0, 0.0));
    let source = format!("root = fanout([{}, delay(20 * ms, server())], need = 1)", bad(5, "reset"));
    Case::new(&[0], &source).gives(&["20 ok"]);
    let source = format!("root = fanout([{}, {}], need = 1)", bad(5, "reset"), bad(9, "refused"));
    Case::new(&[0], &source).gives(&["9 refused"]);
    // Two answer at one instant: the first branch decides, and the other's work is done too.
    let source = format!("root = fanout([{}, {}])", bad(5, "reset"), bad(5, "refused"));
    Case::new(&[0], &source).gives(&["5 reset"]);
}

/// One after another, up to the first error; nodes after it are not entered.
#[test]
fn sequences_stop_at_the_first_error() {
    let ok = "root = sequence([delay(10 * ms, server()), delay(20 * ms, server())])";
    Case::new(&[0], ok).gives(&["30 ok"]);
    let bad = r#"
root = sequence([delay(10 * ms, server("a")), flaky(1.0, delay(5 * ms, server("b"))), delay(20 * ms, server("c"))])
"#;
    let went = Case::new(&[0], bad).gives(&["15 status_5xx"]);
    assert_eq!((went.node("b").requests, went.node("c").requests), (1, 0));
    // An error from behind remains what it is.
    let twice = "root = flaky(1.0, flaky(1.0, server(), kind = \"reset\"), kind = \"refused\")";
    Case::new(&[0], twice).gives(&["0 reset"]);
    // Each visit of the same node draws anew.
    let same = "x = delay(dist.exponential(10 * ms), server())\nroot = sequence([x, x])\none = x";
    let both = latency(&Case::new(&[0], same).run().answers[0]);
    let one = latency(&Case::new(&[0], &same.replace("[x, x]", "[x]")).run().answers[0]);
    assert!((both - 2.0 * one).abs() > 1e-6, "{both} is twice {one}");
}

/// Time counts where the request spent it: cut-off time at the node where it was cut off, backoff at its retry, and
/// in a fan-out along the branch that decided.
#[test]
fn time_counts_where_it_was_spent() {
    let source = r#"
inner = queue(delay(50 * ms, server(), name = "second"), name = "line")
root = timeout(25 * ms, sequence([delay(10 * ms, server(), name = "first"), inner]))
"#;
    // The second request waits in line from 11 to 25 ms, and then is inside for a millisecond.
    let went = Case::new(&[0, 1], source).gives(&["25 timeout"; 2]);
    assert_eq!((went.part("first"), went.part("second"), went.part("line")), (10.0, 8.0, 7.0));
    assert_eq!(went.part("timeout"), 0.0);
    let source = r#"
root = timeout(25 * ms, fanout([delay(30 * ms, server(), name = "a"), delay(40 * ms, server(), name = "b")]))
"#;
    let went = Case::new(&[0], source).gives(&["25 timeout"]);
    assert_eq!((went.part("a"), went.part("b")), (25.0, 0.0), "the first branch that was open");
    // Time after the decision counts nowhere, wherever the other branches were.
    let source = r#"
line = queue(delay(40 * ms, server(), name = "b"), on_cancel = "finish")
root = fanout([line, delay(30 * ms, server(), name = "a")], need = 1)
"#;
    let went = Case::new(&[0], source).gives(&["30 ok"]);
    assert_eq!((went.part("a"), went.part("b")), (30.0, 0.0));
    assert_eq!(went.node("b").service_ms.value, Some(40.0));
}

/// Backoffs: attempt k waits up to backoff·2^(k−2), at most `backoff_max` (ten times the backoff by default), and
/// that counts at the retry. The mean of this many uniform draws is known to within four standard deviations.
#[test]
fn backoffs_keep_their_bounds() {
    for (max, tops) in [("", [100.0, 200.0, 400.0]), (", backoff_max = 150 * ms", [100.0, 150.0, 150.0])] {
        let source = format!(
            "root = retry(4, flaky(1.0, delay(10 * ms, server())), on = [\"status_5xx\"], backoff = 100 * ms{max})"
        );
        let at: Vec<u64> = (0..1000).collect();
        let went = Case::new(&at, &source).run();
        let waits: Vec<f64> = went.answers.iter().map(|a| latency(a) - 40.0).collect();
        let most: f64 = tops.iter().sum();
        assert!(waits.iter().all(|w| (0.0..=most + 1e-6).contains(w)));
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let sd = tops.iter().map(|t| t * t / 12.0).sum::<f64>().sqrt() / (waits.len() as f64).sqrt();
        assert!((mean - most / 2.0).abs() < 4.0 * sd, "{mean}, expected {}", most / 2.0);
        assert!((went.part("retry") - mean).abs() < 1e-3);
        assert_eq!(went.part("delay"), 40.0);
        assert_eq!(went.result.attempts_per_request.value, Some(4.0));
    }
}

/// A target to which no connection could be made is passed over by all requests for the configured time, as long as
/// another is left; at the end of that time (which comes before arrivals) it is tried again.
#[test]
fn unreachable_targets_are_passed_over() {
    let down = dead("crash", "server(\"a\")");
    for lb in ["lb.least_conn", "lb.round_robin", "lb.p2c", "lb.random"] {
        let more = match lb {
            "lb.least_conn" => ", ties = \"first\"",
            "lb.round_robin" => ", start = \"first\"",
            _ => "",
        };
        let source = format!("root = {lb}([{down}, delay(5 * ms, server())]{more}, pass_over = 100 * ms)");
        let at: Vec<u64> = (0..60).map(|i| 10 * i).collect();
        let went = Case::new(&at, &source).run();
        // Never twice within 100 ms.
        let failed: Vec<u64> =
            (0..60).filter(|i| went.answers[*i as usize] == "0 connect_failed").map(|i| 10 * i).collect();
        assert!(failed.len() > 2 && failed.windows(2).all(|w| w[1] - w[0] >= 100), "{lb}: {failed:?}");
        if lb == "lb.least_conn" {
            assert_eq!(failed, [0, 100, 200, 300, 400, 500]);
        }
        let alone = format!("root = {lb}([{down}], pass_over = 100 * ms)");
        Case::new(&[0, 10], &alone).gives(&["0 connect_failed"; 2]);
    }
    // A request that returns from its work at that very instant comes before the end of the pass-over.
    let lb =
        format!("lb.least_conn([{down}, delay(5 * ms, server())], ties = \"first\", pass_over = 100 * ms)");
    let source = format!("x = {lb}\nroot = lb.round_robin([x, delay(10 * ms, x)], start = \"first\")");
    Case::new(&[0, 90], &source).gives(&["0 connect_failed", "15 ok"]);
    Case::new(&[0, 91], &source).gives(&["0 connect_failed", "10 connect_failed"]);
    // Without pass-over, a request may still exclude the target for itself.
    let lb = format!("lb.least_conn([{down}, delay(5 * ms, server())], ties = \"first\", pass_over = 0 * s)");
    for (exclude, says) in [("connect_failed", "5 ok"), ("tried", "5 ok"), ("none", "0 connect_failed")] {
        Case::new(&[0, 10], &format!("root = retry(2, {lb}, exclude = \"{exclude}\")")).gives(&[says; 2]);
    }
    let never = format!("root = lb.least_conn([{down}, server()], ties = \"first\", pass_over = 0 * s)");
    Case::new(&[0, 10], &never).gives(&["0 connect_failed"; 2]);
}
