//! What the reading of heads needs of memory: one for all connections of a thread.

use std::cell::RefCell;
use weir_http2::{Head, Scratch};

/// A head and its buffers.
#[derive(Default)]
pub(super) struct Parser {
    pub head: Head,
    pub scratch: Scratch,
}

thread_local! {
    static PARSER: RefCell<Option<Box<Parser>>> = const { RefCell::new(None) };
}

/// The parser of this thread. Its content means nothing.
pub(super) fn take() -> Box<Parser> {
    PARSER.try_with(|parser| parser.borrow_mut().take()).ok().flatten().unwrap_or_default()
}

/// Gives it back.
pub(super) fn keep(parser: Box<Parser>) {
    // While the thread ends there is nothing to keep it in.
    let _ = PARSER.try_with(|kept| *kept.borrow_mut() = Some(parser));
}
