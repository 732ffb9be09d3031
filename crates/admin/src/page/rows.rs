//! The smaller tables of the page, and the format of numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use weir_report::{escaped, group_digits};
use weir_serve::{QueueView, View};

/// The mark of an unknown value.
const UNKNOWN: &str = "–";

/// 12345 as 12,345.
pub(super) fn count(n: u64) -> String {
    group_digits(n, ',')
}

/// A time in ms, with three digits.
pub(super) fn ms(ms: f64) -> String {
    match ms {
        ms if ms >= 100.0 => format!("{} ms", count(ms.round() as u64)),
        ms if ms >= 10.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.2} ms"),
    }
}

/// The value, or a dash.
pub(super) fn optional(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}

/// A number with at most three significant digits.
pub(super) fn number(x: f64) -> String {
    match x {
        x if x >= 100.0 => count(x.round() as u64),
        x if x == x.trunc() => format!("{x:.0}"),
        x if x >= 10.0 => format!("{x:.1}"),
        x => format!("{x:.2}"),
    }
}

/// Queues of one name are one row.
pub(super) fn queues(view: &View) -> String {
    let mut named: BTreeMap<&str, Vec<&QueueView>> = BTreeMap::new();
    view.queues.iter().for_each(|queue| named.entry(&queue.name).or_default().push(queue));
    let mut html = String::new();
    for (name, queues) in named {
        let sum = |of: fn(&QueueView) -> u64| queues.iter().map(|queue| of(queue)).sum::<u64>();
        let (inside, most) = (sum(|q| q.inside.into()), sum(|q| q.concurrency.into()));
        let (waiting, many) = (sum(|q| q.waiting), queues.len());
        let many = if many > 1 { format!(" × {}", count(many as u64)) } else { String::new() };
        let class = if waiting > 0 { "n warn" } else { "n" };
        let _ = writeln!(
            html,
            "<tr><td class=\"target\">{}{many}</td><td class=\"n\" data-l=\"Inside\">{} of {}</td><td class=\"{class}\" data-l=\"Waiting\">{}</td></tr>",
            escaped(name),
            count(inside),
            count(most),
            count(waiting)
        );
    }
    html
}

pub(super) fn loops(view: &View) -> String {
    let mut html = String::new();
    for one in &view.loops {
        let clients = match one.clients {
            Some(n) => count(n as u64),
            None => "<span class=\"bad\">✖ no answer</span>".to_owned(),
        };
        let _ = writeln!(
            html,
            "<tr><td>loop {}</td><td class=\"n\" data-l=\"Clients\">{clients}</td><td class=\"n\" data-l=\"Requests\">{}</td></tr>",
            one.number,
            count(one.carries as u64)
        );
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.123, 12.34, 1234.6].map(ms), ["0.12 ms", "12.3 ms", "1,235 ms"]);
    }
}
