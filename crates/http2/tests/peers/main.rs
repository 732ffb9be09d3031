//! Connections and their peers: any bytes, and another implementation.

mod entry;
mod exchange;
mod generate;
mod h2_message;
mod h2_sides;
mod h2_verdicts;
mod pipe;
mod player;
#[allow(dead_code, reason = "the other test uses all of it")]
#[path = "../http2/wire.rs"]
mod wire;

mod generated;
mod h2_client_differences;
mod h2_differences;
mod h2_exchanges;
