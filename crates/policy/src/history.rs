//! What the stages of a request's history are, by the names of `weir.trace/1`: both worlds write it.

/// What happened to a request at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// It waited: in line, for others, or for nothing.
    Wait,
    /// Work was done for it.
    Work,
    /// It crossed a cable.
    Cross,
    /// It waited before another attempt.
    Backoff,
    /// A balancer went on counting it after it had failed.
    Hold,
    /// It was answered.
    Answer,
}

impl What {
    /// Its name in histories.
    pub fn name(self) -> &'static str {
        match self {
            What::Wait => "wait",
            What::Work => "work",
            What::Cross => "cross",
            What::Backoff => "backoff",
            What::Hold => "hold",
            What::Answer => "answer",
        }
    }
}
