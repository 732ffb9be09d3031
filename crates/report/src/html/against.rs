//! The sentence that says how the scenarios differ from the baseline in one statistic: a latency as a ratio, or as a
//! difference where there is no ratio; success in points.

use super::contest::{Contest, find};
use super::verdict::{NAMED, amount};
use crate::compare::Verdict;
use crate::number::with_interval;
use weir_stats::Estimate;

/// The statistic that is a share, and the only one of which more is better.
pub(super) const SUCCESS: &str = "success";

/// How a scenario differs from the baseline.
struct Gap {
    label: String,
    verdict: Verdict,
    /// The scenario's latency in units of the baseline's; unknown where one of them is 0.
    ratio: Estimate,
    /// The scenario's figure less the baseline's.
    difference: Estimate,
}

/// The part of the sentence that names a scenario.
#[derive(Clone, Copy)]
enum Part {
    /// The best of those that are better.
    Best,
    /// A further one that is better.
    Next,
    /// The worst of those that are worse.
    Worst,
}

/// `p2c answers p99 in 0.72 ±0.03 of random's time`, or `p2c succeeds 3.2 ±0.4 points more often than random`.
/// `labels`: of the scenarios, by number.
pub(super) fn sentence(contest: &Contest<'_>, name: &str, labels: &[String]) -> String {
    let gaps = contest.rivals().filter_map(|r| {
        let c = find(r.statistics, name)?;
        let label = labels[r.number].clone();
        Some(Gap { label, verdict: c.verdict, ratio: c.ratio, difference: c.difference.estimate })
    });
    describe(&gaps.collect::<Vec<_>>(), name, &contest.baseline)
}

fn describe(gaps: &[Gap], name: &str, base: &str) -> String {
    let with = |wanted: Verdict| {
        let mut of: Vec<&Gap> = gaps.iter().filter(|gap| gap.verdict == wanted).collect();
        of.sort_by(|a, b| a.size().total_cmp(&b.size()));
        of
    };
    let (mut less, mut more, same) =
        (with(Verdict::Less), with(Verdict::More), with(Verdict::NotSignificant));
    if less.is_empty() && more.is_empty() {
        return match gaps {
            [gap] => format!("No significant difference in {name} between {} and {base}.", gap.label),
            _ => format!("No scenario's {name} differs significantly from that of {base}."),
        };
    }
    let is_success = name == SUCCESS;
    if is_success {
        less.reverse();
        more.reverse();
    }
    let (better, worse) = if is_success { (more, less) } else { (less, more) };
    let tell = |gap: &Gap, part: Part| {
        if is_success { gap.in_points(part, base) } else { gap.in_time(part, name, base) }
    };
    let mut parts = Vec::new();
    if let [best, rest @ ..] = &better[..] {
        let rest = rest.iter().take(NAMED - 1).map(|gap| tell(gap, Part::Next));
        parts.push(std::iter::once(tell(best, Part::Best)).chain(rest).collect::<Vec<_>>().join(", "));
    }
    if let [others @ .., worst] = &worse[..] {
        let (one, many) = if is_success {
            ("succeeds less often", "succeed less often")
        } else {
            ("takes longer", "take longer")
        };
        let others = match others.len() {
            0 => String::new(),
            1 => format!(", another {one} too"),
            n => format!(", {n} others {many} too"),
        };
        parts.push(format!("{}{others}", tell(worst, Part::Worst)));
    }
    match &same[..] {
        [] => {}
        [gap] => parts.push(format!("{} does not differ significantly", gap.label)),
        _ => parts.push(format!("{} others do not differ significantly", same.len())),
    }
    let said = parts.join("; ");
    if better.is_empty() && !is_success { format!("In {name}, {said}.") } else { format!("{said}.") }
}

impl Gap {
    fn size(&self) -> f64 {
        self.difference.value.unwrap_or(0.0)
    }

