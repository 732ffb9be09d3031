//! The scenarios of a page compared: each with the baseline, and each with each other, to say which is best.

use crate::compare::{Compared, Comparison, Pairing, Verdict};
use crate::saved::{Design, SavedResult};
use crate::{comparison, entry};
use std::collections::HashMap;
use weir_sim::Results;

/// The statistics that a page compares, the first for the verdict in words where it is known.
const STATISTICS: [&str; 7] = ["p99", "p95", "p50", "mean", "success", "ok_p50", "ok_p99"];

/// With more scenarios than this it is not said which is best: that takes a comparison of each with each.
const MOST: usize = 12;

/// A scenario that is compared with its baseline.
pub(super) struct Rival<'c> {
    pub number: usize,
    /// Its own name, without the point of the sweep.
    pub name: &'c str,
    pub statistics: &'c [Compared],
}

/// What is compared with what.
pub(super) struct Contest<'a> {
    /// Baseline and other, by number.
    against: Vec<(usize, usize)>,
    comparison: Comparison<'a>,
    /// The same of every two, if there are few at one point of the sweep.
    pairs: Vec<(usize, usize)>,
    every: Comparison<'a>,
    /// The name of the baseline, or of its point.
    pub baseline: String,
    /// Whether there are several points of a sweep, at each of which the scenarios are compared.
    pub has_points: bool,
}

impl<'a> Contest<'a> {
    /// Of a result with one scenario alone there is none. `baseline`: the name of a scenario.
    pub fn new(results: &Results, saved: &'a SavedResult, baseline: Option<&str>) -> Option<Contest<'a>> {
        let designs = &saved.designs;
        let name = baseline.or(designs.first().map(|d| &d.name[..]))?;
        let against = pairs_with_baseline(designs, name);
        let (first, _) = *against.first()?;
        let has_points = against.iter().any(|(base, _)| *base != first);
        let swept = entry::swept(results);
        let label = entry::label(results.scenarios.get(first)?, &swept);
        let pairs = if has_points || designs.len() > MOST { Vec::new() } else { every_two(designs.len()) };
        let some_failed = comparison::some_failed(results);
        let is_wanted = |of: &str| STATISTICS.contains(&of) && (some_failed || !of.starts_with("ok_"));
        let compare = |pairs: &[(usize, usize)]| {
            let pairings: Vec<Pairing<'a>> = pairs.iter().map(|(a, b)| pairing(saved, *a, *b)).collect();
            Comparison::select(&pairings, &is_wanted)
        };
        Some(Contest {
            comparison: compare(&against),
            every: compare(&pairs),
            against,
            pairs,
            baseline: if has_points { name.to_owned() } else { label },
            has_points,
        })
    }

    /// Those that are compared with the baseline, in the order of the result.
    pub fn rivals(&self) -> impl Iterator<Item = Rival<'_>> {
        self.against.iter().zip(&self.comparison.pairs).map(|((_, number), pair)| Rival {
            number: *number,
            name: &pair.of.b.1.name,
            statistics: &pair.statistics,
        })
    }

