//! A client that blocks.

use super::transport::Link;
use std::io::{Read, Write};
use std::time::Duration;

/// A connection.
pub struct Conn {
    pub stream: Link,
    read: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    /// The first field of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The built-in server that answered.
    pub fn server(&self) -> &str {
        self.header("x-weir-server").unwrap_or("")
    }
}

impl Conn {
    /// To an address.
    pub fn new(addr: &str) -> Conn {
        let stream = Link::connect(addr);
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
        stream.tcp().set_nodelay(true).expect("a socket");
        Conn { stream, read: Vec::new() }
    }

    /// Writes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("it takes what is sent");
    }

    /// A GET with these lines of further fields.
    pub fn get(&mut self, path: &str, fields: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
        self.response()
    }

    /// The next response.
    pub fn response(&mut self) -> Response {
        self.try_response().expect("a response")
    }

    /// The next response, or `None` where the connection ends before its end.
    pub fn try_response(&mut self) -> Option<Response> {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            self.more()?;
        };
        let head = String::from_utf8_lossy(&self.read[..end]).into_owned();
        self.read.drain(..end);
        let mut lines = head.split("\r\n");
        let status: u16 = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines
            .filter_map(|l| l.split_once(':'))
            .map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned()))
            .collect();
        let mut response = Response { status, headers, body: String::new() };
        if status == 100 {
            return Some(response);
        }
        let body = if response.header("transfer-encoding").is_some() {
            self.chunks()?
        } else {
            let length: usize = response.header("content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
            self.take(length)?
        };
        response.body = String::from_utf8_lossy(&body).into_owned();
        Some(response)
    }

    /// This number of bytes.
    pub fn take(&mut self, n: usize) -> Option<Vec<u8>> {
        while self.read.len() < n {
            self.more()?;
        }
        Some(self.read.drain(..n).collect())
    }

    fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                if let Some(at) = self.read.windows(2).position(|w| w == b"\r\n") {
                    break at;
                }
                self.more()?;
            };
            let line = String::from_utf8_lossy(&self.read[..end]).into_owned();
            let size = usize::from_str_radix(&line, 16).ok()?;
            self.read.drain(..end + 2);
            body.extend(self.take(size)?);
            self.take(2)?;
            if size == 0 {
                return Some(body);
            }
        }
    }

    fn more(&mut self) -> Option<()> {
        let mut piece = [0; 64 * 1024];
        let n = self.stream.read(&mut piece).ok().filter(|n| *n > 0)?;
        self.read.extend_from_slice(&piece[..n]);
        Some(())
    }
}

/// A GET on a connection of its own.
pub fn get(addr: &str, path: &str) -> Response {
    Conn::new(addr).get(path, "")
}

/// The same with further fields, each ending in a line end.
pub fn get_with(addr: &str, path: &str, fields: &str) -> Response {
    Conn::new(addr).get(path, fields)
}

/// Any request on a connection of its own.
pub fn send(addr: &str, request: impl AsRef<[u8]>) -> Response {
    let mut conn = Conn::new(addr);
    conn.send(request);
    conn.response()
}
