//! `weir.trace/1`: a line that says of what, then one for each request.

use super::{Histories, Names, said};
use crate::json::Params;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use std::cell::RefCell;
use std::io::{self, Write};
use weir_sim::{History, Recording, Stage};

#[derive(Serialize)]
struct Head<'a> {
    schema: &'static str,
    version: &'a str,
    file: &'a str,
    plan: &'a str,
    seed: u64,
    replications: u32,
    requests: &'a str,
}

pub(super) fn write(traced: &Histories<'_>, out: &mut dyn Write) -> io::Result<()> {
    let r = traced.results;
    let head = Head {
        schema: "weir.trace/1",
        version: &r.version,
        file: &r.file,
        plan: &r.plan,
        seed: r.seed,
        replications: r.replications,
        requests: traced.selection,
    };
    serde_json::to_writer(&mut *out, &head)?;
    writeln!(out)?;
    for of in traced.recordings {
        let names = RefCell::new(Names::new(of.point));
        for history in &of.histories {
            serde_json::to_writer(&mut *out, &Line { of, history, names: &names })?;
            writeln!(out)?;
        }
    }
    Ok(())
}

struct Line<'a, 'p> {
    of: &'a Recording<'a>,
    history: &'a History,
    names: &'a RefCell<Names<'p>>,
}

impl Serialize for Line<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (of, h) = (self.of, self.history);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("scenario", of.scenario)?;
        if !of.point.params.is_empty() {
            map.serialize_entry("params", &Params(&of.point.params))?;
        }
        map.serialize_entry("replication", &h.replication)?;
        map.serialize_entry("request", &h.request)?;
        map.serialize_entry("arrived_ns", &h.arrived_ns)?;
        map.serialize_entry("latency_ns", &h.latency_ns)?;
        map.serialize_entry("outcome", said(h.outcome))?;
        map.serialize_entry("selected", &h.selected)?;
        map.serialize_entry("stages", &Stages(self))?;
        map.end()
    }
}

struct Stages<'a, 'p>(&'a Line<'a, 'p>);

impl Serialize for Stages<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for stage in &self.0.history.stages {
            seq.serialize_element(&One(stage, self.0.names))?;
        }
        seq.end()
    }
}

struct One<'a, 'p>(&'a Stage, &'a RefCell<Names<'p>>);

impl Serialize for One<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (s, mut names) = (self.0, self.1.borrow_mut());
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("site", names.site(s.node))?;
        map.serialize_entry("member", &names.member(s.node))?;
        map.serialize_entry("from_ns", &s.from_ns)?;
        map.serialize_entry("to_ns", &s.to_ns)?;
        map.serialize_entry("what", s.what.name())?;
        map.serialize_entry("attempt", &s.attempt)?;
        map.serialize_entry("branch", &s.branch)?;
        map.serialize_entry("target", &s.target.map(|(lb, index)| names.target(lb, index).to_owned()))?;
        map.serialize_entry("outcome", &s.outcome.map(said))?;
        map.serialize_entry("counts", &s.counts)?;
        map.end()
    }
}
