//! What a balancer learns from an error that passes it: which target was reached, and what was answered.

use super::Case;

const DEAD: &str =
    "dead = faulty(1 * ms, 100000 * hours, server(\"dead\"), mode = \"crash\", starts = \"down\")\n";

/// A target to which no connection could be made is passed over; a live router is not, although the only server
/// behind it is dead: the router was reached.
#[test]
fn who_was_reached_is_not_passed_over() {
    let root = |first: &str| {
        format!(
            "{DEAD}root = lb.round_robin([{first}, server(\"well\")], start = \"first\", pass_over = 1 * hours)"
        )
    };
    let at = [0, 1, 2, 3];
    Case::new(&at, &root("dead")).gives(&["0 connect_failed", "0 ok", "0 ok", "0 ok"]);
    let relayed = ["0 connect_failed", "0 ok", "0 connect_failed", "0 ok"];
    Case::new(&at, &root("lb.first([dead], pass_over = 0 * ms)")).gives(&relayed);
    Case::new(&at, &root("timeout(9 * ms, cable(0 * ms, lb.first([dead], pass_over = 0 * ms)))"))
        .gives(&relayed);
    // A failure between two balancers is not an answer of the inner one.
    let between = "flaky(1.0, lb.first([server()]), kind = \"connect_failed\")";
    Case::new(&at, &root(between)).gives(&["0 connect_failed", "0 ok", "0 ok", "0 ok"]);
}

/// Nor does a further attempt exclude it that excludes only targets to which no connection could be made.
#[test]
fn who_was_reached_is_not_excluded() {
    let root = |first: &str| {
        format!(
            "{DEAD}root = retry(2, lb.first([{first}, server(\"well\")], pass_over = 0 * ms), on = [\"connect_failed\"], \
             exclude = \"connect_failed\")"
        )
    };
    Case::new(&[0], &root("dead")).gives(&["0 ok"]);
    Case::new(&[0], &root("lb.first([dead], pass_over = 0 * ms)")).gives(&["0 connect_failed"]);
}

/// A gateway's failure is recognised by its status.
#[test]
fn outliers_are_told_by_status() {
    let root = |status: u16| {
        format!(
            "root = lb.first([respond({status}), server(\"well\")], eject = outlier(consecutive_5xx = 100, \
             consecutive_gateway_failure = 2, enforcing_consecutive_gateway_failure = 100, max_ejection_percent = 100))"
        )
    };
    let failed = "0 status_5xx";
    Case::new(&[0, 1, 2, 3], &root(503)).gives(&[failed, failed, "0 ok", "0 ok"]);
    Case::new(&[0, 1, 2, 3], &root(500)).gives(&[failed; 4]);
}
