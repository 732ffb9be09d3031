//! Peers of upgrades in both versions of HTTP, whose tunnels are sockets: what a test does to one, its peer does to the
//! connection or to the stream.

use crate::peer::{Client, write};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use bytes::Bytes;
use data_encoding::BASE64;
use h2::ext::Protocol;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use socket2::SockRef;
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The version of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    H1,
    H2,
}

/// Client and origin.
pub const PAIRS: [(Speaks, Speaks); 4] =
    [(Speaks::H1, Speaks::H1), (Speaks::H1, Speaks::H2), (Speaks::H2, Speaks::H1), (Speaks::H2, Speaks::H2)];

/// The key of clients by HTTP/1.1.
pub const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// What proves that a key was understood (RFC 6455 §4.2.2).
pub fn proof(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    BASE64.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()).as_ref())
}

/// A head: its first line (`GET /chat`, `CONNECT websocket http://h/chat`, a status), and its fields.
#[derive(Clone, Debug)]
pub struct Head {
    pub line: String,
    pub fields: BTreeMap<String, String>,
}

impl Head {
    /// A field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    fn parse(text: &str) -> Head {
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default().replace("HTTP/1.1", "");
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned())).collect();
        Head { line: line.trim().to_owned(), fields }
    }

    fn by_h2(line: String, fields: &HeaderMap) -> Head {
        let text = |value: &http::HeaderValue| value.to_str().unwrap_or("-").to_owned();
        Head { line, fields: fields.iter().map(|(n, v)| (n.to_string(), text(v))).collect() }
    }
}

/// One end of an upgrade, with the head that came from the other.
pub struct End {
    pub head: Head,
    pub stream: TcpStream,
}

/// What an origin answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// The tunnel.
    Yes,
    /// The tunnel, with a proof of another key.
    WrongProof,
    /// This status, and `body`.
    Status(u16),
    /// Nothing.
    Silence,
}

/// An origin, and what arrives there.
pub struct Origin {
    pub addr: String,
    pub arrived: Receiver<End>,
}

impl Origin {
    /// One that answers so. `allows`: whether its settings allow extended CONNECT.
    pub fn new(speaks: Speaks, allows: bool, says: Says) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address").to_string();
        let (open, arrived) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let open = open.clone();
                match speaks {
                    Speaks::H1 => drop(std::thread::spawn(move || by_h1(stream, says, &open))),
                    Speaks::H2 => background(async move { by_h2(stream, allows, says, open).await }),
                }
            }
        });
        Origin { addr, arrived }
    }

    /// As the file says it; `more`: further arguments, each behind a comma.
    pub fn node(&self, speaks: Speaks, more: &str) -> String {
        let protocol = if speaks == Speaks::H2 { ", protocol=\"h2\"" } else { "" };
        format!("server(\"origin\", addr=\"{}\"{protocol}{more})", self.addr)
    }

    /// The next that arrives.
    pub fn next(&self) -> End {
        self.arrived.recv_timeout(Duration::from_secs(10)).expect("an upgrade arrives")
    }
}

/// Runs a peer in a thread of its own.
fn background(work: impl Future<Output = ()> + Send + 'static) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(work);
    });
}

/// Reads up to the end of a head.
fn read_head(stream: &mut TcpStream) -> Option<Head> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(Head::parse(&String::from_utf8_lossy(&head)))
}

fn by_h1(mut stream: TcpStream, says: Says, open: &Sender<End>) {
    let Some(head) = read_head(&mut stream) else { return };
    let key = if says == Says::WrongProof { Some("another") } else { head.field("sec-websocket-key") };
    let accept = key.map(|key| format!("Sec-WebSocket-Accept: {}\r\n", proof(key))).unwrap_or_default();
    let answer = match says {
        Says::Yes | Says::WrongProof => format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: {}\r\nConnection: Upgrade\r\n{accept}Sec-WebSocket-Protocol: chat\r\n\r\n",
            head.field("upgrade").unwrap_or_default()
        ),
        Says::Status(status) => {
            format!("HTTP/1.1 {status} No\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody")
        }
        Says::Silence => String::new(),
    };
    if stream.write_all(answer.as_bytes()).is_ok() {
        let _ = open.send(End { head, stream });
    }
}

