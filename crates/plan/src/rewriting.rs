//! The requests behind the `rewrite` nodes of a scenario: each kind that the traffic sends, and each that
//! rewriting makes of one. Routes and keys behind see these.

use crate::path::{self, PathRewrite};
use crate::reach::Reach;
use crate::template::{Piece, pieces};
use crate::{Edge, NodeId, Point, RequestShape, Rewrite, Scenario, Spec};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Kinds at most; with more a scenario cannot be run.
const MOST_KINDS: usize = 1 << 16;

/// The kinds of a scenario's requests, rewritten or not.
#[derive(Clone, Debug)]
pub struct Kinds {
    /// The kinds; those of the traffic come first, in the order of the mix.
    pub shapes: Vec<RequestShape>,
    /// The kind that each was before its last rewriting; kinds of the traffic: themselves.
    pub before: Vec<u32>,
    /// By spec and kind: the kind after rewriting.
    made: BTreeMap<(u32, u32), u32>,
}

impl Kinds {
    /// All kinds of a scenario; `None` where there are too many.
    pub fn new(point: &Point, scenario: &Scenario) -> Option<Kinds> {
        let shapes = if scenario.mix.is_empty() { vec![RequestShape::plain()] } else { scenario.mix.clone() };
        let before = (0..).zip(&shapes).map(|(i, _)| i).collect();
        let mut kinds = Kinds { shapes, before, made: BTreeMap::new() };
        kinds.spread(point, scenario.root)?;
        Some(kinds)
    }

    /// The kind that the rewriting of that spec turns a kind into.
    pub fn behind(&self, spec: u32, kind: u32) -> u32 {
        self.made.get(&(spec, kind)).copied().unwrap_or(kind)
    }

    /// What the rewriting of that spec changes: pairs of a kind and what it becomes, ascending. Few of the kinds come to
    /// a rewrite of a long chain.
    pub fn changes(&self, spec: u32) -> impl Iterator<Item = (u32, u32)> {
        let made = self.made.range((spec, 0)..=(spec, u32::MAX));
        made.map(|((_, kind), made)| (*kind, *made))
    }

    /// Whether anything is rewritten.
    pub fn are_rewritten(&self) -> bool {
        !self.made.is_empty()
    }

    /// Follows the kinds from the root on, as far as something is rewritten.
    fn spread(&mut self, point: &Point, root: NodeId) -> Option<()> {
        let reach = Reach::new(point, root);
        let leads = leading(point, &reach);
        if !leads.contains(&true) {
            return Some(());
        }
        let mut coming: BTreeMap<NodeId, BTreeSet<u32>> = BTreeMap::new();
        coming.insert(root, (0..self.shapes.len() as u32).collect());
        // A node comes after all that it leads to: the highest one's kinds are known.
        while let Some((id, kinds)) = coming.pop_last() {
            let node = point.nodes.get(id as usize)?;
            let spec = point.specs.get(node.spec as usize)?;
            let kinds = match spec {
                Spec::Rewrite(rewrite) => kinds
                    .into_iter()
                    .map(|kind| self.make(node.spec, kind, rewrite))
                    .collect::<Option<_>>()?,
                _ => kinds,
            };
            let mut reach = |next: NodeId| {
                if reach.index(next).is_some_and(|at| leads[at]) {
                    coming.entry(next).or_default().extend(&kinds);
                }
            };
            spec.aside().into_iter().for_each(&mut reach);
            match node.to {
                Edge::None => {}
                Edge::Node(next) => reach(next),
                Edge::List(list) => point.lists.get(list as usize)?.iter().for_each(|next| reach(*next)),
            }
        }
        Some(())
    }

    fn make(&mut self, spec: u32, kind: u32, rewrite: &Rewrite) -> Option<u32> {
        if let Some(known) = self.made.get(&(spec, kind)) {
            return Some(*known);
        }
        let shape = rewritten(rewrite, self.shapes.get(kind as usize)?);
        let made = u32::try_from(self.shapes.len()).ok().filter(|n| (*n as usize) < MOST_KINDS)?;
        self.shapes.push(shape);
        self.before.push(kind);
        self.made.insert((spec, kind), made);
        Some(made)
    }
}

