//! What typical requests consist of and how a run went over time, in words and as JSON.

use crate::number::plain;
use crate::sites::Names;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;
use weir_policy::history::StageKind;
use weir_sim::{
    ConnectionsOverTime, FleetOverTime, LatencyOverTime, Mark, PoolOverTime, QueueOverTime, Series,
    SubsetsOverTime, TimePart, Typical, UpOverTime,
};

/// The explanation in words.
const TOLD: [f64; 2] = [0.5, 0.99];

/// `p50`, `p999`.
pub(crate) fn name(q: f64) -> String {
    format!("p{}", plain(Some(q * 100.0)).replace('.', ""))
}

/// A part in words, with the name of its site in the table of sites.
pub(crate) fn words(part: &TimePart, names: &Names<'_>) -> String {
    let place = names.name(&part.place);
    match part.what {
        StageKind::Wait => format!("waiting in {place}"),
        StageKind::Work => format!("work in {place}"),
        StageKind::Cross => format!("crossing {place}"),
        StageKind::Backoff => format!("backoff in {place}"),
        StageKind::Hold | StageKind::Answer => format!("at {place}"),
    }
}

/// A line for each explained quantile: its largest parts, as far as there is room.
pub(crate) fn lines(typical: &[Typical], names: &Names<'_>, width: usize) -> Vec<String> {
    let told = typical.iter().filter(|t| TOLD.contains(&t.q) && !t.parts.is_empty());
    told.map(|of| line(of, names, width)).collect()
}

fn line(of: &Typical, names: &Names<'_>, width: usize) -> String {
    let rest = |left: f64| format!(", {} % elsewhere", percent(left));
    let mut line = format!("{}:", name(of.q));
    let mut left = 1.0;
    for (at, part) in of.parts.iter().enumerate() {
        let more =
            format!("{} {} % {}", if at == 0 { "" } else { "," }, percent(part.share), words(part, names));
        let last = left - part.share < 0.005;
        let after = if last { 0 } else { rest(left).chars().count() };
        let fits = line.chars().count() + more.chars().count() + after <= width - 2;
        if at > 0 && (part.share < 0.01 || !fits) {
            break;
        }
        line += &more;
        left -= part.share;
    }
    if left >= 0.005 { line + &rest(left) } else { line }
}

fn percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// By quantile.
pub(crate) struct Quantiles<'a>(pub &'a [Typical]);

impl Serialize for Quantiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|of| (name(of.q), Quantile(of))))
    }
}

struct Quantile<'a>(&'a Typical);

impl Serialize for Quantile<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("latency_ms", &self.0.ms)?;
        map.serialize_entry("requests", &self.0.requests)?;
        map.serialize_entry("parts", &self.0.parts.iter().map(PartRow::new).collect::<Vec<_>>())?;
        map.end()
    }
}

#[derive(Serialize)]
struct PartRow<'a> {
    site: &'a str,
    what: &'static str,
    ms: f64,
    share: f64,
}

impl PartRow<'_> {
    fn new(part: &TimePart) -> PartRow<'_> {
        PartRow { site: &part.place, what: part.what.name(), ms: part.ms, share: part.share }
    }
}

/// The first replication over time.
pub(crate) struct OverTime<'a>(pub &'a Series);

impl Serialize for OverTime<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let s = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("replication", &0)?;
        map.serialize_entry("part_s", &(s.part_ns as f64 / 1e9))?;
        map.serialize_entry("end_s", &(s.end_ns as f64 / 1e9))?;
        map.serialize_entry("arrivals_per_s", &rates(s, &s.arrivals))?;
        map.serialize_entry("responses_per_s", &rates(s, &s.responses))?;
        map.serialize_entry("goodput_per_s", &rates(s, &s.good))?;
        let failures: BTreeMap<&str, Vec<f64>> =
            s.failures.iter().map(|(kind, counts)| (kind.name(), rates(s, counts))).collect();
        map.serialize_entry("failures_per_s", &failures)?;
        map.serialize_entry(
            "latency_ms",
            &LatencyRows { all: (&s.latency_all).into(), ok: (&s.latency_ok).into() },
        )?;
        map.serialize_entry("in_flight", &s.in_flight)?;
        map.serialize_entry("queues", &s.queues.iter().map(QueueRow::new).collect::<Vec<_>>())?;
        map.serialize_entry("up", &s.up.iter().map(UpRow::new).collect::<Vec<_>>())?;
        map.serialize_entry("pools", &s.pools.iter().map(PoolRow::new).collect::<Vec<_>>())?;
        if !s.fleets.is_empty() {
            map.serialize_entry("fleets", &s.fleets.iter().map(FleetRow::new).collect::<Vec<_>>())?;
        }
        if !s.connections.is_empty() {
            let rows = s.connections.iter().map(ConnectionsRow::new).collect::<Vec<_>>();
            map.serialize_entry("connections", &rows)?;
        }
        if !s.subsets.is_empty() {
            let rows = s.subsets.iter().map(SubsetsRow::new).collect::<Vec<_>>();
            map.serialize_entry("subsets", &rows)?;
        }
        map.serialize_entry("marks", &s.marks.iter().map(MarkRow::new).collect::<Vec<_>>())?;
        map.end()
    }
}

/// Counts of the parts as rates per second.
pub(crate) fn rates(series: &Series, counts: &[u64]) -> Vec<f64> {
    let mut from = 0;
    let mut rate = |(n, to): (&u64, u64)| {
        let ns = to - std::mem::replace(&mut from, to);
        if ns > 0 { *n as f64 / (ns as f64 / 1e9) } else { 0.0 }
    };
    counts.iter().zip(series.ends_ns()).map(&mut rate).collect()
}

