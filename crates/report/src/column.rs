//! The columns that a table of scenarios can have, by the names of `--columns`: those of `expect` and of the JSON, shorter
//! where they are long.

use crate::entry;
use crate::number::{self, count, quantile, with_interval};
use crate::table::Side;
use weir_plan::Metric;
use weir_sim::ScenarioResult;
use weir_stats::{Estimate, Latency};

/// A figure of a scenario that has a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// One that `expect` knows too.
    Metric(Metric),
    /// The least latency.
    Min(Requests),
    /// The greatest.
    Max(Requests),
    /// Requests per second.
    RequestRate,
    /// Responses per second.
    ResponseRate,
    /// How many requests failed.
    Failed,
    /// How many failed in which way.
    Errors,
}

/// The requests that a latency is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// All that count.
    All,
    /// Those that succeeded.
    Ok,
}

/// Every column: its name, the name of the same figure in `expect` and in the JSON (where it is another), its heading.
const ALL: [(&str, &str, &str, Column); 25] = [
    ("success", "", "success %", Column::Metric(Metric::Success)),
    ("mean", "", "mean", Column::Metric(Metric::Mean)),
    ("min", "", "min", Column::Min(Requests::All)),
    ("max", "", "max", Column::Max(Requests::All)),
    ("p50", "", "p50", Column::Metric(Metric::P50)),
    ("p90", "", "p90", Column::Metric(Metric::P90)),
    ("p95", "", "p95", Column::Metric(Metric::P95)),
    ("p99", "", "p99", Column::Metric(Metric::P99)),
    ("p99.9", "p999", "p99.9", Column::Metric(Metric::P999)),
    ("ok_mean", "", "ok_mean", Column::Metric(Metric::OkMean)),
    ("ok_min", "", "ok_min", Column::Min(Requests::Ok)),
    ("ok_max", "", "ok_max", Column::Max(Requests::Ok)),
    ("ok_p50", "", "ok_p50", Column::Metric(Metric::OkP50)),
    ("ok_p90", "", "ok_p90", Column::Metric(Metric::OkP90)),
    ("ok_p95", "", "ok_p95", Column::Metric(Metric::OkP95)),
    ("ok_p99", "", "ok_p99", Column::Metric(Metric::OkP99)),
    ("ok_p99.9", "ok_p999", "ok_p99.9", Column::Metric(Metric::OkP999)),
    ("attempts", "attempts_per_request", "attempts", Column::Metric(Metric::AttemptsPerRequest)),
    ("connections", "", "connections", Column::Metric(Metric::Connections)),
    ("opened", "opened_per_s", "opened/s", Column::Metric(Metric::OpenedPerS)),
    ("goodput", "goodput_per_s", "goodput/s", Column::Metric(Metric::GoodputPerS)),
    ("requests", "request_rate_per_s", "requests/s", Column::RequestRate),
    ("responses", "response_rate_per_s", "responses/s", Column::ResponseRate),
    ("failed", "", "failed", Column::Failed),
    ("errors", "", "errors", Column::Errors),
];

impl Column {
    /// Name and other name (or nothing) of every column.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        ALL.iter().map(|(name, other, ..)| (*name, *other))
    }

    /// The column of this name.
    pub fn parse(text: &str) -> Option<Column> {
        let found =
            ALL.iter().find(|(name, other, ..)| !text.is_empty() && (text == *name || text == *other));
        found.map(|(.., column)| *column)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        ALL.iter().find(|(.., column)| *column == self).map_or("", |(name, ..)| name)
    }

    /// Its heading.
    pub(crate) fn heading(self) -> &'static str {
        ALL.iter().find(|(.., column)| *column == self).map_or("", |(_, _, heading, _)| heading)
    }

    pub(crate) fn side(self) -> Side {
        if self == Column::Errors { Side::Left } else { Side::Right }
    }

    /// Whether it is of successes alone.
    pub(crate) fn is_of_successes(self) -> bool {
        self.name().starts_with("ok_")
    }

    /// The figures of scenarios, all written in one way.
    pub(crate) fn cells(self, all: &[ScenarioResult]) -> Vec<String> {
        let figures = |of: &dyn Fn(&ScenarioResult) -> Estimate, alone| {
            number::alike(&all.iter().map(of).collect::<Vec<_>>(), alone)
        };
        let told = |of: &dyn Fn(&ScenarioResult) -> String| all.iter().map(of).collect();
        match self {
            Column::Metric(metric) => figures(&|s| in_unit(metric, &s.estimate(metric)), rounding(metric)),
            Column::Min(of) => told(&|s| number::plain(of.latency(s).min)),
            Column::Max(of) => told(&|s| number::plain(of.latency(s).max)),
            Column::RequestRate => figures(&|s| s.request_rate_per_s, with_interval),
            Column::ResponseRate => figures(&|s| s.response_rate_per_s, with_interval),
            Column::Failed => told(&|s| count(s.requests.failed)),
            Column::Errors => told(&|s| match s.requests.errors.is_empty() {
                true => number::UNKNOWN.to_owned(),
                false => entry::errors(&s.requests.errors),
            }),
        }
    }
}

/// A figure in the unit that tables have it in.
pub(crate) fn in_unit(metric: Metric, e: &Estimate) -> Estimate {
    if unit(metric) == "%" { number::in_percent(e) } else { *e }
}

/// That unit: `ms`, `%`, or nothing.
pub(crate) fn unit(metric: Metric) -> &'static str {
    match metric {
        // As in the column `busy` of the table of sites.
        Metric::Utilisation => "",
        of if of.is_share() => "%",
        of if of.is_time() => "ms",
        _ => "",
    }
}

/// How a figure is written that has no interval.
pub(crate) fn rounding(metric: Metric) -> fn(&Estimate) -> String {
    if metric.name().trim_start_matches("ok_").starts_with('p') { quantile } else { with_interval }
}

impl Requests {
    fn latency(self, s: &ScenarioResult) -> &Latency {
        match self {
            Requests::All => &s.latency_all,
            Requests::Ok => &s.latency_ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_that_can_be_expected_has_a_column_of_its_name() {
        for metric in Metric::OF_REQUESTS.into_iter().chain(Metric::OF_CONNECTIONS) {
            assert_eq!(Column::parse(metric.name()), Some(Column::Metric(metric)), "{}", metric.name());
        }
        for (name, other) in Column::names() {
            let column = Column::parse(name).expect("it is known by its name");
            assert!(column.name() == name && (other.is_empty() || Column::parse(other) == Some(column)));
        }
        assert_eq!(Column::parse("p99.9"), Column::parse("p999"));
        assert!(Column::parse("").is_none() && Column::parse("p98").is_none());
    }
}
