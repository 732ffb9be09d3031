//! A family of functions as a value: `lb.`, `dist.`, `traffic.`.

use super::{FunctionValue, Poison};
use crate::nodes;
use allocative::Allocative;
use starlark::values::{
    Heap, NoSerialize, ProvidesStaticType, StarlarkPagable, StarlarkValue, Value, starlark_value,
};
use std::fmt;

/// A namespace of the registry, by its name. Members that do not exist are found by the pass over the names
/// (`names.rs`); here they are poison.
#[derive(Clone, Debug, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagable)]
pub(crate) struct NamespaceValue(pub(crate) String);

starlark::starlark_simple_value!(NamespaceValue);

impl fmt::Display for NamespaceValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[starlark_value(type = "namespace")]
impl<'v> StarlarkValue<'v> for NamespaceValue {
    fn get_attr(&self, attribute: &str, heap: Heap<'v>) -> Option<Value<'v>> {
        Some(match nodes::find(&format!("{}.{attribute}", self.0)) {
            Some(index) => heap.alloc(FunctionValue(index)),
            None => heap.alloc(Poison),
        })
    }

    fn dir_attr(&self) -> Vec<String> {
        nodes::members(&self.0).map(str::to_owned).collect()
    }
}
