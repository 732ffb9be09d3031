//! `weir merge PART...`: the parts of `weir sim --shard`, put together to the result of one run.

use super::sim;
use crate::args::{Nodes, SimFormat, ViewOptions, written};
use crate::failure::Failure;
use crate::input;
use crate::output::{Outputs, Written};
use clap::Args;
use std::path::PathBuf;
use weir_report::Sites;
use weir_sim::{NotWhole, ShardRun};

/// `weir merge`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir sim lb.star --shard 1/2 --save one.json     on one machine
  weir sim lb.star --shard 2/2 --save two.json     on another
  weir merge one.json two.json                     what one run would have printed, byte for byte")]
pub(crate) struct Merge {
    /// All parts of one run, in any order
    #[arg(value_name = "PART", required = true)]
    pub(crate) parts: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) view: ViewOptions,
    /// Format of the result on standard output
    #[arg(long, value_name = "text|json|csv", default_value = "text", hide_possible_values = true)]
    pub(crate) output: SimFormat,
    /// In JSON, also give each estimate's values by replication
    #[arg(long)]
    pub(crate) each: bool,
    /// Also write the result: .json, .csv or .parquet
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) save: Option<PathBuf>,
}

pub(crate) fn run(args: &Merge) -> Result<(), Failure> {
    let form = args.save.as_deref().map(sim::format_of).transpose()?;
    let parts = args.parts.iter().map(|path| read(path)).collect::<Result<Vec<ShardRun>, Failure>>()?;
    let members = parts.iter().any(ShardRun::lists_members);
    if args.view.nodes == Some(Nodes::All) && !members {
        return Err(Failure::Usage(
            "these parts have only sites: give --nodes all to `weir sim --shard`".to_owned(),
        ));
    }
    let save = Outputs::beside_result(&args.parts).open("--save", args.save.as_deref())?;
    let each = args.save.is_some() || args.each;
    let results = weir_sim::merge(parts, each).map_err(|e| match e {
        NotWhole::Run(weir_sim::Error::SelfCheck(sentences)) => Failure::Fault(sentences.join("\n  ")),
        other => Failure::Usage(other.to_string()),
    })?;
    let mut view = args.view.to_view();
    if members {
        view.sites = Sites::Always;
    }
    let mut written = Written::result(|out| {
        sim::formed(args.output, &view, args.each && args.output == SimFormat::Json, &results, out)
    });
    if let Some(form) = form {
        written.file(save.as_ref(), |out| sim::formed(form, &view, true, &results, out));
    }
    written.end(sim::met(&results))
}

fn read(path: &std::path::Path) -> Result<ShardRun, Failure> {
    let bytes = input::read_saved(path)?;
    ShardRun::from_json(&bytes).map_err(|e| Failure::Usage(format!("`{}`: {e}", path.display())))
}