async fn by_h2(stream: TcpStream, allows: bool, says: Says, open: Sender<End>) {
    stream.set_nonblocking(true).expect("a socket");
    let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
    let mut builder = h2::server::Builder::new();
    if allows {
        builder.enable_connect_protocol();
    }
    let Ok(mut connection) = builder.handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (head, body) = request.into_parts();
        let protocol = head.extensions.get::<Protocol>().map(|protocol| format!("{} ", protocol.as_str()));
        let line = format!("{} {}{}", head.method, protocol.unwrap_or_default(), head.uri);
        let head = Head::by_h2(line, &head.headers);
        let stream = match agree(&mut respond, says) {
            Some(up) => bridge(up, body),
            // Kept, so that the stream is not reset.
            None => {
                let (near, far) = pair();
                tokio::spawn(async move { end_of(respond, body, far).await });
                near
            }
        };
        let _ = open.send(End { head, stream });
    }
}

/// Answers; `None`: there is no tunnel.
fn agree(respond: &mut SendResponse<Bytes>, says: Says) -> Option<SendStream<Bytes>> {
    match says {
        Says::Yes | Says::WrongProof => {
            let answer = Response::builder().header("sec-websocket-protocol", "chat").body(());
            respond.send_response(answer.expect("an answer"), false).ok()
        }
        Says::Status(status) => {
            let answer = Response::builder().status(status).body(()).expect("an answer");
            let mut up = respond.send_response(answer, false).expect("it may be sent");
            up.send_data(Bytes::from_static(b"body"), true).expect("it may be sent");
            None
        }
        Says::Silence => None,
    }
}

/// Ends a socket when its stream is reset.
async fn end_of(mut respond: SendResponse<Bytes>, _body: RecvStream, far: TcpStream) {
    let _ = std::future::poll_fn(|cx| respond.poll_reset(cx)).await;
    drop(far);
}

/// A client's upgrade to this protocol; returns when the head of its answer has come.
pub fn open(speaks: Speaks, addr: &str, protocol: &str) -> End {
    match speaks {
        Speaks::H1 => {
            let mut stream = TcpStream::connect(addr).expect("a connection");
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
            let ask = format!(
                "GET /chat?x HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nSec-WebSocket-Key: {KEY}\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
            );
            stream.write_all(ask.as_bytes()).expect("taken");
            End { head: read_head(&mut stream).expect("an answer"), stream }
        }
        Speaks::H2 => {
            let (head, headed) = channel();
            let (addr, protocol) = (addr.to_owned(), protocol.to_owned());
            background(async move {
                let mut client = Client::new(&addr).await;
                until_allowed(&client).await;
                let (answer, up) = client.begin(extended(&protocol), false).await;
                let Ok(answer) = answer.await else { return };
                let (parts, down) = answer.into_parts();
                let line = parts.status.as_u16().to_string();
                let _ = head.send(End { head: Head::by_h2(line, &parts.headers), stream: bridge(up, down) });
                let _ = client.ended.await;
            });
            headed.recv_timeout(Duration::from_secs(10)).expect("an answer")
        }
    }
}

/// Waits for the settings that allow it.
pub async fn until_allowed(client: &Client) {
    while !client.sender.is_extended_connect_protocol_enabled() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// An extended CONNECT.
pub fn extended(protocol: &str) -> Request<()> {
    let request = Request::connect("http://h/chat?x")
        .extension(Protocol::from(protocol))
        .header("sec-websocket-version", "13")
        .header("sec-websocket-protocol", "chat");
    request.body(()).expect("a request")
}

/// Two ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    near.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    (near, listener.accept().expect("a connection").0)
}

/// A socket that is this stream: an end of one is the end of the other, and so is a reset.
fn bridge(mut up: SendStream<Bytes>, mut down: RecvStream) -> TcpStream {
    let (near, far) = pair();
    let socket = far.try_clone().expect("a socket");
    far.set_nonblocking(true).expect("a socket");
    let far = tokio::net::TcpStream::from_std(far).expect("a socket");
    let (mut from, mut to) = far.into_split();
    let upward = tokio::spawn(async move {
        let mut piece = vec![0; 16 * 1024];
        loop {
            match from.read(&mut piece).await {
                Ok(0) => return drop(up.send_data(Bytes::new(), true)),
                Ok(n) if write(&mut up, Bytes::copy_from_slice(&piece[..n]), false).await.is_ok() => {}
                Ok(_) => return,
                Err(_) => return up.send_reset(Reason::CANCEL),
            }
        }
    });
    tokio::spawn(async move {
        while let Some(piece) = down.data().await {
            let Ok(piece) = piece else {
                SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("a socket");
                // Dropped, it would end the stream in order.
                to.forget();
                return upward.abort();
            };
            if to.write_all(&piece).await.is_err()
                || down.flow_control().release_capacity(piece.len()).is_err()
            {
                return;
            }
        }
        let _ = to.shutdown().await;
        let _ = upward.await;
    });
    near
}
