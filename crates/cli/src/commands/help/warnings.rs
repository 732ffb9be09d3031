//! The page of a warning, found by its text, or by a part of it. The pages are beside the warnings: those of
//! `weir check` in `topology` and `plan`, those of a result in `sim`.

use super::{WIDTH, wrapped};
use weir_plan::warn::WarningPage;
use weir_topology::manual;

/// Words that are in most sentences: a text is not known by them.
const COMMON: [&str; 26] = [
    "a", "all", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "its", "no",
    "of", "on", "or", "so", "than", "that", "the", "this", "to", "with",
];

/// By fewer words than this, common ones aside, a text is not known.
const FEWEST: usize = 2;

/// The most words that a gap of a warning's text holds.
const WIDEST_GAP: usize = 16;

/// The warnings of certificates, which are read only where they are served.
const OF_CERTIFICATES: [WarningPage; 2] = [
    WarningPage {
        says: "the certificate {} has expired; renew it",
        means: "It is served all the same, but clients refuse it.",
    },
    WarningPage {
        says: "the certificate {} is not valid yet; check this machine's clock, or wait",
        means: "It is served all the same, but clients refuse it until its first day.",
    },
];

/// A part of a warning's text.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Word(String),
    /// What differs from one warning to the next.
    Gap,
}

/// The pages of the warnings that this text is nearest to; none if it is no warning's.
pub(super) fn pages(asked: &str) -> Vec<String> {
    let mut asked = words(asked);
    if asked.first().is_some_and(|word| word == "warning" || word == "hint") {
        asked.remove(0);
    }
    let all: Vec<(&WarningPage, Vec<Part>)> = all().map(|page| (page, parts(page.says))).collect();
    let in_order = |parts: &Vec<Part>| in_order(parts, &asked);
    let in_any_order = |parts: &Vec<Part>| in_any_order(parts, &asked);
    let mut found = nearest(&all, in_order);
    if found.is_empty() {
        found = nearest(&all, in_any_order);
    }
    let page = |page: &WarningPage| {
        let title = format!("The warning \"{}\"", page.says.replace("{}", "..."));
        format!("{}\n\n{}\n", wrapped(&title, WIDTH, 0), wrapped(page.means, WIDTH, 0))
    };
    found.into_iter().map(page).collect()
}

/// Every warning that `check` and `sim` may print.
fn all() -> impl Iterator<Item = &'static WarningPage> {
    manual::warnings().chain(weir_sim::WARNINGS).chain(&OF_CERTIFICATES)
}

/// What a text has in common with a warning: how many telling words, whether its beginning, and whether its end.
type Likeness = (usize, bool, bool);

/// Those that are most like it, if they have enough words in common to know it by.
fn nearest<'p>(
    all: &[(&'p WarningPage, Vec<Part>)],
    likeness: impl Fn(&Vec<Part>) -> Likeness,
) -> Vec<&'p WarningPage> {
    let known: Vec<(Likeness, &WarningPage)> =
        all.iter().map(|(page, parts)| (likeness(parts), *page)).collect();
    let most = known.iter().map(|(of, _)| *of).max().filter(|(words, ..)| *words >= FEWEST);
    known.into_iter().filter(|(of, _)| Some(*of) == most).map(|(_, page)| page).collect()
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn parts(says: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for (at, piece) in says.split("{}").enumerate() {
        if at > 0 {
            parts.push(Part::Gap);
        }
        parts.extend(words(piece).into_iter().map(Part::Word));
    }
    parts
}

fn is_telling(word: &str) -> bool {
    !COMMON.contains(&word)
}

/// Where one of them goes on in the other up to the end of either.
fn in_order(parts: &[Part], asked: &[String]) -> Likeness {
    let words = (0..parts.len()).filter(|at| parts[*at] != Part::Gap);
    let inside = words.map(|at| (at == 0, aligned(&parts[at..], asked)));
    let around = (0..asked.len()).map(|at| (true, aligned(parts, &asked[at..])));
    let like =
        |(begins, found): (bool, Option<(usize, bool)>)| found.map(|(words, ends)| (words, begins, ends));
    inside.chain(around).filter_map(like).max().unwrap_or_default()
}

/// The telling words of two texts that are the same up to the end of either, and whether the warning's is reached;
/// `None`: they differ.
fn aligned(parts: &[Part], asked: &[String]) -> Option<(usize, bool)> {
    match (parts, asked) {
        ([], _) => Some((0, true)),
        (parts, []) => Some((0, parts.iter().all(|part| *part == Part::Gap))),
        ([Part::Word(word), parts @ ..], [first, asked @ ..]) => {
            let (words, ends) = if word == first { aligned(parts, asked) } else { None }?;
            Some((words + usize::from(is_telling(word)), ends))
        }
        ([Part::Gap, parts @ ..], asked) => {
            (0..=asked.len().min(WIDEST_GAP)).filter_map(|n| aligned(parts, &asked[n..])).max()
        }
    }
}

/// Where a warning has all telling words that were asked for.
fn in_any_order(parts: &[Part], asked: &[String]) -> Likeness {
    let has = |word: &String| parts.contains(&Part::Word(word.clone()));
    let telling = asked.iter().filter(|word| is_telling(word));
    if telling.clone().all(has) { (telling.count(), false, false) } else { Likeness::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `weir check` says of the files of this list, to the letter.
    const DIAGNOSTICS: &str = include_str!("../../../../topology/tests/diagnostics.txt");

    fn page_of(text: &str) -> String {
        let mut found = pages(text);
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        found.remove(0)
    }

    #[test]
    fn every_warning_of_a_file_has_a_page() {
        let texts = DIAGNOSTICS
            .lines()
            .filter_map(|line| line.strip_prefix("warning: ").or_else(|| line.strip_prefix("hint: ")));
        let mut count = 0;
        for text in texts {
            assert!(all().any(|page| page.fits(text)), "no page says {text:?}: add it beside the warning");
            page_of(text);
            count += 1;
        }
        assert!(count > 50, "{count}");
    }

    /// With what stands in its gaps, as a whole, by its beginning, and in capitals.
    #[test]
    fn every_page_is_found_by_its_text() {
        for page in all() {
            let text = page.says.replace("{}", " 12.5 of \"x\" ");
            let title = page_of(&text);
            assert_eq!(page_of(&format!("warning: {}", text.to_uppercase())), title);
            let begins = words(page.says.split(". ").next().unwrap_or_default());
            assert!(page_of(&begins.join(" ")).contains(&title), "{begins:?}");
        }
    }

    #[test]
    fn a_part_of_a_warning_is_enough() {
        for (asked, means) in [
            ("too short for p99", "A single replication sees too few samples"),
            ("Too short for p99.9", "A single replication sees too few samples"),
            ("TAKEN AS GET", "Requests are GET"),
            ("taken as GET: 12 further attempts", "Requests are GET"),
            ("offered load of the queue", "More requests come there"),
            ("queue keeps growing", "More requests come to a node"),
            ("users do not think", "In a closed loop"),
            ("certificate has expired", "It is served all the same"),
        ] {
            let page = page_of(asked).replace('\n', " ");
            assert!(page.contains(means), "{asked}: {page}");
        }
        assert_eq!(pages("not settled").len(), 2, "a drift, and a warm-up that does not end");
    }

    #[test]
    fn common_words_are_no_warning() {
        for asked in ["", "for", "the", "of the", "it is in the", "is not a", "nothing of it", "hello there"]
        {
            assert!(pages(asked).is_empty(), "{asked}");
        }
    }
}
