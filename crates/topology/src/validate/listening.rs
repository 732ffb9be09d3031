//! Listeners among the nodes: nothing leads to them, and no two share an address or a name.

use crate::address::Address;
use crate::plan::{Point, Spec, To, listeners};
use std::collections::HashSet;

/// Checks all of a point whose nodes lead where they may.
pub(super) fn check(p: &Point) -> Result<(), String> {
    let all = listeners(p);
    if all.is_empty() {
        return Ok(());
    }
    let is_listener = |id: u32| matches!(p.specs[p.nodes[id as usize].spec as usize], Spec::Listen(_));
    if let Some(list) = p.lists.iter().position(|l| l.iter().any(|t| is_listener(*t))) {
        return Err(format!("lists[{list}]: nothing leads to a `listen` but a scenario"));
    }
    for (i, node) in p.nodes.iter().enumerate() {
        let next = if let To::Node(next) = node.to { Some(next) } else { None };
        let aside = p.specs[node.spec as usize].aside();
        if next.into_iter().chain(aside).any(is_listener) {
            return Err(format!("nodes[{i}]: nothing leads to a `listen` but a scenario"));
        }
    }
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
