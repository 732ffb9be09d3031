//! How a replication went over time: arrivals and answers with their latencies, queues, nodes that are up, over 100 to
//! 200 equal parts of the run.
//!
//! The length of the run is unknown when it begins. So samples are taken often, and whenever there are twice as many
//! parts as needed, each two are merged: integrals and counts are kept, so nothing is lost. What is left at the end, if
//! it is less than half a part, belongs to the part before: a rate over an instant says nothing.

use super::connections::{ConnectionSample, ConnectionsOverTime};
use super::ends::{Ends, LatencyClass, LatencyOverTime};
use super::fleets::{FleetOverTime, FleetSample};
use super::outages::Mark;
use super::subsets::{SubsetSample, SubsetsOverTime};
use crate::code::Code;
use crate::code::SiteId;
use weir_plan::Point;
use weir_policy::{Kind, Outcome};

/// The most parts.
const MOST: usize = 200;
/// The first distance between samples, ns.
const FIRST: u64 = 1_000;

/// The state at an instant: counts, integrals over time (wrapping), and which nodes are up.
pub(crate) struct StateSample {
    pub at: u64,
    pub arrived: u64,
    pub ended: u64,
    pub in_flight: u64,
    /// By gauge.
    pub busy: Vec<u64>,
    pub waiting: Vec<u64>,
    /// Site, and how many members are up, of each stage that fails and is repaired.
    pub up: Vec<(SiteId, u32)>,
    /// Of each balancer site whose targets' health can change.
    pub pools: Vec<PoolSample>,
    /// Of each fleet that changes.
    pub fleets: Vec<FleetSample>,
    /// Of each site that has connections.
    pub connections: Vec<ConnectionSample>,
    /// Of each balancer site that has subsets.
    pub subsets: Vec<SubsetSample>,
}

/// The targets of a site's balancers, all together.
#[derive(Clone, Copy, Default)]
pub(crate) struct PoolSample {
    pub site: SiteId,
    pub targets: u32,
    pub down: u32,
    pub ejected: u32,
}

/// The samples of a replication.
pub(crate) struct Samples {
    distance: u64,
    all: Vec<StateSample>,
    ends: Ends,
    /// What was down, and when; known at the end.
    pub marks: Vec<Mark>,
}

impl Default for Samples {
    fn default() -> Samples {
        Samples { distance: FIRST, all: Vec::new(), ends: Ends::default(), marks: Vec::new() }
    }
}

impl Samples {
    /// When the next sample is due.
    pub fn next(&self) -> u64 {
        (self.all.len() as u64 + 1).saturating_mul(self.distance)
    }

    /// A request ended since the last sample; as in [`Ends::add`].
    pub fn end(&mut self, latency: Option<u64>, outcome: Outcome, is_good: bool) {
        self.ends.add(latency, outcome, is_good);
    }

    pub fn take_in(&mut self, look: StateSample) {
        // Requests that will never be answered are given up at the time of the last answer, when time has gone on.
        let mut beyond = 0;
        while self.all.last().is_some_and(|last| look.at <= last.at) {
            self.all.pop();
            beyond += 1;
        }
        self.all.push(look);
        self.ends.finish_part();
        (0..beyond).for_each(|_| self.ends.join_last());
        if self.all.len() == MOST {
            let mut number = 0;
            self.all.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.ends.halve();
            self.distance *= 2;
        }
    }

    /// Adds the last part to the one before if it is shorter than half of that.
    pub fn round_off(&mut self) {
        if let [.., before, last] = &self.all[..]
            && (last.at - before.at) * 2 < self.distance
        {
            self.all.remove(self.all.len() - 2);
            self.ends.join_last();
        }
    }
}

/// Queues or servers of a site over time, a number per part.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueOverTime {
    /// The site, in words.
    pub place: String,
    /// How many members it has.
    pub count: u64,
    /// Requests waiting at all of them together, on average.
    pub waiting: Vec<f64>,
    /// Slots or cores in use at all of them together, on average.
    pub busy: Vec<f64>,
}

