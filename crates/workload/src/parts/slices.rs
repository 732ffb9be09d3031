//! What happened in each part of a replication, where its scenario asks for results over time (`every`).
//!
//! A request counts in the part in which it arrived, whenever it ends; answers per second and requests in flight are
//! those of the part itself. All of that follows from the instants at which a request arrived and ended, so an engine
//! reports a request once, when it ends, in any order. Parts are called slices here, since the parts of a latency are
//! something else.

use super::classes::{BITS, Classes, class_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_plan::over_time::{MOST_PARTS, parts};
use weir_policy::{Kind, Outcome};

/// How many kinds of errors there are.
const KINDS: usize = Kind::ALL.len();
/// The quantiles of a slice.
pub const QUANTILES: [f64; 4] = [0.5, 0.95, 0.99, 0.999];
/// How many latencies are kept before they are sorted into their slices: in a simulation, and in a run in real time, whose
/// next request waits for that.
const FRESH: usize = 1 << 18;
const FRESH_LIVE: usize = 1 << 12;
/// The room at first for answers of a slice that may come after the end of arrivals.
const LATE: usize = 64;

/// The slices of a replication that goes on.
#[derive(Clone, Debug)]
pub struct Slices {
    every_ns: u64,
    all: Vec<Slice>,
    /// Latencies that are not yet in their slices: the number of one, and the class.
    fresh: Vec<u32>,
    /// How many of them there may be.
    most_fresh: usize,
    room: Vec<u8>,
    /// By number of a slice that may be the last one, how long after its beginning requests were answered: some of them after
    /// the end of arrivals, and then in no slice.
    late: BTreeMap<usize, Vec<u64>>,
    /// The last arrival.
    last_arrival_ns: u64,
    /// Counts of connections at the ends of slices.
    connections: Vec<ConnectionCount>,
    /// Whether a request came when there were already as many slices as there may be.
    is_beyond: bool,
}

/// The connections to all servers at an instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionCount {
    /// When.
    pub at_ns: u64,
    /// How many there were until then, over time, ns.
    pub open_ns: i128,
    /// How many were opened.
    pub opened: u64,
}

/// What is counted of a slice: its sums, and the instants within it.
#[derive(Clone, Debug, Default)]
struct Slice {
    sums: SliceSums,
    /// How long after its beginning requests arrived, and ended, all together.
    arrived_ns: u128,
    ended_ns: u128,
}

/// The sums of a slice, of one replication or of several.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SliceSums {
    /// Its length, ns.
    pub length_ns: u64,
    /// Requests that arrived in it.
    pub arrivals: u64,
    /// Requests that were answered in it, whenever they arrived.
    pub responses: u64,
    /// Requests that arrived in it and succeeded.
    pub ok: u64,
    /// Those that failed, by kind, in the order of [`Kind::ALL`].
    pub errors: [u64; KINDS],
    /// The least latency of those that arrived in it, ns.
    least_ns: u64,
    /// The greatest.
    most_ns: u64,
    latencies: Classes,
    /// Requests in flight, over time, ns: the higher and the lower half.
    in_flight_ns: [u64; 2],
    /// The time in which connections were counted, ns.
    pub connected_ns: u64,
    /// How many there were, over it.
    connections_ns: [u64; 2],
    /// How many were opened in it.
    pub opened: u64,
}

impl Default for SliceSums {
    fn default() -> SliceSums {
        SliceSums {
            length_ns: 0,
            arrivals: 0,
            responses: 0,
            ok: 0,
            errors: [0; KINDS],
            least_ns: u64::MAX,
            most_ns: 0,
            latencies: Classes::default(),
            in_flight_ns: [0; 2],
            connected_ns: 0,
            connections_ns: [0; 2],
            opened: 0,
        }
    }
}

