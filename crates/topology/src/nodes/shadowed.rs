//! Which rules of a `route` an earlier one leaves nothing to match: the answer of comparing each rule with all before
//! it, without doing that.
//!
//! An earlier rule that matches all that a later one does compares no argument that the later one does not, and each of
//! the later one's values lies within one of its own. So it is filed under its values of one argument, that with the
//! rarest values, and is found by the first value that the later rule has there. Rules that are shadowed themselves are
//! not filed: what one of them shadows, the rule that shadows it shadows as well.

use std::collections::{BTreeSet, HashMap};
use weir_plan::RouteCondition;

/// What the rules before a rule leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shadow {
    /// Nothing: the first that matches all that it matches.
    Whole(usize),
    /// Requests without a path alone, such as `OPTIONS *`: the first that matches all others that it matches.
    Paths(usize),
}

/// The shadow on each rule; `None`: it has requests of its own.
pub(super) fn shadows(rules: &[RouteCondition]) -> Vec<Option<Shadow>> {
    let mut earlier = EarlierRules::new(rules);
    (0..rules.len()).map(|i| earlier.next(i)).collect()
}

/// The arguments of `when` by which rules are filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Argument {
    Path,
    Host,
    Header,
    ClientName,
    Client,
    Method,
}

const ARGUMENTS: [Argument; 6] = [
    Argument::Path,
    Argument::Host,
    Argument::Header,
    Argument::ClientName,
    Argument::Client,
    Argument::Method,
];

/// One value of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key<'a> {
    argument: Argument,
    /// The header's name, otherwise empty.
    name: &'a str,
    /// The value, without the `*` at its end where that matches any end.
    text: &'a str,
    /// Whether it had that `*`.
    is_open: bool,
}

/// The rules before one, found by what they compare.
struct EarlierRules<'a> {
    rules: &'a [RouteCondition],
    /// How many values equal this one, in all rules.
    counts: HashMap<Key<'a>, usize>,
    /// The rules by their values, in order.
    filed: HashMap<Key<'a>, Vec<usize>>,
    /// The lengths of the filed texts that are open, by argument and name.
    open_lengths: HashMap<(Argument, &'a str), BTreeSet<usize>>,
    /// Rules that compare nothing, or nothing but whether there is a path.
    unfiled: Vec<usize>,
}

impl<'a> EarlierRules<'a> {
    /// Before the first rule.
    fn new(rules: &'a [RouteCondition]) -> EarlierRules<'a> {
        let mut counts = HashMap::new();
        for rule in rules {
            for key in ARGUMENTS.into_iter().flat_map(|argument| keys(rule, argument)) {
                *counts.entry(key).or_default() += 1;
            }
        }
        let (filed, open_lengths) = (HashMap::new(), HashMap::new());
        EarlierRules { rules, counts, filed, open_lengths, unfiled: Vec::new() }
    }

    /// The shadow on rule `i`, which is an earlier rule from now on. All before it were.
    fn next(&mut self, i: usize) -> Option<Shadow> {
        let (rules, rule) = (self.rules, &self.rules[i]);
        if let Some(before) = self.first(rule, |before| rules[before].is_superset_of(rule)) {
            return Some(Shadow::Whole(before));
        }
        let paths = self.first(rule, |before| leaves_no_path(&rules[before], rule));
        self.file(i);
        paths.map(Shadow::Paths)
    }

    /// The first rule that shadows one, compared with those alone that may.
    fn first(&self, rule: &'a RouteCondition, mut shadows: impl FnMut(usize) -> bool) -> Option<usize> {
        let firsts = ARGUMENTS.into_iter().filter_map(|argument| keys(rule, argument).next());
        let lists = firsts.flat_map(|key| self.around(key)).chain([&self.unfiled]);
        lists.fold(None, |first: Option<usize>, list| {
            let before = |i: &&usize| first.is_none_or(|first| **i < first);
            list.iter().take_while(before).copied().find(|i| shadows(*i)).or(first)
        })
    }

    /// The rules with a value that a value lies within.
    fn around(&self, key: Key<'a>) -> impl Iterator<Item = &Vec<usize>> {
        let lengths = self.open_lengths.get(&(key.argument, key.name)).into_iter();
        let opened = lengths
            .flat_map(move |lengths| lengths.range(..=key.text.len()))
            .filter_map(move |length| Some(Key { text: key.text.get(..*length)?, is_open: true, ..key }))
            .filter_map(|open| self.filed.get(&open));
        let same = (!key.is_open).then(|| self.filed.get(&key)).flatten();
        opened.chain(same)
    }

    fn file(&mut self, i: usize) {
        let rule = &self.rules[i];
        let most = |argument: &Argument| keys(rule, *argument).map(|key| self.counts[&key]).max();
        let given = ARGUMENTS.into_iter().filter(|argument| is_needed(rule, *argument));
        let Some(argument) = given.min_by_key(most) else {
            self.unfiled.push(i);
            return;
        };
        for key in keys(rule, argument) {
            if key.is_open {
                self.open_lengths.entry((argument, key.name)).or_default().insert(key.text.len());
            }
            let list = self.filed.entry(key).or_default();
            if list.last() != Some(&i) {
                list.push(i);
            }
        }
    }
}

/// Whether what a rule shadows must have a value within one of its own for this argument. A rule for all paths also
/// shadows rules that compare none.
fn is_needed(rule: &RouteCondition, argument: Argument) -> bool {
    let is_all = |key: Key<'_>| key.is_open && matches!(key.text, "" | "/");
    keys(rule, argument).next().is_some() && !(argument == Argument::Path && keys(rule, argument).any(is_all))
}

/// The values of an argument.
fn keys(rule: &RouteCondition, argument: Argument) -> impl Iterator<Item = Key<'_>> {
    let list: &[String] = match argument {
        Argument::Path => &rule.path,
        Argument::Host => &rule.host,
        Argument::ClientName => &rule.client_name,
        Argument::Client => &rule.client,
        Argument::Method => &rule.method,
        Argument::Header => &[],
    };
    let headers: &[(String, String)] = if argument == Argument::Header { &rule.header } else { &[] };
    let can_be_open = matches!(argument, Argument::Path | Argument::Header | Argument::ClientName);
    let named = headers.iter().map(|(name, value)| (&name[..], value));
    list.iter().map(|value| ("", value)).chain(named).map(move |(name, value)| {
        let stem = value.strip_suffix('*').filter(|_| can_be_open);
        Key { argument, name, text: stem.unwrap_or(value), is_open: stem.is_some() }
    })
}

