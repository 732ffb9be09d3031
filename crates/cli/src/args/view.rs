//! What text shows of a result.

use super::{Nodes, column};
use clap::Args;
use weir_report::{Column, Sites, View};

/// The options that choose it.
#[derive(Args, Debug)]
pub(crate) struct ViewOptions {
    /// One row per site, or one per member of each site
    #[arg(long, value_name = "sites|all", hide_possible_values = true)]
    pub(crate) nodes: Option<Nodes>,
    /// Columns of the table of scenarios: success, mean, p99.9, errors, ...
    ///
    /// Also min, max, p50, p90, p95, p99; `ok_` before a latency: that of successes (ok_p99).
    ///
    /// Also attempts, failed; goodput, requests and responses, per second. They replace the usual ones.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = column(),
        hide_possible_values = true
    )]
    pub(crate) columns: Vec<Column>,
}

impl ViewOptions {
    /// As a report takes it.
    pub(crate) fn to_view(&self) -> View {
        let sites = if self.nodes.is_some() { Sites::Always } else { Sites::Few };
        View { sites, columns: self.columns.clone() }
    }
}
