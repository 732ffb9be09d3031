//! The rules of a route, indexed: the first that matches is found without comparing all before it.
//!
//! A rule is filed under its values of one argument, that whose values are rarest among the rules, so it is found if the
//! request has one of them; its other conditions are compared then. The rules with the same value are a table of their own,
//! so a thousand rules of one host are found by their paths, and a rule of a thousand hosts and paths by both. Of all
//! that match the one with the lowest number counts.
//!
//! Cost of a look-up: a walk over each attribute that some rule is filed under (a header's name is one), and the rules
//! with equal values. Cost of making it: linear in the values of the rules, as [`Builder::budget`] bounds what is
//! filed; what goes beyond is compared one by one.

use super::attribute::{Argument, Attribute, Pattern};
use super::patterns::PatternTree;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use weir_plan::{MatchInput, RouteCondition};

/// Rules with at most this many values are compared one by one.
const FEW: usize = 16;

/// How often a value may be filed, on average over all rules.
const FILED_PER_VALUE: usize = 8;

/// Rules, as they are looked up.
pub(crate) struct RuleTable {
    /// The lowest number of a rule.
    least: u32,
    /// Rules that are compared one by one, by their numbers.
    listed: Box<[Rule]>,
    /// The other rules by the patterns that they are filed under.
    filed: Box<[(Attribute, PatternTree<Arc<RuleTable>>)]>,
}

/// A rule.
#[derive(Clone)]
struct Rule {
    /// Its place in the list, from 0.
    number: u32,
    /// What is to be compared where it is found; `None`: it matches.
    rest: Option<Arc<RouteCondition>>,
}

impl RuleTable {
    /// Indexes the rules of a route.
    pub fn new(rules: &[RouteCondition]) -> RuleTable {
        let values: usize = rules.iter().map(values).sum();
        let mut builder = Builder { budget: FILED_PER_VALUE.saturating_mul(values) };
        let rule = |(number, when): (u32, &RouteCondition)| Rule::new(number, when.clone());
        builder.table((0..).zip(rules).map(rule).collect())
    }

    /// The place in the list of the first rule that matches.
    pub fn first(&self, request: &impl MatchInput) -> Option<usize> {
        let first = Cell::new(u32::MAX);
        self.search(request, &first);
        (first.get() < u32::MAX).then_some(first.get() as usize)
    }

    /// Lowers `first` to the number of the first rule here that matches.
    fn search(&self, request: &impl MatchInput, first: &Cell<u32>) {
        if self.least >= first.get() {
            return;
        }
        let mut listed = self.listed.iter().take_while(|rule| rule.number < first.get());
        if let Some(rule) = listed.find(|rule| rule.matches(request)) {
            first.set(rule.number);
        }
        for (attribute, tree) in &self.filed {
            attribute.visit(request, tree, &|table| table.search(request, first));
        }
    }
}

impl Rule {
    fn new(number: u32, rest: RouteCondition) -> Rule {
        Rule { number, rest: (!rest.is_empty()).then(|| Arc::new(rest)) }
    }

    fn matches(&self, request: &impl MatchInput) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.matches(request))
    }
}

/// Makes tables.
struct Builder {
    /// The number of values that may still be filed.
    budget: usize,
}

impl Builder {
    /// A table of rules, which are in order.
    fn table(&mut self, mut rules: Vec<Rule>) -> RuleTable {
        // Behind a rule that always matches none is reached.
        let reached = rules.iter().position(|rule| rule.rest.is_none()).map_or(rules.len(), |at| at + 1);
        rules.truncate(reached);
        let least = rules.first().map_or(u32::MAX, |rule| rule.number);
        let cost: usize = rules.iter().filter_map(|rule| rule.rest.as_deref()).map(values).sum();
        if cost <= FEW || cost > self.budget {
            return RuleTable { least, listed: rules.into(), filed: Box::default() };
        }
        self.budget -= cost;
        let (groups, listed) = grouped(rules);
        let mut filed: BTreeMap<Attribute, PatternTree<Arc<RuleTable>>> = BTreeMap::new();
        // Values of the same rules share a table.
        let mut tables: BTreeMap<Vec<u32>, Arc<RuleTable>> = BTreeMap::new();
        for (Pattern { attribute, text, is_open }, rules) in groups {
            let numbers = rules.iter().map(|rule| rule.number).collect();
            let table = tables.entry(numbers).or_insert_with(|| Arc::new(self.table(rules))).clone();
            filed.entry(attribute).or_insert_with(PatternTree::new).insert(&text, is_open, table);
        }
        RuleTable { least, listed: listed.into(), filed: filed.into_iter().collect() }
    }
}

/// Files rules under the values of one argument each; those that have no argument are left.
fn grouped(rules: Vec<Rule>) -> (BTreeMap<Pattern, Vec<Rule>>, Vec<Rule>) {
    let mut counts: HashMap<Pattern, usize> = HashMap::new();
    for rest in rules.iter().filter_map(|rule| rule.rest.as_deref()) {
        for pattern in Argument::ALL.iter().filter_map(|argument| argument.patterns(rest)).flatten() {
            *counts.entry(pattern).or_default() += 1;
        }
    }
    let (mut groups, mut left): (BTreeMap<Pattern, Vec<Rule>>, Vec<Rule>) = (BTreeMap::new(), Vec::new());
    for rule in rules {
        let Some((when, (argument, patterns))) =
            rule.rest.as_deref().and_then(|when| Some((when, rarest(when, &counts)?)))
        else {
            left.push(rule);
            continue;
        };
        let rule = Rule::new(rule.number, argument.removed_from(when));
        for pattern in patterns {
            let group = groups.entry(pattern).or_default();
            if group.last().is_none_or(|last| last.number < rule.number) {
                group.push(rule.clone());
            }
        }
    }
    (groups, left)
}

/// The argument of which the most frequent value is the rarest, with its patterns; of several that with the fewest.
fn rarest(when: &RouteCondition, counts: &HashMap<Pattern, usize>) -> Option<(Argument, Vec<Pattern>)> {
    let most = |(_, patterns): &(Argument, Vec<Pattern>)| patterns.iter().filter_map(|p| counts.get(p)).max();
    let given = Argument::ALL.into_iter().filter_map(|argument| Some((argument, argument.patterns(when)?)));
    given.min_by_key(|given| (most(given).copied(), given.1.len()))
}

/// The number of values that a condition has.
fn values(when: &RouteCondition) -> usize {
    Argument::ALL.iter().map(|argument| argument.count(when)).sum()
}
