//! The stages of a request's history, by the names of `weir.trace/1`; simulator and proxy write them.

/// What happened to a request at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StageKind {
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

impl StageKind {
    /// Its name in histories.
    pub fn name(self) -> &'static str {
        match self {
            StageKind::Wait => "wait",
            StageKind::Work => "work",
            StageKind::Cross => "cross",
            StageKind::Backoff => "backoff",
            StageKind::Hold => "hold",
            StageKind::Answer => "answer",
        }
    }
}
