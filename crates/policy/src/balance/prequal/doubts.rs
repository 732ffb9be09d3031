//! What a balancer of `lb.prequal` holds against its targets: errors not yet made up for, and requests that were
//! cancelled.

use crate::{Kind, Outcome, TargetId};

/// More errors in a row than this are as bad as this many, so that a target that failed for long is believed soon after
/// it answers again.
const MOST: u8 = 16;

/// What speaks against one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubt {
    /// Errors less successes, at least 0 and at most [`MOST`]: while it is not 0, what the target says is not believed.
    pub errors: u8,
    /// The longest time, ns, after which a request was cancelled since the last success; 0: none was.
    pub floor_ns: u64,
}

impl Doubt {
    pub fn failed(self) -> bool {
        self.errors > 0
    }
}

/// Of all targets of a balancer.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts {
    of: Vec<Doubt>,
    /// How many targets something speaks against: mostly 0, and then nothing else is looked at.
    some: u32,
}

impl Doubts {
    /// At least this number of targets from now on.
    pub fn grow(&mut self, targets: usize) {
        self.of.resize(targets.max(self.of.len()), Doubt::default());
    }

    /// Whether there is any.
    #[inline]
    pub fn any(&self) -> bool {
        self.some > 0
    }

    /// About a target.
    #[inline]
    pub fn get(&self, target: TargetId) -> Doubt {
        if self.some == 0 { Doubt::default() } else { self.of[target.index()] }
    }

    /// A request ended `took_ns` after its pick; what is held against its target now.
    pub fn ended(&mut self, target: TargetId, took_ns: u64, outcome: Outcome) -> Doubt {
        let mut doubt = self.get(target);
        match outcome {
            None => doubt = Doubt { errors: doubt.errors.saturating_sub(1), floor_ns: 0 },
            Some(Kind::Cancelled) => doubt.floor_ns = doubt.floor_ns.max(took_ns),
            // A fault of the request does not count against the target.
            Some(Kind::BadRequest) => {}
            Some(_) => doubt.errors = (doubt.errors + 1).min(MOST),
        }
        self.set(target, doubt)
    }

    /// Nothing is known of the target any more.
    pub fn forget(&mut self, target: TargetId) {
        self.set(target, Doubt::default());
    }

    fn set(&mut self, target: TargetId, doubt: Doubt) -> Doubt {
        let old = std::mem::replace(&mut self.of[target.index()], doubt);
        self.some += u32::from(doubt != Doubt::default());
        self.some -= u32::from(old != Doubt::default());
        doubt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::Key;

    /// Against an account of all that ended, most recent last.
    #[test]
    fn doubts_are_what_the_account_says() {
        let (mut doubts, mut account) = (Doubts::default(), vec![Vec::new(); 3]);
        doubts.grow(3);
        for i in 0..20_000u64 {
            let draw = Key::new(4).with(i);
            let (target, took) = (draw.below(3) as usize, draw.nth(1).below(1000));
            // By turns mostly errors and mostly successes, so that all values are met.
            let bad = if i / 100 % 2 == 0 { 60 } else { 20 };
            let outcome = match draw.nth(2).below(100) {
                roll if roll < bad => Some(Kind::Refused),
                roll if roll < bad + 5 => Some(Kind::Cancelled),
                roll if roll < bad + 10 => Some(Kind::BadRequest),
                _ => None,
            };
            account[target].push((took, outcome));
            doubts.ended(TargetId(target as u32), took, outcome);
            let step = |n: i32, (_, o): &(u64, Outcome)| match o {
                None => (n - 1).max(0),
                Some(Kind::Cancelled | Kind::BadRequest) => n,
                Some(_) => (n + 1).min(16),
            };
            let errors = account[target].iter().fold(0, step);
            let since = account[target].rsplit(|(_, o)| o.is_none()).next().unwrap_or_default();
            let cancelled = since.iter().filter(|(_, o)| *o == Some(Kind::Cancelled));
            let floor_ns = cancelled.map(|(took, _)| *took).max().unwrap_or(0);
            assert_eq!(doubts.get(TargetId(target as u32)), Doubt { errors: errors as u8, floor_ns });
            let clear = |t: &u32| doubts.get(TargetId(*t)) == Doubt::default();
            assert_eq!(doubts.any(), !(0..3).all(|t| clear(&t)));
        }
        (0..3).for_each(|t| doubts.forget(TargetId(t)));
        assert!(!doubts.any());
    }
}
