//! What a process knows of a fleet's members, for the process that takes its place: that one does not begin empty.

use super::Members;
use serde::{Deserialize, Serialize};

/// One member.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// Its weight.
    pub weight: f64,
    /// Whether it gets no new picks.
    pub drain: bool,
    /// If it is withdrawn: for how much longer it is picked, ns.
    pub withdrawn_for_ns: Option<u64>,
}

impl<K: Ord + Clone> Members<K> {
    /// The members, in the order of their keys.
    pub fn records(&self, now_ns: u64) -> impl Iterator<Item = (&K, MemberRecord)> {
        self.iter().map(move |(key, member)| {
            let withdrawn_for_ns = member.since_ns.map(|since| self.end_ns(since).saturating_sub(now_ns));
            (key, MemberRecord { weight: member.weight, drain: member.drain, withdrawn_for_ns })
        })
    }

    /// Restores a member from another process of the same arguments, whose clock may differ, before the first list; one that
    /// is there already stays as it is.
    pub fn restore(&mut self, now_ns: u64, key: K, record: MemberRecord) {
        let MemberRecord { weight, drain, withdrawn_for_ns } = record;
        if self.add(key.clone(), weight, drain)
            && let Some(left) = withdrawn_for_ns.filter(|_| !drain)
        {
            self.withdraw(key, self.since_ns(now_ns.saturating_add(left)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{Doubt, Entry, MemberChange, MemberCounts, State};

    #[test]
    fn another_process_goes_on_with_the_members() {
        let doubt = Doubt { shrink: Some(0.5), grace_ns: 100 };
        let (mut old, mut successor, mut changes) = (Members::new(doubt), Members::new(doubt), Vec::new());
        let entry = |key, state| Entry { key, state, weight: 2.0 };
        old.list(0, &[1, 2, 3, 4, 5].map(|key| entry(key, State::Up)), &mut changes);
        old.list(10, &[entry(1, State::Drain)], &mut changes);
        // That process has a clock of its own.
        old.records(30).for_each(|(key, record)| successor.restore(7_000, *key, record));
        assert_eq!(successor.counts(), MemberCounts { up: 0, drain: 1, withdrawn: 4 });
        assert!(old.records(30).eq(successor.records(7_000)));
        assert_eq!((old.next_deadline(), successor.next_deadline()), (Some(110), Some(7_080)));
        changes.clear();
        // Other arguments concern them as well.
        let mut other = successor.clone();
        other.configure(7_000, Doubt { grace_ns: 40, ..doubt }, &mut changes);
        assert_eq!((other.next_deadline(), changes.len()), (Some(7_020), 0));
        // What is there stays, and what drains is not withdrawn.
        let record = MemberRecord { weight: 1.0, drain: true, withdrawn_for_ns: Some(1) };
        successor.restore(7_000, 2, record);
        successor.restore(7_000, 6, record);
        successor.tick(7_080, &mut changes);
        assert_eq!(changes, [2, 3, 4, 5].map(|key| MemberChange::Remove { key }));
        assert_eq!(successor.counts(), MemberCounts { up: 0, drain: 2, withdrawn: 0 });
    }
}
