//! The operator's word on targets during a run: states and weights, which balancers with these targets see at once. A target
//! that goes and comes again has the same ones.

use crate::code::Code;
use crate::code::changes::{ChangeTables, SetTarget};
use crate::state::acts::{Act, ActKind, Subject};
use crate::state::changes::Changes;
use crate::state::failures::choose;
use crate::state::seer::{GuardedSeer, Move, Seer};
use std::collections::{BTreeMap, BTreeSet};
use weir_plan::fleets::Member;
use weir_plan::{ChangeKind, TargetState};
use weir_policy::TargetId;
use weir_policy::eligibility::Admin;
use weir_stats::Key;

/// A target of a balancer: the balancer's view, and the place in its list.
type Target = (u32, u32);

/// What the operator has said of a target, each with the number of the change.
#[derive(Clone, Copy, Debug, Default)]
struct Setting {
    state: Option<(TargetState, u32)>,
    weight: Option<(f64, u32)>,
}

impl Setting {
    fn is_out(&self) -> bool {
        self.state.is_some_and(|(state, _)| state == TargetState::Out)
    }

    fn admin(&self) -> Admin {
        match self.state.map(|(state, _)| state) {
            Some(TargetState::Up) => Admin::Forced,
            Some(TargetState::Drain) => Admin::Drain,
            Some(TargetState::Eject) => Admin::Down,
            Some(TargetState::Out | TargetState::File) | None => Admin::Up,
        }
    }
}

/// What the operator has said of all targets.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    of: BTreeMap<Target, Setting>,
    /// Those that are out, and would be targets otherwise.
    kept_out: BTreeSet<Target>,
    /// What each change that ends has set, as indices of its targets.
    chosen: BTreeMap<u32, Vec<usize>>,
}

impl Changes {
    /// The operator says something of the targets that a change draws, or of all of them.
    pub(super) fn set(&mut self, tables: &ChangeTables, change: u32, key: Key, order: u64, now_ns: u64) {
        let ChangeKind::Set { state, weight, k, which, .. } = tables.events[change as usize].what else {
            return;
        };
        let targets = tables.set.get(&change).map_or(&[][..], Vec::as_slice);
        let is_up = |member: Member| self.fleets[member.fleet as usize].up.contains(&member.number);
        let there = (0..targets.len()).filter(|at| targets[*at].member.is_none_or(is_up)).collect();
        let chosen = choose(there, k, which, key);
        let value = match state {
            _ if weight.is_some() => weight,
            Some(TargetState::Up) => Some(1.0),
            Some(TargetState::Drain | TargetState::Eject | TargetState::Out) => Some(0.0),
            Some(TargetState::File) | None => None,
        };
        let mut places: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for of in chosen.iter().map(|at| &targets[*at]) {
            for target in &of.places {
                let setting = self.settings.of.entry(*target).or_default();
                match state {
                    Some(TargetState::File) => setting.state = None,
                    Some(state) => setting.state = Some((state, change)),
                    None => {}
                }
                setting.weight = weight.map(|weight| (weight, change)).or(setting.weight);
                places.entry(target.0).or_default().push(target.1);
            }
            self.concerned.extend(of.member);
            self.report_setting(of, change, value, now_ns);
        }
        self.settings.chosen.insert(change, chosen);
        self.show_settings(&places, order, now_ns);
    }

    /// What a change said is taken back, where nothing else was said since.
    pub(super) fn reset(&mut self, tables: &ChangeTables, change: u32, order: u64, now_ns: u64) {
        let targets = tables.set.get(&change).map_or(&[][..], Vec::as_slice);
        let mut places: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for of in self.settings.chosen.remove(&change).unwrap_or_default().into_iter().map(|at| &targets[at])
        {
            let mut is_over = false;
            for target in &of.places {
                let Some(setting) = self.settings.of.get_mut(target) else { continue };
                let state = setting.state.take_if(|(_, by)| *by == change);
                let weight = setting.weight.take_if(|(_, by)| *by == change);
                if state.is_some() || weight.is_some() {
                    is_over = true;
                    places.entry(target.0).or_default().push(target.1);
                }
            }
            if is_over {
                self.report_setting(of, change, None, now_ns);
            }
        }
        self.show_settings(&places, order, now_ns);
    }

