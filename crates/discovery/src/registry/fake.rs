//! A registry for tests: an HTTP/1.1 server on loopback whose answers a function gives.

use super::{Posted, Registries, ask};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use weir_plan::SourceKind;
use weir_stats::Key;

/// What is waited for in a test comes long before.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// A question.
pub(crate) struct Question {
    /// The path and the query.
    pub(crate) target: String,
    /// The fields, one a line, with names in small letters.
    pub(crate) fields: String,
}

/// An answer.
pub(crate) enum Reply {
    /// 200 with this JSON.
    Json(String),
    /// 200 with these lines, as they come; it ends with the sender.
    Lines(Receiver<String>),
    /// A status, fields (`"Name: value"`) and a body.
    Other(u16, Vec<String>, String),
    /// The connection ends without an answer.
    Close,
}

/// The server. Its threads end with their connections, and the last one with the process.
pub(crate) struct Fake {
    /// `http://127.0.0.1:port`.
    pub(crate) url: String,
}

impl Fake {
    pub(crate) fn start(answer: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let answer = answer.clone();
                // A client that goes away ends its thread by an error.
                std::thread::spawn(move || drop(serve(&socket, &*answer)));
            }
        });
        Fake { url }
    }
}

fn serve(socket: &TcpStream, answer: &dyn Fn(&Question) -> Reply) -> std::io::Result<()> {
    let mut lines = BufReader::new(socket).lines();
    let mut out = socket;
    while let Some(first) = lines.next().transpose()? {
        let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut fields = String::new();
        for line in lines.by_ref() {
            let line = line?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            fields.push_str(&format!("{}:{value}\n", name.to_ascii_lowercase()));
        }
        let head = |status, kind: &str, more: &str| {
            format!("HTTP/1.1 {status} Test\r\nContent-Type: {kind}\r\n{more}\r\n")
        };
        match answer(&Question { target, fields }) {
            Reply::Json(text) => {
                let length = format!("Content-Length: {}\r\n", text.len());
                write!(out, "{}{text}", head(200, "application/json", &length))?;
            }
            Reply::Other(status, fields, body) => {
                let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
                write!(
                    out,
                    "HTTP/1.1 {status} Test\r\n{fields}Content-Length: {}\r\n\r\n{body}",
                    body.len()
                )?;
            }
            Reply::Lines(lines) => {
                write!(out, "{}", head(200, "application/json", "Transfer-Encoding: chunked\r\n"))?;
                for line in lines {
                    write!(out, "{:x}\r\n{line}\n\r\n", line.len() + 1)?;
                }
                write!(out, "0\r\n\r\n")?;
            }
            Reply::Close => return Ok(()),
        }
    }
    Ok(())
}

/// Asks a registry, until the first of both is dropped.
pub(crate) fn posted_by(source: SourceKind) -> (Registries, Receiver<Posted>) {
    let (out, all) = channel();
    let give = move |_, posted| drop(out.send(posted));
    (ask(vec![(0, source)], Key::new(1), give).expect("a thread"), all)
}

/// The next list or fault, as short text: members as `addr`, `addr!drain`, with `*weight` where that is not 1 and `#id`;
/// a fault as its sentence.
pub(crate) fn next(all: &Receiver<Posted>) -> String {
    use crate::list::State;
    match all.recv_timeout(BOUND).expect("a list or a fault") {
        Err(fault) => fault.to_string(),
        Ok(list) => {
            let members = list.members.iter().map(|m| {
                let id = m.id.as_ref().map(|id| format!("#{id}")).unwrap_or_default();
                let weight = if m.weight == 1.0 { String::new() } else { format!("*{}", m.weight) };
                let drain = if m.state == State::Drain { "!drain" } else { "" };
                format!("{}{weight}{id}{drain}", m.addr)
            });
            members.collect::<Vec<_>>().join(" ")
        }
    }
}
