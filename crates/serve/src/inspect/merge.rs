//! The answers of all threads become one view: health from the owner, counts and estimates from the loops.

use super::gather::{ListenerSaid, OwnerSaid, PoolHealth, Said, TargetHealth, TargetSaid, concurrency};
use super::view::{ListenerView, LoopView, OnLoop, PoolView, QueueView, State, TargetView, View};
use super::words;
use crate::control::watchdog;
use crate::exchange::NodeId;
use crate::graph::blueprint::Blueprint;
use std::collections::BTreeMap;
use weir_policy::eligibility::Admin;
use weir_topology::plan::{Lb, Scope, Spec, label};

/// By balancer and target: what each thread has of it.
type OnLoops<'a> = BTreeMap<(NodeId, u32), Vec<(u32, &'a TargetSaid)>>;

/// The view; the owner's answer is the last. `carried`: what each loop carries.
pub(super) fn view(plan: &Blueprint, said: Vec<Option<Said>>, carried: &[usize], by_loop: bool) -> View {
    let owner = said.len().saturating_sub(1);
    let silent = (0..).zip(&said).filter(|(_, said)| said.is_none());
    let silent = silent.map(|(number, _)| format!("{} does not answer", watchdog::name(number, owner)));
    let mut on_loops = OnLoops::new();
    for (number, said) in (0u32..).zip(&said) {
        for (node, target) in
            said.iter().flat_map(|said| &said.pools).flat_map(|(n, all)| all.iter().map(move |t| (n, t)))
        {
            on_loops.entry((*node, target.index)).or_default().push((number, target));
        }
    }
    let nothing = OwnerSaid::default();
    let of_owner = said.last().and_then(|said| said.as_ref()?.of_owner.as_ref()).unwrap_or(&nothing);
    let clients = |number: usize| said.get(number)?.as_ref().map(|said| said.clients);
    View {
        generation: plan.epoch,
        draining: false,
        silent: silent.collect(),
        listeners: of_owner.listeners.iter().map(|said| listener(plan, said)).collect(),
        pools: of_owner
            .pools
            .iter()
            .filter_map(|(id, health)| pool(plan, *id, health, &on_loops, by_loop))
            .collect(),
        queues: of_owner
            .queues
            .iter()
            .map(|(id, inside, waiting)| queue(plan, *id, *inside, *waiting))
            .collect(),
        loops: (0u32..)
            .zip(carried)
            .map(|(number, carries)| LoopView {
                number,
                clients: clients(number as usize),
                carries: *carries,
            })
            .collect(),
    }
}

fn listener(plan: &Blueprint, said: &ListenerSaid) -> ListenerView {
    let addr = match (plan.spec(said.node), said.port) {
        (Spec::Listen(listen), Some(port)) => match listen.addr.strip_suffix(":0") {
            Some(host) => format!("{host}:{port}"),
            None => listen.addr.clone(),
        },
        (Spec::Listen(listen), None) => listen.addr.clone(),
        _ => String::new(),
    };
    ListenerView {
        node: said.node,
        name: said.name.clone(),
        addr,
        connections: said.connections,
        has_target: said.has_target,
    }
}

fn queue(plan: &Blueprint, node: NodeId, inside: u32, waiting: u64) -> QueueView {
    let name = label(&plan.point, node);
    QueueView { node, name, inside, concurrency: concurrency(plan, node), waiting }
}

fn pool(
    plan: &Blueprint,
    node: NodeId,
    health: &PoolHealth,
    on_loops: &OnLoops<'_>,
    by_loop: bool,
) -> Option<PoolView> {
    let Spec::Lb(lb) = plan.spec(node) else { return None };
    let (list, names) = (plan.targets(node), plan.labels(node));
    let target = |known: &TargetHealth| {
        let at = known.index as usize;
        let of_loops = on_loops.get(&(node, known.index)).map(Vec::as_slice).unwrap_or_default();
        let mut view = target(lb, known, health.is_ignored, of_loops, by_loop);
        view.node = list.get(at).copied().flatten().unwrap_or(node);
        view.name = names.get(at).cloned().unwrap_or_else(|| format!("#{at}"));
        view
    };
    Some(PoolView {
        node,
        name: label(&plan.point, node),
        policy: lb.balance.name(),
        scope: if lb.scope == Scope::Process { "process" } else { "loop" },
        eligible: health.eligible,
        of: health.of,
        panic: health.is_ignored,
        waiting: health.waiting,
        targets: health.targets.iter().map(target).collect(),
    })
}

