//! What a function of the language is made of: its entry, a call of it, the values it takes and returns, and the state
//! of the evaluation.

pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod data;
pub(crate) mod function;
pub(crate) mod graph;
pub(crate) mod value;
