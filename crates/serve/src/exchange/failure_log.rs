//! Why requests failed, for whoever runs weir: a line on standard error for each that weir itself answers with 500 or above,
//! or whose answer broke off, with the server, the reason and what became of the request.
//!
//! No body stands in it, and nothing of a request that could end a line. All of it is off the good path, and nothing is put
//! together that is not said.

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::failure::{Failure, Why};
use crate::h1::server::Conn;
use crate::log::escape;
use crate::nodes::Node;
use crate::upstream::server::Server;
use weir_http1::{Refusal, Request};

/// Bytes of a request's target that are told at most.
const TARGET: usize = 256;

/// A request that weir answers with an error of its own.
#[cold]
pub(crate) fn failed(lp: &Loop, ex: &Exchange, failure: &Failure) {
    if failure.status < 500 || ex.conn.listener.is_built_in() {
        return;
    }
    lp.process.words.request_failed(|| {
        let graph = lp.graph();
        let at = match failure.at.map(|id| graph.node(id)) {
            Some(Node::Server(server)) => Some(server.described()),
            _ => None,
        };
        // What no server did may still have happened while one was waited for.
        let last = match (&at, ex.origin.borrow().as_ref()) {
            (None, Some(server)) => format!(", last tried: {}", server.described()),
            _ => String::new(),
        };
        let at = at.unwrap_or_else(|| listener(&ex.conn));
        format!("{at}: {}; {} to {}{last}", failure.why, failure.status, asked(&ex.request))
    });
}

/// A request whose answer broke off after so many bytes of its body. `server`: where it came from.
#[cold]
pub(crate) fn broke_off(lp: &Loop, ex: &Exchange, server: &Server, why: Why, passed: u64) {
    if ex.conn.listener.is_built_in() {
        return;
    }
    lp.process.words.request_failed(|| {
        let (at, asked) = (server.described(), asked(&ex.request));
        format!("{at}: {why}; the answer to {asked} is cut short after {passed} bytes")
    });
}

/// A request that goes round in circles, or another that is refused by its head and is not the client's fault.
#[cold]
pub(crate) fn refused(lp: &Loop, conn: &Conn, request: &Request, refusal: Refusal) {
    if refusal.status() == 508 && !conn.listener.is_built_in() {
        lp.process
            .words
            .request_failed(|| format!("{}: {refusal}; 508 to {}", listener(conn), asked(request)));
    }
}

/// How a server is called: by its name and where it is.
pub(crate) fn server(name: &str, addr: Option<&str>) -> String {
    format!("server {name:?} ({})", addr.unwrap_or("built in"))
}

fn listener(conn: &Conn) -> String {
    format!("listener {:?}", conn.listener.name)
}

/// Method and target, as much of it as a line bears.
fn asked(request: &Request) -> String {
    let mut text = String::new();
    escape(&mut text, request.method());
    text.push(' ');
    let target = request.target();
    escape(&mut text, &target[..target.len().min(TARGET)]);
    if target.len() > TARGET {
        text.push_str("...");
    }
    text
}
