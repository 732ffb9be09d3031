//! Subsets against their specification, a naive twin, and the figures of the literature.

use super::loops::{chain, order};
use super::naive::Naive;
use super::*;
use std::collections::BTreeSet;

const ZUUL: LoopsArgs = LoopsArgs { min: 25, max: 50 };

fn loops_of(args: LoopsArgs, loops: u32, n: usize, seed: u64) -> Subsets {
    Subsets::new(Subset::Loops(args), loops, Key::new(seed), &vec![true; n], &TargetNames::default())
}

fn add(target: TargetId, name: &str) -> TargetChange<'_> {
    TargetChange::Add { target, weight: 1.0, name }
}

fn names_of(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("10.0.{}.{}:80", i / 250, i % 250)).collect()
}

/// The subset of each loop.
fn on_loops(table: &SubsetTable) -> Vec<BTreeSet<TargetId>> {
    (0..table.loops()).map(|on| table.members(table.number_on(on)).iter().copied().collect()).collect()
}

/// How many connections of loops are opened from one table to the other, and how many are closed.
fn opened_and_closed(before: &SubsetTable, after: &SubsetTable) -> [usize; 2] {
    let (before, after) = (on_loops(before), on_loops(after));
    let opened = before.iter().zip(&after).map(|(b, a)| a.difference(b).count()).sum();
    let closed = before.iter().zip(&after).map(|(b, a)| b.difference(a).count()).sum();
    [opened, closed]
}

/// A random history of changes of targets: their numbers walk between bounds.
struct History {
    exists: Vec<bool>,
    key: Key,
    step: u64,
    /// Where the number of targets tends to.
    tends_to: f64,
}

/// The targets of one change.
struct Turn {
    leavers: Vec<TargetId>,
    newcomers: Vec<TargetId>,
}

impl History {
    fn new(n: usize, seed: u64) -> History {
        History { exists: vec![true; n], key: Key::new(seed), step: 0, tends_to: n as f64 }
    }

    fn there(&self) -> Vec<TargetId> {
        TargetId::all(self.exists.len() as u32).filter(|t| self.exists[t.index()]).collect()
    }

    /// One to `most` targets come and go at once; some at an index that has just become free.
    fn turn(&mut self, most: u64) -> Turn {
        self.step += 1;
        let draw = self.key.with(self.step);
        if draw.nth(0).below(200) == 0 {
            self.tends_to = 20.0 + draw.nth(1).unit() * 1000.0;
        }
        let n = self.there().len() as f64;
        let (mut leavers, mut newcomers) = (BTreeSet::new(), Vec::new());
        for i in 0..1 + draw.nth(2).below(most) {
            let roll = draw.with(i);
            if roll.unit() < 0.5 + 0.4 * ((self.tends_to - n) / self.tends_to).clamp(-1.0, 1.0) {
                let free =
                    self.exists.iter().position(|exists| !exists).filter(|_| roll.nth(1).below(2) == 0);
                let target = TargetId(free.unwrap_or(self.exists.len()) as u32);
                self.exists.resize(self.exists.len().max(target.index() + 1), false);
                self.exists[target.index()] = true;
                newcomers.push(target);
            } else {
                let there = self.there();
                let Some(&target) = there.get(roll.nth(2).below(there.len().max(1) as u64) as usize) else {
                    continue;
                };
                if !newcomers.contains(&target) {
                    self.exists[target.index()] = false;
                    leavers.insert(target);
                }
            }
        }
        Turn { leavers: leavers.into_iter().collect(), newcomers }
    }
}

impl Turn {
    /// The changes, the leavers first.
    fn changes(&self) -> impl Iterator<Item = TargetChange<'static>> + Clone {
        let leave = self.leavers.iter().map(|target| TargetChange::Remove(*target));
        let join = self.newcomers.iter().map(|target| add(*target, ""));
        leave.chain(join).collect::<Vec<_>>().into_iter()
    }

    fn is_empty(&self) -> bool {
        self.leavers.is_empty() && self.newcomers.is_empty()
    }
}

