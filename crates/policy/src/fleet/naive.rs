//! The rules of a fleet in their most literal form: [`Members`] must do the same.

use super::{Doubt, Entry, MemberChange, MemberCounts, MemberRecord, Members, State, Verdict};
use weir_stats::Key;

/// A member, and since when it is withdrawn.
#[derive(Clone, Copy, Debug)]
struct NaiveMember {
    key: u64,
    weight: f64,
    drain: bool,
    since: Option<u64>,
}

/// A list of members in no order.
struct Naive {
    percent: Option<u64>,
    grace: u64,
    members: Vec<NaiveMember>,
}

type Changes = Vec<MemberChange<u64>>;

/// Wrong entries are left out.
fn is_right(entry: &Entry<u64>) -> bool {
    entry.weight >= 0.0 && entry.weight < f64::INFINITY
}

impl Naive {
    /// Takes the members out that meet a condition, in the order of a value of theirs.
    fn take<T: Ord>(
        &mut self,
        meets: impl Fn(&NaiveMember) -> bool,
        by: impl Fn(&NaiveMember) -> T,
    ) -> Changes {
        let mut out: Vec<NaiveMember> = self.members.iter().copied().filter(&meets).collect();
        self.members.retain(|m| !meets(m));
        out.sort_by_key(by);
        out.iter().map(|m| MemberChange::Remove { key: m.key }).collect()
    }

    fn tick(&mut self, now_ns: u64) -> Changes {
        let grace = if self.percent.is_some() { self.grace } else { 0 };
        self.take(|m| m.since.is_some_and(|since| now_ns - since >= grace), |m| (m.since, m.key))
    }

    fn configure(&mut self, now_ns: u64, percent: Option<u64>, grace: u64) -> Changes {
        let changes = self.tick(now_ns);
        (self.percent, self.grace) = (percent, grace);
        changes
    }

    fn state_gone(&mut self, now_ns: u64, keys: &[u64]) -> Changes {
        let mut changes = self.tick(now_ns);
        keys.iter().for_each(|&key| changes.extend(self.take(|m| m.key == key, |_| 0)));
        changes
    }

    fn failed(&mut self, now_ns: u64, key: u64) -> Changes {
        let mut changes = self.tick(now_ns);
        changes.extend(self.take(|m| m.key == key && m.since.is_some(), |_| 0));
        changes
    }

    /// What a list says of a member: weight and whether it drains.
    fn listed(list: &[Entry<u64>], key: u64) -> Option<(f64, bool)> {
        let drains = |e: &&Entry<u64>| e.state == State::Drain || e.weight == 0.0;
        let of = || list.iter().filter(|e| e.key == key && is_right(e));
        of().find(|e| !drains(e)).or(of().next()).map(|e| (e.weight, drains(&e)))
    }

    fn list(&mut self, now_ns: u64, list: &[Entry<u64>]) -> (Verdict, Changes) {
        let mut changes = self.tick(now_ns);
        let own = changes.len();
        let mut keys: Vec<u64> = Vec::new();
        for entry in list.iter().filter(|e| is_right(e)) {
            if !keys.contains(&entry.key) {
                keys.push(entry.key);
            }
        }
        let before = self.members.len() as u64;
        let doubted = self.percent.is_some_and(|p| 100 * (keys.len() as u64) < (100 - p) * before);
        let is_missing = |m: &NaiveMember| !keys.contains(&m.key);
        changes.extend(self.take(|m| is_missing(m) && (!doubted || m.drain), |m| m.key));
        self.members.iter_mut().filter(|m| is_missing(m)).for_each(|m| m.since = m.since.or(Some(now_ns)));
        let at_once = self.tick(now_ns);
        changes.extend(at_once);
        changes[own..].sort_by_key(|c| if let MemberChange::Remove { key } = c { *key } else { 0 });
        let mut adds = Vec::new();
        for key in keys {
            let Some((weight, drain)) = Naive::listed(list, key) else { continue };
            match self.members.iter_mut().find(|m| m.key == key) {
                Some(m) => {
                    if m.weight != weight || m.drain != drain {
                        changes.push(MemberChange::Set { key, weight, drain });
                    }
                    *m = NaiveMember { key, weight, drain, since: None };
                }
                None => {
                    self.members.push(NaiveMember { key, weight, drain, since: None });
                    adds.push(MemberChange::Add { key, weight, drain });
                }
            }
        }
        changes.extend(adds);
        let same = if changes.len() == own { Verdict::Same } else { Verdict::Changed };
        (if doubted { Verdict::Doubted } else { same }, changes)
    }

