//! `param(name, default, sweep=None)`: a value that is set from outside.

use super::{Description, Function, Group, examples, may, need};
use crate::language::call::{Call, Outcome, describe, list};
use crate::language::value::DurationValue;
use crate::params::ParamRequest;
use starlark::values::float::UnpackFloat;
use starlark::values::{Heap, UnpackValue, Value, ValueLike};
use weir_plan as plan;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "param",
    about: Description {
        group: Group::Ask,
        meaning: "A value that can be set from the command line.",
        simulated: "`-p name=value` sets it; `sweep`, or `--sweep name=a,b,c`, runs the file once \
                for each value",
        served: "`-p` sets it",
        draws: "nothing",
        example: examples::PARAM,
    },
    args: &[
        need("name", "a string", "letters, digits, `_`, `-` and `.`"),
        need(
            "default",
            "a number, duration, string, True or False",
            "its value unless set; also determines the type",
        ),
        may("sweep", "a list", "None", "values to run with; several sweeps are combined"),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(name) = call.name_or_none() else { return Ok(None) };
    if !name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')) {
        call.wrong_but(
            format!("a parameter cannot be called \"{name}\""),
            "use letters, digits and underscores",
        );
        return Ok(None);
    }
    let Some(default) = call.value("default") else { return Ok(None) };
    let Some(default_value) = plain(default) else {
        call.unfit("default", "a number, a duration, a string, True or False", default);
        return Ok(None);
    };
    let sweep = match call.value_or_none("sweep") {
        None => None,
        Some(value) => match sweep(call, &name, &default_value, value) {
            Some(values) => Some(values),
            None => return Ok(None),
        },
    };
    let asked = call.context.state.borrow_mut().params.ask(&name, &default_value, sweep);
    match asked {
        ParamRequest::Value(value) => Ok(Some(alloc(&value, call.heap()))),
        ParamRequest::Wrong(message) => {
            // The command line is wrong, and that is reported there.
            call.context.find(weir_plan::Diagnostic::error(message));
            Ok(None)
        }
        ParamRequest::OtherDefault(other) => {
            call.wrong_but(
                format!(
                    "the parameter \"{name}\" has two defaults: {other} before, {} here",
                    crate::params::show(&default_value)
                ),
                "bind it to a name once, and use that name",
            );
            Ok(None)
        }
    }
}

fn sweep<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    name: &str,
    default: &plan::Value,
    value: Value<'v>,
) -> Option<Vec<plan::Value>> {
    let Some(items) = list(value) else {
        call.unfit("sweep", "a list of values", value);
        return None;
    };
    if items.is_empty() {
        call.wrong(format!("`sweep` of the parameter \"{name}\" is empty"));
        return None;
    }
    let mut values = Vec::new();
    for item in items {
        match plain(item).and_then(|v| crate::params::fit(&v, default)) {
            Some(value) => values.push(value),
            None => call.wrong(format!(
                "`sweep` of the parameter \"{name}\" must hold {} like its default, not {}",
                crate::params::kind(default),
                describe(item)
            )),
        }
    }
    (!call.failed()).then_some(values)
}

/// A value of the language as a parameter's value.
fn plain(value: Value<'_>) -> Option<plan::Value> {
    if let Some(duration) = value.downcast_ref::<DurationValue>() {
        return Some(plan::Value::Duration { ns: duration.0 });
    }
    match value.get_type() {
        "bool" => value.unpack_bool().map(plan::Value::Bool),
        "int" => i64::unpack_value(value).ok().flatten().map(plan::Value::Int),
        "float" => UnpackFloat::unpack_value(value)
            .ok()
            .flatten()
            .filter(|f| f.0.is_finite())
            .map(|f| plan::Value::Float(f.0)),
        "string" => value.unpack_str().map(|t| plan::Value::Text(t.to_owned())),
        _ => None,
    }
}

fn alloc<'v>(value: &plan::Value, heap: Heap<'v>) -> Value<'v> {
    match value {
        plan::Value::Bool(b) => Value::new_bool(*b),
        plan::Value::Int(i) => heap.alloc(*i),
        plan::Value::Float(f) => heap.alloc(*f),
        plan::Value::Duration { ns } => heap.alloc(DurationValue(*ns)),
        plan::Value::Text(t) => heap.alloc(t.as_str()),
    }
}
