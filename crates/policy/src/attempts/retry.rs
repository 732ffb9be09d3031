//! Whether a request is tried again, and which targets the next attempt leaves out.
//!
//! The rules of safe retries are in [`may_retry`]: one function for both worlds. Sources: RFC 9110, 9.2.2 (idempotent
//! methods); `docs/spec/language.md#kinds` and `docs/spec/background.md#safe-retries`; HAProxy `retry-on`, Envoy's
//! previous-hosts predicate.

use crate::attempts::budget::Budget;
use crate::{Kind, Outcome, TargetId};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use weir_stats::Key;

/// Which targets a further attempt leaves out, as long as others remain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exclude {
    /// Those that this request has tried at this balancer.
    #[default]
    Tried,
    /// Those among them that could not be connected to.
    ConnectFailed,
    /// None (the posts' code).
    None,
}

/// Whether a further attempt draws its work anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Each attempt brings its own work.
    #[default]
    Redraw,
    /// Each attempt brings the work of the first.
    Same,
}

/// Which methods may be tried again after an outcome that could have had effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Methods {
    /// Idempotent ones (RFC 9110, 9.2.2).
    #[default]
    Idempotent,
    /// Any.
    Any,
}

/// `retry(attempts, node, on=..., exclude=..., ...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts in all, the first included; at least 1.
    pub attempts: u32,
    /// The kinds that are tried again.
    pub on: Vec<Kind>,
    /// Which targets a further attempt leaves out.
    pub exclude: Exclude,
    /// Which methods may be tried again.
    pub methods: Methods,
    /// What a further attempt draws.
    pub work: Work,
    /// Attempt k waits a uniform draw from 0 to min(`backoff_max_ns`, `backoff_ns` 2^(k-2)); 0: at once.
    pub backoff_ns: u64,
    /// The longest backoff.
    pub backoff_max_ns: u64,
    /// Status numbers that are tried again beside the kinds.
    pub on_status: Vec<u16>,
    /// What further attempts are charged to; `None`: nothing.
    pub budget: Option<Budget>,
    /// Bytes of a request's body that are kept for further attempts.
    pub replay_bytes: u64,
}

/// The attempt that a request is in: the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The first attempt.
    pub const FIRST: Attempt = Attempt(1);
}

/// A balancer on a request's way, as the caller numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalancerId(pub u32);

/// Whether an outcome of this kind may be tried again at all, whichever kinds the file lists.
///
/// `connect_failed`, `refused` and `overloaded` mean that no work was done: any method. All other kinds may have had
/// effects: idempotent requests only, unless the file has `methods="any"`.
pub fn may_retry(kind: Kind, idempotent: bool, methods: Methods) -> bool {
    match kind {
        Kind::ConnectFailed | Kind::Refused | Kind::Overloaded => true,
        Kind::Cancelled | Kind::BadRequest => false,
        _ => idempotent || methods == Methods::Any,
    }
}

/// Whether a method is idempotent (RFC 9110, 9.2.2).
pub fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE")
}

impl Retry {
    /// The attempt after one with this outcome, or `None` if its outcome is the answer. `status`: that of the
    /// server's answer, if there was one.
    #[inline]
    pub fn next(
        &self,
        attempt: Attempt,
        outcome: Outcome,
        status: Option<u16>,
        idempotent: bool,
    ) -> Option<Attempt> {
        if attempt.0 >= self.attempts {
            return None;
        }
        let by_kind = |kind| self.on.contains(&kind) && may_retry(kind, idempotent, self.methods);
        // An answer has had its effects, with any status.
        let by_status =
            |s| self.on_status.contains(&s) && may_retry(Kind::Status5xx, idempotent, self.methods);
        (outcome.is_some_and(by_kind) || status.is_some_and(by_status)).then_some(Attempt(attempt.0 + 1))
    }

