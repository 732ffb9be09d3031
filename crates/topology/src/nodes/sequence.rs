//! `sequence(nodes)`: one after another, to the first error.
//!
//! - In virtual time: a request goes to each node in turn; it is ok when the last one was.
//! - In the proxy: never served outside a model or a built-in server.
//! - Draws: nothing.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};

pub(super) static FUNCTIONS: [Function; 1] =
    [Function { name: "sequence", args: &[need("nodes"), may("name")], more: &[], make }];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(nodes) = call.nodes_at("nodes") else { return Ok(None) };
    let list = call.context.state.borrow_mut().graph.list(nodes);
    call.node(Spec::Sequence, To::List(list))
}