#[test]
fn chains_and_orders_are_those_of_the_factors() {
    let chains = [1, 2, 5, 6, 7, 12, 16, 24].map(chain);
    let want: [&[u32]; 8] =
        [&[1], &[1, 2], &[1, 5], &[1, 2, 6], &[1, 7], &[1, 2, 4, 12], &[1, 2, 4, 8, 16], &[1, 2, 4, 8, 24]];
    assert_eq!(chains.each_ref().map(Vec::as_slice), want);
    assert_eq!(order(&[1, 2, 4, 8]), [0, 4, 2, 6, 1, 5, 3, 7]);
    assert_eq!(order(&[1, 2, 6]), [0, 3, 1, 4, 2, 5]);
    assert_eq!((order(&[1]), order(&[1, 5])), (vec![0], vec![0, 1, 2, 3, 4]));
    assert_eq!(chain(1024).len(), 11);
}

/// The table of `subset.loops` for 8, 16 and 32 loops, and Zuul's own figure: 400 targets on 32 loops are 8 subsets of
/// 50, each on 4.
#[test]
fn the_first_number_of_subsets_is_the_least_that_fits() {
    let rows = [
        (50, [1, 1, 1]),
        (51, [2, 2, 2]),
        (100, [2, 2, 2]),
        (101, [4, 4, 4]),
        (200, [4, 4, 4]),
        (201, [8, 8, 8]),
        (400, [8, 8, 8]),
        (401, [8, 16, 16]),
        (800, [8, 16, 16]),
        (801, [8, 16, 32]),
        (1600, [8, 16, 32]),
        (5000, [8, 16, 32]),
    ];
    for (n, want) in rows {
        let counts = [8, 16, 32].map(|loops| loops_of(ZUUL, loops, n, 1).table().count());
        assert_eq!(counts, want, "{n} targets");
    }
    let odd = [
        (6, 120, 2),
        (6, 149, 2),
        (6, 160, 6),
        (12, 190, 4),
        (12, 300, 12),
        (7, 100, 1),
        (7, 175, 7),
        (1, 999, 1),
    ];
    for (loops, n, want) in odd {
        assert_eq!(loops_of(ZUUL, loops, n, 1).table().count(), want, "{n} targets on {loops} loops");
    }
    let zuul = loops_of(ZUUL, 32, 400, 7);
    assert_eq!(zuul.table().sizes(), SubsetSizes { count: 8, least: 50, most: 50 });
    let numbers: Vec<u32> = (0..32).map(|on| zuul.table().number_on(on)).collect();
    assert_eq!(numbers, (0..32).map(|on| on / 4).collect::<Vec<u32>>());
}

/// As the text of the article has it, nothing is divided anew from 200 to 400 targets; as its graph has it, with a band
/// of 50 to 100, four subsets become eight beyond 400.
#[test]
fn from_200_to_400_nothing_is_divided_anew() {
    let mut text = loops_of(ZUUL, 32, 201, 2);
    let mut graph = loops_of(LoopsArgs { min: 50, max: 100 }, 32, 201, 2);
    let mut down = loops_of(ZUUL, 32, 401, 2);
    assert_eq!(down.table().count(), 16);
    for n in 201..400 {
        for subsets in [&mut text, &mut graph] {
            let before = subsets.table().clone();
            let after = subsets.change([add(TargetId(n), "")].into_iter());
            let each = (32 / after.count()) as usize;
            assert_eq!(opened_and_closed(&before, after), [each, 0], "{n}");
        }
    }
    assert_eq!((text.table().count(), graph.table().count()), (8, 4));
    assert_eq!((text.moves(), graph.moves()), (0, 0));
    assert_eq!(graph.table().sizes(), SubsetSizes { count: 4, least: 100, most: 100 });
    let before = graph.table().clone();
    let after = graph.change([add(TargetId(400), "")].into_iter());
    assert_eq!((after.count(), opened_and_closed(&before, after)[0]), (8, 4), "the newcomer's alone");
    assert_eq!(
        down.change((0..1).map(|t| TargetChange::Remove(TargetId(t)))).count(),
        16,
        "400 may stay in 16"
    );
    assert_eq!(
        down.change((1..2).map(|t| TargetChange::Remove(TargetId(t)))).count(),
        8,
        "399 are below 25 each"
    );
}

/// Everything that the contract says of one change, and the same as the naive twin, for numbers of loops with all kinds of
/// factors.
#[test]
fn loops_keep_their_rules_over_any_history() {
    for (loops, steps) in [(1, 200), (6, 1000), (7, 500), (8, 2000), (12, 1000), (16, 2000), (32, 1500)] {
        let args = [ZUUL, LoopsArgs { min: 3, max: 7 }, LoopsArgs { min: 1, max: 2 }];
        for (seed, args) in (u64::from(loops)..).zip(args) {
            check_history(args, loops, steps / 2, seed);
        }
    }
}

