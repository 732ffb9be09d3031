//! What the peer has set (RFC 9113 §6.5.2, RFC 8441 §3, RFC 9218 §2.1).

use crate::error::ConnectionError;
use crate::frame::PAYLOAD;
use crate::window::{INITIAL, MOST};

/// The numbers of parameters. Others are ignored.
pub(crate) mod id {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
    pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 8;
    pub(crate) const NO_RFC7540_PRIORITIES: u16 = 9;
}

/// The peer's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Streams at once that this side may open; before SETTINGS have come, as many as peers commonly take.
    pub max_concurrent_streams: u32,
    /// The largest list of fields that the peer takes (RFC 9113 §6.5.2), a wish.
    pub max_header_list_size: u32,
    /// Whether extended CONNECT may be sent.
    pub has_extended_connect: bool,
    pub(crate) initial_window: u32,
    pub(crate) max_frame: u32,
    pub(crate) header_table: u32,
    no_priorities: Option<bool>,
    has_streams: bool,
}

/// A change that has an effect beyond later frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// All streams' windows change by this much (RFC 9113 §6.9.2).
    Window(i64),
    /// The encoder's table may have this many bytes.
    Table(u32),
}

impl Settings {
    /// Streams that a client opens before it knows the limit: what RFC 9113 §6.5.2 recommends as the least.
    pub(crate) const ASSUMED_STREAMS: u32 = 100;

    pub(crate) fn new() -> Settings {
        Settings {
            max_concurrent_streams: Settings::ASSUMED_STREAMS,
            max_header_list_size: u32::MAX,
            has_extended_connect: false,
            initial_window: INITIAL,
            max_frame: PAYLOAD,
            header_table: 4096,
            no_priorities: None,
            has_streams: false,
        }
    }

    /// Takes one parameter. `is_of_server`: the peer is one.
    pub(crate) fn set(&mut self, id: u16, value: u32, is_of_server: bool) -> Result<Change, ConnectionError> {
        let protocol = |text| Err(ConnectionError::protocol(text));
        match (id, value) {
            (id::HEADER_TABLE_SIZE, _) => {
                self.header_table = value;
                return Ok(Change::Table(value));
            }
            (id::ENABLE_PUSH, 1) if is_of_server => {
                return protocol("A server sets ENABLE_PUSH (RFC 9113 section 6.5.2)");
            }
            (id::ENABLE_PUSH, 2..) => {
                return protocol("ENABLE_PUSH is neither 0 nor 1 (RFC 9113 section 6.5.2)");
            }
            (id::MAX_CONCURRENT_STREAMS, _) => {
                self.max_concurrent_streams = value;
                self.has_streams = true;
            }
            (id::INITIAL_WINDOW_SIZE, _) if value > MOST => {
                return Err(ConnectionError::flow(
                    "INITIAL_WINDOW_SIZE is above 2^31 - 1 (RFC 9113 section 6.5.2)",
                ));
            }
            (id::INITIAL_WINDOW_SIZE, _) => {
                let by = i64::from(value) - i64::from(self.initial_window);
                self.initial_window = value;
                return Ok(Change::Window(by));
            }
            (id::MAX_FRAME_SIZE, 16_384..=16_777_215) => self.max_frame = value,
            (id::MAX_FRAME_SIZE, _) => {
                return protocol("MAX_FRAME_SIZE is not 2^14 to 2^24 - 1 (RFC 9113 section 6.5.2)");
            }
            (id::MAX_HEADER_LIST_SIZE, _) => self.max_header_list_size = value,
            (id::ENABLE_CONNECT_PROTOCOL, 2..) => {
                return protocol("ENABLE_CONNECT_PROTOCOL is neither 0 nor 1 (RFC 8441 section 3)");
            }
            (id::ENABLE_CONNECT_PROTOCOL, 0) if self.has_extended_connect => {
                return protocol("ENABLE_CONNECT_PROTOCOL is taken back (RFC 8441 section 3)");
            }
            (id::ENABLE_CONNECT_PROTOCOL, _) => self.has_extended_connect = value == 1,
            (id::NO_RFC7540_PRIORITIES, 2..) => {
                return protocol("NO_RFC7540_PRIORITIES is neither 0 nor 1 (RFC 9218 section 2.1)");
            }
            (id::NO_RFC7540_PRIORITIES, _) => {
                let is_set = value == 1;
                if self.no_priorities.is_some_and(|before| before != is_set) {
                    return protocol("NO_RFC7540_PRIORITIES changes (RFC 9218 section 2.1)");
                }
                self.no_priorities = Some(is_set);
            }
            _ => {}
        }
        Ok(Change::None)
    }

    /// The first SETTINGS are over: without the parameter of RFC 9218 it may not be set later, and without a limit of
    /// streams there is none.
    pub(crate) fn end_first(&mut self) {
        self.no_priorities.get_or_insert(false);
        if !self.has_streams {
            self.max_concurrent_streams = u32::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    #[test]
    fn parameters_have_bounds() {
        let (good, protocol) = (ErrorCode::NO_ERROR, ErrorCode::PROTOCOL_ERROR);
        for (id, value, is_of_server, expected) in [
            (1, 0, false, good),
            (1, u32::MAX, false, good),
            (2, 1, false, good),
            (2, 0, true, good),
            (2, 1, true, protocol),
            (2, 2, false, protocol),
            (3, 0, false, good),
            (4, MOST, false, good),
            (4, MOST + 1, false, ErrorCode::FLOW_CONTROL_ERROR),
            (5, 0, false, protocol),
            (5, 16_383, false, protocol),
            (5, 16_384, false, good),
            (5, 16_777_215, false, good),
            (5, 16_777_216, false, protocol),
            (8, 2, false, protocol),
            (9, 2, false, protocol),
            (7, u32::MAX, false, good),
            (0, 1, false, good),
            (0xffff, 1, false, good),
        ] {
            let code = Settings::new().set(id, value, is_of_server).err().map_or(good, |e| e.code);
            assert_eq!(code, expected, "{id} {value}");
        }
    }

    #[test]
    fn some_may_not_be_taken_back() {
        let mut settings = Settings::new();
        assert!(settings.set(8, 1, true).is_ok() && settings.set(8, 0, true).is_err());
        assert!(settings.set(9, 1, true).is_ok() && settings.set(9, 0, true).is_err());
        let mut silent = Settings::new();
        silent.end_first();
        assert!(silent.set(9, 0, true).is_ok() && silent.set(9, 1, true).is_err());
        assert_eq!(silent.set(4, 100, true), Ok(Change::Window(100 - 65_535)));
    }
}
