//! The values of the language that Starlark does not have.
//!
//! `ProvidesStaticType` is an unsafe trait that `starlark` derives: hence the exception. Nothing is written by hand.
#![allow(unsafe_code)]

mod context;
mod dist;
mod duration;
mod fleet;
mod function;
mod namespace;
mod node;
mod poison;
mod setting;

pub(crate) use context::Context;
pub(crate) use dist::{DistValue, TrafficValue};
pub(crate) use duration::DurationValue;
pub(crate) use fleet::FleetValue;
pub(crate) use function::FunctionValue;
pub(crate) use namespace::NamespaceValue;
pub(crate) use node::NodeValue;
pub(crate) use poison::Poison;
pub(crate) use setting::{
    BudgetValue, ChangeValue, EjectValue, HealthValue, HttpValue, KeyValue, KeysValue, LifeValue,
    OutlierValue, RequestValue, ScopeValue, SlowStartValue, SubsetValue, TlsClientValue, TlsServerValue,
    WhenValue,
};

/// An error that ends the evaluation: a sentence, to which the evaluator adds the place.
#[derive(Debug)]
pub(crate) struct Stop(pub(crate) String);

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Stop {}

/// Such an error as the evaluator takes it.
pub(crate) fn stop(message: impl Into<String>) -> starlark::Error {
    starlark::Error::new_other(Stop(message.into()))
}
