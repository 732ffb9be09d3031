//! What a request occupies and gives back.

use crate::code::{MemberId, StageId};
use weir_policy::{TargetId, Ticket};

/// Something that a request holds.
pub(crate) struct Hold {
    pub what: HoldKind,
    pub member: MemberId,
    /// The step that gives it back.
    pub pc: u32,
    pub depth: usize,
}

#[derive(Clone, Copy)]
pub(crate) enum HoldKind {
    Line {
        queue: u32,
    },
    Slot {
        queue: u32,
    },
    ShareLine {
        share: u32,
    },
    Share {
        share: u32,
    },
    Picked {
        lb: u32,
        target: TargetId,
    },
    GuardLine {
        lb: u32,
    },
    /// `late`: a `timeout` around the balancer has passed.
    Sent {
        lb: u32,
        ticket: Ticket,
        late: bool,
    },
    Lost {
        stage: StageId,
    },
    /// It opens a connection, or waits for one.
    Connecting {
        at: u32,
    },
    Connection {
        conn: u32,
    },
}
