//! A balancer on the page: its targets in a table, those with problems first.

use super::rows::{count, ms, optional};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use weir_report::escaped;
use weir_serve::{PoolView, State, TargetView};

/// The number of healthy targets shown at first of a larger balancer.
const SHORT: usize = 50;
const SHOWN: usize = 20;
/// The most others, unless all are requested.
const TROUBLE: usize = 200;

/// The colour of a state; its word and sign are beside it.
pub(super) fn class(state: State) -> &'static str {
    match state {
        State::Ejected | State::Down | State::Out => "bad",
        State::Probation | State::PassedOver | State::Full | State::SlowStart => "warn",
        State::Drain | State::NoWeight => "off",
        State::Up => "good",
    }
}

fn sign(state: State) -> char {
    match class(state) {
        "bad" => '✖',
        "warn" => '▲',
        "off" => '○',
        _ => '●',
    }
}

/// The elements of a balancer around its parts.
pub(super) fn section<'a>(page: &mut String, number: usize, open: bool, part: impl Fn(&str) -> &'a str) {
    let open = if open { " open" } else { "" };
    let _ = write!(
        page,
        "<details{open}>\n<summary id=\"pool-{number}-head\">{}</summary>\n<div class=\"wide tall\"><table>\n\
         <thead><tr><th>Target</th><th>State</th><th class=\"n\">In flight</th><th class=\"n\">Estimate</th>\
         <th class=\"n\">Rate</th><th class=\"n weight\">Weight</th></tr></thead>\n\
         <tbody id=\"pool-{number}-rows\">{}</tbody>\n</table></div>\n<p class=\"quiet\" id=\"pool-{number}-more\">{}</p>\n</details>\n",
        part("head"),
        part("rows"),
        part("more")
    );
}

/// Its name, and the numbers of its targets by state.
pub(super) fn head(pool: &PoolView) -> String {
    let mut by_state: BTreeMap<State, usize> = BTreeMap::new();
    pool.targets.iter().for_each(|target| *by_state.entry(target.state).or_default() += 1);
    let words: Vec<String> = by_state
        .iter()
        .map(|(state, n)| {
            format!(
                "<span class=\"{}\">{} {} {}</span>",
                class(*state),
                sign(*state),
                count(*n as u64),
                state.word()
            )
        })
        .collect();
    let waiting = pool.waiting.filter(|n| *n > 0);
    let waiting =
        waiting.map(|n| format!(" · <span class=\"warn\">{} waiting</span>", count(n))).unwrap_or_default();
    format!(
        "<h2>{}</h2> <span class=\"quiet\">{}</span> {}{waiting}",
        escaped(&pool.name),
        escaped(pool.policy),
        words.join(" · ")
    )
}

/// The shown targets: the worst first, else in the order of the file.
fn shown(pool: &PoolView, all: bool) -> Vec<&TargetView> {
    let mut targets: Vec<&TargetView> = pool.targets.iter().collect();
    targets.sort_by_key(|target| target.state);
    if !all && targets.len() > SHORT {
        let trouble = targets.iter().take_while(|target| target.state != State::Up).count();
        let up = targets.split_off(trouble);
        targets.truncate(TROUBLE);
        targets.extend(up.into_iter().take(SHOWN));
    }
    targets
}

/// A row for each target that is shown.
pub(super) fn rows(pool: &PoolView, rates: &BTreeMap<(u32, u32), f64>, all: bool) -> String {
    let mut html = String::new();
    for target in shown(pool, all) {
        let why: String = target.why.iter().map(|why| format!("<small>{}</small>", escaped(why))).collect();
        let by_hand = match (target.admin, target.weight == target.file_weight) {
            ("file", true) => "",
            ("file", false) => "<small>weight set by hand</small>",
            _ => "<small>set by hand</small>",
        };
        let rate = rates.get(&(pool.node, target.index)).map(|rate| format!("{} /s", number(*rate)));
        let failed = target.failed.filter(|n| *n > 0);
        let failed = failed.map(|n| format!("<small>{} failed</small>", count(n))).unwrap_or_default();
        let _ = writeln!(
            html,
            "<tr><td class=\"target\">{}{why}{by_hand}</td><td><span class=\"{}\">{}&nbsp;{}</span></td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}{failed}</td><td class=\"n weight\">{}</td></tr>",
            escaped(&target.name),
            class(target.state),
            sign(target.state),
            target.state.word(),
            optional(target.in_flight.map(count)),
            optional(target.estimate_ms.map(ms)),
            optional(rate),
            number(target.weight),
        );
    }
    html
}

/// The number of hidden targets.
pub(super) fn more(pool: &PoolView, all: bool) -> String {
    let hidden = pool.targets.len() - shown(pool, all).len();
    match hidden {
        0 if all && pool.targets.len() > SHORT => "<a href=\"?\">show fewer</a>".to_owned(),
        0 => String::new(),
        n => format!("and {} more · <a href=\"?all=1\">show all</a>", count(n as u64)),
    }
}

/// A number with at most three significant digits.
fn number(x: f64) -> String {
    match x {
        x if x >= 100.0 => count(x.round() as u64),
        x if x == x.trunc() => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        x => format!("{x:.2}"),
    }
}
