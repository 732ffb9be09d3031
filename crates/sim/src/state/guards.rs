//! The state of guarded balancers.

use crate::code::bounds::{HORIZON_NS, MOST_IN_VAIN};
use crate::code::changes::{SeenTargets, at_start};
use crate::code::{Code, Target, Targets};
use weir_model::queue::Line;
use weir_policy::least_work::LeastWork;
use weir_policy::prequal::Busy;
use weir_policy::sticky::Simulated;
use weir_policy::{Outcome, TargetId, Ticket, Upstream};
use weir_stats::Key;

/// A guarded balancer in virtual time, for all loops that use it: only the policy's state and the targets that it
/// passes over exist per loop.
pub(crate) struct Guard {
    pub upstream: Upstream,
    /// The key of its picks.
    pub picks: Key,
    /// All that ever are.
    pub targets: Targets,
    /// The place of each target among them, where they change.
    pub seen: Option<SeenTargets>,
    pub lb: u32,
    pub site: u32,
    /// Requests that wait until a target is not full any more.
    pub line: Line,
    /// The cookies that it issues and recognises on all loops: clients do not depend on the loop.
    pub sticky: Option<Simulated>,
    /// When its health is to be examined next; an event at another time is stale.
    pub watched: u64,
    /// When its next checks begin; an event at another time is stale.
    pub check_due: u64,
    /// How often its health was examined since a request last joined or left its line.
    pub vain: u32,
    /// Whether anything behind it could be picked at the last examination.
    pub alive: bool,
}

impl Guard {
    /// Where a target is.
    #[inline]
    pub fn target(&self, code: &Code, target: TargetId) -> Target {
        self.targets.get(code, self.place(target))
    }

    /// The place of a target in the list of all that ever are.
    #[inline]
    pub fn place(&self, target: TargetId) -> u32 {
        self.seen.as_ref().map_or(target.0, |seen| seen.place(target.0))
    }

    /// The present target of a place in the list of all that ever are.
    pub fn at_place(&self, place: TargetId) -> Option<TargetId> {
        match &self.seen {
            None => Some(place),
            Some(seen) => seen.target(place.0).map(TargetId),
        }
    }
}

/// Where a target of a balancer is.
#[inline]
pub(crate) fn seen_target(code: &Code, all: Targets, seen: Option<&SeenTargets>, target: TargetId) -> Target {
    all.get(code, seen.map_or(target.0, |seen| seen.place(target.0)))
}

/// The most cookies that clients keep.
pub(crate) const COOKIES: usize = 1 << 20;

/// The target index in the frame of a request that went to the spare node.
pub(crate) const SPARE: TargetId = TargetId(u32::MAX);

/// All guarded balancers of a scenario, by their number among all balancers of the first loop.
#[derive(Default)]
pub(crate) struct Guards {
    pub of: Vec<Option<Box<Guard>>>,
    /// How busy each probed member is.
    pub busy: Vec<Busy>,
    /// Health checks begun so far.
    pub checks_begun: u64,
}

