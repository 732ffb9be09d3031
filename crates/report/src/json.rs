//! The JSON `weir.sim/1` of `docs/spec/language.md#sim-json`: keys always present and in one order, numbers unrounded,
//! `null` for what is not known.

use crate::number::duration;
use crate::{explained, over_time};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::Formatter;
use std::io::{self, Write};
use weir_plan::Value;
use weir_policy::Kind;
use weir_sim::{
    CLOSED, Connections, ExpectationResult, FIGURES, NodeResult, OverTime, PEAKS, ReplicationValues, Results,
    ScenarioResult,
};
use weir_stats::{Estimate, Latency};

pub(crate) fn write(results: &Results, each: bool, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Lines::default());
    Document(&Listing { it: results, each }).serialize(&mut serializer).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// A value to serialise, and whether the values by replication are included.
struct Listing<'a, T> {
    it: &'a T,
    each: bool,
}

/// Serialises `$name(&$type)` as an object with these keys in this order; those after `if` only where that is so.
macro_rules! object {
    ($name:ident($type:ty), $it:ident, { $($key:literal: $value:expr),* $(,)? } $(if $when:expr => { $extra:literal: $more:expr })*) => {
        struct $name<'a>(&'a $type);
        impl Serialize for $name<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $it = self.0;
                let mut map = serializer.serialize_map(None)?;
                $(map.serialize_entry($key, &$value)?;)*
                $(if $when {
                    map.serialize_entry($extra, &$more)?;
                })*
                map.end()
            }
        }
    };
}

object!(Document(Listing<'a, Results>), r, {
    "schema": "weir.sim/1",
    "version": r.it.version,
    "file": r.it.file,
    "plan": r.it.plan,
    "seed": r.it.seed,
    "replications": r.it.replications,
    "overridden": Overridden(r.it),
    "interrupted": r.it.interrupted,
    "scenarios": listings(&r.it.scenarios, r.each).iter().map(Scenario).collect::<Vec<_>>(),
} if r.it.scenarios.iter().any(|s| !s.expectations.is_empty()) => {
    "expectations": r.it.scenarios.iter().flat_map(expected).collect::<Vec<_>>()
});

/// What the command line said instead of the file, other than its parameters.
struct Overridden<'a>(&'a Results);

impl Serialize for Overridden<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(requests) = self.0.requests {
            map.serialize_entry("requests", &requests)?;
        }
        if self.0.stretch > 1 {
            map.serialize_entry("stretch", &self.0.stretch)?;
        }
        map.end()
    }
}

fn listings<T>(all: &[T], each: bool) -> Vec<Listing<'_, T>> {
    all.iter().map(|it| Listing { it, each }).collect()
}

object!(Scenario(Listing<'a, ScenarioResult>), s, {
    "name": s.it.name,
    "params": Params(&s.it.params),
    "requests_hash": s.it.requests_hash,
    "requests": Requests(&s.it.requests),
    "success": s.e(&s.it.success, "success"),
    "goodput_per_s": s.e(&s.it.goodput_per_s, "goodput_per_s"),
    "request_rate_per_s": s.e(&s.it.request_rate_per_s, "request_rate_per_s"),
    "response_rate_per_s": s.e(&s.it.response_rate_per_s, "response_rate_per_s"),
    "attempts_per_request": s.e(&s.it.attempts_per_request, "attempts_per_request"),
    "latency_ms": Latencies(s),
    "connections": s.it.connections.as_ref().map(|it| ConnectionFigures { it, each: s.each.then_some(&s.it.each) }),
    "nodes": listings(&s.it.nodes, s.each).iter().map(Node).collect::<Vec<_>>(),
    "warnings": s.it.warnings,
} if s.it.finished.is_some() => {
    "replications": s.it.finished
} if s.it.over_time.is_some() => {
    "over_time": s.it.over_time.as_ref().map(|of| over_time::Json { of, peaks: Peaks(s, of) })
} if s.it.explained.is_some() => {
    "explained": s.it.explained.as_ref().map(|e| explained::Quantiles(&e.typical))
} if s.it.explained.is_some() => {
    "series": s.it.explained.as_ref().map(|e| explained::OverTime(&e.series))
});

/// The greatest latencies of a part.
struct Peaks<'a>(&'a Listing<'a, ScenarioResult>, &'a OverTime);

