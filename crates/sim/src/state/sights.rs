//! What balancers see of fleets, and when: changes that are believed, and lists of sources, which may be doubted.

use crate::code::Code;
use crate::code::changes::{ChangeTables, SeenTargets};
use crate::code::watch::Role;
use crate::state::acts::{Act, ActKind, Subject};
use crate::state::changes::Changes;
use crate::state::lists::listing;
use crate::state::processes::Effect;
use crate::state::seer::{GuardedSeer, Move, Seer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_model::draws::purpose;
use weir_policy::TargetId;
use weir_policy::eligibility::Transition;
use weir_policy::fleet::Entry;

/// What a balancer sees at some instant.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    /// The balancer, as an index of [`ChangeTables::views`].
    pub view: u32,
    /// When.
    pub at_ns: u64,
    /// Its place among all that happens at one instant.
    pub order: u64,
    news: Vec<News>,
}

/// What lets members come or go.
#[derive(Clone, Copy)]
pub(crate) struct Occasion {
    /// The fleet whose lag it has.
    pub fleet: u32,
    /// The number of the change.
    pub change: u32,
    /// What tells it from others of the change: draws depend on it.
    pub part: u64,
    /// Its place among all that happens at one instant.
    pub order: u64,
}

/// What a balancer sees of a fleet.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A change, which is believed.
    Move(Move),
    /// The whole list of a source, which may be doubted.
    List { fleet: u32, entries: Arc<[Entry<u32>]> },
    /// The operator says something of the target at a place of its list.
    Set(u32),
}

/// What a balancer sees at some instant, for a run that is not simulated.
pub(crate) struct SeenNews {
    /// The balancer, as an index of [`ChangeTables::views`].
    pub view: u32,
    /// When.
    pub at_ns: u64,
    /// What it sees, in this order.
    pub news: Vec<News>,
}

impl News {
    /// The place of a target on which the operator has a word.
    fn set_place(&self) -> Option<u32> {
        if let News::Set(place) = self { Some(*place) } else { None }
    }
}

impl Changes {
    /// Notes what each balancer over the members will see, and when.
    pub(super) fn show(
        &mut self,
        code: &Code,
        tables: &ChangeTables,
        moves: &[Move],
        of: Occasion,
        now_ns: u64,
    ) {
        let news = self.news(tables, moves);
        for (view, site) in tables.views.iter().enumerate() {
            let concerns = |news: &&News| match news {
                News::Move(of) => site.places.contains_key(&of.member()),
                News::List { fleet, .. } => site.has_fleet(*fleet),
                News::Set(_) => false,
            };
            let own: Vec<News> = news.iter().filter(concerns).cloned().collect();
            if own.is_empty() {
                continue;
            }
            let balancer = &code.instances[site.instance as usize];
            let key =
                self.node.with(code.place_keys[balancer.place as usize]).with(u64::from(balancer.number));
            let key = key.with(purpose::LAG).with(u64::from(of.change)).with(of.part);
            let lag_ns = tables.fleets[of.fleet as usize].lag.draw(key);
            // Changes are seen in the order in which they were made.
            let at_ns = now_ns.saturating_add(lag_ns).max(self.seen_ns[view]);
            self.seen_ns[view] = at_ns;
            let order = of.order + 1 + view as u64;
            self.sights.push(Sight { view: view as u32, at_ns, order, news: own });
        }
    }

    /// What a balancer over all members would see: the whole list of a source that may be doubted, once, and each change
    /// of other fleets.
    fn news(&self, tables: &ChangeTables, moves: &[Move]) -> Vec<News> {
        let mut listed = BTreeSet::new();
        let news = |of: &Move| {
            let fleet = of.member().fleet;
            if tables.fleets[fleet as usize].doubt.is_none() {
                return Some(News::Move(*of));
            }
            let entries = || self.fleets[fleet as usize].listed().map(listing).collect();
            listed.insert(fleet).then(|| News::List { fleet, entries: entries() })
        };
        moves.iter().filter_map(news).collect()
    }

