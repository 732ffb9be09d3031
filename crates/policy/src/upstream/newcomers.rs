//! What users of other proxies say of slow start, as tests: with every formula.

use super::*;
use crate::balance::Ask;
use crate::config::{
    Eject, LeastConnArgs, P2cArgs, PeakEwmaArgs, RoundRobinArgs, SlowStart, SlowStartLike, Start, Ties,
};
use crate::health::HealthRecord;
use crate::health::slow_start::limit_at;
use crate::{Kind, TargetId};

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const WINDOW: u64 = 30 * S;

fn all() -> Vec<SlowStart> {
    let like = |like| SlowStart { like: Some(like), ..SlowStart::new(WINDOW) };
    vec![
        SlowStart::new(WINDOW),
        SlowStart { limits: true, ..SlowStart::new(WINDOW) },
        like(SlowStartLike::Haproxy),
        like(SlowStartLike::Nginx),
        like(SlowStartLike::Envoy),
    ]
}

fn policies() -> [Balance; 5] {
    [
        Balance::Random,
        Balance::RoundRobin(RoundRobinArgs { start: Start::First }),
        Balance::LeastConn(LeastConnArgs { ties: Ties::Random, error_hold_ns: 0 }),
        Balance::P2c(P2cArgs {
            choices: 2,
            replacement: false,
            ties: Ties::Random,
            error_hold_ns: 0,
            bias: 1.0,
        }),
        Balance::PeakEwma(PeakEwmaArgs { decay_ns: 10 * S, default_rtt_ns: 30 * MS }),
    ]
}

fn upstream(balance: &Balance, slow_start: &SlowStart, limit: Option<u32>, n: usize) -> Upstream {
    let health = HealthConfig { slow_start: Some(slow_start.clone()), ..HealthConfig::default() };
    let around = UpstreamConfig { health, max_in_flight: limit, ..UpstreamConfig::default() };
    Upstream::new(balance, around, &vec![1.0; n], &[] as &[&str], 0, Key::new(4))
}

fn tick(up: &mut Upstream, until_ns: u64) {
    while let Some(at) = up.next_deadline().filter(|at| *at <= until_ns) {
        up.tick(at);
    }
}

fn pick(up: &mut Upstream, i: u64, now_ns: u64) -> PickOutcome {
    up.pick(&Ask::new(Key::new(11).with(i), now_ns))
}

/// One request after the other, `n` of them; the picks of each target.
fn picks(up: &mut Upstream, n: u64, now_ns: u64) -> Vec<u64> {
    let mut seen = vec![0; up.roster().len() as usize];
    for i in 0..n {
        match pick(up, i, now_ns) {
            PickOutcome::Target(ticket) => {
                seen[ticket.target.index()] += 1;
                up.done(now_ns, ticket, None, None);
            }
            other => panic!("{other:?}"),
        }
    }
    seen
}

fn weights(up: &Upstream) -> Vec<f64> {
    up.roster().effective().to_vec()
}

/// Envoy 26290, 29008, Istio 44088: when a second newcomer came, the first one jumped to its whole share.
#[test]
fn a_second_newcomer_moves_no_other() {
    for slow_start in all() {
        let [mut alone, mut both] = [(); 2].map(|()| upstream(&Balance::Random, &slow_start, Some(50), 4));
        let limits = |up: &Upstream| (0..5).map(|t| up.limit(TargetId(t))).collect::<Vec<_>>();
        let first = [&mut alone, &mut both].map(|up| up.add(0, 1.0, ""));
        for ms in (0..35_000).step_by(100) {
            [&mut alone, &mut both].into_iter().for_each(|up| tick(up, ms * MS));
            if ms == 10_000 {
                let (before, room) = (weights(&both), limits(&both));
                let second = both.add(ms * MS, 1.0, "");
                assert_eq!((weights(&both)[..5].to_vec(), limits(&both)), (before, room), "{slow_start:?}");
                assert!(weights(&both)[second.index()] < 0.2);
            }
            assert_eq!(weights(&both)[..5], weights(&alone)[..5], "{slow_start:?} at {ms} ms");
            assert_eq!(limits(&both), limits(&alone), "{slow_start:?} at {ms} ms");
        }
        let of = weights(&both);
        assert_eq!((of[first[1].index()], of[5] > 0.8 && of[5] < 1.0), (1.0, true), "{of:?}");
    }
}

/// Envoy 24629: some newcomers of several got nothing until their window was over. Here each gets its share of every second,
/// under every policy; with nginx's formula there is none to get for the first hundredth of the window.
#[test]
fn each_newcomer_gets_its_share() {
    for slow_start in all() {
        for balance in policies() {
            let mut up = upstream(&balance, &slow_start, None, 10);
            let new = [(); 3].map(|()| up.add(0, 1.0, ""));
            for second in [1, 5, 15, 25] {
                tick(&mut up, second * S);
                let seen = picks(&mut up, 20_000, second * S);
                let share = up.health().ramp(new[0]);
                for target in new {
                    let n = seen[target.index()] as f64;
                    // Policies that look at requests in flight see none here, and pick as weights say or evenly.
                    let fair = 20_000.0 * share / (10.0 + 3.0 * share);
                    let least = match balance {
                        Balance::Random | Balance::RoundRobin(_) => 0.8 * fair,
                        _ => 0.0,
                    };
                    assert!(n > least, "{} {slow_start:?}: {n} of {fair} at {second} s", balance.name());
                }
            }
        }
    }
}

