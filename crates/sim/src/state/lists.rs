//! What a balancer makes of the lists of a source. A list that lacks too many members at once is doubted
//! (`docs/spec/serving.md#lists-of-members`): they stay targets until something else says that they are gone. The rules are those
//! of [`weir_policy::fleet`], which a runtime follows too.

use crate::code::changes::{ChangeTables, FleetSite, ViewSite};
use crate::state::seer::Move;
use std::collections::BTreeMap;
use weir_plan::fleets::Member;
use weir_policy::fleet::{Entry, MemberChange, Members, State};

/// The fleets of one balancer whose lists may be doubted.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    /// By number of the fleet.
    fleets: BTreeMap<u32, Members<u32>>,
    /// The newest list that was taken, by number of the fleet.
    newest: BTreeMap<u32, u32>,
    /// When an event ends the next grace; an event at another time is stale.
    due_ns: u64,
}

/// A member as a source of a simulation lists it.
pub(super) fn listing(number: u32) -> Entry<u32> {
    Entry { key: number, state: State::Up, weight: 1.0 }
}

impl Lists {
    /// Those of all views at the start; none where no list is ever doubted.
    pub fn new_by_view(tables: &ChangeTables) -> Vec<Lists> {
        let views = tables.views.iter().filter(|_| tables.has_doubts);
        views.map(|view| Lists::new(tables, view)).collect()
    }

    fn new(tables: &ChangeTables, view: &ViewSite) -> Lists {
        let members = |(number, fleet): (u32, &FleetSite)| {
            let mut members = Members::new(fleet.doubt.filter(|_| view.has_fleet(number))?);
            let entries: Vec<Entry<u32>> = (0..fleet.size).map(listing).collect();
            // The targets of the start are these members.
            members.list(0, &entries, &mut Vec::new());
            Some((number, members))
        };
        Lists {
            fleets: (0..).zip(&tables.fleets).filter_map(members).collect(),
            newest: BTreeMap::new(),
            due_ns: u64::MAX,
        }
    }

    /// Takes a list of a fleet; lists are numbered in the order in which they were made. One that is older than another
    /// that was taken says nothing: of two that are seen at one instant either may come first.
    pub fn take(
        &mut self,
        fleet: u32,
        number: u32,
        now_ns: u64,
        entries: &[Entry<u32>],
        moves: &mut Vec<Move>,
    ) {
        let newest = self.newest.entry(fleet).or_insert(number);
        if number < *newest {
            return;
        }
        *newest = number;
        self.change(fleet, moves, |members, changes| {
            members.list(now_ns, entries, changes);
        });
    }

    /// A member has failed: if the last list lacks it, it is none any more.
    pub fn fail(&mut self, member: Member, now_ns: u64, moves: &mut Vec<Move>) {
        self.change(member.fleet, moves, |members, changes| members.failed(now_ns, &member.number, changes));
    }

    /// Ends what is over, if this is the time of the event.
    pub fn end_grace(&mut self, now_ns: u64, moves: &mut Vec<Move>) {
        if self.due_ns != now_ns {
            return;
        }
        self.due_ns = u64::MAX;
        let fleets: Vec<u32> = self.fleets.keys().copied().collect();
        for fleet in fleets {
            self.change(fleet, moves, |members, changes| members.tick(now_ns, changes));
        }
    }

    fn change(
        &mut self,
        fleet: u32,
        moves: &mut Vec<Move>,
        change: impl FnOnce(&mut Members<u32>, &mut Vec<MemberChange<u32>>),
    ) {
        let Some(members) = self.fleets.get_mut(&fleet) else { return };
        let mut changes = Vec::new();
        change(members, &mut changes);
        moves.extend(changes.into_iter().filter_map(|of| match of {
            MemberChange::Add { key: number, .. } => Some(Move::Add(Member { fleet, number })),
            MemberChange::Remove { key: number } => Some(Move::Remove(Member { fleet, number })),
            // Weights are those of the file, and no member drains.
            MemberChange::Set { .. } => None,
        }));
    }

    /// Whether the last list lacks a target.
    pub fn has_withdrawn(&self) -> bool {
        self.fleets.values().any(|members| members.next_deadline().is_some())
    }

    /// When the next grace ends, if no event is scheduled for then.
    pub fn next_grace(&mut self) -> Option<u64> {
        let next_ns = self.fleets.values().filter_map(Members::next_deadline).min()?;
        if next_ns >= self.due_ns {
            return None;
        }
        self.due_ns = next_ns;
        Some(next_ns)
    }
}
