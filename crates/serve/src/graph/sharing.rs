//! What graphs of two blueprints of one file share: when members of a fleet come and go, nearly all nodes are the same, and
//! a thread builds only the chunks of the others.

use super::blueprint::Blueprint;
use crate::exchange::NodeId;
use crate::sync::shared_list::CHUNK;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_plan::{Edge, Spec};

/// What the graphs of a blueprint share with those of the one before it.
pub(crate) struct Sharing {
    /// The epoch of the one before.
    epoch: u32,
    /// By chunk, whether all of its nodes are the same.
    chunks: Box<[bool]>,
    /// By balancer and chunk of its targets, whether all of them have the labels that they had.
    labels: BTreeMap<NodeId, Box<[bool]>>,
    /// The identities of targets to which ways of clients lead only now, or only before.
    pub gained: Box<[u32]>,
    pub lost: Box<[u32]>,
}

impl Sharing {
    /// Of these two.
    pub fn between(before: &Blueprint, now: &Blueprint) -> Sharing {
        let count = now.point.nodes.len();
        let is_same = |chunk: usize| {
            let end = (chunk + 1) * CHUNK;
            let was = before.point.nodes.len();
            // The last one may have another length.
            end.min(was) == end.min(count)
                && (chunk * CHUNK..end.min(count)).all(|id| is_same(before, now, id as NodeId))
        };
        Sharing {
            epoch: before.epoch,
            chunks: (0..count.div_ceil(CHUNK)).map(is_same).collect(),
            labels: now.compare_labels(before),
            gained: list_missing(&now.reached, &before.reached),
            lost: list_missing(&before.reached, &now.reached),
        }
    }

    /// The epoch of the one before.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// By chunk of the targets of a balancer, whether all of them have the labels that they had.
    pub fn kept_labels(&self, lb: NodeId) -> &[bool] {
        self.labels.get(&lb).map_or(&[], |chunks| chunks)
    }

    /// Whether all nodes of a chunk are the same.
    pub fn has(&self, chunk: usize) -> bool {
        self.chunks.get(chunk) == Some(&true)
    }
}

/// By chunk, whether two lists have the same labels there (compared by pointer), and the same number of them.
pub(super) fn same_chunks(was: &[Arc<str>], now: &[Arc<str>]) -> Box<[bool]> {
    let is_same = |(was, now): (&[Arc<str>], &[Arc<str>])| {
        was.len() == now.len() && was.iter().zip(now).all(|(was, now)| Arc::ptr_eq(was, now))
    };
    was.chunks(CHUNK).zip(now.chunks(CHUNK)).map(is_same).collect()
}

/// Lists what of one ascending list is missing in another.
fn list_missing(of: &[u32], within: &[u32]) -> Box<[u32]> {
    let mut within = within.iter().peekable();
    let is_missing = |key: &&u32| {
        while within.next_if(|other| other < key).is_some() {}
        within.peek() != Some(key)
    };
    of.iter().filter(is_missing).copied().collect()
}

/// Whether the nodes that both have by this number would be built alike. Those that differ from epoch to epoch never are.
fn is_same(before: &Blueprint, now: &Blueprint, id: NodeId) -> bool {
    let at = id as usize;
    let (old, new) = (&before.point.nodes[at], &now.point.nodes[at]);
    let process = |of: &Blueprint| of.process_of[at].map(|process| of.keys.nodes[process as usize]);
    let spec = now.spec(id);
    !matches!(spec, Spec::Lb(_) | Spec::Listen(_))
        && (old.site, &old.name) == (new.site, &new.name)
        && leads_alike(before, now, id)
        && before.keys.nodes[at] == now.keys.nodes[at]
        && before.keys.targets[at] == now.keys.targets[at]
        && before.role(id) == now.role(id)
        && before.spec(id) == spec
        && process(before) == process(now)
        && before.connections.get(&id) == now.connections.get(&id)
        && before.draws.are_those_of(&now.draws, id)
}

fn leads_alike(before: &Blueprint, now: &Blueprint, id: NodeId) -> bool {
    match (before.point.nodes[id as usize].to, now.point.nodes[id as usize].to) {
        (Edge::List(_), Edge::List(_)) => before.list(id) == now.list(id),
        (old, new) => old == new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_the_same_with_all_of_their_labels() {
        let labels = |count: usize| (0..count).map(|at| Arc::from(at.to_string())).collect::<Vec<Arc<str>>>();
        let all = labels(3 * CHUNK);
        assert_eq!(*same_chunks(&all, &all), [true; 3]);
        assert_eq!(*same_chunks(&all[..CHUNK], &all), [true]);
        assert_eq!(*same_chunks(&all[..CHUNK + 1], &all), [true, false]);
        assert_eq!(*same_chunks(&all, &all[..CHUNK - 1]), [false]);
        let mut other = all.clone();
        other[CHUNK] = labels(1)[0].clone();
        assert_eq!(*same_chunks(&all, &other), [true, false, true]);
        other.remove(CHUNK);
        assert_eq!(*same_chunks(&all, &other), [true, false, false]);
        assert!(same_chunks(&all, &[]).is_empty());
    }

    #[test]
    fn what_is_missing_is_what_sets_say() {
        let lists: [&[u32]; 6] = [&[], &[1], &[1, 2, 3], &[2, 4], &[0, 3, 9], &[4, 5, 6, 7]];
        for (of, within) in lists.iter().flat_map(|of| lists.iter().map(move |within| (of, within))) {
            let expected: Vec<u32> = of.iter().copied().filter(|key| !within.contains(key)).collect();
            assert_eq!(*list_missing(of, within), *expected, "{of:?} in {within:?}");
        }
    }
}