/// Envoy's PR 24689: where all are new, as after a deploy of all, weights are even, limits are whole, and no request fails.
#[test]
fn where_all_are_new_nothing_is_held_back() {
    for slow_start in all() {
        for balance in policies() {
            let mut up = upstream(&balance, &slow_start, Some(10), 3);
            let old: Vec<TargetId> = TargetId::all(3).collect();
            let new: Vec<TargetId> = (0..3).map(|_| up.add(S, 1.0, "")).collect();
            assert!(!slow_start.scales_limits() || new.iter().all(|t| up.limit(*t) == 1), "others are left");
            old.iter().for_each(|target| up.remove(S, *target));
            for second in [1, 2, 12, 29, 32] {
                tick(&mut up, second * S);
                assert!(new.iter().all(|target| up.limit(*target) == 10), "{slow_start:?} at {second} s");
                let of = weights(&up);
                assert!(new.iter().all(|t| of[t.index()] == of[new[0].index()] && of[t.index()] > 0.0));
                let seen = picks(&mut up, 300, second * S);
                assert!(new.iter().all(|t| seen[t.index()] > 50), "{seen:?}");
            }
            // Thirty fit, and one more waits.
            (0..30).for_each(|i| assert!(matches!(pick(&mut up, i, 32 * S), PickOutcome::Target(_))));
            assert_eq!(pick(&mut up, 30, 32 * S), PickOutcome::Full);
        }
    }
}

/// haproxytech/kubernetes-ingress 625: nothing happened for a server that was never seen down. A target that is added is
/// new, though it is up at once; and it is new again after an ejection.
#[test]
fn a_server_that_was_never_down_is_new_too() {
    for slow_start in all() {
        let eject = Some(Eject { consecutive: 1, base_ns: S, max_ns: S, max_percent: 100.0 });
        let health = HealthConfig { slow_start: Some(slow_start.clone()), eject, ..HealthConfig::default() };
        let around = UpstreamConfig { health, ..UpstreamConfig::default() };
        let mut up = Upstream::new(&Balance::Random, around, &[1.0; 4], &[] as &[&str], 0, Key::new(4));
        assert_eq!(weights(&up), [1.0; 4], "never at the start");
        let added = up.add(S, 1.0, "");
        assert!(weights(&up)[added.index()] <= 0.1, "{slow_start:?}");
        tick(&mut up, 40 * S);
        assert_eq!(weights(&up), [1.0; 5]);
        let ticket = |target, probe| Ticket { target, probe, met: 0, at_ns: 40 * S };
        up.balancer().take(added);
        up.done(40 * S, ticket(added, false), Some(Kind::Reset), None);
        assert_eq!(weights(&up)[added.index()], 0.0);
        tick(&mut up, 41 * S);
        for i in 0..1000 {
            if !up.health().is_half_open(added) {
                break;
            }
            if let PickOutcome::Target(ticket) = pick(&mut up, i, 41 * S) {
                up.done(41 * S, ticket, None, None);
            }
        }
        assert!(weights(&up)[added.index()] <= 0.1, "{slow_start:?}");
    }
}

/// APISIX PR 13941: a reload began every ramp anew. Neither new arguments nor another process does that here.
#[test]
fn neither_a_reload_nor_a_successor_begins_ramps_anew() {
    for slow_start in all() {
        let config = || HealthConfig { slow_start: Some(slow_start.clone()), ..HealthConfig::default() };
        let mut health = Health::new(config(), &[1.0; 3], 0, Key::new(1));
        let add = |target| TargetChange::Add { target, weight: 1.0, name: "" };
        health.change_targets(80 * S, [add(TargetId(3))]);
        health.tick(92 * S);
        let views = |health: &Health| TargetId::all(4).map(|t| health.view(t)).collect::<Vec<_>>();
        let before = views(&health);
        assert!(before[3].weight > 0.3 && before[3].weight < 0.5, "{before:?}");
        health.configure(config(), 92 * S, Key::new(1));
        assert_eq!(views(&health), before);
        let known: Vec<HealthRecord> = TargetId::all(4).map(|t| health.known(92 * S, t)).collect();
        assert_eq!(known.iter().map(|k| k.ramp_ns).collect::<Vec<_>>(), [None, None, None, Some(12 * S)]);
        // Its checks have not begun yet: that it believes its predecessor begins no ramp of those that had none.
        let check = crate::config::Check {
            interval_ns: S,
            rise: 1,
            fall: 1,
            jitter: 0.0,
            fast_interval_ns: None,
            down_interval_ns: None,
            initial: crate::config::Initial::Checked,
        };
        let mut next =
            Health::new(HealthConfig { check: Some(check), ..config() }, &[1.0; 4], 0, Key::new(1));
        TargetId::all(4).zip(known).for_each(|(target, known)| next.restore(MS, target, known));
        assert_eq!(views(&next), before, "{slow_start:?}");
        next.tick(MS + 18 * S);
        assert_eq!(views(&next).iter().map(|view| view.weight).collect::<Vec<_>>(), [1.0; 4]);
    }
}

