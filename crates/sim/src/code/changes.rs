//! The changes of fleets during a run: their steps, the balancers that see them, and what begins with a newcomer.

use crate::code::{Instance, NOT};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use weir_model::process::Life;
use weir_model::sampler::Sampler;
use weir_plan::fleets::{Fleets, Member, Step, schedule};
use weir_plan::{Change, Edge, FleetSource, NodeId, Point, Scenario, Spec};
use weir_policy::fleet::Doubt;
use weir_stats::Key;

/// The changes of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct ChangeTables {
    /// In the order in which they happen.
    pub steps: Vec<Step>,
    /// As the scenario lists them.
    pub events: Vec<Change>,
    /// The timelines of nodes that a change lets fail, by the number of the change.
    pub failing: BTreeMap<u32, Failing>,
    /// The targets on which a change has the operator's word, by the number of the change.
    pub set: BTreeMap<u32, Vec<SetTarget>>,
    /// The members that are processes, in the order of their numbers.
    pub processes: Vec<ProcessSite>,
    pub fleets: Vec<FleetSite>,
    /// The balancers over fleets, by the number of their instance.
    pub views: Vec<ViewSite>,
    /// Whether the lists of any fleet may be doubted.
    pub has_doubts: bool,
    /// What its draws depend on: the scenario's name.
    pub draws: u64,
    /// The nodes of all members, ascending.
    nodes: Vec<(Range<NodeId>, Member)>,
}

/// What a change lets fail.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    /// The first of them in words.
    pub label: String,
    pub nodes: Vec<FailingNode>,
}

/// A node that a change may let fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailingNode {
    pub node: NodeId,
    /// The member that it is, of a fleet that the change names.
    pub member: Option<Member>,
    /// Its timeline.
    pub line: u32,
}

/// A target on which a change has the operator's word.
#[derive(Clone, Debug)]
pub(crate) struct SetTarget {
    pub node: NodeId,
    /// The member that it is.
    pub member: Option<Member>,
    /// The balancers that may have it, as indices of [`ChangeTables::views`], and its place in the list of each.
    pub places: Vec<(u32, u32)>,
}

/// A member that is a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessSite {
    pub member: Member,
    /// The timeline that it drives.
    pub line: u32,
}

/// A fleet.
#[derive(Clone, Debug)]
pub(crate) struct FleetSite {
    /// Its name in words.
    pub label: String,
    /// How many members it has at the start.
    pub size: u32,
    /// How many it has ever.
    pub members: u32,
    /// How much later a balancer sees a change.
    pub lag: Sampler,
    /// How its members begin and end, and how long they boot, where they are processes.
    pub life: Option<(Life, Sampler)>,
    /// How far the lists of its source are believed; `None`: each change is.
    pub doubt: Option<Doubt>,
    /// What begins with each newcomer, by its number beyond those of the start.
    pub births: Vec<Vec<Birth>>,
}

/// What begins with a newcomer, or anew with a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Birth {
    /// A timeline of faults.
    Line(u32),
    /// That of a node that refuses, where those are kept apart.
    Fault(u32),
    /// A warm-up.
    Warmup(u32),
    /// The threads of a server.
    Threads(u32),
    /// A gate.
    Gate(u32),
}

/// A balancer over fleets, or with targets on which a change has the operator's word.
#[derive(Clone, Debug)]
pub(crate) struct ViewSite {
    /// The number of its instance.
    pub instance: u32,
    /// The list of its targets: of all that ever are.
    pub list: u32,
    /// How many of them it has at the start: the first ones.
    pub first: u32,
    /// The place of each member in the list.
    pub places: BTreeMap<Member, u32>,
    /// The member at each place.
    pub members: Vec<Option<Member>>,
}