    /// Reports what is said of a target: its weight, or whether it gets requests; `None`: it is as the file says.
    fn report_setting(&mut self, of: &SetTarget, change: u32, value: Option<f64>, now_ns: u64) {
        let subject = of.member.map_or(Subject::Node(of.node), Subject::Member);
        if let Some(acts) = &mut self.acts {
            let (what, change) = (ActKind::Set, Some(change));
            acts.report(Act { at_ns: now_ns, change, subject, what, by: None, value });
        }
    }

    /// A balancer sees members come and go. Returns whether its targets change.
    pub(super) fn apply_moves(
        &mut self,
        code: &Code,
        tables: &ChangeTables,
        view: u32,
        mut moves: Vec<Move>,
        now_ns: u64,
        mut to: Seer<'_>,
    ) -> bool {
        let site = &tables.views[view as usize];
        if !self.settings.of.is_empty() {
            moves.retain(|of| !self.stays_out((view, site.places[&of.member()]), *of));
        }
        self.note_seen(code, view, &moves, now_ns);
        let is_changed = to.apply(code, site, &moves, now_ns);
        let new: Vec<u32> = moves
            .iter()
            .filter(|of| matches!(of, Move::Add(_)))
            .map(|of| site.places[&of.member()])
            .collect();
        match &mut to {
            Seer::Guarded(to) => self.tell(view, &new, code, site.list, now_ns, to),
            Seer::Plain(_) => {
                new.iter().for_each(|place| self.report_eligible(code, view, *place, true, now_ns));
            }
        }
        self.note_transitions(code, view, now_ns, to);
        is_changed
    }

    /// Whether a move concerns a target that is out: then it is noted for later.
    fn stays_out(&mut self, target: Target, of: Move) -> bool {
        let is_out = self.settings.of.get(&target).is_some_and(Setting::is_out);
        match of {
            Move::Add(_) if is_out => drop(self.settings.kept_out.insert(target)),
            Move::Remove(_) if is_out => return self.settings.kept_out.remove(&target),
            _ => {}
        }
        is_out
    }

    /// A balancer sees what the operator says of targets. Returns whether that may change which it picks.
    pub(super) fn apply_settings(
        &mut self,
        code: &Code,
        tables: &ChangeTables,
        view: u32,
        places: &[u32],
        now_ns: u64,
        mut to: Seer<'_>,
    ) -> bool {
        let site = &tables.views[view as usize];
        let (mut moves, mut changed) = (Vec::new(), Vec::new());
        for &place in places {
            let is_out = self.settings.of.get(&(view, place)).is_some_and(Setting::is_out);
            let is_new = match is_out {
                true if to.has(place) => self.settings.kept_out.insert((view, place)),
                true => continue,
                false if self.settings.kept_out.remove(&(view, place)) => true,
                false => continue,
            };
            if is_new {
                changed.push((place, !is_out));
                let of = |member| if is_out { Move::Remove(member) } else { Move::Add(member) };
                moves.extend(site.members[place as usize].map(of));
            }
        }
        self.note_seen(code, view, &moves, now_ns);
        to.apply_places(code, site, &changed, now_ns);
        if let Seer::Guarded(to) = &mut to {
            self.tell(view, places, code, site.list, now_ns, to);
        }
        self.note_transitions(code, view, now_ns, to);
        true
    }

    /// Tells a balancer what the operator says of its targets at these places.
    fn tell(&self, view: u32, places: &[u32], code: &Code, list: u32, now_ns: u64, to: &mut GuardedSeer<'_>) {
        if self.settings.of.is_empty() {
            return;
        }
        let settings = places.iter().filter_map(|&place| {
            let setting = self.settings.of.get(&(view, place))?;
            let target = to.targets.target(place).map(TargetId)?;
            let own = code.weights[list as usize][place as usize];
            Some((target, setting.admin(), setting.weight.map_or(own, |(weight, _)| weight)))
        });
        let settings: Vec<_> = settings.collect();
        to.upstream.set_by_hand(now_ns, &settings);
    }
}
