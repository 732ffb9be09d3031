//! Maglev's table: consistent hashing with even shares and one lookup.
//!
//! - Idea: each target has a permutation of the table's slots; in turn each takes the next free slot of its own.
//! - Signal: the request's key; with `bound` requests in flight too. State: a table of `table_size` (prime) slots, a
//!   count per target.
//! - Cost of a decision: O(1); if targets are left out, a jump for each of their slots that is met. A change of
//!   weights or targets fills a new table, O(M log M), off that path if another balancer shares it
//!   ([`crate::balance::table`]); eligibility changes only where the jumps end, so that it moves the fewest keys.
//! - Formula: offset = h1 mod M, skip = h2 mod (M − 1) + 1; slot j of the permutation is (offset + j·skip) mod M. By
//!   weight: the k-th turn of a target comes at k/w. Slots of equal targets differ by 1 at most.
//! - Choices: a key whose target is left out jumps to another slot that its hash gives, and again. Neighbouring slots
//!   do not work: with few targets their owners follow each other in patterns, and one would inherit more than its
//!   share.
//! - Pathologies: a popular key belongs to one target (hence `bound`); the removal of a target also moves up to a
//!   hundredth of the others' slots at 1,000 targets. Slow start does not act on it: it would move keys.
//! - Source: jumps: Chen et al., "Revisiting Consistent Hashing with Bounded Loads" (2019); table: Eisenbud et al.,
//!   "Maglev: A Fast and Reliable Software Network Load Balancer" (NSDI 2016), 3.4; Envoy.
//! - In the language: `lb.maglev(targets, key=, table_size=65537, bound=None)`.
//! - Elsewhere: arguments and reference text in `topology/src/nodes/lb/maglev.rs`; checks of a plan in
//!   `plan/src/validate/around.rs`, `validate/node.rs`; the naive twin in the tests below.

use crate::TargetId;
use crate::balance::Ask;
use crate::balance::policy::{Policy, Traits};
use crate::balance::roster::Roster;
use crate::balance::table::{self, Table, TableInput};
use crate::ds::bounded::Bounded;
use crate::key;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use weir_stats::Key;

/// The arguments of `lb.maglev`, without the targets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MaglevArgs {
    /// Slots; a prime.
    pub table_size: u32,
    /// Greatest load as a factor of the mean; at least 1.
    pub bound: Option<f64>,
}

/// The default size of the table.
pub const TABLE_SIZE: u32 = 65_537;
/// The greatest size, as Envoy's.
pub const GREATEST_TABLE: u32 = 5_000_011;

/// Whether a table may have this size: a skip must visit every slot.
pub fn is_table_size(n: u32) -> bool {
    let prime = n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d));
    prime && n <= GREATEST_TABLE
}

/// Slots that a key visits by jumps before it walks from one to the next.
const JUMPS: u32 = 256;

/// A slot of a table without targets.
const NOBODY: u32 = u32::MAX;

/// The slots: the same for all balancers over the same targets, which may share them.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    pub made_of: TableInput,
    slots: Box<[TargetId]>,
}

/// The state of one balancer.
#[derive(Clone, Debug)]
pub struct Maglev {
    load: Bounded,
    size: u32,
    table: Arc<Slots>,
    /// The input of the table to be made before the next pick; `None`: the table is current.
    wanted: Option<TableInput>,
}

impl Maglev {
    /// A balancer over these targets, which have names.
    pub fn new(roster: &Roster, table_size: u32, bound: Option<f64>) -> Maglev {
        let load = Bounded::new(roster.effective(), bound);
        Maglev {
            load,
            size: bounded(table_size),
            table: Arc::default(),
            wanted: Some(TableInput::new(roster)),
        }
    }

    /// The counts.
    pub fn load(&self) -> &Bounded {
        &self.load
    }

    /// The counts, mutable.
    pub fn load_mut(&mut self) -> &mut Bounded {
        &mut self.load
    }

    /// Notes that the targets have changed. If weights or names did, a new table is filled at the next pick or by
    /// [`Maglev::table`], unless [`Maglev::share`] provides it before.
    pub fn refresh(&mut self, roster: &Roster) {
        self.load.refresh(roster.effective());
        self.wanted = (!self.table.made_of.is(roster)).then(|| TableInput::new(roster));
    }

    /// The table of the present targets.
    pub(crate) fn table(&mut self) -> &Arc<Slots> {
        if let Some(wanted) = self.wanted.take() {
            self.table = Arc::new(Slots::new(wanted, self.size));
        }
        &self.table
    }

    /// Accepts a table that another balancer has filled, if one is needed and it is the same.
    pub(crate) fn share(&mut self, table: &Arc<Slots>) {
        if table.has_size(self.size) && self.wanted.as_ref() == Some(&table.made_of) {
            self.table = table.clone();
            self.wanted = None;
        }
    }

