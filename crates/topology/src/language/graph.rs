//! The graph under construction: nodes in order of creation, sites, places; specs and lists interned.

use crate::language::context::Files;
use crate::places::{Bound, CallSite, Locator, NamePosition};
use starlark::codemap::{CodeMapId, FileSpan};
use std::collections::HashMap;
use weir_plan::diagnostic::Location;
use weir_plan::ranges::MOST_NODES;
use weir_plan::{Edge, Node, NodeId, Place, Site, Spec};

/// A call by its file and span.
type CallKey = (CodeMapId, u32, u32);

/// The graph made by one evaluation.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) locator: Locator,
    places: Vec<Place>,
    place_of: HashMap<Place, u32>,
    sites: Vec<Interned>,
    site_of: HashMap<SiteKey, u32>,
    specs: Vec<Spec>,
    spec_of: HashMap<String, u32>,
    lists: Vec<Vec<NodeId>>,
    list_of: HashMap<Vec<NodeId>, u32>,
    nodes: Vec<Node>,
}

/// The identity of a site: the function, a part of it, and the calls that led there.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SiteKey {
    kind: &'static str,
    part: &'static str,
    calls: Vec<CallKey>,
}

/// A site before labels are given.
struct Interned {
    place: u32,
    at: Option<Location>,
    /// The variable that the call's value is bound to.
    bound: Option<Bound>,
    /// The calls that led there in words, the outermost first, without the one that makes the node.
    chain: Vec<CallStep>,
    /// The spec last used there, which the next node most likely has too.
    spec: Option<u32>,
    file: String,
}

/// A call on the way to the call that makes a node: its name, and the function as written.
#[derive(Clone, Default, PartialEq)]
struct CallStep {
    words: String,
    callee: String,
}

/// The finished parts of a plan's point.
pub(crate) struct Parts {
    pub(crate) places: Vec<Place>,
    pub(crate) sites: Vec<Site>,
    pub(crate) specs: Vec<Spec>,
    pub(crate) lists: Vec<Vec<NodeId>>,
    pub(crate) nodes: Vec<Node>,
}

impl Graph {
    /// The node of that index.
    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> NodeId {
        index(self.nodes.len())
    }

    /// The spec of a node.
    pub(crate) fn spec(&self, id: NodeId) -> Option<&Spec> {
        self.node(id).and_then(|n| self.specs.get(n.spec as usize))
    }

    /// The site of a call stack: `kind` is the function's name, `part` tells apart several nodes of one call.
    pub(crate) fn site(
        &mut self,
        kind: &'static str,
        part: &'static str,
        stack: &[FileSpan],
        files: &Files,
    ) -> u32 {
        let calls = stack.iter().map(|s| (s.file.id(), s.span.begin().get(), s.span.end().get())).collect();
        let key = SiteKey { kind, part, calls };
        if let Some(site) = self.site_of.get(&key) {
            return *site;
        }
        let made = self.made(kind, part, stack, files);
        let site = index(self.sites.len());
        self.sites.push(made);
        self.site_of.insert(key, site);
        site
    }

    fn made(
        &mut self,
        kind: &'static str,
        part: &'static str,
        stack: &[FileSpan],
        files: &Files,
    ) -> Interned {
        let call_of = |s: &FileSpan| {
            let file = files.get(s.file.id())?;
            Some((file, file.calls.get(s.span.begin().get(), s.span.end().get())?))
        };
        let last = stack.last();
        let made_by = last.and_then(call_of);
        let whole = |b: Bound| if part.is_empty() { b } else { Bound { how: NamePosition::Inside, ..b } };
        let bound = made_by.and_then(|(_, call)| call.bound.clone()).map(whole);
        let (file, label, def, callee, number) = match made_by {
            Some((file, call)) => {
                (file.number, file.label.clone(), call.def.to_string(), call.callee.clone(), call.number)
            }
            None => (0, String::new(), OUTSIDE.to_owned(), String::new(), 0),
        };
        let via = match (callee == kind, part) {
            (true, "") => String::new(),
            (true, part) => part.to_owned(),
            (false, "") => callee,
            (false, part) => format!("{callee}.{part}"),
        };
        let place = Place { file, def, kind: kind.to_owned(), via, number };
        let next = index(self.places.len());
        let place_index = *self.place_of.entry(place.clone()).or_insert(next);
        if place_index == next {
            self.places.push(place);
        }
        let outer = &stack[..stack.len().saturating_sub(1)];
        let chain = outer
            .iter()
            .map(|s| match call_of(s) {
                Some((file, call)) => {
                    let prefix = if file.number > 0 { format!("{}:", file.label) } else { String::new() };
                    CallStep { words: format!("{prefix}{}", named(call)), callee: call.callee.clone() }
                }
                None => CallStep::default(),
            })
            .collect();
        Interned {
            place: place_index,
            at: last.map(|span| self.locator.locate(span)),
            bound,
            chain,
            spec: None,
            file: if file == 0 { String::new() } else { label },
        }
    }

    /// Adds a node. `None` where there are too many.
    pub(crate) fn add(&mut self, site: u32, spec: Spec, to: Edge, name: Option<String>) -> Option<NodeId> {
        if self.nodes.len() >= MOST_NODES {
            return None;
        }
        let spec = self.intern_spec(site, spec);
        let id = index(self.nodes.len());
        self.nodes.push(Node { site, spec, to, name });
        Some(id)
    }

