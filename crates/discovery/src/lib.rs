//! Sources of members: what lists the targets of a fleet, and follows the list while weir serves.
//!
//! A source gives whole lists ([`Snapshot`]), or says why there is none ([`Fault`]); what a missing list or a missing
//! member means is decided by the consumer, not here. So far there is one source, a JSON file ([`Source::File`]).
//! Another is a new folder beside `file`, a variant of [`Source`], and an arm where the thread drives it.
//!
//! Everything that decides takes the time as an argument; only [`run`] has a clock, and threads: one that waits for changes of
//! all sources of a process, and one for each file, since reading it may take as long as its file system likes.
#![forbid(unsafe_code)]

mod clock;
mod fault;
mod file;
mod list;
mod place;
mod run;

pub use fault::{Defect, Fault, FaultKind, Unwatched, UnwatchedKind};
pub use list::json::parse;
pub use list::{Finding, MOST_BYTES, MOST_ENTRIES, MOST_FINDINGS, MOST_MEMBERS, Member, Snapshot, State};
pub use place::Place;
pub use run::{Discovery, News, Source, Update, run};