fn check_history(args: LoopsArgs, loops: u32, steps: u64, seed: u64) {
    let mut history = History::new(60, seed);
    let mut subsets = loops_of(args, loops, 60, seed);
    let key = Key::new(seed);
    let shuffle = |targets: Vec<TargetId>, step: u64| {
        let n = targets.len();
        crate::fleet::draw(targets, n, key.with(step))
    };
    let mut naive = Naive::new(args, loops, &shuffle(history.there(), 0));
    let mut number = 1;
    for step in 0..steps {
        let turn = history.turn(if step % 10 == 0 { 30 } else { 1 });
        if turn.is_empty() {
            continue;
        }
        let (before, moves) = (subsets.table().clone(), subsets.moves());
        subsets.change(turn.changes());
        let moves = subsets.moves() - moves;
        naive.change(&turn.leavers, &shuffle(turn.newcomers.clone(), number));
        number += 1;
        let after = subsets.table();
        check_change(&before, after, &turn, moves);
        let n = history.there().len() as u32;
        let sizes = after.sizes();
        assert!(sizes.most - sizes.least <= n.div_ceil(10 * sizes.count).max(1), "{sizes:?} of {n}");
        assert_eq!((sizes.count, subsets.moves()), (naive.count, naive.moves), "{loops} loops, step {step}");
        assert_eq!(naive.members.len() as u32, n);
        for member in &naive.members {
            assert!(after.members(member.subset).binary_search(&member.target).is_ok(), "step {step}");
        }
        let all: usize = (0..after.count()).map(|number| after.members(number).len()).sum();
        assert_eq!(all, n as usize, "every target in exactly one subset");
    }
}

/// What one change may do to connections.
fn check_change(before: &SubsetTable, after: &SubsetTable, turn: &Turn, moves: u64) {
    let [opened, closed] = opened_and_closed(before, after);
    let each = |table: &SubsetTable| (table.loops() / table.count()) as usize;
    let moved = moves as usize * each(after);
    if after.count() >= before.count() {
        // One that leaves and joins anew at its index in one change may come to the same loops.
        assert!(opened <= turn.newcomers.len() * each(after) + moved, "a split opens nothing");
    }
    if after.count() == before.count() {
        assert!(closed <= turn.leavers.len() * each(after) + moved);
        if moves == 0 && turn.newcomers.len() + turn.leavers.len() == 1 {
            assert_eq!(opened + closed, each(after), "one join or leave concerns L/S loops");
        }
    }
    if after.count() < before.count() && moves == 0 {
        let known = on_loops(before)
            .iter()
            .zip(on_loops(after))
            .all(|(b, a)| b.iter().all(|target| a.contains(target) || turn.leavers.contains(target)));
        assert!(known, "a merge closes nothing");
    }
    for number in (0..after.count()).filter(|_| moves == 0 && after.count() == before.count()) {
        let [was, is] = [before, after].map(|table| table.members(number));
        let concerned = turn.newcomers.iter().chain(&turn.leavers);
        let concerns = |list: &[TargetId]| concerned.clone().any(|target| list.contains(target));
        assert_eq!(Arc::ptr_eq(&before.list(number), &after.list(number)), was == is);
        assert!(was == is || concerns(was) || concerns(is));
    }
}

/// Ten thousand changes of one target each: the bound holds after each, and few are moves.
#[test]
fn ten_thousand_changes_of_one_target() {
    let (mut history, mut subsets) = (History::new(400, 5), loops_of(ZUUL, 32, 400, 5));
    for _ in 0..10_000 {
        let turn = history.turn(1);
        subsets.change(turn.changes());
        let (n, sizes) = (history.there().len() as u32, subsets.table().sizes());
        assert!(sizes.most - sizes.least <= n.div_ceil(10 * sizes.count).max(1), "{sizes:?} of {n}");
    }
    assert!(subsets.moves() < 500, "{}", subsets.moves());
}