    fn counts(&self) -> MemberCounts {
        let withdrawn = self.members.iter().filter(|m| m.since.is_some()).count();
        let drain = self.members.iter().filter(|m| m.since.is_none() && m.drain).count();
        MemberCounts { up: self.members.len() - withdrawn - drain, drain, withdrawn }
    }

    fn records(&self, now_ns: u64) -> Vec<(u64, MemberRecord)> {
        let record = |m: &NaiveMember| {
            let withdrawn_for_ns = m.since.map(|since| since + self.grace - now_ns);
            (m.key, MemberRecord { weight: m.weight, drain: m.drain, withdrawn_for_ns })
        };
        let mut records: Vec<_> = self.members.iter().map(record).collect();
        records.sort_by_key(|r| r.0);
        records
    }
}

/// What a balancer has: an addition must be new to it, other changes not, and none be in vain.
#[derive(Default)]
struct Targets(Vec<(u64, f64, bool)>);

impl Targets {
    fn apply(&mut self, changes: &Changes) {
        for change in changes {
            match *change {
                MemberChange::Add { key, weight, drain } => {
                    assert!(self.0.iter().all(|t| t.0 != key), "{key} was there");
                    self.0.push((key, weight, drain));
                }
                MemberChange::Remove { key } => {
                    let at = self.0.iter().position(|t| t.0 == key);
                    self.0.remove(at.expect("it was there"));
                }
                MemberChange::Set { key, weight, drain } => {
                    let target = self.0.iter_mut().find(|t| t.0 == key).expect("it was there");
                    assert_ne!(*target, (key, weight, drain));
                    *target = (key, weight, drain);
                }
            }
        }
    }
}

/// A list of some of the keys below `range`: all, most, some or none; in any order, with doubled and wrong entries.
fn list(draw: Key, range: u64) -> Vec<Entry<u64>> {
    let share = [1.0, 0.9, 0.5, 0.1, 0.0][draw.nth(0).below(5) as usize];
    let start = draw.nth(1).below(range);
    let mut entries = Vec::new();
    for i in 0..range + 3 {
        let draw = draw.with(i);
        let key = if i < range { (i * 7 + start) % range } else { draw.nth(2).below(range) };
        if draw.nth(3).unit() > share || i >= range && draw.nth(4).below(4) > 0 {
            continue;
        }
        let state = if draw.nth(5).below(8) == 0 { State::Drain } else { State::Up };
        let weight = match draw.nth(6).below(40) {
            0 => 0.0,
            1 => f64::NAN,
            2 => -1.0,
            3 => f64::INFINITY,
            w => (1 + w / 36) as f64,
        };
        entries.push(Entry { key, state, weight });
    }
    entries
}

/// The arguments of a fleet: percent and grace.
fn arguments(draw: Key) -> (Option<u64>, u64) {
    let shares = [None, Some(0), Some(10), Some(30), Some(50), Some(70), Some(100)];
    (shares[draw.nth(0).below(7) as usize], draw.nth(1).below(12))
}

fn doubt(percent: Option<u64>, grace_ns: u64) -> Doubt {
    Doubt { shrink: percent.map(|p| p as f64 / 100.0), grace_ns }
}

/// How often each verdict was, and removals by grace.
#[derive(Default)]
struct Tally {
    verdicts: [u32; 3],
    ended: usize,
    failed: usize,
    /// Members that end at once by other arguments.
    configured: usize,
}

