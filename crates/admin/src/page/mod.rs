//! The status page: a single file, readable as it arrives, and updated where scripts run (`/events`).
//!
//! It consists of named parts, each the content of an element. The page has them as they are; an event those that
//! have changed, so the first and the later contents are written once.

mod alarms;
mod changes;
mod fleets;
mod limits;
mod notes;
mod pools;
mod rows;
mod times;
mod users;
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

/// The icon: water over a weir. The colour of the drop is that of the worst news.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http:%2f%2fwww.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
    %3Crect width='16' height='16' rx='3' fill='%23COLOUR'/%3E\
    %3Cpath d='M2 6h6c2 0 2 7 6 7' fill='none' stroke='white' stroke-width='2.5'/%3E%3C/svg%3E";

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
        let now = seen.unix_ms;
        let tone = alarms::tone(seen);
        part("tone", tone.to_owned());
        part("title", alarms::title(seen));
        part("status", alarms::status(view));
        part("time", format!("{} UTC", times::clock(now, now)));
        part("alarms", alarms::alarms(seen));
        part("listeners", users::listeners(view));
        part("pools", users::pools(view));
        part("fleets", fleets::rows(view, now));
        part("changes", changes::first(&view.events, now));
        part("changes-label", changes::label(&view.events));
        part("changes-more", changes::more(&view.events, now));
        part("limits", limits::rows(view));
        part("certificates", limits::certificates(view, now));
        part("drawing", seen.drawing.svg(|nodes| notes::note(seen, nodes)));
        part("queues", rows::queues(view));
        part("loops", rows::loops(view));
        for (number, pool) in view.pools.iter().enumerate() {
            part(&format!("pool-{number}-head"), pools::head(pool));
            part(&format!("pool-{number}-rows"), pools::rows(pool, now, all));
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
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-{nonce:016x}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    page
}

/// The icon in the colour of a tone.
fn icon(tone: &str) -> String {
    let colour = match tone {
        "bad" => "c02a2a",
        "warn" => "b8790f",
        _ => "1f7a43",
    };
    ICON.replace("COLOUR", colour)
}

fn html(seen: &TimedView, all: bool, nonce: u64) -> String {
    let (parts, view) = (seen.parts(all), &seen.view);
    let mut page = head(seen, parts);
    if !view.listeners.is_empty() {
        page.push_str("<section>\n<h2>Listeners</h2>\n<p class=\"quiet\">The last 10 s, and below them the last 5 min.</p>\n");
        table(&mut page, "listeners", &["Listener", "#Rate", "#5xx", "#p50", "#p99", "#Clients"], parts);
        page.push_str("</section>\n");
    }
    if !view.pools.is_empty() {
        page.push_str("<section>\n<h2>Balancers</h2>\n<p class=\"quiet\">Attempts at their targets, timed to the head of the answer.</p>\n");
        table(&mut page, "pools", &["Balancer", "Targets up", "#Rate", "#5xx", "#p50", "#p99"], parts);
        page.push_str("</section>\n");
    }
    if !view.fleets.is_empty() {
        section(&mut page, "Fleets", "fleets", &["Fleet", "#Members", "List"], parts);
    }
    changes(&mut page, parts);
    if !view.pools.is_empty() {
        page.push_str("<section>\n<h2>Targets</h2>\n");
        for (number, pool) in view.pools.iter().enumerate() {
            pools::section(&mut page, number, is_open(view, pool), |what| {
                parts.get(&format!("pool-{number}-{what}"))
            });
        }
        page.push_str("</section>\n");
    }
    page.push_str("<div class=\"pair\">\n");
    section(&mut page, "Limits", "limits", &["Limit", "#Used"], parts);
    if !view.certificates.is_empty() {
        section(&mut page, "Certificates", "certificates", &["Listener", "#Ends"], parts);
    }
    if !view.queues.is_empty() {
        section(&mut page, "Queues", "queues", &["Queue", "#Inside", "#Waiting"], parts);
    }
    section(&mut page, "Event loops", "loops", &["Loop", "#Clients", "#Requests"], parts);
    let _ = write!(
        page,
        "</div>\n<section>\n<h2>Topology</h2>\n<div class=\"wide\" id=\"drawing\" tabindex=\"0\">{}</div>\n</section>\n",
        parts.get("drawing")
    );
    foot(&mut page, seen, parts, nonce);
    page
}

