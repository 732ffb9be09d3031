//! The admin interface of a running weir, asked as anybody might.

use super::{Message, Stream, Weir};
use serde_json::Value;
use std::time::Duration;

/// Where `what` (`admin`, `control`) is: the next line of standard output that says so.
#[track_caller]
pub(crate) fn addr(weir: &Weir, what: &str) -> String {
    let within = Duration::from_secs(20);
    let line = weir.line(within).unwrap_or_else(|| panic!("{what} is not said: {}", weir.err()));
    let addr = line.strip_prefix(what).unwrap_or_else(|| panic!("not of {what}: {line}"));
    addr.trim().to_owned()
}

/// The answer to a request with these further fields.
#[track_caller]
pub(crate) fn ask(at: &str, request: &str, fields: &str, body: &str) -> Message {
    let mut stream = Stream::connect(at).expect("it listens");
    let host = if fields.to_ascii_lowercase().contains("host:") { "" } else { "Host: localhost\r\n" };
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    stream
        .ask(&format!("{request} HTTP/1.1\r\n{host}{fields}{length}Connection: close\r\n\r\n{body}"))
        .expect("an answer")
}

/// What a path says.
#[track_caller]
pub(crate) fn get(at: &str, path: &str) -> (u16, String) {
    let answer = ask(at, &format!("GET {path}"), "", "");
    (answer.status(), answer.body_text())
}

/// The same as data.
#[track_caller]
pub(crate) fn json(at: &str, path: &str) -> Value {
    let (status, body) = get(at, path);
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}"))
}

/// A target as `/topology` has it.
#[track_caller]
pub(crate) fn target(at: &str, pool: &str, target: &str) -> Value {
    let topology = json(at, "/topology?loops=1");
    let named = |all: &Value, name: &str| {
        all.as_array().into_iter().flatten().find(|one| one["name"] == name).cloned()
    };
    let found = named(&topology["pools"], pool).and_then(|pool| named(&pool["targets"], target));
    found.unwrap_or_else(|| panic!("no {target} of {pool} in {topology:#}"))
}
