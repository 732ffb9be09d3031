//! New arguments for a balancer while requests are in flight: the state of targets that stay is kept.

use super::on_loop::PerLoop;
use super::{Upstream, balancer, named};
use crate::balance::Balance;
use crate::upstream::passed_over::PassedOver;
use crate::{TargetChange, TargetId, TargetNames};
use weir_stats::Key;

impl Upstream {
    /// Replaces the policy, on the only loop or the first. `in_flight`: requests that the caller has sent to each
    /// target, and counts that it holds; they come back to this policy. `names`: used by hashes.
    pub fn change_policy(
        &mut self,
        now_ns: u64,
        balance: &Balance,
        names: impl Into<TargetNames>,
        in_flight: impl Fn(TargetId) -> u32,
        draw: Key,
    ) {
        let before = self.roster().clone();
        let names = named(balance, names);
        let mut new = balancer(balance, before.weights(), names.clone(), draw);
        new.change(now_ns, |roster| {
            roster.change(before.gone().map(TargetChange::Remove), &names);
            for target in TargetId::all(before.len()) {
                roster.set_eligible(target, before.is_eligible(target));
            }
            roster.hide_as(&before);
        });
        for target in TargetId::all(before.len()) {
            (0..in_flight(target)).for_each(|_| new.take(target));
        }
        let first = &mut self.loops.first;
        new.learn_from(&first.balancer);
        let passed_over = std::mem::replace(&mut first.passed_over, PassedOver::new(0));
        let preference = first.preference.take();
        debug_assert!(preference.is_none() || balance.takes_subsets(), "the language refuses that");
        *first = PerLoop { preference, ..PerLoop::new(new, passed_over) };
        self.measures = balance.traits().measures;
        let ramps = !balance.traits().hashes;
        if std::mem::replace(&mut self.ramps, ramps) != ramps {
            // Weights are those that the former policy sees of the same health.
            self.followed = None;
        }
        self.simple = !self.measures && !self.counting && !self.health.listens();
        self.simplify();
    }

    /// Sets the time for which targets are passed over after a failed connection, ns.
    pub fn pass_over_for(&mut self, lasts_ns: u64) {
        if self.loops.first.passed_over.lasts_ns() != lasts_ns {
            self.loops.first.passed_over = PassedOver::new(lasts_ns);
            self.simplify();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::Ask;
    use crate::config::{LeastConnArgs, PeakEwmaArgs, Ties};
    use crate::upstream::{PickOutcome, UpstreamConfig};

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn ask(now_ns: u64) -> Ask<'static> {
        Ask { draw: Key::new(now_ns), key: None, now_ns, exclude: &[], sticky: None }
    }

    fn least_conn() -> Balance {
        Balance::LeastConn(LeastConnArgs { ties: Ties::First, error_hold_ns: 0 })
    }

    #[test]
    fn requests_in_flight_come_back_to_the_new_policy() {
        let mut upstream =
            Upstream::new(&Balance::Random, UpstreamConfig::default(), &[1.0; 3], &NAMES, 0, Key::new(1));
        upstream.remove(5, TargetId(1));
        upstream.change_policy(10, &least_conn(), &NAMES, |t| [2, 4, 1][t.index()], Key::new(2));
        assert_eq!([0, 1, 2].map(|t| upstream.in_flight(TargetId(t))), [Some(2), Some(4), Some(1)]);
        let PickOutcome::Target(ticket) = upstream.pick(&ask(11)) else { panic!("nobody") };
        assert_eq!(ticket.target, TargetId(2), "it carries least, and the one that is gone is not picked");
        for target in [2, 2, 0, 0, 1, 1, 1, 1] {
            upstream.done(
                12,
                crate::upstream::Ticket { target: TargetId(target), probe: false, met: 0, at_ns: 1 },
                None,
                None,
            );
        }
        assert_eq!(upstream.total_in_flight(), 0);
        upstream.add_at(13, TargetId(1), 1.0, "d");
        upstream.add_at(13, TargetId(3), 1.0, "e");
        assert_eq!(upstream.roster().len(), 4);
    }

    #[test]
    fn estimates_stay_where_the_policy_has_the_same() {
        let ewma = |decay_ns| Balance::PeakEwma(PeakEwmaArgs { decay_ns, default_rtt_ns: 1_000_000 });
        let mut upstream =
            Upstream::new(&ewma(10), UpstreamConfig::default(), &[1.0; 3], &NAMES, 0, Key::new(1));
        let ticket = |target| crate::upstream::Ticket { target, probe: false, met: 0, at_ns: 0 };
        for target in [0, 1] {
            upstream.balancer().take(TargetId(target));
            upstream.done(50_000_000, ticket(TargetId(target)), None, None);
        }
        upstream.change_policy(50_000_000, &ewma(1_000_000_000), &NAMES, |_| 0, Key::new(2));
        // Two are drawn and the better one is picked: without estimates each would be picked a third of the time.
        let mut picked = [0; 3];
        for at in 0..60 {
            let PickOutcome::Target(ticket) = upstream.pick(&ask(50_000_000 + at)) else { panic!("nobody") };
            picked[ticket.target.index()] += 1;
            upstream.cancelled(50_000_001, ticket);
        }
        assert!(picked[2] > 33, "the others are known to be slow: {picked:?}");
    }
}
