//! Chains become one box: if each node of a box is the only one that leads to one of the next box, both become one.

use super::fold::{Boxed, FoldedGraph};

/// The same with every chain folded. Boxes stay in their order; a chain takes the place of its first.
pub(super) fn folded(folded: FoldedGraph) -> FoldedGraph {
    let FoldedGraph { boxes, edges } = folded;
    let count = boxes.len();
    let (mut ins, mut outs) = (vec![0usize; count], vec![0usize; count]);
    for (from, to, _) in &edges {
        outs[*from] += 1;
        ins[*to] += 1;
    }
    // For each box its successor in the chain, and whether it has a predecessor.
    let mut next = vec![None; count];
    let mut follows = vec![false; count];
    for (from, to, aside) in &edges {
        let one_by_one = boxes[*from].nodes.len() == boxes[*to].nodes.len();
        if outs[*from] == 1 && ins[*to] == 1 && one_by_one && !aside && !is_list(&boxes[*from]) {
            next[*from] = Some(*to);
            follows[*to] = true;
        }
    }
    let mut boxes: Vec<Option<Boxed>> = boxes.into_iter().map(Some).collect();
    let mut into = vec![0; count];
    let mut chains: Vec<Boxed> = Vec::new();
    for first in (0..count).filter(|at| !follows[*at]) {
        let Some(mut chain) = boxes[first].take() else { continue };
        let mut at = first;
        into[at] = chains.len();
        while let Some(step) = next[at] {
            let Some(of) = boxes[step].take() else { break };
            chain.what = format!("{} {}", chain.what, of.what);
            chain.behind.push(of.nodes);
            into[step] = chains.len();
            at = step;
        }
        chains.push(chain);
    }
    let mut edges: Vec<_> = edges
        .into_iter()
        .map(|(from, to, aside)| (into[from], into[to], aside))
        .filter(|(from, to, _)| from != to)
        .collect();
    edges.sort_unstable();
    edges.dedup();
    FoldedGraph { boxes: chains, edges }
}

/// Whether its nodes lead to lists: a choice is seen as one, even among one.
fn is_list(of: &Boxed) -> bool {
    let lists = ["route", "split", "sequence", "fanout"];
    of.what.starts_with("lb.") || lists.contains(&&of.what[..])
}
