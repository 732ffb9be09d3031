//! The members of fleets during a run: which are up and listed, and what each balancer has seen of it. Both engines keep this
//! state; what a change does to a balancer is decided by [`Upstream`].

use crate::code::Code;
use crate::code::changes::{Attendance, Birth, ChangeTables, SeenTargets, Span, ViewSite};
use std::collections::{BTreeMap, BTreeSet};
use weir_model::draws::purpose;
use weir_plan::fleets::{Departure, Member, StepKind};
use weir_plan::{First, Leavers};
use weir_policy::fleet::draw;
use weir_policy::sticky::Simulated;
use weir_policy::{TargetChange, TargetId, Upstream};
use weir_stats::Key;

/// The state of all fleets.
pub(crate) struct Changes {
    /// The key of the draws of changes, and of the nodes' own.
    key: Key,
    node: Key,
    fleets: Vec<Registry>,
    /// When each balancer saw a change last, ns.
    seen_ns: Vec<u64>,
    /// What balancers will see.
    pub sights: Vec<Sight>,
    /// When members were there.
    pub attendance: Attendance,
}

/// The members of a fleet.
#[derive(Default)]
struct Registry {
    /// Members that have not left.
    up: BTreeSet<u32>,
    /// Those of them that are not listed.
    unlisted: BTreeSet<u32>,
    /// The number of the next newcomer.
    next: u32,
    /// What each change has unlisted.
    hidden: BTreeMap<u32, Vec<u32>>,
    /// Requests that were sent to each member, where they are counted.
    sent: Vec<u64>,
    /// For each rolling change: the number of the first newcomer that it does not replace.
    before: BTreeMap<u32, u32>,
}

/// What a balancer sees at some instant.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    /// The balancer, as an index of [`ChangeTables::views`].
    pub view: u32,
    /// When.
    pub at_ns: u64,
    /// Its place among all that happens at one instant.
    pub order: u64,
    pub moves: Vec<Move>,
}

/// A member that is listed from now on, or no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    Add(Member),
    Remove(Member),
}

impl Move {
    pub fn member(self) -> Member {
        match self {
            Move::Add(member) | Move::Remove(member) => member,
        }
    }
}

impl Changes {
    /// At the start of a replication with that key.
    pub fn new(code: &Code, key: Key) -> Changes {
        let tables = code.changes.as_deref();
        let registry = |fleet: &crate::code::changes::FleetSite| Registry {
            up: (0..fleet.size).collect(),
            next: fleet.size,
            ..Registry::default()
        };
        Changes {
            key: key.with(purpose::CHANGE),
            node: key.with(purpose::NODE),
            fleets: tables.iter().flat_map(|tables| &tables.fleets).map(registry).collect(),
            seen_ns: vec![0; tables.map_or(0, |tables| tables.views.len())],
            sights: Vec::new(),
            attendance: Attendance::default(),
        }
    }

    /// Takes a step. What begins with newcomers is given to `begin`; returns the sights that it brings, as indices.
    pub fn step(
        &mut self,
        code: &Code,
        step: u32,
        now_ns: u64,
        mut begin: impl FnMut(Birth),
    ) -> std::ops::Range<usize> {
        let known = self.sights.len();
        let Some(tables) = code.changes.as_deref() else { return known..known };
        let of = tables.steps[step as usize];
        let key = self.key.with(u64::from(of.change)).with(u64::from(of.part));
        let (fleet, moves) = match of.what {
            StepKind::Unlist { fleet, share } => (fleet, self.unlist(fleet, of.change, share, key, now_ns)),
            StepKind::Relist { fleet } => (fleet, self.relist(fleet, of.change, now_ns)),
            StepKind::Move { leave, join, first } => {
                let fleet = leave.map_or_else(|| join.map_or(0, |(fleet, _)| fleet), |leave| leave.fleet);
                let gone = leave.map_or_else(Vec::new, |leave| self.leave(leave, of.change, key, now_ns));
                // Newcomers that replace others are as many as those.
                let join = join
                    .map(|(fleet, k)| (fleet, if leave.is_some() { k.min(gone.len() as u32) } else { k }));
                let come =
                    join.map_or_else(Vec::new, |(fleet, k)| self.join(tables, fleet, k, now_ns, &mut begin));
                let (mut first, mut then) = if first == First::Join { (come, gone) } else { (gone, come) };
                first.append(&mut then);
                (fleet, first)
            }
        };
        self.show(code, tables, fleet, step, &moves, now_ns);
        known..self.sights.len()
    }

