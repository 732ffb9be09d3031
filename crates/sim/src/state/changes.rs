//! The members of fleets during a run: which are up and listed, and what each balancer has seen of it. Both engines keep this
//! state; what a list of a source means to a balancer is decided in [`Lists`], what a change does to it by
//! [`weir_policy::Upstream`].

use crate::code::changes::{Absence, Attendance, ChangeDelays, ChangeTables, FailingNode, Span};
use crate::code::{Code, MemberId, StageId};
use crate::state::acts::{Act, ActKind, Acts, Subject};
use crate::state::change_events::{ChangeEvent, grace_order, step_order, timer_order};
use crate::state::lists::Lists;
use crate::state::processes::{Effect, Goal, ProcessState};
use crate::state::rollouts::Batch;
use crate::state::seer::Move;
use crate::state::settings::Settings;
use crate::state::sights::{Occasion, Sight};
use crate::state::watch::Watch;
use std::collections::{BTreeMap, BTreeSet};
use weir_model::draws::purpose;
use weir_plan::fleets::{Departure, Member, StepKind};
use weir_plan::{Leavers, NodeId};
use weir_policy::fleet::draw;
use weir_stats::Key;

/// The state of all fleets.
pub(crate) struct Changes {
    /// The key of the draws of changes, and of the nodes' own.
    pub(super) key: Key,
    pub(super) node: Key,
    pub(super) fleets: Vec<Registry>,
    /// When each balancer saw a change last, ns.
    pub(super) seen_ns: Vec<u64>,
    /// What balancers will see.
    pub sights: Vec<Sight>,
    /// What the operator says of targets.
    pub(super) settings: Settings,
    /// What each balancer knows by lists; nothing where every list is believed.
    pub(super) lists: Vec<Lists>,
    /// By balancer the places of members that have left, or were not listed at some time; empty until there is one.
    missed: Vec<Vec<bool>>,
    /// Events that are scheduled and will happen.
    pub to_come: u32,
    /// When members were there.
    pub attendance: Attendance,
    /// The changes that took longer than they say.
    pub delays: ChangeDelays,
    /// Members that are processes, by their number among those.
    pub(super) processes: Vec<ProcessState>,
    /// Those of them that are to end as soon as nothing is inside.
    pub draining: BTreeSet<u32>,
    /// The batches of replacements that something waits for.
    pub(super) batches: BTreeMap<(u32, u32), Batch>,
    /// The timelines that a change holds down, and what a replacement in place has left to do.
    pub(super) down: BTreeMap<u32, Vec<FailingNode>>,
    pub(super) rest: BTreeMap<u32, BTreeSet<u32>>,
    /// The members that a change has let fail, or on which it has the operator's word.
    pub concerned: BTreeSet<Member>,
    /// What follows from a step, in its order: the engine takes it.
    pub effects: Vec<Effect>,
    /// Members that have left, and what balancers have seen since connections were last updated. Kept only where connections are simulated.
    pub left: Vec<Member>,
    pub seen: Vec<(u32, Move)>,
    /// What happens, and the requests at members, where the run has results over time.
    pub acts: Option<Box<Acts>>,
    pub watch: Option<Box<Watch>>,
}

