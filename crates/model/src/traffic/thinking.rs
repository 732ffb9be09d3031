//! A closed loop: users that think, send a request, wait for its answer, and think again.
//!
//! - In virtual time: the simulator asks for a user's think time before its next request; the first request has one
//!   too.
//! - Draws: a function of the user and of the number of requests it has sent, so the times of answers change no think
//!   time.

use super::Traffic;
use crate::sampler::Sampler;
use weir_stats::Key;

/// The users of a closed loop.
#[derive(Clone, Debug)]
pub struct Thinking {
    users: u32,
    think: Sampler,
    key: Key,
}

impl Thinking {
    /// `None` for open traffic. `key` as for [`super::Arrivals`].
    pub fn new(traffic: &Traffic, key: Key) -> Option<Thinking> {
        let Traffic::Closed { users, think } = traffic else { return None };
        Some(Thinking { users: *users, think: Sampler::new(think), key: traffic.mix(key) })
    }

    /// The number of users.
    pub fn users(&self) -> u32 {
        self.users
    }

    /// The think time of a user (from 0) before its request of that number (from 0), ns.
    #[inline]
    pub fn think_ns(&self, user: u32, request: u64) -> u64 {
        self.think.draw(self.key.with(u64::from(user)).with(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dist;

    #[test]
    fn thoughts_are_independent_and_as_long_as_asked_for() {
        let closed = Traffic::Closed { users: 20, think: Dist::Exponential { mean_ns: 1_000_000 } };
        let thinking = Thinking::new(&closed, Key::new(3)).unwrap();
        assert_eq!(thinking.users(), 20);
        let all: Vec<u64> = (0..20)
            .flat_map(|user| (0..10_000).map(move |k| (user, k)))
            .map(|(u, k)| thinking.think_ns(u, k))
            .collect();
        let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.012, "{mean}");
        assert_ne!(thinking.think_ns(1, 2), thinking.think_ns(2, 1));
        assert_eq!(thinking.think_ns(7, 9), Thinking::new(&closed, Key::new(3)).unwrap().think_ns(7, 9));
        assert_ne!(thinking.think_ns(7, 9), Thinking::new(&closed, Key::new(4)).unwrap().think_ns(7, 9));
    }

    #[test]
    fn open_traffic_has_no_users() {
        assert!(Thinking::new(&Traffic::Poisson { gap_ns: 1.0 }, Key::new(1)).is_none());
    }
}
