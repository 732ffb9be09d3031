//! Two designs side by side: each statistic with its difference, and which differences are more than chance.

use crate::number::{self, UNKNOWN, with_interval};
use crate::saved::{Design, SavedResult, Statistic};
use crate::table::{Side as Edge, Table};
use crate::{entry, wrap};
use serde_json::{Value, json};
use std::io::{self, Write};
use weir_stats::{Difference, Estimate, Side, holm, paired, welch};

/// The probability that any verdict claims a difference where there is none.
const LEVEL: f64 = 0.05;

/// A histogram's bucket is at most this share of its values wide: a quantile may be off by half of it.
const BUCKET: f64 = 1.0 / 2048.0;

/// A pair of designs, and whether they had the same requests.
#[derive(Clone, Copy, Debug)]
pub struct Pairing<'a> {
    /// The first.
    pub a: (&'a SavedResult, &'a Design),
    /// The second.
    pub b: (&'a SavedResult, &'a Design),
    /// Whether replication r of both had the same requests.
    pub paired: bool,
}

/// A comparison: verdicts hold over all of its pairs and statistics together.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    pub(crate) pairs: Vec<Pair<'a>>,
}

/// A pair of designs with what was compared.
#[derive(Clone, Debug)]
pub(crate) struct Pair<'a> {
    pub of: Pairing<'a>,
    pub statistics: Vec<Compared>,
}

/// A statistic of both, and its difference.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    pub name: &'static str,
    a: Estimate,
    b: Estimate,
    pub difference: Difference,
    /// The second in units of the first, where both are positive: the interval is that of the quotient.
    pub ratio: Estimate,
    pub verdict: Verdict,
}

/// What follows for the second design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has less of it.
    Less,
    /// It has more of it.
    More,
    /// Chance alone differs so much.
    NotSignificant,
}

impl Verdict {
    /// As `docs/spec/language.md#compare` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Less => "less",
            Verdict::More => "more",
            Verdict::NotSignificant => "no significant difference",
        }
    }
}

