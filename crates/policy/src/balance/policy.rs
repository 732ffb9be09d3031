//! The trait that every balancing policy implements in its own file, with defaults for what most do not need.
//!
//! A balancer calls it through its enum of policies ([`super::Balancer`]), never through a pointer, so that hot
//! policies are inlined at their callers.

use crate::balance::Ask;
use crate::balance::roster::Roster;
use crate::balance::table::Table;
use crate::{Kind, Outcome, TargetId};
use std::any::Any;
use weir_stats::Key;

/// What a balancer does with its count of a request that has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// It ends.
    Now,
    /// It lasts for this many ns; then the caller calls [`super::Balancer::release`].
    After(u64),
}

/// What a policy needs from its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// It counts requests in flight: each return must be reported.
    pub counts: bool,
    /// It uses how long requests take and how they end ([`super::Balancer::finished`]).
    pub measures: bool,
    /// It picks by the request's key, and knows its targets by name.
    pub hashes: bool,
    /// A pick depends on the picks and returns before it. The picks of a policy without memory may be made ahead of
    /// time.
    pub remembers: bool,
    /// It asks its targets how busy they are.
    pub probes: bool,
    /// It looks at nothing but the draw and its own counts, so that [`super::Balancer::pick`] is all it needs; its
    /// state is part of the balancer and its code is inlined.
    pub is_inlined: bool,
}

impl Traits {
    /// A policy that remembers its picks and needs nothing else.
    pub const PLAIN: Traits = Traits {
        counts: false,
        measures: false,
        hashes: false,
        remembers: true,
        probes: false,
        is_inlined: false,
    };
}

/// A balancing policy: its state over the targets of one balancer.
///
/// Targets are indices of the roster. Time and randomness are arguments; no method allocates, except those that follow
/// a change of the targets.
pub trait Policy: Sized + 'static {
    /// Its arguments in the language; `()` if it has none.
    type Args;
    /// Its name in the language.
    const NAME: &'static str;
    /// Its requirements on callers.
    const TRAITS: Traits;

    /// Its requirements with these arguments.
    #[inline]
    fn traits(_args: &Self::Args) -> Traits {
        Self::TRAITS
    }

    /// Whether it knows its targets by name.
    fn hashes(&self) -> bool {
        Self::TRAITS.hashes
    }

    /// The state at the start. `draw` decides what is drawn once, such as where a rotation starts.
    fn build(args: &Self::Args, roster: &Roster, draw: Key) -> Self;

    /// Applies a change of the targets: weights, eligibility, new and removed ones. Counts and estimates stay.
    fn follow(&mut self, now_ns: u64, roster: &Roster);

    /// The same, if only these targets may have changed: what costs less than a look at all of them.
    fn follow_few(&mut self, now_ns: u64, roster: &Roster, _changed: &[TargetId]) {
        self.follow(now_ns, roster);
    }

    /// Chooses a target that is not barred and counts the request there; `None` if all are barred. Ignores what the
    /// request excludes.
    fn ask_where(&mut self, ask: &Ask, barred: impl Fn(TargetId) -> bool) -> Option<TargetId>;

    /// Chooses a target and counts the request there. Excluded targets are picked only if no other is left.
    #[inline]
    fn ask(&mut self, ask: &Ask) -> Option<TargetId> {
        if ask.exclude.is_empty() {
            return self.ask_where(ask, |_| false);
        }
        self.ask_where(ask, |t| ask.exclude.contains(&t)).or_else(|| self.ask_where(ask, |_| false))
    }

    /// As [`Policy::ask`], for a request without a key at the time 0.
    #[inline]
    fn pick(&mut self, draw: Key, exclude: &[TargetId]) -> Option<TargetId> {
        self.ask(&Ask { exclude, ..Ask::new(draw, 0) })
    }

    /// Counts a request at a target that was chosen elsewhere (by a cookie).
    #[inline]
    fn take(&mut self, _target: TargetId) {}

    /// Ends the count of a request at a target.
    #[inline]
    fn release(&mut self, _target: TargetId) {}

    /// How much longer a failed request stays counted, ns.
    #[inline]
    fn error_hold_ns(&self) -> u64 {
        0
    }

    /// Applies the end of a request, if the time that it took is not known.
    #[inline]
    fn done(&mut self, target: TargetId, outcome: Outcome) -> Release {
        let hold_ns = self.error_hold_ns();
        if outcome.is_none() || hold_ns == 0 {
            self.release(target);
            return Release::Now;
        }
        Release::After(hold_ns)
    }

    /// Applies the end of a request `took_ns` after its pick.
    #[inline]
    fn finished(&mut self, _now_ns: u64, target: TargetId, _took_ns: u64, outcome: Outcome) -> Release {
        self.done(target, outcome)
    }

    /// Applies the cancellation of a request `took_ns` after its pick.
    #[inline]
    fn cancelled(&mut self, now_ns: u64, target: TargetId, took_ns: u64) {
        if Self::TRAITS.measures {
            self.finished(now_ns, target, took_ns, Some(Kind::Cancelled));
        } else {
            self.release(target);
        }
    }

    /// Applies that a `timeout` around the balancer cut a request off `took_ns` after its pick. Most policies know no more
    /// of it than of any request that was cancelled.
    #[inline]
    fn timed_out(&mut self, now_ns: u64, target: TargetId, took_ns: u64) {
        self.cancelled(now_ns, target, took_ns);
    }

    /// Requests counted at a target; `None` if it does not count.
    fn counted_at(&self, _target: TargetId) -> Option<u32> {
        None
    }

    /// Requests counted at all targets; 0 if it does not count.
    fn counted(&self) -> u64 {
        0
    }

    /// How long the policy expects a target to take, ns; `None` if it has no estimate.
    fn estimate_ns(&self, _now_ns: u64, _target: TargetId) -> Option<f64> {
        None
    }

    /// Forgets what was learnt of a target: another one takes over its index.
    fn forget_target(&mut self, _now_ns: u64, _target: TargetId) {}

    /// Takes over what another balancer of the same policy has learnt of the same targets; counts stay its own.
    fn learn(&mut self, _old: &Self) {}

    /// The table that it hashes by, made now if needed; `None` if it has none.
    fn make_table(&mut self) -> Option<Table> {
        None
    }

    /// Takes a table made by another balancer, if it would make the same.
    fn take_table(&mut self, _table: &Table) {}

    /// The state behind a common type, for [`Policy::learn_from_any`].
    fn as_any(&self) -> &dyn Any {
        self
    }

    /// [`Policy::learn`], if `old` is the state of the same policy.
    fn learn_from_any(&mut self, old: &dyn Any) {
        if let Some(old) = old.downcast_ref::<Self>() {
            self.learn(old);
        }
    }
}
