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
    for word in sentence.split(' ') {
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
