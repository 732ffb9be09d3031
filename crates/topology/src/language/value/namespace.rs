//! A family of functions as a value: `lb.`, `dist.`, `traffic.`.

use super::{FunctionValue, Poison};
use allocative::Allocative;
use starlark::values::{
    Heap, NoSerialize, ProvidesStaticType, StarlarkPagablePanic, StarlarkValue, Value, starlark_value,
};
use std::fmt;

/// A namespace of the registry: its name and its members. Members that do not exist are found by the pass over the
/// names (`names.rs`); here they are poison.
#[derive(Clone, Debug, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagablePanic)]
pub(crate) struct NamespaceValue {
    pub(crate) name: &'static str,
    pub(crate) members: Vec<(&'static str, FunctionValue)>,
}

starlark::starlark_simple_value!(NamespaceValue);

impl fmt::Display for NamespaceValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[starlark_value(type = "namespace")]
impl<'v> StarlarkValue<'v> for NamespaceValue {
    fn get_attr(&self, attribute: &str, heap: Heap<'v>) -> Option<Value<'v>> {
        let member = self.members.iter().find(|(name, _)| *name == attribute);
        Some(member.map_or_else(|| heap.alloc(Poison), |(_, function)| heap.alloc(*function)))
    }

    fn dir_attr(&self) -> Vec<String> {
        self.members.iter().map(|(name, _)| (*name).to_owned()).collect()
    }
}
