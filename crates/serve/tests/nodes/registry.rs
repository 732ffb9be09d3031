//! Each kind of node and each policy has a test: a new one does not compile here without. On which transports:
//! `everywhere.rs`.

use crate::{attempts, balance, buffered, choose, faults, fixed, limits, models, queues, rewrite, zuul};
use weir_plan::Spec;
use weir_policy::config::Balance;

/// The test of a kind of node.
fn of_spec(spec: &Spec) -> fn() {
    match spec {
        Spec::Server { .. } => fixed::built_in_servers_say_their_name,
        Spec::Listen(_) => fixed::several_listeners_share_nodes,
        Spec::Respond { .. } => fixed::respond_answers_as_it_is_told,
        Spec::Redirect { .. } => fixed::redirect_fills_its_template,
        Spec::Rewrite(_) => rewrite::requests_change_on_their_way,
        Spec::Buffered { .. } => buffered::a_request_is_taken_whole_first,
        Spec::Delay { .. } => models::delays_are_true,
        Spec::Cable { .. } => models::a_cable_is_crossed_twice,
        Spec::Queue { .. } => queues::a_queue_is_the_processs,
        Spec::Timeout { .. } => limits::timeout_is_504_and_cancels,
        Spec::Concurrent { .. } => models::concurrent_shares_its_cores,
        Spec::Warmup(_) => faults::warmup_is_slow_at_first,
        Spec::Gate(_) => faults::a_gate_answers_checks_alone,
        Spec::Flaky { .. } => faults::flaky_fails_after_the_work,
        Spec::Sequence => models::sequence_is_one_after_another,
        Spec::Fanout { .. } => models::fanout_waits_for_as_many_as_it_needs,
        Spec::Weight { .. } => balance::random_is_even_and_by_weight,
        Spec::Route { .. } => choose::the_first_rule_that_matches_decides,
        Spec::Split { .. } => choose::split_has_shares,
        Spec::Rate { .. } => limits::rate_is_429_with_retry_after,
        Spec::Hedge(_) => attempts::hedge_wins_and_cancels_the_loser,
        Spec::Retry(_) => attempts::retry_leaves_out_who_was_tried,
        Spec::Faulty(_) => faults::faulty_by_its_modes,
        Spec::Lb(lb) => of_policy(&lb.balance),
        Spec::Fleet(_) => fixed::a_fleet_alone_is_built_in_servers,
        // Only a simulation has it.
        Spec::Connection(_) => fixed::built_in_servers_say_their_name,
    }
}

/// The test of a policy.
fn of_policy(balance: &Balance) -> fn() {
    match balance {
        Balance::Random => balance::random_is_even_and_by_weight,
        Balance::RoundRobin(_) => balance::round_robin_goes_round,
        Balance::LeastConn(_) => balance::least_conn_takes_the_least_busy,
        Balance::P2c(_) => balance::p2c_is_even_when_idle,
        Balance::PeakEwma(_) | Balance::Prequal(_) => balance::peak_ewma_and_prequal_avoid_who_is_slow,
        Balance::Zuul(_) => zuul::all_forms_of_a_load_are_read,
        Balance::RingHash(_) | Balance::Maglev(_) => balance::hashes_stick_to_their_keys,
        Balance::First => balance::first_is_a_hot_spare,
        Balance::LeastWork => balance::least_work_answers_in_a_model,
    }
}

/// The matches above have no wildcard: that they compile is the test. Here is that they are used.
#[test]
fn kinds_have_tests() {
    let point = crate::common::point("listen(\"127.0.0.1:0\", lb.random([server(\"a\")]))");
    assert!(point.specs.iter().map(of_spec).count() >= 3);
}