/// Whether a `rewrite` is at or behind each node that is reached.
fn leading(point: &Point, reach: &Reach) -> Vec<bool> {
    let mut leads: Vec<bool> = Vec::with_capacity(reach.ids().len());
    let mut lists: HashMap<u32, bool> = HashMap::new();
    for node in reach.ids().iter().filter_map(|id| point.nodes.get(*id as usize)) {
        let of = |id: NodeId| reach.index(id).and_then(|at| leads.get(at)).copied().unwrap_or(false);
        let spec = point.specs.get(node.spec as usize);
        let behind = match node.to {
            Edge::None => false,
            Edge::Node(next) => of(next),
            Edge::List(list) => *lists.entry(list).or_insert_with(|| {
                point.lists.get(list as usize).is_some_and(|nodes| nodes.iter().any(|next| of(*next)))
            }),
        };
        let aside = spec.and_then(Spec::aside).is_some_and(of);
        leads.push(behind || aside || matches!(spec, Some(Spec::Rewrite(_))));
    }
    leads
}

/// Rewrites a request.
fn rewritten(rewrite: &Rewrite, shape: &RequestShape) -> RequestShape {
    let mut made = shape.clone();
    if let Some((from, to)) = &rewrite.path
        && let PathRewrite::To(path) = path::rewritten(from, to, shape.path.as_bytes())
    {
        made.path = String::from_utf8_lossy(&path).into_owned();
    }
    let gone = |name: &String| rewrite.remove.contains(name) || rewrite.set.iter().any(|(n, _)| n == name);
    made.headers.retain(|(name, _)| !gone(name));
    for (name, value) in &rewrite.set {
        made.headers.extend(filled(value, shape).map(|value| (name.clone(), value)));
    }
    made
}

/// A template filled in; `None` where it asks for the client's address or certificate, which a simulated client
/// lacks.
fn filled(template: &str, shape: &RequestShape) -> Option<String> {
    pieces(template).into_iter().try_fold(String::new(), |text, piece| {
        Some(match piece {
            Piece::Text(plain) => text + plain,
            Piece::Host => text + shape.host.as_deref().unwrap_or_default(),
            Piece::Uri => text + &shape.path,
            Piece::Client | Piece::ClientSubject | Piece::ClientName | Piece::ClientSha256 => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_fields_are_rewritten() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let shape = RequestShape {
            path: "/api/v1?x=/api/".to_owned(),
            host: Some("a.example".to_owned()),
            headers: vec![pair("x-a", "1"), pair("x-b", "2"), pair("x-c", "3")],
            ..RequestShape::plain()
        };
        let rewrite = Rewrite {
            path: Some(pair("/api/", "/")),
            set: vec![pair("x-b", "{host}{uri}"), pair("x-d", "{client}")],
            remove: vec!["x-a".to_owned()],
            ..Rewrite::default()
        };
        let made = rewritten(&rewrite, &shape);
        assert_eq!(made.path, "/v1?x=/api/");
        assert_eq!(made.headers, [pair("x-c", "3"), pair("x-b", "a.example/api/v1?x=/api/")]);
        let other = RequestShape { path: "/apis".to_owned(), ..shape };
        assert_eq!(rewritten(&rewrite, &other).path, "/apis", "no prefix of it");
        let other = RequestShape { path: "/%61pi/%7E%2f".to_owned(), ..other };
        assert_eq!(rewritten(&rewrite, &other).path, "/%7E%2f", "it fits as a condition does");
        let long = RequestShape { path: format!("/api/{}", "x".repeat(8000)), ..other };
        let longer = Rewrite { path: Some(pair("/api/", &format!("/{}/", "b".repeat(200)))), ..rewrite };
        assert_eq!(rewritten(&longer, &long).path, long.path, "it would be too long");
    }
}
