//! From a topology file to a plan: the only thing that everything downstream sees.
//!
//! A file is Starlark. [`evaluate`] runs it in this process; [`sandbox::evaluate_in_child`] runs it in a child process
//! under limits, which is what the command line does. Functions of the language are listed in one registry
//! (`nodes/mod.rs`), one file per node or family; each checks its own arguments and records what is wrong as a
//! [`Diagnostic`] instead of ending the evaluation, so that one run reports as many errors as can be known.
//!
//! No unsafe code is written here; the derives of the `starlark` crate expand to some (an `unsafe impl` per value type),
//! which is why it is denied, not forbidden, and allowed in the folder `value` alone.
#![deny(unsafe_code)]

pub mod address;
mod call;
mod circles;
mod context;
mod data;
pub mod diagnostic;
mod evaluate;
mod graph;
mod hash;
mod http;
pub mod json;
mod load;
pub mod manual;
mod matching;
mod names;
mod nodes;
mod offered;
mod params;
pub mod path;
mod places;
pub mod plan;
mod plan_json;
pub mod rewriting;
pub mod sandbox;
pub mod serving;
pub mod sticky;
mod suggest;
pub mod template;
mod validate;
mod value;
mod warn;
mod wire;

pub use diagnostic::{Diagnostic, Severity};
pub use evaluate::{Evaluated, Request, evaluate};
pub use matching::{Asked, Matched};
pub use offered::{Effort, SiteLoad, bounded_sites, effort, offered_load};
pub use plan::Plan;
pub use plan_json::PlanError;

/// A duration as the language writes it, `30s` or `1.5 ms`, ns.
///
/// # Errors
/// What is wrong with it, in words.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let ns = value::parse_duration(text)?;
    u64::try_from(ns).ok().filter(|ns| *ns > 0).ok_or_else(|| "write a time above 0, such as 30s".to_owned())
}
