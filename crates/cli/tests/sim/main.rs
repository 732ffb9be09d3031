//! `weir sim` and the commands beside it: the command line, results, and figures against the formulas.

mod any_libm;
mod bounded;
mod columns;
mod compare;
mod evidence;
mod expect;
mod explain;
mod failing;
mod failing_fast;
mod intervals;
mod metastable;
mod nodes;
mod page;
mod parts;
mod pauses;
#[path = "../shared/mod.rs"]
mod shared;
mod sharing;
mod streams;
mod traffic;
mod usage;
mod wrong_lines;
