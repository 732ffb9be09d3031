//! `fanout(nodes, need=None)`: all at once; it ends when `need` of them (default all) are ok, or no longer can be.
//!
//! - In virtual time: a request branches; when it is decided, the rest is cancelled.
//! - In the proxy: never served outside a model or a built-in server.
//! - Draws: nothing; each branch is a way of its own, so draws behind it differ.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};

pub(super) static FUNCTIONS: [Function; 1] =
    [Function { name: "fanout", args: &[need("nodes"), may("need"), may("name")], more: &[], make }];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let nodes = call.nodes_at("nodes");
    let given = if call.is_none("need") { None } else { call.count("need", 1, u32::MAX) };
    let Some(nodes) = nodes else { return Ok(None) };
    let all = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    if let Some(need) = given.filter(|n| *n > all) {
        let (them, help) = match all {
            1 => ("is one node".to_owned(), "give it more nodes, or leave `need` out".to_owned()),
            n => (format!("are {n} nodes"), format!("take 1 to {n}, or leave `need` out to wait for all")),
        };
        call.wrong_but(format!("`need` of `fanout` is {need}, and there {them}: it could never be ok"), help);
        return Ok(None);
    }
    let list = call.context.state.borrow_mut().graph.list(nodes);
    call.node(Spec::Fanout { need: given.unwrap_or(all) }, To::List(list))
}
