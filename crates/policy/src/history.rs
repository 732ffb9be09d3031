//! The stages of a request's history, by the names of `weir.trace/1`; simulator and proxy write them.

/// What happened to a request at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// It waited: in a line, for others, or for nothing.
    Wait,
    /// It was worked on.
    Work,
    /// It crossed a link.
    Cross,
    /// It waited before another attempt.
    Backoff,
    /// A balancer still counted it after it had failed.
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
