//! Least connections over all targets.
//!
//! - Idea: send the request where the fewest are in flight; by weight, where in flight / weight is least. Idle targets
//!   are equally loaded, so they get the shares of their weights from the rule for ties.
//! - Signal: requests in flight from this balancer, counted from the pick until the whole response is back.
//! - State: a count per target, bitmaps per level ([`Levels`]), one set of them per distinct weight.
//! - Cost of a decision: O(distinct weights) for random ties, for any number of targets; a scan of n/64 words at most
//!   for the others, and O(equally loaded) for `rotate` with unequal weights. A change of one target's weight is
//!   O(distinct weights), or O(n) if the weight is new to it.
//! - Ties: `random` uniformly, or by weight where weights differ; `first` the lowest index; `rotate` the next after the
//!   last chosen, or the next of a smooth weighted rotation among the equally loaded (nginx).
//! - Pathologies: a target that fails fast has the fewest in flight and draws all traffic (`error_hold` keeps a failed
//!   request counted); several balancers over the same targets with `first` pile onto the same few (the Timelike posts'
//!   "linear growth"); a new, empty target gets a burst.
//! - Decided in: `choose`, with unequal weights `choose_by_weight` (`by_weight.rs`).
//! - Source: HAProxy `leastconn`, nginx `least_conn`; Kingsbury, Timelike `lb-min-conn` (`ties="first"`).
//! - In the language: `lb.least_conn(targets, ties="random", error_hold=0*s)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/least_conn.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`; the naive twin in `examples/decisions/naive.rs`.

mod by_weight;

use crate::TargetId;
use crate::balance::Ask;
use crate::balance::policy::{Policy, Traits};
use crate::balance::roster::Roster;
use crate::balance::ties::Ties;
use crate::ds::levels::Levels;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_stats::Key;

/// The arguments of `lb.least_conn`, without the targets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeastConnArgs {
    /// Among equals.
    pub ties: Ties,
    /// How much longer a failed request keeps counting, ns.
    pub error_hold_ns: u64,
}

/// Targets of one weight: their levels, and the global index of each.
#[derive(Clone, Debug)]
struct Class {
    weight: f64,
    levels: Levels,
    members: Vec<TargetId>,
}

/// A target among the classes.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    class: u32,
    /// Its index in the class.
    at: u32,
    /// Its value in the smooth rotation; only for `rotate`.
    turn: f64,
}

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct LeastConn {
    ties: Ties,
    cursor: u32,
    /// Indices that there is room for: some may be of no target.
    n: u32,
    /// All targets, if none differ in weight; otherwise empty.
    alike: Levels,
    weight: f64,
    /// The targets of each weight, if some differ; otherwise empty.
    classes: Vec<Class>,
    /// Of each target; empty if none differ.
    position: Vec<Position>,
    error_hold_ns: u64,
    /// Barred targets that a pick met; empty between picks.
    aside: Vec<(usize, u32)>,
}

impl LeastConn {
    /// A balancer over targets of these weights; one of weight 0 is never picked. `draw` starts the rotation.
    pub fn new(weights: &[f64], ties: Ties, error_hold_ns: u64, draw: Key) -> LeastConn {
        let n = weights.len() as u32;
        let cursor = if n > 0 { draw.below(u64::from(n)) as u32 } else { 0 };
        let mut distinct: Vec<f64> = weights.iter().copied().filter(|w| *w > 0.0).collect();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        let mut lb = LeastConn {
            ties,
            cursor,
            n,
            alike: Levels::new(weights.iter().map(|w| *w > 0.0).collect()),
            weight: distinct.first().copied().unwrap_or(1.0),
            classes: Vec::new(),
            position: Vec::new(),
            error_hold_ns,
            aside: Vec::new(),
        };
        if distinct.len() > 1 {
            lb.divide(weights, &distinct);
            lb.start_turns(weights);
        }
        lb
    }

    /// A class for each weight.
    fn divide(&mut self, weights: &[f64], distinct: &[f64]) {
        self.alike = Levels::new(Vec::new());
        self.position = vec![Position::default(); weights.len()];
        for (c, &weight) in distinct.iter().enumerate() {
            // Targets of weight 0 are in the first class, absent, so that they can be counted.
            let members: Vec<TargetId> = TargetId::all(self.n)
                .filter(|i| weights[i.index()] == weight || c == 0 && weights[i.index()] == 0.0)
                .collect();
            for (at, &i) in members.iter().enumerate() {
                self.position[i.index()] = Position { class: c as u32, at: at as u32, turn: 0.0 };
            }
            let levels = Levels::new(members.iter().map(|&i| weights[i.index()] > 0.0).collect());
            self.classes.push(Class { weight, levels, members });
        }
    }

