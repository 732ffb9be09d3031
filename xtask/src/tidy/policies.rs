//! Every list of policies that tests, benchmarks and documents go through has every policy, or says why not.
//!
//! Only lists that no test compares with the registry itself (`topology::manual::missing_balancers`) stand here.

use super::Source;

/// The policies: the variants of `enum Balance`.
const POLICIES: &str = "crates/policy/src/balance/mod.rs";

/// How a list spells a policy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// `Balance::PeakEwma`.
    Variant,
    /// `lb.peak_ewma`.
    Call,
}

/// A list of policies.
struct List {
    path: &'static str,
    /// The function that has it.
    within: &'static str,
    spelling: Spelling,
    /// The policies that are left out on purpose, each with the reason.
    without: &'static [(&'static str, &'static str)],
}

const LISTS: &[List] = &[
    List {
        path: "crates/policy/src/balance/balancer/tests.rs",
        within: "fn all(",
        spelling: Spelling::Variant,
        without: &[],
    },
    List {
        path: "crates/policy/src/upstream/tests.rs",
        within: "fn variants(",
        spelling: Spelling::Variant,
        without: &[("Prequal", "that test sends no probes")],
    },
    List {
        path: "crates/policy/examples/decisions/main.rs",
        within: "fn policies(",
        spelling: Spelling::Variant,
        without: &[],
    },
    List {
        path: "crates/sim/src/reference/tests/loops.rs",
        within: "fn policies(",
        spelling: Spelling::Call,
        without: &[
            ("Maglev", "as the ring, it picks by the key"),
            ("LeastWork", "it is never served, so it has no loops"),
        ],
    },
];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let text = |path: &str| sources.iter().find(|f| f.path == path).map_or("", |f| &f.text);
    let policies = variants(text(POLICIES));
    if policies.is_empty() {
        return vec![format!("{POLICIES}: there is no `pub enum Balance`")];
    }
    LISTS.iter().flat_map(|list| gaps(list, text(list.path), &policies)).collect()
}

/// The names of the variants of `enum Balance`.
fn variants(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|l| !l.starts_with("pub enum Balance ")).skip(1);
    let names = lines.take_while(|l| *l != "}").map(str::trim).filter(|l| !l.starts_with(['/', '#']));
    names.filter_map(|l| l.split(['(', ',', ' ']).next()).filter(|name| !name.is_empty()).collect()
}

/// What is wrong with a list, one sentence for each policy.
fn gaps(list: &List, text: &str, policies: &[&str]) -> Vec<String> {
    let at = format!("{}: `{})`", list.path, list.within);
    let Some(body) = body(text, list.within) else {
        return vec![format!("{at}: the function is gone; mend xtask/src/tidy/policies.rs")];
    };
    let mut problems = Vec::new();
    for policy in policies {
        let is_listed = names(body, list.spelling).any(|name| name == spelled(policy, list.spelling));
        let reason = list.without.iter().find(|(name, _)| name == policy).map(|(_, why)| why);
        match (is_listed, reason) {
            (false, None) => problems.push(format!("{at}: has no {policy}; add it, or say why not")),
            (true, Some(why)) => problems.push(format!("{at}: has {policy}, which was left out ({why})")),
            _ => {}
        }
    }
    let unknown = list.without.iter().filter(|(name, _)| !policies.contains(name));
    problems.extend(unknown.map(|(name, _)| format!("{at}: leaves out {name}, which is no policy")));
    problems
}

/// A function, up to the brace in the column where its line begins.
fn body<'a>(text: &'a str, head: &str) -> Option<&'a str> {
    let begin = text.find(head)?;
    let line = text[..begin].rfind('\n').map_or(0, |at| at + 1);
    let end = format!("\n{}}}\n", " ".repeat(begin - line));
    let rest = &text[begin..];
    Some(&rest[..rest.find(&end).unwrap_or(rest.len())])
}

/// All names behind the prefix of a spelling.
fn names(body: &str, spelling: Spelling) -> impl Iterator<Item = &str> {
    let prefix = if spelling == Spelling::Variant { "Balance::" } else { "lb." };
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    body.split(prefix).skip(1).map(move |rest| rest.split(is_end).next().unwrap_or_default())
}

/// `PeakEwma`, or `peak_ewma`.
fn spelled(variant: &str, spelling: Spelling) -> String {
    if spelling == Spelling::Variant {
        return variant.to_owned();
    }
    let mut name = String::new();
    for c in variant.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENUM: &str =
        "/// A policy.\npub enum Balance {\n    /// One.\n    Random,\n    PeakEwma(PeakEwmaArgs),\n}\n";

    #[test]
    fn a_list_that_lacks_a_policy_is_found() {
        let policies = variants(ENUM);
        assert_eq!(policies, ["Random", "PeakEwma"]);
        let list = |spelling, without| List { path: "a.rs", within: "fn all(", spelling, without };
        let plain = list(Spelling::Variant, &[]);
        let whole = "fn all() {\n    Balance::Random; Balance::PeakEwma(x)\n}\n";
        assert_eq!(gaps(&plain, whole, &policies), Vec::<String>::new());
        let longer = "fn all() {\n    Balance::Random; Balance::PeakEwmaTwice\n}\nBalance::PeakEwma\n";
        assert_eq!(gaps(&plain, longer, &policies).len(), 1);
        assert_eq!(gaps(&plain, "fn other() {}", &policies).len(), 1);
        let calls = list(Spelling::Call, &[("Random", "no draws")]);
        assert_eq!(gaps(&calls, "    fn all() {\n        \"lb.peak_ewma\"\n    }\n", &policies).len(), 0);
        assert_eq!(gaps(&calls, "fn all() {\n    \"lb.peak_ewma\", \"lb.random\"\n}\n", &policies).len(), 1);
        assert_eq!(gaps(&list(Spelling::Variant, &[("Gone", "")]), whole, &policies).len(), 1);
    }
}