    fn intern_spec(&mut self, site: u32, spec: Spec) -> u32 {
        let made = self.sites.get_mut(site as usize);
        if let Some(last) = made.as_ref().and_then(|m| m.spec)
            && self.specs.get(last as usize) == Some(&spec)
        {
            return last;
        }
        let key = serde_json::to_string(&spec).unwrap_or_default();
        let next = index(self.specs.len());
        let found = *self.spec_of.entry(key).or_insert(next);
        if found == next {
            self.specs.push(spec);
        }
        if let Some(made) = made {
            made.spec = Some(found);
        }
        found
    }

    /// The index of a list of targets.
    pub(crate) fn list(&mut self, targets: Vec<NodeId>) -> u32 {
        if let Some(found) = self.list_of.get(&targets) {
            return *found;
        }
        let next = index(self.lists.len());
        self.lists.push(targets.clone());
        self.list_of.insert(targets, next);
        next
    }

    /// All lists of targets.
    pub(crate) fn lists(&self) -> &[Vec<NodeId>] {
        &self.lists
    }

    /// The kind of a site's nodes, and its location. The kind is empty for a part of another node.
    pub(crate) fn describe(&self, site: u32) -> (&str, Option<&Location>) {
        let Some(site) = self.sites.get(site as usize) else { return ("", None) };
        (self.places.get(site.place as usize).map_or("", |p| p.kind.as_str()), site.at.as_ref())
    }

    /// The sites' locations, for findings that need the finished point of the plan.
    pub(crate) fn standing(&self) -> Vec<Option<Location>> {
        self.sites.iter().map(|s| s.at.clone()).collect()
    }

    /// The plan's arrays, with every site labelled.
    pub(crate) fn finish(self) -> Parts {
        let labels = labels(&self.places, &self.sites);
        let sites = self
            .sites
            .iter()
            .zip(labels)
            .map(|(s, label)| Site {
                place: s.place,
                label,
                span: s.at.as_ref().map(Location::span).unwrap_or_default(),
            })
            .collect();
        Parts { places: self.places, sites, specs: self.specs, lists: self.lists, nodes: self.nodes }
    }
}

/// Below 2^32: bounded by [`MOST_NODES`] or by the length of a file.
fn index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A call's label: the name that its value gets, else its function and number; a pool's is that of the call around it.
fn named(call: &CallSite) -> String {
    match &call.bound {
        Some(Bound { name, how }) if *how != NamePosition::Inside || call.callee == "pool" => {
            name.to_string()
        }
        _ => numbered(&call.callee, call.number),
    }
}

/// The `def` of a call outside any `def`.
const OUTSIDE: &str = "<file>";

/// A place in words, in two parts: its function (nothing outside of any), and there the variable that the node is bound
/// to (`apps`), the kind inside of what is bound (`apps/cable`), or kind and number where there is no name at all
/// (`lb.random#2`).
fn place_in_words(p: &Place, bound: Option<&Bound>) -> (String, String) {
    let outside = p.def == OUTSIDE;
    let front = if outside { String::new() } else { format!("{}/", p.def) };
    let rest = match bound {
        Some(Bound { name, how: NamePosition::Whole }) => name.to_string(),
        Some(Bound { name, .. }) if outside => format!("{name}/{}", p.kind),
        _ if p.via.is_empty() => numbered(&p.kind, p.number),
        _ => format!("{} by {}", p.kind, numbered(&p.via, p.number)),
    };
    (front, rest)
}

/// `run`, `run#2`.
fn numbered(name: &str, number: u32) -> String {
    if number > 1 { format!("{name}#{number}") } else { name.to_owned() }
}

/// Each site in words: its place, and where several share it before that the calls in which they differ.
fn labels(places: &[Place], sites: &[Interned]) -> Vec<String> {
    let mut of_place: HashMap<u32, Vec<usize>> = HashMap::new();
    for (i, site) in sites.iter().enumerate() {
        of_place.entry(site.place).or_default().push(i);
    }
    let mut labels = vec![String::new(); sites.len()];
    for (place, group) in of_place {
        let Some(p) = places.get(place as usize) else { continue };
        let prefix =
            group.first().map(|i| sites[*i].file.as_str()).filter(|f| !f.is_empty()).map(|f| format!("{f}:"));
        let bound = group.first().and_then(|i| sites[*i].bound.as_ref());
        let (front_words, rest) = place_in_words(p, bound);
        let chains: Vec<&[CallStep]> = group.iter().map(|i| sites[*i].chain.as_slice()).collect();
        let shortest = chains.iter().map(|c| c.len()).min().unwrap_or(0);
        let same =
            |at: &dyn Fn(&[CallStep]) -> Option<CallStep>| chains.windows(2).all(|w| at(w[0]) == at(w[1]));
        let front = (0..shortest).take_while(|k| same(&|c| c.get(*k).cloned())).count();
        let back = (0..shortest - front).take_while(|k| same(&|c| c.get(c.len() - 1 - k).cloned())).count();
        for (chain, i) in chains.iter().zip(&group) {
            let part = &chain[front..chain.len() - back];
            let prefix = prefix.as_deref().unwrap_or_default();
            let way: String = part.iter().map(|call| format!("{}/", call.words)).collect();
            // The call of the function itself says which function it is.
            let is_said = part.iter().any(|call| call.callee == p.def);
            labels[*i] =
                if is_said { format!("{way}{rest}") } else { format!("{way}{prefix}{front_words}{rest}") };
        }
    }
    distinct(labels)
}

/// Appends a number where two labels are still equal.
fn distinct(mut labels: Vec<String>) -> Vec<String> {
    let mut count: HashMap<String, u32> = HashMap::new();
    for label in &mut labels {
        let n = count.entry(label.clone()).or_insert(0);
        *n += 1;
        if *n > 1 {
            label.push_str(&format!(" [{n}]"));
        }
    }
    labels
}
