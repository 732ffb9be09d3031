//! `fanout(nodes, need=None)`: all at once; it ends when `need` of them (default all) are ok, or no longer can be.

use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "fanout",
    about: Description {
        group: Group::Model,
        meaning: "Sends a request to several nodes at once, and waits for `need` of them.",
        simulated: "it ends when `need` are ok, or no longer can be; the rest is cancelled",
        served: "refused, except in a `model` or a built-in server",
        draws: "nothing; each branch draws its own work",
        example: examples::SEQUENCE,
    },
    args: &[
        need("nodes", "a list of nodes", "all at once"),
        may("need", "1 or more, or None", "None", "how many must be ok; `None`: all"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let nodes = call.nodes_at("nodes");
    let given = if call.is_none("need") { None } else { call.count("need", 1, u32::MAX) };
    let Some(nodes) = nodes else { return Ok(None) };
    let all = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    if let Some(need) = given.filter(|n| *n > all) {
        let (them, help) = match all {
            1 => ("is one node".to_owned(), "give it more nodes, or leave `need` out".to_owned()),
            n => (format!("are {n} nodes"), format!("use 1 to {n}, or leave `need` out to wait for all")),
        };
        call.wrong_but(format!("`need` of `fanout` is {need}, but there {them}: it could never be ok"), help);
        return Ok(None);
    }
    let list = call.context.state.borrow_mut().graph.list(nodes);
    call.node(Spec::Fanout { need: given.unwrap_or(all) }, Edge::List(list))
}
