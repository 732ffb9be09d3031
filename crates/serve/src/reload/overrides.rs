//! Targets as an operator sets them (`docs/spec/operating.md#targets-by-hand`), and the health of targets for a
//! successor.

use super::reloader::{Reloader, lock};
use crate::exchange::NodeId;
use crate::health::monitor::Monitor;
use crate::health::overrides::{ByHand, Overrides, Setting};
use crate::health::snapshot::Snapshot;
use crate::threads::mail::ToLoop;
use std::collections::BTreeSet;
use std::fmt;
use weir_plan::ranges::{wrong_weight, wrong_weights};
use weir_plan::{Edge, Point, Spec, label, target_labels};
use weir_policy::eligibility::Admin;

/// The settings of a target by hand: two, each of which lasts by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SetTarget {
    /// `None`: unchanged.
    pub state: Option<TargetState>,
    /// Its weight; `None`: unchanged.
    pub weight: Option<TargetWeight>,
    /// How long what is set here lasts, ns; `None`: until it is revoked.
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
    /// As its health has it.
    File,
}

/// The weight of a target set by hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TargetWeight {
    /// This one.
    Number(f64),
    /// That of the file.
    File,
}

/// Why a target cannot be set by hand, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotSet {
    /// There is no such target: what there is instead.
    Unknown(String),
    /// It cannot be meant.
    Refused(String),
}

impl fmt::Display for CannotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (CannotSet::Unknown(why) | CannotSet::Refused(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for CannotSet {}

impl Reloader {
    /// Sets targets by hand, on all loops once it returns. A name may belong to several, and a site means all its
    /// members: all of them are set.
    pub fn set_target(&self, pool: &str, target: &str, set: SetTarget) -> Result<(), CannotSet> {
        let point = lock(&self.state).current.blueprint.point.clone();
        let meant = meant(&point, pool, target)?;
        self.check(&point, &meant, set).map_err(CannotSet::Refused)?;
        meant.iter().for_each(|at| self.override_target(&at.0, &at.1, set));
        // The owner has sent it to the loops before it answered; theirs come after they have read that.
        (0..2).for_each(|_| drop(self.process.ask_all(|_| ())));
        Ok(())
    }

    /// The weights that these targets would have with the others of their balancers are held to what the file is.
    ///
    /// # Errors
    /// What is wrong, in words.
    fn check(&self, point: &Point, meant: &BTreeSet<(String, String)>, set: SetTarget) -> Result<(), String> {
        let number = match set.weight {
            None => return Ok(()),
            Some(TargetWeight::Number(weight)) => Some(weight),
            Some(TargetWeight::File) => None,
        };
        if let Some(why) = number.and_then(wrong_weight) {
            return Err(format!("the weight {why}"));
        }
        if number == Some(0.0) && set.state == Some(TargetState::Up) {
            return Err("a target of weight 0 gets no request, so it cannot be set up as well".to_owned());
        }
        let pools: BTreeSet<&String> = meant.iter().map(|(pool, _)| pool).collect();
        let by_hand = self.by_hand();
        for id in 0..point.nodes.len() as NodeId {
            let node = &point.nodes[id as usize];
            let (Spec::Lb(lb), Edge::List(list)) = (&point.specs[node.spec as usize], &node.to) else {
                continue;
            };
            let pool = label(point, id);
            if !pools.contains(&pool) {
                continue;
            }
            let weight = |(target, name): (&NodeId, String)| {
                let of_file = match point.specs[point.nodes[*target as usize].spec as usize] {
                    Spec::Weight { weight } => weight,
                    _ => 1.0,
                };
                let at = (pool.clone(), name);
                let known = by_hand.get(&at).and_then(|b| b.weight).map(|setting| setting.value);
                if meant.contains(&at) { number.unwrap_or(of_file) } else { known.unwrap_or(of_file) }
            };
            let targets = point.lists[*list as usize].iter().zip(target_labels(point, id));
            let weights: Vec<f64> = targets.map(weight).collect();
            if let Some(why) = wrong_weights(&lb.balance, &weights) {
                return Err(format!("{pool:?}: {why}"));
            }
        }
        Ok(())
    }

    /// What is set by hand now; nothing if the owner does not answer.
    fn by_hand(&self) -> Overrides {
        let known = self.process.ask_all(|lp| lp.monitor().map(|monitor| monitor.by_hand()));
        known.into_iter().flatten().flatten().next().unwrap_or_default()
    }

    fn override_target(&self, pool: &str, target: &str, set: SetTarget) {
        let at = (pool.to_owned(), target.to_owned());
        let set_by_hand = move |monitor: &Monitor| {
            let until_ns = set.for_ns.map(|ns| monitor.core.now().saturating_add(ns));
            let before = monitor.by_hand().get(&at).copied().unwrap_or_default();
            let by_hand = ByHand {
                state: match set.state {
                    None => before.state,
                    Some(state) => admin(state).map(|value| Setting { value, until_ns }),
                },
                weight: match set.weight {
                    None => before.weight,
                    Some(TargetWeight::Number(value)) => Some(Setting { value, until_ns }),
                    Some(TargetWeight::File) => None,
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

fn admin(state: TargetState) -> Option<Admin> {
    match state {
        TargetState::Up => Some(Admin::Forced),
        TargetState::Drain => Some(Admin::Drain),
        TargetState::Eject => Some(Admin::Down),
        TargetState::File => None,
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
        return Err(CannotSet::Unknown(format!(
            "no balancer is called {pool:?}; there are {}",
            listed(known)
        )));
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
    Err(CannotSet::Unknown(format!(
        "no target of {pool:?} is called {target:?}; there are {}",
        listed(known)
    )))
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