/// A sum in two halves.
fn whole([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn halves(sum: u128) -> [u64; 2] {
    [(sum >> 64) as u64, sum as u64]
}

impl SliceSums {
    /// Adds those of the same slice of another replication.
    pub fn add(&mut self, more: &SliceSums, room: &mut Vec<u8>) {
        self.length_ns += more.length_ns;
        self.arrivals += more.arrivals;
        self.responses += more.responses;
        self.ok += more.ok;
        self.errors.iter_mut().zip(more.errors).for_each(|(a, b)| *a += b);
        self.least_ns = self.least_ns.min(more.least_ns);
        self.most_ns = self.most_ns.max(more.most_ns);
        self.latencies.join(&more.latencies, room);
        self.in_flight_ns = halves(whole(self.in_flight_ns).wrapping_add(whole(more.in_flight_ns)));
        self.connected_ns += more.connected_ns;
        self.connections_ns = halves(whole(self.connections_ns).wrapping_add(whole(more.connections_ns)));
        self.opened += more.opened;
    }

    /// The quantiles of its latencies, ms, and the greatest.
    pub fn latency_ms(&self) -> [Option<f64>; QUANTILES.len() + 1] {
        let [p50, p95, p99, p999] = self.latencies.quantiles(QUANTILES, self.least_ns, self.most_ns);
        let most = (self.least_ns <= self.most_ns).then_some(self.most_ns as f64);
        [p50, p95, p99, p999, most].map(|ns| ns.map(|ns| ns / 1e6))
    }

    /// Requests in flight on average.
    pub fn in_flight(&self) -> f64 {
        if self.length_ns > 0 { whole(self.in_flight_ns) as f64 / self.length_ns as f64 } else { 0.0 }
    }

    /// Connections on average.
    pub fn connections(&self) -> f64 {
        if self.connected_ns > 0 { whole(self.connections_ns) as f64 / self.connected_ns as f64 } else { 0.0 }
    }
}

impl Slices {
    /// None yet, each of that length, of a run in real time: what they add to a request takes microseconds at most.
    pub fn new_live(every_ns: u64) -> Slices {
        Slices { most_fresh: FRESH_LIVE, ..Slices::new(every_ns) }
    }

    /// None yet, each of that length.
    pub fn new(every_ns: u64) -> Slices {
        Slices {
            every_ns: every_ns.max(1),
            all: Vec::new(),
            fresh: Vec::new(),
            most_fresh: FRESH,
            room: Vec::new(),
            late: BTreeMap::new(),
            last_arrival_ns: 0,
            connections: Vec::new(),
            is_beyond: false,
        }
    }

    /// A request that arrived then has ended, or never will (`None`).
    pub fn end(&mut self, arrived_ns: u64, latency: Option<u64>, outcome: Outcome) {
        let Some(number) = self.number_at(arrived_ns) else {
            self.is_beyond = true;
            return;
        };
        self.last_arrival_ns = self.last_arrival_ns.max(arrived_ns);
        // What was answered in a slice before the last arrival's was answered before the end of arrivals.
        while self.late.first_key_value().is_some_and(|(late, _)| *late < number) {
            self.late.pop_first();
        }
        let slice = &mut self.all[number];
        slice.sums.arrivals += 1;
        slice.arrived_ns += u128::from(arrived_ns % self.every_ns);
        let sums = &mut slice.sums;
        let Some(latency) = latency else {
            sums.errors[Kind::Lost as usize] += 1;
            return;
        };
        match outcome {
            None => sums.ok += 1,
            Some(kind) => sums.errors[kind as usize] += 1,
        }
        (sums.least_ns, sums.most_ns) = (sums.least_ns.min(latency), sums.most_ns.max(latency));
        self.fresh.push((number as u32) << BITS | class_of(latency));
        if self.fresh.len() >= self.most_fresh {
            self.sort_fresh();
        }
        let ended_ns = arrived_ns.saturating_add(latency);
        if let Some(number) = self.number_at(ended_ns) {
            self.all[number].sums.responses += 1;
            self.all[number].ended_ns += u128::from(ended_ns % self.every_ns);
            self.keep_late(number, ended_ns % self.every_ns);
        }
    }

    /// Remembers how long after the beginning of a slice a request was answered, while that may be after the last arrival.
    fn keep_late(&mut self, number: usize, within_ns: u64) {
        let (from_ns, last_ns) = (number as u64 * self.every_ns, self.last_arrival_ns);
        let late = self.late.entry(number).or_default();
        if late.len() == late.capacity() {
            // Arrivals have gone on since, so for most it is known.
            late.retain(|ns| from_ns + ns >= last_ns);
            late.reserve(late.len().max(LATE));
        }
        late.push(within_ns);
    }

    /// The number of the slice of an instant; there is one more than there may be, for the last instant of a run.
    fn number_at(&mut self, at_ns: u64) -> Option<usize> {
        let number = usize::try_from(at_ns / self.every_ns).ok()?;
        if number > MOST_PARTS as usize {
            return None;
        }
        if number >= self.all.len() {
            self.all.resize(number + 1, Slice::default());
        }
        Some(number)
    }

    /// Sorts latencies into their slices.
    fn sort_fresh(&mut self) {
        self.fresh.sort_unstable();
        for of_one in self.fresh.chunk_by(|a, b| a >> BITS == b >> BITS) {
            let Some(slice) = self.all.get_mut((of_one[0] >> BITS) as usize) else { continue };
            let classes = of_one.chunk_by(|a, b| a == b);
            let classes = classes.map(|equal| (equal[0] & ((1 << BITS) - 1), equal.len() as u64));
            slice.sums.latencies.add(classes, &mut self.room);
        }
        self.fresh.clear();
    }

    /// Connections at the end of a slice, or of the run; in ascending order.
    pub fn count_connections(&mut self, count: ConnectionCount) {
        if self.connections.last().is_none_or(|last| last.at_ns < count.at_ns) {
            self.connections.push(count);
        }
    }

    /// Forgets what was counted of connections after an instant.
    pub fn drop_connections_after(&mut self, at_ns: u64) {
        self.connections.retain(|count| count.at_ns <= at_ns);
    }

    /// Whether there would be more slices than there may be.
    pub fn is_beyond(&self) -> bool {
        self.is_beyond || parts(self.last_arrival_ns, self.every_ns) > MOST_PARTS
    }

    /// When the last request arrived of those that have ended, ns.
    pub fn last_arrival_ns(&self) -> u64 {
        self.last_arrival_ns
    }

    /// The sums of all slices up to the end of arrivals; that instant belongs to the last slice.
    pub fn finish(mut self, end_ns: u64) -> Vec<SliceSums> {
        self.sort_fresh();
        let end_ns = end_ns.max(self.last_arrival_ns);
        let number = parts(end_ns, self.every_ns).min(MOST_PARTS) as usize;
        self.all.resize(self.all.len().max(number), Slice::default());
        self.move_end(number, end_ns);
        self.all.truncate(number);
        let mut inside = 0i128;
        for (slice, from_ns) in self.all.iter_mut().zip((0..).map(|n: u64| n * self.every_ns)) {
            let length_ns = self.every_ns.min(end_ns - from_ns);
            slice.close(length_ns, &mut inside);
        }
        self.add_connections(end_ns);
        self.all.into_iter().map(|slice| slice.sums).collect()
    }

    /// The last of that number of slices ends then: what happened at that very instant belongs to it, and answers after it to
    /// none.
    fn move_end(&mut self, number: usize, end_ns: u64) {
        let Some(last) = number.checked_sub(1) else { return };
        let length_ns = end_ns - last as u64 * self.every_ns;
        let late = self.late.remove(&last).unwrap_or_default();
        let slice = &mut self.all[last];
        for ns in late.into_iter().filter(|ns| *ns > length_ns) {
            slice.sums.responses -= 1;
            slice.ended_ns -= u128::from(ns);
        }
        if length_ns < self.every_ns || self.all.len() == number {
            return;
        }
        let mut at_end = std::mem::take(&mut self.all[number]);
        let late = self.late.remove(&number).unwrap_or_default();
        at_end.sums.responses = late.into_iter().filter(|ns| *ns == 0).count() as u64;
        let slice = &mut self.all[last];
        slice.arrived_ns += u128::from(at_end.sums.arrivals) * u128::from(length_ns);
        slice.ended_ns += u128::from(at_end.sums.responses) * u128::from(length_ns);
        slice.sums.add(&at_end.sums, &mut self.room);
    }

    /// What was counted of connections until the end, by slice.
    fn add_connections(&mut self, end_ns: u64) {
        let mut before = ConnectionCount::default();
        let counts = std::mem::take(&mut self.connections);
        for count in counts.into_iter().take_while(|count| count.at_ns <= end_ns) {
            // A count at the end of a slice belongs to it.
            let number = (count.at_ns.saturating_sub(1) / self.every_ns) as usize;
            let Some(Slice { sums, .. }) = self.all.get_mut(number) else { return };
            let open_ns = (count.open_ns - before.open_ns).max(0) as u128;
            sums.connected_ns += count.at_ns - before.at_ns;
            sums.connections_ns = halves(whole(sums.connections_ns).wrapping_add(open_ns));
            sums.opened += count.opened - before.opened;
            before = count;
        }
    }
}

impl Slice {
    /// Its length is known, and how many requests are inside at its beginning; then, at its end.
    fn close(&mut self, length_ns: u64, inside: &mut i128) {
        let Slice { sums, arrived_ns, ended_ns } = self;
        sums.length_ns = length_ns;
        let length = i128::from(length_ns);
        let (came, went) = (i128::from(sums.arrivals), i128::from(sums.responses));
        let came_ns = came * length - i128::try_from(*arrived_ns).unwrap_or(0);
        let went_ns = went * length - i128::try_from(*ended_ns).unwrap_or(0);
        let in_flight_ns = *inside * length + came_ns - went_ns;
        sums.in_flight_ns = halves(in_flight_ns.max(0) as u128);
        *inside += came - went;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::Key;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    /// Arrival and latency of each request, which ends so; the slices of a second up to that end.
    fn counted(requests: &[(u64, Option<u64>, Outcome)], end_ns: Option<u64>) -> Vec<SliceSums> {
        let mut slices = Slices::new(S);
        requests.iter().for_each(|(at, latency, outcome)| slices.end(*at, *latency, *outcome));
        assert!(!slices.is_beyond());
        let end_ns = end_ns.unwrap_or(slices.last_arrival_ns());
        slices.finish(end_ns)
    }

    #[test]
    fn a_request_counts_where_it_arrived_and_its_answer_where_that_was() {
        let requests = [
            (3 * S, Some(100 * MS), None),
            (500 * MS, Some(S), None),
            (S, Some(250 * MS), Some(Kind::Timeout)),
        ];
        let all = counted(&requests, Some(3 * S));
        let of = |what: fn(&SliceSums) -> u64| all.iter().map(what).collect::<Vec<u64>>();
        assert_eq!(of(|s| s.length_ns), [S, S, S]);
        assert_eq!(of(|s| s.arrivals), [1, 1, 1], "what arrives at the end belongs to the last part");
        assert_eq!(of(|s| s.responses), [0, 2, 0], "the last one is answered after the end");
        assert_eq!(of(|s| s.ok), [1, 0, 1]);
        assert_eq!(of(|s| s.errors[Kind::Timeout as usize]), [0, 1, 0]);
        assert_eq!(all.iter().map(SliceSums::in_flight).collect::<Vec<_>>(), [0.5, 0.75, 0.0]);
        let most: Vec<_> = all.iter().map(|s| s.latency_ms()[4]).collect();
        assert_eq!(most, [Some(1_000.0), Some(250.0), Some(100.0)]);
        assert_eq!(all[0].latency_ms()[0], None, "of one request nothing but the greatest is known");
    }

    #[test]
    fn without_a_duration_the_last_part_ends_with_the_last_arrival() {
        let requests = [(0, Some(100 * MS), None), (200 * MS, Some(500 * MS), None)];
        let [only] = &counted(&requests, None)[..] else { panic!("one part") };
        assert_eq!((only.length_ns, only.arrivals, only.responses), (200 * MS, 2, 1));
        assert_eq!(only.in_flight(), 0.5);
        let at_once = counted(&[(0, Some(S), None)], None);
        assert_eq!((at_once.len(), at_once[0].length_ns, at_once[0].in_flight()), (1, 0, 0.0));
    }

    #[test]
    fn a_request_that_is_lost_stays_in_flight() {
        let all = counted(&[(500 * MS, None, None)], Some(3 * S));
        assert_eq!(all.iter().map(SliceSums::in_flight).collect::<Vec<_>>(), [0.5, 1.0, 1.0]);
        assert_eq!((all[0].errors[Kind::Lost as usize], all[0].latency_ms()), (1, [None; 5]));
    }

    /// However many requests a part has.
    #[test]
    fn only_answers_that_may_be_late_are_kept() {
        let mut slices = Slices::new(1_000 * S);
        for n in 0..100_000 {
            slices.end(n * MS, Some(10 * MS), None);
            assert!(slices.late.values().all(|late| late.capacity() <= 4 * LATE));
        }
        let end_ns = slices.last_arrival_ns();
        let [only] = &slices.finish(end_ns)[..] else { panic!("one part") };
        assert_eq!((only.arrivals, only.responses), (100_000, 99_990));
    }

    #[test]
    fn a_run_in_real_time_has_the_same_sums() {
        let draw = |n: u64, use_of: u64| Key::new(7).with(use_of).nth(n);
        let (mut live, mut simulated) = (Slices::new_live(S), Slices::new(S));
        for n in 0..3 * FRESH_LIVE as u64 {
            let (at, latency) = (n * MS, draw(n, 1).below(1 << (20 + n % 13)));
            let outcome = (draw(n, 2).below(5) == 0).then_some(Kind::Timeout);
            live.end(at, Some(latency), outcome);
            simulated.end(at, Some(latency), outcome);
            assert!(live.fresh.len() < FRESH_LIVE);
        }
        let end_ns = live.last_arrival_ns();
        assert_eq!(format!("{:?}", live.finish(end_ns)), format!("{:?}", simulated.finish(end_ns)));
    }

    #[test]
    fn a_run_of_too_many_parts_is_known() {
        let beyond = |at_ns| {
            let mut slices = Slices::new(S);
            slices.end(at_ns, Some(1), None);
            slices.is_beyond()
        };
        assert!(!beyond(MOST_PARTS * S));
        assert!(beyond(MOST_PARTS * S + 1) && beyond(u64::MAX - 1));
    }

    /// Against sums over all requests, for random ones in random order, of one replication and of three added up.
    #[test]
    fn sums_are_those_of_a_naive_count() {
        let mut pooled: Vec<SliceSums> = Vec::new();
        let mut naive_in_flight = vec![0u128; 20];
        for run in 0..3u64 {
            let draw = |n: u64, use_of: u64| Key::new(run).with(use_of).nth(n);
            let end = 20 * S;
            let mut requests: Vec<(u64, Option<u64>, Outcome)> = (0..5_000)
                .map(|n| {
                    let latency = (n % 50 > 0).then(|| draw(n, 2).below(1 << (20 + n % 13)));
                    (draw(n, 1).below(end + 1), latency, (n % 7 == 0).then_some(Kind::Refused))
                })
                .collect();
            let all = counted(&requests, Some(end));
            requests.sort_by_key(|(at, ..)| draw(*at, 3).bits());
            let other = counted(&requests, Some(end));
            assert_eq!(format!("{all:?}"), format!("{other:?}"), "in any order");
            for (number, slice) in (0u64..).zip(&all) {
                let (from, to) = (number * S, number * S + S);
                let within = |at: u64| (from..to).contains(&at) || at == end && to == end;
                let ended = |(at, latency, _): &(u64, Option<u64>, Outcome)| latency.map(|ns| at + ns);
                assert_eq!(slice.arrivals, requests.iter().filter(|r| within(r.0)).count() as u64);
                let ends = requests.iter().filter_map(ended).filter(|at| within(*at));
                assert_eq!(slice.responses, ends.count() as u64, "{number}");
                let inside = requests.iter().map(|r| {
                    let until = ended(r).unwrap_or(u64::MAX).min(to);
                    u128::from(until.saturating_sub(r.0.max(from)))
                });
                let inside: u128 = inside.sum();
                assert_eq!(whole(slice.in_flight_ns), inside);
                naive_in_flight[number as usize] += inside;
            }
            if pooled.is_empty() {
                pooled = all;
            } else {
                pooled.iter_mut().zip(&all).for_each(|(own, more)| own.add(more, &mut Vec::new()));
            }
        }
        assert_eq!(pooled.iter().map(|s| whole(s.in_flight_ns)).collect::<Vec<_>>(), naive_in_flight);
        assert!(pooled.iter().all(|s| s.length_ns == 3 * S && s.latency_ms()[1].is_some()));
    }
}
