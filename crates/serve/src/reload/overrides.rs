//! Targets as an operator sets them (`docs/spec/operating.md#targets-by-hand`), and the health of targets for a
//! successor.

use super::reloader::{Reloader, lock};
use crate::exchange::NodeId;
use crate::health::monitor::Monitor;
use crate::health::overrides::{ByHand, Overrides};
use crate::health::snapshot::Snapshot;
use crate::threads::mail::ToLoop;
use std::collections::BTreeSet;
use std::fmt;
use weir_plan::{Edge, Point, Spec, label, target_labels};
use weir_policy::eligibility::Admin;

/// The settings of a target by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SetTarget {
    /// `None`: unchanged.
    pub state: Option<TargetState>,
    /// Its weight; `None`: unchanged.
    pub weight: Option<f64>,
    /// The duration, ns; `None`: until it is revoked.
    pub for_ns: Option<u64>,
}

/// The state of a target set by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetState {
    /// Up, regardless of checks.
    Up,
    /// No new requests.
    Drain,
    /// Down.
    Eject,
    /// As the file and its health have it; its weight too.
    File,
}

/// Why a target cannot be set by hand, in words: what there is instead of an unknown one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotSet(String);

impl fmt::Display for CannotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotSet {}

impl Reloader {
    /// Sets targets by hand, on all loops once it returns. A name may belong to several, and a site means all its
    /// members: all of them are set.
    pub fn set_target(&self, pool: &str, target: &str, set: SetTarget) -> Result<(), CannotSet> {
        let point = lock(&self.state).current.blueprint.point.clone();
        let meant = meant(&point, pool, target)?;
        if set.weight.is_some_and(|w| !w.is_finite() || w < 0.0) {
            return Err(CannotSet("a weight is a number, 0 or more".to_owned()));
        }
        meant.iter().for_each(|at| self.override_target(&at.0, &at.1, set));
        // The owner has sent it to the loops before it answered; theirs come after they have read that.
        (0..2).for_each(|_| drop(self.process.ask_all(|_| ())));
        Ok(())
    }

    fn override_target(&self, pool: &str, target: &str, set: SetTarget) {
        let at = (pool.to_owned(), target.to_owned());
        // The last setting holds, and its duration.
        let set_by_hand = move |monitor: &Monitor| {
            let until_ns = set.for_ns.map(|ns| monitor.core.now().saturating_add(ns));
            let before = monitor.by_hand().get(&at).copied().unwrap_or_default();
            let by_hand = match set.state {
                Some(TargetState::File) => ByHand::default(),
                state => ByHand {
                    state: state.map(admin).or(before.state),
                    weight: set.weight.or(before.weight),
                    until_ns,
                },
            };
            monitor.set_by_hand(Overrides::from([(at.clone(), by_hand)]));
        };
        self.tell_monitor(self.process.owner(), set_by_hand.clone());
        self.tell_monitor(self.process.built_in(), set_by_hand);
    }

    /// The health of targets, for a successor.
    pub fn snapshot(&self) -> Snapshot {
        let known = self.process.ask_all(|lp| lp.monitor().map(|monitor| monitor.snapshot()));
        known.into_iter().flatten().flatten().next().unwrap_or_default()
    }

    /// Restores a predecessor's knowledge of targets.
    pub fn heed(&self, snapshot: &Snapshot) {
        let snapshot = snapshot.clone();
        self.tell_monitor(self.process.owner(), move |monitor| monitor.heed(&snapshot));
    }

    fn tell_monitor(&self, of: u32, what: impl FnOnce(&Monitor) + Send + 'static) {
        let tell = ToLoop::Ask(Box::new(move |lp| {
            if let Some(monitor) = lp.monitor() {
                what(monitor);
            }
        }));
        self.process.tell(of, tell);
    }
}

fn admin(state: TargetState) -> Admin {
    match state {
        TargetState::Up => Admin::Forced,
        TargetState::Drain => Admin::Drain,
        TargetState::Eject => Admin::Down,
        TargetState::File => Admin::Up,
    }
}

/// The selected targets, by balancer and target: those of these names, or all of these sites; otherwise an error that
/// lists the existing ones.
fn meant(point: &Point, pool: &str, target: &str) -> Result<BTreeSet<(String, String)>, CannotSet> {
    let is_lb = |id: &NodeId| matches!(point.specs[point.nodes[*id as usize].spec as usize], Spec::Lb(_));
    let site =
        |id: NodeId| point.sites.get(point.nodes[id as usize].site as usize).map(|site| &site.label[..]);
    let lbs: Vec<NodeId> = (0..point.nodes.len() as NodeId).filter(is_lb).collect();
    let of_pool: Vec<NodeId> =
        lbs.iter().copied().filter(|id| label(point, *id) == pool || site(*id) == Some(pool)).collect();
    if of_pool.is_empty() {
        let known: BTreeSet<String> = lbs.iter().map(|id| label(point, *id)).collect();
        return Err(CannotSet(format!("no balancer is called {pool:?}; there are {}", listed(known))));
    }
    let (mut meant, mut known) = (BTreeSet::new(), BTreeSet::new());
    for id in of_pool {
        let Edge::List(list) = point.nodes[id as usize].to else { continue };
        for (node, name) in point.lists[list as usize].iter().zip(target_labels(point, id)) {
            if name == target || site(*node) == Some(target) {
                meant.insert((label(point, id), name.clone()));
            }
            known.insert(name);
        }
    }
    if !meant.is_empty() {
        return Ok(meant);
    }
    Err(CannotSet(format!("no target of {pool:?} is called {target:?}; there are {}", listed(known))))
}

/// Some names, and the number of others.
fn listed(names: BTreeSet<String>) -> String {
    const MOST: usize = 20;
    let some = names.iter().take(MOST).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 if names.is_empty() => "none".to_owned(),
        0 => some,
        more => format!("{some} and {more} more"),
    }
}
