//! Compiles nodes that take a connection to a server, and finds what leads to and from them.

use crate::code::changes::ChangeTables;
use crate::code::connections::{ConnectionSite, ConnectionTables};
use crate::code::{Code, ColdOp, MemberId, NOT, Op, SiteId, StageId, Target};
use crate::compile::blocks::{Draft, Layout, inside};
use crate::compile::{Compiler, Post};
use std::collections::{BTreeMap, BTreeSet};
use weir_model::connections::{Instance, Server};
use weir_model::draws::of_place as purpose;
use weir_model::sampler::Sampler;
use weir_plan::serving::named_server;
use weir_plan::{Connecting, Edge, Mode, NodeId, Spec};

impl Compiler<'_> {
    /// Emits the connection before a server.
    pub(crate) fn connection(
        &mut self,
        stage: StageId,
        spec: &Connecting,
        draft: &Draft,
        position: usize,
    ) -> Option<Post> {
        let nodes = &draft.nodes[position];
        let server = nodes.first().and_then(|node| named_server(self.layout.point, *node))?;
        let key = self.layout.draw_key(&mut self.code, purpose::CONNECT, self.layout.place(server));
        self.layout.add_refusals(&mut self.code, stage, draft);
        let at = self.connections.add_site(&self.layout, spec, nodes, draft.base, stage, key);
        self.op(Op::Cold(ColdOp::TakeConnection { at }), &[]);
        Some(Post::Op(Op::Cold(ColdOp::ReturnConnection { at })))
    }
}

impl Compiler<'_> {
    /// Notes that the step that was emitted last enters the queue or the shared cores of these nodes, which this leaves.
    pub(crate) fn entered(&mut self, draft: &Draft, position: usize, shares: bool, leaves: Op) -> Post {
        let pc = self.code.steps.len() as u32 - 1;
        self.connections.add_entrance(draft, position, pc, shares);
        Post::Op(leaves)
    }
}

impl ConnectionTables {
    /// Without servers. Instance 0 is the listener where requests come in, or the scenario where there is none.
    pub fn new(layout: &Layout, outermost: Option<NodeId>, loops: u32) -> ConnectionTables {
        let has_cost = |spec: &Spec| matches!(spec, Spec::Connection(of) if of.cost_ns > 0);
        ConnectionTables {
            instances: vec![Instance { loops, group: None }],
            listeners: vec![outermost],
            has_costs: layout.point.specs.iter().any(has_cost),
            ..ConnectionTables::default()
        }
    }

    /// Adds the nodes of a stage that take connections, with the key of its draws; returns the number of their site.
    pub fn add_site(
        &mut self,
        layout: &Layout,
        spec: &Connecting,
        nodes: &[NodeId],
        base: u32,
        stage: StageId,
        key: u32,
    ) -> u32 {
        let offset = (self.servers.len() as u32).wrapping_sub(base);
        for &node in nodes {
            let server = named_server(layout.point, node).unwrap_or(node);
            self.nodes.push((node, server));
            self.servers.push(Server { limits: spec.limits, tls: spec.tls, group: 0 });
        }
        self.sites.push(ConnectionSite {
            connect: Sampler::new(&spec.connect),
            timeout_ns: spec.timeout_ns.unwrap_or(u64::MAX),
            cost_ns: spec.cost_ns,
            age_ns: spec.limits.age_ns,
            key,
            visits: None,
            offset,
            stage,
            skip: NOT,
        });
        self.sites.len() as u32 - 1
    }

    /// Notes the step (in the reference: the stage) at which the nodes of a stage are entered, which are queues or share
    /// cores.
    pub fn add_entrance(&mut self, draft: &Draft, position: usize, pc: u32, shares: bool) {
        if self.has_costs {
            let of = if shares { &mut self.cores_of } else { &mut self.queues_of };
            let members = (draft.base..).map(MemberId);
            of.extend(
                draft.nodes[position]
                    .iter()
                    .zip(members)
                    .map(|(node, member)| (*node, Target { pc, member })),
            );
        }
    }

    /// Where the work for a new connection of a node is done: at the first cores on the way that requests share, else in
    /// a slot of the first queue.
    fn place_of_handshake(&self, layout: &Layout, node: NodeId) -> Option<Target> {
        let first =
            |of: &BTreeMap<NodeId, Target>| way_from(layout, node).find_map(|at| of.get(&at).copied());
        first(&self.cores_of).or_else(|| first(&self.queues_of))
    }

    /// Adds listeners behind others; returns the distance from members to instances.
    pub fn add_instances(&mut self, nodes: &[NodeId], loops: u32, base: u32) -> u32 {
        let offset = (self.instances.len() as u32).wrapping_sub(base);
        self.instances.extend(nodes.iter().map(|_| Instance { loops, group: None }));
        self.listeners.extend(nodes.iter().map(|node| Some(*node)));
        offset
    }

