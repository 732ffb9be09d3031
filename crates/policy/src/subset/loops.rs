//! Ringsteady on event loops: disjoint slices of the targets, each on an equal number of loops.
//!
//! - Idea: L loops need not all connect to all targets. The targets are divided into S subsets, each of which L/S
//!   neighbouring loops share, so that connections are S times fewer. S changes rarely, and a loop never gets another
//!   half in exchange for its own.
//! - Signal: the targets alone; neither health nor load. State: 24 bytes per target, the members of each subset in the
//!   order of joining.
//! - Cost of a change: O(S + members of the subsets concerned), O(n) where S changes. None for a pick.
//! - Formula: S is from the chain 1, then always times the least prime factor of what is left of L. At the start the
//!   least with n/S ≤ max, but the one before if n/S < min. Later up while n/S > max and n/S of the next ≥ min, down
//!   while n/S < min and n/S of the one before ≤ max. Loop l has subset ⌊l·S/L⌋. A newcomer goes to the subset with the
//!   fewest members, of equal ones to the first in the van der Corput order (the digits of its place in the factors of
//!   S, reversed). More subsets: each is dealt out in turn, in the order of joining, to those that take its loops; fewer:
//!   they are put together. Then, while the largest (of equal ones the first in that order) has more than
//!   max(1, ⌈n/(10·S)⌉) members more than the smallest (likewise), its newest member moves there.
//! - So one newcomer or leaver concerns L/S loops, a split opens no connection, and with min = 25 and max = 50 nothing
//!   is divided anew from 200 to 400 targets.
//! - Pathologies: unequal loops load unequal subsets, more so with many; one that loses its targets makes its loops
//!   borrow; L prime leaves only 1 and L.
//! - Source: Netflix, "Curbing Connection Churn in Zuul" (2023), after Ward, Wankadia, Guliani, "Reinventing Backend
//!   Subsetting at Google" (2022); the choice of S and the moves are weir's own.
//! - In the language: `subset.loops(min=25, max=50)`.

use super::population::Population;
use super::{SubsetPolicy, renew};
use crate::TargetId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_stats::Key;

/// The arguments of `subset.loops`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopsArgs {
    /// Targets in a subset at least, where another division of them allows that; 1 or more.
    pub min: u32,
    /// Targets in a subset at most, likewise; twice `min` or more.
    pub max: u32,
}

/// A target in a subset. By order of joining.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    joined: u64,
    target: TargetId,
}

/// One subset.
#[derive(Clone, Debug, Default)]
struct Group {
    /// In the order of joining.
    members: Vec<Member>,
    /// By index, as it was last published.
    list: Arc<[TargetId]>,
    /// Whether the members have changed since then.
    is_stale: bool,
}

impl Group {
    fn new(members: Vec<Member>) -> Group {
        Group { members, list: Arc::default(), is_stale: true }
    }

    fn insert(&mut self, member: Member) {
        let at = self.members.partition_point(|other| *other < member);
        self.members.insert(at, member);
        self.is_stale = true;
    }
}

/// Where a target is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    group: u32,
    joined: u64,
}

/// The subsets of one balancer.
#[derive(Clone, Debug)]
pub(super) struct Loops {
    args: LoopsArgs,
    /// The numbers of subsets that divide the loops, and which of them it is now.
    chain: Vec<u32>,
    level: usize,
    groups: Vec<Group>,
    /// The subsets in van der Corput's order.
    order: Vec<u32>,
    /// By target; of targets that do not exist it means nothing.
    places: Vec<Place>,
    /// Targets that have joined so far.
    joined: u64,
}

impl Loops {
    /// Subsets for `n` targets that join next.
    pub fn new(args: LoopsArgs, loops: u32, n: u32) -> Loops {
        debug_assert!(args.min > 0 && args.max / 2 >= args.min, "the language refuses these");
        let chain = chain(loops);
        let level = first_level(&chain, args, n);
        let mut subsets = Loops {
            args,
            level,
            groups: vec![Group::default(); chain[level] as usize],
            order: Vec::new(),
            chain,
            places: Vec::new(),
            joined: 0,
        };
        subsets.order = order(&subsets.chain[..=level]);
        subsets
    }

    /// Adds a target to the subset with the fewest members.
    fn place(&mut self, target: TargetId) {
        let member = Member { joined: self.joined, target };
        self.joined += 1;
        if target.index() >= self.places.len() {
            self.places.resize(target.index() + 1, Place::default());
        }
        let to = self.smallest();
        self.put(to, member);
    }

    fn put(&mut self, to: u32, member: Member) {
        self.groups[to as usize].insert(member);
        self.places[member.target.index()] = Place { group: to, joined: member.joined };
    }

    fn size(&self, group: u32) -> usize {
        self.groups[group as usize].members.len()
    }

    /// The subset with the fewest members, of equal ones the first in order.
    fn smallest(&self) -> u32 {
        self.order.iter().copied().min_by_key(|&group| self.size(group)).unwrap_or_default()
    }

    /// The subset with the most members, of equal ones the first in order.
    fn largest(&self) -> u32 {
        self.order.iter().copied().rev().max_by_key(|&group| self.size(group)).unwrap_or_default()
    }