impl ChangeTables {
    /// The changes of a scenario, if it has any; `born` has what belongs to a node, `driven` the timelines of nodes that
    /// changes drive.
    pub fn new(
        point: &Point,
        scenario: &Scenario,
        instances: &[Instance],
        born: &[(NodeId, Birth)],
        driven: &[(NodeId, u32)],
    ) -> Option<Box<ChangeTables>> {
        let fleets = point.fleets.as_deref().filter(|fleets| fleets.changes)?;
        let steps = schedule(&fleets.compact, &scenario.events).ok()?.steps;
        let mut born = born.to_vec();
        born.sort_by_key(|(node, _)| *node);
        let driven: BTreeMap<NodeId, u32> = driven.iter().copied().collect();
        let has_process = |fleet: usize| {
            let of_fleet = |id: &NodeId| fleets.all[fleet].nodes.iter().any(|nodes| nodes.contains(id));
            fleets.driven.iter().any(|of| of.change.is_none() && of.nodes.iter().any(of_fleet))
        };
        let site = |(number, members): (usize, &weir_plan::fleets::Members)| {
            let newcomers = members.nodes.iter().skip(members.fleet.size as usize);
            FleetSite {
                label: members.fleet.label.clone(),
                size: members.fleet.size,
                members: members.nodes.len() as u32,
                lag: Sampler::new(&members.fleet.lag),
                life: has_process(number).then(|| life(members.fleet.life.as_ref())),
                doubt: doubt(members.fleet.source.as_ref()),
                births: newcomers.map(|nodes| of_nodes(&born, nodes)).collect(),
            }
        };
        let views: Vec<ViewSite> = instances
            .iter()
            .zip(0..)
            .filter_map(|(of, instance)| view(point, fleets, instance, of.list))
            .collect();
        let mut nodes: Vec<(Range<NodeId>, Member)> = Vec::new();
        for (members, fleet) in fleets.all.iter().zip(0..) {
            let of = members.nodes.iter().cloned().zip((0..).map(|number| Member { fleet, number }));
            nodes.extend(of);
        }
        nodes.sort_by_key(|(nodes, _)| nodes.start);
        let outside = |(of, _): &(Range<NodeId>, Member)| member_at(&nodes, of.start).is_none();
        let weights: Vec<_> = weights(point, fleets).into_iter().filter(outside).collect();
        nodes.extend(weights);
        nodes.sort_by_key(|(nodes, _)| nodes.start);
        let sites: Vec<FleetSite> = fleets.all.iter().enumerate().map(site).collect();
        let (failing, processes) = (failing(point, fleets, scenario, &driven), processes(fleets, &driven));
        let set = set_targets(point, fleets, &views);
        let (fleets, events) = (sites, scenario.events.clone());
        let has_doubts = fleets.iter().any(|fleet| fleet.doubt.is_some());
        let draws = Key::new(0).with_text(&scenario.name).bits();
        let tables =
            ChangeTables { steps, events, failing, set, processes, fleets, views, has_doubts, draws, nodes };
        Some(Box::new(tables))
    }

    /// The view of a balancer.
    pub fn of_instance(&self, instance: u32) -> Option<&ViewSite> {
        self.views.get(self.view_of(instance)?)
    }

    /// The number of a balancer's view.
    pub fn view_of(&self, instance: u32) -> Option<usize> {
        self.views.binary_search_by_key(&instance, |view| view.instance).ok()
    }

    /// The member that a node belongs to.
    pub fn member_of(&self, node: NodeId) -> Option<Member> {
        member_at(&self.nodes, node)
    }

    /// Whether any balancer of the scenario has this fleet.
    pub fn is_balanced(&self, fleet: usize) -> bool {
        let is_of = |member: &Member| member.fleet as usize == fleet;
        self.views.iter().any(|view| view.members.iter().flatten().any(is_of))
    }

    /// The process that a member is, as an index of [`ChangeTables::processes`].
    pub fn process_of(&self, member: Member) -> Option<usize> {
        self.processes.binary_search_by_key(&member, |site| site.member).ok()
    }

    /// Everything that newcomers wait with.
    pub fn births(&self) -> impl Iterator<Item = Birth> {
        self.fleets.iter().flat_map(|fleet| fleet.births.iter().flatten()).copied()
    }
}

fn life(of: Option<&Life>) -> (Life, Sampler) {
    let life = of.cloned().unwrap_or_default();
    let boot = Sampler::new(&life.boot);
    (life, boot)
}

