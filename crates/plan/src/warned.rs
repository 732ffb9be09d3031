//! Which warnings of a file concern which of its scenarios.

use crate::reach::Reach;
use crate::{Node, Point, Scenario};
use std::collections::BTreeSet;

impl Point {
    /// The warnings that concern a scenario: those that name it, and those that name none and whose place it reaches.
    /// Without their places, since lines and comments are to change no result.
    pub fn warnings_of(&self, scenario: &Scenario) -> Vec<&str> {
        if self.warnings.is_empty() {
            return Vec::new();
        }
        let places: Vec<String> = self.spans(scenario).iter().map(|span| format!("({span})")).collect();
        let concerns = |warning: &&str| match warning.split_once("scenario \"") {
            Some((_, rest)) => rest.split('"').next() == Some(scenario.name.as_str()),
            None => places.iter().any(|place| warning.ends_with(place)),
        };
        self.warnings.iter().map(String::as_str).filter(concerns).map(|w| self.without_place(w)).collect()
    }

    /// The message, without ` (file:line:column)`.
    fn without_place<'a>(&self, warning: &'a str) -> &'a str {
        let spans = || {
            let sites = self.sites.iter().map(|s| &s.span);
            sites.chain(self.scenarios.iter().map(|s| &s.span))
        };
        match warning.strip_suffix(')').and_then(|said| said.rsplit_once(" (")) {
            Some((said, place)) if spans().any(|span| span == place) => said,
            _ => warning,
        }
    }

    /// The locations of the nodes that a scenario reaches.
    fn spans(&self, scenario: &Scenario) -> BTreeSet<&str> {
        let sites = self.reached(scenario).filter_map(|node| self.sites.get(node.site as usize));
        sites.map(|site| site.span.as_str()).filter(|span| !span.is_empty()).collect()
    }

    /// The nodes that a scenario reaches.
    pub(crate) fn reached(&self, scenario: &Scenario) -> impl Iterator<Item = &Node> {
        let ids = Reach::new(self, scenario.root).into_ids();
        ids.into_iter().filter_map(|id| self.nodes.get(id as usize))
    }
}
