//! Which warnings of a file concern which of its scenarios.

use crate::{Edge, Node, NodeId, Point, Scenario, Spec};
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
        let mut sites = vec![false; self.sites.len()];
        self.reached(scenario).for_each(|node| sites[node.site as usize] = true);
        let sites = self.sites.iter().zip(sites).filter(|(_, reached)| *reached);
        sites.map(|(site, _)| site.span.as_str()).filter(|span| !span.is_empty()).collect()
    }

    /// The nodes that a scenario reaches.
    pub(crate) fn reached(&self, scenario: &Scenario) -> impl Iterator<Item = &Node> {
        let mut reached = vec![false; self.nodes.len()];
        if let Some(root) = reached.get_mut(scenario.root as usize) {
            *root = true;
        }
        let mut listed = vec![false; self.lists.len()];
        // A node comes after all that it leads to. A list is walked once, however many balancers share it.
        for (id, node) in self.nodes.iter().enumerate().rev() {
            if !reached[id] {
                continue;
            }
            let mut reach = |next: NodeId| reached[next as usize] = true;
            if let Some(aside) = self.specs.get(node.spec as usize).and_then(Spec::aside) {
                reach(aside);
            }
            match node.to {
                Edge::None => {}
                Edge::Node(next) => reach(next),
                Edge::List(list) => {
                    if !std::mem::replace(&mut listed[list as usize], true) {
                        self.lists[list as usize].iter().copied().for_each(reach);
                    }
                }
            }
        }
        self.nodes.iter().zip(reached).filter(|(_, reached)| *reached).map(|(node, _)| node)
    }
}