/// The nodes that each `change.down` may let fail, and that requests can reach.
fn failing(
    point: &Point,
    fleets: &Fleets,
    scenario: &Scenario,
    driven: &BTreeMap<NodeId, u32>,
) -> BTreeMap<u32, Failing> {
    let of_change = |of: &weir_plan::fleets::DrivenNodes| {
        let change = of.change?;
        let named = |fleet: u32| {
            let node = fleets.all[fleet as usize].node;
            scenario.events[change as usize].nodes().any(|id| id == node)
        };
        let node = |id: &NodeId| {
            let member = member_of(fleets, *id).filter(|member| named(member.fleet));
            let node = if let Edge::Node(behind) = point.nodes[*id as usize].to { behind } else { *id };
            Some(FailingNode { node, member, line: *driven.get(id)? })
        };
        let first = of.nodes.first().map(|id| &point.sites[point.nodes[*id as usize].site as usize].label);
        let label = first.map_or("", |label| label.rsplit_once('/').map_or(label, |(of, _)| of)).to_owned();
        Some((change, Failing { label, nodes: of.nodes.iter().filter_map(node).collect() }))
    };
    fleets.driven.iter().filter_map(of_change).collect()
}

/// The processes that requests can reach.
fn processes(fleets: &Fleets, driven: &BTreeMap<NodeId, u32>) -> Vec<ProcessSite> {
    let of = fleets.driven.iter().filter(|of| of.change.is_none()).flat_map(|of| &of.nodes);
    let site = |id: &NodeId| Some(ProcessSite { member: member_of(fleets, *id)?, line: *driven.get(id)? });
    let mut found: Vec<ProcessSite> = of.filter_map(site).collect();
    found.sort_unstable_by_key(|site| site.member);
    found
}

/// The member that a node is part of.
fn member_of(fleets: &Fleets, id: NodeId) -> Option<Member> {
    fleets.all.iter().zip(0..).find_map(|(of, fleet)| {
        let at = of.nodes.partition_point(|nodes| nodes.end <= id);
        of.nodes.get(at).filter(|nodes| nodes.contains(&id))?;
        Some(Member { fleet, number: at as u32 })
    })
}

/// How far the lists of a source are believed; `None`: every list is, as each change of a fleet without a source.
fn doubt(source: Option<&FleetSource>) -> Option<Doubt> {
    let source = source.filter(|source| source.shrink.is_some())?;
    Some(Doubt { shrink: source.shrink, grace_ns: source.grace_ns })
}

/// The member that a node belongs to, of ascending ones.
fn member_at(all: &[(Range<NodeId>, Member)], node: NodeId) -> Option<Member> {
    let at = all.partition_point(|(nodes, _)| nodes.end <= node);
    all.get(at).filter(|(nodes, _)| nodes.contains(&node)).map(|(_, member)| *member)
}

/// The nodes by which balancers weigh members.
fn weights(point: &Point, fleets: &Fleets) -> Vec<(Range<NodeId>, Member)> {
    let lists = (0..).zip(&point.lists).filter_map(|(list, targets)| Some((targets, fleets.of_list(list)?)));
    let all = lists.flat_map(|(targets, members)| targets.iter().zip(members));
    let weighs = |id: NodeId| matches!(point.spec(id), Some(Spec::Weight { .. }));
    let of: BTreeMap<NodeId, Member> =
        all.filter_map(|(id, member)| Some((*id, (*member)?))).filter(|(id, _)| weighs(*id)).collect();
    of.into_iter().map(|(id, member)| (id..id + 1, member)).collect()
}

fn of_nodes(born: &[(NodeId, Birth)], nodes: &Range<NodeId>) -> Vec<Birth> {
    let at = |id: NodeId| born.partition_point(|(node, _)| *node < id);
    born[at(nodes.start)..at(nodes.end)].iter().map(|(_, birth)| *birth).collect()
}

