//! The contract's JSON, `weir.sim/1`: keys always present and in one order, numbers unrounded, `null` for what cannot be
//! said.

use crate::number::duration;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::Formatter;
use std::io::{self, Write};
use weir_policy::Kind;
use weir_sim::{NodeResult, Results, ScenarioResult};
use weir_stats::{Estimate, Latency};
use weir_topology::plan::Value;

pub(crate) fn write(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Lines::default());
    Document(results).serialize(&mut serializer).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// Serialises `$name(&$type)` as an object with these keys in this order.
macro_rules! object {
    ($name:ident($type:ty), $it:ident, { $($key:literal: $value:expr),* $(,)? }) => {
        struct $name<'a>(&'a $type);
        impl Serialize for $name<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $it = self.0;
                let mut map = serializer.serialize_map(None)?;
                $(map.serialize_entry($key, &$value)?;)*
                map.end()
            }
        }
    };
}

object!(Document(Results), r, {
    "schema": "weir.sim/1",
    "version": r.version,
    "file": r.file,
    "plan": r.plan,
    "seed": r.seed,
    "replications": r.replications,
    "interrupted": r.interrupted,
    "scenarios": r.scenarios.iter().map(Scenario).collect::<Vec<_>>(),
});

object!(Scenario(ScenarioResult), s, {
    "name": s.name,
    "params": Params(&s.params),
    "requests": Requests(&s.requests),
    "success": E(&s.success),
    "goodput_per_s": E(&s.goodput_per_s),
    "request_rate_per_s": E(&s.request_rate_per_s),
    "response_rate_per_s": E(&s.response_rate_per_s),
    "attempts_per_request": E(&s.attempts_per_request),
    "latency_ms": Latencies(s),
    "nodes": s.nodes.iter().map(Node).collect::<Vec<_>>(),
    "warnings": s.warnings,
});

object!(Requests(weir_sim::Requests), r, {
    "total": r.total,
    "selected": r.selected,
    "ok": r.ok,
    "failed": r.failed,
    "errors": Errors(&r.errors),
});

object!(Latencies(ScenarioResult), s, {
    "all": L(&s.latency_all),
    "ok": L(&s.latency_ok),
});

object!(Node(NodeResult), n, {
    "id": n.id,
    "name": n.name,
    "kind": n.kind,
    "place": n.place,
    "count": n.count,
    "requests": n.requests,
    "errors": Errors(&n.errors),
    "utilisation": E(&n.utilisation),
    "queue": Queue(n),
    "wait_ms": E(&n.wait_ms),
    "service_ms": E(&n.service_ms),
    "latency_part_ms": E(&n.latency_part_ms),
    "spread": Spread(n),
});

object!(Queue(NodeResult), n, {
    "mean": E(&n.queue_mean),
    "max": n.queue_max,
});

object!(Spread(NodeResult), n, {
    "min": n.spread_min,
    "max": n.spread_max,
    "cv": E(&n.spread_cv),
});

object!(E(Estimate), e, {
    "value": e.value,
    "low": e.low,
    "high": e.high,
});

object!(L(Latency), l, {
    "min": l.min,
    "mean": E(&l.mean),
    "p50": E(&l.p50),
    "p90": E(&l.p90),
    "p95": E(&l.p95),
    "p99": E(&l.p99),
    "p999": E(&l.p999),
    "max": l.max,
});

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
#[derive(Default)]
struct Lines {
    /// For each open bracket, whether its members stand on lines of their own.
    open: Vec<bool>,
    empty: bool,
}

impl Lines {
    /// The document and its scenarios have this many brackets around them.
    const SCENARIO_DEPTH: usize = 3;

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
        self.open.iter().try_for_each(|_| out.write_all(b" "))
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(true);
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
        self.begin(self.open.len() < Self::SCENARIO_DEPTH);
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