    /// A balancer sees what has changed. Returns whether its targets change.
    pub fn see(&mut self, code: &Code, sight: u32, now_ns: u64, mut to: Seer<'_>) -> bool {
        let Sight { view, news, .. } = &self.sights[sight as usize];
        let Some(tables) = code.changes.as_deref() else { return false };
        if let Seer::Guarded(to) = &mut to
            && news.iter().any(|of| matches!(of, News::List { .. }))
        {
            // An ejection from before a list says nothing of members that this list withdraws.
            to.upstream.take_transitions().for_each(drop);
        }
        let view = *view;
        let places: Vec<u32> = news.iter().filter_map(News::set_place).collect();
        let moves = self.take_news(sight, now_ns);
        match places.is_empty() {
            true => self.apply_moves(code, tables, view, moves, now_ns, to),
            false => self.apply_settings(code, tables, view, &places, now_ns, to),
        }
    }

    /// Balancers with these targets see at once what the operator says of them.
    pub(super) fn show_settings(&mut self, places: &BTreeMap<u32, Vec<u32>>, order: u64, at_ns: u64) {
        for (&view, own) in places {
            let news = own.iter().map(|place| News::Set(*place)).collect();
            self.sights.push(Sight { view, at_ns, order: order + 1 + u64::from(view), news });
            self.effects.push(Effect::Sight(self.sights.len() as u32 - 1));
        }
    }

    /// A balancer may have begun to pick moved members, or stopped: reports it for a result over time.
    pub fn note_transitions(&mut self, code: &Code, view: u32, now_ns: u64, to: Seer<'_>) {
        let Seer::Guarded(to) = to else { return };
        if code.watch.is_some() {
            let transitions: Vec<Transition> = to.upstream.take_transitions().collect();
            self.report_transitions(code, view, to.targets, &transitions, now_ns);
        }
    }

    fn report_transitions(
        &mut self,
        code: &Code,
        view: u32,
        targets: &SeenTargets,
        transitions: &[Transition],
        now_ns: u64,
    ) {
        for of in transitions.iter().filter(|of| of.was_eligible != of.is_eligible) {
            let place = targets.place(of.target.0);
            // One that was removed meanwhile is not the member that has come back.
            if targets.target(place) == Some(of.target.0) {
                self.report_eligible(code, view, place, of.is_eligible, now_ns);
            }
        }
    }

    /// Reports that a balancer may pick the member at a place of its list, or no more, if a change moves that.
    pub(super) fn report_eligible(
        &mut self,
        code: &Code,
        view: u32,
        place: u32,
        is_eligible: bool,
        now_ns: u64,
    ) {
        let (Some(acts), Some(watch)) = (&mut self.acts, code.watch.as_deref()) else { return };
        if let Role::Watched(site) = watch.role(view as usize, place) {
            let (subject, what) = (Subject::Member(watch.sites[site as usize].member), ActKind::Eligible);
            let value = Some(f64::from(u8::from(is_eligible)));
            acts.report(Act { at_ns: now_ns, change: None, subject, what, by: Some(view), value });
        }
    }

    /// Notes what a balancer has seen, where it has connections, and where the run has results over time.
    pub(super) fn note_seen(&mut self, code: &Code, view: u32, moves: &[Move], now_ns: u64) {
        if let Some(acts) = &mut self.acts {
            for of in moves {
                let (subject, what) = (Subject::Member(of.member()), ActKind::Seen);
                let value = Some(if matches!(of, Move::Add(_)) { 1.0 } else { 0.0 });
                acts.report(Act { at_ns: now_ns, change: None, subject, what, by: Some(view), value });
            }
        }
        if code.connections.is_some() {
            self.seen.extend(moves.iter().map(|of| (view, *of)));
        }
    }