    /// Chooses and counts the target of a key's hash, jumping on past those that are barred, not eligible or at their
    /// bound; `None` if all are barred. If all that are left are at their bound, one of these.
    pub fn pick_where(&mut self, hash: u64, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        if !self.load.any() {
            return None;
        }
        if self.wanted.is_some() {
            self.table();
        }
        let per_weight = self.load.per_weight();
        let target = self.jump(hash, |t| self.load.has_room(t, per_weight) && !barred(t));
        let target = target.or_else(|| self.jump(hash, |t| self.load.is_open(t) && !barred(t)))?;
        self.load.take(target);
        Some(target)
    }

    fn jump(&self, hash: u64, fits: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        let mut slot = 0;
        for _ in 0..JUMPS {
            hash_on(&mut slot, hash);
            let target = self.table.slots[(slot % u64::from(self.size)) as usize];
            if fits(target) {
                return Some(target);
            }
        }
        // Nearly all are out: take the next one.
        let (before, after) = self.table.slots.split_at((slot % u64::from(self.size)) as usize);
        after.iter().chain(before).copied().find(|&t| fits(t))
    }
}

/// The size of a table that is to have about this one.
fn bounded(size: u32) -> u32 {
    size.clamp(2, GREATEST_TABLE)
}

impl Slots {
    /// The slots of these targets.
    pub fn new(made_of: TableInput, size: u32) -> Slots {
        let size = bounded(size);
        let by_name: Vec<(TargetId, Permutation)> = made_of
            .by_name()
            .map(|(target, name, weight)| (target, Permutation::new(name, weight, size)))
            .collect();
        let wishes: Vec<Permutation> = by_name.iter().map(|(_, wish)| *wish).collect();
        let target = |i: u32| by_name.get(i as usize).map_or(TargetId(NOBODY), |(target, _)| *target);
        let slots = fill(&wishes, size).into_iter().map(target).collect();
        Slots { made_of, slots }
    }

    /// Whether it has as many slots as a table of this size.
    pub fn has_size(&self, size: u32) -> bool {
        self.slots.len() == bounded(size) as usize
    }
}

/// The next slot of a key.
#[inline]
fn hash_on(slot: &mut u64, hash: u64) {
    *slot = key::spread(slot.wrapping_add(hash));
}

/// A target's permutation and weight.
#[derive(Clone, Copy, Debug)]
struct Permutation {
    offset: u32,
    skip: u32,
    weight: f64,
}

impl Permutation {
    fn new(name: &str, weight: f64, size: u32) -> Permutation {
        let h = key::fnv1a(name.as_bytes());
        Permutation {
            offset: (key::spread(h) % u64::from(size)) as u32,
            skip: (key::spread(!h) % u64::from(size - 1)) as u32 + 1,
            weight,
        }
    }
}

/// The table, by index of the wish.
fn fill(wishes: &[Permutation], size: u32) -> Vec<u32> {
    let mut table = vec![NOBODY; size as usize];
    let mut next: Vec<u32> = wishes.iter().map(|w| w.offset).collect();
    // Turns in order of time; a tie by name.
    let at = |turn: u32, weight: f64| Reverse((f64::from(turn) / weight).to_bits());
    let mut turns: BinaryHeap<(Reverse<u64>, Reverse<u32>, u32)> =
        wishes.iter().enumerate().map(|(i, w)| (at(1, w.weight), Reverse(i as u32), 1)).collect();
    for taken in 0..size {
        let Some((_, Reverse(i), turn)) = turns.pop() else { break };
        let (wish, slot) = (&wishes[i as usize], &mut next[i as usize]);
        let mut steps = 0;
        while table[*slot as usize] != NOBODY {
            *slot = ((u64::from(*slot) + u64::from(wish.skip)) % u64::from(size)) as u32;
            steps += 1;
            if steps > size {
                // A size that is not prime: this permutation has no free slot left; take any.
                *slot = table.iter().position(|&s| s == NOBODY).unwrap_or(0) as u32;
            }
        }
        debug_assert!(taken < size);
        table[*slot as usize] = i;
        turns.push((at(turn + 1, wish.weight), Reverse(i), turn + 1));
    }
    table
}

impl Policy for Maglev {
    type Args = MaglevArgs;
    const NAME: &'static str = "lb.maglev";
    const TRAITS: Traits = Traits { hashes: true, ..Traits::PLAIN };

    fn traits(args: &MaglevArgs) -> Traits {
        Traits { counts: args.bound.is_some(), ..Self::TRAITS }
    }

    fn build(args: &MaglevArgs, roster: &Roster, _draw: Key) -> Maglev {
        Maglev::new(roster, args.table_size, args.bound)
    }

