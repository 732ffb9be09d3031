//! The states of a stream as one table (RFC 9113 §5.1). The states reserved for push do not exist: push is off.
//!
//! Where the RFC leaves a choice between ending a stream and ending the connection, the stream ends alone; but HEADERS of
//! a client on a stream that is known to have ended end its connection, as §5.1 allows.

use crate::error::ErrorCode;

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing was sent or received.
    Idle,
    Open,
    /// This side has sent END_STREAM.
    HalfClosedLocal,
    /// The peer has sent END_STREAM.
    HalfClosedRemote,
    /// Both sides have sent END_STREAM.
    Closed,
    /// This side has sent RST_STREAM; frames that the peer had sent before it knew are on their way.
    ResetHere,
    /// The peer has sent RST_STREAM.
    ResetThere,
}

/// What happens to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    ReceiveHead,
    ReceiveHeadEnd,
    ReceiveData,
    ReceiveDataEnd,
    ReceiveReset,
    ReceiveUpdate,
    SendHead,
    SendHeadEnd,
    SendData,
    SendDataEnd,
    SendReset,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The stream is in this state now.
    To(State),
    /// The frame means nothing any more.
    Ignore,
    /// The peer broke a rule: RST_STREAM with this code.
    Stream(ErrorCode),
    /// The peer broke a rule: GOAWAY with this code.
    Connection(ErrorCode),
    /// The user of this codec may not send this now.
    Misuse,
}

const STATES: usize = 7;
const INPUTS: usize = 11;

/// The table. Rows: [`State`], columns: [`Input`].
static TABLE: [[Outcome; INPUTS]; STATES] = {
    use Outcome::{Connection, Ignore, Misuse, Stream, To};
    use State::{Closed, HalfClosedLocal, HalfClosedRemote, Open, ResetHere, ResetThere};
    const PROTOCOL: Outcome = Connection(ErrorCode::PROTOCOL_ERROR);
    const CLOSED: Outcome = Stream(ErrorCode::STREAM_CLOSED);
    const NO: Outcome = Misuse;
    #[rustfmt::skip]
    let table = [
        // ReceiveHead, ReceiveHeadEnd, ReceiveData, ReceiveDataEnd, ReceiveReset, ReceiveUpdate,
        // SendHead, SendHeadEnd, SendData, SendDataEnd, SendReset
        // Idle
        [To(Open), To(HalfClosedRemote), PROTOCOL, PROTOCOL, PROTOCOL, PROTOCOL,
         To(Open), To(HalfClosedLocal), NO, NO, NO],
        // Open
        [To(Open), To(HalfClosedRemote), To(Open), To(HalfClosedRemote), To(ResetThere), To(Open),
         To(Open), To(HalfClosedLocal), To(Open), To(HalfClosedLocal), To(ResetHere)],
        // HalfClosedLocal
        [To(HalfClosedLocal), To(Closed), To(HalfClosedLocal), To(Closed), To(ResetThere), To(HalfClosedLocal),
         NO, NO, NO, NO, To(ResetHere)],
        // HalfClosedRemote
        [CLOSED, CLOSED, CLOSED, CLOSED, To(ResetThere), To(HalfClosedRemote),
         To(HalfClosedRemote), To(Closed), To(HalfClosedRemote), To(Closed), To(ResetHere)],
        // Closed. DATA is no harm to others, though the RFC allows to end the connection.
        [Connection(ErrorCode::STREAM_CLOSED), Connection(ErrorCode::STREAM_CLOSED), CLOSED, CLOSED, Ignore, Ignore,
         NO, NO, NO, NO, Ignore],
        // ResetHere
        [Ignore, Ignore, Ignore, Ignore, Ignore, Ignore,
         NO, NO, NO, NO, Ignore],
        // ResetThere. RST_STREAM is no answer to RST_STREAM (§5.4.2), nor worth anything to WINDOW_UPDATE.
        [CLOSED, CLOSED, CLOSED, CLOSED, Ignore, Ignore,
         NO, NO, NO, NO, Ignore],
    ];
    table
};

impl State {
    /// What follows from this in this state.
    pub(crate) fn step(self, input: Input) -> Outcome {
        TABLE[self as usize][input as usize]
    }

    /// Whether neither side sends any more.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, State::Closed | State::ResetHere | State::ResetThere)
    }

    /// Whether the peer may still send a head or DATA.
    pub(crate) fn may_receive(self) -> bool {
        matches!(self, State::Open | State::HalfClosedLocal)
    }

    /// Whether this side may still send a head or DATA.
    pub(crate) fn may_send(self) -> bool {
        matches!(self, State::Open | State::HalfClosedRemote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [State; STATES] = [
        State::Idle,
        State::Open,
        State::HalfClosedLocal,
        State::HalfClosedRemote,
        State::Closed,
        State::ResetHere,
        State::ResetThere,
    ];

    const FRAMES: [(Input, bool, bool); 8] = [
        (Input::ReceiveHead, false, false),
        (Input::ReceiveHeadEnd, false, true),
        (Input::ReceiveData, false, false),
        (Input::ReceiveDataEnd, false, true),
        (Input::SendHead, true, false),
        (Input::SendHeadEnd, true, true),
        (Input::SendData, true, false),
        (Input::SendDataEnd, true, true),
    ];

    /// Which sides are open is all that a state says of lawful frames: the naive twin of the table.
    #[test]
    fn a_side_that_has_ended_sends_nothing() {
        for state in ALL.into_iter().filter(|s| *s != State::Idle) {
            for (input, is_own, is_end) in FRAMES {
                let may = if is_own { state.may_send() } else { state.may_receive() };
                let outcome = state.step(input);
                assert_eq!(matches!(outcome, Outcome::To(_)), may, "{state:?} {input:?}");
                let Outcome::To(next) = outcome else { continue };
                let (sends, receives) = (state.may_send(), state.may_receive());
                let ends = (is_own && is_end, !is_own && is_end);
                let expected = (sends && !ends.0, receives && !ends.1);
                assert_eq!((next.may_send(), next.may_receive()), expected, "{state:?} {input:?}");
            }
        }
    }

    #[test]
    fn own_frames_never_are_the_peers_fault() {
        for state in ALL {
            for (input, is_own, _) in FRAMES {
                let outcome = state.step(input);
                let blames = matches!(outcome, Outcome::Stream(_) | Outcome::Connection(_) | Outcome::Ignore);
                assert!(!(is_own && blames), "{state:?} {input:?}");
                assert!(is_own || outcome != Outcome::Misuse, "{state:?} {input:?}");
            }
        }
    }

    #[test]
    fn a_reset_ends_it() {
        for state in ALL.into_iter().filter(|s| *s != State::Idle) {
            let (sent, received) = (state.step(Input::SendReset), state.step(Input::ReceiveReset));
            if state.is_over() {
                assert_eq!((sent, received), (Outcome::Ignore, Outcome::Ignore));
            } else {
                let expected = (Outcome::To(State::ResetHere), Outcome::To(State::ResetThere));
                assert_eq!((sent, received), expected);
            }
        }
    }
}
