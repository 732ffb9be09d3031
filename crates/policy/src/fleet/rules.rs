//! The rules of a fleet, each by an example.

use super::{Doubt, Entry, MemberChange, MemberCounts, Members, Verdict};
use crate::fleet::MemberChange::{Add, Remove, Set};
use crate::fleet::State::{Drain, Up};
use crate::fleet::Verdict::{Changed, Doubted, Same};

const GRACE: u64 = 100;

/// A fleet that doubts lists shorter by more than half, and what the last input changed.
struct Fleet {
    members: Members<u32>,
    changes: Vec<MemberChange<u32>>,
}

impl Fleet {
    /// With members 1 to `n`, up since 0.
    fn with_members(n: u32) -> Fleet {
        let members = Members::new(Doubt { shrink: Some(0.5), grace_ns: GRACE });
        let mut fleet = Fleet { members, changes: Vec::new() };
        fleet.list(0, 1..=n);
        fleet
    }

    fn list(&mut self, now_ns: u64, up: impl IntoIterator<Item = u32>) -> Verdict {
        self.entries(now_ns, &up.into_iter().map(up_entry).collect::<Vec<_>>())
    }

    fn entries(&mut self, now_ns: u64, entries: &[Entry<u32>]) -> Verdict {
        self.changes.clear();
        self.members.list(now_ns, entries, &mut self.changes)
    }

    fn failed(&mut self, now_ns: u64, key: u32) -> Vec<MemberChange<u32>> {
        self.changes.clear();
        self.members.failed(now_ns, &key, &mut self.changes);
        self.changes.clone()
    }

    fn configure(&mut self, now_ns: u64, shrink: Option<f64>, grace_ns: u64) -> Vec<MemberChange<u32>> {
        self.changes.clear();
        self.members.configure(now_ns, Doubt { shrink, grace_ns }, &mut self.changes);
        self.changes.clone()
    }

    fn tick(&mut self, now_ns: u64) -> Vec<MemberChange<u32>> {
        self.changes.clear();
        self.members.tick(now_ns, &mut self.changes);
        self.changes.clone()
    }

    /// Up, drain, withdrawn.
    fn counts(&self) -> [usize; 3] {
        let MemberCounts { up, drain, withdrawn } = self.members.counts();
        [up, drain, withdrawn]
    }
}

fn up_entry(key: u32) -> Entry<u32> {
    Entry { key, state: Up, weight: 1.0 }
}

fn removed(keys: impl IntoIterator<Item = u32>) -> Vec<MemberChange<u32>> {
    keys.into_iter().map(|key| Remove { key }).collect()
}

fn added(keys: impl IntoIterator<Item = u32>) -> Vec<MemberChange<u32>> {
    keys.into_iter().map(|key| Add { key, weight: 1.0, drain: false }).collect()
}

#[test]
fn the_first_list_is_believed_and_adds_in_its_order() {
    let mut fleet = Fleet::with_members(0);
    assert_eq!((fleet.list(1, []), fleet.counts()), (Same, [0, 0, 0]));
    assert_eq!(fleet.list(2, [3, 1, 2]), Changed);
    assert_eq!((fleet.changes.clone(), fleet.counts()), (added([3, 1, 2]), [3, 0, 0]));
    assert_eq!((fleet.list(3, [2, 1, 3]), fleet.changes.len()), (Same, 0));
}

/// Five of ten are half, and believed; four are doubted, and so is none.
#[test]
fn short_lists_are_doubted() {
    let mut fleet = Fleet::with_members(10);
    assert_eq!(fleet.list(1, 1..=5), Changed);
    assert_eq!((fleet.changes.clone(), fleet.counts()), (removed(6..=10), [5, 0, 0]));
    for n in [4, 0] {
        let mut fleet = Fleet::with_members(10);
        assert_eq!((fleet.list(1, 1..=n), fleet.changes.len()), (Doubted, 0));
        assert_eq!(fleet.counts(), [n as usize, 0, 10 - n as usize]);
        assert_eq!(fleet.members.next_deadline(), Some(1 + GRACE));
    }
}

#[test]
fn without_shrink_every_list_is_believed() {
    let mut fleet = Fleet::with_members(10);
    fleet.configure(0, None, GRACE);
    assert_eq!((fleet.list(1, []), fleet.changes.clone()), (Changed, removed(1..=10)));
    assert_eq!((fleet.counts(), fleet.members.next_deadline()), ([0, 0, 0], None));
}

/// Withdrawn members are counted among those before, so the same short list stays doubted, and the grace of those
/// that it lacks goes on from when they were withdrawn.
#[test]
fn withdrawn_members_are_members_before() {
    let mut fleet = Fleet::with_members(10);
    assert_eq!(fleet.list(1, [1, 2]), Doubted);
    assert_eq!((fleet.list(50, [1, 2]), fleet.list(51, [1])), (Doubted, Doubted));
    assert_eq!(fleet.counts(), [1, 0, 9]);
    assert_eq!(fleet.tick(GRACE), []);
    assert_eq!((fleet.tick(GRACE + 1), fleet.members.next_deadline()), (removed(3..=10), Some(151)));
    assert_eq!(fleet.tick(151), removed([2]));
}

