//! The members of fleets during a run: which are up and listed, and what each balancer has seen of it. Both engines keep this
//! state; what a list of a source means to a balancer is decided in [`Lists`], what a change does to it by
//! [`weir_policy::Upstream`].

use crate::code::changes::{Absence, Attendance, Birth, ChangeTables, Span};
use crate::code::{Code, MemberId, StageId};
use crate::state::acts::{Act, Acts, Subject, What};
use crate::state::lists::Lists;
use crate::state::seer::Move;
use crate::state::sights::Sight;
use crate::state::watch::Watch;
use std::collections::{BTreeMap, BTreeSet};
use weir_model::draws::purpose;
use weir_plan::fleets::{Departure, Member, StepKind};
use weir_plan::{First, Leavers};
use weir_policy::fleet::draw;
use weir_stats::Key;

/// The state of all fleets.
pub(crate) struct Changes {
    /// The key of the draws of changes, and of the nodes' own.
    key: Key,
    pub(super) node: Key,
    pub(super) fleets: Vec<Registry>,
    /// When each balancer saw a change last, ns.
    pub(super) seen_ns: Vec<u64>,
    /// What balancers will see.
    pub sights: Vec<Sight>,
    /// What each balancer knows by lists; nothing where every list is believed.
    pub(super) lists: Vec<Lists>,
    /// For each balancer the places of members that have left, or were not listed at some time.
    missed: Vec<Vec<bool>>,
    /// Events that are scheduled and will happen.
    pub to_come: u32,
    /// When members were there.
    pub attendance: Attendance,
    /// Members that have left, and what balancers have seen since connections were last updated. Kept only where connections are simulated.
    pub left: Vec<Member>,
    pub seen: Vec<(u32, Move)>,
    /// What happens, and the requests at members, where the run is told over time.
    pub acts: Option<Box<Acts>>,
    pub watch: Option<Box<Watch>>,
}

/// The members of a fleet.
#[derive(Default)]
pub(super) struct Registry {
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

impl Registry {
    /// The members that are listed, by number.
    pub fn listed(&self) -> impl Iterator<Item = u32> + '_ {
        self.up.difference(&self.unlisted).copied()
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
            lists: tables.map_or_else(Vec::new, Lists::new_by_view),
            missed: tables.map_or_else(Vec::new, |tables| vec![Vec::new(); tables.views.len()]),
            to_come: 0,
            attendance: Attendance::default(),
            left: Vec::new(),
            seen: Vec::new(),
            acts: code.watch.is_some().then(Box::default),
            watch: code.watch.as_deref().map(|tables| Box::new(Watch::new(tables))),
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
        let key = self.key.with(tables.draws).with(u64::from(of.change)).with(u64::from(of.part));
        let (fleet, moves) = match of.what {
            StepKind::Unlist { fleet, share } => (fleet, self.unlist(fleet, of.change, share, key, now_ns)),
            StepKind::Relist { fleet } => (fleet, self.relist(fleet, of.change, now_ns)),
            StepKind::Scale { fleet, to, .. } => {
                let there = self.fleets[fleet as usize].up.len() as u32;
                let newest =
                    Departure { fleet, k: there.saturating_sub(to), which: Leavers::Newest, replaces: false };
                let mut moves = self.leave(newest, of.change, key, now_ns);
                moves.append(&mut self.join(tables, fleet, to.saturating_sub(there), now_ns, &mut begin));
                (fleet, moves)
            }
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
        self.report_moves(of.change, &moves, now_ns);
        self.note_missed(tables, &moves);
        if code.connections.is_some() {
            let left = |of: &Move| match *of {
                Move::Remove(member) => {
                    (self.attendance.spans.get(&member)?.left_ns <= now_ns).then_some(member)
                }
                Move::Add(_) => None,
            };
            self.left.extend(moves.iter().filter_map(left));
        }
        self.show(code, tables, fleet, step, &moves, now_ns);
        known..self.sights.len()
    }

