//! Tidy CSV: one row per scenario, node and metric, so that any data frame reads it as it is.
//!
//! Columns: `scenario`, one `param.NAME` for each parameter, `node` (empty for the scenario as a whole), `place`,
//! `kind`, `count`, `metric` (the path in the JSON), `value`, `low`, `high`, then `replications`, `seed`, `plan` and
//! `version`, which are the same in all rows, unless the run was interrupted. An unknown value is empty. Where a scenario is
//! told over time, `part_s` behind `metric` says when the part begins, s; it is empty in all other rows.

use crate::{entry, over_time};
use std::io::{self, Write};
use weir_sim::{NodeResult, Results, ScenarioResult};
use weir_stats::Estimate;

pub(crate) fn write(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let params = entry::params(results);
    write!(out, "scenario")?;
    for p in &params {
        write!(out, ",{}", field(&format!("param.{p}")))?;
    }
    let has_parts = results.scenarios.iter().any(|s| s.over_time.is_some());
    let part = if has_parts { ",part_s" } else { "" };
    writeln!(out, ",node,place,kind,count,metric{part},value,low,high,replications,seed,plan,version")?;
    let no_part = if has_parts { "," } else { "" };
    let signature = format!("{},{},{}", results.seed, field(&results.plan), field(&results.version));
    for s in &results.scenarios {
        let last = format!("{},{signature}", entry::replications(s, results));
        let first = scenario(s, &params);
        for (metric, e) in entry::metrics(s) {
            writeln!(out, "{first},,,,,{metric}{no_part},{},{last}", numbers(&e))?;
        }
        for over_time::Row { node, metric, part_s, value } in over_time::rows(s) {
            let (node, part) = (field(&node.unwrap_or_default()), part_s.map(|at| format!("{at}")));
            let (part, numbers) = (part.unwrap_or_default(), numbers(&value));
            writeln!(out, "{first},{node},,,,{metric},{part},{numbers},{last}")?;
        }
        for n in &s.nodes {
            let node = node(n);
            for (metric, e) in entry::node_metrics(n) {
                writeln!(out, "{first},{node},{metric}{no_part},{},{last}", numbers(&e))?;
            }
        }
    }
    Ok(())
}

fn scenario(s: &ScenarioResult, params: &[&str]) -> String {
    let mut row = field(&s.name);
    for p in params {
        row.push(',');
        row.push_str(&entry::param(s, p).map(|v| field(&entry::value(v))).unwrap_or_default());
    }
    row
}

fn node(n: &NodeResult) -> String {
    format!("{},{},{},{}", field(&n.name), field(&n.place), field(&n.kind), n.count)
}

fn numbers(e: &Estimate) -> String {
    let number = |x: Option<f64>| x.filter(|x| x.is_finite()).map(|x| format!("{x}")).unwrap_or_default();
    format!("{},{},{}", number(e.value), number(e.low), number(e.high))
}

/// Quoted as RFC 4180 requires, if it must be.
fn field(s: &str) -> String {
    if s.contains([',', '"', '\n', '\r']) { format!("\"{}\"", s.replace('"', "\"\"")) } else { s.to_owned() }
}