impl Serialize for Peaks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Peaks(s, of) = self;
        let all = FIGURES.iter().zip(PEAKS).zip(&of.peak);
        serializer.collect_map(all.map(|((name, path), e)| (name, s.e(e, path))))
    }
}

impl<'a> Listing<'a, ScenarioResult> {
    fn e(&self, e: &'a Estimate, path: &str) -> E<'a> {
        E(e, each_of(&self.it.each, self.each, path))
    }
}

impl<'a> Listing<'a, NodeResult> {
    fn e(&self, e: &'a Estimate, path: &str) -> E<'a> {
        E(e, each_of(&self.it.each, self.each, path))
    }
}

/// The values of an estimate by replication; empty if there is no estimate; `None`: not included.
fn each_of<'a>(values: &'a ReplicationValues, listed: bool, path: &str) -> Option<&'a [f64]> {
    listed.then(|| values.get(path).map_or(&[][..], Vec::as_slice))
}

struct Expectation<'a>(&'a ScenarioResult, &'a ExpectationResult);

fn expected(s: &ScenarioResult) -> impl Iterator<Item = Expectation<'_>> {
    s.expectations.iter().map(move |e| Expectation(s, e))
}

impl Serialize for Expectation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Expectation(s, e) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("scenario", &s.name)?;
        map.serialize_entry("params", &Params(&s.params))?;
        map.serialize_entry("expect", &e.expect)?;
        map.serialize_entry("value", &E(&e.value, None))?;
        map.serialize_entry("holds", &e.holds)?;
        map.end()
    }
}

object!(Requests(weir_sim::Requests), r, {
    "total": r.total,
    "selected": r.selected,
    "ok": r.ok,
    "failed": r.failed,
    "errors": Errors(&r.errors),
});

object!(Latencies(Listing<'a, ScenarioResult>), s, {
    "all": L(s, &s.it.latency_all, "all"),
    "ok": L(s, &s.it.latency_ok, "ok"),
});

object!(Node(Listing<'a, NodeResult>), n, {
    "id": n.it.id,
    "name": n.it.name,
    "kind": n.it.kind,
    "place": n.it.place,
    "count": n.it.count,
    "requests": n.it.requests,
    "errors": Errors(&n.it.errors),
    "utilisation": n.e(&n.it.utilisation, "utilisation"),
    "queue": Queue(n),
    "wait_ms": n.e(&n.it.wait_ms, "wait_ms"),
    "service_ms": n.e(&n.it.service_ms, "service_ms"),
    "latency_part_ms": n.e(&n.it.latency_part_ms, "latency_part_ms"),
    "spread": Spread(n),
} if has_connections(n.it) => {
    "connections": n.it.connections.as_ref().map(|it| ConnectionFigures { it, each: n.each.then_some(&n.it.each) })
});

/// Whether connections lead to or from such a node.
fn has_connections(n: &NodeResult) -> bool {
    matches!(&n.kind[..], "server" | "listen")
}

/// Connections, and the values by replication if they are included.
struct ConnectionFigures<'a> {
    it: &'a Connections,
    each: Option<&'a ReplicationValues>,
}

impl<'a> ConnectionFigures<'a> {
    fn e(&self, e: &'a Estimate, path: &str) -> E<'a> {
        E(e, self.each.map(|each| each.get(path).map_or(&[][..], Vec::as_slice)))
    }
}

impl Serialize for ConnectionFigures<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let it = self.it;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("open", &self.e(&it.open, "connections.open"))?;
        map.serialize_entry("peak", &it.peak)?;
        map.serialize_entry("opened_per_s", &self.e(&it.opened_per_s, "connections.opened_per_s"))?;
        map.serialize_entry(
            "handshakes_per_s",
            &self.e(&it.handshakes_per_s, "connections.handshakes_per_s"),
        )?;
        map.serialize_entry("closed_per_s", &EndRates(self))?;
        map.serialize_entry("reused", &self.e(&it.reused, "connections.reused"))?;
        map.serialize_entry("streams", &self.e(&it.streams, "connections.streams"))?;
        map.serialize_entry("spread", &ConnectionSpread(self))?;
        map.end()
    }
}

struct EndRates<'a>(&'a ConnectionFigures<'a>);

impl Serialize for EndRates<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ends = CLOSED.iter().zip(&self.0.it.closed_per_s);
        let reason = |path: &'static str| path.rsplit('.').next().unwrap_or(path);
        serializer.collect_map(ends.map(|(path, e)| (reason(path), self.0.e(e, path))))
    }
}

