//! A fleet, or the weight of one, as a value of the language: the targets of a balancer, and no node.

use super::NodeValue;
use allocative::Allocative;
use starlark::values::list::AllocList;
use starlark::values::list_or_tuple::UnpackListOrTuple;
use starlark::values::{
    Heap, NoSerialize, ProvidesStaticType, StarlarkPagable, StarlarkValue, UnpackValue, Value, ValueLike,
    starlark_value,
};
use std::fmt;
use weir_plan::NodeId;

/// The node of a fleet, or of its weight, in the graph under construction.
#[derive(Clone, Copy, Debug, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagable)]
pub(crate) struct FleetValue(pub(crate) NodeId);

starlark::starlark_simple_value!(FleetValue);

impl fmt::Display for FleetValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<fleet {}>", self.0)
    }
}

/// The nodes and fleets of a value that is added to targets.
fn targets(value: Value<'_>) -> Option<Vec<Value<'_>>> {
    match UnpackListOrTuple::<Value>::unpack_value(value) {
        Ok(Some(list)) => Some(list.items),
        _ if value.downcast_ref::<FleetValue>().is_some() || value.downcast_ref::<NodeValue>().is_some() => {
            Some(vec![value])
        }
        _ => None,
    }
}

#[starlark_value(type = "fleet")]
impl<'v> StarlarkValue<'v> for FleetValue {
    fn equals(&self, other: Value<'v>) -> starlark::Result<bool> {
        Ok(other.downcast_ref::<FleetValue>().is_some_and(|o| o.0 == self.0))
    }

    /// `fleet + [spare]`: as pools are added, which are lists.
    fn add(&self, rhs: Value<'v>, heap: Heap<'v>) -> Option<starlark::Result<Value<'v>>> {
        let own = heap.alloc(*self);
        let all = std::iter::once(own).chain(targets(rhs)?);
        Some(Ok(heap.alloc(AllocList(all))))
    }

    fn radd(&self, lhs: Value<'v>, heap: Heap<'v>) -> Option<starlark::Result<Value<'v>>> {
        let own = heap.alloc(*self);
        let all = targets(lhs)?.into_iter().chain(std::iter::once(own));
        Some(Ok(heap.alloc(AllocList(all))))
    }
}
