//! What a request draws when it comes to a place again.

use super::Case;

fn result(source: &str) -> crate::ScenarioResult {
    Case::from_file(source).run().result
}

/// The draws of a hedge's first attempt are not repeated behind the hedge: the sum of two independent exponentials of
/// 100 ms has the p99 664 ms, one of them doubled 921 ms.
#[test]
fn a_hedge_remembers_what_its_attempt_has_visited() {
    let file = |hedged: &str| {
        format!(
            "d = delay(dist.exponential(100 * ms), server(\"s\"))\n\
             scenario(\"s\", sequence([{hedged}, d]), traffic.constant(every = 1 * s), requests = 12000, window = \"all\")\n"
        )
    };
    for hedged in ["hedge(10 * hours, d)", "hedge(10 * hours, timeout(9 * hours, hedge(10 * hours, d)))"] {
        let p99 = result(&file(hedged)).latency_all.p99.value.unwrap();
        assert!((p99 - 664.0).abs() < 35.0, "{p99}");
    }
}

/// When a further attempt wins while the first is still open, the draws of the first are not repeated either.
#[test]
fn a_hedge_remembers_what_it_cut_off() {
    let source = "d = delay(dist.exponential(100 * ms), server(\"s\"))\n\
        scenario(\"s\", sequence([hedge(50 * ms, d), d]), traffic.constant(every = 1 * s), requests = 12000, window = \"all\")\n";
    // 50 ms more often than not, then the lesser of two, and behind it an independent whole one.
    let mean = result(source).latency_all.mean.value.unwrap();
    let longer_than_50 = 0.606_530_66; // e^-0.5
    let hedged = 100.0 * (1.0 - longer_than_50) + 50.0 * longer_than_50;
    assert!((mean - hedged - 100.0).abs() < 4.0, "{mean}");
    let p99 = result(source).latency_all.p99.value.unwrap();
    // For large t: exp(-t / 100) of 2.5, so 1 in 100 at 552 ms.
    assert!((p99 - 552.0).abs() < 25.0, "{p99}");
}

/// A helper with a hedge is called twice: each call is decided independently, and both succeed with 0.75².
#[test]
fn hedges_in_a_row_are_independent() {
    let source = "def h():\n    return hedge(1 * ms, flaky(0.5, delay(2 * ms, server())), attempts = 2)\n\
        scenario(\"s\", sequence([h(), h()]), traffic.constant(every = 1 * s), requests = 6000, window = \"all\")\n";
    let success = result(source).success.value.unwrap();
    assert!((success - 0.5625).abs() < 0.02, "{success}");
}

/// A balancer, a split and a retry choose anew each time a request comes to them.
#[test]
fn who_comes_again_chooses_again() {
    let file = |node: &str| {
        format!(
            "x = {node}\nscenario(\"s\", sequence([x, x, x]), traffic.constant(every = 1 * s), requests = 12000, window = \"all\")\n"
        )
    };
    let two = "[delay(1 * ms, server()), delay(101 * ms, server())]";
    for node in [
        format!("lb.random({two})"),
        format!("lb.p2c({two}, choices = 1)"),
        "split([(1, delay(1 * ms, server())), (1, delay(101 * ms, server()))])".to_owned(),
    ] {
        let latency = result(&file(&node)).latency_all;
        // If all three choices were the same they would take 3 or 303 ms, half of the time each.
        assert!((latency.p50.value.unwrap() - 153.0).abs() < 52.0, "{node}: {latency:?}");
        assert!((latency.mean.value.unwrap() - 153.0).abs() < 4.0, "{node}: {latency:?}");
    }
    let retried = "retry(2, lb.round_robin([respond(503), server()], start = \"first\"), on = [\"status_5xx\"], backoff = 100 * ms)";
    // Three backoffs, uniform up to 100 ms: their p99 is 2.7 of them, where the same one thrice would be 2.97.
    let p99 = result(&file(retried)).latency_all.p99.value.unwrap();
    assert!(p99 < 285.0, "{p99}");
}