    /// Replaces the weights, of these and perhaps of more targets; counts stay.
    pub fn refresh(&mut self, weights: &[f64]) {
        let n = weights.len() as u32;
        if self.only_come_and_go(weights) {
            for (target, &weight) in (0..).zip(weights) {
                self.alike.set_present(target, weight > 0.0);
            }
            return;
        }
        let divides = self.classes.is_empty();
        self.name_members();
        if n > self.n {
            let (class, from) = (&mut self.classes[0], self.n);
            class.members.extend((from..n).map(TargetId));
            class.levels.grow(class.members.len() as u32);
            let at = |t: u32| class.members.len() as u32 - (n - t);
            self.position.extend((from..n).map(|t| Position { class: 0, at: at(t), turn: 0.0 }));
            self.n = n;
        }
        self.reweigh(weights);
        self.tidy();
        if divides {
            self.start_turns(weights);
        } else {
            self.bound_turns(weights);
        }
    }

    /// Whether targets that did not differ still do not, except for those that may be picked no more or may be again:
    /// then classes are of no use, as for most changes of health.
    fn only_come_and_go(&self, weights: &[f64]) -> bool {
        let alike = self.classes.is_empty() && weights.len() as u32 <= self.n;
        alike && weights.iter().all(|&w| w <= 0.0 || w == self.weight)
    }

    /// Sets the weights of all targets. With 0 a target stays in its class, absent. Those that go to another class go
    /// there together: members are kept in order, and to insert one costs as much as to insert all.
    fn reweigh(&mut self, weights: &[f64]) {
        let mut moves: BTreeMap<usize, Vec<(TargetId, u32)>> = BTreeMap::new();
        for (target, &weight) in (0..).map(TargetId).zip(weights) {
            let (from, at) = self.locate(target);
            let class = &mut self.classes[from];
            if weight <= 0.0 || class.weight == weight {
                class.levels.set_present(at, weight > 0.0);
                continue;
            }
            let count = class.levels.count(at);
            class.levels.set_present(at, false);
            class.levels.assign(at, 0);
            moves.entry(self.class_of(weight)).or_default().push((target, count));
        }
        for (to, moved) in moves {
            self.insert_members(to, &moved);
            for (target, count) in moved {
                // It was inserted.
                let Ok(at) = self.classes[to].members.binary_search(&target) else { continue };
                let position = &mut self.position[target.index()];
                (position.class, position.at) = (to as u32, at as u32);
                self.classes[to].levels.assign(at as u32, count);
                self.classes[to].levels.set_present(at as u32, true);
            }
        }
    }

    /// The class of a weight; new, if there is none.
    fn class_of(&mut self, weight: f64) -> usize {
        self.classes.iter().position(|c| c.weight == weight).unwrap_or_else(|| {
            self.classes.push(Class { weight, levels: Levels::new(Vec::new()), members: Vec::new() });
            self.classes.len() - 1
        })
    }

    /// Makes these members of a class, absent and without counts, unless they are. Members stay in order, for `first`.
    fn insert_members(&mut self, class: usize, new: &[(TargetId, u32)]) {
        let of = &mut self.classes[class];
        let mut members = of.members.clone();
        members.extend(new.iter().map(|(target, _)| *target));
        members.sort_unstable();
        members.dedup();
        if members.len() == of.members.len() {
            return;
        }
        let old = std::mem::replace(&mut of.members, members);
        let before: Vec<Option<u32>> =
            of.members.iter().map(|member| old.binary_search(member).ok().map(|at| at as u32)).collect();
        let is_present = |at: &Option<u32>| at.is_some_and(|at| of.levels.is_present(at));
        let mut levels = Levels::new(before.iter().map(is_present).collect());
        for (i, at) in (0..).zip(&before) {
            levels.assign(i, at.map_or(0, |at| of.levels.count(at)));
        }
        of.levels = levels;
        for (i, member) in (0..).zip(&of.members) {
            let place = &mut self.position[member.index()];
            if place.class == class as u32 {
                place.at = i;
            }
        }
    }

