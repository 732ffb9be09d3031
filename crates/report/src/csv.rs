//! Tidy CSV: one row per scenario, node and metric, so that any data frame reads it as it is.
//!
//! Columns: `scenario`, one `param.NAME` for each parameter, `node` (empty for the scenario as a whole), `place`,
//! `kind`, `count`, `metric` (the path in the JSON), `value`, `low`, `high`, then `replications`, `seed`, `plan` and
//! `version`, which are the same in all rows, unless the run was interrupted. An unknown value is empty.

use crate::entry;
use std::io::{self, Write};
use weir_sim::{NodeResult, Results, ScenarioResult};
use weir_stats::Estimate;

pub(crate) fn write(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let params = entry::params(results);
    write!(out, "scenario")?;
    for p in &params {
        write!(out, ",{}", field(&format!("param.{p}")))?;
    }
    writeln!(out, ",node,place,kind,count,metric,value,low,high,replications,seed,plan,version")?;
    let signature = format!("{},{},{}", results.seed, field(&results.plan), field(&results.version));
    for s in &results.scenarios {
        let last = format!("{},{signature}", entry::replications(s, results));
        let first = scenario(s, &params);
        for (metric, e) in entry::metrics(s) {
            writeln!(out, "{first},,,,,{metric},{},{last}", numbers(&e))?;
        }
        for n in &s.nodes {
            let node = node(n);
            for (metric, e) in entry::node_metrics(n) {
                writeln!(out, "{first},{node},{metric},{},{last}", numbers(&e))?;
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
