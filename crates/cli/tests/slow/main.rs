//! Long runs: intervals, published tables, closed forms; questions and fidelity are steps of CI (`--ignored`).

mod coverage;
mod fidelity;
mod oracles;
mod papers;
mod questions;
#[path = "../shared/mod.rs"]
mod shared;
mod theory;