    /// The wait before attempt `next` (2 and above): drawn uniformly from 0 to `backoff_ns` doubled for each attempt
    /// after the second, at most `backoff_max_ns` ("full jitter": clients that failed together come back apart).
    #[inline]
    pub fn backoff_ns(&self, next: Attempt, draw: Key) -> u64 {
        if self.backoff_ns == 0 {
            return 0;
        }
        let doublings = next.0.saturating_sub(2);
        let doubled =
            if doublings > self.backoff_ns.leading_zeros() { u64::MAX } else { self.backoff_ns << doublings };
        // Both ends included.
        match doubled.min(self.backoff_max_ns).checked_add(1) {
            Some(n) => draw.below(n),
            None => draw.bits(),
        }
    }
}

/// The targets that one request has tried, at all balancers on its way.
#[derive(Clone, Debug, Default)]
pub struct TriedTargets {
    /// (balancer, target); most requests try one or two.
    list: SmallVec<[(BalancerId, TargetId); 2]>,
}

impl TriedTargets {
    /// Whether it has tried no target.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets all, for a new request.
    #[inline]
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Notes the target that a balancer picked for an attempt under this rule.
    #[inline]
    pub fn picked(&mut self, rule: Exclude, balancer: BalancerId, target: TargetId) {
        if rule == Exclude::Tried && !self.list.contains(&(balancer, target)) {
            self.list.push((balancer, target));
        }
    }

    /// Notes that the attempt has come back.
    pub fn came_back(&mut self, rule: Exclude, balancer: BalancerId, target: TargetId, outcome: Outcome) {
        if rule == Exclude::ConnectFailed && outcome == Some(Kind::ConnectFailed) {
            self.list.push((balancer, target));
        }
    }

    /// Writes the targets that the next pick of a balancer leaves out into `out`.
    pub fn add_to(&self, balancer: BalancerId, out: &mut Vec<TargetId>) {
        out.clear();
        out.extend(self.list.iter().filter(|(b, _)| *b == balancer).map(|(_, t)| *t));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Work;

    fn retry(attempts: u32, on: &[Kind], methods: Methods) -> Retry {
        Retry {
            attempts,
            on: on.to_vec(),
            exclude: Exclude::Tried,
            methods,
            work: Work::Redraw,
            backoff_ns: 0,
            backoff_max_ns: 0,
            on_status: Vec::new(),
            budget: None,
            replay_bytes: 0,
        }
    }

    #[test]
    fn methods() {
        assert!(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"].into_iter().all(is_idempotent));
        assert!(!["POST", "PATCH", "CONNECT", "get", ""].into_iter().any(is_idempotent));
    }

    #[test]
    fn attempts_are_counted_in_all() {
        let r = retry(3, &[Kind::Refused], Methods::Idempotent);
        let second = r.next(Attempt::FIRST, Some(Kind::Refused), None, true);
        assert_eq!(second, Some(Attempt(2)));
        assert_eq!(r.next(Attempt(2), Some(Kind::Refused), None, true), Some(Attempt(3)));
        assert_eq!(r.next(Attempt(3), Some(Kind::Refused), None, true), None);
        assert_eq!(r.next(Attempt(1), None, None, true), None);
        assert_eq!(r.next(Attempt(1), Some(Kind::Timeout), None, true), None);
    }

    /// A status of `on` is tried again whether it is an error or not, but a POST never without permission.
    #[test]
    fn statuses() {
        let mut r = retry(3, &[], Methods::Idempotent);
        r.on_status = vec![404, 503];
        let next =
            |r: &Retry, outcome, status, idempotent| r.next(Attempt::FIRST, outcome, status, idempotent);
        assert!(next(&r, None, Some(404), true).is_some() && next(&r, None, Some(200), true).is_none());
        assert!(next(&r, Some(Kind::Status5xx), Some(503), true).is_some());
        assert!(next(&r, Some(Kind::Status5xx), Some(502), true).is_none());
        assert!(next(&r, Some(Kind::Overloaded), None, true).is_none(), "no answer, no status");
        assert!(next(&r, None, Some(404), false).is_none());
        r.methods = Methods::Any;
        assert!(next(&r, None, Some(404), false).is_some());
        assert!(r.next(Attempt(3), None, Some(404), true).is_none());
    }

    /// The rules of `docs/spec/language.md#retry`, kind by kind.
    #[test]
    fn what_may_be_retried() {
        for kind in Kind::ALL {
            let always = matches!(kind, Kind::ConnectFailed | Kind::Refused | Kind::Overloaded);
            let never = matches!(kind, Kind::Cancelled | Kind::BadRequest);
            assert_eq!(may_retry(kind, false, Methods::Idempotent), always, "{kind:?}");
            assert_eq!(may_retry(kind, true, Methods::Idempotent), !never, "{kind:?}");
            assert_eq!(may_retry(kind, false, Methods::Any), !never, "{kind:?}");
        }
    }

    /// Uniform up to the bound, which doubles until it is cut.
    #[test]
    fn backoff_is_drawn_from_a_doubling_range() {
        const MS: u64 = 1_000_000;
        let mut r = retry(9, &[Kind::Refused], Methods::Idempotent);
        assert!((2..9).all(|k| r.backoff_ns(Attempt(k), Key::new(1)) == 0), "at once unless given");
        (r.backoff_ns, r.backoff_max_ns) = (25 * MS, 250 * MS);
        for (k, bound) in [(2, 25), (3, 50), (4, 100), (5, 200), (6, 250), (7, 250), (u32::MAX, 250)] {
            let (n, bound) = (20_000u64, (bound * MS) as f64);
            let all: Vec<f64> =
                (0..n).map(|i| r.backoff_ns(Attempt(k), Key::new(3).with(i)) as f64 / bound).collect();
            assert!(all.iter().all(|x| *x <= 1.0));
            let mean = all.iter().sum::<f64>() / n as f64;
            let square = all.iter().map(|x| x * x).sum::<f64>() / n as f64;
            assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0 / n as f64).sqrt(), "{k}: {mean}");
            assert!((square - 1.0 / 3.0).abs() < 0.011, "{k}: {square}");
        }
    }