    /// Finds what follows from all nodes; `lines`: the timeline of each node of a process that crashes at events.
    pub fn finish(&mut self, layout: &Layout, code: &Code, lines: &BTreeMap<NodeId, u32>) {
        self.find_groups(layout, code.mask != 0);
        let on_the_way = |node: NodeId| -> Vec<u32> {
            way_from(layout, node).filter_map(|at| lines.get(&at).copied()).collect()
        };
        if self.has_costs {
            let place = |(node, _): &(NodeId, NodeId)| self.place_of_handshake(layout, *node);
            self.handshakes = self.nodes.iter().map(place).collect();
        }
        let crashes = |spec: &Spec| matches!(spec, Spec::Faulty(fault) if fault.mode == Mode::Crash);
        if layout.point.specs.iter().any(crashes) {
            self.lines_of = self.nodes.iter().map(|(node, _)| on_the_way(*node)).collect();
        }
        for (lines, server) in self.lines_of.iter().zip(0..) {
            lines.iter().for_each(|line| self.servers_of.entry(*line).or_default().push(server));
        }
        if let Some(changes) = code.changes.as_deref() {
            self.find_members(changes);
            self.find_balancers(layout, code, changes);
        }
    }

    /// Counts what a result shows in one row together: the servers and the listeners of a site, or each.
    fn find_groups(&mut self, layout: &Layout, each: bool) {
        let (mut groups, mut sites): (BTreeMap<(bool, u32), u32>, Vec<SiteId>) = Default::default();
        let mut group = |listens: bool, node: NodeId| {
            let of = if each { node } else { layout.point.nodes[node as usize].site };
            let sites = &mut sites;
            *groups.entry((listens, of)).or_insert_with(|| {
                sites.push(SiteId(layout.point.nodes[node as usize].site));
                sites.len() as u32
            })
        };
        for (server, (_, node)) in self.servers.iter_mut().zip(&self.nodes) {
            server.group = group(false, *node);
        }
        for (instance, node) in self.instances.iter_mut().zip(&self.listeners) {
            instance.group = node.map(|node| group(true, node));
        }
        self.sites_of_groups = sites;
    }

    fn find_members(&mut self, changes: &ChangeTables) {
        let servers = self.nodes.iter().map(|(node, _)| Some(*node));
        let both = servers.map(|node| (node, true)).chain(self.listeners.iter().map(|node| (*node, false)));
        let mut numbers = [0, 0];
        for (node, serves) in both {
            let number = numbers[usize::from(serves)];
            numbers[usize::from(serves)] += 1;
            let Some(member) = node.and_then(|node| changes.member_of(node)) else { continue };
            let (servers, instances) = self.of_member.entry(member).or_default();
            if serves { servers } else { instances }.push(number);
        }
    }

    /// Finds the instances to which each balancer that sees changes belongs.
    fn find_balancers(&mut self, layout: &Layout, code: &Code, changes: &ChangeTables) {
        let of_view = changes.views.iter().map(|view| {
            let of = &code.instances[view.instance as usize];
            ((of.place, of.number), view.instance)
        });
        let of_view: BTreeMap<(u32, u32), u32> = of_view.collect();
        let leads = layout.leads_to(|spec| matches!(spec, Spec::Lb(_)));
        for (instance, listener) in (0..).zip(&self.listeners) {
            for lb in balancers_of(layout, *listener, &leads) {
                let number = (layout.place(lb), layout.number[lb as usize]);
                if let Some(view) = of_view.get(&number) {
                    self.instances_of.entry(*view).or_default().push(instance);
                }
            }
        }
    }
}

/// A node and those behind it, as far as they are one after another.
fn way_from<'a>(layout: &'a Layout, node: NodeId) -> impl Iterator<Item = NodeId> + use<'a> {
    let point = layout.point;
    std::iter::successors(Some(node), move |at| match inside(point, *at) {
        Edge::Node(next) => Some(next),
        Edge::None | Edge::List(_) => None,
    })
}

/// The balancers of a listener, or of the scenario before its first one: those that no other listener precedes.
fn balancers_of(layout: &Layout, listener: Option<NodeId>, leads: &[bool]) -> Vec<NodeId> {
    let point = layout.point;
    let (mut found, mut seen, mut stack) = (Vec::new(), BTreeSet::new(), Vec::new());
    let ways = |id: NodeId, stack: &mut Vec<NodeId>| {
        stack.extend(point.spec(id).and_then(Spec::aside));
        match point.nodes[id as usize].to {
            Edge::None => {}
            Edge::Node(next) => stack.push(next),
            Edge::List(list) => stack.extend(&point.lists[list as usize]),
        }
    };
    match listener {
        Some(listener) => ways(listener, &mut stack),
        None => stack.push(layout.root),
    }
    while let Some(id) = stack.pop() {
        let is_others = matches!(point.spec(id), Some(Spec::Listen(_)));
        if !leads[id as usize] || is_others || !seen.insert(id) {
            continue;
        }
        if matches!(point.spec(id), Some(Spec::Lb(_))) {
            found.push(id);
        }
        ways(id, &mut stack);
    }
    found
}