/// The members of a fleet.
#[derive(Default)]
pub(super) struct Registry {
    /// Members that have not left.
    pub up: BTreeSet<u32>,
    /// Those of them that the registry has forgotten.
    pub unlisted: BTreeSet<u32>,
    /// Those of them that are to go, or do not run.
    pub away: BTreeSet<u32>,
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
        self.up.difference(&self.unlisted).copied().filter(|number| !self.away.contains(number))
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
            settings: Settings::default(),
            lists: tables.map_or_else(Vec::new, Lists::new_by_view),
            missed: Vec::new(),
            to_come: 0,
            processes: tables.map_or_else(Vec::new, ProcessState::all),
            draining: BTreeSet::new(),
            batches: BTreeMap::new(),
            down: BTreeMap::new(),
            rest: BTreeMap::new(),
            concerned: BTreeSet::new(),
            effects: Vec::new(),
            attendance: Attendance::default(),
            delays: ChangeDelays::default(),
            left: Vec::new(),
            seen: Vec::new(),
            acts: code.watch.is_some().then(Box::default),
            watch: code.watch.as_deref().map(|tables| Box::new(Watch::new(tables))),
        }
    }

    /// The place of an event among all that happens to fleets at one instant.
    pub fn order_of(&self, code: &Code, event: ChangeEvent) -> u64 {
        match event {
            ChangeEvent::Step(step) => step_order(code, step),
            ChangeEvent::Grace(view) => grace_order(code, view),
            ChangeEvent::Timer(timer) => timer_order(code, timer),
            ChangeEvent::Sight(sight) => self.sights[sight as usize].order,
        }
    }

    /// Takes a step: what follows from it is in [`Changes::effects`].
    pub fn step(&mut self, code: &Code, step: u32, now_ns: u64) {
        let Some(tables) = code.changes.as_deref() else { return };
        let of = tables.steps[step as usize];
        let key = self.key.with(tables.draws).with(u64::from(of.change)).with(u64::from(of.part));
        let moves = match of.what {
            StepKind::Unlist { fleet, share } => self.unlist(fleet, of.change, share, key, now_ns),
            StepKind::Relist { fleet } => self.relist(fleet, of.change, now_ns),
            StepKind::Scale { fleet, to, .. } => {
                let there = self.fleets[fleet as usize].up.len() as u32;
                let newest =
                    Departure { fleet, k: there.saturating_sub(to), which: Leavers::Newest, replaces: false };
                let mut moves = self.leave(tables, newest, of.change, key, now_ns);
                let newcomers = to.saturating_sub(there);
                moves.append(&mut self.join(tables, fleet, newcomers, of.change, now_ns).1);
                moves
            }
            StepKind::Move { leave: Some(_), join: Some(_), .. } => self.replace(tables, step, now_ns),
            StepKind::Move { leave: Some(leave), .. } => self.leave(tables, leave, of.change, key, now_ns),
            StepKind::Move { join: Some((fleet, k)), .. } => self.join(tables, fleet, k, of.change, now_ns).1,
            StepKind::Move { .. } => Vec::new(),
            StepKind::InPlace { of } => self.restart(tables, step, of, now_ns),
            StepKind::Down => {
                self.let_fail(tables, of.change, key, now_ns);
                Vec::new()
            }
            StepKind::Repair => {
                self.repair(of.change, now_ns);
                Vec::new()
            }
            StepKind::Set => {
                self.set(tables, of.change, key, step_order(code, step), now_ns);
                Vec::new()
            }
            StepKind::Reset => {
                self.reset(tables, of.change, step_order(code, step), now_ns);
                Vec::new()
            }
        };
        let (fleet, part) = (fleet_of(of.what), u64::from(of.part));
        let occasion = Occasion { fleet, change: of.change, part, order: step_order(code, step) };
        self.moved(code, tables, &moves, occasion, now_ns);
        self.look_at_batches(tables, now_ns);
    }

    /// Members have come or gone: balancers will see it.
    pub(super) fn moved(
        &mut self,
        code: &Code,
        tables: &ChangeTables,
        moves: &[Move],
        occasion: Occasion,
        now_ns: u64,
    ) {
        self.report_moves(tables, occasion.change, moves, now_ns);
        self.note_missed(tables, moves);
        if code.connections.is_some() {
            let left = |of: &Move| match *of {
                Move::Remove(member) if tables.process_of(member).is_none() => {
                    (self.attendance.spans.get(&member)?.left_ns <= now_ns).then_some(member)
                }
                Move::Remove(_) | Move::Add(_) => None,
            };
            self.left.extend(moves.iter().filter_map(left));
        }
        let known = self.sights.len();
        self.show(code, tables, moves, occasion, now_ns);
        self.effects.extend((known..self.sights.len()).map(|sight| Effect::Sight(sight as u32)));
        self.note_seen_by(tables, moves, known, now_ns);
    }

    /// Notes members that have left, or are not listed.
    fn note_missed(&mut self, tables: &ChangeTables, moves: &[Move]) {
        for of in moves.iter().filter(|of| matches!(of, Move::Remove(_))) {
            for view in &tables.views {
                let Some(&place) = view.places.get(&of.member()) else { continue };
                let balancer = view.instance as usize;
                if self.missed.len() <= balancer {
                    self.missed.resize(balancer + 1, Vec::new());
                }
                let missed = &mut self.missed[balancer];
                missed.resize(view.members.len(), false);
                missed[place as usize] = true;
            }
        }
    }

    pub(super) fn leave(
        &mut self,
        tables: &ChangeTables,
        of: Departure,
        change: u32,
        key: Key,
        now_ns: u64,
    ) -> Vec<Move> {
        let leavers = self.leavers(of, change, key);
        let mut moves = Vec::with_capacity(leavers.len());
        for number in leavers {
            self.fleets[of.fleet as usize].up.remove(&number);
            let member = Member { fleet: of.fleet, number };
            if let Some(process) = tables.process_of(member) {
                moves.extend(self.must_go(tables, process, Goal::Gone, change, now_ns));
                continue;
            }
            self.note_left(member, now_ns);
            // One that is not listed has left unseen.
            if !self.fleets[of.fleet as usize].unlisted.remove(&number) {
                moves.push(Move::Remove(member));
            }
        }
        moves
    }

    /// The members that leave now.
    pub(super) fn leavers(&mut self, of: Departure, change: u32, key: Key) -> Vec<u32> {
        let registry = &mut self.fleets[of.fleet as usize];
        let next = registry.next;
        let below = if of.replaces { *registry.before.entry(change).or_insert(next) } else { u32::MAX };
        let there = registry.up.range(..below).copied();
        let k = of.k as usize;
        match of.which {
            Leavers::Oldest => there.take(k).collect(),
            Leavers::Newest => there.rev().take(k).collect(),
            Leavers::Random => draw(there.collect(), k, key),
        }
    }

    pub(super) fn note_left(&mut self, member: Member, now_ns: u64) {
        let span = self.attendance.spans.entry(member).or_insert(Span::ALWAYS);
        (span.left_ns, span.until_ns) = (now_ns, now_ns);
    }

    /// Newcomers join; returns them, and those that are listed at once.
    pub(super) fn join(
        &mut self,
        tables: &ChangeTables,
        fleet: u32,
        k: u32,
        change: u32,
        now_ns: u64,
    ) -> (Vec<Member>, Vec<Move>) {
        let registry = &mut self.fleets[fleet as usize];
        let site = &tables.fleets[fleet as usize];
        let numbers = registry.next..registry.next.saturating_add(k).min(site.members);
        registry.next = numbers.end;
        registry.up.extend(numbers.clone());
        let newcomers: Vec<Member> = numbers.map(|number| Member { fleet, number }).collect();
        let mut moves = Vec::with_capacity(k as usize);
        for &member in &newcomers {
            match tables.process_of(member) {
                Some(process) => moves.extend(self.begin_boot(tables, process, change, now_ns)),
                None => moves.push(self.begin(tables, member, now_ns)),
            }
        }
        (newcomers, moves)
    }

    /// A newcomer begins.
    pub(super) fn begin(&mut self, tables: &ChangeTables, member: Member, now_ns: u64) -> Move {
        let site = &tables.fleets[member.fleet as usize];
        let births = site.births.get(member.number.saturating_sub(site.size) as usize);
        self.effects.extend(births.into_iter().flatten().map(|birth| Effect::Birth(*birth)));
        self.attendance.spans.insert(member, Span { joined_ns: now_ns, ..Span::ALWAYS });
        Move::Add(member)
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
        let is_away = |number: &u32| registry.away.contains(number);
        let back = hidden.into_iter().filter(|n| registry.unlisted.remove(n)).filter(|n| !is_away(n));
        let back: Vec<Member> = back.map(|number| Member { fleet, number }).collect();
        for member in &back {
            let times = self.attendance.absent.get_mut(member);
            times.and_then(|times| times.last_mut()).into_iter().for_each(|time| time.relisted_ns = now_ns);
        }
        back.into_iter().map(Move::Add).collect()
    }

    /// Whether a node is there: that of a member has joined and not left.
    pub fn is_there(&self, tables: &ChangeTables, node: NodeId) -> bool {
        let is_up = |member: Member| self.fleets[member.fleet as usize].up.contains(&member.number);
        tables.member_of(node).is_none_or(is_up)
    }

    /// Reports what happens to a member or node, for a result over time.
    pub(super) fn report(&mut self, subject: Subject, what: ActKind, change: Option<u32>, at_ns: u64) {
        if let Some(acts) = &mut self.acts {
            acts.report(Act { at_ns, change, subject, what, by: None, value: None });
        }
    }

    /// Reports the members that a step moves.
    fn report_moves(&mut self, tables: &ChangeTables, change: u32, moves: &[Move], now_ns: u64) {
        let Some(acts) = &mut self.acts else { return };
        for of in moves {
            // A process reports by itself when it runs and stops.
            let has_process = tables.process_of(of.member()).is_some();
            let span = self.attendance.spans.get(&of.member());
            let (began, left) =
                span.map_or((false, false), |span| (span.joined_ns == now_ns, span.left_ns <= now_ns));
            let whats: &[ActKind] = match of {
                Move::Add(_) if began && !has_process => &[ActKind::Runs, ActKind::Listed],
                Move::Add(_) => &[ActKind::Listed],
                Move::Remove(_) if left && !has_process => &[ActKind::Unlisted, ActKind::Stops],
                Move::Remove(_) => &[ActKind::Unlisted],
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
        view.into_iter().for_each(|view| watch.count(tables, view, place, by, now_ns));
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
            let unlisted = registry.unlisted.union(&registry.away).count() as u32;
            (registry.up.len() as u32, unlisted, by_number)
        })
    }

    /// Whether a request that leaves a target means anything: some member has left or was not listed, or results over time
    /// count it. Read for each request, so that runs pay for this only from then on.
    #[inline]
    pub fn follows_returns(&self) -> bool {
        !self.missed.is_empty() || self.watch.is_some()
    }

    /// Whether a member at this place of a balancer has left or was not listed at some time.
    #[inline]
    pub fn has_missed(&self, instance: u32, place: u32) -> bool {
        let missed = self.missed.get(instance as usize).and_then(|missed| missed.get(place as usize));
        missed == Some(&true)
    }

    /// A request has left a target of a balancer over fleets.
    pub fn left_target(&mut self, code: &Code, instance: u32, place: u32, now_ns: u64) {
        if self.watch.is_some() {
            self.count_at(code, instance, place, -1, now_ns);
        }
        if self.has_missed(instance, place) {
            let view = code.changes.as_deref().and_then(|tables| tables.of_instance(instance));
            let member = view.and_then(|view| view.members.get(place as usize).copied().flatten());
            member.into_iter().for_each(|member| self.extend_time(member, now_ns));
        }
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

/// The fleet that a step is about.
fn fleet_of(what: StepKind) -> u32 {
    match what {
        StepKind::Unlist { fleet, .. } | StepKind::Relist { fleet } | StepKind::Scale { fleet, .. } => fleet,
        StepKind::InPlace { of } => of.fleet,
        StepKind::Move { leave, join, .. } => {
            leave.map_or_else(|| join.map_or(0, |(fleet, _)| fleet), |leave| leave.fleet)
        }
        StepKind::Down | StepKind::Repair | StepKind::Set | StepKind::Reset => 0,
    }
}
