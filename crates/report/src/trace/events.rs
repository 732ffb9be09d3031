//! Trace events as Perfetto and Chrome's `about:tracing` read them (Google, Trace Event Format): a process for each
//! scenario and replication, a thread for each request, times in microseconds.
//!
//! Events of a thread may nest but not overlap. So what counts is in the request's own thread, within the request; what
//! ran beside it (branches that lost, work that a queue finished in vain) is in as many further threads as needed.

use super::{Histories, Names, said};
use crate::entry;
use serde_json::{Value, json};
use std::io::{self, Write};
use weir_policy::history::StageKind;
use weir_sim::{History, Series, Stage};

pub(super) fn write(traced: &Histories<'_>, out: &mut dyn Write) -> io::Result<()> {
    let r = traced.results;
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":")?;
    let head = json!({
        "schema": "weir.trace/1", "version": r.version, "file": r.file, "plan": r.plan, "seed": r.seed.to_string(),
        "requests": traced.selection,
    });
    serde_json::to_writer(&mut *out, &head)?;
    write!(out, ",\"traceEvents\":[")?;
    let swept = entry::swept(r);
    let mut events = Events { out, process: 0, thread: 0, first: true };
    for (at, of) in traced.recordings.iter().enumerate() {
        let mut names = Names::new(of.point);
        let label = r.scenarios.get(at).map_or(of.scenario.to_owned(), |s| entry::label(s, &swept));
        let mut known: Vec<(u32, u32)> = Vec::new();
        for history in &of.histories {
            events.process = match known.iter().find(|k| k.0 == history.replication) {
                Some(known) => known.1,
                None => {
                    let process = (at as u32) * r.replications.max(1) + history.replication + 1;
                    known.push((history.replication, process));
                    events.process = process;
                    events.name(
                        "process_name",
                        0,
                        &format!("{label}, replication {}", history.replication),
                    )?;
                    process
                }
            };
            events.history(history, &mut names)?;
        }
        let explained = r.scenarios.get(at).and_then(|s| s.explained.as_ref()).map(|e| &e.series);
        if let Some(series) = of.series.as_ref().or(explained) {
            events.process = (at as u32) * r.replications.max(1) + 1;
            events.fleets(series)?;
        }
    }
    writeln!(out, "\n]}}")
}

struct Events<'a> {
    out: &'a mut dyn Write,
    process: u32,
    /// Threads so far.
    thread: u32,
    first: bool,
}

impl Events<'_> {
    fn event(&mut self, event: &Value, times: &str) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        let text = event.to_string();
        // Times are decimals of whole nanoseconds, which a binary fraction is not.
        write!(self.out, "{separator}{}{times}}}", &text[..text.len() - 1])
    }

    fn name(&mut self, what: &str, thread: u32, name: &str) -> io::Result<()> {
        let event =
            json!({"name": what, "ph": "M", "pid": self.process, "tid": thread, "args": {"name": name}});
        self.event(&event, "")
    }

    /// The members of fleets over time in the first replication, and the requests that come to each, as counters.
    fn fleets(&mut self, series: &Series) -> io::Result<()> {
        for fleet in &series.fleets {
            for (part, at_ns) in series.ends_ns().enumerate() {
                let listed = fleet.members[part].saturating_sub(fleet.unlisted[part]);
                let members = json!({"listed": listed, "unlisted": fleet.unlisted[part]});
                self.counter(&format!("members of {}", fleet.fleet), at_ns, &members)?;
                let [least, _, median, _, most] = &fleet.requests_per_s;
                let rate = |of: &[Option<f64>]| of[part].unwrap_or_default();
                let rates = json!({"least": rate(least), "median": rate(median), "most": rate(most)});
                self.counter(&format!("requests/s of a member of {}", fleet.fleet), at_ns, &rates)?;
            }
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, at_ns: u64, values: &Value) -> io::Result<()> {
        let event = json!({"name": name, "ph": "C", "pid": self.process, "tid": 0, "args": values});
        self.event(&event, &format!(",\"ts\":{}", micros(at_ns)))
    }

    fn history(&mut self, h: &History, names: &mut Names<'_>) -> io::Result<()> {
        let name = format!("request {}", h.request);
        self.thread += 1;
        let own = self.thread;
        self.name("thread_name", own, &name)?;
        let counting = h.stages.iter().filter(|s| s.counts).map(|s| s.to_ns).max().unwrap_or(0);
        let event = json!({
            "name": format!("{name}: {}", said(h.outcome)), "cat": "request", "ph": "X", "pid": self.process, "tid": own,
            "args": {"request": h.request, "replication": h.replication, "outcome": said(h.outcome), "selected": h.selected},
        });
        self.event(&event, &times(h.arrived_ns, h.latency_ns.unwrap_or(counting)))?;
        // When each thread beside the request's own is free again.
        let mut beside: Vec<u64> = Vec::new();
        for stage in &h.stages {
            let thread = if stage.counts {
                own
            } else {
                let free = beside.iter().position(|end| *end <= stage.from_ns).unwrap_or(beside.len());
                if free == beside.len() {
                    beside.push(0);
                    self.name("thread_name", own + 1 + free as u32, &format!("{name}, beside"))?;
                }
                beside[free] = stage.to_ns;
                own + 1 + free as u32
            };
            self.stage(h, stage, thread, names)?;
        }
        self.thread += beside.len() as u32;
        Ok(())
    }

    fn stage(&mut self, h: &History, s: &Stage, thread: u32, names: &mut Names<'_>) -> io::Result<()> {
        let target = s.target.map(|(lb, index)| names.target(lb, index).to_owned());
        let args = json!({
            "member": names.member(s.node), "attempt": s.attempt, "branch": s.branch, "target": target,
            "outcome": s.outcome.map(said), "counts": s.counts,
        });
        let at = h.arrived_ns + s.from_ns;
        let what = match (s.what, s.outcome) {
            (StageKind::Answer, Some(outcome)) => said(outcome),
            (what, _) => what.name(),
        };
        let mut event = json!({
            "name": format!("{what}: {}", names.site(s.node)), "cat": s.what.name(), "pid": self.process, "tid": thread, "args": args,
        });
        if s.to_ns > s.from_ns {
            event["ph"] = "X".into();
            return self.event(&event, &times(at, s.to_ns - s.from_ns));
        }
        event["ph"] = "i".into();
        event["s"] = "t".into();
        self.event(&event, &format!(",\"ts\":{}", micros(at)))
    }
}

fn times(at_ns: u64, ns: u64) -> String {
    format!(",\"ts\":{},\"dur\":{}", micros(at_ns), micros(ns))
}

fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