    /// Notes members that have left, or are not listed.
    fn note_missed(&mut self, tables: &ChangeTables, moves: &[Move]) {
        for of in moves.iter().filter(|of| matches!(of, Move::Remove(_))) {
            for (view, missed) in tables.views.iter().zip(&mut self.missed) {
                let Some(&place) = view.places.get(&of.member()) else { continue };
                missed.resize(view.members.len(), false);
                missed[place as usize] = true;
            }
        }
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
        let listed: Vec<u32> = registry.listed().collect();
        // Rounded half up, and one at least.
        let k = ((share * listed.len() as f64 + 0.5) as usize).max(1).min(listed.len());
        let mut hidden = draw(listed, k, key);
        hidden.sort_unstable();
        registry.unlisted.extend(&hidden);
        for &number in &hidden {
            self.attendance.absent.entry(Member { fleet, number }).or_default().push(Absence::new(now_ns));
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
            times.and_then(|times| times.last_mut()).into_iter().for_each(|time| time.relisted_ns = now_ns);
        }
        back.into_iter().map(Move::Add).collect()
    }

    /// Reports the members that a step moves.
    fn report_moves(&mut self, change: u32, moves: &[Move], now_ns: u64) {
        let Some(acts) = &mut self.acts else { return };
        for of in moves {
            let span = self.attendance.spans.get(&of.member());
            let (began, left) =
                span.map_or((false, false), |span| (span.joined_ns == now_ns, span.left_ns <= now_ns));
            let whats: &[What] = match of {
                Move::Add(_) if began => &[What::Runs, What::Listed],
                Move::Add(_) => &[What::Listed],
                Move::Remove(_) if left => &[What::Unlisted, What::Stops],
                Move::Remove(_) => &[What::Unlisted],
            };
            for what in whats {
                let (subject, change) = (Subject::Member(of.member()), Some(change));
                acts.report(Act { at_ns: now_ns, change, subject, what: *what, by: None, value: None });
            }
        }
    }

    /// A request is sent to a target of a balancer over fleets.
    pub fn sends_to(&mut self, code: &Code, instance: u32, place: u32, now_ns: u64) {
        self.count_at(code, instance, place, 1, now_ns);
    }

    /// Counts a request that a balancer sends to a place of its list (1), or gets back from there (-1).
    fn count_at(&mut self, code: &Code, instance: u32, place: u32, by: i64, now_ns: u64) {
        let (Some(watch), Some(tables)) = (&mut self.watch, code.watch.as_deref()) else { return };
        let view = code.changes.as_deref().and_then(|changes| changes.view_of(instance));
        view.into_iter().for_each(|view| watch.count(tables, (view, place), by, now_ns));
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
            let sent = |number: u32| registry.sent.get(number as usize).copied().unwrap_or(0);
            let by_number = registry.listed().map(|number| (number, sent(number))).collect();
            (registry.up.len() as u32, registry.unlisted.len() as u32, by_number)
        })
    }

    /// A request has left a target of a balancer over fleets.
    pub fn left_target(&mut self, code: &Code, instance: u32, place: u32, now_ns: u64) {
        self.count_at(code, instance, place, -1, now_ns);
        let Some(tables) = code.changes.as_deref() else { return };
        let Some(view) = tables.view_of(instance) else { return };
        if self.missed[view].get(place as usize) != Some(&true) {
            return;
        }
        let Some(member) = tables.views[view].members[place as usize] else { return };
        self.extend_time(member, now_ns);
    }

    /// Something has left a queue or server: what goes on of a request that was cancelled, or a check. No balancer counts
    /// these, and until now the member had them inside.
    pub fn left_node(&mut self, code: &Code, stage: StageId, member: MemberId, now_ns: u64) {
        let Some(tables) = code.changes.as_deref() else { return };
        let member = code.node(stage, member).and_then(|node| tables.member_of(node));
        member.into_iter().for_each(|member| self.extend_time(member, now_ns));
    }

    /// Whether a step lists members again: those with something inside were there until then.
    pub fn is_relisting(&self, code: &Code, step: u32) -> bool {
        let of = code.changes.as_deref().and_then(|tables| tables.steps.get(step as usize));
        of.is_some_and(|of| matches!(of.what, StepKind::Relist { .. }))
    }

    /// Something was inside of a member until now: its time lasts until then.
    fn extend_time(&mut self, member: Member, now_ns: u64) {
        let Attendance { spans, absent } = &mut self.attendance;
        if let Some(span) = spans.get_mut(&member).filter(|span| span.left_ns < now_ns) {
            span.until_ns = now_ns;
        }
        // It is there while something is inside.
        if let Some(time) = absent
            .get_mut(&member)
            .and_then(|times| times.last_mut())
            .filter(|time| time.relisted_ns == u64::MAX)
        {
            time.until_ns = now_ns;
        }
    }
}
