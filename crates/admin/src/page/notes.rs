//! Notes at the nodes of the drawing: targets up, clients connected, requests waiting.

use super::pools::class;
use super::rows::count;
use crate::page::TimedView;
use std::collections::BTreeMap;
use weir_report::graph::Note;
use weir_serve::State;

/// The live state by node, gathered once for a drawing.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// For servers behind balancers, and nodes between: the worst state that any balancer has.
    states: BTreeMap<u32, State>,
    /// For balancers: eligible targets, of all.
    pools: BTreeMap<u32, (u32, u32)>,
    /// For listeners: clients.
    clients: BTreeMap<u32, usize>,
    /// For queues: inside, waiting.
    queues: BTreeMap<u32, (u32, u64)>,
}

impl Live {
    /// From a view; `ends`: by node the server that its only way leads to, or itself.
    pub fn new(view: &weir_serve::View, ends: &[u32]) -> Live {
        let mut live = Live::default();
        for pool in &view.pools {
            live.pools.insert(pool.node, (pool.eligible, pool.of));
            for target in &pool.targets {
                let end = ends.get(target.node as usize).copied().unwrap_or(target.node);
                let state = live.states.entry(end).or_insert(target.state);
                *state = target.state.min(*state);
            }
        }
        live.clients.extend(view.listeners.iter().map(|listener| (listener.node, listener.connections)));
        live.queues.extend(view.queues.iter().map(|queue| (queue.node, (queue.inside, queue.waiting))));
        live
    }
}

/// The note at a box.
pub(super) fn note(seen: &TimedView, nodes: &[u32]) -> Option<Note> {
    let live = seen.live();
    let first = nodes.first()?;
    if live.pools.contains_key(first) {
        let of_pools = || nodes.iter().filter_map(|node| live.pools.get(node));
        let (eligible, of) = of_pools().fold((0, 0), |(a, b), (eligible, of)| (a + eligible, b + of));
        let class = match eligible {
            0 => "bad",
            _ if eligible < of => "warn",
            _ => "good",
        };
        return Some(Note { words: up(eligible.into(), of.into()), class });
    }
    if live.states.contains_key(first) {
        let states: Vec<State> = nodes.iter().filter_map(|node| live.states.get(node).copied()).collect();
        let ups = states.iter().filter(|state| **state == State::Up).count();
        let worst = states.iter().min().copied().unwrap_or(State::Up);
        let words = match states.len() {
            1 => worst.word().to_owned(),
            of => up(ups as u64, of as u64),
        };
        let class = if class(worst) == "off" { "" } else { class(worst) };
        return Some(Note { words, class });
    }
    if live.clients.contains_key(first) {
        let clients: usize = nodes.iter().filter_map(|node| live.clients.get(node)).sum();
        let s = if clients == 1 { "" } else { "s" };
        return Some(Note { words: format!("{} client{s}", count(clients as u64)), class: "" });
    }
    if live.queues.contains_key(first) {
        let of_queues = || nodes.iter().filter_map(|node| live.queues.get(node));
        let inside: u64 = of_queues().map(|(inside, _)| u64::from(*inside)).sum();
        let waiting: u64 = of_queues().map(|(_, waiting)| *waiting).sum();
        let words = format!("{} in, {} waiting", count(inside), count(waiting));
        return Some(Note { words, class: if waiting > 0 { "warn" } else { "" } });
    }
    None
}

fn up(n: u64, of: u64) -> String {
    if n == of && of > 1 {
        format!("all {} up", count(of))
    } else {
        format!("{} of {} up", count(n), count(of))
    }
}
