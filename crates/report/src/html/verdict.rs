//! The verdict in words: what the file expects and whether it holds, which scenario is faster by how much, and which is best.
//! It claims no difference that Holm's procedure does not, and says so where there is none.

use super::contest::{Contest, Rival, find};
use crate::compare::{Compared, Verdict};
use crate::number::{percentage, quantile, with_interval};
use weir_sim::{Results, ScenarioResult};
use weir_stats::Estimate;

/// Scenarios that a sentence names at most.
const NAMED: usize = 3;

/// The sentences at the top of the page. `labels`: of the scenarios, by number.
pub(super) fn sentences(results: &Results, contest: Option<&Contest<'_>>, labels: &[String]) -> Vec<String> {
    let mut said: Vec<String> = expectations(results, labels).into_iter().collect();
    match (&results.scenarios[..], contest) {
        ([one], _) => said.extend(alone(one)),
        (_, Some(contest)) => said.extend(compared(contest, labels)),
        _ => {}
    }
    said
}

/// Whether the file's expectations hold, and which do not.
fn expectations(results: &Results, labels: &[String]) -> Option<String> {
    let all = || {
        results
            .scenarios
            .iter()
            .zip(labels)
            .flat_map(|(s, label)| s.expectations.iter().map(move |e| (label, e)))
    };
    let count = all().count();
    let of = |holds: Option<bool>| -> Vec<String> {
        all().filter(|(_, e)| e.holds == holds).map(|(label, e)| format!("{label}: {}", e.expect)).collect()
    };
    let (failed, undecided) = (of(Some(false)), of(None));
    let mut parts = Vec::new();
    for (word, names) in [("fail", failed), ("cannot be decided", undecided)] {
        if !names.is_empty() {
            let word = if names.len() == 1 && word == "fail" { "fails" } else { word };
            parts.push(format!("{} of {count} expectations {word} ({})", names.len(), listed(&names)));
        }
    }
    match count {
        0 => None,
        _ if !parts.is_empty() => Some(format!("{}.", parts.join("; "))),
        1 => Some("What the file expects holds.".to_owned()),
        _ => Some(format!("All {count} expectations hold.")),
    }
}

/// A scenario by itself.
fn alone(s: &ScenarioResult) -> Option<String> {
    let l = &s.latency_all;
    let known = [("half of the requests end", l.p50), ("95 of 100", l.p95), ("99 of 100", l.p99)];
    let within: Vec<String> = known
        .iter()
        .filter(|(_, e)| e.value.is_some())
        .map(|(who, e)| format!("{who} within {} ms", quantile(e)))
        .collect();
    let told = format!("{}; {} succeed.", within.join(", "), percentage(&s.success));
    let mut letters = told.chars();
    let first = letters.next().filter(|_| !within.is_empty())?;
    Some(first.to_uppercase().chain(letters).collect())
}

/// The scenarios against the baseline, and which of all is best.
fn compared(contest: &Contest<'_>, labels: &[String]) -> Vec<String> {
    let Some(headline) = contest.headline() else {
        return vec!["No difference between scenarios can be told: that takes two replications or more, and figures that are known of \
            each.".to_owned()];
    };
    if contest.has_points {
        return at_points(contest, headline, labels);
    }
    let mut said = vec![against(contest, headline, labels)];
    said.extend(successes(contest, labels));
    said.extend(contest.best().and_then(|best| best_in(&best, labels)));
    said
}

/// `p2c answers p99 in 0.72 ±0.03 of random's time`.
fn against(contest: &Contest<'_>, name: &'static str, labels: &[String]) -> String {
    let told = |r: Rival<'_>| {
        find(r.statistics, name).map(|c| (r.number, c.verdict, c.ratio, c.difference.estimate))
    };
    let all: Vec<(usize, Verdict, Estimate, Estimate)> = contest.rivals().filter_map(told).collect();
    let base = &contest.baseline;
    let with = |wanted: Verdict| {
        let mut of: Vec<_> = all.iter().filter(|(_, verdict, ..)| *verdict == wanted).collect();
        of.sort_by(|a, b| a.3.value.unwrap_or(0.0).total_cmp(&b.3.value.unwrap_or(0.0)));
        of
    };
    let phrase =
        |(number, _, ratio, difference): &&(usize, Verdict, Estimate, Estimate)| match (ratio.value, name) {
            (_, "success") | (None, _) => format!("{} by {}", labels[*number], with_interval(difference)),
            _ => format!("{} in {}", labels[*number], with_interval(ratio)),
        };
    let (less, more, same) = (with(Verdict::Less), with(Verdict::More), with(Verdict::NotSignificant));
    if less.is_empty() && more.is_empty() {
        return match &all[..] {
            [(number, ..)] => {
                format!("No significant difference in {name} between {} and {base}.", labels[*number])
            }
            _ => format!("No scenario's {name} differs significantly from that of {base}."),
        };
    }
    let mut parts = Vec::new();
    if let [(number, _, ratio, _), rest @ ..] = &less[..] {
        let rest: Vec<String> = rest.iter().take(NAMED - 1).map(phrase).collect();
        let first =
            format!("{} answers {name} in {} of {base}'s time", labels[*number], with_interval(ratio));
        parts.push(std::iter::once(first).chain(rest).collect::<Vec<_>>().join(", "));
    }
    if let [.., (number, _, ratio, _)] = &more[..] {
        let others = match more.len() {
            1 => String::new(),
            2 => ", another takes longer too".to_owned(),
            n => format!(", {} others take longer too", n - 1),
        };
        parts.push(format!(
            "{} takes {} times as long as {base}{others}",
            labels[*number],
            with_interval(ratio)
        ));
    }
    match &same[..] {
        [] => {}
        [(number, ..)] => parts.push(format!("{} does not differ significantly", labels[*number])),
        _ => parts.push(format!("{} others do not differ significantly", same.len())),
    }
    let said = parts.join("; ");
    if less.is_empty() { format!("In {name}, {said}.") } else { format!("{said}.") }
}