    /// What a sight changes of a balancer's targets.
    fn take_news(&mut self, sight: u32, now_ns: u64) -> Vec<Move> {
        let Sight { view, news, .. } = &mut self.sights[sight as usize];
        let (view, news) = (*view as usize, std::mem::take(news));
        let mut moves = Vec::with_capacity(news.len());
        for of in news {
            match of {
                News::Move(of) => moves.push(of),
                News::List { fleet, entries } => {
                    self.lists[view].take(fleet, sight, now_ns, &entries, &mut moves);
                }
                News::Set(_) => {}
            }
        }
        moves
    }

    /// All that balancers see, in its order, without lists that are older than one that is seen before them: those say nothing.
    /// What a list means to a balancer depends on targets that fail meanwhile, and is decided as it is seen.
    pub fn news_in_order(&self) -> Vec<SeenNews> {
        let mut order: Vec<u32> = (0..self.sights.len() as u32).collect();
        order.sort_by_key(|sight| {
            let Sight { at_ns, order, .. } = self.sights[*sight as usize];
            (at_ns, order)
        });
        // By view and fleet: the newest list that is seen so far.
        let mut newest: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut seen = Vec::with_capacity(order.len());
        for sight in order {
            let Sight { view, at_ns, ref news, .. } = self.sights[sight as usize];
            let counts = |of: &&News| {
                let News::List { fleet, .. } = of else { return true };
                let newest = newest.entry((view, *fleet)).or_insert(sight);
                *newest = sight.max(*newest);
                *newest == sight
            };
            let news: Vec<News> = news.iter().filter(counts).cloned().collect();
            if !news.is_empty() {
                seen.push(SeenNews { view, at_ns, news });
            }
        }
        seen
    }

    /// The view of a balancer that has targets which the last list lacks.
    #[inline]
    pub fn view_with_withdrawn(&self, code: &Code, instance: u32) -> Option<u32> {
        let tables = code.changes.as_deref().filter(|tables| tables.has_doubts)?;
        let view = tables.view_of(instance)?;
        self.lists.get(view)?.has_withdrawn().then_some(view as u32)
    }

    /// A balancer has news of its targets: a connection to `failed` failed, or a check of it did, and others may have been
    /// ejected. Those of them that the last list lacks are no targets any more. Returns whether targets change.
    pub fn fail(
        &mut self,
        code: &Code,
        view: u32,
        failed: Option<TargetId>,
        now_ns: u64,
        to: GuardedSeer<'_>,
    ) -> bool {
        let Some(tables) = code.changes.as_deref() else { return false };
        let site = &tables.views[view as usize];
        let transitions: Vec<Transition> = to.upstream.take_transitions().collect();
        self.report_transitions(code, view, to.targets, &transitions, now_ns);
        let ejected = transitions.into_iter().filter(|of| of.reason.is_ejection());
        let mut moves = Vec::new();
        for target in failed.into_iter().chain(ejected.map(|of| of.target)) {
            let place = to.targets.place(target.0);
            // One that was removed meanwhile is not the member that has come back.
            let is_present = to.targets.target(place) == Some(target.0);
            if let Some(&Some(member)) = site.members.get(place as usize).filter(|_| is_present) {
                self.lists[view as usize].fail(member, now_ns, &mut moves);
            }
        }
        self.apply_moves(code, tables, view, moves, now_ns, Seer::Guarded(to))
    }

    /// The grace of members that a balancer's last list lacks is over. Returns whether its targets change.
    pub fn end_grace(&mut self, code: &Code, view: u32, now_ns: u64, to: Seer<'_>) -> bool {
        let Some(tables) = code.changes.as_deref() else { return false };
        let mut moves = Vec::new();
        self.lists[view as usize].end_grace(now_ns, &mut moves);
        self.apply_moves(code, tables, view, moves, now_ns, to)
    }

    /// When the next grace of a balancer ends, if no event is scheduled for then: the caller schedules one.
    pub fn next_grace(&mut self, view: u32) -> Option<u64> {
        self.lists.get_mut(view as usize)?.next_grace()
    }
}
