//! HTTP/2 (RFC 9113) of an intermediary, sans-I/O: bytes in, events and bytes out.
//!
//! A [`Connection`] is one end, of either [`Role`]. [`Connection::receive`] reads all bytes that have come
//! and gives one [`Event`] at a time: heads go field by field into the caller's [`FieldSink`], bodies are ranges of the
//! bytes that were received. What a message must be like is judged while it is decoded ([`Malformed`]): what is wrong
//! with one stream ends that stream, what is wrong with framing, compression or the connection's window ends the
//! connection, as does a peer that sends too much that brings nothing ([`ConnectionError`]). [`Head`] is such a sink, from which
//! `weir_http1` reads the objects that a proxy decides by; [`Rendered`] is the way back.
//!
//! Control frames and heads are written into a buffer that the caller lends; of bodies the caller says how many bytes it
//! holds, and [`Connection::next_data`] says which stream sends how many of them next (RFC 9218). So one write carries
//! control frames, heads, and the payloads of many streams from where they lie.
//!
//! At rest nothing is on the heap but the tables of HPACK, which are as large as their content. Nothing here knows a
//! socket, a clock or a thread; time is an argument, in nanoseconds.
#![forbid(unsafe_code)]

mod config;
mod connection;
mod error;
mod flood;
mod frame;
mod hpack;
mod malformed;
mod message;
mod own_resets;
mod priority;
mod schedule;
mod settings;
mod stream;
mod window;

pub use config::{Config, Role};
pub use connection::{Connection, Event, MAX_INTERIMS, Received, SendError, Turn};
pub use error::{ConnectionError, ErrorCode};
pub use flood::{MAX_IDLE_FRAMES, MAX_IDLE_FRAMES_NS};
pub use frame::PREFACE;
pub use hpack::{Decoder, Encoder, Field, HpackError, Policy};
pub use malformed::Malformed;
pub use message::{Block, FieldSink, Head, Pseudo, PseudoMarks, Rendered, RequestLine, Scratch};
pub use priority::Priority;
pub use settings::Settings;
