//! A function of the language as a value: the arguments go to the registry's entry, which checks them itself.

use crate::call::Call;
use crate::nodes::{self, Function};
use allocative::Allocative;
use starlark::eval::{Arguments, Evaluator};
use starlark::values::{
    NoSerialize, ProvidesStaticType, StarlarkPagable, StarlarkValue, Value, starlark_value,
};
use std::fmt;

/// A function of the registry, by index.
#[derive(Clone, Copy, Debug, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagable)]
pub(crate) struct FunctionValue(pub(crate) u32);

starlark::starlark_simple_value!(FunctionValue);

impl FunctionValue {
    /// The registry's entry.
    pub(crate) fn function(&self) -> &'static Function {
        nodes::get(self.0)
    }
}

impl fmt::Display for FunctionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.function().name)
    }
}

#[starlark_value(type = "function")]
impl<'v> StarlarkValue<'v> for FunctionValue {
    fn name_for_call_stack(&self, _me: Value<'v>) -> String {
        self.function().name.to_owned()
    }

    fn invoke(
        &self,
        _me: Value<'v>,
        args: &Arguments<'v, '_>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        Call::run(self.function(), args, eval)
    }
}
