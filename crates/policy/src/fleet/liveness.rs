//! Discovery is not liveness: what holds for every sequence of lists, failures, recoveries and statements.
//!
//! `naive` compares all that [`Members`] does with the rules; here a few promises are checked by what can be
//! seen from outside.

use super::{Doubt, Entry, MemberChange, MemberRecord, Members, State, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use weir_stats::Key;

/// How many members there may be.
const RANGE: u64 = 8;

/// Members and what is known of each.
type Table = BTreeMap<u64, MemberRecord>;

/// An input of a fleet.
#[derive(Debug)]
enum Input {
    List(Vec<Entry<u64>>),
    /// A list which says that others are in the place of these members.
    Replacement(Vec<u64>, Vec<Entry<u64>>),
    /// These members are gone, as the source says.
    Statement(Vec<u64>),
    /// A connection to a member fails.
    Failure(u64),
    /// Time passes.
    Time,
}

impl Input {
    fn list(&self) -> Option<&[Entry<u64>]> {
        match self {
            Input::List(list) | Input::Replacement(_, list) => Some(list),
            _ => None,
        }
    }

    /// The members of which the source says that they are gone.
    fn gone(&self) -> &[u64] {
        match self {
            Input::Replacement(keys, _) | Input::Statement(keys) => keys,
            _ => &[],
        }
    }
}

/// An input, its time, and the members that answer then.
#[derive(Debug)]
struct Step {
    now_ns: u64,
    input: Input,
    answering: BTreeSet<u64>,
}

/// A list of all members, most, some or none, with doubled and wrong entries.
fn draw_list(draw: Key) -> Vec<Entry<u64>> {
    let share = [1.0, 0.8, 0.5, 0.2, 0.0][draw.nth(0).below(5) as usize];
    let mut entries = Vec::new();
    for i in 0..RANGE + 2 {
        let draw = draw.with(i);
        let key = if i < RANGE { i } else { draw.nth(0).below(RANGE) };
        if draw.nth(1).unit() < share {
            let state = if draw.nth(2).below(6) == 0 { State::Drain } else { State::Up };
            let weight = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 0.0, f64::NAN][draw.nth(3).below(8) as usize];
            entries.push(Entry { key, state, weight });
        }
    }
    entries
}

/// A sequence of inputs. Connections fail to members that do not answer.
fn draw_steps(draw: Key) -> Vec<Step> {
    let (mut now_ns, mut answering) = (0, (0..RANGE).collect::<BTreeSet<u64>>());
    let mut steps = Vec::new();
    for number in 0..40 {
        let draw = draw.with(number);
        now_ns += draw.nth(0).below(4);
        let key = draw.nth(1).below(RANGE);
        let keys = || vec![key, draw.nth(2).below(RANGE)];
        let input = match draw.nth(3).below(12) {
            0..5 => Input::List(draw_list(draw.with(0))),
            5 => Input::Replacement(keys(), draw_list(draw.with(0))),
            6 => Input::Statement(keys()),
            7..9 => {
                // It fails, or recovers.
                if !answering.remove(&key) {
                    answering.insert(key);
                }
                Input::Time
            }
            _ if answering.contains(&key) => Input::Time,
            _ => Input::Failure(key),
        };
        steps.push(Step { now_ns, input, answering: answering.clone() });
    }
    steps
}

/// The doubt of a fleet: every list is believed, or short ones are not.
fn draw_doubt(draw: Key) -> Doubt {
    let shrink = [None, Some(0.0), Some(0.1), Some(0.5), Some(0.9)][draw.nth(0).below(5) as usize];
    Doubt { shrink, grace_ns: [1, 5, 20, u64::MAX][draw.nth(1).below(4) as usize] }
}

fn apply(members: &mut Members<u64>, step: &Step, changes: &mut Vec<MemberChange<u64>>) -> Option<Verdict> {
    let now_ns = step.now_ns;
    match &step.input {
        Input::List(list) => return Some(members.list(now_ns, list, changes)),
        Input::Replacement(keys, list) => return Some(members.replace(now_ns, keys, list, changes)),
        Input::Statement(keys) => members.state_gone(now_ns, keys, changes),
        Input::Failure(key) => members.failed(now_ns, key, changes),
        Input::Time => members.tick(now_ns, changes),
    }
    None
}

fn read_table(members: &Members<u64>, now_ns: u64) -> Table {
    members.records(now_ns).map(|(key, record)| (*key, record)).collect()
}

/// The members that are picked and answer.
fn find_living(table: &Table, step: &Step) -> Vec<u64> {
    let living = table.iter().filter(|(key, record)| !record.drain && step.answering.contains(*key));
    living.map(|(key, _)| *key).collect()
}

/// How often it mattered.
#[derive(Debug, Default)]
struct Tally {
    /// Lists in doubt that lacked all members of which some answered.
    emptied: u32,
    /// Members whose grace was over.
    ended: usize,
    /// Members that drain by what their list says.
    drained: u32,
    /// Members that were stated to be gone, and were there.
    gone: usize,
}

