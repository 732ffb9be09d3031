//! The arguments of `weir sim`: what to simulate, how precise figures must be, and where results go.

use crate::args::{File, InvalidValue, SimFormat, ViewOptions, seed, written};
use clap::Args;
use std::path::PathBuf;
use weir_plan::Metric;
use weir_sim::{Goal, Precision, Selection, Shard};

/// `weir sim`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir sim bamboo.star                             all scenarios, 10 replications, a table
  weir sim bamboo.star one_router -p servers=500   one of them, with a parameter set
  weir sim bamboo.star --sweep routers=1,2,4,8,16  the product of all sweeps, point by point
  weir sim bamboo.star --columns p99.9,errors      other figures in the table
  weir sim bamboo.star --output json | jq .        every number with its 95 % interval
  weir sim bamboo.star --save run.csv --html run.html
  weir sim bamboo.star --precision p99=1%          as many replications as it takes
  weir sim bamboo.star --trace slowest.jsonl       where the slowest requests spent their time

The same file, seed and version give the same bytes for any number of threads.
Exit code 1: what the file expects does not hold or cannot be decided, or a --precision is not reached.")]
pub(crate) struct Sim {
    #[command(flatten)]
    pub(crate) file: File,
    /// Only these scenarios
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Independent replications of each scenario
    #[arg(long, value_name = "R", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) replications: u32,
    /// Requests per replication, overriding the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) view: ViewOptions,
    /// Format of the result on standard output
    #[arg(long, value_name = "text|json|csv", default_value = "text", hide_possible_values = true)]
    pub(crate) output: SimFormat,
    /// Also write an HTML page: drawing, charts, tables
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) html: Option<PathBuf>,
    /// Also write the result: .json, .csv or .parquet
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) laboratory: Laboratory,
}

/// The options of `weir sim` besides what to simulate.
#[derive(Args, Debug)]
pub(crate) struct Laboratory {
    /// Simulate connections to all servers, also where the file has no `connect=`
    #[arg(long)]
    pub(crate) connections: bool,
    /// In JSON, also give each estimate's values by replication
    #[arg(long)]
    pub(crate) each: bool,
    /// The scenario that --html compares the others with [default: the first]
    #[arg(long, value_name = "SCENARIO", requires = "html")]
    pub(crate) baseline: Option<String>,
    /// Replicate until half-widths are this small
    ///
    /// `1%` applies to mean and p99, `p99=2%` to one of them; can be given several times.
    #[arg(long, value_name = "[NAME=]X%", value_parser = precision)]
    precision: Vec<PrecisionGoals>,
    /// With --precision, at most this many replications
    #[arg(long, value_name = "R", default_value_t = 1000, requires = "precision", value_parser = clap::value_parser!(u32).range(2..))]
    max_replications: u32,
    /// Simulate and save only part K of N, for `weir merge`
    #[arg(
        long,
        value_name = "K/N",
        value_parser = shard,
        requires = "save",
        conflicts_with_all = ["precision", "trace", "explain", "html", "junit", "github"]
    )]
    pub(crate) shard: Option<Shard>,
    /// Run again whenever the file is saved, and show what changed
    #[arg(long, conflicts_with_all = ["save", "html", "junit", "shard", "trace", "explain", "github"])]
    pub(crate) watch: bool,
    /// Also write the results of the file's `expect`s as JUnit XML
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) junit: Option<PathBuf>,
    /// Also print failures as GitHub annotations, on standard error
    #[arg(long)]
    pub(crate) github: bool,
    /// Show where typical requests spend their time; in JSON, also the run over time
    ///
    /// The first replication runs again for it; standard error says how long. The --html page has it.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Write histories of requests: .jsonl, or .json for Perfetto
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) trace: Option<PathBuf>,
    /// slowest:N, sample:P, all, or N,M,... [default: slowest:100]
    ///
    /// The N slowest of each scenario, each with probability P, or by number (from 0) in every replication.
    #[arg(long, value_name = "WHICH", requires = "trace", value_parser = requests)]
    trace_requests: Option<Requests>,
}

/// What `--trace-requests` selects, also as the user wrote it.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    pub(crate) selection: Selection,
    pub(crate) words: String,
}