/// Nodes of a site that fail and are repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct UpOverTime {
    /// The site, in words.
    pub place: String,
    /// How many members it has.
    pub count: u64,
    /// How many of them were up at the end of each part.
    pub up: Vec<u64>,
}

/// The health that the balancers of a site saw in their targets.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolOverTime {
    /// The site, in words.
    pub place: String,
    /// Targets, of all its balancers together.
    pub count: u64,
    /// How many were down by checks at the end of each part.
    pub down: Vec<u64>,
    /// How many were ejected, or on probation after that.
    pub ejected: Vec<u64>,
}

/// A replication over time, all of its requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The length of a part, from 0 on; the last one ends with the run, and is half to one and a half times as long.
    pub part_ns: u64,
    /// When the run ended.
    pub end_ns: u64,
    /// Arrivals.
    pub arrivals: Vec<u64>,
    /// Requests that ended.
    pub responses: Vec<u64>,
    /// Those of them that succeeded within the deadline.
    pub good: Vec<u64>,
    /// Those that failed, by kind; only kinds that occurred.
    pub failures: Vec<(Kind, Vec<u64>)>,
    /// Latencies of the requests that ended.
    pub latency_all: LatencyOverTime,
    /// Latencies of those that succeeded.
    pub latency_ok: LatencyOverTime,
    /// Latencies of the whole replication.
    pub latencies: Vec<LatencyClass>,
    /// Requests in flight, on average.
    pub in_flight: Vec<f64>,
    /// Queues and servers, in the order of a request's path.
    pub queues: Vec<QueueOverTime>,
    /// Nodes that fail and are repaired.
    pub up: Vec<UpOverTime>,
    /// Balancers whose targets' health can change.
    pub pools: Vec<PoolOverTime>,
    /// Fleets that change, of those that the scenario has.
    pub fleets: Vec<FleetOverTime>,
    /// Sites of servers and listeners that have connections.
    pub connections: Vec<ConnectionsOverTime>,
    /// Balancers with subsets.
    pub subsets: Vec<SubsetsOverTime>,
    /// When nodes were down and fleets changed, in order.
    pub marks: Vec<Mark>,
}

impl Series {
    /// When each part ended, ns.
    pub fn ends_ns(&self) -> impl Iterator<Item = u64> {
        let parts = self.arrivals.len() as u64;
        let (part_ns, end_ns) = (self.part_ns, self.end_ns);
        (1..=parts).map(move |n| if n < parts { n * part_ns } else { end_ns })
    }
}