    fn in_points(&self, part: Part, base: &str) -> String {
        let (label, points) = (&self.label, amount(&self.difference, 100.0));
        match part {
            Part::Best => format!("{label} succeeds {points} points more often than {base}"),
            Part::Next => format!("{label} {points} points"),
            Part::Worst => format!("{label} succeeds {points} points less often than {base}"),
        }
    }

    fn in_time(&self, part: Part, name: &str, base: &str) -> String {
        let (label, by, ms) = (&self.label, with_interval(&self.ratio), amount(&self.difference, 1.0));
        match (part, self.ratio.value.is_some()) {
            (Part::Best, true) => format!("{label} answers {name} in {by} of {base}'s time"),
            (Part::Next, true) => format!("{label} in {by}"),
            (Part::Worst, true) => format!("{label} takes {by} times as long as {base}"),
            (Part::Best, false) => format!("{label} answers {name} {ms} ms sooner than {base}"),
            (Part::Next, false) => format!("{label} {ms} ms sooner"),
            (Part::Worst, false) => format!("{label} takes {ms} ms longer than {base}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, half: f64) -> Estimate {
        Estimate { value: Some(value), low: Some(value - half), high: Some(value + half) }
    }

    /// A scenario whose ratio is unknown.
    fn gap(label: &str, value: f64, half: f64) -> Gap {
        let verdict = match value {
            _ if value.abs() <= half => Verdict::NotSignificant,
            _ if value < 0.0 => Verdict::Less,
            _ => Verdict::More,
        };
        Gap { label: label.into(), verdict, ratio: Estimate::default(), difference: estimate(value, half) }
    }

    fn with_ratio(label: &str, value: f64, ratio: f64) -> Gap {
        Gap { ratio: estimate(ratio, 0.03), ..gap(label, value, 1.0) }
    }

    #[test]
    fn success_is_told_in_points() {
        let told = |gaps: &[Gap]| describe(gaps, SUCCESS, "base");
        assert_eq!(told(&[gap("x", 0.032, 0.004)]), "x succeeds 3.2 ±0.4 points more often than base.");
        assert_eq!(told(&[gap("x", -0.032, 0.004)]), "x succeeds 3.2 ±0.4 points less often than base.");
        let several = [
            gap("a", 0.01, 0.004),
            gap("b", 0.05, 0.004),
            gap("c", -0.01, 0.004),
            gap("d", -0.2, 0.004),
            gap("e", 0.0, 0.004),
        ];
        assert_eq!(
            told(&several),
            "b succeeds 5.0 ±0.4 points more often than base, a 1.0 ±0.4 points; \
             d succeeds 20.0 ±0.4 points less often than base, another succeeds less often too; \
             e does not differ significantly."
        );
    }

    #[test]
    fn a_latency_without_a_ratio_is_told_by_its_difference() {
        let told = |gaps: &[Gap]| describe(gaps, "p99", "base");
        assert_eq!(told(&[gap("x", 12.0, 0.4)]), "In p99, x takes 12.0 ±0.4 ms longer than base.");
        assert_eq!(
            told(&[gap("x", -12.0, 0.4), gap("y", -4.0, 0.4)]),
            "x answers p99 12.0 ±0.4 ms sooner than base, y 4.0 ±0.4 ms sooner."
        );
    }

    #[test]
    fn a_latency_is_told_by_its_ratio() {
        let told = |gaps: &[Gap]| describe(gaps, "p99", "base");
        let several = [
            with_ratio("a", -10.0, 0.72),
            with_ratio("b", 20.0, 1.5),
            with_ratio("c", -12.0, 0.64),
            with_ratio("d", 30.0, 2.0),
        ];
        assert_eq!(
            told(&several),
            "c answers p99 in 0.64 ±0.03 of base's time, a in 0.72 ±0.03; d takes 2.00 ±0.03 times as long as base, \
             another takes longer too."
        );
        assert_eq!(told(&[gap("x", 0.5, 1.0)]), "No significant difference in p99 between x and base.");
    }
}
