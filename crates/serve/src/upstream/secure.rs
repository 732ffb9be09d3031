//! TLS to an origin: the handshake on a connection that was made.

use crate::exchange::Failure;
use crate::exchange::failure::FailureCause;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::io::timers::has_ended;
use weir_net::transport::socket::Socket;
use weir_net::transport::tls::{self, TlsTarget};
use weir_policy::Kind;

/// The TLS settings of a server.
pub(crate) struct Secure {
    client: Arc<tls::Client>,
    /// The host of its address, which its certificate must cover unless another name is set.
    host: Rc<str>,
    /// Its target, of which sessions are kept.
    target: TlsTarget,
}

impl Secure {
    /// TLS to the target with this number in this process.
    pub fn new(client: Arc<tls::Client>, host: Rc<str>, target: u32) -> Secure {
        Secure { target: client.target(target), client, host }
    }

    /// TLS to a listener of this process, which is not asked for a name.
    pub fn to_own(client: Arc<tls::Client>, target: u32) -> Secure {
        Secure::new(client, Rc::from(""), target)
    }

    /// Runs the handshake on a connection, within this time; `offers`: protocols, the best first (ALPN).
    pub async fn handshake(
        &self,
        core: &Core,
        plain: Socket,
        offers: &[&str],
        limit_ns: Option<u64>,
    ) -> Result<Socket, Failure> {
        let mut limit = limit_ns.map(|ns| core.timers.after(ns));
        let connecting = self.client.connect(core, plain, &self.host, offers, &self.target);
        let mut connecting = std::pin::pin!(connecting);
        let done = poll_fn(|cx| match connecting.as_mut().poll(cx) {
            Poll::Pending if has_ended(&mut limit, cx) => Poll::Ready(Err(tls::TlsError::Late)),
            polled => polled,
        });
        done.await.map_err(|why| Failure::new(Kind::ConnectFailed).with_cause(FailureCause::Tls(why)))
    }
}
