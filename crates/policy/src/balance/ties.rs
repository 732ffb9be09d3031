//! Which of several equally loaded targets is taken.

use serde::{Deserialize, Serialize};

/// How a policy decides between several equally loaded targets is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// Uniformly among them.
    #[default]
    Random,
    /// The lowest index (what the Timelike posts do).
    First,
    /// The next after the last chosen, starting at random (HAProxy, nginx).
    Rotate,
}
