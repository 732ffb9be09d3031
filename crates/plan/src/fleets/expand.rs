//! Copies the template of each fleet for each of its members.

use super::{Fleets, ListedMember, Member, MemberPlaces, Members, templates};
use crate::{Edge, Faulty, Fleet, Lb, Line, Node, NodeId, Point, Scenario, Spec};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Blocks of newcomers are numbered from here, behind those of the start.
const NEWCOMERS_BLOCKS: u32 = 1 << 31;

/// The point with the members of all fleets: those of the start, and `extra[fleet]` newcomers; where `lists[fleet]` has a
/// list, its members alone.
pub(super) fn expand(compact: &Point, extra: &[u32], lists: &[Option<MemberPlaces>]) -> Point {
    expand_with(compact, extra, lists).0
}

/// The same, and what became of each node outside of templates.
pub(super) fn expand_with(
    compact: &Point,
    extra: &[u32],
    lists: &[Option<MemberPlaces>],
) -> (Point, Vec<NodeId>) {
    let mut copier = Copier {
        from: compact,
        nodes: Vec::with_capacity(compact.nodes.len()),
        specs: Vec::new(),
        lists: Vec::new(),
        map: vec![NodeId::MAX; compact.nodes.len()],
        groups: HashMap::new(),
        spec_of: HashMap::new(),
        list_of: HashMap::new(),
        members: HashMap::new(),
        weights: HashMap::new(),
        blocks: BTreeMap::new(),
        next_block: [0, NEWCOMERS_BLOCKS],
        all: Vec::new(),
        listed: BTreeMap::new(),
        newcomers: Vec::new(),
    };
    copier.copy_all(extra, lists);
    let now = copier.map.clone();
    (copier.finish(), now)
}

/// One copy of a template under way.
struct TemplateCopy<'c> {
    /// The first node of the template.
    first: NodeId,
    /// What became of the template's nodes.
    map: &'c [NodeId],
    /// The number of the copy among all, and whether it is a newcomer's.
    number: u32,
    /// The member's number in its fleet.
    member: u32,
    is_newcomer: bool,
    /// What a source says of it.
    listed: Option<&'c ListedMember>,
}

/// The members that a fleet gets: those of a list, or those of the start and some more.
#[derive(Clone, Copy)]
struct Roll<'l> {
    more: u32,
    listed: Option<&'l [Option<ListedMember>]>,
}

struct Copier<'p> {
    from: &'p Point,
    nodes: Vec<Node>,
    specs: Vec<Spec>,
    lists: Vec<Vec<NodeId>>,
    /// What became of each node outside of templates.
    map: Vec<NodeId>,
    /// The members of a fleet, or of a weight of one.
    groups: HashMap<NodeId, Vec<NodeId>>,
    spec_of: HashMap<(u32, Option<NodeId>, Option<u32>), u32>,
    list_of: HashMap<Vec<NodeId>, u32>,
    /// The member that each target is.
    members: HashMap<NodeId, Member>,
    /// The node that weighs a listed member, by the one that it is.
    weights: HashMap<NodeId, NodeId>,
    /// The new number of each block, by copy.
    blocks: BTreeMap<(u32, Option<u32>), u32>,
    next_block: [u32; 2],
    all: Vec<Members>,
    listed: BTreeMap<u32, Vec<Option<Member>>>,
    newcomers: Vec<Range<NodeId>>,
}

