//! What is kept of one stream: what has come and was not taken, what is to be sent and has no room yet.

use crate::message::HeadKind;
use crate::sync::buffered::BufferedBytes;
use smallvec::SmallVec;
use weir_http1::{Refusal, RequestInfo, Response, Trailers};
use weir_http2::{ErrorCode, Malformed};
use weir_net::io::buffers::Input;
use weir_net::io::runtime::{Runtime, Waiter};

/// Why a stream is over before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The peer has reset it, or this side has.
    Reset(ErrorCode),
    /// Its peer has broken a rule, for which it was reset.
    Malformed(Malformed),
    /// The origin has refused it before any work.
    Refused,
    /// The origin has ended the connection before it looked at it.
    Unprocessed,
    /// The connection has ended.
    Cut,
}

/// A head of an answer: the answer, or the rule that it breaks.
pub(crate) struct AnswerHead {
    pub kind: HeadKind,
    pub read: Result<Box<Response>, Refusal>,
}

/// One stream.
#[derive(Default)]
pub(super) struct Slot {
    pub id: u32,
    /// How many hold it; the last one finishes it.
    pub users: u32,
    /// What was asked, to read the answer by.
    pub asked: RequestInfo,
    /// Heads of the answer that were not taken yet: interim ones, and the final one.
    pub heads: SmallVec<[AnswerHead; 1]>,
    /// Bytes of the body that were not taken yet.
    pub arrived: Input,
    pub trailers: Option<Box<Trailers>>,
    /// Whether the peer has sent everything.
    pub has_ended: bool,
    /// Bytes of the body that have no room yet, at the peer or in the socket's queue.
    pub out: Input,
    /// The first of them that are in the write that is being made.
    pub leaving: usize,
    /// Trailers that follow those.
    pub last: Option<Box<Trailers>>,
    /// Whether the end was queued or sent.
    pub is_finished: bool,
    /// Whether it was queued and had no room yet.
    pub owes_end: bool,
    /// Bytes of the body that were sent.
    pub sent: u64,
    /// Counts the bytes that have no room.
    pub held: BufferedBytes,
    pub fate: Option<Fate>,
    /// The tasks that wait for what comes, and for room.
    pub reader: Waiter,
    pub writer: Waiter,
}

impl Slot {
    /// The stream is over: nothing more is sent.
    pub fn end(&mut self, fate: Fate) {
        if self.fate.is_none() {
            self.fate = Some(fate);
        }
        self.out = Input::default();
        self.last = None;
        self.owes_end = false;
        self.held.set(0);
    }

    /// Wakes the tasks that wait for anything.
    pub fn wake(&self, rt: &Runtime) {
        self.reader.wake(rt);
        self.writer.wake(rt);
    }

    /// Counts what has no room.
    pub fn count(&mut self) {
        self.held.set(self.out.bytes().len());
    }
}
