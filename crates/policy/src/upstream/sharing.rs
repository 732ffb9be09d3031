//! Requests in flight that the loops of a process count together: `scope="process"`, where each loop sees all at that
//! instant, and `scope=lagged(every)`, where it sees those of the other loops as they were at the last multiple of
//! `every` since the start. For policies whose state is these counts ([`crate::config::Balance::shares_counts`]).
//!
//! - A loop's policy has a view of the counts. Its own picks and returns change that view at once; at each multiple of
//!   `every`, with `scope="process"` before each pick, the view becomes the counts of all loops.
//! - Where the balancer has all loops ([`Upstream::keep_counts`]) it counts by itself, and a look at the changes since the
//!   last multiple is enough. A loop with a balancer of its own ([`Upstream::share_counts`]) has an atomic count for each
//!   target. With `scope="process"` a policy that compares few targets reads their counts itself, and another follows what was
//!   changed since its last pick; at a multiple, served, a loop looks at all of them at its first pick after it.

use super::Upstream;
use crate::ds::counts::SharedCounts;
use crate::ds::recent_changes::Follower;
use crate::{Operation, TargetId};

/// What loops see of each other.
#[derive(Debug)]
pub(super) struct Sharing {
    /// Between two looks, ns; 0: at once.
    every_ns: u64,
    /// The number of the last multiple at which there was one.
    epoch: u64,
    all: AllLoops,
}

/// The counts of all loops.
#[derive(Debug)]
enum AllLoops {
    /// This balancer has all loops.
    Here {
        counts: Vec<u32>,
        /// Targets whose counts have changed since the last look; some more than once.
        changed: Vec<TargetId>,
    },
    /// Others count as well. `is_compared`: the policy looks at the counts itself; `follower`: it keeps them, and sees at once what
    /// others change.
    Process { counts: SharedCounts, is_compared: bool, follower: Option<Follower> },
}

impl Sharing {
    /// What all loops have in flight at a target.
    pub fn count(&self, target: TargetId) -> u32 {
        match &self.all {
            AllLoops::Here { counts, .. } => counts.get(target.index()).copied().unwrap_or_default(),
            AllLoops::Process { counts, .. } => counts.get(target),
        }
    }

    /// What they have in flight at all targets, where all of them are here.
    pub fn total(&self) -> Option<u64> {
        match &self.all {
            AllLoops::Here { counts, .. } => Some(counts.iter().map(|count| u64::from(*count)).sum()),
            AllLoops::Process { .. } => None,
        }
    }
}

/// Counts of several loops.
impl Upstream {
    /// Lets the loops of this balancer, which has all of them, see each other's counts: at once, or at each multiple of
    /// `every_ns`.
    pub fn keep_counts(&mut self, every_ns: u64) {
        let all = AllLoops::Here { counts: Vec::new(), changed: Vec::new() };
        self.share(Sharing { every_ns, epoch: 0, all });
    }

    /// Counts with other loops of the process, each of which has a balancer of its own. What this loop has in flight is
    /// in `counts` already. `is_recorded`: what is seen of other loops must go through [`Upstream::see_others`].
    pub fn share_counts(&mut self, loop_number: u32, every_ns: u64, counts: SharedCounts, is_recorded: bool) {
        let epoch = self.sharing.as_ref().map_or(u64::MAX, |sharing| sharing.epoch);
        let compared = Some(&counts).filter(|_| every_ns == 0 && !is_recorded);
        let is_compared = self.loops.first.balancer.compare_counts(compared);
        let follows = every_ns == 0 && !is_compared;
        let follower = match self.take_follower() {
            before if follows => counts.follow(loop_number, before),
            before => {
                before.into_iter().for_each(Follower::end);
                None
            }
        };
        let all = AllLoops::Process { counts, is_compared, follower };
        self.share(Sharing { every_ns, epoch, all });
    }

    /// Counts alone from now on; `own`: what this loop has in flight at each target.
    pub fn count_alone(&mut self, own: impl Fn(TargetId) -> u32) {
        self.take_follower().into_iter().for_each(Follower::end);
        if self.sharing.take().is_some() {
            let balancer = &mut self.loops.first.balancer;
            balancer.compare_counts(None);
            TargetId::all(balancer.roster().len()).for_each(|target| balancer.set_count(target, own(target)));
            self.simplify();
        }
    }

    fn take_follower(&mut self) -> Option<Follower> {
        match &mut self.sharing.as_mut()?.all {
            AllLoops::Process { follower, .. } => follower.take(),
            AllLoops::Here { .. } => None,
        }
    }

