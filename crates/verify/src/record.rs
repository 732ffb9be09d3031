//! Records of the runs of a verification as lines of JSON (`weir.record/1`), and their replay: the picks must be the
//! same, since the simulator's own objects made them.

use crate::trial::RunOutcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Write};
use weir_plan::NodeId;
use weir_plan::json;
use weir_policy::{Choice, Operation, Upstream};
use weir_serve::BalancerCreated;

/// The first line of a record.
pub const SCHEMA: &str = "weir.record/1";

/// A line of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The schema and the topology file.
    Schema(String, String),
    /// A run begins: its scenario and its number, from 0.
    Run(String, u32),
    /// A balancer was made.
    Made(BalancerCreated),
    /// An operation on a balancer, on a loop; those of further processes are numbered on from 1,024 for each.
    Did(NodeId, u32, Operation),
    /// A request, as its client saw it.
    Asked(ClientRequest),
    /// A request, as a server saw it.
    Served(ServerRequest),
    /// The end of the record, with the number of runs.
    End(u32),
}

/// A request as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRequest {
    /// Its number in the run.
    pub request: u64,
    /// When it was to be sent, ns.
    pub intended_ns: u64,
    /// When its answer had come, ns.
    pub ended_ns: u64,
    /// The status of that; 0: none came.
    pub status: u16,
}

/// A request as a server saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRequest {
    /// Its number in the run.
    pub request: u64,
    /// The server's node.
    pub server: NodeId,
    /// Since when it was there, ns.
    pub begun_ns: u64,
    /// Until when, ns.
    pub ended_ns: u64,
}

/// Writes what happened in a run.
pub(crate) fn write_run(
    scenario: &str,
    run: u32,
    real: &RunOutcome,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut line = |line: Line| {
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")
    };
    line(Line::Run(scenario.to_owned(), run))?;
    for made in &real.made {
        line(Line::Made(made.clone()))?;
    }
    for (lb, on_loop, deed) in &real.did {
        line(Line::Did(*lb, *on_loop, deed.clone()))?;
    }
    for row in &real.load.rows {
        let weir_load::Row { request, intended_ns, ended_ns, status, .. } = *row;
        line(Line::Asked(ClientRequest { request, intended_ns, ended_ns, status }))?;
    }
    for row in &real.served {
        let (begun_ns, ended_ns) = row.between_ns;
        if let Some(server) = row.server {
            line(Line::Served(ServerRequest { request: row.request.0, server, begun_ns, ended_ns }))?;
        }
    }
    Ok(())
}

/// The first line of a record.
pub(crate) fn write_first(file: &str, out: &mut dyn Write) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, &Line::Schema(SCHEMA.to_owned(), file.to_owned()))?;
    out.write_all(b"\n")
}

/// The last line of a record.
pub(crate) fn write_last(runs: u32, out: &mut dyn Write) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, &Line::End(runs))?;
    out.write_all(b"\n")
}

/// The result of replaying a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The topology file's name.
    pub file: String,
    /// Runs that it has.
    pub runs: u32,
    /// Balancers, each on each loop.
    pub balancers: u32,
    /// Picks.
    pub picks: u64,
    /// Picks that differ.
    pub others: u64,
    /// A description of the first of them.
    pub first: Option<String>,
}

/// Why a record cannot be replayed, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError(String);

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RecordError {}

/// Replays a record.
///
/// # Errors
/// A line that cannot be read: its number and why.
pub fn replay(from: impl BufRead) -> Result<Replay, RecordError> {
    let at = |number: u64, why: &dyn fmt::Display| RecordError(format!("line {number}: {why}"));
    let mut replay = Replay::default();
    let mut balancers: BTreeMap<(NodeId, u32), Upstream> = BTreeMap::new();
    let mut ended = None;
    for (number, line) in (1..).zip(from.lines()) {
        let line = line.map_err(|e| at(number, &e))?;
        let line: Line = json::from_slice(line.as_bytes()).map_err(|e| at(number, &e))?;
        match line {
            Line::Schema(schema, file) if schema == SCHEMA => replay.file = file,
            Line::Schema(schema, _) => {
                return Err(at(number, &format_args!("its schema must be {SCHEMA}, not `{schema}`")));
            }
            _ if replay.file.is_empty() => {
                return Err(at(
                    number,
                    &format_args!("this is not a record: it does not begin with {SCHEMA}"),
                ));
            }
            Line::Run(..) => {
                replay.runs += 1;
                balancers.clear();
            }
            Line::Made(made) => {
                replay.balancers += 1;
                balancers.insert((made.lb, made.on_loop), made.upstream());
            }
            Line::Did(lb, on_loop, deed) => {
                let upstream = balancers.get_mut(&(lb, on_loop));
                let upstream = upstream.ok_or_else(|| at(number, &"that balancer was never created"))?;
                let now = upstream.act(&deed);
                if let (Some(now), Operation::Pick { picked, .. }) = (now, &deed) {
                    replay.count(number, *picked, now);
                }
            }
            Line::Asked(_) | Line::Served(_) => {}
            Line::End(runs) => ended = Some(runs),
        }
    }
    let why = match ended {
        _ if replay.file.is_empty() => "it is empty",
        Some(runs) if runs == replay.runs && replay.picks > 0 => return Ok(replay),
        Some(runs) if runs == replay.runs => {
            "it contains no picks: it was recorded with another proxy, which does not report them"
        }
        _ => "it is truncated: its last line or some runs are missing",
    };
    Err(RecordError(why.to_owned()))
}

impl Replay {
    fn count(&mut self, line: u64, then: Choice, now: Choice) {
        self.picks += 1;
        if then != now {
            self.others += 1;
            let what = || format!("line {line}: {then:?} was recorded, the replay picks {now:?}");
            self.first.get_or_insert_with(what);
        }
    }
}
