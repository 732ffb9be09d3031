//! Sources of members: what lists the targets of a fleet, and follows the list while weir serves.
//!
//! A source gives whole lists ([`Snapshot`]), or says why there is none ([`Fault`]); what a missing list or a missing
//! member means is decided by the consumer, not here. `file` follows JSON files; `registry` asks DNS, Eureka, Consul and Kubernetes.
//! Another registry is a file beside those, a variant of [`weir_plan::SourceKind`], and an arm where they are asked.
//!
//! [`run`] follows sources, which begin and end one by one ([`Discovery`]). It has threads: one that waits for changes of all
//! sources of a process, one for each file, since reading it may take as long as its file system likes, and one that asks all
//! registries.
#![forbid(unsafe_code)]

mod clock;
mod fault;
mod file;
mod files;
mod list;
mod place;
mod readers;
mod registry;
mod run;
mod source;

pub use fault::{Defect, Fault, FaultKind, Unwatched, UnwatchedKind, printable};
pub use files::{FileNews, FollowedFiles, follow_files};
pub use list::json::parse;
pub use list::{
    Departure, Finding, MOST_BYTES, MOST_ENTRIES, MOST_FINDINGS, MOST_MEMBERS, Member, Snapshot, State,
    Subject,
};
pub use place::Place;
pub use readers::Readers;
pub use registry::check_named_files;
pub use run::{Discovery, News, Update, run};
pub use source::FollowedSource;
