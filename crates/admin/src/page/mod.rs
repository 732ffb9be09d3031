//! The status page: a single file, readable as it arrives, and updated where scripts run (`/events`).
//!
//! It consists of named parts, each the content of an element. The page has them as they are; an event those that
//! have changed, so the first and the later contents are written once.

mod notes;
mod pools;
mod rows;
mod view;

pub(crate) use notes::Live;
pub(crate) use view::{Rendered, TimedView};

use crate::answer::{Answer, answer as answered};
use crate::topology;
use hyper::StatusCode;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use weir_report::escaped;
use weir_report::graph::STYLE as GRAPH_STYLE;
use weir_serve::{PoolView, State, View};

/// The parts of a page, by the names of their elements.
#[derive(Debug, Default)]
pub(crate) struct Parts(BTreeMap<String, String>);

impl Parts {
    /// Of a view; `all`: with all targets.
    pub fn new(seen: &TimedView, all: bool) -> Parts {
        let view = &seen.view;
        let mut parts = BTreeMap::new();
        let mut part = |name: &str, html: String| {
            parts.insert(name.to_owned(), html);
        };
        part("status", status(view));
        part("alarms", alarms(seen));
        part("listeners", rows::listeners(view));
        part("drawing", seen.drawing.svg(|nodes| notes::note(seen, nodes)));
        part("queues", rows::queues(view));
        part("loops", rows::loops(view));
        for (number, pool) in view.pools.iter().enumerate() {
            part(&format!("pool-{number}-head"), pools::head(pool));
            part(&format!("pool-{number}-rows"), pools::rows(pool, &seen.rates, all));
            part(&format!("pool-{number}-more"), pools::more(pool, all));
        }
        part("shape", shape(seen));
        Parts(parts)
    }

    /// The parts with their names.
    pub fn each(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, html)| (&name[..], &html[..]))
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |html| html)
    }
}

/// The version that a page must have to continue with events.
fn shape(seen: &TimedView) -> String {
    format!("{} {} {}", env!("CARGO_PKG_VERSION"), seen.view.generation, seen.view.pools.len())
}

/// The elements around the parts.
pub(crate) fn answer(seen: &TimedView, all: bool) -> Answer {
    // Without a nonce a page has no script, and is static.
    let nonce = getrandom::u64().unwrap_or_default();
    let mut page = answered(StatusCode::OK, "text/html; charset=utf-8", html(seen, all, nonce));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce:016x}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    page
}

fn html(seen: &TimedView, all: bool, nonce: u64) -> String {
    let (parts, view) = (seen.parts(all), &seen.view);
    let file = escaped(&seen.file);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{file} · weir</title>\n\
         <noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n\
         <style>\n{}{GRAPH_STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{file}</h1>\n\
         <p id=\"status\" role=\"status\">{}</p>\n<p id=\"live\" class=\"quiet\"></p>\n</header>\n<div id=\"alarms\">{}</div>\n",
        include_str!("style.css"),
        parts.get("status"),
        parts.get("alarms")
    );
    let _ = write!(
        page,
        "<section>\n<h2>Topology</h2>\n<div class=\"wide\" id=\"drawing\" tabindex=\"0\">{}</div>\n</section>\n",
        parts.get("drawing")
    );
    section(&mut page, "Listeners", "listeners", &["Listener", "Address", "#Clients", "Targets"], parts);
    for (number, pool) in view.pools.iter().enumerate() {
        pools::section(&mut page, number, is_open(view, pool), |what| {
            parts.get(&format!("pool-{number}-{what}"))
        });
    }
    if !view.queues.is_empty() {
        section(&mut page, "Queues", "queues", &["Queue", "#Inside", "#Waiting"], parts);
    }
    section(&mut page, "Event loops", "loops", &["Loop", "#Clients", "#Requests"], parts);
    let (version, plan) =
        (env!("CARGO_PKG_VERSION"), seen.config.plan.get(..12).unwrap_or(&seen.config.plan));
    let _ = write!(
        page,
        "<footer>weir {version} · generation {} · plan {} · since {} · \
         <a href=\"topology\">topology</a> <a href=\"config\">config</a> <a href=\"metrics\">metrics</a></footer>\n\
         <span id=\"shape\" hidden>{}</span>\n<script nonce=\"{nonce:016x}\">\n{}</script>\n</body>\n</html>\n",
        view.generation,
        escaped(plan),
        topology::format_time(seen.config.at_unix_ms),
        parts.get("shape"),
        include_str!("page.js")
    );
    page
}

/// A table with these headings; one that begins with `#` is numeric.
fn section(page: &mut String, title: &str, part: &str, headings: &[&str], parts: &Parts) {
    let heading = |heading: &&str| match heading.strip_prefix('#') {
        Some(number) => format!("<th class=\"n\">{number}</th>"),
        None => format!("<th>{heading}</th>"),
    };
    let headings: String = headings.iter().map(heading).collect();
    let rows = parts.get(part);
    let _ = write!(
        page,
        "<section>\n<h2>{title}</h2>\n<div class=\"wide\"><table>\n<thead><tr>{headings}</tr></thead>\n\
         <tbody id=\"{part}\">{rows}</tbody>\n</table></div>\n</section>\n"
    );
}

/// A long list of healthy balancers is collapsed.
fn is_open(view: &View, pool: &PoolView) -> bool {
    view.pools.len() <= 12 || pool.targets.iter().any(|target| target.state != State::Up)
}

/// The state in a sentence.
fn status(view: &View) -> String {
    let states = || view.pools.iter().flat_map(|pool| &pool.targets).map(|target| target.state);
    let (of, up) = (states().count(), states().filter(|state| *state == State::Up).count());
    let class = if states().any(|state| pools::class(state) == "bad") { "bad" } else { "warn" };
    let targets = match of - up {
        0 if of == 0 => "no balancer".to_owned(),
        0 if of == 1 => "its target is up".to_owned(),
        0 => format!("all {} targets are up", rows::count(of as u64)),
        out => {
            let are = if out == 1 { "is" } else { "are" };
            format!(
                "<span class=\"{class}\">{} of {} targets {are} not up</span>",
                rows::count(out as u64),
                rows::count(of as u64)
            )
        }
    };
    let serving = if view.draining { "<span class=\"warn\">draining</span>" } else { "serving" };
    format!("{serving} · {targets}")
}

/// The problems.
fn alarms(seen: &TimedView) -> String {
    let view = &seen.view;
    let mut all: Vec<String> = seen.stalled.clone();
    all.extend(view.silent.iter().filter(|_| seen.stalled.is_empty()).cloned());
    if view.draining {
        all.push("weir was told to end: nothing new is accepted, what is in progress goes on".to_owned());
    }
    let lost = view.listeners.iter().filter(|listener| !listener.has_target);
    all.extend(lost.map(|listener| format!("listener {} has no target: its requests fail", listener.name)));
    let panic = view.pools.iter().filter(|pool| pool.panic);
    all.extend(
        panic.map(|pool| format!("{}: so few targets are left that their health is ignored", pool.name)),
    );
    if let Some(Err(why)) = &seen.config.last_reload {
        all.push(format!("the last reload changed nothing: {why}"));
    }
    all.extend(seen.config.waits_for_hand_over.iter().map(|what| format!("waits for a hand-over: {what}")));
    all.extend(seen.config.warnings.iter().cloned());
    all.iter().map(|alarm| format!("<p class=\"alarm\">{}</p>", escaped(alarm))).collect()
}

#[cfg(test)]
mod tests;