#[test]
fn a_member_listed_again_stays() {
    let mut fleet = Fleet::with_members(4);
    assert_eq!(fleet.list(1, [1]), Doubted);
    assert_eq!((fleet.list(9, 1..=4), fleet.changes.len(), fleet.counts()), (Same, 0, [4, 0, 0]));
    assert_eq!((fleet.tick(1 + GRACE), fleet.members.next_deadline()), (vec![], None));
    // Withdrawn again, it has the whole grace again; as another comes back in a list that is doubted too.
    assert_eq!(fleet.list(1_000, [1]), Doubted);
    assert_eq!((fleet.list(1_010, [3]), fleet.counts()), (Doubted, [1, 0, 3]));
    assert_eq!((fleet.tick(1_100), fleet.members.next_deadline()), (removed([2, 4]), Some(1_110)));
}

#[test]
fn a_believed_list_without_it_ends_a_withdrawn_member_at_once() {
    let mut fleet = Fleet::with_members(4);
    assert_eq!(fleet.list(1, [1]), Doubted);
    assert_eq!((fleet.list(2, [1, 2]), fleet.changes.clone()), (Changed, removed([3, 4])));
    assert_eq!((fleet.counts(), fleet.members.next_deadline()), ([2, 0, 0], None));
}

#[test]
fn a_failure_ends_a_withdrawn_member_and_no_listed_one() {
    let mut fleet = Fleet::with_members(4);
    assert_eq!(fleet.failed(1, 2), []);
    fleet.list(2, [1]);
    assert_eq!((fleet.failed(3, 1), fleet.failed(3, 9)), (vec![], vec![]));
    assert_eq!(fleet.failed(3, 2), removed([2]));
    assert_eq!((fleet.failed(3, 2).len(), fleet.counts()), (0, [1, 0, 2]));
    // A failure at the end of its grace removes it once.
    assert_eq!(fleet.failed(2 + GRACE, 3), removed([3, 4]));
}

#[test]
fn what_a_source_says_is_believed_at_once() {
    let mut fleet = Fleet::with_members(10);
    fleet.list(1, 1..=4);
    fleet.changes.clear();
    // Up, unknown, withdrawn, and one twice.
    fleet.members.state_gone(2, &[3, 99, 7, 2, 3], &mut fleet.changes);
    assert_eq!((fleet.changes.clone(), fleet.counts()), (removed([3, 7, 2]), [2, 0, 5]));
    // The list that follows is compared with the seven others.
    assert_eq!(fleet.list(2, [1, 4, 5]), Doubted);
    assert_eq!(fleet.list(2, [1, 4, 5, 6]), Changed);
}

#[test]
fn draining_members_are_not_missed() {
    let mut fleet = Fleet::with_members(3);
    let drain = Entry { state: Drain, ..up_entry(2) };
    let weightless = Entry { weight: 0.0, ..up_entry(3) };
    assert_eq!(fleet.entries(1, &[weightless, drain, up_entry(1)]), Changed);
    let set = |key, weight| Set { key, weight, drain: true };
    assert_eq!((fleet.changes.clone(), fleet.counts()), (vec![set(3, 0.0), set(2, 1.0)], [1, 2, 0]));
    // They count among those before: one of three is fewer than half.
    assert_eq!((fleet.list(2, [1]), fleet.changes.clone()), (Doubted, removed([2, 3])));
    assert_eq!((fleet.list(3, []), fleet.changes.len(), fleet.counts()), (Doubted, 0, [0, 0, 1]));
}

#[test]
fn a_doubted_list_is_believed_in_what_it_has() {
    let mut fleet = Fleet::with_members(10);
    fleet.entries(
        1,
        &[Entry { state: Drain, ..up_entry(10) }]
            .into_iter()
            .chain((1..10).map(up_entry))
            .collect::<Vec<_>>(),
    );
    let heavy = Entry { weight: 2.0, ..up_entry(2) };
    assert_eq!(fleet.entries(2, &[up_entry(12), heavy, up_entry(11)]), Doubted);
    let mut want = removed([10]);
    want.push(Set { key: 2, weight: 2.0, drain: false });
    want.extend(added([12, 11]));
    assert_eq!((fleet.changes.clone(), fleet.counts()), (want, [3, 0, 8]));
    // A withdrawn member that is listed again as draining drains, and is not missed after that.
    let drain = Entry { state: Drain, ..up_entry(5) };
    assert_eq!((fleet.entries(3, &[drain]), fleet.counts()), (Doubted, [0, 1, 10]));
    assert_eq!((fleet.list(4, []), fleet.changes.clone()), (Doubted, removed([5])));
}