    /// Stores the positions, which targets that do not differ do without.
    fn name_members(&mut self) {
        if self.classes.is_empty() {
            self.position = (0..self.n).map(|t| Position { class: 0, at: t, turn: 0.0 }).collect();
            let (levels, members) = (std::mem::take(&mut self.alike), TargetId::all(self.n).collect());
            self.classes.push(Class { weight: self.weight, levels, members });
        }
    }

    /// Drops classes without targets, and the tables that a single class does without.
    fn tidy(&mut self) {
        let mut used = vec![false; self.classes.len()];
        self.position.iter().for_each(|p| used[p.class as usize] = true);
        if used.contains(&true) && used.contains(&false) {
            let moved: Vec<u32> = used
                .iter()
                .scan(0, |left, &u| {
                    let at = *left;
                    *left += u32::from(u);
                    Some(at)
                })
                .collect();
            self.position.iter_mut().for_each(|p| p.class = moved[p.class as usize]);
            let mut used = used.into_iter();
            self.classes.retain(|_| used.next() == Some(true));
        }
        // The members of a single class are all targets, in order.
        if self.classes.len() == 1
            && let Some(only) = self.classes.pop()
        {
            (self.alike, self.weight, self.position) = (only.levels, only.weight, Vec::new());
        }
    }

    /// The additional time for which a failed request is counted, ns.
    pub fn error_hold_ns(&self) -> u64 {
        self.error_hold_ns
    }

    /// Requests in flight at a target.
    pub fn in_flight(&self, target: TargetId) -> u32 {
        if self.classes.is_empty() {
            return self.alike.count(target.0);
        }
        let (class, at) = self.locate(target);
        self.classes[class].levels.count(at)
    }

    /// Sets how many are in flight at a target, as all loops count them.
    pub fn set_count(&mut self, target: TargetId, count: u32) {
        if target.0 >= self.n {
            return;
        }
        let (class, at) = self.place(target);
        let levels = if self.classes.is_empty() { &mut self.alike } else { &mut self.classes[class].levels };
        levels.assign(at, count);
    }

    /// Requests in flight at all targets.
    pub fn total_in_flight(&self) -> u64 {
        TargetId::all(self.n).map(|t| u64::from(self.in_flight(t))).sum()
    }

    /// Class and index there of a target.
    fn locate(&self, target: TargetId) -> (usize, u32) {
        let Position { class, at, .. } = self.position[target.index()];
        (class as usize, at)
    }

    /// As [`LeastConn::locate`], whether some differ or not.
    fn place(&self, target: TargetId) -> (usize, u32) {
        if self.classes.is_empty() { (0, target.0) } else { self.locate(target) }
    }

    fn is_present(&self, place: (usize, u32)) -> bool {
        let (class, at) = place;
        let levels = if self.classes.is_empty() { &self.alike } else { &self.classes[class].levels };
        levels.is_present(at)
    }

    fn set_present(&mut self, place: (usize, u32), present: bool) {
        let (class, at) = place;
        let levels = if self.classes.is_empty() { &mut self.alike } else { &mut self.classes[class].levels };
        levels.set_present(at, present);
    }

    /// Chooses and counts a target; `None` if there is none.
    #[inline(always)]
    pub fn pick(&mut self, draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        let target =
            if exclude.is_empty() { self.choose(draw)? } else { self.choose_without(draw, exclude)? };
        self.count(target);
        Some(target)
    }

    /// Chooses and counts a target that is not barred; `None` if there is none.
    ///
    /// Barred targets are taken out as they come up, and put back: targets that are barred because they are full have
    /// much in flight, so that few come up.
    #[cold]
    pub fn pick_where(&mut self, draw: Key, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        if self.ties == Ties::Rotate && !self.classes.is_empty() {
            return self.turn_where(barred);
        }
        let mut aside = std::mem::take(&mut self.aside);
        let mut chosen = self.choose_again(draw);
        while let Some(target) = chosen.filter(|&t| barred(t)) {
            let place = self.place(target);
            self.set_present(place, false);
            aside.push(place);
            // A new draw each time, otherwise the neighbour of a barred target would be taken too often.
            chosen = self.choose_again(draw.with(aside.len() as u64));
        }
        aside.drain(..).for_each(|place| self.set_present(place, true));
        self.aside = aside;
        chosen.inspect(|&t| self.take(t))
    }