impl Copier<'_> {
    fn copy_all(&mut self, extra: &[u32], lists: &[Option<MemberPlaces>]) {
        let templates = templates(self.from);
        let mut copies = 0;
        let mut id: NodeId = 0;
        let mut next = templates.iter().peekable();
        while (id as usize) < self.from.nodes.len() {
            match next.peek() {
                Some((template, fleet)) if template.start == id => {
                    let more = extra.get(self.all.len()).copied().unwrap_or(0);
                    let listed = lists.get(self.all.len()).and_then(Option::as_deref);
                    let roll = Roll { more, listed };
                    self.copy_fleet(template, *fleet, roll, &mut copies);
                    id = *fleet;
                    next.next();
                }
                _ => self.copy_outside(id),
            }
            id += 1;
        }
    }

    /// Copies the template of a fleet for each member: with more than at the start, or those of a list.
    fn copy_fleet(&mut self, template: &Range<NodeId>, node: NodeId, roll: Roll<'_>, copies: &mut u32) {
        let Some(Spec::Fleet(fleet)) = self.from.spec(node) else { return };
        let (Roll { more, listed }, mut fleet) = (roll, Fleet::clone(fleet));
        if let Some(listed) = listed {
            fleet.size = listed.len() as u32;
        }
        let Edge::Node(root) = self.from.nodes[node as usize].to else { return };
        let number = self.all.len() as u32;
        let (mut roots, mut nodes) = (Vec::new(), Vec::new());
        for member in 0..fleet.size.saturating_add(more) {
            let begin = self.nodes.len() as NodeId;
            let is_newcomer = member >= fleet.size;
            let mut map = Vec::with_capacity(template.len());
            for id in template.clone() {
                let listed = listed.and_then(|listed| listed.get(member as usize)?.as_ref());
                let (first, number) = (template.start, *copies);
                let copy = TemplateCopy { first, map: &map, number, member, is_newcomer, listed };
                let made = self.copy_node(id, Some(&copy));
                map.push(made);
            }
            *copies += 1;
            let root = map.get((root - template.start) as usize).copied().unwrap_or(NodeId::MAX);
            let range = begin..self.nodes.len() as NodeId;
            if listed.is_some_and(|listed| listed.get(member as usize).is_none_or(Option::is_none)) {
                nodes.push(range);
                continue;
            }
            if is_newcomer {
                self.newcomers.push(range.clone());
            }
            self.members.insert(root, Member { fleet: number, number: member });
            roots.push(root);
            nodes.push(range);
        }
        let listed = listed.unwrap_or_default().to_vec();
        self.weigh(node, &roots, &listed);
        self.groups.insert(node, roots);
        self.all.push(Members { node, fleet, nodes, listed });
    }

    /// Puts a weight before each member of a list that has one, where a balancer picks from the fleet itself.
    fn weigh(&mut self, fleet: NodeId, roots: &[NodeId], listed: &[Option<ListedMember>]) {
        if !self.from.lists.iter().any(|list| list.contains(&fleet)) {
            return;
        }
        for (root, member) in roots.iter().zip(listed.iter().flatten()) {
            let weight = member.weight_of(1.0);
            if weight != 1.0 {
                let made = self.weight(*root, self.nodes[*root as usize].site, weight);
                self.weights.insert(*root, made);
            }
        }
    }

    /// Adds a weight before a member.
    fn weight(&mut self, member: NodeId, site: u32, weight: f64) -> NodeId {
        let made = self.nodes.len() as NodeId;
        self.specs.push(Spec::Weight { weight });
        let spec = self.specs.len() as u32 - 1;
        self.nodes.push(Node { site, spec, to: Edge::Node(member), name: None });
        if let Some(&of) = self.members.get(&member) {
            self.members.insert(made, of);
        }
        made
    }

    /// Copies a node outside of any template. The weight of a fleet is that of each member.
    fn copy_outside(&mut self, id: NodeId) {
        let node = &self.from.nodes[id as usize];
        let Some(members) = (match node.to {
            Edge::Node(next) => self.groups.get(&next).cloned(),
            _ => None,
        }) else {
            self.map[id as usize] = self.copy_node(id, None);
            return;
        };
        let spec = self.spec(id, None);
        let mut weighted = Vec::with_capacity(members.len());
        let of_fleet = if let Some(Spec::Weight { weight }) = self.from.spec(id) { *weight } else { 1.0 };
        for member in members {
            if let Some(listed) = self.listed(member) {
                let weight = listed.weight_of(of_fleet);
                weighted.push(self.weight(member, node.site, weight));
                continue;
            }
            let made = self.nodes.len() as NodeId;
            self.nodes.push(Node { spec, to: Edge::Node(member), ..node.clone() });
            if let Some(&of) = self.members.get(&member) {
                self.members.insert(made, of);
                if of.number >= self.all[of.fleet as usize].fleet.size {
                    self.newcomers.push(made..made + 1);
                }
            }
            weighted.push(made);
        }
        self.groups.insert(id, weighted);
    }

    /// What a source says of the member that a node is.
    fn listed(&self, node: NodeId) -> Option<&ListedMember> {
        let of = self.members.get(&node)?;
        self.all.get(of.fleet as usize)?.listed.get(of.number as usize)?.as_ref()
    }

    fn copy_node(&mut self, id: NodeId, copy: Option<&TemplateCopy<'_>>) -> NodeId {
        let node = &self.from.nodes[id as usize];
        let to = match node.to {
            Edge::None => Edge::None,
            Edge::Node(next) => Edge::Node(self.moved(next, copy)),
            Edge::List(list) => Edge::List(self.list(list, copy)),
        };
        let spec = self.spec(id, copy);
        let name = match (&node.name, copy) {
            // No two listeners have one name.
            (Some(name), Some(copy))
                if copy.member > 0 && matches!(self.specs[spec as usize], Spec::Listen(_)) =>
            {
                Some(format!("{name}#{}", copy.member + 1))
            }
            (name, _) => name.clone(),
        };
        self.nodes.push(Node { site: node.site, spec, to, name });
        self.nodes.len() as NodeId - 1
    }

    /// What became of a node.
    fn moved(&self, id: NodeId, copy: Option<&TemplateCopy<'_>>) -> NodeId {
        let inside = copy.and_then(|copy| copy.map.get(id.checked_sub(copy.first)? as usize));
        inside.copied().unwrap_or_else(|| self.map.get(id as usize).copied().unwrap_or(NodeId::MAX))
    }

    fn list(&mut self, list: u32, copy: Option<&TemplateCopy<'_>>) -> u32 {
        let (mut targets, mut newcomers) = (Vec::new(), Vec::new());
        for &target in &self.from.lists[list as usize] {
            let Some(members) = self.groups.get(&target) else {
                targets.push(self.moved(target, copy));
                continue;
            };
            for &member in members {
                let late = self
                    .members
                    .get(&member)
                    .is_some_and(|m| m.number >= self.all[m.fleet as usize].fleet.size);
                let target = self.weights.get(&member).copied().unwrap_or(member);
                if late { newcomers.push(target) } else { targets.push(target) }
            }
        }
        targets.append(&mut newcomers);
        let next = self.lists.len() as u32;
        if let Some(&known) = self.list_of.get(&targets) {
            return known;
        }
        let who: Vec<Option<Member>> =
            targets.iter().map(|target| self.members.get(target).copied()).collect();
        if who.iter().any(Option::is_some)
            || self.from.lists[list as usize].iter().any(|t| self.groups.contains_key(t))
        {
            self.listed.insert(next, who);
        }
        self.list_of.insert(targets.clone(), next);
        self.lists.push(targets);
        next
    }

    /// The spec of a node, with what it names replaced by what became of it.
    fn spec(&mut self, id: NodeId, copy: Option<&TemplateCopy<'_>>) -> u32 {
        let old = self.from.nodes[id as usize].spec;
        let spec = &self.from.specs[old as usize];
        let aside = spec.aside().map(|aside| self.moved(aside, copy));
        let block = match spec {
            Spec::Faulty(Faulty { line: Line::Block(block), .. }) => Some(self.block(*block, copy)),
            _ => None,
        };
        let key = (old, aside, block);
        if let (Spec::Server { .. }, Some(listed)) = (spec, copy.and_then(|copy| copy.listed)) {
            let mut made = spec.clone();
            if let Spec::Server { addr, model, .. } = &mut made {
                (*addr, *model) = (Some(listed.addr.clone()), aside);
            }
            self.specs.push(made);
            return self.specs.len() as u32 - 1;
        }
        if let Some(&known) = self.spec_of.get(&key) {
            return known;
        }
        let mut made = spec.clone();
        match &mut made {
            Spec::Server { model, .. } => *model = aside,
            Spec::Lb(Lb { spare, .. }) => *spare = aside,
            Spec::Faulty(Faulty { line, .. }) => {
                if let Some(block) = block {
                    *line = Line::Block(block);
                }
            }
            _ => {}
        }
        self.specs.push(made);
        self.spec_of.insert(key, self.specs.len() as u32 - 1);
        self.specs.len() as u32 - 1
    }

    /// The number of a block: each copy of a template has blocks of its own.
    fn block(&mut self, block: u32, copy: Option<&TemplateCopy<'_>>) -> u32 {
        let next = &mut self.next_block[usize::from(copy.is_some_and(|copy| copy.is_newcomer))];
        *self.blocks.entry((block, copy.map(|copy| copy.number))).or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }

    fn finish(self) -> Point {
        let from = self.from;
        let scenario = |s: &Scenario| Scenario { root: self.map[s.root as usize], ..s.clone() };
        let scenarios = from.scenarios.iter().map(scenario).collect();
        let mut newcomers = self.newcomers;
        newcomers.sort_by_key(|range| range.start);
        let lists = self.listed.into_iter().collect();
        let grown = from.scenarios.iter().map(|_| OnceLock::new()).collect();
        let fleets = Fleets {
            compact: from.clone(),
            all: self.all,
            lists,
            changes: false,
            newcomers,
            grown,
            set: Vec::new(),
            set_nodes: Vec::new(),
            driven: Vec::new(),
        };
        Point {
            params: from.params.clone(),
            places: from.places.clone(),
            sites: from.sites.clone(),
            specs: self.specs,
            lists: self.lists,
            nodes: self.nodes,
            scenarios,
            expectations: from.expectations.clone(),
            warnings: from.warnings.clone(),
            fleets: Some(Arc::new(fleets)),
            connected: Default::default(),
        }
    }
}
