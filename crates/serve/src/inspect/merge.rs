//! The answers of all threads become one view: health from the owner, counts and estimates from the loops.

use super::gather::{
    ListenerReport, OwnerReport, PoolHealth, TargetHealth, TargetReport, ThreadView, concurrency,
};
use super::view::{
    CheckView, EventView, ListenerView, LoopView, OnLoop, PoolView, QueueView, RecentView, State,
    SubsetsView, TargetView, View,
};
use super::words;
use crate::exchange::NodeId;
use crate::graph::blueprint::Blueprint;
use crate::health::monitor::{Event, TargetPast};
use crate::metrics::{BriefCounts, CheckResult, LabelValue, RecentCounts, now_unix_ms};
use crate::nodes::Id;
use crate::threads::watchdog;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use weir_plan::{Lb, Scope, Spec, label};
use weir_policy::eligibility::Admin;
use weir_policy::{SubsetSizes, SubsetTable, TargetId};

/// By balancer and target: the state on each thread.
#[derive(Default)]
struct OnLoops<'a> {
    targets: BTreeMap<(Id, TargetId), Vec<(u32, &'a TargetReport)>>,
    /// Attempts so far, and failed ones, over all threads.
    attempts: BTreeMap<(Id, TargetId), (u64, u64, BriefCounts)>,
    /// The last minutes, by balancer and by listener.
    pools: BTreeMap<Id, [RecentCounts; 2]>,
    listeners: BTreeMap<&'a str, [RecentCounts; 2]>,
}

/// Adds what a thread has counted.
fn add<K: Ord>(all: &mut BTreeMap<K, [RecentCounts; 2]>, key: K, more: &[RecentCounts; 2]) {
    match all.entry(key) {
        Entry::Vacant(place) => {
            place.insert(more.clone());
        }
        Entry::Occupied(mut place) => {
            place.get_mut().iter_mut().zip(more).for_each(|(sum, more)| sum.add(more));
        }
    }
}

fn recent(counts: Option<&[RecentCounts; 2]>) -> Vec<RecentView> {
    let view = |counts: &RecentCounts| RecentView {
        seconds: counts.over_s,
        rate_per_s: counts.per_s(),
        share_5xx: counts.failed_share(),
        p50_ms: counts.quantile_s(0.5).map(|s| s * 1e3),
        p99_ms: counts.quantile_s(0.99).map(|s| s * 1e3),
    };
    counts.into_iter().flatten().map(view).collect()
}

/// The view; the owner's answer is the last. `carried`: the load of each loop.
pub(super) fn view(said: Vec<Option<ThreadView>>, carried: &[usize], by_loop: bool) -> View {
    let owner = said.len().saturating_sub(1);
    let silent = (0..).zip(&said).filter(|(_, said)| said.is_none());
    let silent = silent.map(|(number, _)| format!("{} does not answer", watchdog::name(number, owner)));
    let clients = |number: usize| said.get(number)?.as_ref().map(|said| said.clients);
    let on_loop = |(number, carries): (u32, &usize)| LoopView {
        number,
        clients: clients(number as usize),
        carries: *carries,
    };
    // A loop that has drained it already does not report it.
    let leaving = said.iter().flatten().flat_map(|said| said.leaving.iter().cloned());
    let leaving = leaving.collect::<BTreeMap<usize, _>>().into_values();
    let threads = View {
        silent: silent.collect(),
        leaving: leaving.collect(),
        loops: (0..).zip(carried).map(on_loop).collect(),
        ..View::default()
    };
    let Some(owned) = said.last().and_then(|said| said.as_ref()?.of_owner.as_ref()) else { return threads };
    let mut on_loops = OnLoops::default();
    for (number, said) in (0u32..).zip(&said) {
        for (id, targets) in said.iter().flat_map(|said| &said.pools) {
            for target in targets {
                on_loops.targets.entry((*id, target.index)).or_default().push((number, target));
            }
        }
        for (id, targets) in said.iter().flat_map(|said| &said.attempts) {
            for of_thread in targets {
                let all = on_loops.attempts.entry((*id, of_thread.target)).or_default();
                (all.0, all.1) = (all.0 + of_thread.begun, all.1 + of_thread.failed);
                all.2.add(&of_thread.brief);
            }
        }
        for (id, counts) in said.iter().flat_map(|said| &said.recent) {
            add(&mut on_loops.pools, *id, counts);
        }
        for (name, counts) in said.iter().flat_map(|said| &said.listeners) {
            add(&mut on_loops.listeners, &**name, counts);
        }
    }
    let instants = Instants::new(owned.now_ns);
    let plan = &*owned.plan;
    View {
        point: Some(plan.point.clone()),
        generation: plan.generation,
        listeners: owned.listeners.iter().map(|said| listener(plan, said, &on_loops)).collect(),
        pools: owned
            .pools
            .iter()
            .filter_map(|health| pool(owned, health, &on_loops, instants, by_loop))
            .collect(),
        events: owned.events.iter().rev().map(|one| event(one, instants)).collect(),
        queues: owned
            .queues
            .iter()
            .map(|(id, inside, waiting)| queue(plan, *id, *inside, *waiting))
            .collect(),
        ..threads
    }
}

