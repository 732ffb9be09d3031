//! A balancer with everything around it, against `docs/spec/language.md#balancing` and the figures of acceptance
//! checks.

use super::*;
use crate::config::{
    Check, Eject, Initial, LeastConnArgs, MaglevArgs, OnEmpty, P2cArgs, PeakEwmaArgs, RingHashArgs,
    RoundRobinArgs, SlowStart, SlowStartLike, Start, Ties, ZuulArgs,
};
use crate::health::slow_start::limit_at;
use crate::{Kind, TargetChange, TargetNames};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const NAMES: [&str; 0] = [];

fn upstream(balance: Balance, around: UpstreamConfig, n: usize) -> Upstream {
    Upstream::new(&balance, around, &vec![1.0; n], &NAMES, 0, Key::new(4))
}

fn ask(i: u64, now_ns: u64) -> Ask<'static> {
    Ask::new(Key::new(11).with(i), now_ns)
}

fn target(picked: PickOutcome) -> Ticket {
    match picked {
        PickOutcome::Target(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

/// `n` requests, one every `gap`; `outcome` gives each target's answer. Returns picks per target, and failures.
fn drive(up: &mut Upstream, n: u64, gap: u64, outcome: impl Fn(u64, u32) -> Outcome) -> (Vec<u32>, u32) {
    let (mut seen, mut failed) = (vec![0; 64], 0);
    for i in 0..n {
        let now = i * gap;
        while let Some(at) = up.next_deadline().filter(|&at| at <= now) {
            up.tick(at);
        }
        match up.pick(&ask(i, now)) {
            PickOutcome::Target(ticket) => {
                seen[ticket.target.index()] += 1;
                let outcome = outcome(now, ticket.target.0);
                failed += u32::from(outcome.is_some());
                up.done(now, ticket, outcome, None);
            }
            _ => failed += 1,
        }
    }
    (seen, failed)
}

fn ejecting(base: u64, max: u64, max_percent: f64, panic: f64) -> UpstreamConfig {
    let eject = Some(Eject { consecutive: 5, base_ns: base, max_ns: max, max_percent });
    UpstreamConfig {
        health: HealthConfig { eject, panic, ..HealthConfig::default() },
        ..UpstreamConfig::default()
    }
}

fn first_bad(bad: u32) -> impl Fn(u64, u32) -> Outcome {
    move |_, t| (t < bad).then_some(Kind::Status5xx)
}

/// The acceptance checks `eject_5`, `eject_probe` and `eject_cap`.
#[test]
fn ejection_lets_five_through_then_one_probe_each_time() {
    let around = || ejecting(30 * S, 30 * S, 50.0, 0.5);
    let (_, failed) = drive(&mut upstream(Balance::Random, around(), 10), 2500, 10 * MS, first_bad(1));
    assert_eq!(failed, 5);
    let mut up = upstream(Balance::Random, around(), 10);
    let (_, failed) = drive(&mut up, 10_000, 10 * MS, first_bad(1));
    assert_eq!(failed, 5 + 3);
    assert!(up.take_transitions().count() > 5);
    let mut six = upstream(Balance::Random, ejecting(3600 * S, 3600 * S, 50.0, 0.0), 10);
    let (seen, _) = drive(&mut six, 20_000, 10 * MS, first_bad(6));
    assert_eq!(
        seen[..6].iter().filter(|c| **c == 5).count(),
        5,
        "five are out, the sixth may not go: {seen:?}"
    );
    assert_eq!(six.health().count(), (10, 5));
}

/// While one request tries a target no other is sent there, under any policy; its cancellation lets another try.
#[test]
fn a_single_request_probes() {
    let least = Balance::LeastConn(LeastConnArgs { ties: Ties::Random, error_hold_ns: 0 });
    for balance in [Balance::Random, least, Balance::RoundRobin(RoundRobinArgs { start: Start::First })] {
        let mut up = upstream(balance, ejecting(S, S, 50.0, 0.0), 2);
        for i in 0..100 {
            let t = target(up.pick(&ask(i, 0)));
            up.done(0, t, (t.target == TargetId(0)).then_some(Kind::Reset), None);
        }
        assert!((0..50).all(|i| target(up.pick(&ask(i, 0))).target == TargetId(1)));
        up.tick(S);
        let mut probes: Vec<Ticket> =
            (0..50).map(|i| target(up.pick(&ask(i, S)))).filter(|t| t.probe).collect();
        assert_eq!(probes.len(), 1);
        up.cancelled(S, probes[0]);
        probes.extend((0..50).map(|i| target(up.pick(&ask(i, S)))).filter(|t| t.target == TargetId(0)));
        assert_eq!(probes.len(), 2);
        up.done(S, probes[1], None, None);
        assert!((0..50).any(|i| target(up.pick(&ask(i, S))).target == TargetId(0)), "well again");
    }
}

fn checked(initial: Initial, around: UpstreamConfig) -> UpstreamConfig {
    let check = Check {
        interval_ns: 2 * S,
        rise: 2,
        fall: 3,
        jitter: 0.0,
        fast_interval_ns: None,
        down_interval_ns: None,
        initial,
    };
    UpstreamConfig { health: HealthConfig { check: Some(check), ..around.health }, ..around }
}

fn run_checks(up: &mut Upstream, until: u64, passes: impl Fn(TargetId) -> bool) {
    while let Some(at) = up.next_check().filter(|&at| at <= until) {
        while let Some(t) = up.start_check(at) {
            up.check_result(at, t, passes(t));
        }
    }
}

fn panicking(panic: f64, on_empty: OnEmpty) -> UpstreamConfig {
    UpstreamConfig {
        health: HealthConfig { panic, on_empty, ..HealthConfig::default() },
        ..UpstreamConfig::default()
    }
}

/// The acceptance checks `panic`, `panic_never` and `panic_edge`: six of ten down, health ignored below half.
#[test]
fn panic_ignores_health_below_its_threshold() {
    for (down, threshold, want_bad) in [(6, 0.5, true), (6, 0.0, false), (5, 0.5, false)] {
        let mut up = upstream(Balance::Random, checked(Initial::Up, panicking(threshold, OnEmpty::Fail)), 10);
        run_checks(&mut up, 10 * S, |t| t >= TargetId(down));
        assert_eq!((up.health().count(), up.health().is_ignored()), ((10, 10 - down), want_bad));
        let (seen, _) = drive(&mut up, 10_000, 1, |_, _| None);
        let bad: u32 = seen[..down as usize].iter().sum();
        assert!(if want_bad { (5_700..6_300).contains(&bad) } else { bad == 0 }, "{seen:?}");
    }
}

/// Five of ten are drained or ejected by hand, and one of the others is down: that is one of five, so health is heeded.
#[test]
fn targets_out_by_hand_do_not_count_for_panic() {
    let mut up = upstream(Balance::Random, checked(Initial::Up, panicking(0.5, OnEmpty::Fail)), 10);
    run_checks(&mut up, 10 * S, |t| t != TargetId(9));
    for t in 0..5 {
        up.set_admin(10 * S, TargetId(t), if t % 2 == 0 { Admin::Drain } else { Admin::Down });
    }
    assert_eq!((up.health().count(), up.health().is_ignored()), ((10, 4), false));
    let (seen, _) = drive(&mut up, 1000, 1, |_, _| None);
    assert_eq!((seen[..5].iter().sum::<u32>(), seen[9]), (0, 0), "{seen:?}");
    run_checks(&mut up, 20 * S, |t| t < TargetId(7));
    assert!(up.health().is_ignored(), "two of five");
    let (seen, _) = drive(&mut up, 1000, 1, |_, _| None);
    assert!(seen[..5].iter().sum::<u32>() == 0 && seen[9] > 0, "{seen:?}");
    for t in 0..10 {
        up.set_admin(30 * S, TargetId(t), Admin::Drain);
    }
    assert_eq!((up.health().is_ignored(), up.health().pickable().count()), (false, 0));
}

/// No weight, however it came about, makes a sum overflow or a pick fail.
#[test]
fn no_weight_breaks_a_pick() {
    for config in variants() {
        let mut up = upstream(config.clone(), UpstreamConfig::default(), 3);
        for (step, weight) in (0..).zip([1e19, 3.0, f64::MAX, 0.001, 1e300, 1.5, 7.0, 1e-300]) {
            up.set_weight(0, TargetId(step % 3), weight);
            let (seen, _) = drive(&mut up, 200, 1, |_, _| None);
            assert_eq!(seen.iter().sum::<u32>(), 200, "{config:?} {weight}");
        }
        let mut built = Upstream::new(
            &config,
            UpstreamConfig::default(),
            &[1e19, 2.0, 1e300],
            &["a", "b", "c"],
            0,
            Key::new(1),
        );
        drive(&mut built, 200, 1, |_, _| None);
    }
}

#[test]
fn nobody_left_is_what_on_empty_says() {
    for (on_empty, empty) in [(OnEmpty::Fail, true), (OnEmpty::Node, true), (OnEmpty::Any, false)] {
        let mut up = upstream(Balance::Random, checked(Initial::Up, panicking(0.0, on_empty)), 2);
        run_checks(&mut up, 10 * S, |_| false);
        assert_eq!(up.pick(&ask(0, 10 * S)) == PickOutcome::Empty, empty);
        run_checks(&mut up, 20 * S, |t| t == TargetId(1));
        assert_eq!(target(up.pick(&ask(0, 20 * S))).target, TargetId(1));
    }
    let mut drained = upstream(Balance::Random, panicking(0.5, OnEmpty::Any), 2);
    drained.set_admin(0, TargetId(0), Admin::Drain);
    drained.set_admin(0, TargetId(1), Admin::Down);
    assert_eq!(drained.pick(&ask(0, 0)), PickOutcome::Empty, "the operator's word holds in panic");
}

/// The acceptance checks `check_initial_down` and `check_initial_checked`, and the hot spare.
#[test]
fn initial_states_and_the_spare() {
    let mut down = upstream(Balance::Random, checked(Initial::Down, panicking(0.0, OnEmpty::Fail)), 10);
    assert_eq!(down.pick(&ask(0, 0)), PickOutcome::Empty);
    run_checks(&mut down, 2 * S - 1, |_| true);
    assert_eq!(down.pick(&ask(0, S)), PickOutcome::Empty);
    run_checks(&mut down, 2 * S, |_| true);
    assert_eq!(target(down.pick(&ask(0, 2 * S))).target, TargetId(0));
    let mut checked = upstream(Balance::First, checked(Initial::Checked, panicking(0.0, OnEmpty::Fail)), 2);
    run_checks(&mut checked, S, |t| t == TargetId(1));
    assert_eq!(target(checked.pick(&ask(0, S))).target, TargetId(1), "the spare");
    run_checks(&mut checked, 2 * S, |_| true);
    assert_eq!(target(checked.pick(&ask(0, 2 * S))).target, TargetId(0));
}

/// With a limit at each target, a request waits when all are full, and one that comes back admits one.
#[test]
fn full_targets_are_left_out_and_all_full_is_a_queue() {
    let least = Balance::LeastConn(LeastConnArgs { ties: Ties::Random, error_hold_ns: 0 });
    let p2c = Balance::P2c(P2cArgs {
        choices: 2,
        replacement: false,
        ties: Ties::Random,
        error_hold_ns: 0,
        bias: 1.0,
    });
    let ring = Balance::RingHash(RingHashArgs { bound: None });
    let rr = Balance::RoundRobin(RoundRobinArgs { start: Start::Random });
    for balance in [Balance::Random, least, p2c, ring, rr, Balance::First] {
        let around = UpstreamConfig { max_in_flight: Some(2), ..UpstreamConfig::default() };
        let mut up = upstream(balance.clone(), around, 7);
        let mut open = Vec::new();
        for step in 0..3000u64 {
            let draw = Key::new(3).with(step);
            match up.pick(&ask(step, step)) {
                PickOutcome::Target(ticket) => open.push(ticket),
                PickOutcome::Full => assert_eq!(open.len(), 14),
                PickOutcome::Empty => panic!(),
            }
            let at = draw.below(open.len() as u64) as usize;
            if open.len() == 14 || draw.nth(1).unit() < 0.3 {
                up.done(step, open.swap_remove(at), None, None);
            }
            for t in 0..7 {
                let n = open.iter().filter(|o| o.target == TargetId(t)).count() as u32;
                assert!(n <= 2 && up.in_flight(TargetId(t)) == Some(n), "{}", balance.name());
            }
        }
        open.drain(..).for_each(|t| up.cancelled(9999, t));
        assert_eq!(up.balancer().total_in_flight(), 0);
    }
}

/// The acceptance checks `passed_over`, `passed_over_last` and `first_unreachable`.
#[test]
fn unreachable_targets_are_passed_over_for_a_second() {
    let around = || UpstreamConfig { pass_over_ns: S, ..UpstreamConfig::default() };
    let unreachable = |bad: u32| move |_: u64, t: u32| (t < bad).then_some(Kind::ConnectFailed);
    let mut four = upstream(Balance::Random, around(), 4);
    let (_, failed) = drive(&mut four, 50_000, 10 * MS, unreachable(1));
    let want = 50_000.0 / 104.0;
    assert!((f64::from(failed) - want).abs() < 0.05 * want, "{failed}: one per second and four requests");
    let (_, failed) = drive(&mut upstream(Balance::Random, around(), 1), 100, 10 * MS, unreachable(1));
    assert_eq!(failed, 100, "the last one is picked all the same");
    let mut first = upstream(Balance::First, around(), 2);
    let (seen, _) = drive(&mut first, 1000, 10 * MS, unreachable(1));
    assert_eq!(seen[..2], [10, 990]);
    assert_eq!(first.health().count(), (2, 2), "that is not health");
}

#[test]
fn exclusion_yields_before_pass_over_does() {
    let mut up =
        upstream(Balance::Random, UpstreamConfig { pass_over_ns: S, ..UpstreamConfig::default() }, 3);
    for i in 0..200 {
        let t = target(up.pick(&ask(i, 0)));
        up.done(0, t, (t.target == TargetId(0)).then_some(Kind::ConnectFailed), None);
    }
    let picks = |up: &mut Upstream, exclude: &[TargetId]| {
        let mut seen: Vec<TargetId> =
            (0..60).map(|i| target(up.pick(&Ask { exclude, ..ask(i, 0) })).target).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    };
    assert_eq!(picks(&mut up, &[]), [1, 2].map(TargetId));
    assert_eq!(picks(&mut up, &[TargetId(1)]), [TargetId(2)]);
    assert_eq!(
        picks(&mut up, &[TargetId(1), TargetId(2)]),
        [1, 2].map(TargetId),
        "rather those than one that nobody reaches"
    );
    up.set_admin(0, TargetId(1), Admin::Drain);
    up.set_admin(0, TargetId(2), Admin::Drain);
    assert_eq!(picks(&mut up, &[TargetId(0)]), [TargetId(0)]);
}

/// Every policy, and those of its arguments that change which target is picked.
fn variants() -> Vec<Balance> {
    let least = |ties| Balance::LeastConn(LeastConnArgs { ties, error_hold_ns: 0 });
    let p2c = |choices, replacement| {
        Balance::P2c(P2cArgs { choices, replacement, ties: Ties::Random, error_hold_ns: 0, bias: 1.0 })
    };
    let turn = |start| Balance::RoundRobin(RoundRobinArgs { start });
    vec![
        Balance::Random,
        turn(Start::Random),
        turn(Start::First),
        least(Ties::Random),
        least(Ties::First),
        least(Ties::Rotate),
        p2c(1, false),
        p2c(2, false),
        p2c(2, true),
        p2c(5, false),
        Balance::First,
        Balance::PeakEwma(PeakEwmaArgs { decay_ns: S, default_rtt_ns: MS }),
        Balance::Zuul(ZuulArgs { load: "x-load".to_owned(), decay_ns: S, max_load: None }),
        Balance::RingHash(RingHashArgs { bound: Some(1.5) }),
        Balance::Maglev(MaglevArgs { table_size: 101, bound: None }),
        Balance::LeastWork,
    ]
}

/// Every policy picks a target that the rule allows, with any set excluded, passed over, full or of weight 0.
#[test]
fn every_policy_agrees_with_a_filter() {
    for config in variants() {
        let mut seen = [0; 4];
        for case in 0..1500u64 {
            let draw = Key::new(5).with(case);
            let n = 1 + draw.below(6);
            let weights: Vec<f64> = (0..n).map(|i| draw.nth(i).below(3) as f64).collect();
            // Lists of their own length, with targets named twice among the excluded.
            let some = |at: u64, most: u64| -> Vec<TargetId> {
                let list = draw.with(at);
                (0..list.below(most + 1)).map(|i| TargetId(list.nth(i + 1).below(n) as u32)).collect()
            };
            let (excluded, over, full) = (some(1, 2 * n), some(2, n), some(3, n / 2));
            let around = UpstreamConfig { pass_over_ns: S, ..UpstreamConfig::default() };
            let mut up = Upstream::new(&config, around, &weights, &NAMES, 0, draw);
            for &target in &over {
                up.balancer().take(target);
                let ticket = Ticket { target, probe: false, met: 0, at_ns: 0 };
                up.done(0, ticket, Some(Kind::ConnectFailed), None);
            }
            full.iter().for_each(|&t| up.set_full(t, true));
            // The rule in its obvious form: the excluded come back before the passed over do.
            let may = |t: &TargetId| weights[t.index()] > 0.0 && !full.contains(t);
            let rest: Vec<TargetId> = TargetId::all(n as u32).filter(may).collect();
            let without = |out: &[&[TargetId]]| -> Vec<TargetId> {
                rest.iter().copied().filter(|t| !out.iter().any(|o| o.contains(t))).collect()
            };
            let wishes =
                [without(&[&over, &excluded]), without(&[&over]), without(&[&excluded]), rest.clone()];
            let rank = wishes.iter().position(|w| !w.is_empty());
            let allowed = rank.map_or(&[][..], |r| &wishes[r]);
            rank.inspect(|&r| seen[r] += 1);
            let mut picked = vec![false; weights.len()];
            for i in 0..20 {
                match up.pick(&Ask { exclude: &excluded, ..ask(i, 0) }) {
                    PickOutcome::Target(ticket) => {
                        let t = ticket.target;
                        assert!(allowed.contains(&t), "{}: {t} not of {allowed:?}", config.name());
                        picked[t.index()] = true;
                    }
                    PickOutcome::Full => assert!(rest.is_empty() && !full.is_empty()),
                    PickOutcome::Empty => assert!(rest.is_empty()),
                }
            }
            // In turn, and where fewest are in flight, each of those allowed is reached.
            if matches!(config, Balance::RoundRobin(_) | Balance::LeastConn(_)) {
                assert!(allowed.iter().all(|t| picked[t.index()]), "{} {allowed:?}", config.name());
            }
        }
        assert!(seen.iter().all(|n| *n > 30), "each case occurs: {seen:?}");
    }
}

#[test]
fn stickiness_yields_to_what_speaks_against_a_target() {
    let mut up =
        upstream(Balance::Random, UpstreamConfig { max_in_flight: Some(3), ..UpstreamConfig::default() }, 4);
    let stick = |up: &mut Upstream, exclude: &[TargetId]| {
        target(up.pick(&Ask { sticky: Some(TargetId(2)), exclude, ..ask(1, 0) })).target
    };
    assert_eq!([stick(&mut up, &[]), stick(&mut up, &[]), stick(&mut up, &[])], [TargetId(2); 3]);
    assert_ne!(stick(&mut up, &[]), TargetId(2), "full");
    let mut up = upstream(Balance::Random, UpstreamConfig::default(), 4);
    assert_eq!(stick(&mut up, &[]), TargetId(2));
    assert_ne!(stick(&mut up, &[TargetId(2)]), TargetId(2));
    up.set_admin(0, TargetId(2), Admin::Drain);
    assert_ne!(stick(&mut up, &[]), TargetId(2));
    up.set_admin(0, TargetId(2), Admin::Up);
    up.remove(0, TargetId(2));
    assert_ne!(stick(&mut up, &[]), TargetId(2));
    assert_eq!(
        target(up.pick(&Ask { sticky: Some(TargetId(99)), ..ask(1, 0) })).target,
        target(up.pick(&ask(1, 0))).target
    );
}

/// A target that comes back gets a tenth of its share at first, half of it after half the window, then all.
#[test]
fn slow_start_scales_shares() {
    let slow_start = Some(SlowStart::new(60 * S));
    let around = UpstreamConfig {
        health: HealthConfig { slow_start, ..HealthConfig::default() },
        ..UpstreamConfig::default()
    };
    let mut up = upstream(Balance::Random, around, 10);
    let share = |up: &mut Upstream, now_ns: u64| {
        let mut of = |i| target(up.pick(&ask(i, now_ns))).target == TargetId(3);
        (0..40_000).filter(|&i| of(i)).count() as f64 / 40_000.0
    };
    let close = |got: f64, want: f64| assert!((got - want).abs() < 0.005, "{got} {want}");
    close(share(&mut up, 0), 0.1);
    up.set_admin(0, TargetId(3), Admin::Down);
    close(share(&mut up, 0), 0.0);
    up.set_admin(10 * S, TargetId(3), Admin::Up);
    close(share(&mut up, 10 * S), 0.1 / 9.1);
    while let Some(at) = up.next_deadline().filter(|&at| at <= 40 * S) {
        up.tick(at);
    }
    close(share(&mut up, 40 * S), 0.5 / 9.5);
    while let Some(at) = up.next_deadline() {
        assert!(at <= 70 * S);
        up.tick(at);
    }
    close(share(&mut up, 70 * S), 0.1);
    let added = up.add(80 * S, 1.0, "");
    assert_eq!(added, TargetId(10));
    let least = up.balancer().roster().effective()[10];
    assert_eq!(least, 0.1, "one that is added later too");
}

/// Slow start scales the comparison of requests in flight: held at a tenth, a newcomer has two where others have
/// twenty.
#[test]
fn slow_start_holds_off_the_stampede() {
    let slow_start = Some(SlowStart::new(60 * S));
    let around = UpstreamConfig {
        health: HealthConfig { slow_start, ..HealthConfig::default() },
        ..UpstreamConfig::default()
    };
    let mut up =
        upstream(Balance::LeastConn(LeastConnArgs { ties: Ties::Random, error_hold_ns: 0 }), around, 4);
    (0..40).for_each(|i| _ = target(up.pick(&ask(i, 0))));
    let new = up.add(0, 1.0, "");
    (0..40).for_each(|i| _ = target(up.pick(&ask(i, 0))));
    assert_eq!(up.in_flight(new), Some(2));
    assert_eq!((0..4).map(|t| up.in_flight(TargetId(t)).unwrap()).sum::<u32>(), 78);
}

/// Targets are added and removed around everything at once, and the sums are right at every step.
#[test]
fn counts_survive_every_change() {
    let balances = [
        Balance::Random,
        Balance::LeastConn(LeastConnArgs { ties: Ties::Rotate, error_hold_ns: 0 }),
        Balance::Maglev(MaglevArgs { table_size: 101, bound: Some(1.5) }),
        Balance::PeakEwma(PeakEwmaArgs { decay_ns: S, default_rtt_ns: MS }),
        Balance::Zuul(ZuulArgs { load: "x-load".to_owned(), decay_ns: S, max_load: Some(0.5) }),
    ];
    let like = |like| SlowStart { like, ..SlowStart::new(5 * S) };
    let slow_starts = [
        like(None),
        SlowStart { limits: true, ..like(None) },
        like(Some(SlowStartLike::Haproxy)),
        like(Some(SlowStartLike::Nginx)),
    ];
    for (balance, slow_start) in balances.iter().flat_map(|b| slow_starts.iter().map(move |s| (b, s))) {
        let mut around = checked(Initial::Up, ejecting(3 * S, 9 * S, 50.0, 0.3));
        around.max_in_flight = Some(5);
        around.health.slow_start = Some(slow_start.clone()).filter(|_| !balance.traits().hashes);
        let names = ["a", "b", "c", "d"];
        let mut up = Upstream::new(balance, around, &[1.0, 2.0, 1.0, 1.0], &names, 0, Key::new(8));
        let mut open: Vec<Ticket> = Vec::new();
        for step in 0..6000u64 {
            let (draw, now) = (Key::new(21).with(step), step * 20 * MS);
            up.tick(now);
            run_checks(&mut up, now, |t| t != TargetId(1) || now % (20 * S) > 8 * S);
            let n = u64::from(up.balancer().roster().len());
            let t = draw.below(n) as u32;
            match draw.nth(1).below(200) {
                0 => up.remove(now, TargetId(t)),
                1 | 2 if n < 30 => _ = up.add(now, 1.0, "new"),
                3 => up.set_admin(now, TargetId(t), Admin::Drain),
                4 => up.set_admin(now, TargetId(t), Admin::Up),
                5 => up.set_weight(now, TargetId(t), draw.nth(2).below(3) as f64),
                6..=110 => {
                    if let PickOutcome::Target(ticket) = up.pick(&ask(step, now)) {
                        assert!(up.balancer().roster().effective()[ticket.target.index()] > 0.0);
                        let most = limit_at(5, up.health().view(ticket.target).room);
                        assert!(up.in_flight(ticket.target).is_some_and(|n| n <= most), "step {step}");
                        open.push(ticket);
                    }
                }
                roll if !open.is_empty() => {
                    let ticket = open.swap_remove(draw.nth(3).below(open.len() as u64) as usize);
                    let bad = ticket.target == TargetId(2) && draw.nth(4).unit() < 0.9;
                    match roll % 5 {
                        0 => up.cancelled(now, ticket),
                        _ => _ = up.done(now, ticket, bad.then_some(Kind::Timeout), None),
                    }
                }
                _ => {}
            }
            for t in 0..up.balancer().roster().len() {
                let want = open.iter().filter(|o| o.target == TargetId(t)).count() as u32;
                assert_eq!(up.in_flight(TargetId(t)), Some(want), "{} at step {step}", balance.name());
                assert!(want <= 5);
                assert!(up.balancer().in_flight(TargetId(t)).is_none_or(|n| n == want));
            }
            assert!(open.iter().filter(|o| o.probe).count() <= n as usize);
        }
    }
}

/// With nothing around it an upstream picks what the balancer alone would.
#[test]
fn a_plain_one_is_the_balancer() {
    let p2c = Balance::P2c(P2cArgs {
        choices: 2,
        replacement: false,
        ties: Ties::Random,
        error_hold_ns: 0,
        bias: 1.0,
    });
    let mut up = upstream(p2c.clone(), UpstreamConfig::default(), 9);
    let mut bare = Balancer::new(&p2c, &[1.0; 9], Key::new(4));
    assert!(up.loops.first.plain);
    for i in 0..1000 {
        assert_eq!(target(up.pick(&ask(i, 0))).target, bare.ask(&ask(i, 0)).unwrap());
    }
}

/// A loop that follows the process's health picks by it.
#[test]
fn loops_follow_the_process() {
    let process = Health::new(ejecting(S, S, 50.0, 0.0).health, &[1.0; 3], 0, Key::new(1));
    let mut process = process;
    let mut lp = upstream(Balance::Random, UpstreamConfig::default(), 3);
    lp.follow(0, &Snapshot::new(&process));
    process.set_admin(0, TargetId(1), Admin::Drain);
    process.set_weight(TargetId(2), 0.0);
    lp.follow(0, &Snapshot::new(&process));
    assert!((0..50).all(|i| target(lp.pick(&ask(i, 0))).target == TargetId(0)));
}

/// Targets that are full elsewhere are left out, a lost pick leaves no count, and a target that was removed meanwhile
/// stays removed when an older state arrives.
#[test]
fn loops_share_limits_and_probation() {
    let least = || Balance::LeastConn(LeastConnArgs { ties: Ties::First, error_hold_ns: 0 });
    let mut process = Health::new(ejecting(S, S, 50.0, 0.0).health, &[1.0; 3], 0, Key::new(1));
    let mut lp = upstream(least(), UpstreamConfig::default(), 3);
    let lost = target(lp.pick(&ask(0, 0)));
    lp.give_up(lost);
    lp.set_full(lost.target, true);
    assert_eq!((lp.total_in_flight(), lp.full().iter().collect::<Vec<_>>()), (0, vec![0]));
    (0..5).for_each(|_| _ = process.outcome(0, TargetId(1), false, Some(Kind::Reset), None));
    lp.follow(0, &Snapshot::new(&process));
    assert_eq!(target(lp.pick(&ask(1, 0))).target, TargetId(2));
    process.tick(S);
    lp.follow(S, &Snapshot::new(&process));
    assert!(process.is_half_open(TargetId(1)) && process.has_anyone());
    lp.set_probing(TargetId(1), true);
    assert_eq!(target(lp.pick(&ask(2, S))).target, TargetId(2), "the probe is somebody else's");
    lp.set_probing(TargetId(1), false);
    assert_eq!(target(lp.pick(&ask(3, S))).target, TargetId(1));
    process.change_targets(0, [TargetChange::Remove(TargetId(1))]);
    lp.remove(S, TargetId(1));
    lp.follow(S, &Snapshot::new(&process));
    lp.set_full(TargetId(0), false);
    assert_eq!(target(lp.pick(&ask(4, S))).target, TargetId(0));
    assert!((5..9).all(|i| target(lp.pick(&ask(i, S))).target != TargetId(1)));
}

/// Failures in a row belong to the process, on whichever loop they occur; a target that could not be connected to is
/// passed over on that loop.
#[test]
fn loops_share_health_and_limits_and_keep_their_own_cursors() {
    let on_loops = |around: UpstreamConfig| {
        let balance = Balance::RoundRobin(RoundRobinArgs { start: Start::First });
        let mut up = Upstream::new(&balance, around, &[1.0; 2], &NAMES, 0, Key::new(4));
        up.add_loop(&balance, &[1.0; 2], &NAMES, 0, Key::new(5));
        up.add_loop(&balance, &[1.0; 2], &NAMES, 0, Key::new(6));
        up
    };
    let picks = |up: &mut Upstream, on: u32| target(up.on(on).pick(&ask(0, 0)));
    let mut up = on_loops(ejecting(S, S, 50.0, 0.0));
    for on in [0, 1, 2, 0, 1] {
        let mut ticket = picks(&mut up, on);
        if ticket.target == TargetId(1) {
            up.on(on).cancelled(0, ticket);
            ticket = picks(&mut up, on);
        }
        up.on(on).done(0, ticket, Some(Kind::Reset), None);
    }
    assert!((0..3).all(|on| picks(&mut up, on).target == TargetId(1)), "out after five, for all");
    up.tick(S);
    let probes: Vec<Ticket> = (0..9).map(|i| picks(&mut up, i % 3)).filter(|t| t.probe).collect();
    assert_eq!(probes.len(), 1, "one request of all loops tries it");

    let mut up = on_loops(UpstreamConfig { max_in_flight: Some(1), ..UpstreamConfig::default() });
    assert_eq!((picks(&mut up, 1).target, picks(&mut up, 0).target), (TargetId(0), TargetId(1)));
    assert_eq!(up.on(2).pick(&ask(0, 0)), PickOutcome::Full);
    assert_eq!((up.in_flight(TargetId(0)), up.in_flight(TargetId(1))), (Some(1), Some(1)));
    up.on(1).done(0, Ticket { target: TargetId(0), probe: false, met: 0, at_ns: 0 }, None, None);
    assert_eq!(picks(&mut up, 2).target, TargetId(0));

    let mut up = on_loops(UpstreamConfig { pass_over_ns: S, ..UpstreamConfig::default() });
    let first = picks(&mut up, 1);
    up.on(1).done(0, first, Some(Kind::ConnectFailed), None);
    assert!((0..4).all(|_| picks(&mut up, 1).target == TargetId(1)));
    assert_eq!((picks(&mut up, 2).target, picks(&mut up, 2).target), (TargetId(0), TargetId(1)));
    assert_eq!(up.next_deadline(), Some(S));
}

/// What a `timeout` around the balancer cuts off is an error to the health of its target, as a trial too; to the policy
/// it was cancelled. Other cancellations are nothing.
#[test]
fn a_timeout_around_the_balancer_is_an_error_of_its_target() {
    let balance = Balance::LeastConn(LeastConnArgs { ties: Ties::First, error_hold_ns: 0 });
    let mut up = upstream(balance, ejecting(S, 9 * S, 50.0, 0.0), 2);
    let cut = |up: &mut Upstream, now_ns: u64, late: bool| {
        let ticket = target(up.pick(&ask(now_ns, now_ns)));
        match late && ticket.target == TargetId(0) {
            true => up.timed_out(now_ns, ticket),
            false => up.cancelled(now_ns, ticket),
        }
        assert_eq!(up.total_in_flight(), 0);
        ticket
    };
    assert!((0..20).all(|now| cut(&mut up, now, false).target == TargetId(0)), "the client left");
    assert!((20..25).all(|now| cut(&mut up, now, true).target == TargetId(0)));
    assert!((25..40).all(|now| cut(&mut up, now, true).target == TargetId(1)), "out after five");
    up.tick(S + 24);
    let trial = cut(&mut up, S + 25, true);
    assert!(trial.probe && trial.target == TargetId(0));
    assert!((26..40).all(|ns| cut(&mut up, S + ns, true).target == TargetId(1)), "and out again");
    assert_eq!(up.next_deadline(), Some(3 * S + 25), "for twice as long");
}

/// A loop that is told of the health with the changes ends where one does that is told after them.
#[test]
fn changes_are_followed_with_their_health() {
    let names: Vec<String> = (0..6).map(|i| format!("10.0.0.{i}:80")).collect();
    let policies = [
        Balance::Random,
        Balance::RoundRobin(RoundRobinArgs { start: Start::First }),
        Balance::LeastConn(LeastConnArgs { ties: Ties::Random, error_hold_ns: 0 }),
        Balance::Maglev(MaglevArgs { table_size: 251, bound: None }),
    ];
    // Of equal weights and of others: few changes are followed one by one where targets are alike.
    for (balance, weight) in policies.iter().flat_map(|balance| [1.0, 2.0].map(|weight| (balance, weight))) {
        let make = || Upstream::new(balance, UpstreamConfig::default(), &[1.0; 6], &names, 0, Key::new(4));
        let (mut after, mut with, mut owner) = (make(), make(), make());
        let add = TargetChange::Add { target: TargetId(6), weight, name: "10.0.1.1:80" };
        let changes = [TargetChange::Remove(TargetId(0)), add, TargetChange::Remove(TargetId(3))];
        owner.change_targets(5, &changes);
        owner.set_admin(6, TargetId(1), Admin::Down);
        let health = Snapshot::new(owner.health());
        after.change_targets(7, &changes);
        after.follow(7, &health);
        let all = TargetNames::new(&[&names[..], &["10.0.1.1:80".to_owned()]].concat());
        with.change_named(7, changes.iter().copied(), &all, Some(&health));
        assert_eq!(with.roster().effective(), [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, weight], "{balance:?}");
        // Then the health changes alone, for one target and for nearly all.
        for out in [2..3, 1..6] {
            for i in 0..100 {
                let picked = [&mut after, &mut with].map(|up| target(up.pick(&ask(i, 8 + i))).target);
                assert_eq!(picked[0], picked[1], "{balance:?}, request {i}");
            }
            out.for_each(|at| owner.set_admin(9, TargetId(at), Admin::Down));
            let health = Snapshot::new(owner.health());
            after.follow(10, &health);
            with.change_named(10, [].into_iter(), &all, Some(&health));
            assert_eq!(with.roster().effective(), after.roster().effective());
        }
        assert_eq!(target(with.pick(&ask(1, 300))).target, TargetId(6), "the only one left");
    }
}