#[test]
fn doubled_members_are_one_and_wrong_entries_none() {
    let mut fleet = Fleet::with_members(0);
    let entry = |key, state, weight| Entry { key, state, weight };
    let list = [
        entry(1, Drain, 5.0),
        entry(2, Up, 1.0),
        entry(1, Up, 0.0),
        entry(1, Up, 3.0),
        entry(1, Up, 4.0),
        entry(2, Drain, 9.0),
        entry(3, Up, f64::NAN),
        entry(4, Drain, -1.0),
        entry(5, Up, f64::INFINITY),
    ];
    assert_eq!(fleet.entries(1, &list), Changed);
    let add = |key, weight| Add { key, weight, drain: false };
    assert_eq!(fleet.changes, [add(1, 3.0), add(2, 1.0)]);
    // One member listed three times is one of four.
    let mut fleet = Fleet::with_members(4);
    assert_eq!(fleet.list(1, [1, 1, 1]), Doubted);
}

/// At its end, and before a list of the same instant: the member is then a new one, of a shorter fleet.
#[test]
fn grace_ends_first() {
    let mut fleet = Fleet::with_members(4);
    assert_eq!(fleet.list(1, [1]), Doubted);
    let mut late = fleet.members.clone();
    let want: Vec<_> = removed(2..=4).into_iter().chain(added([3])).collect();
    assert_eq!((fleet.list(1 + GRACE, [1, 3]), &fleet.changes), (Changed, &want));
    // As with a timer that is on time.
    let mut changes = Vec::new();
    late.tick(1 + GRACE, &mut changes);
    late.list(1 + GRACE, &[up_entry(1), up_entry(3)], &mut changes);
    assert_eq!(changes, want);
    // Grace of nothing is over at once, of everything never.
    for (grace_ns, withdrawn) in [(0, 0), (u64::MAX, 3)] {
        let mut fleet = Fleet::with_members(4);
        fleet.configure(0, Some(0.5), grace_ns);
        assert_eq!((fleet.list(5, [1]), fleet.counts()), (Doubted, [1, 0, withdrawn]));
    }
}

#[test]
fn another_grace_counts_from_when_a_member_was_withdrawn() {
    let mut fleet = Fleet::with_members(4);
    fleet.list(1, []);
    for (grace_ns, end) in [(30, 31), (500, 501), (GRACE, 1 + GRACE), (u64::MAX, u64::MAX), (60, 61)] {
        assert_eq!(fleet.configure(20, Some(0.9), grace_ns), []);
        assert_eq!((fleet.members.next_deadline(), fleet.counts()), (Some(end), [0, 0, 4]));
    }
    assert_eq!(fleet.tick(60), []);
    // It would have been over before: it is due at once.
    assert_eq!((fleet.configure(60, Some(0.9), 3), fleet.members.next_deadline()), (vec![], Some(4)));
    assert_eq!((fleet.tick(60), fleet.counts()), (removed(1..=4), [0, 0, 0]));
    // Another share is that of the next list.
    let mut fleet = Fleet::with_members(4);
    fleet.list(1, []);
    fleet.configure(1, Some(0.9), GRACE);
    assert_eq!((fleet.list(2, [1]), fleet.changes.clone()), (Changed, removed([2, 3, 4])));
}

/// Members that only a doubted list lacks are due once every list is believed.
#[test]
fn without_shrink_no_member_stays_withdrawn() {
    let mut fleet = Fleet::with_members(4);
    fleet.list(1, [1]);
    assert_eq!((fleet.configure(9, None, GRACE), fleet.members.next_deadline()), (vec![], Some(1)));
    assert_eq!((fleet.tick(9), fleet.counts()), (removed([2, 3, 4]), [1, 0, 0]));
    assert_eq!(fleet.members.next_deadline(), None);
}

/// What is due by the arguments before ends by them, however late the caller's timer is.
#[test]
fn a_grace_that_is_over_does_not_become_longer() {
    let mut fleet = Fleet::with_members(4);
    fleet.list(1, [1]);
    assert_eq!(fleet.configure(1 + GRACE, Some(0.5), 9 * GRACE), removed([2, 3, 4]));
}

/// Once: the next list but one is doubted as any other.
#[test]
fn a_list_may_be_believed_however_short_it_is() {
    let mut fleet = Fleet::with_members(4);
    assert_eq!(fleet.list(1, [1, 2, 3, 4]), Same);
    fleet.list(2, [1]);
    fleet.members.believe_next();
    assert_eq!(fleet.counts(), [1, 0, 3]);
    assert_eq!((fleet.list(3, [2]), fleet.changes.clone()), (Changed, removed([1, 3, 4])));
    assert_eq!(fleet.list(4, []), Doubted);
}
