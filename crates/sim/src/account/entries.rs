//! How many selected requests entered each stage: those that entered its block, plus the attempts that retries further
//! out added, less those refused or cut off on the way.
//!
//! All stages are summed up in one pass from the outermost in. Each by itself would have to look at all that are
//! further out, which is quadratic in a deep chain of nodes.

use crate::account::ledger::Ledger;
use crate::code::{Code, MemberId, StageId};

/// Entries of selected requests, by stage and by the index of the member within its block.
pub(crate) struct Entries {
    /// Where each stage's counts begin.
    starts: Vec<usize>,
    counts: Vec<u64>,
}

impl Entries {
    /// Those of a finished replication.
    pub fn new(code: &Code, ledger: &Ledger) -> Entries {
        let mut entries = Entries { starts: vec![0; code.stages.len()], counts: Vec::new() };
        for block in &code.blocks {
            let member = |index: u32| MemberId(block.base + index);
            let mut coming: Vec<u64> =
                (0..block.members).map(|i| ledger.entries[member(i).index_from(0)]).collect();
            for number in block.stages.clone() {
                let stage = &code.stages[number as usize];
                entries.starts[number as usize] = entries.counts.len();
                for (index, coming) in (0..).zip(&mut coming) {
                    let at = |offset: u32| member(index).index_from(offset);
                    let own = stage.entries.map(|offset| ledger.entries[at(offset)]);
                    entries.counts.push(own.unwrap_or(*coming));
                    let added = stage.repeats.map_or(0, |offset| ledger.repeats[at(offset)]);
                    let refused = stage.refusals.map_or(0, |offset| ledger.refusals[at(offset)]);
                    let cut = stage.cuts.map_or(0, |offset| ledger.cuts[at(offset)]);
                    // Behind a stage that counts for itself this may be below zero, and is used nowhere.
                    *coming = coming.wrapping_add(added).wrapping_sub(refused).wrapping_sub(cut);
                }
            }
        }
        entries
    }

    /// Those of a stage, at the member of its block with that index.
    pub fn get(&self, stage: StageId, index: u32) -> u64 {
        self.counts[self.starts[stage.index()] + index as usize]
    }
}