#[derive(Serialize)]
struct LatencyRows<'a> {
    all: LatencyRow<'a>,
    ok: LatencyRow<'a>,
}

#[derive(Serialize)]
struct LatencyRow<'a> {
    p50: &'a [Option<f64>],
    p95: &'a [Option<f64>],
    p99: &'a [Option<f64>],
}

impl<'a> From<&'a LatencyOverTime> for LatencyRow<'a> {
    fn from(of: &'a LatencyOverTime) -> LatencyRow<'a> {
        LatencyRow { p50: &of.p50, p95: &of.p95, p99: &of.p99 }
    }
}

#[derive(Serialize)]
struct MarkRow<'a> {
    site: &'a str,
    what: &'static str,
    from_s: f64,
    to_s: f64,
    members: u64,
    count: u64,
}

impl MarkRow<'_> {
    fn new(mark: &Mark) -> MarkRow<'_> {
        MarkRow {
            site: &mark.place,
            what: mark.what,
            from_s: mark.from_ns as f64 / 1e9,
            to_s: mark.to_ns as f64 / 1e9,
            members: mark.members,
            count: mark.count,
        }
    }
}

#[derive(Serialize)]
struct ConnectionsRow<'a> {
    site: &'a str,
    open: &'a [f64],
    opened_per_s: &'a [f64],
}

impl ConnectionsRow<'_> {
    fn new(of: &ConnectionsOverTime) -> ConnectionsRow<'_> {
        ConnectionsRow { site: &of.place, open: &of.open, opened_per_s: &of.opened_per_s }
    }
}

#[derive(Serialize)]
struct SubsetsRow<'a> {
    site: &'a str,
    count: &'a [u64],
    least: &'a [u64],
    most: &'a [u64],
    targets: &'a [u64],
}

impl SubsetsRow<'_> {
    fn new(of: &SubsetsOverTime) -> SubsetsRow<'_> {
        let SubsetsOverTime { place, count, least, most, targets } = of;
        SubsetsRow { site: place, count, least, most, targets }
    }
}

#[derive(Serialize)]
struct QueueRow<'a> {
    site: &'a str,
    count: u64,
    waiting: &'a [f64],
    busy: &'a [f64],
}

impl QueueRow<'_> {
    fn new(over_time: &QueueOverTime) -> QueueRow<'_> {
        QueueRow {
            site: &over_time.place,
            count: over_time.count,
            waiting: &over_time.waiting,
            busy: &over_time.busy,
        }
    }
}

#[derive(Serialize)]
struct UpRow<'a> {
    site: &'a str,
    count: u64,
    up: &'a [u64],
}

impl UpRow<'_> {
    fn new(over_time: &UpOverTime) -> UpRow<'_> {
        UpRow { site: &over_time.place, count: over_time.count, up: &over_time.up }
    }
}

#[derive(Serialize)]
struct FleetRow<'a> {
    fleet: &'a str,
    members: &'a [u64],
    unlisted: &'a [u64],
    requests_per_s: BandRow<'a>,
}

#[derive(Serialize)]
struct BandRow<'a> {
    least: &'a [Option<f64>],
    p5: &'a [Option<f64>],
    median: &'a [Option<f64>],
    p95: &'a [Option<f64>],
    most: &'a [Option<f64>],
}

impl FleetRow<'_> {
    fn new(over_time: &FleetOverTime) -> FleetRow<'_> {
        let [least, p5, median, p95, most] = &over_time.requests_per_s;
        FleetRow {
            fleet: &over_time.fleet,
            members: &over_time.members,
            unlisted: &over_time.unlisted,
            requests_per_s: BandRow { least, p5, median, p95, most },
        }
    }
}

#[derive(Serialize)]
struct PoolRow<'a> {
    site: &'a str,
    targets: u64,
    down: &'a [u64],
    ejected: &'a [u64],
}

impl PoolRow<'_> {
    fn new(over_time: &PoolOverTime) -> PoolRow<'_> {
        PoolRow {
            site: &over_time.place,
            targets: over_time.count,
            down: &over_time.down,
            ejected: &over_time.ejected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(place: &str, what: StageKind, share: f64) -> TimePart {
        TimePart { place: place.to_owned(), what, ms: share * 100.0, share }
    }

    #[test]
    fn a_line_says_as_much_as_there_is_room_for() {
        let parts = vec![
            part("dyno/queue", StageKind::Wait, 0.71),
            part("dyno/delay", StageKind::Work, 0.24),
            part("cable", StageKind::Cross, 0.05),
        ];
        let mut of = Typical { q: 0.99, requests: 100, ms: 100.0, parts };
        let names = Names::default();
        let said = lines(std::slice::from_ref(&of), &names, 80);
        assert_eq!(said, ["p99: 71 % waiting in dyno/queue, 24 % work in dyno/delay, 5 % crossing cable"]);
        of.parts[2].place.push_str("_to_the_next_rack");
        let said = lines(std::slice::from_ref(&of), &names, 80);
        assert_eq!(said, ["p99: 71 % waiting in dyno/queue, 24 % work in dyno/delay, 5 % elsewhere"]);
        of.parts.truncate(1);
        assert_eq!(lines(&[of], &names, 80), ["p99: 71 % waiting in dyno/queue, 29 % elsewhere"]);
        assert_eq!(name(0.999), "p999");
    }
}
