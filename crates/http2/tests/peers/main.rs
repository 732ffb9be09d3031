//! Connections and their peers: any bytes, and other implementations.

mod entry;
mod generate;

mod generated;
