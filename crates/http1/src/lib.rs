//! HTTP/1.1 messages and an intermediary's rules, sans-I/O: bytes in, events and bytes out.
//!
//! A head is found ([`Seek`]), parsed once into a reused object that owns its bytes ([`Request`], [`Response`]),
//! checked ([`check_request`]) and written once into an output buffer ([`render_request`], [`render_response`]). Bodies
//! are read by [`Decoder`] and written by [`Encoder`]. What is refused, and why, is one table: [`RULES`]. Nothing here
//! knows a socket, a clock or a thread, and nothing is allocated for a message once the buffers have grown.
//!
//! Lines are split here and not by a library: libraries are lenient where a proxy must not be, so that every byte would
//! be looked at twice. What is lost, another's eyes, the tests give back: hyper (on httparse) reads the same messages.
#![forbid(unsafe_code)]

mod answer;
mod block;
mod byte;
mod check;
mod chunk;
mod connection;
mod convert;
mod decoder;
mod diagnose;
mod edits;
mod encoder;
mod forwarded;
mod framing;
mod host;
mod limits;
mod name;
mod networks;
mod reason;
mod render_request;
mod render_response;
mod request;
mod response;
mod rule;
mod scan;
mod seek;
mod sensitive;
mod split;
mod target;
mod trace_context;
mod trailers;
mod write;

pub use answer::render_answer;
pub use byte::{is_token, is_value};
pub use check::{Checked, Hop, OwnAnswer, check_request, check_switch, first_upgrade};
pub use convert::Pseudo;
pub use decoder::{Decoder, Piece};
pub use edits::Edits;
pub use encoder::{BodyOut, Encoder};
pub use framing::{Framing, Version};
pub use limits::Limits;
pub use name::why_unseen;
pub use networks::{InvalidNetwork, Networks, parse_network};
pub use reason::reason;
pub use render_request::render_request;
pub use render_response::{Client, body_to_client, render_response};
pub use request::Request;
pub use response::{RequestInfo, Response};
pub use rule::{RULES, Refusal, Rule};
pub use seek::Seek;
pub use sensitive::SensitiveNames;
pub use target::check_target;
pub use trace_context::Trace;
pub use trailers::Trailers;
