//! The table of differences: every scenario against the baseline, each statistic with its interval and its verdict.

use super::contest::{Contest, find};
use super::shown::Selection;
use crate::compare::{Compared, Verdict, signed};
use crate::number::with_interval;
use crate::{escaped, page};
use std::io::{self, Write};

/// More rows than this are folded.
const ROWS: usize = 24;

const NOTE: &str = "The difference (ms, or percentage points of success) with its 95 % interval, below it the quotient. ▼ less, ▲ more, \
    = no significant difference; all these verdicts hold together with 95 % (Holm's correction).";

pub(super) fn write(contest: &Contest<'_>, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    let statistics = contest.statistics();
    let rivals: Vec<_> = contest.rivals().collect();
    if statistics.is_empty() || rivals.iter().all(|r| r.statistics.iter().all(|c| c.difference.p.is_none())) {
        return Ok(());
    }
    page::section(&format!("Against {}", contest.baseline), NOTE, out)?;
    let is_long = rivals.len() > ROWS;
    if is_long {
        writeln!(out, "<details><summary>All {} scenarios</summary>", rivals.len())?;
    }
    writeln!(
        out,
        "<div class=\"wide\" tabindex=\"0\">\n<table class=\"against\">\n<thead><tr><th>scenario</th>"
    )?;
    for name in &statistics {
        writeln!(out, "<th class=\"n\">{}</th>", name)?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for rival in &rivals {
        write!(out, "<tr><td>{}</td>", escaped(&shown.labels[rival.number]))?;
        for name in &statistics {
            write!(out, "{}", find(rival.statistics, name).map_or_else(|| "<td></td>".to_owned(), cell))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody>\n</table>\n</div>")?;
    if is_long {
        writeln!(out, "</details>")?;
    }
    writeln!(out, "</section>")
}

fn cell(c: &Compared) -> String {
    let is_share = c.name == "success";
    let (sign, class) = match (c.difference.p, c.verdict) {
        (None, _) => ("", ""),
        (_, Verdict::NotSignificant) => ("= ", ""),
        (_, Verdict::Less) => ("▼ ", if is_share { " bad" } else { " good" }),
        (_, Verdict::More) => ("▲ ", if is_share { " good" } else { " bad" }),
    };
    let difference = signed(&c.difference.estimate, if is_share { 100.0 } else { 1.0 }, "");
    let quotient = match c.ratio.value {
        Some(_) if !is_share => format!("<small>×{}</small>", escaped(&with_interval(&c.ratio))),
        _ => String::new(),
    };
    format!("<td class=\"n{class}\">{sign}{}{quotient}</td>", escaped(&difference))
}
