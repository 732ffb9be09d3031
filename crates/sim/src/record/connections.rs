//! Connections over time: how many there are, and how many are opened.

/// The connections of a site at an instant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectionSample {
    /// How many there were until now, over time, ns.
    pub open_ns: i128,
    /// How many were opened.
    pub opened: u64,
}

/// The connections to a site's servers, or from its listeners, a number per part.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionsOverTime {
    /// The site, in words.
    pub place: String,
    /// How many there are, on average.
    pub open: Vec<f64>,
    /// How many are opened per second.
    pub opened_per_s: Vec<f64>,
}

impl ConnectionsOverTime {
    /// From samples, each with the length of its part, ns.
    pub(crate) fn new(place: String, samples: impl Iterator<Item = (ConnectionSample, u64)>) -> Self {
        let mut own = ConnectionsOverTime { place, open: Vec::new(), opened_per_s: Vec::new() };
        let mut before = ConnectionSample::default();
        for (now, ns) in samples {
            let over = |x: f64| if ns > 0 { x / ns as f64 } else { 0.0 };
            own.open.push(over((now.open_ns - before.open_ns) as f64));
            own.opened_per_s.push(over((now.opened - before.opened) as f64 * 1e9));
            before = now;
        }
        own
    }
}
