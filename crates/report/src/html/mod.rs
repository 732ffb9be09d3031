//! A simulation as one self-contained page, readable without scripts and on paper: what would mislead, the answer in a
//! few figures, the scenarios side by side, over time, as a sweep, as curves, then the topology, and site by site.

mod against;
mod bars;
mod baseline;
mod contest;
mod curves;
mod histograms;
mod marks;
mod outcomes;
mod over_time;
mod parts;
mod places;
mod shown;
mod summary;
mod sweep;
mod time_charts;
mod verdict;

use crate::column::Column;
use crate::graph::pictures;
use crate::saved::SavedResult;
use crate::{comparison, connections, entry, expected, expected_page, page, sites, text, unknown, wrap};
use contest::Contest;
pub(crate) use parts::write_one_run;
use places::Places;
use shown::{Selection, needs_attention};
use std::io::{self, Write};
use weir_plan::Plan;
use weir_sim::Results;

/// `baseline`: the name of the scenario that the others are compared with; the first, if there is none.
pub(crate) fn write(
    results: &Results,
    plan: &Plan,
    baseline: Option<&str>,
    columns: &[Column],
    out: &mut dyn Write,
) -> io::Result<()> {
    let (shown, places) = (Selection::new(results), Places::new(&results.scenarios));
    page::begin(&results.file, &results.file, out)?;
    if results.interrupted {
        let what = text::interrupted(results).replacen('i', "I", 1);
        page::warning(&format!("{what}: what follows is what was finished."), "", out)?;
    }
    for (warning, labels) in entry::warnings(results, &entry::QUANTILES) {
        page::warning(&warning, &entry::listed(&labels), out)?;
    }
    let saved = SavedResult::new(results).ok();
    let contest = saved.as_ref().and_then(|saved| Contest::new(results, saved, baseline));
    let verdict = verdict::sentences(results, contest.as_ref(), &shown.labels);
    summary::write(results, &shown, &verdict, out)?;
    expected_page::write(expected::rows(results), out)?;
    table(results, &shown, &comparison::chosen(columns, results), out)?;
    outcomes::write(results, &shown, out)?;
    if let Some(contest) = &contest {
        baseline::write(contest, &shown, out)?;
    }
    parts::write(results, &shown, out)?;
    over_time::write(results, &shown, &places, out)?;
    sweep::write(results, out)?;
    curves::write(results, &shown, out)?;
    histograms::write(results, &shown, out)?;
    bars::parts(results, &shown, &places, out)?;
    bars::utilisation(results, &shown, out)?;
    bars::spread(results, &shown, out)?;
    topology(results, plan, out)?;
    scenarios(results, &shown, out)?;
    let settings = entry::settings(results).map_or(String::new(), |settings| format!("{settings} · "));
    page::end(&format!("{settings}{}", entry::signature(results)), out)
}

/// Pictures that are drawn, the first of them open; a note names where further ones are.
const FOLDED: usize = 12;

fn topology(results: &Results, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    let mut names: Vec<String> = results.scenarios.iter().map(|s| s.name.clone()).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(());
    }
    let pictures = pictures(plan, &names);
    page::section(
        "Topology",
        "Nodes made by one line of the file are one box, with their number; lines that cross lead to shared nodes.",
        out,
    )?;
    for (at, picture) in pictures.iter().enumerate().take(FOLDED) {
        let heading = crate::escaped(&picture.heading());
        let drawn = picture.svg();
        match (pictures.len(), at) {
            (1, _) => writeln!(out, "<div class=\"wide\" tabindex=\"0\">\n{drawn}</div>")?,
            _ => writeln!(
                out,
                "<details{}><summary>{heading}</summary>\n<div class=\"wide\" tabindex=\"0\">\n{drawn}</div></details>",
                if at == 0 { " open" } else { "" }
            )?,
        }
    }
    if pictures.len() > FOLDED {
        let more = pictures.len() - FOLDED;
        writeln!(
            out,
            "<p class=\"note\">{more} more look different; <code>weir graph</code> draws them.</p>"
        )?;
    }
    writeln!(out, "</section>")
}

