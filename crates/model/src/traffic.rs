//! When requests arrive, as a topology file says it (`traffic.`).

use crate::Dist;
use serde::{Deserialize, Serialize};

/// An arrival process. Equal values have equal arrivals in all scenarios of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "traffic", rename_all = "snake_case")]
pub enum Traffic {
    /// Exponential gaps; `every=` and `rate=` are two ways to write the mean gap.
    Poisson {
        /// The mean gap, ns; positive and finite (a rate of 3 has a gap that is no whole number).
        gap_ns: f64,
    },
    /// Equal gaps.
    Constant {
        /// The gap, ns; positive and finite. The k-th arrival comes at k times it, rounded.
        gap_ns: f64,
    },
    /// Independent gaps of any distribution.
    Renewal {
        /// The gap.
        gap: Dist,
    },
}
