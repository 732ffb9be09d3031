//! A comparison as one self-contained page: a sentence, each difference with its interval, and the tables.

use crate::compare::{Compared, Comparison, Pair, Verdict, how, names, table, warnings};
use crate::number::{plain, with_interval};
use crate::table::escaped;
use crate::{entry, page};
use std::fmt::Write as _;
use std::io::{self, Write};

pub(crate) fn write(comparison: &Comparison<'_>, out: &mut dyn Write) -> io::Result<()> {
    let title = match &comparison.pairs[..] {
        [one] => names(&one.of).join(" → "),
        all => format!("{} comparisons", all.len()),
    };
    page::begin(&title, &title, out)?;
    for (text, labels) in warnings(comparison) {
        page::warning(&text, &entry::listed(&labels), out)?;
    }
    for pair in &comparison.pairs {
        let [a, b] = names(&pair.of);
        page::section(&format!("{a} → {b}"), "", out)?;
        writeln!(out, "<p class=\"verdict\">{}</p>", escaped(&sentence(pair, &a, &b)))?;
        writeln!(out, "<p class=\"note\">{}</p>", escaped(&how(&pair.of)))?;
        write!(out, "{}", differences(&pair.statistics))?;
        writeln!(out, "<div class=\"wide\" tabindex=\"0\">\n{}</div>\n</section>", table(pair).html())?;
    }
    writeln!(
        out,
        "<p class=\"note\">±: half of the 95 % interval. Verdicts are on the second; all of them hold together with 95 % (Holm's correction).</p>"
    )?;
    page::end(&signature(comparison), out)
}

/// What was compared, and by which weir.
fn signature(comparison: &Comparison<'_>) -> String {
    let mut sources: Vec<String> = Vec::new();
    for (saved, _) in comparison.pairs.iter().flat_map(|pair| [pair.of.a, pair.of.b]) {
        let source = format!("{} (seed {})", saved.file, saved.seed);
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    format!("weir {} · {}", env!("CARGO_PKG_VERSION"), sources.join(" · "))
}

/// `p2c answers p99 in 0.72 ±0.03 of random's time. Less: p50, p99. More: success.`
fn sentence(pair: &Pair<'_>, a: &str, b: &str) -> String {
    let told = |name: &str| pair.statistics.iter().find(|c| c.name == name && c.difference.p.is_some());
    let Some(first) = ["p99", "p95", "p50", "mean"].into_iter().find_map(told) else {
        return "No difference can be told: that takes two replications or more of both.".to_owned();
    };
    let (name, ratio) = (first.name, with_interval(&first.ratio));
    let mut said = match (first.verdict, first.ratio.value) {
        (Verdict::NotSignificant, _) => format!("No significant difference in {name} between {a} and {b}."),
        (verdict, None) => format!("{b} has {} {name} than {a}.", verdict.name()),
        (Verdict::Less, _) => format!("{b} answers {name} in {ratio} of {a}'s time."),
        (Verdict::More, _) => format!("In {name}, {b} takes {ratio} times as long as {a}."),
    };
    for (word, verdict) in [("less", Verdict::Less), ("more", Verdict::More)] {
        let names: Vec<&str> =
            pair.statistics.iter().filter(|c| c.verdict == verdict).map(|c| c.name).collect();
        if !names.is_empty() {
            let _ = write!(said, " Significantly {word}: {}.", names.join(", "));
        }
    }
    said
}

/// Each relative difference with its interval, on one scale.
fn differences(statistics: &[Compared]) -> String {
    let known = || statistics.iter().map(|c| (c, c.relative())).filter(|(_, e)| e.value.is_some());
    let ends = known().flat_map(|(_, e)| [e.value, e.low, e.high]).flatten().map(f64::abs);
    let most = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let x = |share: f64| (share.clamp(-most, most) / most + 1.0) * 50.0;
    let mut html = format!(
        "<p class=\"note\">Second less first, as a share of the first, with its 95 % interval; from −{0} % to +{0} %.</p>\n<div class=\"rows\">\n",
        plain(Some(most * 100.0))
    );
    for (c, e) in known() {
        let class = if c.verdict == Verdict::NotSignificant { "undecided" } else { "beyond" };
        let _ = write!(
            html,
            "<div class=\"row\"><span>{}</span><svg class=\"bar {class}\" role=\"img\" aria-label=\"{}\"><line x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"100%\" opacity=\".4\"/>",
            escaped(c.name),
            c.verdict.name()
        );
        if let (Some(low), Some(high)) = (e.low, e.high) {
            let (low, high) = (x(low), x(high));
            let _ = write!(
                html,
                "<line class=\"whisker\" x1=\"{low:.2}%\" x2=\"{high:.2}%\" y1=\"50%\" y2=\"50%\"/>"
            );
        }
        let _ = write!(html, "<circle cx=\"{:.2}%\" cy=\"50%\" r=\"4\"/>", x(e.value.unwrap_or_default()));
        let verdict = if c.difference.p.is_some() { c.verdict.name() } else { "cannot be told" };
        let _ = writeln!(html, "</svg><span class=\"value\">{verdict}</span></div>");
    }
    html + "</div>\n"
}
