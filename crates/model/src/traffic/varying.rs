//! A Poisson process whose rate changes: `mmpp` and `schedule`.
//!
//! - Idea: with the rate's integral as the clock every such process is a Poisson process of rate 1. Unit
//!   exponentials, one per arrival, are added up and the integral is inverted: time is cut into stretches over which
//!   the rate is linear, so the integral is quadratic and its inverse takes a square root.
//! - Draws: arrival k's exponential is a function of k (it is an argument), stay j of an `mmpp` one of j.
//! - Precision: a position within a stretch is computed from its beginning, so errors do not add up.

use crate::sampler::{LONGEST_NS, Sampler, whole};
use weir_stats::{Key, math};

/// Arrivals in a stretch of a rate that never changes again: few enough for f64, many enough to be cheap.
const HELD: f64 = 1024.0;

/// A time over which the rate is linear.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    length_ns: u64,
    /// Per ns at both ends.
    from: f64,
    to: f64,
}

impl Stretch {
    /// The expected number of arrivals.
    fn area(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.length_ns as f64
    }

    /// The time until `area` arrivals are expected: x of from·x + slope·x²/2 = area, in the form without
    /// cancellation.
    fn inverse(&self, area: f64) -> u64 {
        let slope = (self.to - self.from) / self.length_ns as f64;
        let root = math::sqrt((self.from * self.from + 2.0 * slope * area).max(0.0));
        let x = if area > 0.0 { 2.0 * area / (self.from + root) } else { 0.0 };
        whole(x).min(self.length_ns)
    }
}

/// What changes the rate.
#[derive(Clone, Debug)]
enum Course {
    /// States in a cycle; the stays are exponential.
    Mmpp { states: Vec<(f64, Sampler)>, key: Key, stays: u64 },
    /// Stretches from time 0 on, the next one's index, and what follows the last.
    Schedule { stretches: Vec<Stretch>, next: usize, then: Continuation },
}

#[derive(Clone, Copy, Debug)]
enum Continuation {
    /// The same rate for ever, in stretches like this.
    Hold(Stretch),
    /// The schedule again: the period and its expected number of arrivals.
    Repeat(u64, f64),
    /// No more arrivals.
    End,
}

/// The process.
#[derive(Clone, Debug)]
pub(super) struct Varying {
    course: Course,
    start_ns: u64,
    now: Stretch,
    /// The area of `now`, and how much of it is used up.
    area: f64,
    used: f64,
    ended: bool,
}

impl Varying {
    /// States of these rates per second and mean stays, ns.
    pub fn mmpp(states: &[(f64, u64)], key: Key) -> Varying {
        let silent = !states.iter().any(|(rate, stay)| *rate > 0.0 && *stay > 0);
        let states =
            states.iter().map(|(rate, stay)| (rate / 1e9, Sampler::Exponential(*stay as f64))).collect();
        // The stays have draws of their own.
        Varying::new(Course::Mmpp { states, key: key.with(1), stays: 0 }, silent)
    }

    /// Points of time, ns, and rate per second.
    pub fn schedule(points: &[(u64, f64)], repeat: bool) -> Varying {
        let first = points.first().map_or(0, |(at, _)| *at);
        let last = points.last().map_or((0, 0.0), |(at, rate)| (*at, rate / 1e9));
        let mut stretches = vec![Stretch { length_ns: first, from: 0.0, to: 0.0 }];
        stretches.extend(points.windows(2).map(|w| Stretch {
            length_ns: w[1].0.saturating_sub(w[0].0),
            from: w[0].1 / 1e9,
            to: w[1].1 / 1e9,
        }));
        stretches.retain(|s| s.length_ns > 0);
        let area: f64 = stretches.iter().map(Stretch::area).sum();
        let then = if repeat && last.0 > 0 {
            if area > 0.0 { Continuation::Repeat(last.0, area) } else { Continuation::End }
        } else if last.1 > 0.0 {
            let length_ns = whole(HELD / last.1).max(1);
            Continuation::Hold(Stretch { length_ns, from: last.1, to: last.1 })
        } else {
            Continuation::End
        };
        Varying::new(Course::Schedule { stretches, next: 0, then }, false)
    }

    fn new(course: Course, ended: bool) -> Varying {
        let nothing = Stretch { length_ns: 0, from: 0.0, to: 0.0 };
        Varying { course, start_ns: 0, now: nothing, area: 0.0, used: 0.0, ended }
    }

    /// The next arrival after one more unit exponential.
    pub fn next_ns(&mut self, unit: f64) -> Option<u64> {
        self.next_unless(unit, &|| false).flatten()
    }

    /// The same; `None` if `stop`, which is called now and then, returns true before: there may be very many stretches
    /// without an arrival.
    pub fn next_unless(&mut self, unit: f64, stop: &impl Fn() -> bool) -> Option<Option<u64>> {
        const BETWEEN: u64 = 1 << 16;
        let mut stretches: u64 = 0;
        // The table logarithm may be off by 3e-13 to either side.
        self.used += unit.max(0.0);
        while self.used >= self.area {
            stretches += 1;
            if stretches.is_multiple_of(BETWEEN) && stop() {
                return None;
            }
            if self.ended {
                return Some(None);
            }
            if self.start_ns == u64::MAX {
                return Some(Some(u64::MAX));
            }
            self.used -= self.area;
            self.start_ns = self.start_ns.saturating_add(self.now.length_ns);
            match self.following() {
                Some(stretch) => (self.now, self.area) = (stretch, stretch.area()),
                None => (self.area, self.ended) = (0.0, true),
            }
        }
        Some(Some(self.start_ns.saturating_add(self.now.inverse(self.used))))
    }

    fn following(&mut self) -> Option<Stretch> {
        match &mut self.course {
            Course::Mmpp { states, key, stays } => {
                let (rate, stay) = &states[(*stays % states.len() as u64) as usize];
                let length_ns = stay.draw(key.nth(*stays));
                *stays += 1;
                Some(Stretch { length_ns, from: *rate, to: *rate })
            }
            Course::Schedule { stretches, next, then } => {
                if *next == stretches.len() {
                    let Continuation::Repeat(period_ns, area) = *then else {
                        return if let Continuation::Hold(stretch) = *then { Some(stretch) } else { None };
                    };
                    // Whole periods without an arrival are skipped.
                    let periods = ((self.used / area) as u64).min(LONGEST_NS);
                    self.used = (self.used - periods as f64 * area).max(0.0);
                    self.start_ns = self.start_ns.saturating_add(period_ns.saturating_mul(periods));
                    *next = 0;
                }
                *next += 1;
                Some(stretches[*next - 1])
            }
        }
    }
}

#[cfg(test)]
#[path = "varying_tests.rs"]
mod tests;
