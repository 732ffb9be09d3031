//! Connections to a host, whose addresses are tried one after another.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};

/// The least time that each address has.
const LEAST_TIME: Duration = Duration::from_millis(500);

/// Connects to a host by one of its addresses, until this time. The caller bounds the look-up of its name.
///
/// # Errors
/// The last address', or the name has none.
pub(super) async fn dial(host: &str, port: u16, until: Instant) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = lookup_host((host, port)).await?.collect();
    dial_each(&addresses, until).await
}

/// Tries each of these addresses for its share of the time: one that does not answer leaves some to the others.
async fn dial_each(addresses: &[SocketAddr], until: Instant) -> io::Result<TcpStream> {
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let each = (until.saturating_duration_since(Instant::now()) / count).max(LEAST_TIME);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in addresses {
        let now = Instant::now();
        if now >= until {
            break;
        }
        match timeout_at(until.min(now + each), TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => last = e,
            Err(_) => {
                last = io::Error::new(io::ErrorKind::TimedOut, format!("{address} does not answer"));
            }
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::fake::BOUND;
    use std::net::TcpListener;
    use tokio::net::TcpSocket;
    use tokio::runtime::Builder;

    #[test]
    fn an_address_that_refuses_is_followed_by_the_next() {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let until = Instant::now() + BOUND;
            // A port that is taken, and at which nothing listens.
            let taken = TcpSocket::new_v4().expect("a socket");
            taken.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
            let refusing = taken.local_addr().expect("an address");
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let working = listener.local_addr().expect("an address");
            let stream = dial_each(&[refusing, refusing, working], until).await.expect("a connection");
            assert_eq!(stream.peer_addr().expect("an address"), working);
            let e = dial_each(&[refusing, refusing], until).await.expect_err("none listens");
            assert_eq!(e.kind(), io::ErrorKind::ConnectionRefused);
            let e = dial_each(&[], until).await.expect_err("no address");
            assert_eq!(e.kind(), io::ErrorKind::NotFound);
            let stream = dial("127.0.0.1", working.port(), until).await.expect("a connection");
            assert_eq!(stream.peer_addr().expect("an address"), working);
        });
    }
}