    fn leave(&mut self, of: Departure, change: u32, key: Key, now_ns: u64) -> Vec<Move> {
        let registry = &mut self.fleets[of.fleet as usize];
        let next = registry.next;
        let below = if of.replaces { *registry.before.entry(change).or_insert(next) } else { u32::MAX };
        let there = registry.up.range(..below).copied();
        let k = of.k as usize;
        let leavers: Vec<u32> = match of.which {
            Leavers::Oldest => there.take(k).collect(),
            Leavers::Newest => there.rev().take(k).collect(),
            Leavers::Random => draw(there.collect(), k, key),
        };
        let mut moves = Vec::with_capacity(leavers.len());
        for number in leavers {
            registry.up.remove(&number);
            let member = Member { fleet: of.fleet, number };
            let span = self.attendance.spans.entry(member).or_insert(Span::ALWAYS);
            (span.left_ns, span.until_ns) = (now_ns, now_ns);
            // One that is not listed has left unseen.
            if !registry.unlisted.remove(&number) {
                moves.push(Move::Remove(member));
            }
        }
        moves
    }

    fn join(
        &mut self,
        tables: &ChangeTables,
        fleet: u32,
        k: u32,
        now_ns: u64,
        begin: &mut impl FnMut(Birth),
    ) -> Vec<Move> {
        let registry = &mut self.fleets[fleet as usize];
        let site = &tables.fleets[fleet as usize];
        let numbers = registry.next..registry.next.saturating_add(k).min(site.members);
        registry.next = numbers.end;
        let mut moves = Vec::with_capacity(k as usize);
        for number in numbers {
            registry.up.insert(number);
            site.births[(number - site.size) as usize].iter().for_each(|birth| begin(*birth));
            let member = Member { fleet, number };
            self.attendance.spans.insert(member, Span { joined_ns: now_ns, ..Span::ALWAYS });
            moves.push(Move::Add(member));
        }
        moves
    }

    fn unlist(&mut self, fleet: u32, change: u32, share: f64, key: Key, now_ns: u64) -> Vec<Move> {
        let registry = &mut self.fleets[fleet as usize];
        let listed: Vec<u32> = registry.up.difference(&registry.unlisted).copied().collect();
        // Rounded half up, and one at least.
        let k = ((share * listed.len() as f64 + 0.5) as usize).max(1).min(listed.len());
        let mut hidden = draw(listed, k, key);
        hidden.sort_unstable();
        registry.unlisted.extend(&hidden);
        for &number in &hidden {
            self.attendance.absent.entry(Member { fleet, number }).or_default().push((now_ns, u64::MAX));
        }
        let moves = hidden.iter().map(|&number| Move::Remove(Member { fleet, number })).collect();
        registry.hidden.insert(change, hidden);
        moves
    }

    fn relist(&mut self, fleet: u32, change: u32, now_ns: u64) -> Vec<Move> {
        let registry = &mut self.fleets[fleet as usize];
        let hidden = registry.hidden.remove(&change).unwrap_or_default();
        let back = hidden.into_iter().filter(|number| registry.unlisted.remove(number));
        let back: Vec<Member> = back.map(|number| Member { fleet, number }).collect();
        for member in &back {
            let times = self.attendance.absent.get_mut(member);
            times.and_then(|times| times.last_mut()).into_iter().for_each(|time| time.1 = now_ns);
        }
        back.into_iter().map(Move::Add).collect()
    }

    /// Notes what each balancer over the members will see, and when.
    fn show(
        &mut self,
        code: &Code,
        tables: &ChangeTables,
        fleet: u32,
        step: u32,
        moves: &[Move],
        now_ns: u64,
    ) {
        let of = tables.steps[step as usize];
        let views = tables.views.len() as u64;
        for (view, site) in tables.views.iter().enumerate() {
            let own: Vec<Move> =
                moves.iter().copied().filter(|of| site.places.contains_key(&of.member())).collect();
            if own.is_empty() {
                continue;
            }
            let balancer = &code.instances[site.instance as usize];
            let key =
                self.node.with(code.place_keys[balancer.place as usize]).with(u64::from(balancer.number));
            let key = key.with(purpose::LAG).with(u64::from(of.change)).with(u64::from(of.part));
            let lag_ns = tables.fleets[fleet as usize].lag.draw(key);
            // Changes are seen in the order in which they were made.
            let at_ns = now_ns.saturating_add(lag_ns).max(self.seen_ns[view]);
            self.seen_ns[view] = at_ns;
            let order = u64::from(step) * (views + 1) + 1 + view as u64;
            self.sights.push(Sight { view: view as u32, at_ns, order, moves: own });
        }
    }