fn target(
    lb: &Lb,
    known: &TargetHealth,
    is_ignored: bool,
    of_loops: &[(u32, &TargetSaid)],
    by_loop: bool,
) -> TargetView {
    let counted = || of_loops.iter().map(|(_, said)| said.in_flight).sum::<Option<u64>>();
    let in_flight =
        known.inside.map(u64::from).or_else(|| if of_loops.is_empty() { None } else { counted() });
    let estimates: Vec<f64> = of_loops.iter().filter_map(|(_, said)| said.estimate_ns).collect();
    let mean = || estimates.iter().sum::<f64>() / estimates.len() as f64 / 1e6;
    let (state, why) = judge(lb, known, is_ignored, of_loops);
    let on_loop = |(number, said): &(u32, &TargetSaid)| OnLoop {
        number: *number,
        weight: said.weight,
        in_flight: said.in_flight,
        estimate_ms: said.estimate_ns.map(|ns| ns / 1e6),
        passed_over: said.passed_over,
    };
    TargetView {
        index: known.index,
        node: 0,
        name: String::new(),
        state,
        picked: known.may_be_picked && known.weight > 0.0,
        why,
        admin: match known.admin {
            Admin::Up => "file",
            Admin::Forced => "up",
            Admin::Drain => "drain",
            Admin::Down => "eject",
        },
        weight: known.weight,
        in_flight,
        estimate_ms: (!estimates.is_empty()).then(mean),
        attempts: None,
        failed: None,
        loops: if by_loop { of_loops.iter().map(on_loop).collect() } else { Vec::new() },
    }
}

/// The word for a target, and the sentences.
fn judge(
    lb: &Lb,
    known: &TargetHealth,
    is_ignored: bool,
    of_loops: &[(u32, &TargetSaid)],
) -> (State, Vec<String>) {
    let mut why: Vec<String> = known.against.iter().map(|reason| words::why(*reason).to_owned()).collect();
    let mut states: Vec<State> = known.against.iter().map(|reason| words::state(*reason)).collect();
    let mut also = |state: State, sentence: String| {
        states.push(state);
        why.push(sentence);
    };
    if known.weight <= 0.0 {
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
    let most = lb.max_in_flight.into_iter().chain(lb.max_connections).min();
    if let (Some(most), Some(inside)) = (most, known.inside)
        && inside >= most
    {
        also(State::Full, format!("full: {inside} of {most} requests in flight"));
    }
    if known.ramp < 1.0 && known.against.is_empty() {
        also(State::SlowStart, format!("slow start: {:.0} % of its weight yet", known.ramp * 100.0));
    }
    if is_ignored && !known.against.is_empty() && known.may_be_picked {
        why.push("picked all the same: too few are left, health is ignored".to_owned());
    }
    (states.into_iter().min().unwrap_or(State::Up), why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::config::Balance;
    use weir_policy::eligibility::Reason;

    fn well() -> TargetHealth {
        let (index, weight, ramp, may_be_picked) = (0, 1.0, 1.0, true);
        TargetHealth { index, weight, ramp, may_be_picked, admin: Admin::Up, against: vec![], inside: None }
    }

    fn said(passed_over: bool, in_flight: Option<u64>, estimate_ns: Option<f64>) -> TargetSaid {
        TargetSaid { index: 0, weight: 1.0, in_flight, estimate_ns, passed_over }
    }

    fn word(known: &TargetHealth, is_ignored: bool, over: bool) -> (&'static str, String) {
        let lb = Lb { max_in_flight: Some(2), ..Lb::plain(Balance::Random) };
        let (one, other) = (said(over, None, None), said(false, None, None));
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
        assert_eq!(
            word(&TargetHealth { ramp: 0.25, ..well() }, false, false).1,
            "slow start: 25 % of its weight yet"
        );
        assert_eq!(word(&TargetHealth { weight: 0.0, ..well() }, false, false).0, "weight 0");
    }

    #[test]
    fn counts_add_up_and_estimates_are_the_mean() {
        let lb = Lb::plain(Balance::Random);
        let (a, b) = (said(false, Some(2), Some(4e6)), said(false, Some(3), Some(8e6)));
        let view = target(&lb, &well(), false, &[(0, &a), (1, &b)], true);
        assert_eq!((view.in_flight, view.estimate_ms, view.loops.len()), (Some(5), Some(6.0), 2));
        let nobody = said(false, None, None);
        let view = target(&lb, &well(), false, &[(0, &nobody)], false);
        assert_eq!((view.in_flight, view.estimate_ms, view.loops.len()), (None, None, 0));
        assert_eq!(target(&lb, &well(), false, &[], false).in_flight, None, "nobody has answered");
        let limited = TargetHealth { inside: Some(7), ..well() };
        assert_eq!(target(&lb, &limited, false, &[(0, &a)], false).in_flight, Some(7), "permits are exact");
    }
}