/// 400 targets in 8 subsets shrink at random to 200: about 20 moves, at most 40. Without them the largest would be half
/// again as large as the smallest.
#[test]
fn shrinking_at_random_moves_few() {
    let mut all = Vec::new();
    for seed in 0..50 {
        let mut subsets = loops_of(ZUUL, 32, 400, seed);
        let leavers = crate::fleet::draw((0..400).map(TargetId).collect(), 200, Key::new(seed).with(77));
        for target in leavers {
            subsets.change([TargetChange::Remove(target)].into_iter());
            let sizes = subsets.table().sizes();
            assert_eq!(sizes.count, 8);
            assert!(sizes.most * 100 <= sizes.least * 125, "{sizes:?}");
        }
        all.push(subsets.moves());
    }
    let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
    assert!((15.0..25.0).contains(&mean) && all.iter().all(|moves| *moves <= 40), "{mean} {all:?}");
}

/// 40 leave and 40 join as one change: the newcomers fill up what the leavers left, and nothing moves.
#[test]
fn a_list_is_one_change() {
    let mut subsets = loops_of(ZUUL, 32, 400, 3);
    let before = subsets.table().clone();
    let joins = (400..440).map(|t| add(TargetId(t), ""));
    let leaves = crate::fleet::draw((0..400).collect(), 40, Key::new(9));
    subsets.change(joins.chain(leaves.into_iter().map(|t| TargetChange::Remove(TargetId(t)))));
    assert_eq!((subsets.table().sizes().most, subsets.table().sizes().least, subsets.moves()), (50, 50, 0));
    assert_eq!(opened_and_closed(&before, subsets.table()), [160, 160]);
}

/// An even replacement, one leaver and one newcomer each time, never puts subsets apart by more than one.
#[test]
fn replacements_keep_subsets_equal() {
    let mut subsets = loops_of(ZUUL, 32, 400, 3);
    for step in 0..4_000u32 {
        let leaver = Key::new(8).with(u64::from(step)).below(400) as u32;
        subsets.change([TargetChange::Remove(TargetId(leaver)), add(TargetId(leaver), "")].into_iter());
        let sizes = subsets.table().sizes();
        assert_eq!((sizes.most, sizes.least), (50, 50));
    }
    assert_eq!(subsets.moves(), 0);
}

fn every_policy(size: u32) -> [Subset; 5] {
    let args = InstanceArgs { size, instance: 3, instances: 10 };
    [
        Subset::Loops(LoopsArgs { min: size / 2, max: size }),
        Subset::Random(RandomArgs { size }),
        Subset::Rendezvous(RendezvousArgs { size, seed: None }),
        Subset::Deterministic(args),
        Subset::Ringsteady(args),
    ]
}

/// The result is a function of the history: on another thread's copy, and followed by what exists instead of by
/// changes, it is the same; subsets have their sizes, and only targets that exist.
#[test]
fn every_policy_is_a_function_of_its_history() {
    for subset in every_policy(20) {
        let mut history = History::new(100, 12);
        let names = TargetNames::new(&names_of(3000));
        let make = || Subsets::new(subset, 8, Key::new(2), &[true; 100], &names);
        let (mut first, mut again) = (make(), make());
        for _ in 0..600 {
            let mut turn = history.turn(3);
            // What is followed by index cannot tell that another target has come to an index at once.
            let reused = |t: &TargetId| turn.leavers.contains(t) && turn.newcomers.contains(t);
            if turn.leavers.iter().any(reused) {
                continue;
            }
            turn.newcomers.sort_unstable();
            let join = turn.newcomers.iter().map(|t| add(*t, &names[t.index()]));
            first.change(turn.leavers.iter().map(|t| TargetChange::Remove(*t)).chain(join));
            let exists: Vec<bool> =
                (0..history.exists.len()).map(|i| first.all.exists(TargetId(i as u32))).collect();
            again.follow(&exists, &names);
            assert_eq!((first.table(), first.moves()), (again.table(), again.moves()), "{}", subset.name());
            let sizes = first.table().sizes();
            let n = first.all.count();
            for on in 0..8 {
                let members = first.table().members(first.table().number_on(on));
                assert!(members.is_sorted() && members.iter().all(|t| first.all.exists(*t)));
            }
            if !matches!(subset, Subset::Loops(_)) {
                assert_eq!(
                    (sizes.count, sizes.least, sizes.most),
                    (8, n.min(20), n.min(20)),
                    "{}",
                    subset.name()
                );
            }
        }
        let table = again.table().clone();
        assert!(again.follow(&exists_of(&first), &names).is_copy_of(&table), "no change, no table");
    }
}