/// From the first byte to the alarms.
fn head(seen: &TimedView, parts: &Parts) -> String {
    let file = escaped(&seen.file);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" id=\"icon\" href=\"{}\">\n<title>{}</title>\n\
         <noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n\
         <style>\n{}{GRAPH_STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{file}</h1>\n\
         <p id=\"status\" role=\"status\">{}</p>\n<p class=\"quiet\"><span id=\"time\">{}</span> <span id=\"live\"></span></p>\n\
         </header>\n<div id=\"alarms\">{}</div>\n",
        icon(parts.get("tone")),
        parts.get("title"),
        include_str!("style.css"),
        parts.get("status"),
        parts.get("time"),
        parts.get("alarms")
    )
}

/// The last changes; those before the newest are folded.
fn changes(page: &mut String, parts: &Parts) {
    let _ = write!(
        page,
        "<section>\n<h2>Changes</h2>\n<table class=\"changes\"><tbody id=\"changes\">{}</tbody></table>\n\
         <details class=\"more\"><summary class=\"quiet\" id=\"changes-label\">{}</summary>\n\
         <table class=\"changes\"><tbody id=\"changes-more\">{}</tbody></table>\n</details>\n</section>\n",
        parts.get("changes"),
        parts.get("changes-label"),
        parts.get("changes-more")
    );
}

/// From the footer to the last byte.
fn foot(page: &mut String, seen: &TimedView, parts: &Parts, nonce: u64) {
    let (version, plan) =
        (env!("CARGO_PKG_VERSION"), seen.config.plan.get(..12).unwrap_or(&seen.config.plan));
    let _ = write!(
        page,
        "<footer>weir {version} · generation {} · plan {} · since {} · \
         <a href=\"topology\">topology</a> <a href=\"config\">config</a> <a href=\"metrics\">metrics</a></footer>\n\
         <span id=\"tone\" hidden>{}</span><span id=\"title\" hidden>{}</span><span id=\"shape\" hidden>{}</span>\n\
         <script nonce=\"{nonce:016x}\">\n{}</script>\n</body>\n</html>\n",
        seen.view.generation,
        escaped(plan),
        topology::format_time(seen.config.at_unix_ms),
        parts.get("tone"),
        parts.get("title"),
        parts.get("shape"),
        include_str!("page.js")
    );
}

fn section(page: &mut String, title: &str, part: &str, headings: &[&str], parts: &Parts) {
    let _ = write!(page, "<section>\n<h2>{title}</h2>\n");
    table(page, part, headings, parts);
    page.push_str("</section>\n");
}

/// A table with these headings; one that begins with `#` is numeric. On narrow screens a wide one becomes a list.
fn table(page: &mut String, part: &str, headings: &[&str], parts: &Parts) {
    let heading = |heading: &&str| match heading.strip_prefix('#') {
        Some(number) => format!("<th class=\"n\">{number}</th>"),
        None => format!("<th>{heading}</th>"),
    };
    let class = if headings.len() > 3 { "cards" } else { "few" };
    let headings: String = headings.iter().map(heading).collect();
    let rows = parts.get(part);
    let _ = write!(
        page,
        "<table class=\"{class}\">\n<thead><tr>{headings}</tr></thead>\n<tbody id=\"{part}\">{rows}</tbody>\n</table>\n"
    );
}

/// A long list of healthy balancers is collapsed.
fn is_open(view: &View, pool: &PoolView) -> bool {
    view.pools.len() <= 12 || pool.targets.iter().any(|target| target.state != State::Up)
}

#[cfg(test)]
mod tests;