    /// Counts a request at a target that was chosen elsewhere.
    #[inline(never)]
    pub fn take(&mut self, target: TargetId) {
        self.count(target);
    }

    #[inline(always)]
    fn count(&mut self, target: TargetId) {
        if self.classes.is_empty() {
            self.alike.up(target.0);
        } else {
            self.count_in_class(target);
        }
        let next = target.0 + 1;
        self.cursor = if next == self.n { 0 } else { next };
    }

    /// A request has come back, or its hold has ended.
    #[inline(always)]
    pub fn release(&mut self, target: TargetId) {
        if self.classes.is_empty() {
            self.alike.down(target.0);
        } else {
            self.release_in_class(target);
        }
    }

    #[inline(never)]
    fn count_in_class(&mut self, target: TargetId) {
        let (class, at) = self.locate(target);
        self.classes[class].levels.up(at);
    }

    #[inline(never)]
    fn release_in_class(&mut self, target: TargetId) {
        let (class, at) = self.locate(target);
        self.classes[class].levels.down(at);
    }

    /// As `choose`, for rare cases: `choose` must be inlined, and is only if this is not.
    #[inline(never)]
    fn choose_again(&mut self, draw: Key) -> Option<TargetId> {
        self.choose(draw)
    }

    #[inline(always)]
    fn choose(&mut self, draw: Key) -> Option<TargetId> {
        if !self.classes.is_empty() {
            return self.choose_by_weight(draw);
        }
        if self.alike.is_empty() {
            return None;
        }
        Some(match self.ties {
            Ties::Random => TargetId(self.alike.pick_random(draw)),
            Ties::First => TargetId(self.alike.next_from(0)),
            Ties::Rotate => TargetId(self.alike.next_from(self.cursor)),
        })
    }

    /// As `choose`, without the excluded, which are few: they are taken out and put back.
    #[cold]
    fn choose_without(&mut self, draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        let mut out = std::mem::take(&mut self.aside);
        let n = self.n;
        for &t in exclude.iter().filter(|&&t| t.0 < n) {
            let place = self.place(t);
            if self.is_present(place) {
                self.set_present(place, false);
                out.push(place);
            }
        }
        let chosen = self.choose_again(draw);
        out.drain(..).for_each(|place| self.set_present(place, true));
        self.aside = out;
        chosen.or_else(|| self.choose_again(draw))
    }
}

impl Policy for LeastConn {
    type Args = LeastConnArgs;
    const NAME: &'static str = "lb.least_conn";
    const TRAITS: Traits = Traits { counts: true, is_inlined: true, ..Traits::PLAIN };

    fn build(args: &LeastConnArgs, roster: &Roster, draw: Key) -> LeastConn {
        LeastConn::new(roster.effective(), args.ties, args.error_hold_ns, draw)
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster.effective());
    }

    fn follow_few(&mut self, _now_ns: u64, roster: &Roster, changed: &[TargetId]) {
        let weights = roster.effective();
        let is_alike = |target: &TargetId| [0.0, self.weight].contains(&weights[target.index()]);
        if !self.classes.is_empty() || !changed.iter().all(is_alike) {
            return self.refresh(weights);
        }
        if roster.len() > self.n {
            // Room for more, absent, since to make it costs a look at all.
            self.n = roster.len() + roster.len() / 8;
            self.alike.grow(self.n);
        }
        for target in changed {
            self.alike.set_present(target.0, weights[target.index()] > 0.0);
        }
    }

    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(ask.draw, barred)
    }

    #[inline]
    fn ask(&mut self, ask: &Ask) -> Option<TargetId> {
        LeastConn::pick(self, ask.draw, ask.exclude)
    }

    #[inline(always)]
    fn pick(&mut self, draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        LeastConn::pick(self, draw, exclude)
    }

    #[inline]
    fn take(&mut self, target: TargetId) {
        LeastConn::take(self, target);
    }

    #[inline(always)]
    fn release(&mut self, target: TargetId) {
        LeastConn::release(self, target);
    }

    #[inline]
    fn error_hold_ns(&self) -> u64 {
        self.error_hold_ns
    }

    fn counted_at(&self, target: TargetId) -> Option<u32> {
        Some(self.in_flight(target))
    }

    fn counted(&self) -> u64 {
        self.total_in_flight()
    }
}

#[cfg(test)]
mod tests;
