//! Tolerances: how far each statistic of both worlds may lie apart.

/// Tolerances by statistic.
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerances {
    all: Vec<(String, f64)>,
    /// The names of those that were set.
    asked: Vec<String>,
}

impl Default for Tolerances {
    fn default() -> Tolerances {
        let of = [
            ("mean", 0.03),
            ("p50", 0.03),
            ("p95", 0.03),
            ("p99", 0.05),
            ("success", 0.5),
            ("attempts", 0.03),
            ("opened", 0.05),
            ("open", 0.05),
            ("share", 2.0),
        ];
        let all = of.map(|(name, tolerance)| (name.to_owned(), tolerance)).into();
        Tolerances { all, asked: Vec::new() }
    }
}

impl Tolerances {
    /// The statistics that have one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|(name, _)| &name[..])
    }

    /// Another tolerance for a statistic: a share of what was simulated, or points; false: there is no such statistic.
    pub fn set(&mut self, name: &str, tolerance: f64) -> bool {
        let found = self.all.iter_mut().find(|(known, _)| known == name);
        self.asked.push(name.to_owned());
        found.map(|(_, own)| *own = tolerance).is_some()
    }

    /// Whether that of a statistic was set: if the statistic is unknown then, it does not agree.
    pub fn is_set(&self, name: &str) -> bool {
        self.asked.iter().any(|asked| asked == name)
    }

    /// The tolerance of a statistic.
    pub fn tolerance(&self, name: &str) -> f64 {
        self.all.iter().find(|(known, _)| known == name).map_or(0.0, |(_, tolerance)| *tolerance)
    }
}
