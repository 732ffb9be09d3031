//! The state machine of one fleet: lists and failures in, changes of its members out.

use super::places::Places;
use super::{Doubt, Entry, MemberChange, MemberCounts, Verdict};
use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) weight: f64,
    pub(super) drain: bool,
    /// Since when it is withdrawn, if it is; below 0: since before this process began. A draining member never is.
    pub(super) since_ns: Option<i64>,
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
    /// The withdrawn members by since when they are, and so by the ends of their grace.
    withdrawn: BTreeSet<(i64, K)>,
    draining: usize,
    /// Whether the next list is believed, however short it is.
    believes_next: bool,
}

impl<K: Ord + Clone> Members<K> {
    /// A fleet without members.
    pub fn new(doubt: Doubt) -> Members<K> {
        let (members, withdrawn) = (BTreeMap::new(), BTreeSet::new());
        Members { doubt, members, withdrawn, draining: 0, believes_next: false }
    }

    /// Replaces the arguments, for what is withdrawn already as well: its grace counts from when it was withdrawn, and is
    /// over if every list is believed. What ends by that is due at once, and ends with the next input or
    /// [`Members::tick`].
    pub fn configure(&mut self, now_ns: u64, doubt: Doubt, changes: &mut Vec<MemberChange<K>>) {
        self.tick(now_ns, changes);
        self.doubt = doubt;
    }

    /// Believes the next list, however short it is.
    pub fn believe_next(&mut self) {
        self.believes_next = true;
    }

    /// The number of members by state.
    pub fn counts(&self) -> MemberCounts {
        let (drain, withdrawn) = (self.draining, self.withdrawn.len());
        MemberCounts { up: self.members.len() - drain - withdrawn, drain, withdrawn }
    }

    /// When the next grace ends, ns; `None` if no member is withdrawn.
    pub fn next_deadline(&self) -> Option<u64> {
        self.withdrawn.first().map(|(since, _)| self.end_ns(*since))
    }

    /// When the grace of a member ends that is withdrawn since then, ns.
    pub(super) fn end_ns(&self, since_ns: i64) -> u64 {
        let grace_ns = if self.doubt.shrink.is_some() { self.doubt.grace_ns } else { 0 };
        let end = i128::from(since_ns) + i128::from(grace_ns);
        u64::try_from(end.max(0)).unwrap_or(u64::MAX)
    }

    /// Since when a member is withdrawn whose grace ends then.
    pub(super) fn since_ns(&self, end_ns: u64) -> i64 {
        let since = i128::from(end_ns) - i128::from(self.doubt.grace_ns);
        i64::try_from(since).unwrap_or(if since < 0 { i64::MIN } else { i64::MAX })
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
        let is_believed = std::mem::take(&mut self.believes_next);
        let is_doubted = !is_believed && self.doubt.is_doubted(list.len(), self.members.len());
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
        if self.members.get(key).is_some_and(|member| member.since_ns.is_some()) {
            self.remove(key, changes);
        }
    }

    /// Removes the members whose grace is over: at its very end, and so before an arrival at that instant.
    pub fn tick(&mut self, now_ns: u64, changes: &mut Vec<MemberChange<K>>) {
        while self.next_deadline().is_some_and(|until| until <= now_ns) {
            let Some((_, key)) = self.withdrawn.pop_first() else { return };
            self.remove(&key, changes);
        }
    }

    /// The entries of all tables, for tests of memory.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.members.len() + self.withdrawn.len()
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
        let since = i64::try_from(now_ns).unwrap_or(i64::MAX);
        let is_over = self.end_ns(since) <= now_ns;
        for key in missing {
            let member = self.members[&key];
            // A draining member was expected to go, and a grace of nothing is over at once.
            if !is_doubted || member.drain || member.since_ns.is_none() && is_over {
                self.remove(&key, changes);
            } else if member.since_ns.is_none() {
                self.withdraw(key, since);
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
            if let Some(since) = member.since_ns.take() {
                self.withdrawn.remove(&(since, key.clone()));
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
        vacant.insert(Member { weight, drain, since_ns: None });
        self.draining += usize::from(drain);
        true
    }

    /// Withdraws a member that is up, as of then.
    pub(super) fn withdraw(&mut self, key: K, since_ns: i64) {
        if let Some(member) = self.members.get_mut(&key) {
            member.since_ns = Some(since_ns);
            self.withdrawn.insert((since_ns, key));
        }
    }

    fn remove(&mut self, key: &K, changes: &mut Vec<MemberChange<K>>) {
        let Some((key, member)) = self.members.remove_entry(key) else { return };
        self.draining -= usize::from(member.drain);
        if let Some(since) = member.since_ns {
            self.withdrawn.remove(&(since, key.clone()));
        }
        changes.push(MemberChange::Remove { key });
    }
}