/// The targets on which each change has the operator's word.
fn set_targets(point: &Point, fleets: &Fleets, views: &[ViewSite]) -> BTreeMap<u32, Vec<SetTarget>> {
    let mut places: BTreeMap<NodeId, Vec<(u32, u32)>> = BTreeMap::new();
    for (view, of) in (0..).zip(views) {
        for (place, target) in (0..).zip(&point.lists[of.list as usize]) {
            let node = fleets.set_node(point, *target);
            node.into_iter().for_each(|node| places.entry(node).or_default().push((view, place)));
        }
    }
    let target = |node: NodeId| SetTarget {
        node,
        member: member_of(fleets, node),
        places: places.get(&node).cloned().unwrap_or_default(),
    };
    let of_change = |of: &weir_plan::fleets::DrivenNodes| {
        Some((of.change?, of.nodes.iter().map(|node| target(*node)).collect()))
    };
    fleets.set.iter().filter_map(of_change).collect()
}

/// What a balancer sees of changes: of fleets, and of the operator.
fn view(point: &Point, fleets: &Fleets, instance: u32, list: u32) -> Option<ViewSite> {
    let alone = || fleets.is_set(point, list).then(|| vec![None; point.lists[list as usize].len()]);
    let targets = fleets.of_list(list).map(<[_]>::to_vec).or_else(alone)?;
    let is_newcomer =
        |of: &&Option<Member>| of.is_some_and(|m| m.number >= fleets.all[m.fleet as usize].fleet.size);
    let first = targets.iter().take_while(|of| !is_newcomer(of)).count() as u32;
    let places = targets.iter().zip(0..).filter_map(|(of, place)| Some(((*of)?, place))).collect();
    Some(ViewSite { instance, list, first, places, members: targets })
}

impl ViewSite {
    /// Whether members of a fleet are ever targets of the balancer.
    pub fn has_fleet(&self, fleet: u32) -> bool {
        let all = Member { fleet, number: 0 }..=Member { fleet, number: u32::MAX };
        self.places.range(all).next().is_some()
    }
}

/// How many of a balancer's targets it has at the start, of those that it ever has.
pub(crate) fn at_start(changes: Option<&ChangeTables>, instance: u32, all: usize) -> usize {
    let view = changes.and_then(|changes| changes.of_instance(instance));
    view.map_or(all, |view| view.first as usize)
}

/// When a member was there, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub joined_ns: u64,
    pub left_ns: u64,
    /// When the last thing inside left it after that: a request, what goes on of one that was cancelled, or a check.
    pub until_ns: u64,
}

impl Span {
    /// There all the time.
    pub const ALWAYS: Span = Span { joined_ns: 0, left_ns: u64::MAX, until_ns: u64::MAX };
    /// Never there.
    const NEVER: Span = Span { joined_ns: u64::MAX, left_ns: 0, until_ns: 0 };
}

/// When members of fleets were there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attendance {
    /// Of those that joined or left.
    pub spans: BTreeMap<Member, Span>,
    /// The times in which a member was not listed.
    pub absent: BTreeMap<Member, Vec<Absence>>,
}

/// The changes of a replication that took longer than they say, by their number in the scenario's list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChangeDelays {
    /// Replacements that halted: a batch took too long.
    pub halted: BTreeSet<u32>,
    /// Those that found a member which another change was still moving.
    pub held_up: BTreeSet<u32>,
}

/// A time in which a member is not listed, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Absence {
    pub unlisted_ns: u64,
    /// When the last thing inside left it after that: until then it is there.
    pub until_ns: u64,
    pub relisted_ns: u64,
}

impl Absence {
    /// One that begins now.
    pub fn new(now_ns: u64) -> Absence {
        Absence { unlisted_ns: now_ns, until_ns: now_ns, relisted_ns: u64::MAX }
    }
}

impl Attendance {
    fn span(&self, tables: &ChangeTables, member: Member) -> Span {
        let is_first =
            tables.fleets.get(member.fleet as usize).is_some_and(|fleet| member.number < fleet.size);
        let otherwise = if is_first { Span::ALWAYS } else { Span::NEVER };
        self.spans.get(&member).copied().unwrap_or(otherwise)
    }

