//! The tests of nodes and policies on every transport. Each says for itself where HTTP/2 has no word for what it does.

use crate::common::transport::{Transport, with_transport};
use crate::{
    attempts, balance, buffered, cancel, choose, faults, fixed, layers, limits, models, queues, rewrite, zuul,
};

/// A test, with its name.
type Test = (&'static str, fn());

/// Modules with their tests, and the source of each to see that none is left out.
macro_rules! tests {
    ($($module:ident: $($test:ident)*;)*) => {
        const TESTS: &[Test] = &[$($((concat!(stringify!($module), "::", stringify!($test)), $module::$test),)*)*];
        const SOURCES: &[(&str, &str)] = &[$((stringify!($module), include_str!(concat!(stringify!($module), ".rs"))),)*];
    };
}

tests! {
    attempts: retry_leaves_out_who_was_tried retry_of_statuses a_hedge_counts_its_losers retry_waits_and_pays retry_of_what_built_in_servers_say retry_with_the_same_work hedge_wins_and_cancels_the_loser hedge_starts_at_once_when_one_fails hedge_waits_for_the_body a_small_replay_is_kept_to;
    balance: round_robin_goes_round random_is_even_and_by_weight p2c_is_even_when_idle least_conn_takes_the_least_busy an_error_is_held_against_a_target peak_ewma_and_prequal_avoid_who_is_slow the_owner_measures_with_a_clock_of_now prequal_forgets_who_was_cancelled hashes_stick_to_their_keys a_bound_moves_the_surplus first_is_a_hot_spare who_was_reached_is_not_passed_over without_a_target_there_is_the_spare_or_503 eject_takes_a_failing_target_out a_timeout_around_ejects sticky_clients_return least_work_answers_in_a_model;
    buffered: a_request_is_taken_whole_first a_large_request_goes_on_streaming a_slow_client_holds_no_server exactly_so_many_bytes_are_waited_for;
    cancel: stop_frees_the_slot_at_once skip_goes_on_inside finish_goes_on_waiting_too half_a_request_never_goes_on a_timeout_outside_leaves_what_goes_on a_body_is_drained a_timeout_in_the_body_leaves_what_goes_on a_crash_ends_what_goes_on;
    choose: the_first_rule_that_matches_decides no_rule_is_404_and_two_meanings_are_400 split_has_shares split_by_key_keeps_its_clients what_goes_no_further_decides_nothing what_connection_names_decides_nothing;
    faults: faulty_by_its_modes a_pause_stops_what_is_inside a_pause_keeps_the_order a_crash_resets_what_is_inside a_lazy_crash_resets_what_is_inside a_crash_breaks_a_body a_block_fails_together flaky_fails_after_the_work warmup_is_slow_at_first warmup_begins_anew_after_a_crash a_gate_answers_checks_alone;
    fixed: respond_answers_as_it_is_told redirect_fills_its_template built_in_servers_say_their_name a_model_without_an_end_of_its_own_answers_for_its_server several_listeners_share_nodes a_refusal_without_upgrade_keeps_its_protocols a_redirect_lacks_no_part built_in_servers_take_what_comes_to_them a_fleet_alone_is_built_in_servers;
    layers: two_layers_are_two_hops what_fails_behind_is_an_answer answers_of_an_inner_listener_eject_it forwarded_fields_of_the_own_process_are_believed the_client_is_known_behind many_routers_with_loops_of_their_own listeners_are_checked models_before_a_listener_act inner_listeners_drain_last a_broken_body_stays_broken;
    limits: rate_is_429_with_retry_after rate_has_a_bucket_per_key rate_is_the_processs timeout_is_504_and_cancels timeout_breaks_a_body who_waits_for_a_100_is_not_waited_for an_early_answer_that_stalls_has_an_end;
    models: delays_are_true a_cable_is_crossed_twice what_is_whole_is_held_no_longer a_balancer_counts_no_cable_around_it concurrent_shares_its_cores concurrent_is_cancelled sequence_is_one_after_another fanout_waits_for_as_many_as_it_needs draws_belong_to_places_and_requests;
    queues: a_queue_is_the_processs those_who_wait_go_in_order a_full_queue_is_overloaded_and_a_long_wait_a_timeout max_in_flight_lets_the_rest_wait max_in_flight_is_the_processs a_wait_for_a_balancer_ends a_slot_is_held_for_the_body a_wait_for_a_connection_ends;
    rewrite: requests_change_on_their_way responses_change_on_their_way what_is_behind_sees_it encoded_letters_are_letters answers_of_weirs_own_change_too;
    zuul: all_forms_of_a_load_are_read the_less_loaded_is_taken what_fails_fast_is_left_alone what_hangs_behind_a_timeout_fails an_unknown_target_gets_one_request_at_a_time built_in_servers_report_what_is_busy;
}

/// Tests of what HTTP/2 does not have.
const NOT_BY_HTTP2: &[(&str, &str)] = &[
    ("queues::a_wait_for_a_connection_ends", "one connection carries many requests: nobody waits for one"),
    ("fixed::a_redirect_lacks_no_part", "every request has an authority"),
    ("choose::what_connection_names_decides_nothing", "there is no Connection"),
    ("fixed::a_refusal_without_upgrade_keeps_its_protocols", "there is no Upgrade"),
];

fn all_on(transport: Transport) {
    for (name, test) in TESTS {
        if transport.is_http2() && NOT_BY_HTTP2.iter().any(|(other, _)| other == name) {
            continue;
        }
        println!("{name} on {transport:?}");
        with_transport(transport, *test);
    }
}

#[test]
fn on_tls() {
    all_on(Transport::Tls);
}

#[test]
fn on_http2() {
    all_on(Transport::Http2);
}

#[test]
fn on_http2_over_tls() {
    all_on(Transport::Http2Tls);
}

#[test]
fn no_test_is_left_out() {
    for (module, source) in SOURCES {
        for function in source.split("#[test]").skip(1) {
            let name =
                function.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).expect("a function");
            let name = format!("{module}::{name}");
            assert!(TESTS.iter().any(|(known, _)| *known == name), "{name} is not in the table");
        }
    }
    for (name, _) in NOT_BY_HTTP2 {
        assert!(TESTS.iter().any(|(known, _)| known == name), "{name} is no test");
    }
}
