//! A node of the graph, as a value of the language. Its identity is its index: one value used twice is one node.

use allocative::Allocative;
use starlark::values::{
    NoSerialize, ProvidesStaticType, StarlarkPagable, StarlarkValue, Value, ValueLike, starlark_value,
};
use std::fmt;
use weir_plan::NodeId;

/// A node of the graph under construction.
#[derive(Clone, Copy, Debug, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagable)]
pub(crate) struct NodeValue(pub(crate) NodeId);

starlark::starlark_simple_value!(NodeValue);

impl fmt::Display for NodeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<node {}>", self.0)
    }
}

#[starlark_value(type = "node")]
impl<'v> StarlarkValue<'v> for NodeValue {
    fn equals(&self, other: Value<'v>) -> starlark::Result<bool> {
        Ok(other.downcast_ref::<NodeValue>().is_some_and(|o| o.0 == self.0))
    }
}