    fn follow(&mut self, _now_ns: u64, roster: &Roster) {
        self.refresh(roster);
    }

    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        self.pick_where(ask.key.unwrap_or(ask.draw.bits()), barred)
    }

    #[inline]
    fn take(&mut self, target: TargetId) {
        self.load.take(target);
    }

    #[inline]
    fn release(&mut self, target: TargetId) {
        self.load.release(target);
    }

    fn counted_at(&self, target: TargetId) -> Option<u32> {
        Some(self.load.in_flight(target))
    }

    fn counted(&self) -> u64 {
        self.load.total_in_flight()
    }

    fn make_table(&mut self) -> Option<Table> {
        Some(Table(table::Kind::Slots(self.table().clone())))
    }

    fn take_table(&mut self, table: &Table) {
        if let table::Kind::Slots(made) = &table.0 {
            self.share(made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lb(n: usize, weights: &[f64], bound: Option<f64>) -> (Roster, Maglev) {
        let names: Vec<String> = (0..n).map(|i| format!("t{i}")).collect();
        let roster = Roster::new(weights).named(&names);
        let mut lb = Maglev::new(&roster, TABLE_SIZE, bound);
        lb.table();
        (roster, lb)
    }

    fn slots(lb: &Maglev, n: usize) -> Vec<usize> {
        let mut slots = vec![0; n];
        lb.table.slots.iter().for_each(|&t| slots[t.index()] += 1);
        slots
    }

    /// Table 1 of the paper: B0 has the permutation 3 0 4 1 5 2 6, B1 0 2 4 6 1 3 5, B2 3 4 5 6 0 1 2.
    #[test]
    fn the_papers_table() {
        let wish = |offset, skip| Permutation { offset, skip, weight: 1.0 };
        assert_eq!(fill(&[wish(3, 4), wish(0, 2), wish(3, 1)], 7), [1, 0, 1, 0, 2, 2, 0]);
        assert_eq!(fill(&[wish(3, 4), wish(3, 1)], 7), [0, 0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn equal_targets_differ_by_a_slot_and_weights_share_in_proportion() {
        for n in [1, 2, 10, 100, 1000] {
            let slots = slots(&lb(n, &vec![1.0; n], None).1, n);
            assert!(slots.iter().max().unwrap() - slots.iter().min().unwrap() <= 1);
        }
        let weights = [3.0, 1.0, 0.0, 0.5, 7.25];
        let slots = slots(&lb(5, &weights, None).1, 5);
        for (slots, w) in slots.iter().zip(weights) {
            assert!((*slots as f64 - w / 11.75 * f64::from(TABLE_SIZE)).abs() <= 2.0, "{slots} {w}");
        }
    }

    /// An ineligible target loses its keys and no other does; a removed one moves at most a hundredth besides.
    #[test]
    fn disruption_is_small() {
        for n in [10usize, 100] {
            let (mut roster, whole) = lb(n, &vec![1.0; n], None);
            let mut out = whole.clone();
            roster.set_eligible(TargetId(4), false);
            out.refresh(&roster);
            assert!(Arc::ptr_eq(&out.table, &whole.table), "no new table for that");
            for i in 0..5000u64 {
                let h = key::hash_number(i);
                let before = whole.clone().pick_where(h, |_| false).unwrap();
                let after = out.pick_where(h, |_| false).unwrap();
                assert!(if before == TargetId(4) { after != TargetId(4) } else { after == before });
            }
            roster.remove(TargetId(4));
            let mut removed = whole.clone();
            removed.refresh(&roster);
            let moved = whole
                .table
                .slots
                .iter()
                .zip(removed.table().slots.iter())
                .filter(|(a, b)| **a != TargetId(4) && a != b)
                .count();
            assert!((moved as f64) < 0.01 * f64::from(TABLE_SIZE), "{moved}");
        }
    }

    #[test]
    fn all_instances_agree_whatever_the_order() {
        let names = ["10.0.0.1:80", "b", "a", "c"];
        let turned = ["c", "a", "b", "10.0.0.1:80"];
        let mut one = Maglev::new(&Roster::new(&[1.0, 2.0, 3.0, 4.0]).named(&names), 1009, None);
        let mut two = Maglev::new(&Roster::new(&[4.0, 3.0, 2.0, 1.0]).named(&turned), 1009, None);
        assert!(one.table().slots.iter().zip(two.table().slots.iter()).all(|(a, b)| a.0 == 3 - b.0));
    }

    #[test]
    fn a_popular_key_walks_on_at_its_bound() {
        let (_, mut lb) = lb(10, &[1.0; 10], Some(1.25));
        for total in 0..100u32 {
            let t = lb.pick_where(99, |t| t == TargetId(5)).unwrap();
            assert!(
                t != TargetId(5)
                    && lb.load().in_flight(t) <= (1.25 * f64::from(total + 1) / 10.0).ceil() as u32
            );
        }
        assert_eq!(lb.pick_where(99, |_| true), None);
        assert_eq!(self::lb(0, &[], None).1.pick_where(1, |_| false), None);
    }

    #[test]
    fn tables_have_prime_sizes() {
        assert!(is_table_size(TABLE_SIZE) && is_table_size(GREATEST_TABLE) && is_table_size(7));
        assert!(!is_table_size(65_536) && !is_table_size(1) && !is_table_size(u32::MAX));
        let wishes: Vec<Permutation> = ["a", "b", "c"].iter().map(|n| Permutation::new(n, 1.0, 64)).collect();
        assert!(fill(&wishes, 64).iter().all(|&t| t < 3), "another size is filled too");
    }
}
