//! The problems, the worst first, and the state in a sentence.

use super::rows::count;
use super::{fleets, limits, pools, users};
use crate::page::TimedView;
use weir_report::escaped;
use weir_serve::{State, View};

/// Alarms that are shown; the others are counted.
const MOST: usize = 20;

/// All alarms with their classes: `bad`, `warn`.
fn all(seen: &TimedView) -> Vec<(&'static str, String)> {
    let view = &seen.view;
    let mut all: Vec<(&'static str, String)> = Vec::new();
    all.extend(seen.stalled.iter().map(|what| ("bad", what.clone())));
    let silent = view.silent.iter().filter(|_| seen.stalled.is_empty());
    all.extend(silent.map(|what| ("bad", what.clone())));
    let lost = view.listeners.iter().filter(|listener| !listener.has_target);
    all.extend(
        lost.map(|listener| ("bad", format!("listener {} has no target: its requests fail", listener.name))),
    );
    for listener in &view.listeners {
        let Some(now) = listener.recent.first() else { continue };
        let (class, share) = (users::class(now), now.share_5xx.unwrap_or_default());
        if !class.is_empty() {
            all.push((
                class,
                format!(
                    "listener {}: {} of the requests of the last 10 s failed",
                    listener.name,
                    users::percent(share)
                ),
            ));
        }
    }
    for pool in &view.pools {
        let (up, of) = (u64::from(pool.eligible), u64::from(pool.of));
        if pool.panic {
            all.push(("bad", format!("{}: so few targets are left that their health is ignored", pool.name)));
        } else if up < of {
            let down = of - up;
            let are = if down == 1 { "is" } else { "are" };
            all.push((
                pools::share_class(up, of),
                format!("{}: {} of {} targets {are} down", pool.name, count(down), count(of)),
            ));
        }
    }
    all.extend(fleets::alarms(view));
    let near = view.limits.iter().filter(|limit| !limits::class(limit).is_empty());
    all.extend(near.map(|limit| (limits::class(limit), limits::words(limit))));
    if view.draining {
        all.push((
            "warn",
            "weir was told to end: nothing new is accepted, what is in progress goes on".to_owned(),
        ));
    }
    if let Some(Err(why)) = &seen.config.last_reload {
        all.push(("warn", format!("the last reload changed nothing: {why}")));
    }
    let waits = seen.config.waits_for_hand_over.iter();
    all.extend(waits.map(|what| ("warn", format!("waits for a hand-over: {what}"))));
    all.extend(seen.config.warnings.iter().map(|what| ("warn", what.clone())));
    all.sort_by_key(|(class, _)| *class != "bad");
    all
}

/// The problems as paragraphs.
pub(super) fn alarms(seen: &TimedView) -> String {
    let all = all(seen);
    let paragraph = |(class, words): &(&str, String)| {
        let sign = pools::sign_of(class);
        format!("<p class=\"alarm {class}\"><strong>{sign}</strong> {}</p>", escaped(words))
    };
    let mut html: String = all.iter().take(MOST).map(paragraph).collect();
    if all.len() > MOST {
        html.push_str(&format!(
            "<p class=\"quiet\">and {} more problems</p>",
            count((all.len() - MOST) as u64)
        ));
    }
    html
}

/// The class of the worst problem.
pub(super) fn tone(seen: &TimedView) -> &'static str {
    match all(seen).first() {
        Some((class, _)) => class,
        None => "good",
    }
}

/// Targets that may be picked, and all with a weight.
fn targets(view: &View) -> (u64, u64) {
    let (mut up, mut of) = (0, 0);
    for pool in &view.pools {
        (up, of) = (up + u64::from(pool.eligible), of + u64::from(pool.of));
    }
    (up, of)
}

/// The title of the window: what is wrong can be read without opening it.
pub(super) fn title(seen: &TimedView) -> String {
    let (up, of) = targets(&seen.view);
    let file = escaped(&seen.file);
    match tone(seen) {
        "bad" | "warn" if up < of => {
            format!("{} {} down · {file} · weir", pools::sign_of(tone(seen)), count(of - up))
        }
        class @ ("bad" | "warn") => format!("{} {file} · weir", pools::sign_of(class)),
        _ => format!("{file} · weir"),
    }
}

/// The state in a sentence.
pub(super) fn status(view: &View) -> String {
    let states = || view.pools.iter().flat_map(|pool| &pool.targets).map(|target| target.state);
    let (of, up) = (states().count(), states().filter(|state| *state == State::Up).count());
    let bad = states().filter(|state| pools::class(*state) == "bad").count();
    let class = if bad > 0 { pools::share_class((of - bad) as u64, of as u64) } else { "warn" };
    let targets = match of - up {
        0 if of == 0 && !view.silent.is_empty() => "targets are not known".to_owned(),
        0 if of == 0 => "no balancer".to_owned(),
        0 if of == 1 => "its target is up".to_owned(),
        0 => format!("<span class=\"good\">●</span> all {} targets are up", count(of as u64)),
        out => {
            let are = if out == 1 { "is" } else { "are" };
            format!(
                "<span class=\"{class}\">{} {} of {} targets {are} not up</span>",
                pools::sign_of(class),
                count(out as u64),
                count(of as u64)
            )
        }
    };
    let rate: f64 =
        view.listeners.iter().filter_map(|listener| Some(listener.recent.first()?.rate_per_s)).sum();
    let rate = format!(" · {}\u{a0}requests/s", super::rows::number(rate.max(0.0)));
    let users = match users::worst(view) {
        "" => String::new(),
        class => format!(" · <span class=\"{class}\">users see failures</span>"),
    };
    let serving = if view.draining { "<span class=\"warn\">draining</span>" } else { "serving" };
    format!("{serving}{rate}{users} · {targets}")
}
