//! Connections and their peers: any bytes, and another implementation.

mod entry;
mod exchange;
mod generate;
mod h2_message;
mod h2_sides;
mod pipe;
mod player;

mod generated;
mod h2_exchanges;