/// The instants of what threads say, ms since 1970.
#[derive(Clone, Copy)]
struct Instants {
    now_ns: u64,
    now_unix_ms: u64,
}

impl Instants {
    fn new(now_ns: u64) -> Instants {
        Instants { now_ns, now_unix_ms: now_unix_ms() }
    }

    fn unix_ms(self, at_ns: u64) -> u64 {
        self.now_unix_ms.saturating_sub(self.now_ns.saturating_sub(at_ns) / 1_000_000)
    }
}

fn event(of: &Event, instants: Instants) -> EventView {
    let Event { at_ns, pool, state, reason, count, targets, check } = of.clone();
    EventView { at_unix_ms: instants.unix_ms(at_ns), pool, state, reason, count, targets, check }
}

fn checked(past: &TargetPast, instants: Instants) -> Option<CheckView> {
    let (at_ns, result) = past.last_check.as_ref()?;
    Some(CheckView {
        at_unix_ms: instants.unix_ms(*at_ns),
        result: result.as_ref().map_or_else(|why| why.result(), |()| CheckResult::Passed).name(),
        words: result.as_ref().map_or_else(ToString::to_string, |()| "passed".to_owned()),
    })
}

fn listener(plan: &Blueprint, said: &ListenerReport, on_loops: &OnLoops<'_>) -> ListenerView {
    let name = label(&plan.point, said.node);
    let free = said.port.and_then(|port| Some(format!("{}:{port}", said.addr.strip_suffix(":0")?)));
    ListenerView {
        node: said.node,
        recent: recent(on_loops.listeners.get(name.as_str())),
        name,
        addr: free.unwrap_or_else(|| said.addr.clone()),
        connections: said.connections,
        has_target: said.has_target,
    }
}

fn queue(plan: &Blueprint, node: NodeId, inside: u32, waiting: u64) -> QueueView {
    let name = label(&plan.point, node);
    QueueView { node, name, inside, concurrency: concurrency(plan, node), waiting }
}

