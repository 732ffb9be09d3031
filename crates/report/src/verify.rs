//! What a verification found: the JSON of `docs/spec/language.md#verify` (`weir.verify/1`) and tables with both columns
//! and their difference.

use crate::number::{self, UNKNOWN, with_interval};
use crate::table::{Side, Table};
use crate::verify_summary::{add_point, describe_interruption, find_swept, sentence, show_name, summarize};
use crate::wrap;
use serde_json::{Value, json};
use std::io::{self, Write};
use weir_stats::Estimate;
use weir_verify::{
    BothWorlds, Calibration, Connections, MissingScenario, Replay, Router, ScenarioVerified, Statistic,
    TargetShares, Unit, Verification,
};

/// The most servers that a table lists with their shares; of more it lists those that differ most.
const FEW: usize = 8;

pub(crate) fn json(found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    let mut document = json!({
        "schema": "weir.verify/1",
        "version": env!("CARGO_PKG_VERSION"),
        "file": found.file,
        "plan": found.plan,
        "seed": found.seed,
        "against": found.against.name(),
        "scenarios": found.scenarios.iter().map(scenario).collect::<Vec<_>>(),
        "verdict": found.verdict().name(),
        "calibration": found.calibration.as_ref().map(calibration),
    });
    if found.is_interrupted() {
        document["interrupted"] = true.into();
        document["missing"] = found.missing.iter().map(missing).collect();
    }
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

pub(crate) fn calibration(found: &Calibration) -> Value {
    json!({
        "client_hop_ms": found.client_hop_ns / 1e6,
        "server_hop_ms": found.server_hop_ns / 1e6,
        "connect_ms": found.connect_ns / 1e6,
        "work_ms": found.work_ns / 1e6,
        "cable_ms": found.cable_ns / 1e6,
        "timers_late_p90_ms": found.late_ns / 1e6,
        "most_per_s": found.most_per_s,
    })
}

pub(crate) fn calibration_text(found: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    let ms = |ns: f64| number::plain(Some(ns / 1e6));
    writeln!(out, "from a client to a router and back:  {} ms", ms(found.client_hop_ns))?;
    writeln!(out, "from a router to a server and back:  {} ms", ms(found.server_hop_ns))?;
    writeln!(out, "opening a connection to a server:    {} ms", ms(found.connect_ns))?;
    writeln!(out, "work at a server takes longer by:    {} ms", ms(found.work_ns))?;
    writeln!(out, "a cable takes longer, both ways, by: {} ms", ms(found.cable_ns))?;
    writeln!(out, "one timer in ten is later than:      {} ms", ms(found.late_ns))?;
    let most = number::count(found.most_per_s as u64);
    writeln!(out, "client, router and servers together: {most} requests/s at most")
}

fn missing(s: &MissingScenario) -> Value {
    json!({ "name": s.name, "params": crate::json::Params(&s.params), "asked_runs": s.runs })
}

fn scenario(s: &ScenarioVerified) -> Value {
    let mut scenario = json!({
        "name": s.name,
        "params": crate::json::Params(&s.params),
        "runs": s.runs,
        "void_runs": s.void.len(),
        "statistics": s.statistics.iter().map(statistic).collect::<Vec<_>>(),
        "targets": s.targets.iter().map(target).collect::<Vec<_>>(),
        "ejections": s.ejections.as_ref().map(both_worlds),
        "connections": {
            "client": both_worlds(&s.connections.client),
            "server": both_worlds(&s.connections.server),
            "server_takes_ms": s.connections.server_takes_ms,
        },
        "timers_late_p90_ms": s.timers_late_ns.map(|ns| ns / 1e6),
        "verdict": s.verdict.name(),
        "warnings": s.void.iter().map(|why| format!("a run is void: {why}")).chain(s.warnings.clone()).collect::<Vec<_>>(),
    });
    if s.interrupted {
        scenario["asked_runs"] = s.asked_runs.into();
    }
    scenario
}

fn statistic(s: &Statistic) -> Value {
    let unit = match s.name {
        "mean" | "p50" | "p95" | "p99" => "ms",
        _ => s.unit.name(),
    };
    json!({
        "name": s.name,
        "simulated": estimate(&s.simulated),
        "real": estimate(&s.real),
        "difference": estimate(&s.difference),
        "relative": estimate(&s.relative),
        "tolerance": s.tolerance,
        "unit": unit,
        "verdict": s.verdict.name(),
        "runs_needed": s.runs_needed,
    })
}

fn target(t: &TargetShares) -> Value {
    json!({ "name": t.name, "simulated_share": estimate(&t.simulated), "real_share": estimate(&t.real) })
}

fn both_worlds(of: &BothWorlds) -> Value {
    json!({ "simulated": estimate(&of.simulated), "real": estimate(&of.real) })
}

fn estimate(e: &Estimate) -> Value {
    json!({ "value": e.value, "low": e.low, "high": e.high })
}

pub(crate) fn tables(found: &Verification, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let swept = find_swept(found);
    for s in &found.scenarios {
        let name = add_point(&s.name, &s.params, &swept);
        for why in &s.void {
            let line =
                format!("{name}: a run is void: {why}; this machine was too busy, so it does not count");
            write!(out, "{}", wrap::wrapped_to(&line, width))?;
        }
        for warning in &s.warnings {
            write!(out, "{}", wrap::wrapped_to(&format!("warning: {warning} [{name}]"), width))?;
        }
    }
    if found.is_interrupted() {
        for sentence in describe_interruption(found) {
            write!(out, "{}", wrap::wrapped_to(&sentence, width))?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "{}: simulated, and real on this machine{}; latency in ms, ± half of the 95 % interval\n",
        found.file,
        if found.against == Router::Weir { String::new() } else { format!(" by {}", found.against.name()) }
    )?;
    for s in &found.scenarios {
        writeln!(out, "{}: {}", add_point(&s.name, &s.params, &swept), sentence(s))?;
        if s.runs == 0 {
            writeln!(out)?;
            continue;
        }
        writeln!(out, "\n{}", wrap::indented(&statistics(s).text(width - 2)))?;
        writeln!(out, "{}", wrap::indented(&shares(s).text(width - 2)))?;
        for line in beside(s) {
            writeln!(out, "  {line}")?;
        }
        writeln!(out)?;
    }
    for sentence in summarize(found) {
        write!(out, "{}", wrap::wrapped_to(&sentence, width))?;
    }
    writeln!(out, "weir {} · seed {} · plan {}", env!("CARGO_PKG_VERSION"), found.seed, short(&found.plan))
}

pub(crate) fn short(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}

pub(crate) fn replay(replay: &Replay, as_json: bool, out: &mut dyn Write) -> io::Result<()> {
    let Replay { file, runs, balancers, picks, others, first } = replay;
    if as_json {
        let document = json!({
            "schema": "weir.replay/1",
            "file": file,
            "runs": runs,
            "balancers": balancers,
            "picks": picks,
            "others": others,
            "first": first,
        });
        serde_json::to_writer_pretty(&mut *out, &document)?;
        return out.write_all(b"\n");
    }
    let same = number::count(picks - others);
    writeln!(out, "{file}: {same} of {} picks are the same ({runs} runs)", number::count(*picks))
}

/// Figures that are reported without a verdict.
pub(crate) fn beside(s: &ScenarioVerified) -> Vec<String> {
    let both = |what: &str, BothWorlds { simulated, real }: &BothWorlds| {
        format!("{what} in a run: {} simulated, {} real", with_interval(simulated), with_interval(real))
    };
    let Connections { client, server, server_takes_ms } = &s.connections;
    let ms = |ms: Option<f64>| number::plain(ms);
    let took = format!("to open one to a server took {} ms", ms(*server_takes_ms));
    let late =
        format!("the servers' timers fired late by {} ms (p90)", ms(s.timers_late_ns.map(|ns| ns / 1e6)));
    let ejections = s.ejections.iter().map(|of| both("ejections", of));
    let connections = [both("client connections", client), both("connections to servers", server)];
    ejections.chain(connections).chain([format!("{took}; {late}")]).collect()
}

pub(crate) fn statistics(s: &ScenarioVerified) -> Table {
    let mut t = Table::new();
    t.column("", Side::Left);
    for heading in ["simulated", "real", "difference", "allowed"] {
        t.column(heading, Side::Right);
    }
    t.column("verdict", Side::Left);
    for s in &s.statistics {
        let (simulated, real) = match s.unit {
            Unit::Points => (number::percentage(&s.simulated), number::percentage(&s.real)),
            Unit::Ratio => (with_interval(&s.simulated), with_interval(&s.real)),
        };
        let (difference, allowed) = match s.unit {
            Unit::Points => (points(&s.difference), format!("{} points", number::plain(Some(s.tolerance)))),
            Unit::Ratio => {
                let share = format!("{} %", number::plain(Some(s.tolerance * 100.0)));
                let below = s.no_matter_ms.map(|ms| format!("{share} or {} ms", number::plain(Some(ms))));
                (percent(&s.relative), below.unwrap_or(share))
            }
        };
        t.row(vec![
            show_name(s.name).to_owned(),
            simulated,
            real,
            difference,
            allowed,
            s.verdict.name().to_owned(),
        ]);
    }
    t
}

/// A difference as a share, in per cent with its sign.
fn percent(e: &Estimate) -> String {
    signed(e, " %")
}

/// A difference of shares, in points.
fn points(e: &Estimate) -> String {
    signed(e, "")
}

fn signed(e: &Estimate, unit: &str) -> String {
    let Some(value) = e.value else { return UNKNOWN.to_owned() };
    let half = e.half_width().map_or(String::new(), |half| format!(" ±{:.2}", half * 100.0));
    format!("{:+.2}{half}{unit}", value * 100.0)
}

/// The shares of few servers, or of those that differ most.
fn shares(s: &ScenarioVerified) -> Table {
    let mut t = Table::new();
    let heading = if s.targets.len() > FEW {
        format!("the {FEW} of {} servers that differ most", s.targets.len())
    } else {
        "share of".to_owned()
    };
    t.column(&heading, Side::Left);
    for heading in ["simulated", "real", "difference"] {
        t.column(heading, Side::Right);
    }
    let off = |t: &TargetShares| {
        t.real.value.zip(t.simulated.value).map_or(0.0, |(real, simulated)| real - simulated)
    };
    let mut order: Vec<&TargetShares> = s.targets.iter().collect();
    if order.len() > FEW {
        order.sort_by(|a, b| off(b).abs().total_cmp(&off(a).abs()));
        order.truncate(FEW);
    }
    for target in order {
        let row = [
            number::percentage(&target.simulated),
            number::percentage(&target.real),
            format!("{:+.2}", off(target) * 100.0),
        ];
        t.row(std::iter::once(target.name.clone()).chain(row).collect());
    }
    t
}
