//! Sources of members: what lists the targets of a fleet.
//!
//! A source gives whole lists ([`Snapshot`]), or says why there is none ([`Fault`]); what a missing list or a missing
//! member means is decided by the consumer, not here.
#![forbid(unsafe_code)]

mod fault;
mod list;
mod place;

pub use fault::{Defect, Fault, FaultKind};
pub use list::json::parse;
pub use list::{Finding, MOST_BYTES, MOST_ENTRIES, MOST_FINDINGS, MOST_MEMBERS, Member, Snapshot, State};
pub use place::Place;