fn pool(
    owned: &OwnerReport,
    health: &PoolHealth,
    on_loops: &OnLoops<'_>,
    instants: Instants,
    by_loop: bool,
) -> Option<PoolView> {
    let plan = &*owned.plan;
    let Spec::Lb(lb) = plan.spec(health.node) else { return None };
    let target = |known: &TargetHealth| {
        let key = (health.id, known.index);
        let of_loops = on_loops.targets.get(&key).map(Vec::as_slice).unwrap_or_default();
        let attempts = on_loops.attempts.get(&key);
        TargetView {
            attempts: attempts.map(|(begun, ..)| *begun),
            failed: attempts.map(|(_, failed, _)| *failed),
            rate_per_s: attempts.map(|(.., brief)| brief.per_s()),
            share_5xx: attempts.and_then(|(.., brief)| brief.failed_share()),
            mean_ms: attempts.and_then(|(.., brief)| brief.mean_ms()),
            since_unix_ms: known.past.since_unix_ms,
            subset: health.subsets.as_ref().and_then(|table| table.number_of(known.index)),
            last_check: checked(&known.past, instants),
            ..target(lb, known, owned.now_ns, health.is_ignored, of_loops, by_loop)
        }
    };
    // In the order of the file: later targets may have the index of a removed one.
    let places: BTreeMap<NodeId, usize> = plan.list(health.node).iter().copied().zip(0..).collect();
    let mut targets: Vec<&TargetHealth> = health.targets.iter().collect();
    targets.sort_by_cached_key(|target| places.get(&target.node).copied());
    Some(PoolView {
        node: health.node,
        name: label(&plan.point, health.node),
        policy: lb.balance.name(),
        scope: match lb.scope {
            Scope::Loop => "loop",
            Scope::Process => "process",
            Scope::Lagged { .. } => "lagged",
        },
        eligible: health.eligible,
        of: health.of,
        panic: health.is_ignored,
        waiting: health.waiting,
        subset: health.subsets.as_ref().map(|table| subsets(table, by_loop)),
        recent: recent(on_loops.pools.get(&health.id)),
        targets: targets.into_iter().map(target).collect(),
    })
}

fn subsets(table: &SubsetTable, by_loop: bool) -> SubsetsView {
    let SubsetSizes { count, least, most } = table.sizes();
    let loops = if by_loop { table.loops() } else { 0 };
    SubsetsView { count, least, most, loops: (0..loops).map(|on| table.number_on(on)).collect() }
}

fn target(
    lb: &Lb,
    known: &TargetHealth,
    now_ns: u64,
    is_ignored: bool,
    of_loops: &[(u32, &TargetReport)],
    by_loop: bool,
) -> TargetView {
    let counted = of_loops.iter().map(|(_, said)| u64::from(said.in_flight)).sum();
    let estimates: Vec<f64> = of_loops.iter().filter_map(|(_, said)| said.estimate_ns).collect();
    let mean = || estimates.iter().sum::<f64>() / estimates.len() as f64 / 1e6;
    let (state, mut why) = judge(lb, known, is_ignored, of_loops);
    let left_s = |until_ns: Option<u64>| until_ns.map(|at| at.saturating_sub(now_ns) as f64 / 1e9);
    let admin_left_s = left_s(known.by_hand.state.and_then(|state| state.until_ns));
    let weight_left_s = left_s(known.by_hand.weight.and_then(|weight| weight.until_ns));
    why.extend(words::by_hand(known, admin_left_s, weight_left_s));
    let on_loop = |(number, said): &(u32, &TargetReport)| OnLoop {
        number: *number,
        weight: said.weight,
        in_flight: said.in_flight.into(),
        estimate_ms: said.estimate_ns.map(|ns| ns / 1e6),
        passed_over: said.passed_over,
    };
    TargetView {
        index: known.index.0,
        subset: None,
        node: known.node,
        name: known.name.clone(),
        addr: known.addr.clone(),
        since_unix_ms: None,
        last_check: None,
        state,
        is_withdrawn: false,
        picked: known.may_be_picked && known.weight * known.ramp > 0.0,
        why,
        admin: match known.admin {
            Admin::Up => "file",
            Admin::Forced => "up",
            Admin::Drain => "drain",
            Admin::Down => "eject",
        },
        admin_left_s,
        weight: known.weight,
        share: is_ramping(lb, known).then_some(known.ramp),
        limit: lowered(lb, known),
        file_weight: known.file_weight,
        weight_by_hand: known.by_hand.weight.is_some(),
        weight_left_s,
        in_flight: known.inside.map(u64::from).or_else(|| (!of_loops.is_empty()).then_some(counted)),
        estimate_ms: (!estimates.is_empty()).then(mean),
        load: of_loops.iter().find_map(|(_, said)| said.load),
        attempts: None,
        failed: None,
        rate_per_s: None,
        share_5xx: None,
        mean_ms: None,
        loops: if by_loop { of_loops.iter().map(on_loop).collect() } else { Vec::new() },
    }
}