/// Whether an earlier rule leaves a later one only requests without a path, which the later one does not name.
fn leaves_no_path(earlier: &RouteCondition, later: &RouteCondition) -> bool {
    later.method.is_empty() && earlier.is_superset_of_paths_of(later)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testkit::Random;

    /// What the pairs say, one by one.
    fn pairwise(rules: &[RouteCondition]) -> Vec<Option<Shadow>> {
        let shadow = |(i, rule): (usize, &RouteCondition)| {
            let earlier = &rules[..i];
            let whole = earlier.iter().position(|before| before.is_superset_of(rule)).map(Shadow::Whole);
            let paths = || earlier.iter().position(|before| leaves_no_path(before, rule)).map(Shadow::Paths);
            whole.or_else(paths)
        };
        rules.iter().enumerate().map(shadow).collect()
    }

    fn some(random: &mut Random, of: &[&str], percent: usize) -> Vec<String> {
        let count = if random.percent(percent) { 1 + random.below(2) } else { 0 };
        (0..count).map(|_| random.choose(of).to_owned()).collect()
    }

    fn condition(random: &mut Random, percent: usize) -> RouteCondition {
        let names = ["x", "y"];
        let values = ["*", "a", "a*", "ab*", "é*", "b"];
        let header = some(random, &values, percent).into_iter();
        RouteCondition {
            path: some(random, &["*", "/*", "/", "/a", "/a*", "/a/*", "/a/b", "/a/b*", "/b"], percent),
            method: some(random, &["GET", "POST", "OPTIONS", "CONNECT"], percent),
            host: some(random, &["a", "b", "*.a", "c.a"], percent),
            header: header.map(|value| (names[random.below(2)].to_owned(), value)).collect(),
            client: some(random, &["10.0.0.0/8", "10.1.0.0/16", "::/0"], percent / 4),
            client_name: some(random, &values, percent / 4),
        }
    }

    #[test]
    fn the_answer_is_that_of_all_pairs() {
        let mut random = Random::new(43);
        let mut counts = [0; 3];
        for round in 0..20_000 {
            let percent = [15, 30, 50, 80][round % 4];
            let rules: Vec<RouteCondition> =
                (0..random.below(24)).map(|_| condition(&mut random, percent)).collect();
            let got = shadows(&rules);
            assert_eq!(got, pairwise(&rules), "{rules:#?}");
            for shadow in got {
                counts[match shadow {
                    None => 0,
                    Some(Shadow::Whole(_)) => 1,
                    Some(Shadow::Paths(_)) => 2,
                }] += 1;
            }
        }
        assert!(counts.iter().all(|count| *count > 1000), "{counts:?}");
    }

    /// How many pairs are compared for `count` rules.
    fn compared(count: usize, rule: impl Fn(usize) -> RouteCondition) -> usize {
        let rules: Vec<RouteCondition> = (0..count).map(rule).collect();
        let (mut earlier, mut pairs) = (EarlierRules::new(&rules), 0);
        for (i, rule) in rules.iter().enumerate() {
            let asked = |_: usize| {
                pairs += 1;
                false
            };
            earlier.first(rule, asked);
            earlier.next(i);
        }
        pairs
    }

    #[test]
    fn work_grows_with_the_rules_and_not_with_the_pairs() {
        let words = |text: String| vec![text];
        let none = RouteCondition::default;
        let tables: [(&str, &dyn Fn(usize) -> RouteCondition); 6] = [
            ("hosts", &|i| RouteCondition { host: words(format!("h{i}.example")), ..none() }),
            ("paths", &|i| RouteCondition { path: words(format!("/p{i}/*")), ..none() }),
            ("one path", &|_| RouteCondition { path: words("/a*".to_owned()), ..none() }),
            ("one path, many headers", &|i| RouteCondition {
                path: words("/a*".to_owned()),
                header: vec![("x-t".to_owned(), format!("v{i}"))],
                ..none()
            }),
            ("nested", &|i| RouteCondition { path: words(format!("/{}*", "a".repeat(2000 - i))), ..none() }),
            ("by turns", &|i| match i % 2 {
                0 => RouteCondition { host: words(format!("h{i}.example")), ..none() },
                _ => RouteCondition { path: words(format!("/p{i}/*")), ..none() },
            }),
        ];
        for (what, rule) in tables {
            assert!(compared(2000, rule) <= 2 * 2000, "{what}: {}", compared(2000, rule));
        }
    }
}
