//! Targets that are passed over for a while because a connection to them failed.
//!
//! - Idea: who could not be connected to a moment ago will hardly be there now, so all requests of that balancer go
//!   elsewhere, as long as there is an elsewhere. It is no health: it looks at nothing but `connect_failed`.
//! - Signal: failed connections. State: a list of (target, until), empty where all is well.
//! - Cost of a decision: nothing while the list is empty, else its length times that of the request's own exclusions.
//! - Pathologies: one lost connection takes a good target out for the whole time; with `pass_over` longer than an outage,
//!   load stays away after it has come back.
//! - Source: HAProxy's `redispatch`, nginx's `max_fails=1`. In the language: `pass_over=1*s` of every balancer.

/// Targets of one balancer to which a connection failed lately.
#[derive(Clone, Debug, Default)]
pub struct PassedOver {
    /// (target, until), each target once.
    list: Vec<(u32, u64)>,
}

impl PassedOver {
    /// A connection failed: the target is passed over until then, or as long as it was already, if that is longer.
    pub fn connect_failed(&mut self, target: u32, until_ns: u64) {
        match self.list.iter_mut().find(|(t, _)| *t == target) {
            Some((_, until)) => *until = until_ns.max(*until),
            None => self.list.push((target, until_ns)),
        }
    }

    /// Those whose time has come by now are taken again.
    #[inline]
    pub fn expire(&mut self, now_ns: u64) {
        if !self.list.is_empty() {
            self.list.retain(|(_, until)| *until > now_ns);
        }
    }

    /// Whether none is passed over.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Those passed over, each once.
    pub fn targets(&self) -> impl Iterator<Item = u32> {
        self.list.iter().map(|(target, _)| *target)
    }
}

/// What to hand to [`crate::Balancer::pick`] so that both kinds are left out as long as others remain: those that this
/// request excludes, and those that all pass over. Where both together would leave none, the passed over are taken before
/// the excluded are; where all are excluded, exclusion says nothing, and the passed over are left out if they can be.
///
/// `open` is how many targets may be picked at all (of weight above 0, and eligible), `is_open` which; only these count as
/// others. `scratch` is the caller's, so that nothing is allocated in the long run.
#[inline]
pub fn leave_out<'a>(
    open: usize,
    is_open: impl Fn(u32) -> bool,
    excluded: &'a [u32],
    passed_over: &PassedOver,
    scratch: &'a mut Vec<u32>,
) -> &'a [u32] {
    // The balancer's own rule is enough for the one kind alone.
    if passed_over.is_empty() { excluded } else { merge(open, is_open, excluded, passed_over, scratch) }
}