impl Samples {
    pub fn series(&self, point: &Point, code: &Code) -> Series {
        let parts = self.all.len();
        let place = |site: SiteId| point.sites[site.index()].label.clone();
        let mut series = Series {
            part_ns: self.distance,
            end_ns: self.all.last().map_or(0, |look| look.at),
            arrivals: self.between(|look| look.arrived).map(|part| part.0).collect(),
            responses: self.between(|look| look.ended).map(|part| part.0).collect(),
            good: self.ends.good(),
            failures: self.ends.failures(),
            latency_all: self.ends.latency_all(),
            latency_ok: self.ends.latency_ok(),
            latencies: self.ends.classes(),
            in_flight: self.average(|look| look.in_flight),
            marks: self.marks.clone(),
            ..Series::default()
        };
        let mut sites: Vec<SiteId> = Vec::new();
        for &stage in &code.order {
            let stage = &code.stages[stage.index()];
            let Some(gauge) = stage.gauge else { continue };
            let at = sites.iter().position(|site| *site == stage.site).unwrap_or_else(|| {
                sites.push(stage.site);
                let (waiting, busy) = (vec![0.0; parts], vec![0.0; parts]);
                series.queues.push(QueueOverTime { place: place(stage.site), count: 0, waiting, busy });
                sites.len() - 1
            });
            let queue = &mut series.queues[at];
            queue.count += stage.nodes.len() as u64;
            let add = |to: &mut Vec<f64>, more: Vec<f64>| to.iter_mut().zip(more).for_each(|(a, b)| *a += b);
            add(&mut queue.waiting, self.average(|look| look.waiting[gauge as usize]));
            add(&mut queue.busy, self.average(|look| look.busy[gauge as usize]));
        }
        for (index, (site, _)) in self.all.first().map_or(&[][..], |look| &look.up).iter().enumerate() {
            let up = self.all.iter().map(|look| u64::from(look.up[index].1)).collect();
            let count = code.stages.iter().filter(|s| s.site == *site).map(|s| s.nodes.len() as u64).sum();
            match series.up.iter_mut().find(|of| of.place == place(*site)) {
                Some(of) => of.up.iter_mut().zip::<Vec<u64>>(up).for_each(|(a, b)| *a += b),
                None => series.up.push(UpOverTime { place: place(*site), count, up }),
            }
        }
        for (index, first) in self.all.first().map_or(&[][..], |look| &look.pools).iter().enumerate() {
            let each = |of: fn(&PoolSample) -> u32| {
                self.all.iter().map(move |look| u64::from(of(&look.pools[index])))
            };
            series.pools.push(PoolOverTime {
                place: place(first.site),
                count: u64::from(first.targets),
                down: each(|pool| pool.down).collect(),
                ejected: each(|pool| pool.ejected).collect(),
            });
        }
        series.fleets = self.fleets(code);
        series.connections = self.connections(code, &place);
        series.subsets = self.subsets(&place);
        series
    }

    /// The connections of each site that has any.
    fn connections(&self, code: &Code, place: &impl Fn(SiteId) -> String) -> Vec<ConnectionsOverTime> {
        let sites = code.connections.as_ref().map_or(&[][..], |connections| &connections.sites_of_groups);
        let over_time = sites.iter().enumerate().map(|(index, site)| {
            let lengths = self.between(|_| 0).map(|part| part.1);
            let samples = self.all.iter().map(|look| look.connections[index]).zip(lengths);
            ConnectionsOverTime::new(place(*site), samples)
        });
        over_time.collect()
    }

    /// The subsets of each site that has any: of its first stage, if there are several.
    fn subsets(&self, place: &impl Fn(SiteId) -> String) -> Vec<SubsetsOverTime> {
        let mut all: Vec<SubsetsOverTime> = Vec::new();
        for (index, first) in self.all.first().map_or(&[][..], |look| &look.subsets).iter().enumerate() {
            let place = place(first.site);
            if all.iter().all(|of| of.place != place) {
                let samples = self.all.iter().map(|look| look.subsets[index]);
                all.push(SubsetsOverTime::new(place, samples));
            }
        }
        all
    }

    /// The fleets of the scenario.
    fn fleets(&self, code: &Code) -> Vec<FleetOverTime> {
        let Some(changes) = &code.changes else { return Vec::new() };
        let fleets = changes.fleets.iter().enumerate().filter(|(index, _)| changes.is_balanced(*index));
        let over_time = fleets.map(|(index, fleet)| {
            let lengths = self.between(|_| 0).map(|part| part.1);
            let samples = self.all.iter().map(|look| &look.fleets[index]).zip(lengths);
            FleetOverTime::new(fleet.label.clone(), samples)
        });
        over_time.collect()
    }

    /// The increase over each part, and the part's length.
    fn between(&self, of: impl Fn(&StateSample) -> u64) -> impl Iterator<Item = (u64, u64)> {
        let mut before = (0, 0);
        self.all.iter().map(move |look| {
            let (sum, at) = std::mem::replace(&mut before, (of(look), look.at));
            (of(look).wrapping_sub(sum), look.at - at)
        })
    }

    fn average(&self, of: impl Fn(&StateSample) -> u64) -> Vec<f64> {
        self.between(of).map(|(sum, ns)| if ns > 0 { sum as f64 / ns as f64 } else { 0.0 }).collect()
    }
}
