//! The heads of messages that a thread has parsed and may parse into again: objects with lists that have grown.
//!
//! A head goes from hand to hand in its box and comes back here when its exchange has ended, so that a request in a
//! warm process allocates none. The lists belong to the thread; each event loop is one.

use std::cell::RefCell;
use weir_http1::{Request, Response};

/// Heads of each kind that are kept.
const KEPT: usize = 64;

#[expect(
    clippy::vec_box,
    reason = "heads go from hand to hand in their boxes, which are used again as they are"
)]
struct Heads {
    requests: RefCell<Vec<Box<Request>>>,
    responses: RefCell<Vec<Box<Response>>>,
}

thread_local! {
    static HEADS: Heads = const { Heads { requests: RefCell::new(Vec::new()), responses: RefCell::new(Vec::new()) } };
}

/// A request's head, to be parsed into.
pub(crate) fn take_request() -> Box<Request> {
    HEADS.try_with(|heads| heads.requests.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

/// Keeps a request's head that is not needed any more.
pub(crate) fn keep_request(request: Box<Request>) {
    // While the thread ends there is nothing to keep it in.
    let _ = HEADS.try_with(|heads| keep(&heads.requests, request));
}

/// A response's head, to be parsed into.
pub(crate) fn take_response() -> Box<Response> {
    HEADS.try_with(|heads| heads.responses.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

/// Keeps a response's head that is not needed any more.
pub(crate) fn keep_response(response: Box<Response>) {
    let _ = HEADS.try_with(|heads| keep(&heads.responses, response));
}

fn keep<T>(list: &RefCell<Vec<T>>, head: T) {
    let mut list = list.borrow_mut();
    if list.len() < KEPT {
        list.push(head);
    }
}