/// The limit of requests in flight at each target.
fn most(lb: &Lb) -> Option<u32> {
    lb.max_in_flight.into_iter().chain(lb.max_connections).min()
}

/// That of a target, if its ramp lowers it.
fn lowered(lb: &Lb, known: &TargetHealth) -> Option<u32> {
    known.limit.zip(most(lb)).filter(|(limit, most)| limit < most).map(|(limit, _)| limit)
}

fn is_ramping(lb: &Lb, known: &TargetHealth) -> bool {
    known.ramp < 1.0 || lowered(lb, known).is_some()
}

/// The word for a target, and the sentences.
fn judge(
    lb: &Lb,
    known: &TargetHealth,
    is_ignored: bool,
    of_loops: &[(u32, &TargetReport)],
) -> (State, Vec<String>) {
    let mut why: Vec<String> = known.against.iter().map(|reason| words::why(*reason).to_owned()).collect();
    let mut states: Vec<State> = known.against.iter().map(|reason| words::state(*reason)).collect();
    let mut also = |state: State, sentence: String| {
        states.push(state);
        why.push(sentence);
    };
    if known.is_drained {
        also(State::Drain, words::DRAINED.to_owned());
    } else if known.weight <= 0.0 {
        also(State::NoWeight, "its weight is 0".to_owned());
    }
    let over = of_loops.iter().filter(|(_, said)| said.passed_over).count();
    if over > 0 {
        let on = if of_loops.len() > 1 {
            format!(" on {over} of {} loops", of_loops.len())
        } else {
            String::new()
        };
        also(State::PassedOver, format!("passed over{on}: a connection to it failed a moment ago"));
    }
    if let (Some(limit), Some(inside)) = (known.limit, known.inside)
        && inside >= limit
    {
        also(State::Full, format!("full: {inside} of {limit} requests in flight"));
    }
    if is_ramping(lb, known) && known.may_be_picked {
        also(State::SlowStart, words::slow_start(known.ramp, lowered(lb, known).zip(most(lb))));
    }
    if known.admin == Admin::Forced && known.may_be_picked {
        why.push("kept up by hand, regardless of its checks".to_owned());
        states.retain(|state| !matches!(state, State::Ejected | State::Probation | State::Down));
    }
    if is_ignored && !known.against.is_empty() && known.may_be_picked {
        why.push("picked all the same: too few targets are left, so health is ignored".to_owned());
    }
    (states.into_iter().min().unwrap_or(State::Up), why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::overrides::{ByHand, Setting};
    use weir_policy::config::Balance;
    use weir_policy::eligibility::Reason;

    fn well() -> TargetHealth {
        TargetHealth {
            index: TargetId(0),
            node: 0,
            name: "a".to_owned(),
            weight: 1.0,
            file_weight: 1.0,
            is_drained: false,
            ramp: 1.0,
            may_be_picked: true,
            admin: Admin::Up,
            by_hand: ByHand::default(),
            against: Vec::new(),
            inside: None,
            limit: Some(2),
            addr: None,
            past: TargetPast::default(),
        }
    }

    fn said(passed_over: bool, in_flight: u32, estimate_ns: Option<f64>) -> TargetReport {
        TargetReport { index: TargetId(0), weight: 1.0, in_flight, estimate_ns, load: None, passed_over }
    }

    fn word(known: &TargetHealth, is_ignored: bool, over: bool) -> (&'static str, String) {
        let lb = Lb { max_in_flight: Some(2), ..Lb::plain(Balance::Random) };
        let (one, other) = (said(over, 0, None), said(false, 0, None));
        let (state, why) = judge(&lb, known, is_ignored, &[(0, &one), (1, &other)]);
        (state.word(), why.join("; "))
    }

    #[test]
    fn a_target_is_what_is_worst_about_it_and_all_is_said() {
        assert_eq!(word(&well(), false, false), ("up", String::new()));
        let ejected = TargetHealth {
            against: vec![Reason::AdminDrain, Reason::EjectedConsecutive],
            may_be_picked: false,
            ..well()
        };
        let (state, why) = word(&ejected, false, true);
        assert_eq!(state, "ejected");
        for part in ["drained by hand", "failed too often in a row", "passed over on 1 of 2 loops"] {
            assert!(why.contains(part), "{why}");
        }
        let panics = TargetHealth { against: vec![Reason::ChecksFailed], ..well() };
        assert!(word(&panics, true, false).1.contains("picked all the same"));
        assert_eq!(word(&TargetHealth { inside: Some(2), ..well() }, false, false).0, "full");
        let ramps = |ramp, inside| TargetHealth { ramp, limit: Some(1), inside, ..well() };
        let (state, why) = word(&ramps(0.25, None), false, false);
        assert_eq!(state, "slow start");
        assert_eq!(why, "slow start: 25 % of its weight so far, and 1 of 2 requests in flight");
        assert_eq!(word(&ramps(1.0, None), false, false).0, "slow start", "its limit comes last");
        assert_eq!(word(&ramps(0.25, Some(1)), false, false).0, "full");
        assert_eq!(
            word(&TargetHealth { ramp: 0.25, ..well() }, false, false).1,
            "slow start: 25 % of its weight so far"
        );
        let forced = TargetHealth { admin: Admin::Forced, against: vec![Reason::ChecksFailed], ..well() };
        let (state, why) = word(&forced, false, false);
        assert!(state == "up" && why.contains("kept up by hand"), "{state}: {why}");
        assert_eq!(word(&TargetHealth { weight: 0.0, ..well() }, false, false).0, "weight 0");
        let drained = TargetHealth { weight: 0.0, is_drained: true, ..well() };
        assert_eq!(word(&drained, false, false), ("draining", words::DRAINED.to_owned()));
    }

    #[test]
    fn what_is_set_by_hand_is_shown_with_what_is_left_of_it() {
        let lb = Lb::plain(Balance::Random);
        let by_hand = ByHand {
            state: Some(Setting { value: Admin::Drain, until_ns: None }),
            weight: Some(Setting { value: 5.0, until_ns: Some(62_000_000_000) }),
        };
        let known = TargetHealth { admin: Admin::Drain, weight: 5.0, by_hand, ..well() };
        let view = target(&lb, &known, 2_000_000_000, false, &[], false);
        assert_eq!((view.admin, view.admin_left_s), ("drain", None));
        assert_eq!((view.weight_by_hand, view.weight_left_s, view.file_weight), (true, Some(60.0), 1.0));
        let said = "its weight is set by hand for another 60 s; that of the file is 1";
        assert_eq!(view.why, [said]);
        let state = Some(Setting { value: Admin::Drain, until_ns: Some(2_500_000_000) });
        let known = TargetHealth { by_hand: ByHand { state, weight: None }, ..known };
        let view = target(&lb, &known, 2_000_000_000, false, &[], false);
        assert_eq!((view.admin_left_s, &view.why[0][..]), (Some(0.5), "its state by hand ends in 1 s"));
        let view = target(&lb, &well(), 0, false, &[], false);
        assert_eq!((view.weight_by_hand, view.why.len()), (false, 0));
    }

    #[test]
    fn counts_add_up_and_estimates_are_the_mean() {
        let lb = Lb::plain(Balance::Random);
        let (a, b) = (said(false, 2, Some(4e6)), said(false, 3, Some(8e6)));
        let view = target(&lb, &well(), 0, false, &[(0, &a), (1, &b)], true);
        assert_eq!((view.in_flight, view.estimate_ms, view.loops.len()), (Some(5), Some(6.0), 2));
        let unknown = said(false, 0, None);
        let view = target(&lb, &well(), 0, false, &[(0, &unknown)], false);
        assert_eq!((view.in_flight, view.estimate_ms, view.loops.len()), (Some(0), None, 0));
        assert_eq!(target(&lb, &well(), 0, false, &[], false).in_flight, None, "nobody has answered");
        let limited = TargetHealth { inside: Some(7), ..well() };
        assert_eq!(
            target(&lb, &limited, 0, false, &[(0, &a)], false).in_flight,
            Some(7),
            "permits are exact"
        );
    }
}
