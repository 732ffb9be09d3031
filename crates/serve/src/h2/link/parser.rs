//! What the reading of heads needs of memory: one for all connections of a loop, which keeps it ([`Core::spares`]).
//!
//! [`Core::spares`]: weir_net::io::Core

use weir_http2::{Head, Scratch};

/// A head and its buffers. Between two uses its content means nothing.
#[derive(Default)]
pub(super) struct Parser {
    pub head: Head,
    pub scratch: Scratch,
}
