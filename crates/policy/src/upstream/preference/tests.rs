//! A balancer whose loops prefer subsets, against the specification of subsets.

use crate::config::{
    Balance, Check, Eject, Initial, LeastConnArgs, LoopsArgs, OnEmpty, P2cArgs, PeakEwmaArgs, PrequalArgs,
    RandomArgs, RoundRobinArgs, Start, Subset, Ties, ZuulArgs,
};
use crate::eligibility::Admin;
use crate::health::HealthConfig;
use crate::snapshot::Snapshot;
use crate::subset::Subsets;
use crate::upstream::UpstreamConfig;
use crate::{
    Ask, Choice, Kind, Operation, PickOutcome, TargetChange, TargetId, TargetNames, Ticket, Upstream,
};
use std::collections::BTreeSet;
use weir_stats::Key;

const S: u64 = 1_000_000_000;
const NAMES: [&str; 0] = [];

/// Every policy that takes subsets.
fn policies() -> Vec<Balance> {
    let least = |ties| Balance::LeastConn(LeastConnArgs { ties, error_hold_ns: 0 });
    let p2c = |choices, replacement| {
        Balance::P2c(P2cArgs { choices, replacement, ties: Ties::Random, error_hold_ns: 0, bias: 1.0 })
    };
    let prequal = PrequalArgs { probes: 2.0, pool: 8, age_ns: 100 * S, q_rif: 0.84, remove: 1.0, delta: 1.0 };
    let all = vec![
        Balance::Random,
        Balance::RoundRobin(RoundRobinArgs { start: Start::Random }),
        least(Ties::Random),
        least(Ties::Rotate),
        p2c(2, false),
        p2c(3, true),
        Balance::PeakEwma(PeakEwmaArgs { decay_ns: S, default_rtt_ns: 1_000_000 }),
        Balance::Zuul(ZuulArgs { load: "x-load".to_owned(), decay_ns: S, max_load: None }),
        Balance::Prequal(prequal),
        Balance::LeastWork,
    ];
    assert!(all.iter().all(Balance::takes_subsets) && !Balance::First.takes_subsets());
    all
}

const LOOPS: Subset = Subset::Loops(LoopsArgs { min: 4, max: 8 });
const DRAWN: Subset = Subset::Random(RandomArgs { size: 6 });

/// `loops` loops over targets of these weights.
fn upstream(
    balance: &Balance,
    subset: Subset,
    around: UpstreamConfig,
    weights: &[f64],
    loops: u32,
) -> Upstream {
    let mut up = Upstream::new(balance, around, weights, &NAMES, 0, Key::new(4));
    (1..loops).for_each(|on| up.add_loop(balance, weights, &NAMES, 0, Key::new(4).with(u64::from(on))));
    up.keep_subsets(0, subset, loops, &NAMES, Key::new(6));
    up
}

fn plain() -> UpstreamConfig {
    UpstreamConfig::default()
}

fn least_conn() -> Balance {
    Balance::LeastConn(LeastConnArgs { ties: Ties::Random, error_hold_ns: 0 })
}

fn ask(i: u64) -> Ask<'static> {
    Ask::new(Key::new(11).with(i), i)
}