#[cold]
fn merge<'a>(
    open: usize,
    is_open: impl Fn(u32) -> bool,
    excluded: &[u32],
    passed_over: &PassedOver,
    out: &'a mut Vec<u32>,
) -> &'a [u32] {
    out.clear();
    for &target in excluded {
        if is_open(target) && !out.contains(&target) {
            out.push(target);
        }
    }
    let own = out.len();
    if own == open {
        out.clear();
    }
    let from = out.len();
    for target in passed_over.targets() {
        if is_open(target) && !out[..from].contains(&target) {
            out.push(target);
        }
    }
    if out.len() == open {
        out.truncate(from);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Balancer;
    use crate::config::{Balance, Start, Ties};
    use weir_stats::Key;

    const NOW: u64 = 1000;

    fn passed(list: &[(u32, u64)]) -> PassedOver {
        let mut passed = PassedOver::default();
        list.iter().for_each(|(target, until)| passed.connect_failed(*target, *until));
        passed
    }

    #[test]
    fn each_is_passed_over_for_its_time() {
        let mut over = passed(&[(3, 10), (1, 20), (3, 30), (1, 5)]);
        assert_eq!(over.targets().collect::<Vec<_>>(), [3, 1]);
        over.expire(19);
        assert_eq!(over.targets().collect::<Vec<_>>(), [3, 1], "the later end counts");
        over.expire(20);
        assert_eq!(over.targets().collect::<Vec<_>>(), [3], "what ends now has ended");
        over.expire(u64::MAX);
        assert!(over.is_empty());
    }

    /// What may be picked, as a reader believes it at sight.
    fn naive(weights: &[f64], excluded: &[u32], over: &PassedOver) -> Vec<u32> {
        let open: Vec<u32> = (0..weights.len() as u32).filter(|t| weights[*t as usize] > 0.0).collect();
        let without = |from: &[u32], out: &[u32]| -> Vec<u32> {
            let rest: Vec<u32> = from.iter().copied().filter(|t| !out.contains(t)).collect();
            if rest.is_empty() { from.to_vec() } else { rest }
        };
        without(&without(&open, excluded), &over.targets().collect::<Vec<_>>())
    }

    fn policies() -> Vec<Balance> {
        let mut all = vec![Balance::Random];
        for start in [Start::Random, Start::First] {
            all.push(Balance::RoundRobin { start });
        }
        for ties in [Ties::Random, Ties::First, Ties::Rotate] {
            all.push(Balance::LeastConn { ties, error_hold_ns: 0 });
        }
        for (choices, replacement) in [(1, false), (2, false), (2, true), (5, false)] {
            all.push(Balance::P2c { choices, replacement, ties: Ties::Random, error_hold_ns: 0, bias: 1.0 });
        }
        all
    }

    /// Every policy picks of what the naive filter allows, whatever is excluded, passed over or of weight 0.
    #[test]
    fn every_policy_agrees_with_a_filter() {
        for config in policies() {
            let (mut scratch, mut seen) = (Vec::new(), [0; 3]);
            for case in 0..3000u64 {
                let draw = Key::new(5).with(case);
                let n = 1 + draw.below(6);
                let weights: Vec<f64> = (0..n).map(|i| draw.nth(i).below(3) as f64).collect();
                // Lists of their own length, with targets named twice among the excluded.
                let some = |at: u64, most: u64| -> Vec<u32> {
                    let list = draw.with(at);
                    (0..list.below(most + 1)).map(|i| list.nth(i + 1).below(n) as u32).collect()
                };
                let excluded = some(1, 2 * n);
                let over = passed(&some(2, n).into_iter().map(|t| (t, NOW)).collect::<Vec<_>>());
                let allowed = naive(&weights, &excluded, &over);
                let open = weights.iter().filter(|w| **w > 0.0).count();
                let is_open = |t: u32| weights[t as usize] > 0.0;
                let mut lb = Balancer::new(&config, &weights, draw);
                let mut picked = vec![false; weights.len()];
                for i in 0..20 {
                    let out = leave_out(open, is_open, &excluded, &over, &mut scratch);
                    match lb.pick(draw.nth(50 + i), out) {
                        Some(target) => {
                            let name = config.name();
                            assert!(allowed.contains(&target), "{name}: {target} not of {allowed:?}");
                            picked[target as usize] = true;
                        }
                        None => assert_eq!(open, 0),
                    }
                }
                // In turn, and where fewest are in flight, each of those allowed is reached.
                if matches!(config, Balance::RoundRobin { .. } | Balance::LeastConn { .. }) {
                    assert!(allowed.iter().all(|t| picked[*t as usize]), "{} {allowed:?}", config.name());
                }
                let left = allowed.iter().any(|t| !excluded.contains(t));
                let fresh = allowed.iter().any(|t| over.targets().all(|o| o != *t));
                seen[usize::from(!fresh) + usize::from(!left)] += usize::from(open > 0);
            }
            assert!(seen.iter().all(|n| *n > 100), "each case occurs: {seen:?}");
        }
    }

    #[test]
    fn without_failures_the_list_is_the_requests_own() {
        let (mut scratch, none) = (Vec::new(), PassedOver::default());
        let excluded = [4, 4, 2];
        let out = leave_out(9, |_| true, &excluded, &none, &mut scratch);
        assert!(std::ptr::eq(out, &excluded[..]));
        assert_eq!(scratch.capacity(), 0);
    }
}
