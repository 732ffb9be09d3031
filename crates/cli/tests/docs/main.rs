//! Documents, examples, pictures and deployment files are true of the program.

mod deploy;
mod examples;
mod graph;
mod guide;
mod learn;
mod policies;
mod readme;
mod reference;
mod report_pages;
#[path = "../shared/mod.rs"]
mod shared;
