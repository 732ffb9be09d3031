//! The operations of compiled code.

/// A step and the constant waits before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub wait_ns: u64,
    pub op: Op,
}

// Four steps lie in a cache line: `ColdOp` has room for the variants of `Op` in its tag.
const _: () = assert!(size_of::<Step>() == 16);

/// What a step does. Effects that no other request could notice (waits, stateless choices) run ahead of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Op {
    /// A drawn wait.
    Draw {
        draw: u32,
    },
    /// A wait that can be cut off, constant or drawn.
    Wait {
        wait: u32,
    },
    WaitDrawn {
        draw: u32,
    },
    /// A balancer picks a target.
    PickTarget {
        lb: u32,
    },
    /// The request has returned from it.
    ReturnTarget {
        lb: u32,
    },
    /// A queue is entered.
    EnterQueue {
        queue: u32,
    },
    /// The slot is given back.
    LeaveQueue {
        queue: u32,
    },
    /// Attempts begin.
    EnterRetry {
        retry: u32,
    },
    /// An attempt begins; a request that waits before it is at this step.
    BeginAttempt {
        retry: u32,
    },
    /// An attempt has come back.
    EndAttempt {
        retry: u32,
    },
    /// A server that shares its cores is entered; the next step is the return from it.
    EnterShare {
        share: u32,
    },
    LeaveShare {
        share: u32,
    },
    /// A node is left that can crash.
    LeaveFaulty {
        down: u32,
    },
    /// The end of the way in, where a health check costs work.
    Serve,
    /// A token is needed.
    TakeToken {
        rate: u32,
    },
    /// The answer may fail on the way back.
    Flaky {
        flaky: u32,
    },
    /// A time limit begins for what is behind.
    EnterLimit {
        limit: u32,
    },
    /// The time limit ends.
    LeaveLimit,
    /// A node that may be down is entered.
    Fault {
        fault: u32,
    },
    /// On the way back; only counts errors.
    CountErrors,
    /// Another block is called that returns to one place of this one.
    Call {
        call: u32,
    },
    /// The return from it.
    CallReturn,
    /// The end of a block.
    Return,
    /// The end of the request.
    End,
    /// A step that only some topologies have: out of line, so that the hot loop stays small.
    Cold(ColdOp),
}

/// The part of [`Op`] that only some topologies have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ColdOp {
    /// The request is answered here and now, with a status.
    Answer {
        status: u32,
    },
    /// The request becomes another kind from here on; it becomes the former kind again.
    EnterRewrite {
        rewrite: u32,
    },
    LeaveRewrite,
    /// The request, or a draw, chooses where it goes.
    Choose {
        choice: u32,
    },
    /// A guarded balancer is asked for a target; it receives the outcome.
    AskGuard {
        lb: u32,
    },
    TellGuard {
        lb: u32,
    },
    /// Nodes are entered that may be down in other ways than a plain refusal.
    EnterFaulty {
        down: u32,
    },
    /// A crossing begins that may lose the request for good.
    LossyCrossing {
        lossy: u32,
    },
    /// Work begins that some balancer uses; it has been done.
    BeginWork {
        work: u32,
    },
    EndWork,
    /// The answer reports the load of the server that it has left.
    ReportSlots {
        queue: u32,
    },
    ReportCores {
        share: u32,
    },
    /// The work behind is multiplied; no longer.
    EnterWarmup {
        warmup: u32,
    },
    /// Health checks are subject to slow nodes, too.
    LeaveScaled {
        slow: bool,
    },
    /// A request or a check comes to a gate; a check comes back.
    EnterGate {
        gate: u32,
    },
    LeaveGate {
        gate: u32,
    },
    /// One of several nodes is visited after another; the request has returned from one.
    EnterSequence {
        group: u32,
    },
    NextInSequence {
        group: u32,
    },
    /// A retry is entered that may not be the first on its way.
    CountRetry {
        retry: u32,
    },
    /// Several nodes are entered at once; one of the branches has returned.
    BeginBranches {
        group: u32,
    },
    EndBranch {
        group: u32,
    },
    /// A further attempt is sent beside the others; one of them has returned.
    EnterHedge {
        hedge: u32,
    },
    LeaveHedge {
        hedge: u32,
    },
    /// A listener behind another is entered; the request has returned from it.
    EnterListener {
        hop: u32,
    },
    LeaveListener {
        hop: u32,
    },
    /// A connection to a server is taken, or opened; the request has returned from that server.
    TakeConnection {
        at: u32,
    },
    ReturnConnection {
        at: u32,
    },
}