fn exists_of(subsets: &Subsets) -> Vec<bool> {
    (0..3000).map(|i| subsets.all.exists(TargetId(i))).collect()
}

/// 1,024 loops and 3 targets, no targets, one loop: no policy fails.
#[test]
fn extremes_have_subsets() {
    for subset in every_policy(2) {
        for (loops, n) in [(1024, 3), (1, 0), (1, 1000), (7, 0), (0, 5)] {
            let names = TargetNames::new(&names_of(n));
            let mut subsets = Subsets::new(subset, loops, Key::new(1), &vec![true; n], &names);
            assert_eq!(subsets.table().loops(), loops.max(1));
            subsets.change((0..n as u32).map(|t| TargetChange::Remove(TargetId(t))));
            assert_eq!(subsets.table().sizes().most, 0, "{} {loops} {n}", subset.name());
            subsets.change([add(TargetId(0), "a"), add(TargetId(1), "b")].into_iter());
            let covered: BTreeSet<TargetId> = on_loops(subsets.table()).into_iter().flatten().collect();
            assert_eq!(covered.len(), 2, "{} {loops} {n}", subset.name());
        }
    }
}

/// Each target is drawn as often, at the start and after any change.
#[test]
fn random_sets_are_equally_likely() {
    let mut seen = [[0u32; 9]; 2];
    for seed in 0..20_000 {
        let subset = Subset::Random(RandomArgs { size: 3 });
        let mut subsets = Subsets::new(subset, 1, Key::new(seed), &[true; 6], &TargetNames::default());
        subsets.table().members(0).iter().for_each(|t| seen[0][t.index()] += 1);
        let changes = [0, 1].map(|t| TargetChange::Remove(TargetId(t)));
        subsets.change(changes.into_iter().chain([6, 7, 8].map(|t| add(TargetId(t), ""))));
        subsets.table().members(0).iter().for_each(|t| seen[1][t.index()] += 1);
    }
    // Five standard errors.
    let close = |n: u32, share: f64| {
        (f64::from(n) - 20_000.0 * share).abs() < 5.0 * (20_000.0 * share * (1.0 - share)).sqrt()
    };
    assert!(seen[0][..6].iter().all(|n| close(*n, 0.5)), "{seen:?}");
    assert!(seen[1][2..].iter().all(|n| close(*n, 3.0 / 7.0)), "{seen:?}");
}

/// gRPC's rule, in its obvious form.
#[test]
fn rendezvous_takes_the_highest_hashes() {
    let names = names_of(120);
    let subset = Subset::Rendezvous(RendezvousArgs { size: 10, seed: Some(4711) });
    let mut history = History::new(40, 3);
    let mut subsets = Subsets::new(subset, 6, Key::new(9), &[true; 40], &TargetNames::new(&names[..40]));
    let check = |subsets: &Subsets, there: &[TargetId]| {
        for on in 0..6 {
            let hash = |t: &TargetId| twox_hash::XxHash64::oneshot(4711 + on, names[t.index()].as_bytes());
            let mut all = there.to_vec();
            all.sort_by_key(|t| std::cmp::Reverse(hash(t)));
            all.truncate(10);
            all.sort_unstable();
            assert_eq!(subsets.table().members(on as u32), all);
        }
    };
    check(&subsets, &history.there());
    history.tends_to = 60.0;
    for _ in 0..150 {
        let turn = history.turn(2);
        if history.exists.len() > names.len() {
            break;
        }
        let join = turn.newcomers.iter().map(|t| add(*t, &names[t.index()]));
        let before = subsets.table().clone();
        subsets.change(turn.leavers.iter().map(|t| TargetChange::Remove(*t)).chain(join));
        check(&subsets, &history.there());
        let [opened, _] = opened_and_closed(&before, subsets.table());
        assert!(
            opened <= 6 * (turn.leavers.len() + turn.newcomers.len()),
            "a change concerns one member of each"
        );
    }
}

