//! What a verification comes to, in sentences: how many figures agree, which do not, what was not compared and why.

use crate::entry;
use weir_verify::{Omission, Options, ScenarioVerified, Statistic, Verdict, Verification};

/// What the verdicts mean.
const LEGEND: &str = "A figure agrees if the whole 95 % interval of its difference lies within what is allowed, and differs if \
                      all of it lies outside. Else it is undecided: more runs make the interval narrower.";

/// The whole verification: counts of figures, those that do not agree, what was not compared.
pub(crate) fn summarize(found: &Verification) -> Vec<String> {
    let swept = find_swept(found);
    let mut sentences = vec![format!("{}.", count_verdicts(found))];
    for (verdict, heading) in [(Verdict::Differs, "Differs"), (Verdict::Undecided, "Undecided")] {
        let figures = list_figures(found, verdict);
        if !figures.is_empty() {
            sentences.push(format!("{heading}: {}.", figures.join("; ")));
        }
    }
    sentences.extend(list_omissions(found, &swept).into_iter().map(|what| format!("Not compared: {what}.")));
    if found.scenarios.iter().any(|s| !s.statistics.is_empty()) {
        sentences.push(LEGEND.to_owned());
    }
    sentences
}

/// "18 figures were compared (2 scenarios, 10 runs): 16 agree, 1 differs, 1 is undecided".
fn count_verdicts(found: &Verification) -> String {
    let of = |verdict: Verdict| statistics(found).filter(|s| s.verdict == verdict).count();
    let (all, agree) = (statistics(found).count(), of(Verdict::Agrees));
    let runs: u32 = found.scenarios.iter().map(|s| s.runs).sum();
    let void: usize = found.scenarios.iter().map(|s| s.void.len()).sum();
    let mut made = format!(
        "{}, {}",
        count_things(found.scenarios.len(), "scenario"),
        count_things(runs as usize, "run")
    );
    if void > 0 {
        made += &format!(", {void} void beside them");
    }
    let compared = format!(
        "{} {} compared ({made})",
        count_things(all, "figure"),
        if all == 1 { "was" } else { "were" }
    );
    let counts = [
        (agree, "agrees", "agree"),
        (of(Verdict::Differs), "differs", "differ"),
        (of(Verdict::Undecided), "is undecided", "are undecided"),
    ];
    match all {
        0 => compared,
        _ if all == agree => format!("{compared}: all agree"),
        _ => {
            let counts = counts.into_iter().filter(|(n, ..)| *n > 0);
            let counts = counts.map(|(n, one, more)| format!("{n} {}", if n == 1 { one } else { more }));
            format!("{compared}: {}", counts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// "1 run", "5 runs".
fn count_things(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn statistics(found: &Verification) -> impl Iterator<Item = &Statistic> {
    found.scenarios.iter().flat_map(|s| &s.statistics)
}

/// The figures of a verdict, each with its scenarios where there are several: "p99 of one, other".
fn list_figures(found: &Verification, verdict: Verdict) -> Vec<String> {
    let swept = find_swept(found);
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for s in &found.scenarios {
        for name in s.statistics.iter().filter(|one| one.verdict == verdict).map(|one| one.name) {
            let label = add_point(&s.name, &s.params, &swept);
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, labels)) => labels.push(label),
                None => all.push((name, vec![label])),
            }
        }
    }
    all.into_iter().map(|(name, labels)| add_scenarios(found, show_name(name).to_owned(), &labels)).collect()
}

/// What was not compared, with the reason; the same of several scenarios is one.
fn list_omissions(found: &Verification, swept: &[&str]) -> Vec<String> {
    let mut all: Vec<(&Omission, Vec<String>)> = Vec::new();
    for s in &found.scenarios {
        for omission in &s.omissions {
            let label = add_point(&s.name, &s.params, swept);
            match all.iter_mut().find(|(known, _)| *known == omission) {
                Some((_, labels)) => labels.push(label),
                None => all.push((omission, vec![label])),
            }
        }
    }
    let describe = |(Omission { names, why }, labels): (&Omission, Vec<String>)| {
        let names: Vec<&str> = names.iter().map(|name| show_name(name)).collect();
        let what = if names.is_empty() { "all figures".to_owned() } else { names.join(", ") };
        format!("{}, since {why}", add_scenarios(found, what, &labels))
    };
    all.into_iter().map(describe).collect()
}

/// The names of the scenarios that something is of, where there are several, also if an interrupt left one of them.
fn add_scenarios(found: &Verification, what: String, labels: &[String]) -> String {
    if count_scenarios(found) == 1 { what } else { format!("{what} of {}", entry::listed(labels)) }
}

/// "1 of 18 figures: p99 of one": those with that verdict.
pub(crate) fn count_figures(found: &Verification, verdict: Verdict) -> String {
    let n = statistics(found).filter(|s| s.verdict == verdict).count();
    let all = count_things(statistics(found).count(), "figure");
    format!("{n} of {all}: {}", list_figures(found, verdict).join("; "))
}

/// What decides what is undecided, as far as more runs do.
pub(crate) fn advise_runs(found: &Verification) -> String {
    let undecided = statistics(found).filter(|s| s.verdict == Verdict::Undecided);
    match undecided.filter_map(|s| s.runs_needed).max() {
        Some(n @ ..=Options::MOST_RUNS) => format!("{n} runs would decide: --runs {n}"),
        Some(n) => format!("{n} runs would decide, more than --runs takes; longer runs decide with fewer"),
        None => "try more runs (--runs)".to_owned(),
    }
}

/// A statistic as tables call it.
pub(crate) fn show_name(name: &str) -> &str {
    match name {
        "share" => "share of a server",
        "newcomers" => "share of newcomers",
        "opened" => "connections opened",
        "open" => "connections open",
        name => name,
    }
}

/// The verdict on a scenario in words.
pub(crate) fn sentence(s: &ScenarioVerified) -> String {
    let runs = count_things(s.runs as usize, "run");
    let runs = if s.runs < s.asked_runs { format!("{runs} of {}", s.asked_runs) } else { runs };
    let of = |verdict: Verdict| {
        let names = s.statistics.iter().filter(|s| s.verdict == verdict).map(|s| show_name(s.name));
        names.collect::<Vec<_>>()
    };
    let all = count_things(s.statistics.len(), "figure");
    let agree = match of(Verdict::Agrees).len() {
        1 => "1 agrees".to_owned(),
        n => format!("{n} agree"),
    };
    let (differ, undecided) = (of(Verdict::Differs), of(Verdict::Undecided));
    match s.verdict {
        Verdict::Agrees => format!("simulation and reality agree in all of {all} ({runs})"),
        Verdict::Differs => {
            let rest = match undecided.len() {
                0 => String::new(),
                n => format!(", {n} undecided"),
            };
            let differ = differ.join(", ");
            format!("simulation and reality differ in {differ} ({runs}); of {all} {agree}{rest}")
        }
        Verdict::Undecided if s.statistics.is_empty() => "undecided: every run is void".to_owned(),
        Verdict::Undecided => {
            let needed = s.statistics.iter().filter_map(|s| s.runs_needed).max();
            let needed = needed.map_or(String::new(), |n| format!("; {n} runs would decide"));
            format!("undecided in {} ({runs}{needed}); of {all} {agree}", undecided.join(", "))
        }
    }
}

/// A scenario, with the point of a sweep that it is of.
pub(crate) fn add_point(name: &str, params: &[(String, weir_plan::Value)], swept: &[&str]) -> String {
    let point = entry::point(params, swept);
    if point.is_empty() { name.to_owned() } else { format!("{name} ({point})") }
}

/// The parameters that differ between scenarios.
pub(crate) fn find_swept(found: &Verification) -> Vec<&str> {
    let missing = found.missing.iter().map(|s| &s.params[..]);
    entry::differing(found.scenarios.iter().map(|s| &s.params[..]).chain(missing))
}

/// What was finished of a verification that was interrupted, and what was not, in one line.
pub(crate) fn interrupted(found: &Verification) -> String {
    let gaps = list_gaps(found).into_iter();
    let gaps = gaps.map(|Gap { heading, labels }| format!("; {heading}: {}", entry::listed(&labels)));
    count_finished(found) + &gaps.collect::<String>()
}

/// The same in sentences, with the names of all scenarios.
pub(crate) fn describe_interruption(found: &Verification) -> Vec<String> {
    let first = format!("{}: what follows is what was finished.", capitalize(&count_finished(found)));
    let gaps = list_gaps(found).into_iter();
    let gaps =
        gaps.map(|Gap { heading, labels }| format!("{}: {}.", capitalize(&heading), labels.join(", ")));
    std::iter::once(first).chain(gaps).collect()
}

/// "interrupted after 12 of 75 runs".
fn count_finished(found: &Verification) -> String {
    let finished: u32 = found.scenarios.iter().map(|s| s.runs).sum();
    let asked = found.scenarios.iter().map(|s| s.asked_runs);
    let asked: u32 = asked.chain(found.missing.iter().map(|s| s.runs)).sum();
    format!("interrupted after {finished} of {asked} runs")
}

/// Scenarios that an interrupt kept from their runs.
struct Gap {
    /// From which, beginning with a small letter.
    heading: String,
    /// The scenarios.
    labels: Vec<String>,
}

/// The scenarios that an interrupt kept from some of their runs, and from all of them; neither where there are none.
fn list_gaps(found: &Verification) -> Vec<Gap> {
    let swept = find_swept(found);
    let count = |s: &ScenarioVerified| {
        format!("{} ({} of {} runs)", add_point(&s.name, &s.params, &swept), s.runs, s.asked_runs)
    };
    let partial = found.scenarios.iter().filter(|s| s.interrupted).map(count);
    let missing = found.missing.iter().map(|s| add_point(&s.name, &s.params, &swept));
    let without = format!("without a run, {} of {}", found.missing.len(), count_scenarios(found));
    let gaps = [
        Gap { heading: "incomplete".to_owned(), labels: partial.collect() },
        Gap { heading: without, labels: missing.collect() },
    ];
    gaps.into_iter().filter(|gap| !gap.labels.is_empty()).collect()
}

/// How many scenarios were to be verified.
fn count_scenarios(found: &Verification) -> usize {
    found.scenarios.len() + found.missing.len()
}

/// The text with a capital at its beginning.
fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
