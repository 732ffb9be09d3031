//! A function of the language as a value: the arguments go to the registry's entry, which checks them itself.

use crate::language::call::Call;
use crate::language::function::Function;
use allocative::Allocative;
use starlark::eval::{Arguments, Evaluator};
use starlark::values::{
    NoSerialize, ProvidesStaticType, StarlarkPagablePanic, StarlarkValue, Value, starlark_value,
};
use std::fmt;

/// A function of the registry.
#[derive(Clone, Copy, ProvidesStaticType, NoSerialize, Allocative, StarlarkPagablePanic)]
pub(crate) struct FunctionValue(#[allocative(skip)] pub(crate) &'static Function);

starlark::starlark_simple_value!(FunctionValue);

impl fmt::Debug for FunctionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Display for FunctionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

#[starlark_value(type = "function")]
impl<'v> StarlarkValue<'v> for FunctionValue {
    fn name_for_call_stack(&self, _me: Value<'v>) -> String {
        self.0.name.to_owned()
    }

    fn invoke(
        &self,
        _me: Value<'v>,
        args: &Arguments<'v, '_>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        Call::run(self.0, args, eval)
    }
}