impl<'a> Comparison<'a> {
    /// Compares all of these.
    pub fn new(pairings: &[Pairing<'a>]) -> Comparison<'a> {
        Comparison::select(pairings, &|_| true)
    }

    /// Compares some statistics of all of these: verdicts hold over those alone.
    pub(crate) fn select(pairings: &[Pairing<'a>], is_wanted: &dyn Fn(&str) -> bool) -> Comparison<'a> {
        let mut pairs: Vec<Pair<'a>> = pairings.iter().map(|of| pair(of, is_wanted)).collect();
        let p: Vec<Option<f64>> = pairs.iter().flat_map(|p| &p.statistics).map(|s| s.difference.p).collect();
        let all = pairs.iter_mut().flat_map(|p| &mut p.statistics);
        for (statistic, beyond_chance) in all.zip(holm(&p, LEVEL)) {
            statistic.verdict = match statistic.difference.estimate.value {
                Some(less) if beyond_chance && less < 0.0 => Verdict::Less,
                Some(_) if beyond_chance => Verdict::More,
                _ => Verdict::NotSignificant,
            };
        }
        Comparison { pairs }
    }

    /// The statistics of each pair, in the order of the pairings.
    pub(crate) fn statistics(&self) -> impl Iterator<Item = &[Compared]> {
        self.pairs.iter().map(|pair| &pair.statistics[..])
    }

    /// How many statistics differ by more than chance.
    pub fn differing(&self) -> usize {
        let all = self.pairs.iter().flat_map(|p| &p.statistics);
        all.filter(|s| s.verdict != Verdict::NotSignificant).count()
    }
}

fn pair<'a>(of: &Pairing<'a>, is_wanted: &dyn Fn(&str) -> bool) -> Pair<'a> {
    let (a, b) = (of.a.1, of.b.1);
    // Successes have a latency of their own only if something fails.
    let shown = |s: &Statistic| (!s.name.starts_with("ok_") || a.failed || b.failed) && is_wanted(s.name);
    let both = a.statistics.iter().zip(&b.statistics).filter(|(a, _)| shown(a));
    let requests = a.selected.min(b.selected);
    let statistics = both.map(|(a, b)| {
        let compared = compared(a, b, of.paired);
        let counted = compared.name == "success";
        let difference = if counted { compared.difference.of_counts(requests) } else { compared.difference };
        Compared { difference, ..compared }
    });
    Pair { of: *of, statistics: statistics.collect() }
}

fn compared(a: &Statistic, b: &Statistic, same_requests: bool) -> Compared {
    let quantile = a.name.trim_start_matches("ok_").starts_with('p');
    // `times` a: the difference is then how far b is from so much.
    let differ = |times: f64| {
        let (of_a, of_b) = (a.estimate.value? * times, b.estimate.value?);
        let blur = if quantile { (of_a + of_b) * BUCKET / 2.0 } else { 0.0 };
        let scaled: Vec<f64> = a.each.iter().map(|value| value * times).collect();
        let (a, b) = (Side { value: of_a, each: &scaled }, Side { value: of_b, each: &b.each });
        Some(if same_requests { paired(&a, &b, blur) } else { welch(&a, &b, blur) })
    };
    let ratio = || {
        let of_a = a.estimate.value.filter(|value| *value > 0.0)?;
        let value = b.estimate.value.filter(|value| *value > 0.0)? / of_a;
        let Estimate { low, high, .. } = differ(value)?.estimate;
        let around = |off: Option<f64>| off.map(|off| value + off / of_a);
        Some(Estimate { value: Some(value), low: around(low), high: around(high) })
    };
    Compared {
        name: a.name,
        a: a.estimate,
        b: b.estimate,
        difference: differ(1.0).unwrap_or_default(),
        ratio: ratio().unwrap_or_default(),
        verdict: Verdict::NotSignificant,
    }
}

impl Compared {
    /// The difference as a share of what the first has.
    pub fn relative(&self) -> Estimate {
        let of = self.a.value.filter(|a| *a != 0.0);
        let share = |x: Option<f64>| Some(x? / of?.abs());
        let Estimate { value, low, high } = self.difference.estimate;
        Estimate { value: share(value), low: share(low), high: share(high) }
    }
}

pub(crate) fn json(comparison: &Comparison<'_>, out: &mut dyn Write) -> io::Result<()> {
    let pairs: Vec<Value> = comparison.pairs.iter().map(pair_json).collect();
    let document =
        json!({ "schema": "weir.compare/1", "version": env!("CARGO_PKG_VERSION"), "pairs": pairs });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

fn pair_json(pair: &Pair<'_>) -> Value {
    let side = |(saved, design): (&SavedResult, &Design)| {
        let params: serde_json::Map<String, Value> = design.params.iter().cloned().collect();
        json!({
            "file": saved.file,
            "scenario": design.name,
            "params": params,
            "seed": saved.seed,
            "replications": design.replications,
        })
    };
    let statistics: Vec<Value> = pair
        .statistics
        .iter()
        .map(|s| {
            json!({
                "name": s.name,
                "a": estimate(&s.a),
                "b": estimate(&s.b),
                "difference": estimate(&s.difference.estimate),
                "relative": estimate(&s.relative()),
                "verdict": s.difference.p.map(|_| s.verdict.name()),
            })
        })
        .collect();
    json!({
        "a": side(pair.of.a),
        "b": side(pair.of.b),
        "paired": pair.of.paired,
        "warnings": { "a": pair.of.a.1.warnings, "b": pair.of.b.1.warnings },
        "statistics": statistics,
    })
}

fn estimate(e: &Estimate) -> Value {
    json!({ "value": e.value, "low": e.low, "high": e.high })
}

/// Every warning of the runs once, with the designs that have it.
pub(crate) fn warnings(comparison: &Comparison<'_>) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for pair in &comparison.pairs {
        let designs = [pair.of.a.1, pair.of.b.1].into_iter().zip(names(&pair.of));
        for (warning, label) in
            designs.flat_map(|(d, label)| d.warnings.iter().map(move |w| (w, label.clone())))
        {
            match all.iter_mut().find(|(text, _)| text == warning) {
                Some((_, labels)) if labels.contains(&label) => {}
                Some((_, labels)) => labels.push(label),
                None => all.push((warning.clone(), vec![label])),
            }
        }
    }
    all
}

/// The statistics of which nothing can be said, though both have them.
fn untold(comparison: &Comparison<'_>) -> bool {
    let both = |s: &&Compared| s.a.value.is_some() && s.b.value.is_some();
    comparison.pairs.iter().flat_map(|p| &p.statistics).filter(both).any(|s| s.difference.p.is_none())
}

pub(crate) fn tables(comparison: &Comparison<'_>, width: usize, out: &mut dyn Write) -> io::Result<()> {
    for (text, labels) in warnings(comparison) {
        write!(out, "{}", wrap::wrapped_to(&format!("warning: {text} [{}]", entry::listed(&labels)), width))?;
    }
    for pair in &comparison.pairs {
        let [a, b] = names(&pair.of);
        writeln!(out, "{a} -> {b}")?;
        write!(out, "{}", wrap::wrapped_to(&format!("  {}", how(&pair.of)), width))?;
        writeln!(out, "\n{}", wrap::indented(&table(pair).text(width - 2)))?;
    }
    if untold(comparison) {
        let why = "cannot be told: a difference has an interval only with two replications or more of both";
        write!(out, "{}", wrap::wrapped_to(why, width))?;
    }
    write!(
        out,
        "{}",
        wrap::wrapped_to(
            "±: half of the 95 % interval. The verdict is on the second; all verdicts hold together with 95 % (Holm's correction).",
            width
        )
    )
}

/// How they were compared.
pub(crate) fn how(of: &Pairing<'_>) -> String {
    let (a, b) = (of.a.0, of.b.0);
    if of.paired {
        return format!(
            "paired: both have the same requests ({} replications, seed {})",
            of.a.1.replications, a.seed
        );
    }
    format!(
        "not paired, by Welch's test: {} ({} replications of seed {}, {} of seed {})",
        if of.a.1.requests_hash.is_none() || of.b.1.requests_hash.is_none() {
            "a result saved by an earlier weir does not say what its requests were"
        } else {
            "their requests differ"
        },
        of.a.1.replications,
        a.seed,
        of.b.1.replications,
        b.seed
    )
}

/// The names of the two: their files, scenarios and parameters, as far as these differ.
pub(crate) fn names(of: &Pairing<'_>) -> [String; 2] {
    let ((file_a, a), (file_b, b)) = (of.a, of.b);
    let name = |saved: &SavedResult, design: &Design, other: &Design| {
        let own: Vec<String> = design
            .params
            .iter()
            .filter(|p| !other.params.contains(p))
            .map(|(name, value)| {
                format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect();
        let point = if own.is_empty() { String::new() } else { format!(" ({})", own.join(", ")) };
        let file = if file_a.file == file_b.file { String::new() } else { format!("{}: ", saved.file) };
        format!("{file}{}{point}", design.name)
    };
    let (mut first, mut second) = (name(file_a, a, b), name(file_b, b, a));
    if first == second && file_a.seed != file_b.seed {
        first.push_str(&format!(" (seed {})", file_a.seed));
        second.push_str(&format!(" (seed {})", file_b.seed));
    }
    [first, second]
}

/// The statistics of a pair, a row each.
pub(crate) fn table(pair: &Pair<'_>) -> Table {
    let mut t = Table::new();
    t.column("", Edge::Left);
    for heading in ["first", "second", "difference", "relative"] {
        t.column(heading, Edge::Right);
    }
    t.column("verdict", Edge::Left);
    for s in &pair.statistics {
        if s.a.value.is_none() && s.b.value.is_none() {
            continue;
        }
        let share = s.name == "success";
        let told = |e: &Estimate| match share {
            true => number::percentage(e),
            false => with_interval(e),
        };
        let time = !share && !s.name.ends_with("_per_s") && s.name != "attempts_per_request";
        let verdict = match s.difference.p {
            Some(_) => s.verdict.name(),
            None => "cannot be told",
        };
        t.row(vec![
            if time { format!("{} ms", s.name) } else { s.name.to_owned() },
            told(&s.a),
            told(&s.b),
            signed(
                &s.difference.estimate,
                if share { 100.0 } else { 1.0 },
                if share { " points" } else { "" },
            ),
            signed(&s.relative(), 100.0, " %"),
            verdict.to_owned(),
        ]);
    }
    t
}

/// With its sign, in units of one `per`-th.
pub(crate) fn signed(e: &Estimate, per: f64, unit: &str) -> String {
    let times = |x: Option<f64>| x.map(|x| x * per);
    let e = Estimate { value: times(e.value), low: times(e.low), high: times(e.high) };
    match e.value {
        None => UNKNOWN.to_owned(),
        Some(value) => {
            let plus = if value > 0.0 { "+" } else { "" };
            format!("{plus}{}{unit}", with_interval(&e))
        }
    }
}
