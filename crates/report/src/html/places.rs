//! Colours of places: the same place has the same colour in all scenarios and charts, whatever helper of the file made
//! it there.

use crate::chart::COLOURS;
use crate::sites::Names;
use std::collections::{BTreeMap, BTreeSet};
use weir_sim::{NodeResult, ScenarioResult};

/// The places of all scenarios. Scenarios that call one helper have the same place behind another beginning
/// (`p2c/zone/queue`, `random/zone/queue`), so a place is known by its end: the shortest that is one place in every
/// scenario.
pub(super) struct Places<'a> {
    ends: BTreeMap<&'a str, &'a str>,
    /// The ends that have a colour of their own, those with the most time first.
    coloured: Vec<&'a str>,
    names: Names<'a>,
}

/// The ends of a place, the shortest first: `queue`, `app/queue`, `zone/app/queue`.
fn ends(place: &str) -> impl Iterator<Item = &str> {
    let cuts = place.rmatch_indices('/').map(|(at, _)| &place[at + 1..]);
    cuts.chain(std::iter::once(place))
}

/// The shortest end of each place that no other place of any scenario has. `scenarios`: the places of each.
fn unique_ends<'a>(scenarios: impl Iterator<Item = BTreeSet<&'a str>> + Clone) -> BTreeMap<&'a str, &'a str> {
    let mut shared: BTreeSet<&str> = BTreeSet::new();
    for places in scenarios.clone() {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        shared.extend(places.into_iter().flat_map(ends).filter(|end| !seen.insert(*end)));
    }
    let end_of = |place: &'a str| ends(place).find(|end| !shared.contains(end)).unwrap_or(place);
    scenarios.flatten().map(|place| (place, end_of(place))).collect()
}

impl<'a> Places<'a> {
    pub fn new(all: &'a [ScenarioResult]) -> Places<'a> {
        let nodes = || all.iter().flat_map(|s| &s.nodes);
        let ends = unique_ends(all.iter().map(|s| s.nodes.iter().map(|n| &n.place[..]).collect()));
        let coloured = with_most_time(nodes().filter_map(|n| Some((ends[&n.place[..]], spent(n)?))));
        Places { ends, coloured, names: Names::of_sites(nodes()) }
    }

    /// The number of a place's colour; the others are grey.
    pub fn colour(&self, place: &str) -> Option<usize> {
        let end = self.ends.get(place)?;
        self.coloured.iter().position(|known| known == end)
    }

    /// The names of the coloured places, in the order of the colours.
    pub fn named(&self) -> Vec<&str> {
        self.coloured.iter().map(|end| self.name_of_end(end)).collect()
    }

    /// What all scenarios call a place.
    pub fn shared_name<'b>(&'b self, place: &'b str) -> &'b str {
        self.ends.get(place).map_or(place, |end| self.name_of_end(end))
    }

    /// The name or place of those that end so, if it is one, or else as much of the end as they share.
    fn name_of_end<'b>(&'b self, end: &'b str) -> &'b str {
        let mut places = self.ends.iter().filter(|(_, of)| **of == end).map(|(place, _)| *place);
        let Some(first) = places.next() else { return end };
        let rest: Vec<&str> = places.collect();
        if rest.iter().all(|place| self.names.name(place) == self.names.name(first)) {
            return self.names.name(first);
        }
        let is_shared = |end: &&str| rest.iter().all(|place| ends(place).any(|of| of == *end));
        ends(first).filter(is_shared).last().unwrap_or(end)
    }

    /// The name of a place outside of the table of sites.
    pub fn names(&self) -> &Names<'a> {
        &self.names
    }
}

/// The part of the mean latency that is spent at a site, ms.
pub(super) fn spent(n: &NodeResult) -> Option<f64> {
    n.latency_part_ms.value.filter(|ms| *ms > 0.0)
}

/// Those with the most time in all, one for each colour.
fn with_most_time<'a>(times: impl Iterator<Item = (&'a str, f64)>) -> Vec<&'a str> {
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for (end, ms) in times {
        match sums.iter_mut().find(|(known, _)| *known == end) {
            Some((_, sum)) => *sum += ms,
            None => sums.push((end, ms)),
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    sums.into_iter().take(COLOURS).map(|(end, _)| end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_its_ends() {
        assert_eq!(
            ends("p2c/zone#2/queue").collect::<Vec<_>>(),
            ["queue", "zone#2/queue", "p2c/zone#2/queue"]
        );
        assert_eq!(ends("queue").collect::<Vec<_>>(), ["queue"]);
    }

    /// Two zones of one helper, called by helpers of each scenario; one of them has a cache as well.
    #[test]
    fn a_place_is_the_same_whatever_helper_made_it() {
        let first = BTreeSet::from(["p2c/zone/queue", "p2c/zone#2/queue", "p2c/cache/delay"]);
        let second = BTreeSet::from(["site/random/zone/queue", "site/random/zone#2/queue", "timeout"]);
        let ends = unique_ends([first, second].into_iter());
        assert_eq!(ends["p2c/zone/queue"], "zone/queue");
        assert_eq!(ends["site/random/zone/queue"], "zone/queue");
        assert_eq!(ends["site/random/zone#2/queue"], "zone#2/queue");
        assert_eq!((ends["p2c/cache/delay"], ends["timeout"]), ("delay", "timeout"));
        let places = Places { ends, coloured: vec!["zone#2/queue", "delay"], names: Names::default() };
        assert_eq!(places.colour("p2c/zone#2/queue"), places.colour("site/random/zone#2/queue"));
        assert_eq!((places.colour("p2c/zone#2/queue"), places.colour("timeout")), (Some(0), None));
        assert_eq!(places.named(), ["zone#2/queue", "p2c/cache/delay"]);
        assert_eq!(places.shared_name("site/random/zone/queue"), "zone/queue");
    }
}