/// A list in doubt takes nothing away that answers, and no list or failure empties a fleet of which a member
/// does.
fn check_liveness(step: &Step, verdict: Option<Verdict>, before: &Table, after: &Table, tally: &mut Tally) {
    let living = find_living(before, step);
    if living.is_empty() || !step.input.gone().is_empty() {
        return;
    }
    assert!(!after.is_empty(), "no member is left of {before:?} after {step:?}");
    if verdict.is_none_or(|verdict| verdict == Verdict::Doubted) {
        let lost: Vec<_> = living.iter().filter(|key| !after.contains_key(*key)).collect();
        assert!(lost.is_empty(), "{lost:?} of {before:?} are lost after {step:?}");
    }
    let is_empty = step.input.list().is_some_and(|list| !list.iter().any(Entry::is_valid));
    tally.emptied += u32::from(is_empty);
}

/// What a source states is believed at once, in doubted lists as well.
fn check_statements(step: &Step, before: &Table, after: &Table, tally: &mut Tally) {
    let mut drains = BTreeMap::new();
    for entry in step.input.list().unwrap_or_default().iter().filter(|entry| entry.is_valid()) {
        *drains.entry(entry.key).or_insert(true) &= entry.is_draining();
    }
    for (key, drain) in &drains {
        assert_eq!(after.get(key).map(|record| record.drain), Some(*drain), "{key} after {step:?}");
        tally.drained += u32::from(*drain);
    }
    for key in step.input.gone().iter().filter(|key| !drains.contains_key(*key)) {
        assert!(!after.contains_key(key), "{key} after {step:?}");
        tally.gone += usize::from(before.contains_key(key));
    }
}

/// Since when lists have lacked the members that are there all the same.
type Missing = BTreeMap<u64, u64>;

/// No member is picked that a believed list lacks, nor longer than for its grace after the first list without
/// it.
fn check_grace(step: &Step, verdict: Option<Verdict>, after: &Table, missing: &mut Missing, grace_ns: u64) {
    if let Some(list) = step.input.list() {
        let listed: BTreeSet<u64> = list.iter().filter(|e| e.is_valid()).map(|e| e.key).collect();
        missing.retain(|key, _| !listed.contains(key));
        for key in after.keys().filter(|key| !listed.contains(*key)) {
            assert_eq!(verdict, Some(Verdict::Doubted), "{key} is there after {step:?}");
            missing.entry(*key).or_insert(step.now_ns);
        }
    }
    missing.retain(|key, _| after.contains_key(key));
    for (key, record) in after {
        let since = missing.get(key);
        assert_eq!(record.withdrawn_for_ns.is_some(), since.is_some(), "{key} after {step:?}");
        assert!(since.is_none_or(|since| step.now_ns - since < grace_ns), "{key} after {step:?}");
    }
}

#[test]
fn what_loops_see_counts_while_a_list_is_in_doubt() {
    let mut tally = Tally::default();
    for number in 0..4_000 {
        let draw = Key::new(48).with(number);
        let doubt = draw_doubt(draw);
        let (mut members, mut missing) = (Members::new(doubt), Missing::new());
        for step in draw_steps(draw) {
            let mut changes = Vec::new();
            members.tick(step.now_ns, &mut changes);
            // Where no grace ends, time takes nothing away: a fleet of which a member answers is never empty.
            assert!(doubt.grace_ns < u64::MAX || changes.is_empty(), "{changes:?}");
            tally.ended += changes.len();
            let before = read_table(&members, step.now_ns);
            let verdict = apply(&mut members, &step, &mut changes);
            let after = read_table(&members, step.now_ns);
            if doubt.shrink.is_some() {
                check_liveness(&step, verdict, &before, &after, &mut tally);
            }
            check_statements(&step, &before, &after, &mut tally);
            check_grace(&step, verdict, &after, &mut missing, doubt.grace_ns);
        }
    }
    // Everything occurs, and often.
    let Tally { emptied, ended, drained, gone } = tally;
    assert!(emptied > 1_000 && ended > 1_000 && drained > 1_000 && gone > 1_000, "{tally:?}");
}

/// Nor does it matter how late the caller's timer is.
#[test]
fn the_same_inputs_give_the_same_changes() {
    for number in 0..1_000 {
        let draw = Key::new(50).with(number);
        let doubt = draw_doubt(draw);
        let run = |is_prompt: bool| {
            let (mut members, mut changes, mut verdicts) = (Members::new(doubt), Vec::new(), Vec::new());
            for step in draw_steps(draw) {
                while let Some(deadline) = members.next_deadline().filter(|d| is_prompt && *d <= step.now_ns)
                {
                    members.tick(deadline, &mut changes);
                }
                verdicts.push(apply(&mut members, &step, &mut changes));
            }
            (changes, verdicts, read_table(&members, u64::MAX))
        };
        let first = run(true);
        assert_eq!(first, run(true));
        assert_eq!(first, run(false));
    }
}
