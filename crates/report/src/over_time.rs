//! Results over time (`every`): as JSON, as rows of tables, and the worst part in words.

use crate::number;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;
use weir_sim::{Act, FIGURES, OthersOverTime, OverTime, PEAKS, Regained, ScenarioResult, WatchedOverTime};
use weir_stats::Estimate;

/// One number a part, or of the whole run.
pub(crate) struct Row {
    /// The member that it is about.
    pub node: Option<String>,
    /// The path in the JSON.
    pub metric: String,
    /// When the part begins, s; `None`: it is of the whole run.
    pub part_s: Option<f64>,
    pub value: Estimate,
}

/// The rows of a scenario, if it has any.
pub(crate) fn rows(s: &ScenarioResult) -> Vec<Row> {
    let Some(of) = &s.over_time else { return Vec::new() };
    let mut rows = Vec::new();
    let mut add = |metric: &str, values: &mut dyn Iterator<Item = Option<f64>>| {
        rows.extend(values.enumerate().map(|(part, value)| Row {
            node: None,
            metric: format!("over_time.{metric}"),
            part_s: Some(seconds(of, part)),
            value: Estimate { value, low: None, high: None },
        }));
    };
    let mut known = |metric: &str, values: &[f64]| add(metric, &mut values.iter().copied().map(Some));
    known("arrivals_per_s", &of.arrivals_per_s);
    known("responses_per_s", &of.responses_per_s);
    known("ok", &of.ok);
    of.errors.iter().for_each(|(kind, values)| known(&format!("errors.{}", kind.name()), values));
    known("in_flight", &of.in_flight);
    of.connections.iter().for_each(|values| known("connections", values));
    of.opened_per_s.iter().for_each(|values| known("opened_per_s", values));
    for (name, values) in FIGURES.iter().zip(&of.latency_ms) {
        add(&format!("latency_ms.{name}"), &mut values.iter().copied());
    }
    rows.extend(members(of));
    let peaks = PEAKS.iter().zip(&of.peak);
    rows.extend(peaks.map(|(path, value)| Row {
        node: None,
        metric: (*path).to_owned(),
        part_s: None,
        value: *value,
    }));
    rows
}

/// The rows of members.
fn members(of: &OverTime) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |node: &str, metric: &str, values: &[f64]| {
        rows.extend(values.iter().enumerate().map(|(part, value)| Row {
            node: Some(node.to_owned()),
            metric: format!("over_time.{metric}"),
            part_s: Some(seconds(of, part)),
            value: Estimate { value: Some(*value), low: None, high: None },
        }));
    };
    for member in &of.watched {
        add(&member.node, "watched.requests_per_s", &member.requests_per_s);
        add(&member.node, "watched.in_flight", &member.in_flight);
        member.connections.iter().for_each(|values| add(&member.node, "watched.connections", values));
        add(&member.node, "watched.share", &member.share);
    }
    let others = &of.others;
    add("", "others.requests_per_s", &others.requests_per_s);
    add("", "others.in_flight", &others.in_flight);
    others.connections.iter().for_each(|values| add("", "others.connections", values));
    rows.extend(of.regained.iter().map(|of| Row {
        node: Some(of.node.clone()),
        metric: "over_time.regained_s".to_owned(),
        part_s: None,
        value: of.value,
    }));
    rows
}

/// When a part begins, s.
pub(crate) fn seconds(of: &OverTime, part: usize) -> f64 {
    // A product of whole numbers, so that 0.1 s has no tail of digits.
    (part as u128 * u128::from(of.every_ns)) as f64 / 1e9
}

/// The worst part of a simulated scenario in words.
pub(crate) fn worst(s: &ScenarioResult) -> Option<String> {
    worst_of(s.over_time.as_ref()?, "peaks of a replication")
}

/// The worst part in words: the one with the greatest p99, or the highest quantile that is known of any. `peaks`: what the
/// greatest figures are called.
pub(crate) fn worst_of(of: &OverTime, peaks: &str) -> Option<String> {
    // Where few requests arrive in a part, only the greatest latency is known.
    let order = [2, 1, 0, 4];
    let (figure, part) =
        order.into_iter().find_map(|figure| Some((figure, greatest(&of.latency_ms[figure])?)))?;
    let of_part = |figure: usize| of.latency_ms[figure].get(part).copied().flatten();
    let named = |figure: usize| {
        let ms = of_part(figure)?;
        Some(format!("{} {}", shown(FIGURES[figure]), number::plain(Some(ms))))
    };
    let first = named(figure)?;
    let others: Vec<String> =
        [0, 1, 2, 3, 4].into_iter().filter(|f| *f != figure).filter_map(named).collect();
    let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    let (from, to) = (seconds(of, part), seconds(of, part + 1));
    let ended: f64 = of.errors.iter().map(|(_, values)| values[part]).sum::<f64>() + of.ok[part];
    let ok = if ended > 0.0 { of.ok[part] / ended } else { 1.0 };
    let ok = number::percentage(&Estimate { value: Some(ok), low: None, high: None });
    let known = FIGURES.iter().zip(&of.peak).filter(|(_, e)| e.value.is_some());
    let known: Vec<String> =
        known.map(|(name, e)| format!("{} {}", shown(name), number::with_interval(e))).collect();
    Some(format!(
        "worst part: {} to {} s: {first}{others}, {ok} succeeded; {peaks}: {}",
        number::plain(Some(from)),
        number::plain(Some(to)),
        known.join(", ")
    ))
}

