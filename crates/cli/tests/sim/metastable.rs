//! A burst that a system never recovers from: exactly where attempts × utilisation exceeds 1, and what is cut off is
//! worked on all the same (Bronson et al. 2021).

use crate::shared::simulated::{figure, options, simulate};
use weir_sim::{Options, ScenarioResult};

/// Twenty single servers, in turn; ten seconds' arrivals within one, five seconds after the start. What is looked at is
/// the middle half of the requests: long after.
fn after_the_burst(load: f64, attempts: u32, on_cancel: &str, seconds: u32) -> ScenarioResult {
    let rate = load * 1000.0;
    let source = format!(
        r#"
servers = pool(20, lambda: queue(delay(dist.exponential(20 * ms), server()), on_cancel = "{on_cancel}"))
entry = retry({attempts}, timeout(500 * ms, lb.round_robin(servers)), on = ["connect_failed", "refused", "reset", "timeout"])
burst = [(0 * s, {rate}), (5 * s, {rate}), (5 * s, {rate} * 10), (6 * s, {rate} * 10), (6 * s, {rate})]
scenario("x", entry, traffic.schedule(burst), duration = {seconds} * s)
"#
    );
    let options = Options { replications: 2, ..options() };
    simulate(&source, &options).remove(0)
}

/// The table 8.3 of the notes: with n attempts and a load ρ, collapse for good exactly where nρ > 1. What recovers
/// takes about nρD/(1 − nρ) for a burst of D = 10 s, 90 s at 0.9: it is given 5 times that.
#[test]
fn collapse_where_attempts_times_load_exceeds_one() {
    for load in [0.3, 0.4, 0.6, 0.8] {
        for attempts in 1..=3 {
            let demand = load * f64::from(attempts);
            let seconds = if demand > 0.85 && demand < 1.0 { 600 } else { 300 };
            let s = after_the_burst(load, attempts, "finish", seconds);
            let (success, tries) = (figure(&s, "success").value, figure(&s, "attempts").value);
            if demand > 1.0 {
                // Nearly nothing comes back in time, all attempts are made.
                assert!(success < 0.02, "{load}, {attempts} attempts: {success} succeed");
                assert!(tries > f64::from(attempts) - 0.05, "{load}, {attempts} attempts: {tries}");
            } else {
                // At 0.8 and one attempt a few never wait less than the limit.
                assert!(success > 0.99, "{load}, {attempts} attempts: {success} succeed");
                assert!(tries < 1.02, "{load}, {attempts} attempts: {tries}");
            }
        }
    }
}

/// Servers that notice that their client has gone recover for any product.
#[test]
fn servers_that_stop_recover() {
    for (on_cancel, recovers) in [("finish", false), ("stop", true), ("skip", true)] {
        let s = after_the_burst(0.6, 3, on_cancel, 120);
        let (success, tries) = (figure(&s, "success").value, figure(&s, "attempts").value);
        assert_eq!(
            success > 0.999 && tries < 1.001,
            recovers,
            "{on_cancel}: {success} succeed, {tries} attempts"
        );
        assert_eq!(
            success < 0.02 && tries > 2.95,
            !recovers,
            "{on_cancel}: {success} succeed, {tries} attempts"
        );
    }
}