    /// Divides the targets into more or fewer subsets while their number asks for it.
    fn divide(&mut self, n: u32) {
        let before = self.level;
        let LoopsArgs { min, max } = self.args;
        let [n, min, max] = [n, min, max].map(u64::from);
        let count = |level: usize| self.chain.get(level).copied().map(u64::from);
        let (mut level, mut now) = (before, u64::from(self.chain[before]));
        while let Some(next) = count(level + 1).filter(|next| n > max * now && n >= min * next) {
            (level, now) = (level + 1, next);
        }
        while let Some(fewer) =
            level.checked_sub(1).and_then(count).filter(|fewer| n < min * now && n <= max * fewer)
        {
            (level, now) = (level - 1, fewer);
        }
        while self.level < level {
            self.split();
        }
        while self.level > level {
            self.merge();
        }
        if self.level != before {
            self.order = order(&self.chain[..=self.level]);
        }
    }

    /// Deals each subset out in turn to those that take its loops.
    fn split(&mut self) {
        let by = (self.chain[self.level + 1] / self.chain[self.level]) as usize;
        self.level += 1;
        let before = std::mem::take(&mut self.groups);
        for group in before {
            let mut dealt: Vec<Vec<Member>> = vec![Vec::new(); by];
            for (i, member) in group.members.into_iter().enumerate() {
                dealt[i % by].push(member);
            }
            self.groups.extend(dealt.into_iter().map(Group::new));
        }
        self.name_places();
    }

    /// Puts the subsets together that share the loops of one.
    fn merge(&mut self) {
        let by = (self.chain[self.level] / self.chain[self.level - 1]) as usize;
        self.level -= 1;
        let before = std::mem::take(&mut self.groups);
        for together in before.chunks(by) {
            let mut members: Vec<Member> =
                together.iter().flat_map(|group| &group.members).copied().collect();
            members.sort_unstable();
            self.groups.push(Group::new(members));
        }
        self.name_places();
    }

    fn name_places(&mut self) {
        for (number, group) in (0..).zip(&self.groups) {
            group.members.iter().for_each(|member| self.places[member.target.index()].group = number);
        }
    }

    /// Moves newest members from the largest subset to the smallest while they are too far apart.
    fn level_out(&mut self, n: u32) -> u64 {
        let most_apart = n.div_ceil(10 * self.chain[self.level]).max(1) as usize;
        let mut moves = 0;
        loop {
            let (from, to) = (self.largest(), self.smallest());
            if self.size(from) - self.size(to) <= most_apart {
                return moves;
            }
            let group = &mut self.groups[from as usize];
            group.is_stale = true;
            let Some(newest) = group.members.pop() else { return moves };
            self.put(to, newest);
            moves += 1;
        }
    }
}

impl SubsetPolicy for Loops {
    fn leave(&mut self, _all: &Population, leavers: &[TargetId], _draw: Key) {
        for &target in leavers {
            let Place { group, joined } = self.places[target.index()];
            let group = &mut self.groups[group as usize];
            if let Ok(at) = group.members.binary_search(&Member { joined, target }) {
                group.members.remove(at);
                group.is_stale = true;
            }
        }
    }

    fn join(&mut self, _all: &Population, newcomers: &[TargetId], _draw: Key) {
        newcomers.iter().for_each(|target| self.place(*target));
    }

    fn settle(&mut self, all: &Population) -> u64 {
        self.divide(all.count());
        let moves = self.level_out(all.count());
        for group in self.groups.iter_mut().filter(|group| group.is_stale) {
            renew(&mut group.list, group.members.iter().map(|member| member.target).collect());
            group.is_stale = false;
        }
        moves
    }

    fn lists(&self) -> Vec<Arc<[TargetId]>> {
        self.groups.iter().map(|group| group.list.clone()).collect()
    }
}

/// The possible numbers of subsets: 1, then always times the least prime factor of what is left of the loops.
pub(super) fn chain(loops: u32) -> Vec<u32> {
    let (mut chain, mut now, mut left, mut factor) = (vec![1], 1, loops.max(1), 2);
    while left > 1 {
        while !left.is_multiple_of(factor) {
            factor += 1;
        }
        left /= factor;
        now *= factor;
        chain.push(now);
    }
    chain
}

/// Where in the chain a balancer of `n` targets begins.
fn first_level(chain: &[u32], args: LoopsArgs, n: u32) -> usize {
    let [n, min, max] = [n, args.min, args.max].map(u64::from);
    let fits = chain.iter().position(|count| n <= max * u64::from(*count)).unwrap_or(chain.len() - 1);
    if n < min * u64::from(chain[fits]) { fits.saturating_sub(1) } else { fits }
}

/// The subsets in van der Corput's order, for the last number of a chain: the i-th has the digits of i in the factors,
/// reversed.
pub(super) fn order(chain: &[u32]) -> Vec<u32> {
    let count = chain.last().copied().unwrap_or(1);
    let place = |i: u32| {
        let (mut rest, mut number) = (i, 0);
        for pair in chain.windows(2) {
            let factor = pair[1] / pair[0];
            number += rest % factor * (count / pair[1]);
            rest /= factor;
        }
        number
    };
    (0..count).map(place).collect()
}
