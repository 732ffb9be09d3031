//! The table of connections to servers: how many there are, how often one is opened, how evenly they are spread.

use crate::number::{UNKNOWN, alone, count, in_percent, plain};
use crate::sites;
use crate::table::{Side, Table};
use weir_sim::{Connections, ScenarioResult};
use weir_stats::Estimate;

/// A row for all connections of a scenario, and one for each site of servers and of listeners; `None`: it has none.
pub(crate) fn table(s: &ScenarioResult) -> Option<Table> {
    let all = s.connections.as_ref()?;
    let mut t = Table::new();
    t.column("connections", Side::Left);
    for heading in
        ["open", "peak", "opened/s", "handshakes/s", "broken/s", "reused %", "requests on one", "per member"]
    {
        t.column(heading, Side::Right);
    }
    t.row(row("all".to_owned(), all, 1));
    for (name, n) in sites::called(&s.nodes) {
        if let Some(held) = &n.connections {
            t.row(row(name, held, n.count));
        }
    }
    Some(t.without_empty_columns(UNKNOWN))
}

/// The legend of the columns.
pub(crate) const LEGEND: [&str; 1] = [
    "open: connections on average · broken/s: those that end with their exchange · per member: least and most on average",
];

fn row(name: String, of: &Connections, members: u64) -> Vec<String> {
    let nothing = |e: &Estimate| if e.value == Some(0.0) { UNKNOWN.to_owned() } else { alone(e) };
    let spread = match (of.spread_min, of.spread_max) {
        (Some(_), Some(_)) if members > 1 => format!("{}..{}", plain(of.spread_min), plain(of.spread_max)),
        _ => UNKNOWN.to_owned(),
    };
    vec![
        name,
        alone(&of.open),
        count(of.peak),
        alone(&of.opened_per_s),
        nothing(&of.handshakes_per_s),
        nothing(&of.closed_per_s[0]),
        alone(&in_percent(&of.reused)),
        alone(&of.streams),
        spread,
    ]
}
