//! A balancer on the page: its targets in a table, those with problems first.

use super::rows::{count, ms, number, optional};
use super::times::clock;
use super::users;
use crate::age::{ago, stretch};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use weir_report::escaped;
use weir_serve::{PoolView, State, TargetView};

/// The number of healthy targets shown at first of a larger balancer.
const SHORT: usize = 50;
const SHOWN: usize = 20;
/// The most others, unless all are requested.
const TROUBLE: usize = 100;

/// The colour of a number of targets that are up: a few of many that are down are no outage.
pub(super) fn share_class(up: u64, of: u64) -> &'static str {
    match up {
        _ if up == of => "good",
        _ if up * 2 <= of => "bad",
        _ => "warn",
    }
}

/// The sign of a class, for displays without colour.
pub(super) fn sign_of(class: &str) -> char {
    match class {
        "bad" => '✖',
        "warn" => '▲',
        "off" => '○',
        _ => '●',
    }
}

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
    sign_of(class(state))
}

/// The elements of a balancer around its parts.
pub(super) fn section<'a>(page: &mut String, number: usize, open: bool, part: impl Fn(&str) -> &'a str) {
    let open = if open { " open" } else { "" };
    let _ = write!(
        page,
        "<details{open} id=\"pool-{number}\">\n<summary id=\"pool-{number}-head\">{}</summary>\n\
         <p class=\"quiet\" id=\"pool-{number}-more\">{}</p>\n<table class=\"cards targets\">\n\
         <thead><tr><th>Target</th><th>State</th><th>Last check</th><th class=\"n\">In flight</th>\
         <th class=\"n\">Rate</th><th class=\"n\">5xx</th><th class=\"n\">Mean</th><th class=\"n\">Weight</th></tr></thead>\n\
         <tbody id=\"pool-{number}-rows\">{}</tbody>\n</table>\n</details>\n",
        part("head"),
        part("more"),
        part("rows"),
    );
}

/// Its name, and the numbers of its targets by state.
pub(super) fn head(pool: &PoolView) -> String {
    let mut by_state: BTreeMap<State, usize> = BTreeMap::new();
    pool.targets.iter().for_each(|target| *by_state.entry(target.state).or_default() += 1);
    let of = pool.targets.len() as u64;
    let words: Vec<String> = by_state
        .iter()
        .map(|(state, n)| {
            // A few of many that are down are a warning.
            let class = match class(*state) {
                "bad" => share_class(of - *n as u64, of),
                class => class,
            };
            let (n, sign) = (count(*n as u64), sign(*state));
            format!(
                "<span class=\"{class}\">{sign}\u{a0}{n}\u{a0}{}</span>",
                state.word().replace(' ', "\u{a0}")
            )
        })
        .collect();
    format!("<h3>{}</h3> {}", escaped(&pool.name), words.join(" · "))
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
pub(super) fn rows(pool: &PoolView, now_unix_ms: u64, all: bool) -> String {
    let mut html = String::new();
    for target in shown(pool, all) {
        let addr = target.addr.as_ref().filter(|addr| **addr != target.name);
        let addr = addr.map(|addr| format!("<small>{}</small>", escaped(addr))).unwrap_or_default();
        // What the check saw is beside it.
        let is_shown = |why: &&String| !(why.starts_with("its health checks fail") && is_failing(target));
        let why = target.why.iter().filter(is_shown).map(|why| format!("<small>{}</small>", escaped(why)));
        let why: String = why.collect();
        let by_hand = match (target.admin, target.weight == target.file_weight) {
            ("file", true) => "",
            ("file", false) => "<small>weight set by hand</small>",
            _ => "<small>set by hand</small>",
        };
        let failed = target.failed.filter(|n| *n > 0);
        let failed = failed.map(|n| format!("<small>{} in all</small>", count(n))).unwrap_or_default();
        let share = target.share_5xx.map(|share| match users::class_of(Some(share)) {
            "" => users::percent(share),
            class => format!("<span class=\"{class}\">{}</span>", users::percent(share)),
        });
        let estimate = target.estimate_ms.map(|of| format!("<small>estimate {}</small>", ms(of)));
        let load = target.load.map(|of| format!("<small>load {:.0} %</small>", of * 100.0));
        let _ = writeln!(
            html,
            "<tr><td class=\"target\">{}{addr}{why}{by_hand}</td><td data-l=\"State\"><span class=\"{}\">{}\u{a0}{}</span>{}</td>\
             <td data-l=\"Last check\">{}</td><td class=\"n\" data-l=\"In flight\">{}</td><td class=\"n\" data-l=\"Rate\">{}</td>\
             <td class=\"n\" data-l=\"5xx\">{}{failed}</td><td class=\"n\" data-l=\"Mean\">{}{}{}</td><td class=\"n\" data-l=\"Weight\">{}</td></tr>",
            escaped(&target.name),
            class(target.state),
            sign(target.state),
            target.state.word().replace(' ', "\u{a0}"),
            since(target, now_unix_ms),
            last_check(target, now_unix_ms),
            optional(target.in_flight.map(count)),
            optional(target.rate_per_s.map(|rate| format!("{}\u{a0}/s", number(rate)))),
            optional(share),
            optional(target.mean_ms.map(ms)),
            estimate.unwrap_or_default(),
            load.unwrap_or_default(),
            number(target.weight),
        );
    }
    html
}

/// Whether its last check has failed.
fn is_failing(target: &TargetView) -> bool {
    target.last_check.as_ref().is_some_and(|check| !matches!(check.result, "passed" | "skipped"))
}

/// Since when it is up or down.
fn since(target: &TargetView, now_unix_ms: u64) -> String {
    match target.since_unix_ms {
        Some(at) => format!(
            "<small>since {} ({})</small>",
            clock(now_unix_ms, at),
            stretch(now_unix_ms.saturating_sub(at)).replace(' ', "\u{a0}")
        ),
        None if target.picked => String::new(),
        None => "<small>since the start</small>".to_owned(),
    }
}

/// What its last check saw, and when.
fn last_check(target: &TargetView, now_unix_ms: u64) -> String {
    let Some(check) = &target.last_check else { return optional(None) };
    let words = match check.result {
        "passed" => escaped(&check.words).to_string(),
        "skipped" => format!("<span class=\"warn\">{}</span>", escaped(&check.words)),
        _ => format!("<span class=\"saw\">{}</span>", escaped(&check.words)),
    };
    format!("{words}, {}", ago(now_unix_ms, check.at_unix_ms).replace(' ', "\u{a0}"))
}

/// How many targets are shown of how many.
pub(super) fn more(pool: &PoolView, all: bool) -> String {
    let (shown, of) = (shown(pool, all).len(), pool.targets.len());
    match of - shown {
        0 if all && of > SHORT => {
            format!("all {} targets, the worst first · <a href=\"?\">show fewer</a>", count(of as u64))
        }
        0 => String::new(),
        hidden => format!(
            "{} of {} targets, the worst first; {} more · <a href=\"?all=1\">show all</a>",
            count(shown as u64),
            count(of as u64),
            count(hidden as u64)
        ),
    }
}
