//! Handing an accepted connection to another loop: the system spreads connections over sockets by a hash, which is lumpy where
//! they are few, and one loop may get all that stay long.
//!
//! A loop hands over what it accepts while it has more than a quarter and a few more connections of that listener than the
//! loop that has fewest. So with many connections nothing is moved, and with few the loops differ by a handful at most.

use crate::client;
use crate::event_loop::Loop;
use crate::limits::Counted;
use crate::mailbox::ToLoop;
use crate::socket::Socket;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

/// A connection on its way to another loop.
pub(crate) struct Guest {
    /// The number of its listener.
    listener: usize,
    stream: Stream,
    peer: Option<SocketAddr>,
    counted: Counted,
}

enum Stream {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

/// Hands a connection to another loop, for which it is counted already.
pub(crate) fn send(
    lp: &Loop,
    to: usize,
    listener: usize,
    socket: Socket,
    peer: Option<SocketAddr>,
    counted: Counted,
) -> io::Result<()> {
    let stream = match socket {
        Socket::Tcp(s) => Stream::Tcp(s.into_std()?),
        Socket::Unix(s) => Stream::Unix(s.into_std()?),
        Socket::Closed => return Ok(()),
    };
    lp.process.tell(to as u32, ToLoop::Client(Box::new(Guest { listener, stream, peer, counted })));
    Ok(())
}

impl Guest {
    /// Serves it here.
    pub fn welcome(self, lp: &Rc<Loop>) {
        let socket = match self.stream {
            Stream::Tcp(s) => tokio::net::TcpStream::from_std(s).map(Socket::Tcp),
            Stream::Unix(s) => tokio::net::UnixStream::from_std(s).map(Socket::Unix),
        };
        // Without a descriptor's registration it closes, as one does that cannot be accepted.
        if let (Ok(socket), Some(listener)) = (socket, lp.listener(self.listener)) {
            tokio::task::spawn_local(client::serve(lp.clone(), listener, socket, self.peer, self.counted));
        }
    }
}
