//! `pool(n, f)`: calls f n times; n different nodes.

use super::{Description, Function, Group, Need, examples, need};
use crate::language::call::{Call, Outcome, describe};
use crate::language::value::{FunctionValue, NodeValue, Poison};
use starlark::values::{Value, ValueLike};
use weir_plan::ranges::MOST_NODES;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "pool",
    about: Description {
        group: Group::Pass,
        meaning: "Calls a function n times: n different nodes in a list.",
        simulated: "each is a node of its own, with a queue and faults of its own",
        served: "the same",
        draws: "nothing",
        example: examples::QUEUE,
    },
    args: &[
        need("n", "1 or more", "how many"),
        need(
            "f",
            "a function",
            "makes a node; called as `f(i)`, i from 0, if it takes an argument, otherwise as `f()`",
        ),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let n = size(call);
    let Some(f) = call.value("f") else { return Ok(None) };
    if f.downcast_ref::<NodeValue>().is_some() {
        refuse_node(call, "a pool of one node would be that node n times");
        return Ok(None);
    }
    let Some(indexed) = wants_index(f) else {
        call.unfit("f", "a function", f);
        return Ok(None);
    };
    let Some(n) = n else { return Ok(None) };
    let mut made = Vec::with_capacity(n);
    for i in 0..n {
        let index = call.heap().alloc(i64::try_from(i).unwrap_or(i64::MAX));
        let node = call.call_back(f, if indexed { std::slice::from_ref(&index) } else { &[] })?;
        if node.downcast_ref::<NodeValue>().is_none() && node.downcast_ref::<Poison>().is_none() {
            let message =
                format!("the function that `pool` calls must return a node, not {}", describe(node));
            if node.is_none() {
                call.wrong_but(message, "is its `return` missing?");
            } else {
                call.wrong(message);
            }
            return Ok(None);
        }
        made.push(node);
    }
    Ok(Some(call.heap().alloc(made)))
}

fn size(call: &mut Call<'_, '_, '_, '_>) -> Option<usize> {
    let value = call.value("n")?;
    // A number beyond 64 bits is an int all the same.
    let n = call.whole("n", 1, i64::MAX as u64)?;
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    if n > MOST_NODES {
        call.wrong(format!(
            "a pool of {} is too large: a file may make at most {MOST_NODES} nodes",
            value.to_str()
        ));
        return None;
    }
    Some(n)
}

/// Reports a node in place of the function that makes it.
pub(super) fn refuse_node(call: &mut Call<'_, '_, '_, '_>, why: &str) {
    let name = call.name();
    call.wrong_but(
        format!("`f` of `{name}` must be a function, not a node: {why}"),
        format!("write `{name}(n, lambda: ...)`"),
    );
}

/// Whether f is called with its number; `None` where it cannot be called at all.
pub(super) fn wants_index(f: Value<'_>) -> Option<bool> {
    if let Some(function) = f.downcast_ref::<FunctionValue>() {
        return Some(function.0.args.iter().any(|a| matches!(a.need, Need::Required)));
    }
    if f.downcast_ref::<Poison>().is_some() {
        return Some(false);
    }
    match f.parameters_spec() {
        Some(spec) => Some(!spec.can_fill_with_args(0, &[])),
        None => (f.get_type() == "function").then_some(true),
    }
}
