//! When nodes were down: the spans of the timelines of `faulty` and `block`, those of equal instants as one mark.

use std::collections::BTreeMap;

/// The most changes of a timeline that are followed: a node that fails more often has a line in `up`, and no marks.
pub(crate) const MOST_CHANGES: u64 = 64;
/// The most marks of a scenario: the longest of the most members.
const MOST_MARKS: usize = 100;

/// A time in which something that the file describes happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The site, in words.
    pub place: String,
    /// What its nodes did: `refuse`, `crash`, `blackhole`, `slow` or `pause`.
    pub what: &'static str,
    /// When it began.
    pub from_ns: u64,
    /// When it ended, or the run.
    pub to_ns: u64,
    /// How many members of the site it concerned.
    pub members: u64,
    /// How many there are.
    pub count: u64,
}

/// A site whose members fail and are repaired.
#[derive(Clone, Debug)]
pub(crate) struct OutageSite {
    pub place: String,
    pub what: &'static str,
    pub count: u64,
}

/// The marks, from the spans in which members of sites (by their index) were down.
pub(crate) fn marks(sites: &[OutageSite], spans: impl Iterator<Item = (usize, u64, u64)>) -> Vec<Mark> {
    let mut members: BTreeMap<(u64, u64, usize), u64> = BTreeMap::new();
    for (site, from, to) in spans {
        *members.entry((from, to, site)).or_default() += 1;
    }
    let mut all: Vec<Mark> = members
        .into_iter()
        .filter_map(|((from_ns, to_ns, site), members)| {
            let OutageSite { place, what, count } = sites.get(site)?.clone();
            Some(Mark { place, what, from_ns, to_ns, members, count })
        })
        .collect();
    if all.len() > MOST_MARKS {
        // A stable order: of equals the first.
        all.sort_by_key(|mark| {
            std::cmp::Reverse(u128::from(mark.members) * u128::from(mark.to_ns - mark.from_ns))
        });
        all.truncate(MOST_MARKS);
        all.sort_by_key(|mark| (mark.from_ns, mark.to_ns));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_fail_together_have_one_mark() {
        let site = |place: &str| OutageSite { place: place.to_owned(), what: "refuse", count: 20 };
        let sites = [site("a"), site("b")];
        let spans = (0..20).map(|_| (0, 5, 9)).chain([(1, 5, 9), (1, 7, 8)]);
        let found = marks(&sites, spans);
        let told: Vec<_> = found.iter().map(|m| (&m.place[..], m.from_ns, m.to_ns, m.members)).collect();
        assert_eq!(told, [("a", 5, 9, 20), ("b", 5, 9, 1), ("b", 7, 8, 1)]);
    }

    #[test]
    fn of_too_many_the_largest_stay() {
        let sites = [OutageSite { place: "a".to_owned(), what: "crash", count: 1 }];
        let found = marks(&sites, (0..1_000).map(|n| (0, n * 1_000, n * 1_000 + n + 1)));
        assert_eq!((found.len(), found[0].from_ns, found[99].from_ns), (100, 900_000, 999_000));
    }
}
