//! Turns a topology file into a plan (`weir-plan`), the only thing that everything downstream sees.
//!
//! A file is Starlark. [`evaluate`] runs it in this process; [`sandbox::evaluate_in_child`] runs it in a child process
//! under limits, which is what the command line does. Functions of the language are listed in one registry
//! (`nodes/mod.rs`), one file per node or family; each checks its own arguments and records what is wrong as a
//! [`weir_plan::Diagnostic`] instead of ending the evaluation, so that one run reports as many errors as can be known.
//!
//! No unsafe code is written here; the derives of the `starlark` crate expand to some (an `unsafe impl` per value
//! type), which is why it is denied, not forbidden, and allowed in the folder `language/value` alone.
#![deny(unsafe_code)]

mod evaluate;
mod language;
mod load;
pub mod manual;
mod names;
mod nodes;
mod own_time;
mod params;
mod path_bytes;
mod places;
mod reading;
pub mod sandbox;
mod wire;

pub use evaluate::{Evaluated, Request, evaluate};