/// One sequence of inputs, in both.
fn compare(draw: Key, steps: u64, tally: &mut Tally) {
    let (percent, grace) = arguments(draw);
    let range = [3, 10, 20][draw.nth(2).below(3) as usize];
    let mut members = Members::new(doubt(percent, grace));
    let mut naive = Naive { percent, grace, members: Vec::new() };
    let (mut targets, mut now_ns) = (Targets::default(), 0);
    for step in 0..steps {
        let draw = draw.with(step);
        now_ns = match (draw.nth(0).below(4), members.next_deadline()) {
            (0, Some(deadline)) => deadline,
            _ => now_ns + draw.nth(1).below(4),
        };
        let (mut changes, key) = (Vec::new(), draw.nth(2).below(range));
        let want = match draw.nth(3).below(11) {
            0..5 => {
                let list = list(draw.with(9), range);
                let verdict = members.list(now_ns, &list, &mut changes);
                let (want, changes) = naive.list(now_ns, &list);
                assert_eq!(verdict, want, "{list:?}");
                tally.verdicts[verdict as usize] += 1;
                changes
            }
            5 => {
                let keys = [key, draw.nth(4).below(range + 2), draw.nth(5).below(range)];
                members.state_gone(now_ns, &keys, &mut changes);
                naive.state_gone(now_ns, &keys)
            }
            6..9 => {
                members.failed(now_ns, &key, &mut changes);
                tally.failed += changes.len();
                naive.failed(now_ns, key)
            }
            9 => {
                let other = arguments(draw.with(8));
                members.configure(now_ns, doubt(other.0, other.1), &mut changes);
                let mut want = naive.configure(now_ns, other.0, other.1);
                let by_time = changes.len();
                // What that ends is due at once.
                members.tick(now_ns, &mut changes);
                want.extend(naive.tick(now_ns));
                tally.configured += changes.len() - by_time;
                want
            }
            _ => {
                members.tick(now_ns, &mut changes);
                tally.ended += changes.len();
                naive.tick(now_ns)
            }
        };
        assert_eq!(changes, want, "at {now_ns} with {:?} and {}", naive.percent, naive.grace);
        targets.apply(&changes);
        assert_eq!(members.counts(), naive.counts());
        let records: Vec<_> = members.records(now_ns).map(|(key, record)| (*key, record)).collect();
        assert_eq!(records, naive.records(now_ns));
        assert!(members.next_deadline().is_none_or(|deadline| deadline > now_ns));
        let deadline = records.iter().filter_map(|r| r.1.withdrawn_for_ns).min().map(|left| now_ns + left);
        assert_eq!(members.next_deadline(), deadline);
        targets.0.sort_by_key(|t| t.0);
        assert!(targets.0.iter().copied().eq(records.iter().map(|(key, r)| (*key, r.weight, r.drain))));
    }
}

#[test]
fn members_are_as_the_rules_say() {
    let mut tally = Tally::default();
    for sequence in 0..12_000 {
        compare(Key::new(11).with(sequence), 30, &mut tally);
    }
    // Everything occurs, and often.
    assert!(tally.verdicts.iter().all(|n| *n > 10_000), "{:?}", tally.verdicts);
    let Tally { ended, failed, configured, .. } = tally;
    assert!(ended > 1_000 && failed > 1_000 && configured > 1_000, "{ended} {failed} {configured}");
}

/// After a hundred thousand lists with new members each time, no more is kept than the members that there are.
#[test]
fn memory_is_flat() {
    let mut members = Members::new(Doubt { shrink: Some(0.5), grace_ns: 5 });
    let (mut changes, mut most) = (Vec::new(), 0);
    for i in 0..100_000u64 {
        // Twenty members, of which one is replaced; every third list lacks nearly all.
        let n = if i % 3 == 0 { 2 } else { 20 };
        let entries: Vec<_> =
            (i..i + n).map(|key| Entry { key, state: State::Up, weight: 1.0 + (i % 7) as f64 }).collect();
        members.list(i, &entries, &mut changes);
        members.failed(i, &(i + 9), &mut changes);
        changes.clear();
        let (counts, kept) = (members.counts(), members.kept());
        assert_eq!(kept, counts.up + counts.drain + 2 * counts.withdrawn);
        most = most.max(kept);
    }
    assert!((20..=64).contains(&most), "{most}");
}