    /// The run ended at that instant with requests that are never answered: what an engine still did to fleets then or
    /// later is forgotten, since nothing says how far it goes on.
    pub fn end(&mut self, at_ns: u64) {
        self.spans.retain(|_, span| span.joined_ns < at_ns);
        for span in self.spans.values_mut().filter(|span| span.left_ns >= at_ns) {
            (span.left_ns, span.until_ns) = (u64::MAX, u64::MAX);
        }
        // Checks may have gone on.
        for span in self.spans.values_mut().filter(|span| span.left_ns < at_ns) {
            span.until_ns = span.until_ns.min(at_ns);
        }
        for times in self.absent.values_mut() {
            times.retain(|time| time.unlisted_ns < at_ns);
            times.iter_mut().for_each(|time| time.until_ns = time.until_ns.min(at_ns));
            let open = times.iter_mut().filter(|time| time.relisted_ns >= at_ns);
            open.for_each(|time| time.relisted_ns = u64::MAX);
        }
    }

    /// When the member that a node belongs to was there, from and to, ns; `None`: it never was.
    pub fn presence(&self, tables: &ChangeTables, node: NodeId) -> Option<(u64, u64)> {
        let Some(member) = tables.member_of(node) else { return Some((0, u64::MAX)) };
        let span = self.span(tables, member);
        (span.joined_ns < span.until_ns).then_some((span.joined_ns, span.until_ns))
    }

    /// How long the member that a node belongs to was there between two instants, ns.
    pub fn within(&self, tables: &ChangeTables, node: NodeId, from_ns: u64, to_ns: u64) -> u64 {
        let Some(member) = tables.member_of(node) else { return to_ns.saturating_sub(from_ns) };
        let span = self.span(tables, member);
        let (from_ns, to_ns) = (span.joined_ns.max(from_ns), span.until_ns.min(to_ns));
        let overlap = |time: &Absence| time.relisted_ns.min(to_ns).saturating_sub(time.until_ns.max(from_ns));
        let absent_ns: u64 = self.absent.get(&member).map_or(0, |times| times.iter().map(overlap).sum());
        to_ns.saturating_sub(from_ns).saturating_sub(absent_ns)
    }

    /// Whether it was listed all the time between them.
    pub fn is_listed(&self, tables: &ChangeTables, node: NodeId, from_ns: u64, to_ns: u64) -> bool {
        let Some(member) = tables.member_of(node) else { return true };
        let span = self.span(tables, member);
        let misses = |time: &Absence| time.unlisted_ns <= to_ns && time.relisted_ns > from_ns;
        let is_missed = self.absent.get(&member).is_some_and(|times| times.iter().any(misses));
        span.joined_ns <= from_ns && span.left_ns > to_ns && !is_missed
    }
}

/// The targets of a balancer that sees changes: an index of a target is never used twice.
#[derive(Clone, Debug)]
pub(crate) struct SeenTargets {
    /// The place of each target in the list of all that ever are.
    places: Vec<u32>,
    /// The present target of each place.
    now: Vec<u32>,
}

impl SeenTargets {
    /// Those of the start.
    pub fn new(view: &ViewSite, all: usize) -> SeenTargets {
        let places: Vec<u32> = (0..view.first).collect();
        let mut now = vec![NOT; all];
        now.iter_mut().zip(&places).for_each(|(now, place)| *now = *place);
        SeenTargets { places, now }
    }

    /// The place of a target in the list.
    #[inline]
    pub fn place(&self, target: u32) -> u32 {
        self.places.get(target as usize).copied().unwrap_or(target)
    }

    /// The present target of a place.
    pub fn target(&self, place: u32) -> Option<u32> {
        self.now.get(place as usize).copied().filter(|target| *target != NOT)
    }

    /// Adds a target for a place; returns its index.
    pub fn add(&mut self, place: u32) -> u32 {
        self.places.push(place);
        let target = self.places.len() as u32 - 1;
        self.now[place as usize] = target;
        target
    }

    /// Removes the target of a place.
    pub fn remove(&mut self, place: u32) -> Option<u32> {
        let target = self.target(place);
        self.now[place as usize] = NOT;
        target
    }
}