/// What is traced by default.
const SLOWEST: usize = 100;

/// What one `--precision` asks for.
#[derive(Clone, Debug)]
struct PrecisionGoals(Vec<Goal>);

impl Laboratory {
    /// Which requests are traced.
    pub(crate) fn traced(&self) -> Requests {
        let default =
            || Requests { selection: Selection::Slowest(SLOWEST), words: format!("slowest:{SLOWEST}") };
        self.trace_requests.clone().unwrap_or_else(default)
    }

    /// How precise figures must be, if `--precision` is given.
    pub(crate) fn precision(&self) -> Option<Precision> {
        let goals: Vec<Goal> = self.precision.iter().flat_map(|w| &w.0).copied().collect();
        (!goals.is_empty()).then_some(Precision { goals, most: self.max_replications })
    }
}

/// `1%`, or `p99=2%`.
fn precision(text: &str) -> Result<PrecisionGoals, InvalidValue> {
    let (metrics, share) = match text.split_once('=') {
        None => (vec![Metric::Mean, Metric::P99], text),
        Some((name, share)) => {
            let names = || Metric::OF_REQUESTS.map(Metric::name).join(", ");
            let metric = Metric::of_requests(name)
                .ok_or_else(|| format!("there is no figure `{name}`; there are {}", names()))?;
            (vec![metric], share)
        }
    };
    let number = share.strip_suffix('%').and_then(|digits| digits.parse::<f64>().ok());
    match number {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(PrecisionGoals(
            metrics.into_iter().map(|metric| Goal { metric, share: percent / 100.0 }).collect(),
        )),
        _ => Err("write a percentage above 0, such as 1% or p99=2%".into()),
    }
}

/// `slowest:100`, `sample:0.01`, `all` or `17,4711`.
fn requests(text: &str) -> Result<Requests, InvalidValue> {
    let selection = match text.split_once(':') {
        None if text == "all" => Some(Selection::All),
        None => text.split(',').map(|n| n.parse().ok()).collect::<Option<Vec<u64>>>().map(Selection::These),
        Some(("slowest", n)) => n.parse().ok().filter(|n| *n > 0).map(Selection::Slowest),
        Some(("sample", p)) => p.parse().ok().filter(|p| *p > 0.0 && *p <= 1.0).map(Selection::Sample),
        Some(_) => None,
    };
    let selection = selection.ok_or("write slowest:100, sample:0.01, all, or numbers such as 17,4711")?;
    Ok(Requests { selection, words: text.to_owned() })
}

/// `2/4`.
fn shard(text: &str) -> Result<Shard, InvalidValue> {
    let parts = text.split_once('/').map(|(k, n)| (k.parse::<u32>(), n.parse::<u32>()));
    match parts {
        Some((Ok(k), Ok(n))) if 1 <= k && k <= n => Ok(Shard { k, n }),
        _ => Err("write K/N, from 1/N to N/N, such as 1/4".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_chosen_by_rank_chance_or_number() {
        let of = |text| requests(text).map(|r| r.selection);
        assert_eq!(of("slowest:7"), Ok(Selection::Slowest(7)));
        assert_eq!(of("sample:0.5"), Ok(Selection::Sample(0.5)));
        assert_eq!(of("all"), Ok(Selection::All));
        assert_eq!(of("3,1"), Ok(Selection::These(vec![3, 1])));
        for wrong in
            ["", "slowest", "slowest:0", "slowest:-1", "sample:0", "sample:2", "sample:nan", "1,", "some"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_precision_is_for_mean_and_p99_or_for_one_figure() {
        let goals = |text| {
            precision(text).map(|w| w.0.iter().map(|g| (g.metric.name(), g.share)).collect::<Vec<_>>())
        };
        assert_eq!(goals("1%"), Ok(vec![("mean", 0.01), ("p99", 0.01)]));
        assert_eq!(goals("success=0.5%"), Ok(vec![("success", 0.005)]));
        assert!(goals("p98=1%").unwrap_err().to_string().contains("p95"));
        for wrong in ["1", "0%", "-1%", "100%", "p99=", "%", "nan%"] {
            assert!(goals(wrong).is_err(), "{wrong}");
        }
    }
}
