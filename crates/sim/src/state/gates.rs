//! What gates know of each other: those of a place whose processes run.

use crate::code::changes::{Birth, ChangeTables};
use crate::code::gates::GateTables;
use crate::state::changes::Changes;
use std::collections::BTreeSet;
use weir_policy::gate::{Gate, OtherGate};

/// The other gates of a gate's place that run and are not held, if it judges by them. `lines`: what belongs to each timeline, and
/// whether that is up. `changes`: the fleets and their state.
pub(crate) fn find_others<'t>(
    tables: &GateTables,
    gates: &[Gate],
    gate: u32,
    now_ns: u64,
    lines: impl Iterator<Item = (&'t [Birth], bool)>,
    changes: Option<(&ChangeTables, &Changes)>,
) -> Vec<OtherGate> {
    let mut others = tables.judged_by(gate).peekable();
    if others.peek().is_none() {
        return Vec::new();
    }
    let down: BTreeSet<Birth> =
        lines.filter(|(_, is_up)| !is_up).flat_map(|(births, _)| births).copied().collect();
    let runs = |(other, node): &(u32, u32)| {
        let is_there = changes.is_none_or(|(tables, changes)| changes.is_there(tables, *node));
        is_there && !down.contains(&Birth::Gate(*other)) && gates[*other as usize].held_ns(now_ns).is_none()
    };
    let other = |(number, _): (u32, u32)| OtherGate { number, entered: gates[number as usize].entered() };
    others.filter(runs).map(other).collect()
}