impl Guards {
    /// `own` is the key of each balancer's state, `picks` that of its choices.
    pub fn new(code: &Code, keys: impl Fn(u32, &crate::code::Instance) -> (Key, Key)) -> Guards {
        if code.guards.sites.is_empty() {
            return Guards::default();
        }
        let guard = |(i, at): (&crate::code::Instance, u32)| {
            let lb = &code.lbs[i.lb as usize];
            let site = lb.guard?;
            let guard = &code.guards.sites[site as usize];
            let (weights, balance) = (&code.weights[i.list as usize], &lb.balance);
            let (own, picks) = keys(0, i);
            let names = code.guards.names.get(&at).map_or(&[][..], |names| names);
            let view = code.changes.as_deref().and_then(|changes| changes.of_instance(at));
            let seen = view.map(|view| SeenTargets::new(view, weights.len()));
            let first = at_start(code.changes.as_deref(), at, weights.len());
            let (weights, names) = (&weights[..first], &names[..first.min(names.len())]);
            let mut upstream = Upstream::new(balance, guard.around.clone(), weights, names, 0, own);
            let others = if lb.shared { 1..1 } else { 1..code.loops };
            others.for_each(|meets| upstream.add_loop(balance, weights, names, 0, keys(meets, i).0));
            guard.counts_every_ns.into_iter().for_each(|every_ns| upstream.keep_counts(every_ns));
            if let Some(subset) = code.guards.subsets.get(&at) {
                subset.divide(&mut upstream, names, own);
            }
            Some(Box::new(Guard {
                upstream,
                picks,
                targets: code.lists[i.list as usize],
                seen,
                lb: i.lb,
                site,
                line: Line::default(),
                sticky: guard
                    .sticky
                    .as_ref()
                    .map(|(name, file)| Simulated::new(name, file.as_deref(), names)),
                watched: u64::MAX,
                check_due: u64::MAX,
                vain: 0,
                alive: true,
            }))
        };
        let of = code.instances.iter().zip(0..).map(guard).collect();
        let probed = if code.guards.probes { code.members as usize } else { 0 };
        Guards { of, busy: vec![Busy::default(); probed], checks_begun: 0 }
    }

    /// The guarded balancer of that number, on any loop.
    #[inline]
    pub fn get(&mut self, index: u32) -> Option<&mut Guard> {
        Some(self.on_loop(index)?.0)
    }

    /// The guarded balancer of that number, and its loop.
    #[inline]
    pub fn on_loop(&mut self, index: u32) -> Option<(&mut Guard, u32)> {
        let (first, on) = self.place(index);
        Some((self.of.get_mut(first)?.as_deref_mut()?, on))
    }

    /// The number of the first loop's balancer at the same site, and the loop.
    #[inline]
    pub fn place(&self, index: u32) -> (usize, u32) {
        let (index, each) = (index as usize, self.of.len());
        if index < each || each == 0 { (index, 0) } else { (index % each, (index / each) as u32) }
    }

    /// The targets, and the state of a balancer that uses the work left at them.
    pub fn least_work(&mut self, index: u32) -> Option<(Targets, Option<&SeenTargets>, &mut LeastWork)> {
        let (guard, on) = self.on_loop(index)?;
        let Guard { targets, seen, upstream, .. } = guard;
        Some((*targets, seen.as_ref(), upstream.on(on).balancer().least_work()?))
    }

    /// Ends a count that was held at a target; false: the balancer is not guarded.
    pub fn release(&mut self, index: u32, target: TargetId, now_ns: u64) -> bool {
        let found = self.on_loop(index);
        found.map(|(guard, on)| guard.upstream.on(on).release(now_ns, target)).is_some()
    }

    /// Whether a request waits for a target that may recover by itself or by a check, or for one of the changes of fleets
    /// that are to come.
    pub fn anyone_waits_for_health(&self, code: &Code, changes_to_come: u32) -> bool {
        self.of.iter().flatten().any(|guard| {
            let is_checked = code.guards.sites[guard.site as usize].check_timeout_ns > 0;
            let is_changed = guard.seen.is_some() && changes_to_come > 0;
            let changes = is_changed || is_checked || guard.watched <= HORIZON_NS;
            changes && guard.vain < MOST_IN_VAIN && guard.line.peek().is_some()
        })
    }

    /// Requests that they still count.
    pub fn left(&self) -> u64 {
        self.of.iter().flatten().map(|g| g.upstream.total_in_flight()).sum()
    }

    /// How often they have ejected a target.
    pub fn ejections(&self) -> u64 {
        self.of.iter().flatten().map(|g| g.upstream.health().ejections()).sum()
    }

    /// A request leaves a target.
    pub fn left_target(&mut self, code: &Code, to: Target, ticket: &Ticket, now_ns: u64, outcome: Outcome) {
        if !self.busy.is_empty() {
            self.busy[code.ends.server(to.member).index()].left(ticket.met, now_ns - ticket.at_ns, outcome);
        }
    }
}
