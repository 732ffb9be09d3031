//! Lines of text in a given width.

/// How wide text is made where no terminal says otherwise, in characters; sentences are never wider.
pub const WIDTH: usize = 80;
/// The narrowest that it is made.
pub const NARROWEST: usize = 40;

/// Lines, each indented by two.
pub(crate) fn indented(lines: &str) -> String {
    lines.lines().map(|l| if l.is_empty() { "\n".to_owned() } else { format!("  {l}\n") }).collect()
}

/// The sentence in lines of at most this width, the further ones indented; words are never cut.
pub(crate) fn wrapped_to(sentence: &str, width: usize) -> String {
    // A longer line is hard to read; a wide terminal is for tables.
    let width = width.min(WIDTH);
    let mut out = String::new();
    let mut used = 0;
    for word in words(sentence) {
        let n = word.chars().count();
        if used > 0 && used + 1 + n > width {
            out.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += n;
    }
    out.push('\n');
    out
}

/// The words of a sentence; a figure with its thousands apart and its interval is one: `15 928 ±1 005`.
fn words(sentence: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    for (at, _) in sentence.match_indices(' ') {
        if !is_within_a_figure(&sentence[..at], &sentence[at + 1..]) {
            words.push(&sentence[start..at]);
            start = at + 1;
        }
    }
    words.push(&sentence[start..]);
    words
}

fn is_within_a_figure(before: &str, after: &str) -> bool {
    let mut next = after.bytes();
    let group = next.by_ref().take(3).filter(u8::is_ascii_digit).count() == 3;
    let ends = !next.next().is_some_and(|b| b.is_ascii_digit());
    before.ends_with(|c: char| c.is_ascii_digit()) && (after.starts_with('±') || group && ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_not_parted() {
        assert_eq!(words("in 15 928 ±1 005 ms"), ["in", "15 928 ±1 005", "ms"]);
        assert_eq!(words("p99 1234 of 12  b"), ["p99", "1234", "of", "12", "", "b"]);
        assert_eq!(wrapped_to("of 100 000 requests", 9), "of\n  100 000\n  requests\n");
    }
}