/// Connections that `change` opens for 100 clients, and the mean load over the greatest, as in the table of the notes.
fn measure(subset: impl Fn(u32) -> Subset, instances: u32, loops: u32, n: usize) -> (usize, f64) {
    let names = names_of(n + 1);
    let (mut opened, mut load) = (0, vec![0u32; n]);
    for instance in 0..instances {
        let start = TargetNames::new(&names[..n]);
        let mut subsets =
            Subsets::new(subset(instance), loops, Key::new(u64::from(instance)), &vec![true; n], &start);
        let before = subsets.table().clone();
        on_loops(&before).iter().flatten().for_each(|t| load[t.index()] += 1);
        let after = subsets.change([add(TargetId(n as u32), &names[n])].into_iter());
        opened += opened_and_closed(&before, after)[0];
    }
    let most = f64::from(load.iter().copied().max().unwrap_or(1));
    (opened, load.iter().sum::<u32>() as f64 / n as f64 / most)
}

/// The figures of the notes: connections opened by one more target, and mean over greatest number of them per target.
#[test]
fn the_policies_of_many_instances_are_as_measured() {
    for (instances, n, size, ring, even) in
        [(100, 300, 20, 6, 0.833), (300, 300, 30, 29, 1.0), (300, 100, 20, 59, 0.952), (64, 400, 50, 8, 1.0)]
    {
        let of = |instance| InstanceArgs { size, instance, instances };
        let (opened, share) = measure(|i| Subset::Ringsteady(of(i)), instances, 1, n);
        assert!(
            opened.abs_diff(ring) <= 1 + ring / 20 && (share - even).abs() < 0.01,
            "{n}: {opened} {share}"
        );
    }
    for (instances, n, size, even) in [(100, 300, 20, 0.952), (300, 300, 30, 1.0), (300, 100, 20, 1.0)] {
        let of = |instance| InstanceArgs { size, instance, instances };
        let (opened, share) = measure(|i| Subset::Deterministic(of(i)), instances, 1, n);
        let total = instances as usize * size as usize;
        assert!(
            (0.2..0.7).contains(&(opened as f64 / total as f64)),
            "it shuffles anew: {opened} of {total}"
        );
        assert!((share - even).abs() < 0.01, "{n}: {share}");
    }
    let rendezvous = |_| Subset::Rendezvous(RendezvousArgs { size: 20, seed: None });
    let (opened, share) = measure(rendezvous, 100, 1, 300);
    assert!(opened < 20 && (0.35..0.7).contains(&share), "{opened} {share}");
}

/// Loops of several instances are clients one after another: 10 instances of 10 loops are as 100 of one.
#[test]
fn loops_are_clients() {
    let names = TargetNames::new(&names_of(300));
    let table =
        |subset, loops| Subsets::new(subset, loops, Key::new(1), &[true; 300], &names).table().clone();
    for policy in [Subset::Deterministic, Subset::Ringsteady] {
        let args = |instance, instances| InstanceArgs { size: 20, instance, instances };
        for client in [0, 9, 10, 37, 99] {
            let (alone, among) =
                (table(policy(args(client, 100)), 1), table(policy(args(client / 10, 10)), 10));
            assert_eq!(alone.members(0), among.members(client % 10));
        }
    }
}

/// A shuffle by the instance: another one groups other targets, and as many as chance lets.
#[test]
fn instances_group_different_targets() {
    let tables = [1, 2].map(|seed| loops_of(ZUUL, 8, 400, seed).table().clone());
    let [a, b] = tables.each_ref().map(on_loops);
    let common: Vec<usize> = (0..8).map(|i| a[i].intersection(&b[i]).count()).collect();
    let mean = common.iter().sum::<usize>() as f64 / 8.0;
    assert!((3.0..10.0).contains(&mean), "50^2 / 400 is 6.25: {common:?}");
}

/// A target's subset, and which loops have it.
#[test]
fn the_table_knows_the_subset_of_a_target() {
    let subsets = loops_of(ZUUL, 32, 400, 1);
    let table = subsets.table();
    for target in (0..400).map(TargetId) {
        let number = table.number_of(target).expect("each is in one");
        let on: Vec<u32> = (0..32).filter(|on| table.has(*on, target)).collect();
        assert_eq!(on, (number * 4..number * 4 + 4).collect::<Vec<u32>>());
    }
    assert_eq!(table.number_of(TargetId(400)), None);
    let random = Subsets::new(
        Subset::Random(RandomArgs { size: 9 }),
        2,
        Key::new(1),
        &[true; 9],
        &TargetNames::default(),
    );
    assert!(random.table().number_of(TargetId(3)).is_none() && random.table().has(1, TargetId(3)));
    assert_eq!(random.moves(), 0);
}
