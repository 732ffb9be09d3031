//! How a replication went over time: requests that come and go, queues, what is up; over 100 to 200 equal parts of it.
//!
//! How long it will take is not known as it begins. So it is looked at often, and whenever there are twice as many parts as are
//! wanted each two become one: integrals are kept, so nothing is lost by that.

use crate::code::Code;
use weir_plan::Point;

/// Parts at most.
const MOST: usize = 200;
/// The first distance between looks, ns.
const FIRST: u64 = 1_000;

/// What had happened by an instant: counts, integrals over time (wrapping), and who is up.
pub(crate) struct Look {
    pub at: u64,
    pub arrived: u64,
    pub ended: u64,
    pub in_flight: u64,
    /// By gauge.
    pub busy: Vec<u64>,
    pub waiting: Vec<u64>,
    /// Site, and members that are up, of each stage that fails by turns.
    pub up: Vec<(u32, u32)>,
    /// Of each place of balancers whose health can change.
    pub pools: Vec<PoolLook>,
}

/// The targets of a place's balancers, all together.
#[derive(Clone, Copy, Default)]
pub(crate) struct PoolLook {
    pub site: u32,
    pub targets: u32,
    pub down: u32,
    pub ejected: u32,
}

/// The looks at a replication.
pub(crate) struct Looks {
    distance: u64,
    all: Vec<Look>,
}

impl Default for Looks {
    fn default() -> Looks {
        Looks { distance: FIRST, all: Vec::new() }
    }
}

impl Looks {
    /// When the next one is due.
    pub fn next(&self) -> u64 {
        (self.all.len() as u64 + 1).saturating_mul(self.distance)
    }

    pub fn take_in(&mut self, mut look: Look) {
        // What will never be answered is given up at the time when something happened last.
        if let Some(last) = self.all.last_mut().filter(|last| look.at <= last.at) {
            look.at = last.at;
            *last = look;
            return;
        }
        self.all.push(look);
        if self.all.len() == MOST {
            let mut number = 0;
            self.all.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.distance *= 2;
        }
    }
}

/// Queues or servers of a site over time, a number for each part.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueOverTime {
    /// The site, in words.
    pub place: String,
    /// How many members.
    pub count: u64,
    /// Requests that waited, at all of them together, on average.
    pub waiting: Vec<f64>,
    /// Slots or cores in use, likewise.
    pub busy: Vec<f64>,
}

/// Nodes of a site that fail by turns.
#[derive(Clone, Debug, PartialEq)]
pub struct UpOverTime {
    /// The site, in words.
    pub place: String,
    /// How many members.
    pub count: u64,
    /// How many of them were up at the end of each part.
    pub up: Vec<u64>,
}

/// How the balancers of a site saw their targets.
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
    /// How long each part is, from 0 on; the last one is as long as the run.
    pub part_ns: u64,
    /// When the run was over.
    pub end_ns: u64,
    /// Arrivals.
    pub arrivals: Vec<u64>,
    /// Ends of requests.
    pub responses: Vec<u64>,
    /// Requests on their way, on average.
    pub in_flight: Vec<f64>,
    /// Queues and servers, in order of the request's way.
    pub queues: Vec<QueueOverTime>,
    /// What fails by turns.
    pub up: Vec<UpOverTime>,
    /// Balancers whose targets' health can change.
    pub pools: Vec<PoolOverTime>,
}

impl Looks {
    pub fn series(&self, point: &Point, code: &Code) -> Series {
        let parts = self.all.len();
        let place = |site: u32| point.sites[site as usize].label.clone();
        let mut series = Series {
            part_ns: self.distance,
            end_ns: self.all.last().map_or(0, |look| look.at),
            arrivals: self.between(|look| look.arrived).map(|part| part.0).collect(),
            responses: self.between(|look| look.ended).map(|part| part.0).collect(),
            in_flight: self.average(|look| look.in_flight),
            ..Series::default()
        };
        let mut sites: Vec<u32> = Vec::new();
        for &stage in &code.order {
            let stage = &code.stages[stage as usize];
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
            let each =
                |of: fn(&PoolLook) -> u32| self.all.iter().map(move |look| u64::from(of(&look.pools[index])));
            series.pools.push(PoolOverTime {
                place: place(first.site),
                count: u64::from(first.targets),
                down: each(|pool| pool.down).collect(),
                ejected: each(|pool| pool.ejected).collect(),
            });
        }
        series
    }

    /// What was added in each part, and how long it is.
    fn between(&self, of: impl Fn(&Look) -> u64) -> impl Iterator<Item = (u64, u64)> {
        let mut before = (0, 0);
        self.all.iter().map(move |look| {
            let (sum, at) = std::mem::replace(&mut before, (of(look), look.at));
            (of(look).wrapping_sub(sum), look.at - at)
        })
    }

    fn average(&self, of: impl Fn(&Look) -> u64) -> Vec<f64> {
        self.between(of).map(|(sum, ns)| if ns > 0 { sum as f64 / ns as f64 } else { 0.0 }).collect()
    }
}
