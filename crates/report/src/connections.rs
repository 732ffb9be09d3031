//! The table of connections to servers: how many there are, how often one is opened, how evenly they are spread.

use crate::number::{UNKNOWN, alone, count, in_percent, plain};
use crate::sites;
use crate::table::{Side, Table};
use weir_sim::{Connections, ScenarioResult};
use weir_stats::Estimate;

/// The columns that a scenario's connections have as a whole.
const WHOLE: [&str; 6] = ["open", "peak", "opened/s", "handshakes/s", "broken/s", "reused %"];
/// Those that its sites have besides.
const OF_SITES: [&str; 2] = ["requests on one", "per member"];

/// A row for all connections of a scenario, and one for each site of servers and of listeners; `None`: it has none.
pub(crate) fn table(s: &ScenarioResult) -> Option<Table> {
    let all = s.connections.as_ref()?;
    let mut t = empty(WHOLE.into_iter().chain(OF_SITES));
    let row = |name: String, of: &Connections, members: u64| {
        [vec![name], whole(of).into(), vec![alone(&of.streams), per_member(of, members)]].concat()
    };
    t.row(row("all".to_owned(), all, 1));
    for (name, n) in sites::called(&s.nodes) {
        if let Some(held) = &n.connections {
            t.row(row(name, held, n.count));
        }
    }
    Some(t.without_empty_columns(UNKNOWN))
}

/// A row for all connections of each of these scenarios, by its label; `None`: none of them has any.
pub(crate) fn of_scenarios(
    scenarios: &[ScenarioResult],
    label: impl Fn(&ScenarioResult) -> String,
) -> Option<Table> {
    let held = scenarios.iter().filter_map(|s| Some((s, s.connections.as_ref()?)));
    let mut held = held.peekable();
    held.peek()?;
    let mut t = empty(WHOLE.into_iter());
    for (s, all) in held {
        t.row([vec![label(s)], whole(all).into()].concat());
    }
    Some(t.without_empty_columns(UNKNOWN))
}

fn empty(headings: impl Iterator<Item = &'static str>) -> Table {
    let mut t = Table::new();
    t.column("connections", Side::Left);
    for heading in headings {
        t.column(heading, Side::Right);
    }
    t
}

/// The legend of the columns.
pub(crate) const LEGEND: [&str; 1] = [
    "open: connections on average · broken/s: those that end with their exchange · per member: least and most on average",
];

fn whole(of: &Connections) -> [String; 6] {
    let nothing = |e: &Estimate| if e.value == Some(0.0) { UNKNOWN.to_owned() } else { alone(e) };
    [
        alone(&of.open),
        count(of.peak),
        alone(&of.opened_per_s),
        nothing(&of.handshakes_per_s),
        nothing(&of.closed_per_s[0]),
        alone(&in_percent(&of.reused)),
    ]
}

fn per_member(of: &Connections, members: u64) -> String {
    match (of.spread_min, of.spread_max) {
        (Some(_), Some(_)) if members > 1 => format!("{}..{}", plain(of.spread_min), plain(of.spread_max)),
        _ => UNKNOWN.to_owned(),
    }
}
