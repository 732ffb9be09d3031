//! The state of the evaluation, which the evaluator carries.

use crate::language::context::State;
use crate::own_time::OwnTime;
use starlark::values::ProvidesStaticType;
use std::cell::RefCell;
use std::sync::Arc;

/// The state of one evaluation, reached from native functions through `Evaluator::extra`.
#[derive(Default, ProvidesStaticType)]
pub(crate) struct Context {
    /// Borrowed for the length of one operation, never across a call back into the language.
    pub(crate) state: RefCell<State>,
    /// What the file's own code takes.
    pub(crate) own_time: Arc<OwnTime>,
}