    /// A request is sent to a target of a balancer over fleets: counted where a recorder asks.
    pub fn sent_to(&mut self, code: &Code, instance: u32, place: u32) {
        let view = code.changes.as_deref().and_then(|tables| tables.of_instance(instance));
        let Some(member) = view.and_then(|view| view.members.get(place as usize).copied().flatten()) else {
            return;
        };
        let Some(registry) = self.fleets.get_mut(member.fleet as usize) else { return };
        let number = member.number as usize;
        if registry.sent.len() <= number {
            registry.sent.resize(number + 1, 0);
        }
        registry.sent[number] += 1;
    }

    /// Of each fleet: members that have not left, those of them that are not listed, and the requests that were sent to
    /// each of the others so far, by number.
    pub fn each_fleet(&self) -> impl Iterator<Item = (u32, u32, BTreeMap<u32, u64>)> {
        self.fleets.iter().map(|registry| {
            let sent = |number: &u32| registry.sent.get(*number as usize).copied().unwrap_or(0);
            let listed = registry.up.difference(&registry.unlisted);
            let by_number = listed.map(|number| (*number, sent(number))).collect();
            (registry.up.len() as u32, registry.unlisted.len() as u32, by_number)
        })
    }

    /// A request has left a target of a balancer over fleets.
    pub fn left_target(&mut self, code: &Code, instance: u32, place: u32, now_ns: u64) {
        let view = code.changes.as_deref().and_then(|tables| tables.of_instance(instance));
        let member = view.and_then(|view| view.members.get(place as usize).copied().flatten());
        let Some(member) = member else { return };
        let Attendance { spans, absent } = &mut self.attendance;
        if let Some(span) = spans.get_mut(&member).filter(|span| span.left_ns < now_ns) {
            span.until_ns = now_ns;
        }
        // It is there while something is inside.
        if let Some(time) =
            absent.get_mut(&member).and_then(|times| times.last_mut()).filter(|time| time.1 == u64::MAX)
        {
            time.0 = now_ns;
        }
    }

    /// A balancer sees what has changed.
    pub fn apply(&mut self, code: &Code, sight: u32, now_ns: u64, to: Seer<'_>) {
        let moves = std::mem::take(&mut self.sights[sight as usize].moves);
        let Some(tables) = code.changes.as_deref() else { return };
        let site = &tables.views[self.sights[sight as usize].view as usize];
        to.apply(code, site, &moves, now_ns);
    }
}

/// The order of a step among all that happens to fleets at one instant.
pub(crate) fn step_order(code: &Code, step: u32) -> u64 {
    let views = code.changes.as_ref().map_or(0, |tables| tables.views.len() as u64);
    u64::from(step) * (views + 1)
}

/// What of a balancer a change concerns.
pub(crate) struct Seer<'s> {
    pub upstream: &'s mut Upstream,
    pub targets: &'s mut SeenTargets,
    pub sticky: Option<&'s mut Simulated>,
    /// The names of all that are ever in its list; empty where they do not matter.
    pub names: &'s [String],
}

impl Seer<'_> {
    fn apply(self, code: &Code, site: &ViewSite, moves: &[Move], now_ns: u64) {
        let weights = &code.weights[site.list as usize];
        let mut changes: Vec<TargetChange<'_>> = Vec::with_capacity(moves.len());
        for of in moves {
            let place = site.places[&of.member()];
            match of {
                Move::Add(_) => {
                    let target = TargetId(self.targets.add(place));
                    let name = self.names.get(place as usize).map_or("", String::as_str);
                    changes.push(TargetChange::Add { target, weight: weights[place as usize], name });
                }
                Move::Remove(_) => {
                    changes.extend(self.targets.remove(place).map(|t| TargetChange::Remove(TargetId(t))))
                }
            }
        }
        if let Some(sticky) = self.sticky {
            for change in &changes {
                match *change {
                    TargetChange::Add { target, name, .. } => sticky.set(target, Some(name)),
                    TargetChange::Remove(target) => sticky.set(target, None),
                }
            }
        }
        self.upstream.change_targets(now_ns, &changes);
    }
}
