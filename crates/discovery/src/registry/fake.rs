//! A registry for tests: an HTTP/1.1 server on loopback whose answers a function gives.

use super::{Notice, Posted, Registries, start};
use crate::source::FollowedSource;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
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
    /// These bytes, head and all, as they come; the connection ends with the sender.
    Raw(Receiver<Vec<u8>>),
    /// A status, fields (`"Name: value"`) and a body.
    Other(u16, Vec<String>, String),
    /// The connection ends without an answer.
    Close,
}

/// The server. Its threads end with their connections, and the last one with the process.
pub(crate) struct Fake {
    /// `http://127.0.0.1:port`, or `https`.
    pub(crate) url: String,
}

impl Fake {
    pub(crate) fn start(answer: impl Fn(&Question) -> Reply + Send + Sync + 'static) -> Fake {
        // A client that goes away ends its thread by an error.
        Fake::accept("http", move |socket| drop(serve(socket, &answer)))
    }

    /// Gives each connection to this function, on a thread of its own.
    pub(super) fn accept(scheme: &str, take: impl Fn(TcpStream) + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("{scheme}://{}", listener.local_addr().expect("an address"));
        let take = Arc::new(take);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let take = take.clone();
                std::thread::spawn(move || take(socket));
            }
        });
        Fake { url }
    }
}

/// Answers all questions of a connection.
pub(super) fn serve(socket: impl Read + Write, answer: &dyn Fn(&Question) -> Reply) -> std::io::Result<()> {
    const JSON: &str = "Content-Type: application/json\r\n";
    let mut socket = BufReader::new(socket);
    while let Some(question) = read_question(&mut socket)? {
        let out = socket.get_mut();
        let mut send = |bytes: &[u8]| out.write_all(bytes).and_then(|()| out.flush());
        match answer(&question) {
            Reply::Json(text) => {
                let head = format!("HTTP/1.1 200 Test\r\n{JSON}Content-Length: {}\r\n\r\n", text.len());
                send((head + &text).as_bytes())?;
            }
            Reply::Other(status, fields, body) => {
                let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
                let length = format!("Content-Length: {}\r\n", body.len());
                send(format!("HTTP/1.1 {status} Test\r\n{fields}{length}\r\n{body}").as_bytes())?;
            }
            Reply::Lines(lines) => {
                let head = format!("HTTP/1.1 200 Test\r\n{JSON}Transfer-Encoding: chunked\r\n\r\n");
                send(head.as_bytes())?;
                for line in lines {
                    send(format!("{:x}\r\n{line}\n\r\n", line.len() + 1).as_bytes())?;
                }
                send(b"0\r\n\r\n")?;
            }
            Reply::Raw(parts) => return parts.iter().try_for_each(|part| send(&part)),
            Reply::Close => return Ok(()),
        }
    }
    Ok(())
}

/// The next question, if there is one.
fn read_question(socket: &mut impl BufRead) -> std::io::Result<Option<Question>> {
    let mut lines = socket.lines();
    let Some(first) = lines.next().transpose()? else { return Ok(None) };
    let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut fields = String::new();
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        fields.push_str(&format!("{}:{value}\n", name.to_ascii_lowercase()));
    }
    Ok(Some(Question { target, fields }))
}

/// Asks a registry, until the first of both is dropped.
pub(crate) fn posted_by(source: impl Into<FollowedSource>) -> (Registries, Receiver<Posted>) {
    let (out, all) = channel();
    let give = move |_: usize, notice: Notice| {
        if let Notice::Posted(posted) = notice {
            drop(out.send(posted));
        }
    };
    let registries = start(Key::new(1), give).expect("a thread");
    registries.ask(0, source.into()).expect("a thread");
    (registries, all)
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
