//! Listeners among the nodes: none is in the model of a server, and no two share an address or a name.

use crate::address::Address;
use crate::{Edge, Point, Spec, listeners};
use std::collections::HashSet;

/// Checks all of a point whose nodes lead where they may.
pub(super) fn check(p: &Point) -> Result<(), String> {
    let all = listeners(p);
    if all.is_empty() {
        return Ok(());
    }
    modelled(p)?;
    let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
    for id in all {
        let node = &p.nodes[id as usize];
        let Some(name) = &node.name else { return Err(format!("nodes[{id}].name: a `listen` has a name")) };
        if !names.insert(name.as_str()) {
            return Err(format!("nodes[{id}].name: two listeners are called \"{name}\""));
        }
        let Spec::Listen(listen) = &p.specs[node.spec as usize] else { continue };
        let known = Address::parse(&listen.addr).filter(|a| !a.is_free_port());
        if known.is_some_and(|address| !addresses.insert(address)) {
            return Err(format!("nodes[{id}]: two listeners have the address \"{}\"", listen.addr));
        }
    }
    Ok(())
}

/// No model of a server leads to a listener.
fn modelled(p: &Point) -> Result<(), String> {
    // A node comes after all nodes that it leads to: forwards, what is behind it is known.
    let mut leads: Vec<bool> = Vec::with_capacity(p.nodes.len());
    let mut lists: Vec<Option<bool>> = vec![None; p.lists.len()];
    for (i, node) in p.nodes.iter().enumerate() {
        let of = |id: u32| leads.get(id as usize).copied().unwrap_or(false);
        let spec = &p.specs[node.spec as usize];
        let aside = spec.aside().is_some_and(of);
        if aside && matches!(spec, Spec::Server { .. }) {
            return Err(format!("nodes[{i}]: the model of a server leads to a `listen`"));
        }
        let beyond = match node.to {
            Edge::None => false,
            Edge::Node(next) => of(next),
            Edge::List(list) => {
                *lists[list as usize].get_or_insert_with(|| p.lists[list as usize].iter().any(|id| of(*id)))
            }
        };
        leads.push(aside || beyond || matches!(spec, Spec::Listen(_)));
    }
    Ok(())
}
