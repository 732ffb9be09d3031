//! A socket with what was read from it and not used up; the same for clients and origins, TCP and Unix.

use super::message::{self, Message};
use socket2::SockRef;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The longest wait for a byte: after that something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Why there is no message, or no whole one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The stream ended in order.
    End,
    /// It broke.
    Reset,
    /// Nothing came in time.
    Silence,
    /// It is not HTTP/1.1 as it should be.
    Malformed(String),
}

impl From<io::Error> for Fault {
    fn from(e: io::Error) -> Fault {
        match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Fault::Silence,
            _ => Fault::Reset,
        }
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The socket and its bytes.
pub(crate) struct Stream {
    socket: Socket,
    buffer: Vec<u8>,
    at: usize,
    /// All bytes that were read, if they are wanted.
    pub(crate) record: Option<Vec<u8>>,
}

impl Stream {
    pub(crate) fn tcp(socket: TcpStream) -> Stream {
        socket.set_nodelay(true).expect("a connected socket");
        Stream::new(Socket::Tcp(socket))
    }

    pub(crate) fn unix(socket: UnixStream) -> Stream {
        Stream::new(Socket::Unix(socket))
    }

    fn new(socket: Socket) -> Stream {
        let mut stream = Stream { socket, buffer: Vec::new(), at: 0, record: None };
        stream.patience(PATIENCE);
        stream
    }

    /// To an address as `weir serve` prints it.
    pub(crate) fn connect(addr: &str) -> io::Result<Stream> {
        match addr.strip_prefix("unix:") {
            Some(path) => UnixStream::connect(Path::new(path)).map(Stream::unix),
            None => TcpStream::connect(addr).map(Stream::tcp),
        }
    }

    /// How long a read or a write may take.
    pub(crate) fn patience(&mut self, time: Duration) {
        match &self.socket {
            Socket::Tcp(s) => s.set_read_timeout(Some(time)).and_then(|()| s.set_write_timeout(Some(time))),
            Socket::Unix(s) => s.set_read_timeout(Some(time)).and_then(|()| s.set_write_timeout(Some(time))),
        }
        .expect("timeouts can be set");
    }

    /// Both ends of the connection, and its options.
    pub(crate) fn options(&self) -> SockRef<'_> {
        match &self.socket {
            Socket::Tcp(s) => SockRef::from(s),
            Socket::Unix(s) => SockRef::from(s),
        }
    }

