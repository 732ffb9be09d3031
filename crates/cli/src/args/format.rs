//! Forms of results, and what they list.

use clap::ValueEnum;

/// The form of a load run's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A table.
    Text,
    /// `weir.load/1`.
    Json,
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimFormat {
    /// Tables.
    Text,
    /// `weir.sim/1`.
    Json,
    /// Tidy rows.
    Csv,
    /// The same with typed columns; files only.
    #[value(skip)]
    Parquet,
}

/// Which nodes a result lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Nodes {
    /// One entry per site.
    Sites,
    /// One per member.
    All,
}
