//! What the test programs share; each compiles all of it once.
#![allow(dead_code, unused_imports, reason = "each test program uses some of it")]

pub(crate) mod answers;
#[path = "../../../serve/tests/common/certificates.rs"]
pub(crate) mod certificates;
pub(crate) mod common;
pub(crate) mod figures;
pub(crate) mod pages;
pub(crate) mod serve;
pub(crate) mod simulated;