    /// The same socket once more, without what was read already.
    pub(crate) fn twin(&self) -> Stream {
        Stream::new(match &self.socket {
            Socket::Tcp(s) => Socket::Tcp(s.try_clone().expect("a descriptor")),
            Socket::Unix(s) => Socket::Unix(s.try_clone().expect("a descriptor")),
        })
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Fault> {
        match &mut self.socket {
            Socket::Tcp(s) => s.write_all(bytes.as_ref()),
            Socket::Unix(s) => s.write_all(bytes.as_ref()),
        }
        .map_err(Fault::from)
    }

    /// What is not used up yet, after one more read if that is nothing.
    pub(crate) fn some(&mut self) -> Result<&[u8], Fault> {
        if self.at == self.buffer.len() {
            self.fill()?;
        }
        Ok(&self.buffer[self.at..])
    }

    /// How much of what is recorded is used up.
    pub(crate) fn used(&self) -> usize {
        self.record.as_ref().map_or(0, Vec::len) - (self.buffer.len() - self.at)
    }

    fn fill(&mut self) -> Result<(), Fault> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        }
        let from = self.buffer.len();
        self.buffer.resize(from + 64 * 1024, 0);
        let read = match &mut self.socket {
            Socket::Tcp(s) => s.read(&mut self.buffer[from..]),
            Socket::Unix(s) => s.read(&mut self.buffer[from..]),
        };
        self.buffer.truncate(from + *read.as_ref().unwrap_or(&0));
        if let Some(record) = &mut self.record {
            record.extend_from_slice(&self.buffer[from..]);
        }
        match read? {
            0 => Err(Fault::End),
            _ => Ok(()),
        }
    }

    /// A line that ends in CRLF and holds neither CR nor LF otherwise.
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, Fault> {
        let mut looked = self.at;
        loop {
            if let Some(n) = self.buffer[looked..].iter().position(|b| *b == b'\n') {
                let line = self.buffer[self.at..looked + n].to_vec();
                self.at = looked + n + 1;
                return match line.split_last() {
                    Some((b'\r', line)) if !line.contains(&b'\r') => Ok(line.to_vec()),
                    _ => Err(Fault::Malformed(format!("the end of {:?}", String::from_utf8_lossy(&line)))),
                };
            }
            let unused = self.buffer.len() - self.at;
            if unused > 1 << 20 {
                return Err(Fault::Malformed("a line without end".to_owned()));
            }
            self.fill()?;
            looked = self.at + unused;
        }
    }

    /// The next `n` bytes, put behind `into` as far as they come.
    pub(crate) fn take(&mut self, mut n: u64, into: &mut Vec<u8>) -> Result<(), Fault> {
        while n > 0 {
            let some = self.some()?;
            let take = some.len().min(usize::try_from(n).unwrap_or(usize::MAX));
            into.extend_from_slice(&some[..take]);
            self.at += take;
            n -= take as u64;
        }
        Ok(())
    }

    /// Throws away `n` bytes, or all up to the end of the stream; how many there were, and why no more.
    pub(crate) fn skip(&mut self, n: u64) -> (u64, Option<Fault>) {
        let mut left = n;
        while left > 0 {
            let take = match self.some() {
                Ok(some) => some.len().min(usize::try_from(left).unwrap_or(usize::MAX)),
                Err(fault) => return (n - left, Some(fault)),
            };
            self.at += take;
            left -= take as u64;
        }
        (n, None)
    }

    /// How the stream ends, when nothing more should come.
    pub(crate) fn ending(&mut self) -> Fault {
        match self.some() {
            Ok(some) => Fault::Malformed(format!("{:?} came", String::from_utf8_lossy(some))),
            Err(fault) => fault,
        }
    }

    /// Whether the other side ends the connection within this time, in any way; what comes before is thrown away.
    pub(crate) fn ends_within(&mut self, time: Duration) -> bool {
        self.patience(time);
        let (_, why) = self.skip(u64::MAX);
        self.patience(PATIENCE);
        why != Some(Fault::Silence)
    }

    /// Nothing more is sent.
    pub(crate) fn half_close(&mut self) {
        let _ = match &self.socket {
            Socket::Tcp(s) => s.shutdown(Shutdown::Write),
            Socket::Unix(s) => s.shutdown(Shutdown::Write),
        };
    }

    /// Ends both ways at once, also for a read that another thread waits in.
    pub(crate) fn shut(&self) {
        let _ = match &self.socket {
            Socket::Tcp(s) => s.shutdown(Shutdown::Both),
            Socket::Unix(s) => s.shutdown(Shutdown::Both),
        };
    }

    /// Breaks the connection.
    pub(crate) fn reset(self) {
        let _ = self.options().set_linger(Some(Duration::ZERO));
    }

    pub(crate) fn request(&mut self) -> Result<Message, Fault> {
        message::request(self)
    }

    pub(crate) fn response(&mut self, method: &str) -> Result<Message, Fault> {
        message::response(self, method)
    }

    /// Sends a request and reads its answer.
    pub(crate) fn ask(&mut self, request: &str) -> Result<Message, Fault> {
        self.send(request)?;
        self.response(request.split(' ').next().unwrap_or_default())
    }

    /// Asks for a target by GET.
    pub(crate) fn get(&mut self, target: &str) -> Result<Message, Fault> {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"))
    }
}
