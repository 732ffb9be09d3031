//! The subset of the targets that a loop prefers: its balancer is shown that, and others only where nothing in it will do.
//!
//! - Idea: to hide a target is to give it no weight, so that every policy picks inside as fast as it picks at all. If no
//!   target of the subset may be picked (health, weight), the next list in which one may is shown until that changes. If
//!   none will do for one request (full, on probation elsewhere, passed over, excluded), the next list is shown for that
//!   pick alone. What speaks against a target yields only where no list has another one, so a loop fails only if no
//!   target at all may be picked.
//! - The lists: the subsets from the loop's own on, and round, where each target is in one (`subset.loops`); otherwise
//!   the loop's own and all targets outside.
//! - State: the table and a list, both shared; a byte per target in the roster. Cost: a flag or two for a pick inside; O(n)
//!   and perhaps an allocation for one that borrows for a single request (microseconds with hundreds of targets);
//!   O(members) for a change of the subset, and none for a change that leaves the subset alone.
//! - Pathologies: a rotation (`lb.round_robin`) goes on behind the borrowed target, so that borrowing may pass over
//!   members of the subset.

use crate::balance::balancer::Changed;
use crate::balance::roster::Roster;
use crate::balance::{Ask, Balancer};
use crate::upstream::on_loop::PerLoop;
use crate::{SubsetTable, TargetChange, TargetId};
use std::sync::Arc;

/// Targets that a balancer may be shown: those of a list, or all others.
#[derive(Clone, Debug, Default)]
struct Candidates {
    /// By index.
    list: Arc<[TargetId]>,
    is_outside: bool,
}

impl Candidates {
    fn has(&self, target: TargetId) -> bool {
        self.list.binary_search(&target).is_ok() != self.is_outside
    }

    /// Whether any of them may be picked and meets a condition.
    fn any_open(&self, roster: &Roster, meets: impl Fn(TargetId) -> bool) -> bool {
        let may = |target: TargetId| roster.is_open(target) && meets(target);
        match self.is_outside {
            true => TargetId::all(roster.len()).any(|target| may(target) && self.has(target)),
            false => self.list.iter().any(|&target| may(target)),
        }
    }
}

/// What a loop prefers.
#[derive(Clone, Debug)]
pub(super) struct Preference {
    table: SubsetTable,
    /// The number of the loop in the table.
    on: u32,
    /// The candidates that are shown, and their place in the order of the lists; the loop's own is the first.
    shown: Candidates,
    place: u32,
    borrowed: u64,
}

impl Preference {
    /// All targets are shown until it is settled.
    fn new(table: SubsetTable, on: u32) -> Preference {
        let all = Candidates { list: Arc::default(), is_outside: true };
        Preference { table, on, shown: all, place: 0, borrowed: 0 }
    }

    /// The subsets.
    pub fn table(&self) -> &SubsetTable {
        &self.table
    }

    /// Picks of targets outside of the subset.
    pub fn borrowed(&self) -> u64 {
        self.borrowed
    }

    /// The number of lists.
    fn len(&self) -> u32 {
        if self.table.goes_round() { self.table.count() } else { 2 }
    }

    /// The candidates at a place in the order of the lists.
    fn candidates(&self, place: u32) -> Candidates {
        let own = self.table.number_on(self.on);
        match self.table.goes_round() {
            true => Candidates {
                list: self.table.list((own + place) % self.table.count().max(1)),
                is_outside: false,
            },
            false => Candidates { list: self.table.list(own), is_outside: place > 0 },
        }
    }

    /// Shows the first candidates of which any may be picked, or the subset if none may. Adds what that changes to
    /// `changed`.
    pub fn settle(&mut self, roster: &mut Roster, changed: &mut Changed) {
        let first = (0..self.len()).find(|&place| self.candidates(place).any_open(roster, |_| true));
        self.place = first.unwrap_or(0);
        self.show(self.candidates(self.place), roster, changed);
    }

    /// Follows changes of the targets, which the roster has; `table`: the subsets after them, if they are known.
    pub fn follow<'a>(
        &mut self,
        table: Option<&SubsetTable>,
        changes: impl Iterator<Item = TargetChange<'a>>,
        roster: &mut Roster,
        changed: &mut Changed,
    ) {
        if let Some(table) = table {
            self.table = table.clone();
        }
        self.settle(roster, changed);
        for change in changes {
            if let TargetChange::Add { target, .. } = change {
                roster.set_hidden(target, !self.shown.has(target));
            }
        }
    }

    /// Shows these candidates and hides the others.
    fn show(&mut self, next: Candidates, roster: &mut Roster, changed: &mut Changed) {
        let before = std::mem::replace(&mut self.shown, next);
        let now = &self.shown;
        let n = roster.len();
        let mut set = |target: TargetId| {
            if roster.set_hidden(target, !now.has(target)) {
                changed.push(target);
            }
        };
        if before.is_outside != now.is_outside {
            TargetId::all(n).for_each(set);
        } else if !Arc::ptr_eq(&before.list, &now.list) {
            before.list.iter().chain(&*now.list).for_each(|&target| set(target));
        }
    }

    /// Picks among the next candidates of which one is not barred, for a request for which the shown ones have none.
    /// Those before the shown ones have none that may be picked.
    #[cold]
    pub fn borrow(
        &mut self,
        balancer: &mut Balancer,
        ask: &Ask,
        barred: impl Fn(TargetId) -> bool,
    ) -> Option<TargetId> {
        let home = self.shown.clone();
        let mut rest = (self.place + 1..self.len()).map(|place| self.candidates(place));
        let next = rest.find(|next| next.any_open(balancer.roster(), |target| !barred(target)))?;
        balancer.change(ask.now_ns, |roster| self.show(next, roster, &mut Changed::new()));
        let target = balancer.ask_where(ask, barred);
        balancer.change(ask.now_ns, |roster| self.show(home, roster, &mut Changed::new()));
        target
    }

    /// Counts a pick of a target outside of the subset.
    pub fn note(&mut self, target: TargetId) {
        self.borrowed += u64::from(!self.table.has(self.on, target));
    }
}

impl PerLoop {
    /// Prefers the subset of a loop from now on. The policy follows where a pick sees a difference.
    pub fn prefer(&mut self, now_ns: u64, table: &SubsetTable, on: u32) {
        let mut next = Preference::new(table.clone(), on);
        if let Some(before) = self.preference.take() {
            next = Preference { table: table.clone(), on, ..*before };
        }
        self.balancer.change_shown(now_ns, &[], |roster, changed| next.settle(roster, changed));
        self.preference = Some(Box::new(next));
    }

    /// Prefers no target to another.
    pub fn prefer_none(&mut self, now_ns: u64) {
        if let Some(mut before) = self.preference.take() {
            let all = Candidates { list: Arc::default(), is_outside: true };
            self.balancer.change_shown(now_ns, &[], |roster, changed| before.show(all, roster, changed));
        }
    }

    /// Adds and removes targets; `table`: the subsets after that, if they are known.
    pub fn change_targets(&mut self, now_ns: u64, changes: &[TargetChange<'_>], table: Option<&SubsetTable>) {
        let PerLoop { balancer, preference, .. } = self;
        match preference {
            None => balancer.change_targets(now_ns, changes),
            Some(preference) => balancer.change_shown(now_ns, changes, |roster, changed| {
                preference.follow(table, changes.iter().copied(), roster, changed);
            }),
        }
    }
}

#[cfg(test)]
mod tests;