fn pick(up: &mut Upstream, on: u32, ask: &Ask) -> Ticket {
    match up.on(on).pick(ask) {
        PickOutcome::Target(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

/// The targets of `n` picks on a loop, each of which comes back at once.
fn picks(up: &mut Upstream, on: u32, n: u64) -> BTreeSet<TargetId> {
    let mut one = |i| {
        let ticket = pick(up, on, &ask(i));
        up.on(on).done(i, ticket, None, None);
        ticket.target
    };
    (0..n).map(&mut one).collect()
}

/// The lists of a loop in the order in which it uses them.
fn lists(up: &Upstream, on: u32, n: u32) -> Vec<BTreeSet<TargetId>> {
    let table = up.subsets().expect("it has subsets");
    let (own, count) = (table.number_on(on), table.count());
    let members = |number: u32| table.members(number).iter().copied().collect();
    if table.goes_round() {
        return (0..count).map(|k| members((own + k) % count)).collect();
    }
    let inside: BTreeSet<TargetId> = members(own);
    let outside = TargetId::all(n).filter(|t| !inside.contains(t)).collect();
    vec![inside, outside]
}

/// With nothing against any target no policy picks outside, and each member is reached.
#[test]
fn a_loop_picks_inside() {
    for balance in policies() {
        for subset in [LOOPS, DRAWN] {
            let mut up = upstream(&balance, subset, plain(), &[1.0; 64], 16);
            for on in 0..16 {
                let own = lists(&up, on, 64).swap_remove(0);
                assert_eq!(picks(&mut up, on, 400), own, "{} {}", balance.name(), subset.name());
            }
            assert_eq!((up.borrowed(), up.total_in_flight(), up.subset_moves()), (0, 0, 0));
        }
    }
}

/// Without a target inside, the next list is used, in order and round; with one again, the subset.
#[test]
fn a_loop_without_targets_inside_uses_the_next() {
    for balance in policies() {
        for subset in [LOOPS, DRAWN] {
            let mut up = upstream(&balance, subset, plain(), &[1.0; 64], 16);
            let all = lists(&up, 13, 64);
            for (k, list) in all.iter().enumerate() {
                let before = up.borrowed();
                assert_eq!(picks(&mut up, 13, 900), *list, "{} list {k}", balance.name());
                assert_eq!(up.borrowed() - before, if k > 0 { 900 } else { 0 });
                list.iter().for_each(|&t| up.set_admin(0, t, Admin::Drain));
            }
            assert_eq!(up.on(13).pick(&ask(0)), PickOutcome::Empty);
            let (own, other) = (*all[0].first().unwrap(), *all[1].first().unwrap());
            up.set_admin(0, other, Admin::Up);
            assert_eq!(picks(&mut up, 13, 20), BTreeSet::from([other]));
            up.set_admin(0, own, Admin::Up);
            assert_eq!(picks(&mut up, 13, 20), BTreeSet::from([own]), "health changes no subset");
        }
    }
}

/// A limit of one request at each target: a loop fills its own subset, then the next, and waits when all are full.
#[test]
fn full_targets_are_left_for_the_next_subset() {
    for balance in policies() {
        let around = UpstreamConfig { max_in_flight: Some(1), ..plain() };
        let mut up = upstream(&balance, LOOPS, around, &[1.0; 64], 16);
        let all = lists(&up, 5, 64);
        let mut open = Vec::new();
        for (k, list) in all.iter().enumerate() {
            let picked: Vec<Ticket> = (0..list.len() as u64).map(|i| pick(&mut up, 5, &ask(i))).collect();
            assert_eq!(
                picked.iter().map(|t| t.target).collect::<BTreeSet<_>>(),
                *list,
                "{} {k}",
                balance.name()
            );
            open.extend(picked);
        }
        assert_eq!((up.on(5).pick(&ask(0)), up.on(9).pick(&ask(0))), (PickOutcome::Full, PickOutcome::Full));
        assert_eq!(up.borrowed(), 64 - all[0].len() as u64);
        let outside = open.pop().unwrap();
        up.on(5).done(1, outside, None, None);
        assert_eq!(pick(&mut up, 5, &ask(1)).target, outside.target);
        let inside = open.swap_remove(0);
        up.on(5).done(1, inside, None, None);
        assert_eq!(pick(&mut up, 5, &ask(1)).target, inside.target);
    }
}

/// Targets that are passed over are left for those of other lists; if all are passed over, that yields and the subset is
/// used.
#[test]
fn passed_over_targets_are_left_for_the_next_subset() {
    let around = UpstreamConfig { pass_over_ns: S, ..plain() };
    let mut up = upstream(&Balance::Random, LOOPS, around, &[1.0; 32], 4);
    let all = lists(&up, 2, 32);
    let fail = |up: &mut Upstream, target: TargetId| {
        up.on(2).balancer().take(target);
        let ticket = Ticket { target, probe: false, met: 0, at_ns: 0 };
        up.on(2).done(0, ticket, Some(Kind::ConnectFailed), None);
    };
    all[0].iter().for_each(|&t| fail(&mut up, t));
    assert_eq!(picks(&mut up, 2, 300), all[1]);
    all[1..].iter().flatten().for_each(|&t| fail(&mut up, t));
    assert_eq!(picks(&mut up, 2, 300), all[0]);
    assert_eq!(picks(&mut up, 3, 300), lists(&up, 3, 32)[0], "another loop has reached them");
    up.tick(S);
    assert_eq!((picks(&mut up, 2, 300), up.borrowed()), (all[0].clone(), 300));
}

/// What a request excludes is left for the next list; if it excludes everything, the subset is used.
#[test]
fn excluded_targets_are_left_for_the_next_subset() {
    for balance in policies() {
        let mut up = upstream(&balance, LOOPS, plain(), &[1.0; 32], 4);
        let all = lists(&up, 1, 32);
        let mut exclude: Vec<TargetId> = Vec::new();
        for (k, list) in all.iter().enumerate() {
            let mut seen = BTreeSet::new();
            for i in 0..100 {
                seen.insert(pick(&mut up, 1, &Ask { exclude: &exclude, ..ask(i) }).target);
            }
            assert!(seen.is_subset(list), "{} list {k}", balance.name());
            let but_one: Vec<TargetId> = exclude.iter().chain(list).copied().skip(1).collect();
            let left = pick(&mut up, 1, &Ask { exclude: &but_one, ..ask(7) }).target;
            assert_eq!(left, exclude.first().copied().unwrap_or(*list.first().unwrap()));
            exclude.extend(list);
        }
        let again = pick(&mut up, 1, &Ask { exclude: &exclude, ..ask(8) }).target;
        assert!(all[0].contains(&again), "all are excluded, so that yields");
    }
}

/// While one request tries the only target inside, others borrow; the next trial is one inside again.
#[test]
fn a_target_on_probation_is_left_to_its_trial() {
    let eject = Some(Eject { consecutive: 1, base_ns: S, max_ns: S, max_percent: 100.0 });
    let around = UpstreamConfig { health: HealthConfig { eject, ..HealthConfig::default() }, ..plain() };
    let mut up = upstream(&least_conn(), LOOPS, around, &[1.0; 32], 4);
    let all = lists(&up, 0, 32);
    for _ in 0..8 {
        let ticket = pick(&mut up, 0, &ask(1));
        up.on(0).done(1, ticket, Some(Kind::Reset), None);
    }
    assert_eq!(picks(&mut up, 0, 100), all[1], "all inside are out");
    up.tick(2 * S);
    let trials: Vec<Ticket> = (0..8).map(|i| pick(&mut up, 0, &ask(i))).collect();
    assert!(trials.iter().all(|t| t.probe && all[0].contains(&t.target)));
    assert_eq!(picks(&mut up, 0, 100), all[1], "each inside is being tried");
    up.on(0).done(2 * S, trials[3], None, None);
    assert_eq!(picks(&mut up, 0, 100), BTreeSet::from([trials[3].target]));
}

/// A cookie leads outside, and is counted as borrowing; full or removed targets are not heeded.
#[test]
fn a_cookie_leads_outside() {
    let around = UpstreamConfig { max_in_flight: Some(2), ..plain() };
    let mut up = upstream(&least_conn(), LOOPS, around, &[1.0; 32], 4);
    let all = lists(&up, 0, 32);
    let (inside, outside) = (*all[0].first().unwrap(), *all[2].first().unwrap());
    let stick = |up: &mut Upstream, target| pick(up, 0, &Ask { sticky: Some(target), ..ask(1) }).target;
    assert_eq!((stick(&mut up, inside), up.borrowed()), (inside, 0));
    assert_eq!((stick(&mut up, outside), stick(&mut up, outside), up.borrowed()), (outside, outside, 2));
    assert!(all[0].contains(&stick(&mut up, outside)), "it is full");
    assert_eq!(up.in_flight(outside), Some(2));
    up.remove(1, outside);
    assert!(all[0].contains(&stick(&mut up, outside)));
    let drained = *all[3].first().unwrap();
    up.set_admin(1, drained, Admin::Drain);
    assert!(all[0].contains(&stick(&mut up, drained)));
    assert_eq!(up.borrowed(), 2);
}

fn checked(panic: f64, on_empty: OnEmpty) -> UpstreamConfig {
    let check = Some(Check {
        interval_ns: S,
        rise: 1,
        fall: 1,
        jitter: 0.0,
        fast_interval_ns: None,
        down_interval_ns: None,
        initial: Initial::Up,
    });
    UpstreamConfig { health: HealthConfig { check, panic, on_empty, ..HealthConfig::default() }, ..plain() }
}

fn run_checks(up: &mut Upstream, until: u64, passes: impl Fn(TargetId) -> bool) {
    while let Some(at) = up.next_check().filter(|&at| at <= until) {
        while let Some(t) = up.start_check(at) {
            up.check_result(at, t, passes(t));
        }
    }
}

/// A subset that is down as a whole is no panic while more than half of all targets are up; in a panic of all, each loop
/// uses its own subset, well or not.
#[test]
fn panic_is_judged_over_all_targets() {
    let mut up = upstream(&Balance::Random, LOOPS, checked(0.5, OnEmpty::Fail), &[1.0; 32], 4);
    let all = lists(&up, 1, 32);
    run_checks(&mut up, 2 * S, |t| !all[0].contains(&t));
    assert!(!up.health().is_ignored());
    assert_eq!(picks(&mut up, 1, 300), all[1]);
    run_checks(&mut up, 4 * S, |t| all[3].contains(&t));
    assert!(up.health().is_ignored(), "8 of 32");
    assert_eq!(picks(&mut up, 1, 300), all[0]);
    let mut up = upstream(&Balance::Random, LOOPS, checked(0.0, OnEmpty::Any), &[1.0; 32], 4);
    let last = *all[3].first().unwrap();
    run_checks(&mut up, 2 * S, |t| t == last);
    assert_eq!(picks(&mut up, 1, 30), BTreeSet::from([last]), "somewhere there is one");
    run_checks(&mut up, 4 * S, |_| false);
    assert_eq!(picks(&mut up, 1, 300), all[0], "nowhere is one, so any inside");
}

/// Weights hold within a subset, and a target of weight 0 is no target.
#[test]
fn weights_hold_within_a_subset() {
    let weights: Vec<f64> = (0..32).map(|i| f64::from(1 + i % 3)).collect();
    let mut up = upstream(&Balance::Random, LOOPS, plain(), &weights, 4);
    let own = lists(&up, 3, 32).swap_remove(0);
    let total: f64 = own.iter().map(|t| weights[t.index()]).sum();
    let mut seen = [0.0; 32];
    (0..80_000).for_each(|i| seen[pick(&mut up, 3, &ask(i)).target.index()] += 1.0 / 80_000.0);
    for target in &own {
        let want = weights[target.index()] / total;
        assert!((seen[target.index()] - want).abs() < 5.0 * (want / 80_000.0).sqrt(), "{seen:?}");
    }
    let heavy = *own.first().unwrap();
    own.iter().filter(|t| **t != heavy).for_each(|t| up.set_weight(0, *t, 0.0));
    assert_eq!(picks(&mut up, 3, 50), BTreeSet::from([heavy]));
}

/// A number below `most`, drawn.
fn roll(key: Key, at: u64, most: u64) -> u64 {
    key.nth(at).below(most)
}

/// Every policy picks a target that the rule allows, in its obvious form, with any set drained, full, passed over and
/// excluded: of the first list with a target that nothing bars; a pass-over yields after an exclusion. So none is empty
/// while any target may be picked.
#[test]
fn every_policy_in_a_subset_agrees_with_a_filter() {
    for balance in policies() {
        let (mut ranks, mut places) = ([0; 4], [0; 4]);
        for case in 0..400u64 {
            let draw = Key::new(5).with(case);
            let n = 4 + roll(draw, 0, 16);
            let weights: Vec<f64> = (0..n).map(|i| draw.with(i).below(3) as f64).collect();
            let around = UpstreamConfig { pass_over_ns: S, ..plain() };
            let subset = [Subset::Loops(LoopsArgs { min: 1, max: 3 }), DRAWN][case as usize % 2];
            let mut up = upstream(&balance, subset, around, &weights, 4);
            let some = |at: u64, most: u64| -> Vec<TargetId> {
                let list = draw.with(100 + at);
                (0..list.below(most + 1)).map(|i| TargetId(list.nth(i + 1).below(n) as u32)).collect()
            };
            let (excluded, over, full) = (some(1, 2 * n), some(2, n), some(3, n));
            for &target in &over {
                up.on(1).balancer().take(target);
                let ticket = Ticket { target, probe: false, met: 0, at_ns: 0 };
                up.on(1).done(0, ticket, Some(Kind::ConnectFailed), None);
            }
            full.iter().for_each(|&t| up.set_full(t, true));
            let rules: [&[&[TargetId]]; 4] = [&[&over, &excluded], &[&over], &[&excluded], &[]];
            let may = |t: &TargetId, rule: &[&[TargetId]]| {
                weights[t.index()] > 0.0 && !full.contains(t) && !rule.iter().any(|out| out.contains(t))
            };
            let all = lists(&up, 1, n as u32);
            let allowed = rules.iter().enumerate().find_map(|(rank, rule)| {
                let left = |list: &BTreeSet<TargetId>| {
                    list.iter().copied().filter(|t| may(t, rule)).collect::<Vec<_>>()
                };
                let place = all.iter().position(|list| !left(list).is_empty())?;
                ranks[rank] += 1;
                places[place] += 1;
                Some((place, left(&all[place])))
            });
            for i in 0..10 {
                let before = up.borrowed();
                match (up.on(1).pick(&Ask { exclude: &excluded, ..ask(i) }), &allowed) {
                    (PickOutcome::Target(ticket), Some((place, allowed))) => {
                        assert!(allowed.contains(&ticket.target), "{} case {case}", balance.name());
                        assert_eq!(up.borrowed() - before, u64::from(*place > 0));
                    }
                    (PickOutcome::Full, None) => assert!(full.iter().any(|t| weights[t.index()] > 0.0)),
                    (PickOutcome::Empty, None) => assert!(full.iter().all(|t| weights[t.index()] == 0.0)),
                    (other, allowed) => panic!("{}: {other:?} of {allowed:?}", balance.name()),
                }
            }
        }
        assert!(ranks.iter().chain(&places[..3]).all(|n| *n > 3), "each occurs: {ranks:?} {places:?}");
    }
}

/// The changes of a step: some leave, some join.
fn changes(exists: &mut Vec<bool>, draw: Key) -> Vec<TargetChange<'static>> {
    let mut all = Vec::new();
    for i in 0..1 + roll(draw, 0, 4) {
        let at = roll(draw.with(i), 0, exists.len() as u64) as usize;
        if exists[at] && roll(draw.with(i), 1, 2) == 0 {
            exists[at] = false;
            all.push(TargetChange::Remove(TargetId(at as u32)));
        } else {
            exists.push(true);
            let target = TargetId(exists.len() as u32 - 1);
            all.push(TargetChange::Add { target, weight: 1.0 + f64::from(target.0 % 2), name: "" });
        }
    }
    all
}

/// Through random changes of targets and health, each loop is shown what it should be, the counts are right, and loops
/// that receive their subset from an owner are shown the same.
#[test]
fn every_loop_is_shown_its_subset_through_any_change() {
    for balance in policies() {
        let names = TargetNames::default();
        let mut up = upstream(&balance, LOOPS, plain(), &[1.0; 20], 4);
        let mut owner = Subsets::new(LOOPS, 4, Key::new(6), &[true; 20], &names);
        let mut alone = Upstream::new(&balance, plain(), &[1.0; 20], &NAMES, 0, Key::new(4).with(2));
        alone.follow_subsets(0, owner.table(), 2);
        let (mut exists, mut open) = (vec![true; 20], Vec::new());
        for step in 0..400u64 {
            let (draw, now_ns) = (Key::new(3).with(step), step);
            match roll(draw, 9, 4) {
                0 => {
                    let admin = [Admin::Up, Admin::Drain][roll(draw, 8, 2) as usize];
                    let target = TargetId(roll(draw, 7, exists.len() as u64) as u32);
                    up.set_admin(now_ns, target, admin);
                    alone.set_admin(now_ns, target, admin);
                }
                1 => {
                    let changes = changes(&mut exists, draw);
                    up.change_targets(now_ns, &changes);
                    alone.follow_subsets(now_ns, owner.change(changes.iter().copied()), 2);
                    alone.change_named(now_ns, changes.iter().copied(), &names, None);
                }
                _ => {
                    if let PickOutcome::Target(ticket) = up.on(2).pick(&ask(step)) {
                        open.push(ticket);
                    }
                    if open.len() > 10 {
                        let ticket = open.swap_remove(roll(draw, 6, 10) as usize);
                        up.on(2).done(now_ns, ticket, None, None);
                    }
                }
            }
            for on in 0..4 {
                let roster = up.on(on).balancer().roster().clone();
                let shown: BTreeSet<TargetId> = lists(&up, on, roster.len())
                    .into_iter()
                    .map(|list| list.into_iter().filter(|t| roster.is_open(*t)).collect::<BTreeSet<_>>())
                    .find(|list| !list.is_empty())
                    .unwrap_or_default();
                let seen = |t: &TargetId| roster.effective()[t.index()] > 0.0;
                let seen: BTreeSet<TargetId> = TargetId::all(roster.len()).filter(seen).collect();
                assert_eq!(seen, shown, "{} loop {on}, step {step}", balance.name());
            }
            let other = up.on(2).balancer().roster().clone();
            assert_eq!(alone.roster().effective(), other.effective(), "{} step {step}", balance.name());
        }
        let counts = up.on(2).balancer().total_in_flight();
        assert!(counts == open.len() as u64 || counts == 0, "{}", balance.name());
        open.drain(..).for_each(|ticket| up.on(2).cancelled(999, ticket));
        assert_eq!(up.total_in_flight(), 0);
    }
}

/// A loop that borrows for single requests goes on with what its policy has learnt: the answers of probes inside.
#[test]
fn borrowing_forgets_no_answer() {
    let prequal = policies().into_iter().find(|b| matches!(b, Balance::Prequal(_))).unwrap();
    let mut up = upstream(&prequal, LOOPS, plain(), &[1.0; 32], 4);
    let own: Vec<TargetId> = lists(&up, 0, 32)[0].iter().copied().collect();
    for (i, &target) in own.iter().enumerate() {
        let reading = crate::prequal::Reading { in_flight: 1, latency_ns: 1000 * (8 - i as u64) };
        up.balancer().prequal().unwrap().probed(0, Key::new(1), target, reading);
    }
    let outside = pick(&mut up, 0, &Ask { exclude: &own, ..ask(1) }).target;
    assert!(!own.contains(&outside));
    assert!(up.balancer().prequal().unwrap().pooled() >= 6);
    assert_eq!(pick(&mut up, 0, &ask(2)).target, own[7], "it is known as the fastest");
}

/// Another policy on the same loop, and no subset any more.
#[test]
fn a_new_policy_keeps_the_subset() {
    let mut up = upstream(&Balance::Random, LOOPS, plain(), &[1.0; 32], 1);
    let owner = Subsets::new(LOOPS, 4, Key::new(6), &[true; 32], &TargetNames::default());
    up.follow_subsets(0, owner.table(), 3);
    let own = lists(&up, 3, 32).swap_remove(0);
    up.change_policy(1, &least_conn(), &NAMES, |_| 0, Key::new(1));
    assert_eq!(picks(&mut up, 0, 100), own);
    up.follow_subsets(2, owner.table(), 0);
    assert_eq!(picks(&mut up, 0, 100), lists(&up, 0, 32)[0], "another loop's");
    up.drop_subsets(3);
    assert_eq!((picks(&mut up, 0, 2000).len(), up.subsets(), up.borrowed()), (32, None, 0));
    let mut later = Upstream::new(&Balance::Random, plain(), &[1.0; 32], &NAMES, 0, Key::new(4));
    later.keep_subsets(0, LOOPS, 4, &NAMES, Key::new(6));
    (1..4).for_each(|on| later.add_loop(&Balance::Random, &[1.0; 32], &NAMES, 0, Key::new(on)));
    assert_eq!(picks(&mut later, 3, 100), own, "a loop that is added later has its own");
}

/// Made again from a record, picks of a loop with a subset are the same, through changes of the targets.
#[test]
fn a_subset_can_be_made_again() {
    let names = TargetNames::default();
    let new = || Upstream::new(&least_conn(), plain(), &[1.0; 20], &NAMES, 0, Key::new(4));
    let mut owner = Subsets::new(LOOPS, 4, Key::new(6), &[true; 20], &names);
    let (mut first, mut again) = (new(), new());
    let mut exists = vec![true; 20];
    for step in 0..200u64 {
        let changes = if step == 0 { Vec::new() } else { changes(&mut exists, Key::new(3).with(step)) };
        let table = owner.change(changes.iter().copied()).clone();
        first.follow_subsets(step, &table, 1);
        let health = Snapshot::new(new().health());
        let health = Some(&health).filter(|_| changes.is_empty());
        first.change_named(step, changes.iter().copied(), &names, health);
        let record = [
            Operation::Prefer { now_ns: step, table: Some(table), on: 1 },
            Operation::Change {
                now_ns: step,
                changes: changes.into_iter().map(Into::into).collect(),
                health: health.cloned(),
            },
        ];
        record.iter().for_each(|operation| _ = again.act(operation));
        for i in 0..5 {
            let ask = ask(step * 10 + i);
            assert_eq!(Choice::from(first.pick(&ask)), Choice::from(again.pick(&ask)));
        }
    }
    again.act(&Operation::Prefer { now_ns: 300, table: None, on: 1 });
    assert!(again.subsets().is_none());
}

/// A fleet may begin empty and become so again; targets that come at once are divided at once.
#[test]
fn an_empty_fleet_has_subsets_later() {
    for balance in policies() {
        for subset in [LOOPS, DRAWN] {
            let mut up = upstream(&balance, subset, plain(), &[], 4);
            assert_eq!(up.on(3).pick(&ask(0)), PickOutcome::Empty);
            for round in 0..3 {
                let join = |t| TargetChange::Add { target: TargetId(t), weight: 1.0, name: "" };
                up.change_targets(round, &(0..32).map(join).collect::<Vec<_>>());
                let all = lists(&up, 3, 32);
                assert_eq!(all[0].len(), if subset == LOOPS { 8 } else { 6 });
                assert_eq!(picks(&mut up, 3, 400), all[0], "{}", balance.name());
                up.change_targets(
                    round,
                    &(0..32).map(|t| TargetChange::Remove(TargetId(t))).collect::<Vec<_>>(),
                );
                assert_eq!(up.on(3).pick(&ask(0)), PickOutcome::Empty);
            }
            assert_eq!(up.borrowed(), 0);
        }
    }
}

/// Targets that come and go in other subsets do not disturb a rotation, and those that are moved are counted.
#[test]
fn a_change_elsewhere_disturbs_no_rotation() {
    let balance = Balance::RoundRobin(RoundRobinArgs { start: Start::Random });
    let mut up = upstream(&balance, LOOPS, plain(), &[1.0; 32], 4);
    let all = lists(&up, 0, 32);
    let turn = |up: &mut Upstream| -> Vec<TargetId> { (0..8).map(|i| pick(up, 2, &ask(i)).target).collect() };
    let sequence = turn(&mut up);
    for (i, &target) in all[1].iter().enumerate().take(2) {
        up.change_targets(i as u64, &[TargetChange::Remove(target)]);
        assert_eq!(turn(&mut up), sequence);
    }
    assert_eq!(up.subset_moves(), 1, "eight and six are too far apart");
    assert_eq!(up.subsets().unwrap().sizes().least, 7);
    assert_eq!(picks(&mut up, 0, 8), lists(&up, 0, 32)[0], "the first subset gave one away");
}
