//! Subsets over time: how many a balancer has, and how many targets are in them.

use crate::code::SiteId;

/// The subsets of a site's first balancer at an instant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SubsetSample {
    pub site: SiteId,
    pub count: u32,
    pub least: u32,
    pub most: u32,
    /// The balancer's targets.
    pub targets: u32,
}

/// The subsets of a site's first balancer, at the end of each part.
#[derive(Clone, Debug, PartialEq)]
pub struct SubsetsOverTime {
    /// The site, in words.
    pub place: String,
    /// How many subsets there are.
    pub count: Vec<u64>,
    /// Targets in the smallest.
    pub least: Vec<u64>,
    /// Targets in the largest.
    pub most: Vec<u64>,
    /// The balancer's targets.
    pub targets: Vec<u64>,
}

impl SubsetsOverTime {
    /// From a sample of each part.
    pub(crate) fn new(place: String, samples: impl Iterator<Item = SubsetSample> + Clone) -> SubsetsOverTime {
        let each =
            |of: fn(&SubsetSample) -> u32| samples.clone().map(|sample| u64::from(of(&sample))).collect();
        SubsetsOverTime {
            place,
            count: each(|sample| sample.count),
            least: each(|sample| sample.least),
            most: each(|sample| sample.most),
            targets: each(|sample| sample.targets),
        }
    }
}
