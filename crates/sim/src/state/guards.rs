//! The state of balancers with something around them, and of what is around them.

use crate::code::bounds::{HORIZON_NS, MOST_IN_VAIN};
use crate::code::{Code, Targets};
use weir_model::queue::Line;
use weir_policy::least_work::LeastWork;
use weir_policy::prequal::Busy;
use weir_policy::sticky::Simulated;
use weir_policy::{Ticket, Upstream};
use weir_stats::Key;

/// A balancer in virtual time, and what stands around it, for all loops that meet it: only the policy's state and whom it
/// passes over are each loop's own.
pub(crate) struct Guard {
    pub upstream: Upstream,
    /// What its choices are drawn by.
    pub picks: Key,
    pub targets: Targets,
    pub lb: u32,
    pub site: u32,
    /// Requests that wait until a target is not full any more.
    pub line: Line,
    /// The cookies that it gives and knows, on whichever loop: clients do not know of them.
    pub sticky: Option<Simulated>,
    /// When it is looked at next; an event at another time is stale.
    pub watched: u64,
    /// When its next checks begin; likewise.
    pub check_due: u64,
    /// How often its health was looked at since somebody came to its line or was let in.
    pub vain: u32,
    /// Whether anything behind it could be picked when that was looked at last.
    pub alive: bool,
}

/// Cookies that clients keep, at most.
pub(crate) const COOKIES: usize = 1 << 20;

/// The frame of a request that went to the spare node rather than to a target.
pub(crate) const SPARE: u32 = u32::MAX;

/// All guarded balancers of a scenario, by the number that they have among all of the first loop.
#[derive(Default)]
pub(crate) struct Guards {
    pub of: Vec<Option<Box<Guard>>>,
    /// How busy each member is that probes ask.
    pub busy: Vec<Busy>,
    /// Health checks begun so far.
    pub checks_begun: u64,
}

impl Guards {
    /// `own` is what each balancer's state is drawn by, `picks` its choices.
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
            let mut upstream = Upstream::new(balance, guard.around.clone(), weights, names, 0, own);
            let others = if lb.shared { 1..1 } else { 1..code.loops };
            others.for_each(|meets| upstream.add_loop(balance, weights, names, 0, keys(meets, i).0));
            Some(Box::new(Guard {
                upstream,
                picks,
                targets: code.lists[i.list as usize],
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

    /// The guarded balancer of that number, whichever loop's it is.
    #[inline]
    pub fn get(&mut self, index: u32) -> Option<&mut Guard> {
        Some(self.on_loop(index)?.0)
    }

    /// The guarded balancer of that number, and the loop whose it is.
    #[inline]
    pub fn on_loop(&mut self, index: u32) -> Option<(&mut Guard, u32)> {
        let (first, on) = self.place(index);
        Some((self.of.get_mut(first)?.as_deref_mut()?, on))
    }

    /// The number of the first loop's balancer at the same place, and the loop.
    #[inline]
    pub fn place(&self, index: u32) -> (usize, u32) {
        let (index, each) = (index as usize, self.of.len());
        if index < each || each == 0 { (index, 0) } else { (index % each, (index / each) as u32) }
    }

    /// The state of a balancer that knows the work left at its targets, and those.
    pub fn least_work(&mut self, index: u32) -> Option<(Targets, &mut LeastWork)> {
        let (guard, on) = self.on_loop(index)?;
        let targets = guard.targets;
        Some((targets, guard.upstream.on(on).balancer().least_work()?))
    }

    /// A count that was held at a target ends; false: it is no guarded balancer's.
    pub fn release(&mut self, index: u32, target: u32) -> bool {
        let found = self.on_loop(index);
        found.map(|(guard, on)| guard.upstream.on(on).release(target)).is_some()
    }

    /// Whether somebody waits for a target that may come back by itself, or by a check.
    pub fn anyone_waits_for_health(&self, code: &Code) -> bool {
        self.of.iter().flatten().any(|guard| {
            let is_checked = code.guards.sites[guard.site as usize].check_timeout_ns > 0;
            let changes = is_checked || guard.watched <= HORIZON_NS;
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

    /// A request leaves a target where it was for so long.
    pub fn left_target(&mut self, code: &Code, targets: Targets, ticket: &Ticket, now: u64) {
        if !self.busy.is_empty() {
            let to = targets.get(code, ticket.target);
            self.busy[code.ends.server(to.member) as usize].left(now - ticket.at_ns);
        }
    }
}
