//! Messages of HTTP/1.1 as a test or its script writes them, for the transports that carry them by HTTP/2.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// What comes from one side.
pub struct Text<R> {
    from: R,
    read: BytesMut,
}

/// The first line and the fields, names in lower case.
#[derive(Debug)]
pub struct Head {
    pub first: String,
    pub fields: Vec<(String, String)>,
}

/// What is left of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    Length(u64),
    Chunked,
    /// It ends with its connection.
    Open,
}

/// The connection ended in the middle.
#[derive(Debug)]
pub struct Cut;

/// Fields of a connection: they do not cross over.
const OWN: [&str; 6] =
    ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

impl Head {
    /// The first field of that name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Fields that HTTP/2 has as well.
    pub fn common(&self) -> impl Iterator<Item = &(String, String)> {
        self.fields.iter().filter(|(name, _)| !OWN.contains(&name.as_str()))
    }

    /// How its body ends, where `none` says what it is without any word about it.
    pub fn body(&self, none: Body) -> Body {
        if self.field("transfer-encoding").is_some() {
            return Body::Chunked;
        }
        self.field("content-length").and_then(|v| v.parse().ok()).map_or(none, Body::Length)
    }

    /// Whether its connection ends behind it.
    pub fn closes(&self) -> bool {
        self.field("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"))
    }
}

impl<R: AsyncRead + Unpin> Text<R> {
    pub fn new(from: R) -> Text<R> {
        Text { from, read: BytesMut::new() }
    }

    /// The next head; `None`: the end comes first.
    pub async fn head(&mut self) -> Option<Head> {
        let end = self.find(b"\r\n\r\n").await.ok()?;
        let text = String::from_utf8_lossy(&self.read.split_to(end)).into_owned();
        let mut lines = text.trim_end().split("\r\n");
        let first = lines.next()?.to_owned();
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned())).collect();
        Some(Head { first, fields })
    }

    /// The next piece of a body; `None` at its end.
    pub async fn piece(&mut self, body: &mut Body) -> Result<Option<Bytes>, Cut> {
        match body {
            Body::Length(0) => Ok(None),
            Body::Length(left) => {
                self.some().await?;
                let n = self.read.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= n as u64;
                Ok(Some(self.read.split_to(n).freeze()))
            }
            Body::Chunked => {
                let chunk = self.chunk().await?;
                if chunk.is_none() {
                    *body = Body::Length(0);
                }
                Ok(chunk)
            }
            Body::Open if self.some().await.is_err() => Ok(None),
            Body::Open => Ok(Some(self.read.split().freeze())),
        }
    }

    /// Keeps what comes until the end of the stream.
    pub async fn until_the_end(&mut self) {
        while self.more().await.is_ok() {}
    }

    /// A whole chunk: those of tests are small. Trailers are left out.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Cut> {
        let end = self.find(b"\r\n").await?;
        let line = String::from_utf8_lossy(&self.read[..end - 2]).into_owned();
        let size = usize::from_str_radix(line.trim(), 16).map_err(|_| Cut)?;
        if size == 0 {
            let end = self.find(b"\r\n\r\n").await?;
            drop(self.read.split_to(end));
            return Ok(None);
        }
        while self.read.len() < end + size + 2 {
            self.more().await?;
        }
        let mut whole = self.read.split_to(end + size + 2).freeze();
        Ok(Some(whole.split_off(end).split_to(size)))
    }

    /// Where this ends, read so far that it is there.
    async fn find(&mut self, what: &[u8]) -> Result<usize, Cut> {
        loop {
            if let Some(at) = self.read.windows(what.len()).position(|w| w == what) {
                return Ok(at + what.len());
            }
            self.more().await?;
        }
    }

    async fn some(&mut self) -> Result<(), Cut> {
        if self.read.is_empty() { self.more().await } else { Ok(()) }
    }

    async fn more(&mut self) -> Result<(), Cut> {
        self.read.reserve(16 * 1024);
        match self.from.read_buf(&mut self.read).await {
            Ok(n) if n > 0 => Ok(()),
            _ => Err(Cut),
        }
    }
}
