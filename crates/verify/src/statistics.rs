//! Statistics of both worlds: their units, and the verdicts on them.

use weir_stats::Estimate;

/// How a difference is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As a share of what was simulated.
    Ratio,
    /// In points of per cent.
    Points,
}

impl Unit {
    /// As `docs/spec/language.md#verify` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Ratio => "ratio",
            Unit::Points => "points",
        }
    }
}

/// Whether both worlds agree in a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval of the difference is within the tolerance.
    Agrees,
    /// It is outside.
    Differs,
    /// Neither; more runs may decide.
    Undecided,
}

impl Verdict {
    /// As `docs/spec/language.md#verify` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Differs => "differs",
            Verdict::Undecided => "undecided",
        }
    }

    /// Of several: one that differs makes all differ.
    pub fn of_all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
        verdicts.into_iter().fold(Verdict::Agrees, |all, one| match (all, one) {
            (Verdict::Differs, _) | (_, Verdict::Differs) => Verdict::Differs,
            (Verdict::Agrees, Verdict::Agrees) => Verdict::Agrees,
            _ => Verdict::Undecided,
        })
    }
}

/// A statistic of both worlds.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// `mean`, `p50`, `p95`, `p99` (of the latency, ms), `success`, `attempts`, `opened` (connections to servers), `share`.
    pub name: &'static str,
    /// As simulated, over the runs that count.
    pub simulated: Estimate,
    /// As it was.
    pub real: Estimate,
    /// Real less simulated, run by run.
    pub difference: Estimate,
    /// That as a share of what was simulated.
    pub relative: Estimate,
    /// The tolerance.
    pub tolerance: f64,
    /// Of what.
    pub unit: Unit,
    /// A difference below this agrees at any share, ms; `None` of what is not a latency.
    pub no_matter_ms: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
    /// How many runs would tell, where these do not; `None`: more than can be said.
    pub runs_needed: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_differs_makes_all_differ() {
        use Verdict::{Agrees, Differs, Undecided};
        assert_eq!(Verdict::of_all([Agrees, Agrees]), Agrees);
        assert_eq!(Verdict::of_all([Agrees, Undecided]), Undecided);
        assert_eq!(Verdict::of_all([Undecided, Differs, Agrees]), Differs);
    }
}
