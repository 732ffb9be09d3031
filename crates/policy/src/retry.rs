//! Whether a request is tried again, and which targets the next attempt leaves out.
//!
//! The table of what may be retried is [`may_retry`]: one function that both worlds call. Sources: RFC 9110, 9.2.2
//! (idempotent methods); the contract's table of kinds; HAProxy `retry-on`, Envoy's previous-hosts predicate.

use crate::config::{Exclude, Methods, Retry};
use crate::{Kind, Outcome};

/// Which attempt a request is in: the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt(pub u32);

impl Attempt {
    /// The first.
    pub const FIRST: Attempt = Attempt(1);
}

/// Whether an outcome of this kind may be tried again at all, whatever the file says.
///
/// `connect_failed`, `refused` and `overloaded` mean that no work was done: any method. All others may have had effects:
/// idempotent requests only, unless the file says `methods="any"`.
pub fn may_retry(kind: Kind, idempotent: bool, methods: Methods) -> bool {
    match kind {
        Kind::ConnectFailed | Kind::Refused | Kind::Overloaded => true,
        Kind::Cancelled | Kind::BadRequest => false,
        _ => idempotent || methods == Methods::Any,
    }
}

impl Retry {
    /// The attempt that follows one with this outcome, or `None` if its outcome is the answer.
    #[inline]
    pub fn next(&self, attempt: Attempt, outcome: Outcome, idempotent: bool) -> Option<Attempt> {
        let kind = outcome?;
        let again =
            attempt.0 < self.attempts && self.on.contains(&kind) && may_retry(kind, idempotent, self.methods);
        again.then_some(Attempt(attempt.0 + 1))
    }
}

/// The targets that one request has tried, at all balancers on its way.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// (balancer, target).
    list: Vec<(u32, u32)>,
}

impl Tried {
    /// Forgets all: a new request.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// A balancer picked a target for an attempt under this rule.
    pub fn picked(&mut self, rule: Exclude, balancer: u32, target: u32) {
        if rule == Exclude::Tried && !self.list.contains(&(balancer, target)) {
            self.list.push((balancer, target));
        }
    }

    /// That attempt came back.
    pub fn came_back(&mut self, rule: Exclude, balancer: u32, target: u32, outcome: Outcome) {
        if rule == Exclude::ConnectFailed && outcome == Some(Kind::ConnectFailed) {
            self.list.push((balancer, target));
        }
    }

    /// The targets that the next pick of a balancer leaves out, into `out`.
    pub fn at(&self, balancer: u32, out: &mut Vec<u32>) {
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
        }
    }

    #[test]
    fn attempts_are_counted_in_all() {
        let r = retry(3, &[Kind::Refused], Methods::Idempotent);
        let second = r.next(Attempt::FIRST, Some(Kind::Refused), true);
        assert_eq!(second, Some(Attempt(2)));
        assert_eq!(r.next(Attempt(2), Some(Kind::Refused), true), Some(Attempt(3)));
        assert_eq!(r.next(Attempt(3), Some(Kind::Refused), true), None);
        assert_eq!(r.next(Attempt(1), None, true), None);
        assert_eq!(r.next(Attempt(1), Some(Kind::Timeout), true), None);
    }

    /// The contract's table, kind by kind.
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

    #[test]
    fn tried_targets_are_kept_by_balancer() {
        let (mut tried, mut out) = (Tried::default(), Vec::new());
        tried.picked(Exclude::Tried, 1, 10);
        tried.picked(Exclude::Tried, 2, 20);
        tried.picked(Exclude::None, 1, 11);
        tried.picked(Exclude::ConnectFailed, 1, 12);
        tried.came_back(Exclude::ConnectFailed, 1, 12, Some(Kind::ConnectFailed));
        tried.came_back(Exclude::ConnectFailed, 1, 13, Some(Kind::Reset));
        tried.at(1, &mut out);
        assert_eq!(out, [10, 12]);
        tried.clear();
        tried.at(2, &mut out);
        assert!(out.is_empty());
    }
}
