//! `server(name="server", addr=None, model=None)`: where a request ends.

use super::{Default, Function, later, may};
use crate::call::{Call, Outcome};
use crate::plan::{NodeId, Spec, To};
use crate::value::{DistValue, DurationValue, NodeValue, Poison};
use starlark::values::ValueLike;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "server",
    args: &[
        may("name"),
        may("addr"),
        may("model"),
        later("tls", Default::None),
        later("protocol", Default::Text("auto")),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let name = call.name_or_none().unwrap_or_else(|| "server".to_owned());
    let addr = call.text("addr");
    let model = model(call)?;
    if addr.is_some() && model.is_none() && !call.failed() {
        call.warn(
            format!("the server \"{name}\" has an address and no model: in simulation it answers at once"),
            "say how long it works, as in `model=dist.exponential(20*ms)`",
        );
    }
    call.named_node(Spec::Server { addr, model, origin: crate::plan::Origin::default() }, To::None, Some(name))
}

/// The root of the server's model: a node, what a function returns, or a delay before a leaf.
fn model(call: &mut Call<'_, '_, '_, '_>) -> starlark::Result<Option<NodeId>> {
    let Some(mut value) = call.value_or_none("model") else { return Ok(None) };
    if value.get_type() == "function" {
        value = call.eval.eval_function(value, &[], &[])?;
    }
    if value.downcast_ref::<Poison>().is_some() {
        call.poison();
        return Ok(None);
    }
    if let Some(node) = value.downcast_ref::<NodeValue>() {
        let here = call.span().map(|s| crate::diagnostic::At::of(&s).span()).unwrap_or_default();
        let before = call.context.state.borrow_mut().models.insert(node.0, here);
        if let Some(other) = before {
            let message = format!(
                "this model belongs to another server already, made at {other}: the two would share it"
            );
            call.wrong_but(message, "give each server a model of its own: pass a function, as in `model=f`");
        }
        return Ok(Some(node.0));
    }
    let timed = value.downcast_ref::<DistValue>().is_some()
        || value.downcast_ref::<DurationValue>().is_some()
        || value.unpack_str().is_some();
    if !timed {
        call.unfit("model", "a function, a distribution, a duration or a node", value);
        return Ok(None);
    }
    let what = call.of("model");
    let Some(time) = call.dist_of(&what, value) else { return Ok(None) };
    if call.failed() {
        return Ok(None);
    }
    let leaf = call.site("server", "model");
    let leaf = call.add(leaf, Spec::Server { addr: None, model: None, origin: crate::plan::Origin::default() }, To::None, None)?;
    let delay = call.site("delay", "model");
    call.add(delay, Spec::Delay { time }, To::Node(leaf), None).map(Some)
}
