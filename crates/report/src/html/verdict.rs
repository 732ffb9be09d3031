//! The verdict in words: what the file expects and whether it holds, which scenario is faster by how much, and which is
//! best. It claims no difference that Holm's procedure does not, and says so where there is none.

use super::against::{self, SUCCESS};
use super::contest::{Contest, Rival, find};
use crate::compare::{Compared, Verdict};
use crate::number::{percentage, quantile, with_interval};
use weir_sim::{Results, ScenarioResult};
use weir_stats::Estimate;

/// Scenarios that a sentence names at most.
pub(super) const NAMED: usize = 3;

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
        .map(|(share, e)| format!("{share} within {} ms", quantile(e)))
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
        return at_points(contest, headline);
    }
    let mut said = vec![against::sentence(contest, headline, labels)];
    if headline != SUCCESS {
        said.extend(successes(contest, labels));
    }
    said.extend(contest.best().and_then(|best| best_in(&best, labels)));
    said
}

/// What more or less succeeds.
fn successes(contest: &Contest<'_>, labels: &[String]) -> Option<String> {
    let beyond_chance = |c: &&Compared| c.verdict != Verdict::NotSignificant;
    let told = |r: Rival<'_>| {
        find(r.statistics, SUCCESS).filter(beyond_chance).map(|c| (r.number, c.difference.estimate))
    };
    let mut all: Vec<(usize, Estimate)> = contest.rivals().filter_map(told).collect();
    all.sort_by(|a, b| b.1.value.unwrap_or(0.0).total_cmp(&a.1.value.unwrap_or(0.0)));
    let word = |e: &Estimate| if e.value.is_some_and(|value| value < 0.0) { "fewer" } else { "more" };
    let told = |(number, e): &(usize, Estimate)| {
        format!("{} {} succeed with {}", amount(e, 100.0), word(e), labels[*number])
    };
    let said: Vec<String> = all.iter().take(NAMED).map(told).collect();
    (!said.is_empty())
        .then(|| format!("Of 100 requests, {} than with {}.", said.join(", "), contest.baseline))
}

/// The size of a difference with its interval, `scale` times: the words around it say the direction.
pub(super) fn amount(e: &Estimate, scale: f64) -> String {
    let is_less = e.value.is_some_and(|value| value < 0.0);
    let sign = if is_less { -scale } else { scale };
    let times = |x: Option<f64>| x.map(|x| x * sign);
    let (low, high) = if is_less { (e.high, e.low) } else { (e.low, e.high) };
    with_interval(&Estimate { value: times(e.value), low: times(low), high: times(high) })
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
fn at_points(contest: &Contest<'_>, name: &'static str) -> Vec<String> {
    let verdicts = contest.rivals().filter_map(|r| Some((r.name, find(r.statistics, name)?.verdict)));
    vec![describe_points(verdicts, name, &contest.baseline)]
}

/// `Against base, in p99, of 4 points: x is faster at 3.` `verdicts`: of each point, with the scenario's name.
fn describe_points<'n>(verdicts: impl Iterator<Item = (&'n str, Verdict)>, name: &str, base: &str) -> String {
    let mut counts: Vec<(&str, [usize; 3])> = Vec::new();
    for (own, verdict) in verdicts {
        let at = counts.iter().position(|(known, _)| *known == own).unwrap_or_else(|| {
            counts.push((own, [0; 3]));
            counts.len() - 1
        });
        counts[at].1[verdict as usize] += 1;
    }
    let told = |(own, [less, more, _]): &(&str, [usize; 3])| {
        let (lower, higher) = if name == SUCCESS { ("lower", "higher") } else { ("faster", "slower") };
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
    format!("Against {base}, in {name}, of {points} points: {}{more}.", said.join("; "))
}

fn listed(names: &[String]) -> String {
    let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    format!("{}{more}", names[..names.len().min(NAMED)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_counted_by_the_names_of_scenarios() {
        let verdicts = [
            ("a (new)", Verdict::Less),
            ("a (old)", Verdict::NotSignificant),
            ("a (new)", Verdict::Less),
            ("a (old)", Verdict::More),
        ];
        assert_eq!(
            describe_points(verdicts.into_iter(), "p99", "base"),
            "Against base, in p99, of 2 points: a (new) is faster at 2; a (old) is slower at 1."
        );
    }
}
