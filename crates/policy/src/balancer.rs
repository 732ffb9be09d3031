//! A balancer of any policy: the one object that the simulator and the proxy hold, dispatched by enum.

use crate::Outcome;
use crate::config::Balance;
use crate::least_conn::LeastConn;
use crate::p2c::{Choices, P2c};
use crate::random::Random;
use crate::round_robin::RoundRobin;
use weir_stats::Key;

/// The state of one balancer: one per event loop, unless it is told to be the process's.
#[derive(Clone, Debug)]
pub enum Balancer {
    /// `lb.random`.
    Random(Random),
    /// `lb.round_robin`.
    RoundRobin(RoundRobin),
    /// `lb.least_conn`.
    LeastConn(LeastConn),
    /// `lb.p2c`.
    P2c(P2c),
}

/// What a balancer does with its count of a request that has come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// It is gone.
    Now,
    /// It goes on for so many ns; then the caller says [`Balancer::release`].
    After(u64),
}

impl Balancer {
    /// A balancer over targets of these weights. `draw` is what it draws once (where to start).
    pub fn new(config: &Balance, weights: &[f64], draw: Key) -> Balancer {
        match *config {
            Balance::Random => Balancer::Random(Random::new(weights)),
            Balance::RoundRobin { start } => Balancer::RoundRobin(RoundRobin::new(weights, start, draw)),
            Balance::LeastConn { ties, error_hold_ns } => {
                Balancer::LeastConn(LeastConn::new(weights, ties, error_hold_ns, draw))
            }
            Balance::P2c { choices, replacement, ties, error_hold_ns, bias } => {
                Balancer::P2c(P2c::new(weights, Choices { choices, replacement, ties, error_hold_ns, bias }))
            }
        }
    }

    /// Chooses a target for a request and counts it; `None` if there is none. The excluded are left out while others
    /// remain. `draw` is the request's own.
    #[inline]
    pub fn pick(&mut self, draw: Key, exclude: &[u32]) -> Option<u32> {
        match self {
            Balancer::Random(lb) => lb.pick(draw, exclude),
            Balancer::RoundRobin(lb) => lb.pick(exclude),
            Balancer::LeastConn(lb) => lb.pick(draw, exclude),
            Balancer::P2c(lb) => lb.pick(draw, exclude),
        }
    }

    /// The request that was sent to `target` has come back with this outcome.
    #[inline]
    pub fn done(&mut self, target: u32, outcome: Outcome) -> Release {
        let hold = match self {
            Balancer::Random(_) | Balancer::RoundRobin(_) => return Release::Now,
            Balancer::LeastConn(lb) => lb.error_hold_ns(),
            Balancer::P2c(lb) => lb.error_hold_ns(),
        };
        if outcome.is_some() && hold > 0 {
            return Release::After(hold);
        }
        self.release(target);
        Release::Now
    }

    /// Requests that it counts in flight, over all targets; 0 for policies that do not count.
    pub fn total_in_flight(&self) -> u64 {
        match self {
            Balancer::Random(_) | Balancer::RoundRobin(_) => 0,
            Balancer::LeastConn(lb) => lb.total_in_flight(),
            Balancer::P2c(lb) => lb.total_in_flight(),
        }
    }

    /// A count that was held ends now.
    #[inline]
    pub fn release(&mut self, target: u32) {
        match self {
            Balancer::Random(_) | Balancer::RoundRobin(_) => {}
            Balancer::LeastConn(lb) => lb.release(target),
            Balancer::P2c(lb) => lb.release(target),
        }
    }
}

impl Balance {
    /// Whether a pick depends on the picks and returns before it. One that does not may be asked ahead of time.
    pub fn remembers_picks(&self) -> bool {
        !matches!(self, Balance::Random)
    }

    /// Whether it counts requests in flight, so that it must hear when one comes back.
    pub fn counts_in_flight(&self) -> bool {
        matches!(self, Balance::LeastConn { .. } | Balance::P2c { .. })
    }

    /// The name in the language.
    pub fn name(&self) -> &'static str {
        match self {
            Balance::Random => "lb.random",
            Balance::RoundRobin { .. } => "lb.round_robin",
            Balance::LeastConn { .. } => "lb.least_conn",
            Balance::P2c { .. } => "lb.p2c",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::config::{Start, Ties};

    fn all() -> Vec<Balance> {
        vec![
            Balance::Random,
            Balance::RoundRobin { start: Start::Random },
            Balance::LeastConn { ties: Ties::Random, error_hold_ns: 0 },
            Balance::P2c { choices: 2, replacement: false, ties: Ties::Random, error_hold_ns: 0, bias: 1.0 },
        ]
    }

    /// Every policy: never a target of weight 0, the excluded only where nothing else is left, the same again for the
    /// same draws.
    #[test]
    fn what_holds_for_every_policy() {
        for config in all() {
            let weights = [1.0, 0.0, 1.0, 1.0];
            let run = || {
                let mut lb = Balancer::new(&config, &weights, Key::new(2));
                let mut picks = Vec::new();
                for i in 0..500u64 {
                    let exclude: &[u32] = match i % 3 {
                        0 => &[],
                        1 => &[2],
                        _ => &[0, 2, 3],
                    };
                    let t = lb.pick(Key::new(9).with(i), exclude).unwrap();
                    assert_ne!(t, 1, "{}", config.name());
                    assert!(i % 3 != 1 || t != 2, "{}", config.name());
                    assert_eq!(lb.done(t, None), Release::Now);
                    picks.push(t);
                }
                picks
            };
            assert_eq!(run(), run());
            assert_eq!(Balancer::new(&config, &[], Key::new(1)).pick(Key::new(1), &[]), None);
        }
    }

    #[test]
    fn a_failed_request_is_held_and_a_good_one_is_not() {
        let held = Balance::LeastConn { ties: Ties::First, error_hold_ns: 7 };
        let mut lb = Balancer::new(&held, &[1.0, 1.0], Key::new(0));
        assert_eq!(lb.pick(Key::new(0), &[]), Some(0));
        assert_eq!(lb.done(0, Some(Kind::Refused)), Release::After(7));
        assert_eq!(lb.pick(Key::new(0), &[]), Some(1));
        assert_eq!(lb.done(1, None), Release::Now);
        assert_eq!(lb.pick(Key::new(0), &[]), Some(1));
        lb.release(0);
        assert_eq!(lb.pick(Key::new(0), &[]), Some(0));
    }
}