/// More rows than this are folded.
const ROWS: usize = 24;

fn table(results: &Results, shown: &Selection, columns: &[Column], out: &mut dyn Write) -> io::Result<()> {
    page::section(
        "Scenarios",
        "Latency of all requests (ok: of successes) in ms, ± half of the 95 % interval.",
        out,
    )?;
    let all = results.scenarios.len();
    let table = comparison::table(results, columns);
    let whole = format!("<div class=\"wide\" tabindex=\"0\">\n{}</div>", table.html());
    if all <= ROWS {
        writeln!(out, "{whole}")?;
    } else {
        let few = Results {
            scenarios: shown.on().map(|at| results.scenarios[at].clone()).collect(),
            ..results.clone()
        };
        writeln!(
            out,
            "<div class=\"wide\" tabindex=\"0\">\n{}</div>\n<details><summary>All {all} scenarios</summary>\n{whole}</details>",
            comparison::table(&few, columns).html()
        )?;
    }
    for line in unknown_quantiles(results, shown, columns) {
        writeln!(out, "<p class=\"note\">{}</p>", crate::escaped(&line))?;
    }
    writeln!(out, "</section>")
}

/// Why quantiles of the table are unknown, a line each: `p99 needs 1 000 requests a replication, has 977 (main)`.
fn unknown_quantiles(results: &Results, shown: &Selection, columns: &[Column]) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for column in columns {
        let Column::Metric(metric) = *column else { continue };
        for (s, label) in results.scenarios.iter().zip(&shown.labels) {
            let replications = entry::replications(s, results);
            let Some(why) = unknown::reason(s, replications, metric, &s.estimate(metric)) else { continue };
            let line = format!("{} {why}", column.name());
            match reasons.iter_mut().find(|(known, _)| *known == line) {
                Some((_, labels)) => labels.push(label.clone()),
                None => reasons.push((line, vec![label.clone()])),
            }
        }
    }
    reasons
        .into_iter()
        .map(|(line, labels)| format!("{line} ({})", entry::listed(&labels)))
        .take(ROWS)
        .collect()
}

/// Up to this number of scenarios whose expectations fail or that warn are open.
const OPEN: usize = 3;

fn scenarios(results: &Results, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    page::section("Site by site", &sites::LEGEND.join(" · "), out)?;
    let all = results.scenarios.len();
    let troubled = || (0..all).filter(|at| needs_attention(&results.scenarios[*at]));
    let open: Vec<usize> = if all == 1 { vec![0] } else { troubled().take(OPEN).collect() };
    if all > ROWS {
        let is_open = if open.is_empty() { "" } else { " open" };
        writeln!(out, "<details{is_open}><summary>All {all} scenarios</summary>")?;
    }
    for (at, (s, label)) in results.scenarios.iter().zip(&shown.labels).enumerate() {
        let open = if open.contains(&at) { " open" } else { "" };
        writeln!(out, "<details class=\"scenario\"{open}><summary>{}</summary>", crate::escaped(label))?;
        for line in text::summary(s, results, wrap::WIDTH) {
            writeln!(out, "<p>{}</p>", crate::escaped(&line))?;
        }
        writeln!(out, "<div class=\"wide\" tabindex=\"0\">\n{}</div>", text::latency(s).html())?;
        if !s.nodes.is_empty() {
            writeln!(out, "<div class=\"wide\" tabindex=\"0\">\n{}</div>", sites::table(s).html())?;
            if let Some(connections) = connections::table(s) {
                writeln!(out, "<div class=\"wide\" tabindex=\"0\">\n{}</div>", connections.html())?;
            }
        }
        writeln!(out, "</details>")?;
    }
    if all > ROWS {
        writeln!(out, "</details>")?;
    }
    writeln!(out, "</section>")
}
