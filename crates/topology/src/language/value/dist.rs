//! Distributions and traffic, as values of the language.

use allocative::Allocative;
use starlark::values::{
    NoSerialize, ProvidesStaticType, StarlarkPagablePanic, StarlarkValue, starlark_value,
};
use std::fmt;
use weir_model::{Dist, Traffic};
use weir_plan::{Recording, RequestShape};

/// A distribution of durations.
#[derive(Clone, Debug, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagablePanic)]
pub(crate) struct DistValue(#[allocative(skip)] pub(crate) Dist);

starlark::starlark_simple_value!(DistValue);

impl fmt::Display for DistValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<distribution>")
    }
}

#[starlark_value(type = "distribution")]
impl<'v> StarlarkValue<'v> for DistValue {}

/// An arrival process, and what arrives.
#[derive(Clone, Debug, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagablePanic)]
pub(crate) struct TrafficValue {
    /// When requests arrive.
    #[allocative(skip)]
    pub(crate) arrivals: Traffic,
    /// The kinds of requests; empty: not described.
    #[allocative(skip)]
    pub(crate) mix: Vec<RequestShape>,
    /// The kind of each arrival, where a trace names it.
    #[allocative(skip)]
    pub(crate) recorded: Option<Recording>,
}

starlark::starlark_simple_value!(TrafficValue);

impl fmt::Display for TrafficValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<traffic>")
    }
}

#[starlark_value(type = "traffic")]
impl<'v> StarlarkValue<'v> for TrafficValue {}
