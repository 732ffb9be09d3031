//! Selects the scenarios that are drawn at first, each in its own colour.

use crate::chart::COLOURS;
use crate::entry;
use weir_sim::{Results, ScenarioResult};

/// The most scenarios that can be drawn; later ones are in the tables only.
const MOST: usize = 500;

/// The scenarios of a page.
pub(super) struct Selection {
    /// The label of each.
    pub labels: Vec<String>,
    /// The colour of each that is drawn at first.
    pub colours: Vec<Option<usize>>,
}

impl Selection {
    /// Selects all if there are enough colours, else a sample from the lowest to the highest p99.
    pub fn new(results: &Results) -> Selection {
        let swept = entry::swept(results);
        let labels: Vec<String> = results.scenarios.iter().map(|s| entry::label(s, &swept)).collect();
        let count = labels.len();
        let mut colours = vec![None; count];
        if count <= COLOURS {
            colours.iter_mut().enumerate().for_each(|(at, colour)| *colour = Some(at));
            return Selection { labels, colours };
        }
        let mut by_p99: Vec<usize> = (0..count).collect();
        by_p99.sort_by(|a, b| slowness(&results.scenarios[*a]).total_cmp(&slowness(&results.scenarios[*b])));
        let mut chosen: Vec<usize> = (0..COLOURS).map(|n| by_p99[n * (count - 1) / (COLOURS - 1)]).collect();
        chosen.sort_unstable();
        chosen.into_iter().enumerate().for_each(|(colour, at)| colours[at] = Some(colour));
        Selection { labels, colours }
    }

    /// Whether a scenario can be drawn.
    pub fn is_drawn(&self, at: usize) -> bool {
        at < MOST || self.colours[at].is_some()
    }

    /// The number of scenarios that can be drawn.
    pub fn drawn(&self) -> usize {
        (0..self.colours.len()).filter(|at| self.is_drawn(*at)).count()
    }

    /// The scenarios that are drawn at first, in their order.
    pub fn on(&self) -> impl Iterator<Item = usize> {
        self.colours.iter().enumerate().filter(|(_, colour)| colour.is_some()).map(|(at, _)| at)
    }
}

/// The p99, or what is known instead.
pub(super) fn slowness(s: &ScenarioResult) -> f64 {
    s.latency_all.p99.value.or(s.latency_all.mean.value).unwrap_or(f64::INFINITY)
}

/// Whether an expectation about a scenario does not hold, or something may mislead.
pub(super) fn needs_attention(s: &ScenarioResult) -> bool {
    !s.warnings.is_empty() || s.expectations.iter().any(|e| e.holds != Some(true))
}