    #[test]
    fn backoff_saturates() {
        let mut r = retry(9, &[], Methods::Any);
        (r.backoff_ns, r.backoff_max_ns) = (1, u64::MAX);
        let longest = |r: &Retry, k| (0..99).map(|i| r.backoff_ns(Attempt(k), Key::new(i))).max();
        assert!(longest(&r, 65) > Some(1 << 62) && longest(&r, 65) < Some(1 << 63));
        assert!(longest(&r, 66) > Some(1 << 63));
        assert!(longest(&r, u32::MAX) > Some(1 << 63));
        r.backoff_ns = 3;
        assert!(longest(&r, 64) > Some(1 << 63), "3 << 62 fits");
        assert!(longest(&r, 2) <= Some(3) && longest(&r, 0) <= Some(3));
        r.backoff_max_ns = 2;
        assert_eq!(longest(&r, 9), Some(2), "both ends included");
    }

    #[test]
    fn tried_targets_are_kept_by_balancer() {
        let (mut tried, mut out) = (TriedTargets::default(), Vec::new());
        tried.picked(Exclude::Tried, BalancerId(1), TargetId(10));
        tried.picked(Exclude::Tried, BalancerId(2), TargetId(20));
        tried.picked(Exclude::None, BalancerId(1), TargetId(11));
        tried.picked(Exclude::ConnectFailed, BalancerId(1), TargetId(12));
        tried.came_back(Exclude::ConnectFailed, BalancerId(1), TargetId(12), Some(Kind::ConnectFailed));
        tried.came_back(Exclude::ConnectFailed, BalancerId(1), TargetId(13), Some(Kind::Reset));
        tried.add_to(BalancerId(1), &mut out);
        assert_eq!(out, [10, 12].map(TargetId));
        tried.clear();
        tried.add_to(BalancerId(2), &mut out);
        assert!(out.is_empty());
    }
}
