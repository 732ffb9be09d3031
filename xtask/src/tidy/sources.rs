//! Every source file says first what it is about, and has one subject: it stays short.

use super::Source;

/// A longer file has more than one subject, unless `LONG` gives a reason.
const LONGEST: usize = 700;

/// Longer files, and why.
const LONG: &[(&str, &str)] = &[];

pub(super) fn check(files: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files {
        let first = file.text.lines().next().unwrap_or_default();
        let subject = first.strip_prefix("//! ").unwrap_or_default();
        if subject.split_whitespace().count() < 3 {
            problems.push(format!(
                "{}:1: the first line says in a sentence what the file is about: `//! ...`",
                file.path
            ));
        }
        let lines = file.text.lines().count();
        if lines > LONGEST && !LONG.iter().any(|(path, _)| *path == file.path) {
            problems.push(format!(
                "{}: {lines} lines; split it, or give a reason in xtask/src/tidy/sources.rs",
                file.path
            ));
        }
    }
    for (path, _) in LONG {
        let still = files.iter().any(|f| f.path == *path && f.text.lines().count() > LONGEST);
        if !still {
            problems.push(format!("{path}: is not long any more; take it out of xtask/src/tidy/sources.rs"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_lengths_are_judged() {
        let of = |text: String| check(&[Source { path: "a.rs".into(), text }]).len();
        assert_eq!(of("//! Queues in virtual time.\n".into()), 0);
        assert_eq!(of("//! queue\n".into()), 1);
        assert_eq!(of("use std::fs;\n".into()), 1);
        assert_eq!(of(format!("//! Queues in virtual time.\n{}", "\n".repeat(LONGEST))), 1);
    }
}