    /// Whether its loops see each other's counts.
    pub fn shares_counts(&self) -> bool {
        self.sharing.is_some()
    }

    /// Sets what the only loop sees of all loops' requests at a target.
    pub fn see_count(&mut self, target: TargetId, count: u32) {
        self.loops.first.balancer.set_count(target, count);
    }

    fn share(&mut self, sharing: Sharing) {
        self.simple = false;
        self.sharing = Some(Box::new(sharing));
        self.simplify();
    }

    /// Before a pick: brings the views up to date, where they are due. Each change of the first loop's view goes to `note`.
    #[inline]
    pub fn see_others(&mut self, now_ns: u64, note: impl FnMut(Operation)) {
        if self.sharing.is_some() {
            self.see_all(now_ns, note);
        }
    }

    fn see_all(&mut self, now_ns: u64, mut note: impl FnMut(Operation)) {
        let Some(sharing) = &mut self.sharing else { return };
        let epoch = now_ns.checked_div(sharing.every_ns).unwrap_or(u64::MAX);
        let is_due = sharing.every_ns == 0 || sharing.epoch != epoch;
        if !is_due {
            return;
        }
        sharing.epoch = epoch;
        match &mut sharing.all {
            AllLoops::Here { counts, changed } => {
                for target in changed.drain(..) {
                    let count = counts[target.index()];
                    self.loops.all_mut().for_each(|own| own.balancer.set_count(target, count));
                }
            }
            AllLoops::Process { is_compared: true, .. } => {}
            AllLoops::Process { counts, follower, .. } => {
                let balancer = &mut self.loops.first.balancer;
                let targets = balancer.roster().len();
                let mut look = |target: TargetId| {
                    let count = counts.get(target);
                    // Another loop may have more targets by now.
                    if target.0 < targets && balancer.in_flight(target).is_some_and(|seen| seen != count) {
                        balancer.set_count(target, count);
                        note(Operation::Counted { target, count });
                    }
                };
                if follower.as_mut().is_none_or(|follower| !follower.read(targets, &mut look)) {
                    TargetId::all(targets).for_each(look);
                }
            }
        }
    }

    /// Lets `act` change the count of a target on a loop, and passes the change on. Views that are due come first: what
    /// happens at a multiple comes after the look.
    #[inline]
    pub(super) fn counting<T>(
        &mut self,
        on: u32,
        target: TargetId,
        now_ns: u64,
        act: impl FnOnce(&mut Upstream) -> T,
    ) -> T {
        if self.sharing.is_none() {
            return act(self);
        }
        if self.has_all_loops() {
            self.see_all(now_ns, |_| {});
        }
        let before = self.count_on(on, target);
        let result = act(self);
        let change = self.count_on(on, target) as i32 - before as i32;
        self.pass_on(target, change);
        result
    }

    /// A loop's policy has counted a pick.
    #[inline]
    pub(super) fn picked_shared(&mut self, target: TargetId) {
        if self.sharing.is_some() {
            self.pass_on(target, 1);
        }
    }

    #[inline]
    pub(super) fn has_all_loops(&self) -> bool {
        matches!(self.sharing.as_deref(), Some(Sharing { all: AllLoops::Here { .. }, .. }))
    }

    fn count_on(&mut self, on: u32, target: TargetId) -> u32 {
        self.loops.get(on).balancer.in_flight(target).unwrap_or_default()
    }