/// What more or less succeeds.
fn successes(contest: &Contest<'_>, labels: &[String]) -> Option<String> {
    let beyond_chance = |c: &&Compared| c.verdict != Verdict::NotSignificant;
    let told = |r: Rival<'_>| {
        find(r.statistics, "success").filter(beyond_chance).map(|c| (r.number, c.difference.estimate))
    };
    let mut all: Vec<(usize, Estimate)> = contest.rivals().filter_map(told).collect();
    all.sort_by(|a, b| b.1.value.unwrap_or(0.0).total_cmp(&a.1.value.unwrap_or(0.0)));
    let points = |e: &Estimate| {
        let sign = if e.value.is_some_and(|value| value < 0.0) { -100.0 } else { 100.0 };
        let times = |x: Option<f64>| x.map(|x| x * sign);
        let (low, high) = if sign > 0.0 { (e.low, e.high) } else { (e.high, e.low) };
        with_interval(&Estimate { value: times(e.value), low: times(low), high: times(high) })
    };
    let word = |e: &Estimate| if e.value.is_some_and(|value| value < 0.0) { "fewer" } else { "more" };
    let told = |(number, e): &(usize, Estimate)| {
        format!("{} {} succeed with {}", points(e), word(e), labels[*number])
    };
    let said: Vec<String> = all.iter().take(NAMED).map(told).collect();
    (!said.is_empty())
        .then(|| format!("Of 100 requests, {} than with {}.", said.join(", "), contest.baseline))
}

/// Which scenario is better than every other, and in what.
fn best_in(best: &[(&'static str, Option<usize>)], labels: &[String]) -> Option<String> {
    let mut winners: Vec<(usize, Vec<&str>)> = Vec::new();
    for (name, winner) in best.iter().filter_map(|(name, winner)| Some((*name, (*winner)?))) {
        match winners.iter_mut().find(|(known, _)| *known == winner) {
            Some((_, names)) => names.push(name),
            None => winners.push((winner, vec![name])),
        }
    }
    match &winners[..] {
        [] => (best.len() > 1)
            .then(|| "None is significantly better than all others in anything that is shown.".to_owned()),
        [(winner, names)] if names.len() == best.len() => {
            Some(format!("{} is best in all that is shown.", labels[*winner]))
        }
        _ => {
            let told = |(winner, names): &(usize, Vec<&str>)| {
                let names: Vec<String> = names.iter().map(|name| name.replace("ok_", "ok ")).collect();
                format!("{} is best in {}", labels[*winner], names.join(", "))
            };
            Some(format!("{}.", winners.iter().take(NAMED).map(told).collect::<Vec<_>>().join("; ")))
        }
    }
}

/// Along a sweep: at how many points each scenario is faster than the baseline.
fn at_points(contest: &Contest<'_>, name: &'static str, labels: &[String]) -> Vec<String> {
    let mut counts: Vec<(&str, [usize; 3])> = Vec::new();
    for r in contest.rivals() {
        let Some(c) = find(r.statistics, name) else { continue };
        let own = labels[r.number].split(" (").next().unwrap_or_default();
        let at = counts.iter().position(|(known, _)| *known == own).unwrap_or_else(|| {
            counts.push((own, [0; 3]));
            counts.len() - 1
        });
        counts[at].1[c.verdict as usize] += 1;
    }
    let told = |(own, [less, more, _]): &(&str, [usize; 3])| {
        let (lower, higher) = if name == "success" { ("lower", "higher") } else { ("faster", "slower") };
        let of = |word: &str, n: &usize| (*n > 0).then(|| format!("{word} at {n}"));
        let said: Vec<String> = of(lower, less).into_iter().chain(of(higher, more)).collect();
        match &said[..] {
            [] => format!("{own} differs significantly at none"),
            said => format!("{own} is {}", said.join(", ")),
        }
    };
    let points = counts.iter().map(|(_, n)| n.iter().sum::<usize>()).max().unwrap_or_default();
    let said: Vec<String> = counts.iter().take(NAMED).map(told).collect();
    let more = if counts.len() > NAMED { "; the table has the others" } else { "" };
    vec![format!("Against {}, in {name}, of {points} points: {}{more}.", contest.baseline, said.join("; "))]
}

fn listed(names: &[String]) -> String {
    let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    format!("{}{more}", names[..names.len().min(NAMED)].join(", "))
}