    /// The statistics that are compared, in the order in which they are shown.
    pub fn statistics(&self) -> Vec<&'static str> {
        let known = |name: &&str| {
            self.rivals()
                .any(|r| find(r.statistics, name).is_some_and(|c| c.difference.estimate.value.is_some()))
        };
        ["success", "mean", "p50", "p95", "p99", "ok_p50", "ok_p99"].into_iter().filter(known).collect()
    }

    /// The statistic of the verdict: the first of which something can be said of every scenario.
    pub fn headline(&self) -> Option<&'static str> {
        let is_told = |name: &&str| {
            self.rivals().all(|r| find(r.statistics, name).is_some_and(|c| c.difference.p.is_some()))
        };
        STATISTICS.into_iter().filter(|name| !name.starts_with("ok_")).find(is_told)
    }

    /// Of each statistic in which scenarios differ: the scenario that is better than every other, if there is one.
    /// `None` if not every two were compared.
    pub fn best(&self) -> Option<Vec<(&'static str, Option<usize>)>> {
        let count = self.pairs.iter().map(|pair| pair.1 + 1).max()?;
        let beats = |name: &str, winner: usize, loser: usize| {
            let (pair, swapped) =
                if winner < loser { ((winner, loser), false) } else { ((loser, winner), true) };
            let at = self.pairs.iter().position(|known| *known == pair);
            let found = at.and_then(|at| self.every.statistics().nth(at)).and_then(|all| find(all, name));
            // A pair is in order, and its verdict is on the second.
            let second_is_better = if name == "success" { Verdict::More } else { Verdict::Less };
            found.is_some_and(|c| match c.verdict {
                Verdict::NotSignificant => false,
                verdict => (verdict == second_is_better) == swapped,
            })
        };
        let differs = |name: &&str| {
            let of_it = self.every.statistics().filter_map(|all| find(all, name));
            of_it.into_iter().any(|c| c.difference.p.is_some_and(|p| p < 1.0))
        };
        let winner = |name| {
            (0..count).find(|at| (0..count).filter(|other| other != at).all(|other| beats(name, *at, other)))
        };
        Some(self.statistics().into_iter().filter(differs).map(|name| (name, winner(name))).collect())
    }
}

pub(super) fn find<'c>(statistics: &'c [Compared], name: &str) -> Option<&'c Compared> {
    statistics.iter().find(|c| c.name == name)
}

/// The baseline and the rival of each comparison, by number: scenarios are compared at the same point of a sweep; the
/// points of one scenario alone with its first.
fn pairs_with_baseline(designs: &[Design], name: &str) -> Vec<(usize, usize)> {
    let of_name = || (0..designs.len()).filter(|at| designs[*at].name == name);
    if designs.iter().all(|d| d.name == name) {
        return of_name().skip(1).map(|at| (0, at)).collect();
    }
    let mut baselines = HashMap::new();
    for at in of_name() {
        baselines.entry(&designs[at].params).or_insert(at);
    }
    let rivals = (0..designs.len()).filter(|at| designs[*at].name != name);
    rivals.filter_map(|at| Some((*baselines.get(&designs[at].params)?, at))).collect()
}

fn every_two(count: usize) -> Vec<(usize, usize)> {
    (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
}

fn pairing(saved: &SavedResult, a: usize, b: usize) -> Pairing<'_> {
    let (first, second) = (&saved.designs[a], &saved.designs[b]);
    let requests = |d: &Design| d.requests_hash.clone().map(|hash| (hash, d.replications));
    let paired = requests(first).is_some() && requests(first) == requests(second);
    Pairing { a: (saved, first), b: (saved, second), paired }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn design(name: &str, point: usize) -> Design {
        Design {
            name: name.to_owned(),
            replications: 2,
            params: vec![("n".to_owned(), json!(point))],
            requests_hash: None,
            warnings: Vec::new(),
            selected: 1,
            failed: false,
            statistics: Vec::new(),
        }
    }

    #[test]
    fn scenarios_are_compared_at_the_same_point() {
        let two = [design("a", 1), design("b", 1), design("a", 2), design("b", 2), design("b", 3)];
        assert_eq!(pairs_with_baseline(&two, "a"), [(0, 1), (2, 3)]);
        assert_eq!(pairs_with_baseline(&two, "b"), [(1, 0), (3, 2)]);
        let one = [design("a", 1), design("a", 2), design("a", 3)];
        assert_eq!(pairs_with_baseline(&one, "a"), [(0, 1), (0, 2)]);
        assert_eq!(pairs_with_baseline(&two, "c"), []);
    }

    /// A search through all scenarios for each took minutes here.
    #[test]
    fn a_sweep_of_many_points_is_paired_at_once() {
        const POINTS: usize = 50_000;
        let designs: Vec<Design> =
            (0..POINTS).flat_map(|point| ["a", "b"].map(|name| design(name, point))).collect();
        let pairs = pairs_with_baseline(&designs, "a");
        assert_eq!((pairs.len(), pairs.last()), (POINTS, Some(&(2 * POINTS - 2, 2 * POINTS - 1))));
    }
}
