//! Words that do not belong: nowhere, or not in a certain crate. Comments do not count, except for promises.

use super::Source;

/// Where, the word, and why not. Split in the text, so that this file does not accuse itself.
const BANNED: &[(&str, &[&str], &str)] = &[
    ("", &[concat!("db", "g!("), concat!("to", "do!("), concat!("unimple", "mented!(")], "unfinished"),
    // The simulator drives policy and model in virtual time; the proxy runs the very same objects. A decision in the
    // simulator would be a second implementation of it.
    (
        "crates/sim/src/",
        &[
            ".unit()", ".below(", "math::", ".ln(", ".ln_1p(", ".exp(", ".exp_m1(", ".powf(", ".powi(",
            ".log2(", ".log10(",
        ],
        "model's samplers draw service times and gaps, policy draws choices",
    ),
    ("crates/sim/src/", &["fn sample", "Dist::"], "model's samplers know the distributions"),
    (
        "crates/sim/src/",
        &[
            "levels::",
            "least_conn::",
            "p2c::",
            "round_robin::",
            "in_flight <",
            "in_flight >",
            "load <",
            "load >",
            "loads[",
        ],
        "policy compares loads behind `Balancer`",
    ),
    (
        "crates/sim/src/",
        &[
            "attempts +=",
            "attempt +=",
            "attempts -=",
            "attempt <",
            "attempts <",
            "may_retry",
            "Attempt(self.0 +",
        ],
        "policy counts attempts and decides on retries: `Retry::next`",
    ),
    (
        "crates/sim/src/",
        &["inside <", "waiting <", "< concurrency", "capacity <"],
        "model's queues know who may enter",
    ),
];

/// Promises that need a name beside them: `WORD(name)`.
const PROMISES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

pub(super) fn check(files: &[Source]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files {
        let banned: Vec<_> = BANNED.iter().filter(|(at, ..)| file.path.starts_with(at)).collect();
        // Tests are at the end of a file; there only what is banned everywhere counts.
        let tests = file.text.lines().position(|l| l == "#[cfg(test)]").unwrap_or(usize::MAX);
        for (line, code) in file.code() {
            for (_, words, why) in banned.iter().filter(|(at, ..)| at.is_empty() || line <= tests) {
                for word in words.iter().filter(|w| has(code, w)) {
                    problems.push(format!("{}:{line}: `{word}` does not belong here: {why}", file.path));
                }
            }
        }
        for (i, line) in file.text.lines().enumerate() {
            for word in PROMISES.iter().filter(|w| promised(line, w)) {
                problems.push(format!(
                    "{}:{}: {word} without an owner: write {word}(name)",
                    file.path,
                    i + 1
                ));
            }
        }
    }
    problems
}

/// Whether the code has the word, not as the end of a longer name.
fn has(code: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| !word.starts_with(is_name) || !code[..at].ends_with(is_name))
}

fn promised(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(|c| c.is_alphanumeric() || c == '(')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> usize {
        check(&[Source { path: path.into(), text: text.into() }]).len()
    }

    #[test]
    fn decisions_in_the_simulator_are_found() {
        for text in [
            "if a.in_flight < b.in_flight {",
            "let x = -u.ln() * mean;",
            "attempts += 1;",
            "fn sample(&self) {}",
        ] {
            assert_eq!(problems("crates/sim/src/engine/mod.rs", text), 1, "{text}");
            assert_eq!(problems("crates/policy/src/a.rs", text), 0, "{text}");
        }
        assert_eq!(problems("crates/sim/src/engine/mod.rs", "#[cfg(test)]\nlet t = key.below(n);"), 0);
        assert_eq!(problems("crates/sim/src/engine/mod.rs", "self.payload < 3 // in_flight < 4"), 0);
    }

    #[test]
    fn unfinished_code_and_promises_without_an_owner_are_found() {
        assert_eq!(problems("a.rs", concat!("to", "do!()")), 1);
        assert_eq!(problems("a.rs", concat!("// TO", "DO: later")), 1);
        assert_eq!(problems("a.rs", concat!("// TO", "DO(ann): later")), 0);
    }
}