fn shown(figure: &str) -> &str {
    if figure == "p999" { "p99.9" } else { figure }
}

/// The first of the parts with the greatest value.
fn greatest(values: &[Option<f64>]) -> Option<usize> {
    let known = values.iter().enumerate().filter_map(|(part, ms)| Some((part, (*ms)?)));
    known.reduce(|a, b| if b.1 > a.1 { b } else { a }).map(|(part, _)| part)
}

/// The result over time as JSON; `peaks` has the estimates of the peaks in the form that all estimates have.
pub(crate) struct Json<'a, P> {
    pub of: &'a OverTime,
    pub peaks: P,
}

impl<P: Serialize> Serialize for Json<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = self.of;
        let mut map = serializer.serialize_map(None)?;
        write_requests(of, &mut map)?;
        map.serialize_entry("watched", &of.watched.iter().map(WatchedRow).collect::<Vec<_>>())?;
        map.serialize_entry("others", &OthersRow(&of.others))?;
        map.serialize_entry("peak", &self.peaks)?;
        map.serialize_entry("regained_s", &of.regained.iter().map(RegainedRow::new).collect::<Vec<_>>())?;
        map.serialize_entry("acts", &of.acts.iter().map(ActRow::new).collect::<Vec<_>>())?;
        map.end()
    }
}

/// A run that was measured once, as its clients see it: nothing of members, and peaks without intervals.
pub(crate) struct OneRun<'a>(pub &'a OverTime);

impl Serialize for OneRun<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let peaks: Vec<_> = FIGURES.into_iter().zip(self.0.peak.map(Interval::from)).collect();
        let mut map = serializer.serialize_map(None)?;
        write_requests(self.0, &mut map)?;
        map.serialize_entry("peak", &Entries(&peaks))?;
        map.end()
    }
}

/// What there is to say of requests and connections.
fn write_requests<M: SerializeMap>(of: &OverTime, map: &mut M) -> Result<(), M::Error> {
    let errors: BTreeMap<&str, &Vec<f64>> =
        of.errors.iter().map(|(kind, values)| (kind.name(), values)).collect();
    let latencies: Vec<_> = FIGURES.into_iter().zip(&of.latency_ms).collect();
    map.serialize_entry("every_s", &(of.every_ns as f64 / 1e9))?;
    map.serialize_entry("arrivals_per_s", &of.arrivals_per_s)?;
    map.serialize_entry("responses_per_s", &of.responses_per_s)?;
    map.serialize_entry("ok", &of.ok)?;
    map.serialize_entry("errors", &errors)?;
    map.serialize_entry("latency_ms", &Entries(&latencies))?;
    map.serialize_entry("in_flight", &of.in_flight)?;
    map.serialize_entry("connections", &of.connections)?;
    map.serialize_entry("opened_per_s", &of.opened_per_s)
}

/// Keys and values in their order.
pub(crate) struct Entries<'a, T>(pub &'a [(&'static str, T)]);

impl<T: Serialize> Serialize for Entries<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

struct WatchedRow<'a>(&'a WatchedOverTime);

impl Serialize for WatchedRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("node", &of.node)?;
        map.serialize_entry("process", &of.process)?;
        map.serialize_entry("requests_per_s", &of.requests_per_s)?;
        map.serialize_entry("in_flight", &of.in_flight)?;
        map.serialize_entry("connections", &of.connections)?;
        map.serialize_entry("share", &of.share)?;
        map.end()
    }
}

struct OthersRow<'a>(&'a OthersOverTime);

impl Serialize for OthersRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("requests_per_s", &of.requests_per_s)?;
        map.serialize_entry("in_flight", &of.in_flight)?;
        map.serialize_entry("connections", &of.connections)?;
        map.end()
    }
}

#[derive(Serialize)]
struct RegainedRow<'a> {
    node: &'a str,
    value: Interval,
}

/// An estimate, as all of them are written.
#[derive(Serialize)]
struct Interval {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl From<Estimate> for Interval {
    fn from(Estimate { value, low, high }: Estimate) -> Interval {
        Interval { value, low, high }
    }
}

impl RegainedRow<'_> {
    fn new(of: &Regained) -> RegainedRow<'_> {
        RegainedRow { node: &of.node, value: of.value.into() }
    }
}

#[derive(Serialize)]
struct ActRow<'a> {
    at_s: f64,
    change: u32,
    node: &'a str,
    what: &'static str,
    by: Option<&'a str>,
    value: Option<f64>,
}

impl ActRow<'_> {
    fn new(act: &Act) -> ActRow<'_> {
        ActRow {
            at_s: act.at_ns as f64 / 1e9,
            change: act.change,
            node: &act.node,
            what: act.what,
            by: act.by.as_deref(),
            value: act.value,
        }
    }
}
