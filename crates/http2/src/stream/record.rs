//! What is kept of one stream.

use super::state::State;
use crate::malformed::{Id, Malformed};
use crate::priority::Priority;
use crate::window::{ReceiveWindow, SendWindow};

/// How far the peer's message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The final head has not come.
    Head,
    /// The final head has come: DATA may follow, and trailers.
    Body,
    /// What still comes is taken and dropped: the message was malformed.
    Unwanted,
}

/// A body without a known length.
pub(crate) const ANY_LENGTH: u64 = u64::MAX;

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) state: State,
    pub(crate) part: Part,
    /// Of the client role: the answer may have no body, as to HEAD (RFC 9110 §6.4.1).
    pub(crate) is_bodiless: bool,
    /// The request was CONNECT: a 2xx makes it a tunnel.
    pub(crate) is_connect: bool,
    /// Only DATA follow, and have no length.
    pub(crate) is_tunnel: bool,
    /// Of the client role: the final head of the answer has come.
    pub(crate) is_answered: bool,
    /// The final head was sent: DATA may follow.
    pub(crate) has_head: bool,
    /// END_STREAM follows the bytes that wait.
    pub(crate) has_end: bool,
    /// It is among those that DATA is taken from.
    pub(crate) is_ready: bool,
    /// It has sent DATA.
    pub(crate) has_sent: bool,
    /// It is among those to which window is to be given.
    pub(crate) is_credited: bool,
    /// Why its request may not be processed; it is reset for it in the end.
    pub(crate) fault: Option<Malformed>,
    /// Interim answers that have come.
    pub(crate) interims: u8,
    pub(crate) priority: Priority,
    /// Bytes of the body that the user holds and wants to send.
    pub(crate) pending: u64,
    /// Bytes of the peer's body that are still to come by its content-length; [`ANY_LENGTH`] without one.
    pub(crate) missing: u64,
    pub(crate) send: SendWindow,
    pub(crate) receive: ReceiveWindow,
    /// DATA frames with a crumb of the body, of which bytes are held.
    pub(crate) crumbs: u32,
    /// What its window is larger than that of a new stream.
    pub(crate) extra: u32,
    /// It has received so much that window was given back: it shares in what the connection has to spare.
    pub(crate) is_receiver: bool,
    /// When it began.
    pub(crate) begun_ns: u64,
}

impl Stream {
    pub(crate) fn new(id: u32, state: State, send: i32, receive: i32, now_ns: u64) -> Stream {
        Stream {
            id,
            state,
            part: Part::Head,
            is_bodiless: false,
            fault: None,
            is_connect: false,
            is_tunnel: false,
            is_answered: false,
            has_head: false,
            has_end: false,
            is_ready: false,
            has_sent: false,
            is_credited: false,
            interims: 0,
            priority: Priority::default(),
            pending: 0,
            missing: ANY_LENGTH,
            send: SendWindow::new(send),
            receive: ReceiveWindow::new(receive),
            crumbs: 0,
            extra: 0,
            is_receiver: false,
            begun_ns: now_ns,
        }
    }

    /// Counts the bytes of the body in a frame, which may be the last; what is wrong with their number.
    pub(crate) fn count_body(&mut self, bytes: u32, is_end: bool) -> Option<Id> {
        if self.missing == ANY_LENGTH {
            return None;
        }
        match self.missing.checked_sub(bytes.into()) {
            None if self.is_bodiless => Some(Id::BodyForbidden),
            None => Some(Id::BodyTooLong),
            Some(1..) if is_end => Some(Id::BodyTooShort),
            Some(missing) => {
                self.missing = missing;
                None
            }
        }
    }

    /// Whether a DATA frame of it can be sent, as far as its own window goes.
    pub(crate) fn can_send_data(&self) -> bool {
        self.has_head
            && self.state.may_send()
            && if self.pending > 0 { self.send.available() > 0 } else { self.has_end }
    }
}
