//! One connection, of either role.
//!
//! Received bytes go to [`Connection::receive`], which reads all of them: nothing of a frame stays with the caller. What
//! is to be sent is written into buffers that the caller lends: control frames by [`Connection::write`], heads by
//! [`Connection::send_request`] and its siblings, DATA by [`Connection::next_data`], whose payload stays where it is.

mod answer;
mod control;
mod data;
mod end;
mod event;
mod head;
mod owed;
mod reader;
mod receive;
mod release;
mod send;
mod stream;
mod write;

pub use answer::MAX_INTERIMS;
pub use event::{Event, Received};
pub use send::SendError;
pub use write::Turn;

use crate::config::{Config, Role};
use crate::flood::Account;
use crate::hpack::{Decoder, Encoder, Policy};
use crate::own_resets::OwnResets;
use crate::priority::Priority;
use crate::schedule::Schedule;
use crate::settings::Settings;
use crate::stream::{ResetStreams, Streams};
use crate::window::{INITIAL, ReceiveWindow, SendWindow};
use end::Life;
use owed::Owed;
use reader::Reader;
use std::num::NonZeroU64;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    role: Role,
    config: Config,
    reader: Reader,
    decoder: Decoder,
    encoder: Encoder,
    /// What the peer has set.
    peer: Settings,
    streams: Streams,
    /// How many of them have come to their end on both sides, and wait for their user to finish with them.
    closed: u32,
    ended: ResetStreams,
    schedule: Schedule,
    account: Account,
    /// Resets by this side; used by a client.
    own_resets: OwnResets,
    owed: Owed,
    life: Life,
    /// What may be sent on all streams together.
    send: SendWindow,
    receive: ReceiveWindow,
    /// The window of a new stream, by what the peer has acknowledged.
    initial_receive: u32,
    /// Streams that share in what the connection's window has to spare, and how much of that they have.
    receivers: u32,
    extra: u64,
    /// The highest stream that either side has opened; the peer opens streams of a server, this side those of a client.
    last_stream: u32,
    /// The numbers that the last new stream has left out, first and last; they are idle for ever.
    skipped: (u32, u32),
    /// A priority that came before its stream.
    early_priority: Option<(u32, Priority)>,
    /// The client has shown that it knows RFC 9218. One that has not expects its answers in turns.
    has_priorities: bool,
    has_peer_settings: bool,
    /// When the peer must have acknowledged SETTINGS; `None`: it has, or they were not sent.
    settings_due_ns: Option<NonZeroU64>,
}

impl Connection {
    /// A new connection, on which nothing was sent or received.
    pub fn new(role: Role, config: Config) -> Connection {
        let config = config.bounded(role);
        let policy = match role {
            Role::Server => Policy::TO_CLIENT,
            Role::Client => Policy::TO_ORIGIN,
        };
        Connection {
            role,
            config,
            reader: Reader::new(role),
            decoder: Decoder::new(),
            encoder: Encoder::new(policy),
            peer: Settings::new(),
            streams: Streams::default(),
            closed: 0,
            ended: ResetStreams::default(),
            schedule: Schedule::default(),
            account: Account::default(),
            own_resets: OwnResets::default(),
            owed: Owed::new(),
            life: Life::default(),
            send: SendWindow::new(INITIAL as i32),
            receive: ReceiveWindow::new(INITIAL as i32),
            initial_receive: INITIAL,
            receivers: 0,
            extra: 0,
            last_stream: 0,
            skipped: (1, 0),
            early_priority: None,
            has_priorities: false,
            has_peer_settings: false,
            settings_due_ns: None,
        }
    }

    /// What the peer has set.
    pub fn peer_settings(&self) -> &Settings {
        &self.peer
    }

    /// Streams that are not finished.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Bytes on the heap, without the tables of fields: none at rest.
    pub fn footprint(&self) -> usize {
        self.streams.footprint()
            + self.ended.footprint()
            + self.schedule.footprint()
            + self.owed.footprint()
            + self.reader.footprint()
    }

    /// The next instant at which [`Connection::on_time`] has something to do.
    pub fn deadline_ns(&self) -> Option<u64> {
        let times =
            [self.settings_due_ns.map(NonZeroU64::get), self.life.drain_due_ns(), self.ended.deadline_ns()];
        times.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{PseudoMarks, RequestLine};

    #[test]
    fn the_numbers_of_streams_end() {
        let mut client = Connection::new(Role::Client, Config::CLIENT);
        client.last_stream = end::HIGHEST - 2;
        let line = RequestLine {
            method: b"GET",
            scheme: Some(b"http"),
            authority: None,
            path: Some(b"/"),
            protocol: None,
            marks: PseudoMarks::NONE,
        };
        let mut ask = || client.send_request(0, &line, [], true, &mut Vec::new());
        assert_eq!((ask(), ask()), (Ok(end::HIGHEST), Err(SendError::Ending)));
        assert!(!client.can_open());
    }

    #[test]
    fn absurd_configurations_are_bounded() {
        let most = u32::MAX;
        let config = Config {
            max_streams: most,
            max_head: most,
            max_fields: most,
            stream_window: most,
            max_stream_window: most,
            connection_window: most,
            settings_timeout_ns: u64::MAX,
            ..Config::SERVER
        };
        let mut server = Connection::new(Role::Server, config);
        let mut out = Vec::new();
        server.write(u64::MAX, &mut out);
        assert!(!server.has_output());
    }
}