    fn pass_on(&mut self, target: TargetId, change: i32) {
        let Some(sharing) = self.sharing.as_deref_mut().filter(|_| change != 0) else { return };
        match &mut sharing.all {
            AllLoops::Here { counts, changed } => {
                if counts.len() <= target.index() {
                    counts.resize(target.index() + 1, 0);
                }
                counts[target.index()] = counts[target.index()].saturating_add_signed(change);
                changed.push(target);
            }
            AllLoops::Process { counts, follower, .. } => {
                counts.add(target, change);
                if let Some(follower) = follower {
                    follower.write(target);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Balance, LeastConnArgs, P2cArgs, Ties, ZuulArgs};
    use crate::upstream::UpstreamConfig;
    use crate::{Ask, PickOutcome, Ticket};
    use weir_stats::Key;

    const MS: u64 = 1_000_000;

    fn policies() -> [Balance; 3] {
        let p2c = P2cArgs { choices: 2, replacement: false, ties: Ties::Random, error_hold_ns: 0, bias: 1.0 };
        let zuul = ZuulArgs { load: "x-load".to_owned(), decay_ns: 30_000 * MS, max_load: None };
        let least = LeastConnArgs { ties: Ties::First, error_hold_ns: 0 };
        [Balance::LeastConn(least), Balance::P2c(p2c), Balance::Zuul(zuul)]
    }

    fn upstream(balance: &Balance, targets: usize) -> Upstream {
        Upstream::new(balance, UpstreamConfig::default(), &vec![1.0; targets], Vec::new(), 0, Key::new(1))
    }

    fn pick(of: &mut Upstream, on: u32, now_ns: u64) -> Ticket {
        match of.on(on).pick(&Ask::new(Key::new(now_ns), now_ns)) {
            PickOutcome::Target(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    /// Two targets, so that two choices see both.
    #[test]
    fn loops_that_know_all_at_once_take_turns() {
        for balance in policies() {
            let mut of = upstream(&balance, 2);
            of.add_loop(&balance, &[1.0; 2], Vec::new(), 0, Key::new(2));
            of.keep_counts(0);
            let tickets: Vec<Ticket> = (0..20).map(|i| pick(&mut of, i % 2, u64::from(i))).collect();
            for pair in tickets.chunks(2) {
                assert_ne!(pair[0].target, pair[1].target, "{balance:?}");
            }
            assert_eq!((of.in_flight(TargetId(0)), of.in_flight(TargetId(1))), (Some(10), Some(10)));
            for (on, ticket) in (0..).zip(tickets) {
                of.on(on % 2).done(30, ticket, None, None);
            }
            assert_eq!(of.total_in_flight(), 0);
        }
    }

    /// Each loop sees its own requests at once, and those of the other one from the next multiple on.
    #[test]
    fn what_another_loop_does_is_seen_at_the_next_multiple() {
        for balance in policies() {
            let mut of = upstream(&balance, 2);
            of.add_loop(&balance, &[1.0; 2], Vec::new(), 0, Key::new(2));
            of.keep_counts(10 * MS);
            let first: Vec<Ticket> = (1..=6).map(|i| pick(&mut of, 0, i)).collect();
            // The other loop sees none of six, and then its own.
            let second = [pick(&mut of, 1, 7), pick(&mut of, 1, 8)];
            assert_ne!(second[0].target, second[1].target, "{balance:?}");
            for ticket in first.iter().filter(|ticket| ticket.target == TargetId(0)) {
                of.on(0).done(9, *ticket, None, None);
            }
            let counts = |of: &mut Upstream, on| [0, 1].map(|t| of.count_on(on, TargetId(t)));
            assert_eq!(counts(&mut of, 0), [0, 3], "its own");
            assert_eq!(counts(&mut of, 1), [1, 1], "{balance:?}");
            let third = pick(&mut of, 1, 10 * MS);
            assert_eq!((third.target, counts(&mut of, 1)), (TargetId(0), [2, 4]), "{balance:?}");
            assert_eq!(counts(&mut of, 0), [1, 4], "as they were at the multiple");
        }
    }

    /// What a loop sees before a pick is what all have in flight, also if it picks so rarely that it looks at all targets.
    #[test]
    fn a_loop_follows_what_the_others_change() {
        const TARGETS: usize = 40;
        let least = LeastConnArgs { ties: Ties::Random, error_hold_ns: 0 };
        let counts = SharedCounts::default().with_room(TARGETS).with_followers(3);
        let mut loops = [(); 3].map(|()| upstream(&Balance::LeastConn(least), TARGETS));
        (0..).zip(&mut loops).for_each(|(number, of)| of.share_counts(number, 0, counts.clone(), false));
        let mut open: Vec<(usize, Ticket)> = Vec::new();
        for now_ns in 1..5_000 {
            let draw = Key::new(9).with(now_ns);
            let on = if draw.below(200) == 0 { 2 } else { draw.nth(1).below(2) as usize };
            if open.len() < 30 || draw.nth(2).below(2) == 0 {
                loops[on].see_others(now_ns, |_| {});
                for target in TargetId::all(TARGETS as u32) {
                    assert_eq!(loops[on].count_on(0, target), counts.get(target), "{target:?} at {now_ns}");
                }
                open.push((on, pick(&mut loops[on], 0, now_ns)));
            } else {
                let (on, ticket) = open.swap_remove(draw.nth(3).below(open.len() as u64) as usize);
                loops[on].on(0).done(now_ns, ticket, None, None);
            }
        }
    }

    /// Loops get a new target one after the other, and one of them gets another policy for a while.
    #[test]
    fn loops_with_other_targets_or_policies_look_at_all() {
        let [least, p2c, _] = policies();
        let few = SharedCounts::default().with_room(2).with_followers(2);
        let (mut one, mut other) = (upstream(&least, 2), upstream(&least, 2));
        one.share_counts(0, 0, few.clone(), false);
        other.share_counts(1, 0, few.clone(), false);
        let picked = |of: &mut Upstream, now_ns| {
            of.see_others(now_ns, |_| {});
            pick(of, 0, now_ns).target.0
        };
        assert_eq!([picked(&mut one, 1), picked(&mut other, 2)], [0, 1]);
        let more = few.with_room(3);
        other.add(3, 1.0, "new");
        other.share_counts(1, 0, more.clone(), false);
        assert_eq!([picked(&mut other, 3), picked(&mut other, 4)], [2, 0]);
        assert_eq!(picked(&mut one, 5), 1, "of the two that it has");
        one.add(6, 1.0, "new");
        one.share_counts(0, 0, more.clone(), false);
        assert_eq!(picked(&mut one, 6), 2, "1 in flight, at each of the others 2");
        // The other one has its counts already, and writes none.
        let mut successor = upstream(&p2c, 3);
        (0..3).for_each(|t| successor.see_count(TargetId(t), 2));
        other.count_alone(|_| 0);
        successor.share_counts(1, 0, more.clone(), false);
        assert_eq!(picked(&mut one, 7), 0);
        more.add(TargetId(0), -3);
        successor = upstream(&least, 3);
        successor.share_counts(1, 0, more, false);
        assert_eq!(
            [picked(&mut one, 8), picked(&mut successor, 9)],
            [0, 0],
            "none is in flight there, then one"
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what it follows is of several threads")]
    fn threads_follow_each_other() {
        const TARGETS: usize = 40;
        let least = Balance::LeastConn(LeastConnArgs { ties: Ties::Random, error_hold_ns: 0 });
        let counts = SharedCounts::default().with_room(TARGETS).with_followers(3);
        let mut loops = [(); 3].map(|()| upstream(&least, TARGETS));
        (0..).zip(&mut loops).for_each(|(number, of)| of.share_counts(number, 0, counts.clone(), false));
        let play = |of: &mut Upstream| {
            for now_ns in 0..20_000 {
                of.see_others(now_ns, |_| {});
                let ticket = pick(of, 0, now_ns);
                of.on(0).done(now_ns, ticket, None, None);
            }
        };
        std::thread::scope(|scope| loops.iter_mut().for_each(|of| _ = scope.spawn(move || play(of))));
        for of in &mut loops {
            of.see_others(0, |_| {});
            let seen = TargetId::all(TARGETS as u32).map(|target| of.count_on(0, target));
            assert_eq!(seen.sum::<u32>(), 0, "all have returned");
        }
    }

    /// As loops of a process do, each with a balancer of its own.
    #[test]
    fn balancers_count_together_by_atomics() {
        for balance in policies() {
            for is_recorded in [false, true] {
                let counts = SharedCounts::default().with_room(2).with_followers(2);
                let mut both = [upstream(&balance, 2), upstream(&balance, 2)];
                (0..).zip(&mut both).for_each(|(on, of)| of.share_counts(on, 0, counts.clone(), is_recorded));
                let mut replayed = upstream(&balance, 2);
                let mut tickets = Vec::new();
                for i in 0..20 {
                    let of = &mut both[i as usize % 2];
                    let mut seen = Vec::new();
                    of.see_others(i, |operation| seen.push(operation));
                    tickets.push(pick(of, 0, i));
                    if is_recorded && i % 2 == 0 {
                        seen.iter().for_each(|operation| _ = replayed.act(operation));
                        assert_eq!(pick(&mut replayed, 0, i).target, tickets[i as usize].target);
                    }
                }
                for pair in tickets.chunks(2) {
                    assert_ne!(pair[0].target, pair[1].target, "{balance:?}");
                }
                for (ticket, i) in tickets.into_iter().zip(0..) {
                    both[i % 2].on(0).cancelled(30, ticket);
                }
                assert_eq!([0, 1].map(|t| counts.get(TargetId(t))), [0, 0]);
                both[0].count_alone(|_| 0);
                assert!(!both[0].shares_counts());
            }
        }
    }
}