/// A target without any share is not picked, by any policy, but where no other is left; one on probation, whose only request
/// is under way, is no other.
#[test]
fn a_share_of_nothing_is_the_last_resort() {
    let nginx = SlowStart { like: Some(SlowStartLike::Nginx), ..SlowStart::new(WINDOW) };
    for balance in policies().into_iter().chain([Balance::First]) {
        let mut up = upstream(&balance, &nginx, None, 2);
        let new = up.add(0, 1.0, "");
        assert_eq!((picks(&mut up, 500, 0)[new.index()], up.health().ramp(new)), (0, 0.0));
        up.set_admin(0, TargetId(0), Admin::Drain);
        assert_eq!(picks(&mut up, 500, 0)[new.index()], 0, "one is left");
        up.set_admin(0, TargetId(1), Admin::Drain);
        assert_eq!((picks(&mut up, 500, 0)[new.index()], up.health().ramp(new)), (500, 0.01));
        up.set_admin(0, TargetId(1), Admin::Up);
        assert_eq!(up.health().ramp(TargetId(1)), 0.01, "both are new, and one as good as the other");
        up.remove(0, new);
        up.set_admin(0, TargetId(0), Admin::Up);
        tick(&mut up, WINDOW);
        assert_eq!(weights(&up), [1.0, 1.0, 0.0]);
    }
    let eject = Some(Eject { consecutive: 1, base_ns: S, max_ns: S, max_percent: 100.0 });
    let health = HealthConfig { slow_start: Some(nginx), eject, panic: 0.0, ..HealthConfig::default() };
    let around = UpstreamConfig { health, ..UpstreamConfig::default() };
    let mut up = Upstream::new(&Balance::Random, around, &[1.0], &[] as &[&str], 0, Key::new(4));
    let PickOutcome::Target(ticket) = pick(&mut up, 0, 0) else { panic!("there is one") };
    up.done(0, ticket, Some(Kind::Reset), None);
    tick(&mut up, S);
    let PickOutcome::Target(trial) = pick(&mut up, 1, S) else { panic!("it may be tried") };
    assert!(trial.probe);
    assert_eq!(pick(&mut up, 2, S), PickOutcome::Empty);
    let new = up.add(S, 1.0, "");
    assert!(matches!(pick(&mut up, 3, S), PickOutcome::Target(ticket) if ticket.target == new));
}

/// The most in flight at a newcomer that gets all it can take, second by second, and what has to wait.
#[test]
fn limits_grow_with_the_ramp() {
    for slow_start in all().into_iter().filter(SlowStart::scales_limits) {
        let mut up = upstream(&Balance::First, &slow_start, Some(50), 2);
        up.set_admin(0, TargetId(0), Admin::Down);
        up.set_admin(0, TargetId(0), Admin::Up);
        let mut open = 0;
        for second in 0..=30 {
            tick(&mut up, second * S);
            let room = up.health().view(TargetId(0)).room;
            while let PickOutcome::Target(ticket) = pick(&mut up, 0, second * S) {
                open += u32::from(ticket.target == TargetId(0));
            }
            assert_eq!((open, up.in_flight(TargetId(0))), (limit_at(50, room), Some(open)), "at {second} s");
            let hundredths = if slow_start.limits { (100 * second / 30).max(10) } else { 100 * second / 30 };
            assert_eq!(u64::from(open), (hundredths * 50 / 100).max(1), "at {second} s");
            assert_eq!(up.in_flight(TargetId(1)), Some(50));
        }
        // It comes back with fifty under way: nothing enters until there are fewer than it may have.
        up.set_admin(31 * S, TargetId(0), Admin::Down);
        up.set_admin(31 * S, TargetId(0), Admin::Up);
        let least = up.limit(TargetId(0));
        let ticket = Ticket { target: TargetId(0), probe: false, met: 0, at_ns: S };
        for left in (least..50).rev() {
            assert_eq!(pick(&mut up, 0, 31 * S), PickOutcome::Full);
            up.done(31 * S, ticket, None, None);
            assert_eq!(up.in_flight(TargetId(0)), Some(left));
        }
        up.done(31 * S, ticket, None, None);
        assert!(matches!(pick(&mut up, 0, 31 * S), PickOutcome::Target(_)));
    }
}
