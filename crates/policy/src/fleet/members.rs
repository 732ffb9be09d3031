//! The state machine of one fleet: lists and failures in, changes of its members out.

use super::places::Places;
use super::{Doubt, Entry, MemberChange, MemberCounts, Verdict};
use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) weight: f64,
    pub(super) drain: bool,
    /// The end of its grace if it is withdrawn. A draining member never is.
    pub(super) until_ns: Option<u64>,
}

/// The members of one fleet.
///
/// Every input first ends what is due by its time (as [`Members::tick`] does), so the result does not depend on how
/// late the caller's timer is, and a member that is listed again at the instant at which its grace ends is a new one.
/// Changes are appended in the order in which they are to be applied: removals first (those by grace in the order of
/// their ends, the others in the order of keys or as given), then other changes and then additions, both in the order of
/// the list.
#[derive(Clone, Debug)]
pub struct Members<K> {
    doubt: Doubt,
    members: BTreeMap<K, Member>,
    /// The withdrawn members by the end of their grace.
    ends: BTreeSet<(u64, K)>,
    draining: usize,
}

impl<K: Ord + Clone> Members<K> {
    /// A fleet without members.
    pub fn new(doubt: Doubt) -> Members<K> {
        Members { doubt, members: BTreeMap::new(), ends: BTreeSet::new(), draining: 0 }
    }

    /// Replaces the arguments; what is withdrawn already keeps the end of its grace.
    pub fn configure(&mut self, doubt: Doubt) {
        self.doubt = doubt;
    }

    /// The number of members by state.
    pub fn counts(&self) -> MemberCounts {
        let (drain, withdrawn) = (self.draining, self.ends.len());
        MemberCounts { up: self.members.len() - drain - withdrawn, drain, withdrawn }
    }

    /// When the next grace ends, ns; `None` if no member is withdrawn.
    pub fn next_deadline(&self) -> Option<u64> {
        self.ends.first().map(|(until, _)| *until)
    }

    /// Takes a whole list, as a source gave it. An empty one is a list like any other; an unreadable one is none.
    pub fn list(&mut self, now_ns: u64, entries: &[Entry<K>], changes: &mut Vec<MemberChange<K>>) -> Verdict {
        self.replace(now_ns, &[], entries, changes)
    }

    /// Takes a whole list which says of some members that others are in their place. That is believed at once, and the
    /// list is compared with all members before, since it lists what has come in their place.
    pub fn replace(
        &mut self,
        now_ns: u64,
        replaced: &[K],
        entries: &[Entry<K>],
        changes: &mut Vec<MemberChange<K>>,
    ) -> Verdict {
        self.tick(now_ns, changes);
        let (list, before) = (Places::new(entries), changes.len());
        let is_doubted = self.doubt.is_doubted(list.len(), self.members.len());
        replaced.iter().for_each(|key| self.remove(key, changes));
        self.drop_missing(now_ns, &list, is_doubted, changes);
        let newcomers = self.update(&list, changes);
        for entry in newcomers {
            let (key, weight, drain) = (entry.key.clone(), entry.weight, entry.is_draining());
            self.add(key.clone(), weight, drain);
            changes.push(MemberChange::Add { key, weight, drain });
        }
        match changes.len() == before {
            _ if is_doubted => Verdict::Doubted,
            true => Verdict::Same,
            false => Verdict::Changed,
        }
    }

    /// Removes members that the source says are gone (deleted by an event, out of service): that is believed at once, and
    /// the next list is compared with the others.
    pub fn state_gone(&mut self, now_ns: u64, keys: &[K], changes: &mut Vec<MemberChange<K>>) {
        self.tick(now_ns, changes);
        keys.iter().for_each(|key| self.remove(key, changes));
    }

    /// Removes a withdrawn member of which a check failed, which was ejected, or to which a connection failed. One failure
    /// is enough, whether or not it changes the member's health. A listed member stays: health is not the registry.
    pub fn failed(&mut self, now_ns: u64, key: &K, changes: &mut Vec<MemberChange<K>>) {
        self.tick(now_ns, changes);
        if self.members.get(key).is_some_and(|member| member.until_ns.is_some()) {
            self.remove(key, changes);
        }
    }

    /// Removes the members whose grace is over: at its very end, and so before an arrival at that instant.
    pub fn tick(&mut self, now_ns: u64, changes: &mut Vec<MemberChange<K>>) {
        while self.next_deadline().is_some_and(|until| until <= now_ns) {
            let Some((_, key)) = self.ends.pop_first() else { return };
            self.remove(&key, changes);
        }
    }

    /// The entries of all tables, for tests of memory.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.members.len() + self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &Member)> {
        self.members.iter()
    }

    /// Removes or withdraws what the list lacks.
    fn drop_missing(
        &mut self,
        now_ns: u64,
        list: &Places<K>,
        is_doubted: bool,
        changes: &mut Vec<MemberChange<K>>,
    ) {
        let missing: Vec<K> = self.members.keys().filter(|key| !list.has(key)).cloned().collect();
        let until = now_ns.saturating_add(self.doubt.grace_ns);
        for key in missing {
            let member = self.members[&key];
            // A draining member was expected to go, and a grace of nothing is over at once.
            if !is_doubted || member.drain || member.until_ns.is_none() && until <= now_ns {
                self.remove(&key, changes);
            } else if member.until_ns.is_none() {
                self.withdraw(key, until);
            }
        }
    }

    /// Brings the members that are listed up to date. Returns the entries of those that are none yet.
    fn update<'a>(&mut self, list: &Places<'a, K>, changes: &mut Vec<MemberChange<K>>) -> Vec<&'a Entry<K>> {
        let mut newcomers = Vec::new();
        for entry in list.iter() {
            let (key, weight, drain) = (&entry.key, entry.weight, entry.is_draining());
            let Some(member) = self.members.get_mut(key) else {
                newcomers.push(entry);
                continue;
            };
            if let Some(until) = member.until_ns.take() {
                self.ends.remove(&(until, key.clone()));
            }
            if (member.weight, member.drain) != (weight, drain) {
                self.draining = self.draining + usize::from(drain) - usize::from(member.drain);
                (member.weight, member.drain) = (weight, drain);
                changes.push(MemberChange::Set { key: key.clone(), weight, drain });
            }
        }
        newcomers
    }

    /// Adds a member. Returns whether it was none.
    pub(super) fn add(&mut self, key: K, weight: f64, drain: bool) -> bool {
        let Slot::Vacant(vacant) = self.members.entry(key) else { return false };
        vacant.insert(Member { weight, drain, until_ns: None });
        self.draining += usize::from(drain);
        true
    }

    /// Withdraws a member that is up.
    pub(super) fn withdraw(&mut self, key: K, until_ns: u64) {
        if let Some(member) = self.members.get_mut(&key) {
            member.until_ns = Some(until_ns);
            self.ends.insert((until_ns, key));
        }
    }

    fn remove(&mut self, key: &K, changes: &mut Vec<MemberChange<K>>) {
        let Some((key, member)) = self.members.remove_entry(key) else { return };
        self.draining -= usize::from(member.drain);
        if let Some(until) = member.until_ns {
            self.ends.remove(&(until, key.clone()));
        }
        changes.push(MemberChange::Remove { key });
    }
}