object!(ConnectionSpread(ConnectionFigures<'a>), held, {
    "min": held.it.spread_min,
    "max": held.it.spread_max,
    "cv": held.e(&held.it.spread_cv, "connections.spread.cv"),
});

object!(Queue(Listing<'a, NodeResult>), n, {
    "mean": n.e(&n.it.queue_mean, "queue.mean"),
    "max": n.it.queue_max,
});

object!(Spread(Listing<'a, NodeResult>), n, {
    "min": n.it.spread_min,
    "max": n.it.spread_max,
    "cv": n.e(&n.it.spread_cv, "spread.cv"),
});

/// An estimate, with the values by replication if they are included.
struct E<'a>(&'a Estimate, Option<&'a [f64]>);

impl Serialize for E<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let E(e, each) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("value", &e.value)?;
        map.serialize_entry("low", &e.low)?;
        map.serialize_entry("high", &e.high)?;
        if let Some(each) = each {
            map.serialize_entry("each", each)?;
        }
        map.end()
    }
}

struct L<'a>(&'a Listing<'a, ScenarioResult>, &'a Latency, &'a str);

impl Serialize for L<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let L(s, l, set) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("min", &l.min)?;
        let all = [
            ("mean", &l.mean),
            ("p50", &l.p50),
            ("p90", &l.p90),
            ("p95", &l.p95),
            ("p99", &l.p99),
            ("p999", &l.p999),
        ];
        for (name, e) in all {
            map.serialize_entry(
                name,
                &E(e, each_of(&s.it.each, s.each, &format!("latency_ms.{set}.{name}"))),
            )?;
        }
        map.serialize_entry("max", &l.max)?;
        map.end()
    }
}

struct Errors<'a>(&'a [(Kind, u64)]);

impl Serialize for Errors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(kind, n)| (kind.name(), n)))
    }
}

pub(crate) struct Params<'a>(pub(crate) &'a [(String, Value)]);

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, Param(value))))
    }
}

struct Param<'a>(&'a Value);

impl Serialize for Param<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Bool(b) => serializer.serialize_bool(*b),
            Value::Int(i) => serializer.serialize_i64(*i),
            Value::Float(x) => serializer.serialize_f64(*x),
            Value::Duration { ns } => serializer.serialize_str(&duration(*ns)),
            Value::Text(s) => serializer.serialize_str(s),
        }
    }
}

/// Lines that a person can read and a `diff` can show: one per key of the document and of a scenario, one per node.
pub(crate) struct Lines {
    /// For each open bracket, whether its members are on lines of their own.
    open: Vec<bool>,
    empty: bool,
    /// Members of objects with fewer brackets around them are on lines of their own.
    objects: usize,
    /// Those of arrays are with at most this number of brackets.
    arrays: usize,
    indent: &'static [u8],
}

impl Default for Lines {
    fn default() -> Lines {
        let (objects, arrays) = (Self::SCENARIO_DEPTH, Self::SCENARIO_DEPTH);
        Lines { open: Vec::new(), empty: false, objects, arrays, indent: b" " }
    }
}

impl Lines {
    /// The document and its scenarios have this many brackets around them.
    const SCENARIO_DEPTH: usize = 3;

    /// For a document without scenarios: all is on lines of its own but numbers of an array.
    pub fn indented() -> Lines {
        Lines { objects: usize::MAX, arrays: 1, indent: b"  ", ..Lines::default() }
    }

    fn begin(&mut self, lines: bool) {
        self.open.push(lines);
        self.empty = true;
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        let lines = self.open.pop().unwrap_or(false);
        if lines && !self.empty {
            self.new_line(out)?;
        }
        self.empty = false;
        Ok(())
    }

    fn member<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        let lines = self.open.last().copied().unwrap_or(false);
        if !first {
            out.write_all(if lines { b"," } else { b", " })?;
        }
        if lines {
            self.new_line(out)?;
        }
        Ok(())
    }

    fn new_line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        self.open.iter().try_for_each(|_| out.write_all(self.indent))
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        // An array of numbers is on one line.
        self.begin(self.open.len() <= self.arrays);
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out)?;
        out.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.member(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.empty = false;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(self.open.len() < self.objects);
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out)?;
        out.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.member(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.empty = false;
        Ok(())
    }
}
