//! The identities of a scenario's nodes in draws: the place in the text that created each, and its number among those
//! of that place. So a comment, another function or another scenario changes no draw.

use weir_plan::{Edge, Node, NodeId, Place, Point};
use weir_stats::Key;

/// The hash of a place, a key of its draws.
pub fn place_key(place: &Place) -> u64 {
    let key = Key::new(0).with(u64::from(place.file)).with_text(&place.def).with_text(&place.kind);
    key.with_text(&place.via).with(u64::from(place.number)).bits()
}

/// The number of each node among the nodes of its place in `reachable`.
pub fn numbers(point: &Point, reachable: &[bool]) -> Vec<u32> {
    let mut next = vec![0; point.places.len()];
    let mut numbers = vec![0; point.nodes.len()];
    // Members that join during the run are numbered behind those of the start.
    let fleets = point.fleets.as_deref();
    for joins in [false, true] {
        // A vacant place is counted, so that a member that takes it changes no other number.
        let is_vacant = |id: usize| fleets.is_some_and(|fleets| fleets.is_vacant(id as NodeId));
        for (id, node) in point.nodes.iter().enumerate().filter(|(id, _)| reachable[*id] || is_vacant(*id)) {
            if fleets.is_some_and(|fleets| fleets.is_newcomer(id as NodeId)) == joins {
                let next = &mut next[point.sites[node.site as usize].place as usize];
                numbers[id] = *next;
                *next += 1;
            }
        }
        if fleets.is_none() {
            break;
        }
    }
    numbers
}

/// The draws of a scenario's nodes: their keys before any request.
#[derive(Clone, Debug)]
pub struct Places {
    /// By place.
    keys: Vec<u64>,
    /// By node: its place, and its number there.
    nodes: Vec<(u32, u32)>,
    met: Vec<bool>,
}

impl Places {
    /// The draws of the nodes that requests can meet which enter at one of these.
    pub fn new(point: &Point, roots: &[NodeId]) -> Places {
        let met = reachable(point, roots);
        let numbers = numbers(point, &met);
        let place = |node: &Node| point.sites[node.site as usize].place;
        Places {
            keys: point.places.iter().map(place_key).collect(),
            nodes: point.nodes.iter().map(place).zip(numbers).collect(),
            met,
        }
    }

    /// A key of a node's own; `with` is its purpose.
    pub fn node(&self, node: NodeId, key: Key) -> Key {
        let (place, number) = self.nodes[node as usize];
        key.with(self.keys[place as usize]).with(u64::from(number))
    }

    /// A key of a draw at a node's place.
    pub fn place(&self, node: NodeId, key: Key) -> Key {
        key.with(self.keys[self.nodes[node as usize].0 as usize])
    }

    /// Whether requests can meet it.
    pub fn meets(&self, node: NodeId) -> bool {
        self.met[node as usize]
    }

    /// Its number among the nodes of its place.
    pub fn number_of(&self, node: NodeId) -> u32 {
        self.nodes[node as usize].1
    }

    /// Its place.
    pub fn place_of(&self, node: NodeId) -> u32 {
        self.nodes[node as usize].0
    }
}

/// The nodes that requests can meet which enter at one of these, including nodes that model a server.
pub fn reachable(point: &Point, roots: &[NodeId]) -> Vec<bool> {
    let own = roots.iter().map(|root| (*root, *root));
    reached_from(point, own).into_iter().map(|from| from.is_some()).collect()
}

/// By node, the mark of the first of these roots from which requests can meet it; each root has a mark.
pub fn reached_from(point: &Point, roots: impl IntoIterator<Item = (NodeId, NodeId)>) -> Vec<Option<NodeId>> {
    let mut from = vec![None; point.nodes.len()];
    let mut lists = vec![false; point.lists.len()];
    for (root, mark) in roots {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            let seen = &mut from[id as usize];
            if seen.is_some() {
                continue;
            }
            *seen = Some(mark);
            let node = &point.nodes[id as usize];
            open.extend(point.specs[node.spec as usize].aside());
            match node.to {
                Edge::None => {}
                Edge::Node(next) => open.push(next),
                Edge::List(list) if !std::mem::replace(&mut lists[list as usize], true) => {
                    open.extend(&point.lists[list as usize]);
                }
                Edge::List(_) => {}
            }
        }
    }
    from
}
