//! What one side allows the other, and how much memory that may cost.

use crate::frame::PAYLOAD;
use crate::window::{INITIAL, MOST};

/// The end of a connection that this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It answers the requests of a client.
    Server,
    /// It sends requests to an origin.
    Client,
}

/// The limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Streams at once: those that a client may open, or that are opened with an origin.
    pub max_streams: u32,
    /// Bytes of a head or of trailers, as HTTP/1.1 would write them.
    pub max_head: u32,
    /// Fields of a head or of trailers.
    pub max_fields: u32,
    /// Bytes of a new stream's window (RFC 9113 §6.9.2).
    pub stream_window: u32,
    /// Bytes of the window of a stream that receives, if there is room in that of the connection.
    pub max_stream_window: u32,
    /// Bytes that the peer may send on all streams until they are passed on; an origin at least as many as the windows of
    /// new streams have.
    pub connection_window: u32,
    /// Bytes of the decoder's table of fields (RFC 7541 §4.2).
    pub header_table: u16,
    /// Offer extended CONNECT (RFC 8441).
    pub has_extended_connect: bool,
    /// How long the peer may take to acknowledge SETTINGS.
    pub settings_timeout_ns: u64,
}

impl Config {
    /// The defaults towards clients.
    pub const SERVER: Config = Config {
        max_streams: 100,
        max_head: 32 * 1024,
        max_fields: 100,
        stream_window: 64 * 1024,
        max_stream_window: 1024 * 1024,
        connection_window: 1024 * 1024,
        header_table: 4096,
        has_extended_connect: true,
        settings_timeout_ns: 10_000_000_000,
    };

    /// The defaults towards origins: the connection's window is no less than that of all streams, so that a stream whose
    /// client takes nothing holds up no other.
    pub const CLIENT: Config = Config {
        connection_window: 100 * 64 * 1024 + 4 * 1024 * 1024,
        has_extended_connect: false,
        ..Config::SERVER
    };

    /// Windows end at 2^31 - 1 (RFC 9113 §6.9.1). That of a connection with an origin has room for those of all streams,
    /// which are no smaller than the initial one until SETTINGS are acknowledged.
    pub(crate) fn bounded(self, role: Role) -> Config {
        let streams = match role {
            Role::Server => 0,
            Role::Client => self.max_streams.saturating_mul(self.stream_window.max(INITIAL)),
        };
        Config {
            stream_window: self.stream_window.min(MOST),
            max_stream_window: self.max_stream_window.min(MOST),
            connection_window: self.connection_window.max(streams).min(MOST),
            ..self
        }
    }

    /// The parameters of SETTINGS (RFC 9113 §6.5.2) that differ from those that hold without any.
    pub(crate) fn parameters(&self, role: Role) -> ([(u16, u32); 6], usize) {
        use crate::settings::id;
        let mut list = [(0, 0); 6];
        let mut count = 0;
        let mut add = |id, value| {
            list[count] = (id, value);
            count += 1;
        };
        if self.header_table != 4096 {
            add(id::HEADER_TABLE_SIZE, u32::from(self.header_table));
        }
        match role {
            Role::Client => add(id::ENABLE_PUSH, 0),
            Role::Server => add(id::MAX_CONCURRENT_STREAMS, self.max_streams),
        }
        add(id::INITIAL_WINDOW_SIZE, self.stream_window);
        // RFC 9113 §6.5.2: 32 bytes are added for each field.
        add(id::MAX_HEADER_LIST_SIZE, self.max_head.saturating_add(self.max_fields.saturating_mul(32)));
        if role == Role::Server {
            add(id::NO_RFC7540_PRIORITIES, 1);
            if self.has_extended_connect {
                add(id::ENABLE_CONNECT_PROTOCOL, 1);
            }
        }
        (list, count)
    }

    /// The longest block of fields that is gathered: more than any head within the limits needs.
    pub(crate) fn max_gathered(&self) -> u32 {
        self.max_head.saturating_mul(2).max(PAYLOAD)
    }

    /// The longest block of fields that is decoded, though its message is refused: a longer one ends the connection.
    pub(crate) fn max_block(&self) -> u32 {
        self.max_gathered().saturating_mul(4)
    }
}
