//! Connects sockets to a server: under the limits of connections and of descriptors, with its PROXY header and TLS.

use super::Server;
use crate::exchange::abort::Abort;
use crate::exchange::failure::FailureCause;
use crate::exchange::{Exchange, Failure};
use crate::message::ConnectionHold;
use crate::metrics::OriginHandshake;
use crate::transport::proxy_protocol;
use crate::verify_run::{RunEvent, VerifyRun};
use std::any::Any;
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::io::system::is_exhausted;
use weir_net::io::timers::{Sleep, has_ended};
use weir_net::transport::socket::Socket;
use weir_policy::Kind;

/// How often other loops are asked to free a descriptor before a connection fails, and the time they have for it, ns.
const ASKS: u32 = 10;
const ASK_AGAIN_NS: u64 = 5_000_000;

/// A connected socket, and what it holds in this process.
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) held: ConnectionHold,
}

/// A connection of a run; dropping it reports its end.
struct RunConnection {
    run: Arc<VerifyRun>,
    core: Rc<Core>,
}

impl RunConnection {
    /// One that has just been opened, which took this long.
    fn opened(run: &Arc<VerifyRun>, core: &Rc<Core>, took_ns: u64) -> Box<dyn Any> {
        run.report(RunEvent::ConnectionOpened { at_ns: core.now(), took_ns });
        Box::new(RunConnection { run: run.clone(), core: core.clone() })
    }
}

impl Drop for RunConnection {
    fn drop(&mut self) {
        self.run.report(RunEvent::ConnectionClosed { at_ns: self.core.now() });
    }
}

impl Server {
    /// Connects a socket, with its place under the limit of connections.
    pub(super) async fn dial(
        &self,
        ex: &Exchange,
        limit: &mut Option<Sleep>,
        offers: &[&str],
    ) -> Result<Connection, Failure> {
        let core = &*ex.core;
        let begun_ns = core.now();
        let counted = match &self.most {
            Some(most) => {
                let waits = Cell::new(false);
                let ask = || {
                    if !waits.replace(true) {
                        self.room.note_demand();
                    }
                    self.room.close_idle(self.target.key);
                };
                let room = most.room(core, limit, ask).await;
                Some(room.ok_or(Failure::new(Kind::Overloaded).with_cause(FailureCause::NoRoom))?)
            }
            None => None,
        };
        match within(limit, self.open(ex)).await {
            Some(Ok(socket)) => {
                socket.extend_user_timeout(self.origin.body_timeout_ns, core.tcp.user_timeout_ns);
                let socket = self.secured(core, socket, offers).await?;
                // Not before: a connection that closes during the handshake would be registered for longer than it is
                // open.
                let own = self.own.as_ref().and_then(|own| own.made(&socket));
                let took_ns = core.now().saturating_sub(begun_ns);
                let open = Some(self.target.counts.opens(took_ns));
                let run = ex.listener().run.as_ref();
                let in_run = run.map(|run| RunConnection::opened(run, &ex.core, took_ns));
                Ok(Connection {
                    socket,
                    held: ConnectionHold { own, _counted: counted, open, _in_run: in_run },
                })
            }
            // This process has run out of a resource: the target is not at fault.
            Some(Err(e)) if is_exhausted(&e) => {
                let errno = e.raw_os_error().unwrap_or_default();
                Err(Failure::new(Kind::Overloaded).with_cause(FailureCause::Exhausted(errno)))
            }
            Some(Err(e)) => Err(Failure::new(Kind::ConnectFailed).with_cause(FailureCause::from_io(&e))),
            None => Err(self.too_late()),
        }
    }

    /// Runs TLS on a connection if the server uses it; it has a time limit of its own.
    async fn secured(&self, core: &Core, socket: Socket, offers: &[&str]) -> Result<Socket, Failure> {
        match &self.tls {
            Some(tls) => {
                let shaken = tls.handshake(core, socket, offers, self.origin.connect_timeout_ns).await;
                self.target.counts.handshakes.one(match &shaken {
                    Ok(socket) if socket.is_resumed() => OriginHandshake::Resumed,
                    Ok(_) => OriginHandshake::Full,
                    Err(_) => OriginHandshake::Failed,
                });
                shaken
            }
            None => Ok(socket),
        }
    }

    /// Opens a connection. If descriptors have run out, idle connections of targets are closed, the oldest first,
    /// before that is an error.
    async fn open(&self, ex: &Exchange) -> io::Result<Socket> {
        let core = &*ex.core;
        let mut asked = 0;
        loop {
            match self.connect_as(ex).await {
                Err(e) if is_exhausted(&e) && asked < ASKS => {
                    if !self.room.free_descriptor() {
                        asked += 1;
                        core.timers.after(ASK_AGAIN_NS).await;
                    }
                }
                made => return made,
            }
        }
    }

    /// Opens a connection; it begins with a PROXY header if the origin expects one.
    async fn connect_as(&self, ex: &Exchange) -> io::Result<Socket> {
        let mut socket = self.target.place.connect(&ex.core).await?;
        if let Some(version) = self.origin.send_proxy {
            let session = ex.client.session();
            let header = proxy_protocol::header(version, session.peer().zip(session.local()))?;
            proxy_protocol::send(&mut socket, &header).await?;
        }
        Ok(socket)
    }

    /// Opens a connection for a health check, to this port if it differs from the target's: on behalf of weir itself.
    pub async fn connect_to_check(
        &self,
        core: &Core,
        source: Option<IpAddr>,
        port: Option<u16>,
    ) -> io::Result<Socket> {
        let mut socket = self.target.place.connect_to(core, source, port).await?;
        if let Some(version) = self.origin.send_proxy {
            proxy_protocol::send(&mut socket, &proxy_protocol::header(version, None)?).await?;
        }
        Ok(socket)
    }

    /// The failure of a connection that was not made in time.
    pub(super) fn too_late(&self) -> Failure {
        Failure::new(Kind::ConnectFailed)
            .with_cause(FailureCause::ConnectLimit(self.origin.connect_timeout_ns))
    }
}

/// The result of `work`, or `None` after the time limit.
pub(super) async fn within<T>(limit: &mut Option<Sleep>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if has_ended(limit, cx) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Waits for a connection, or for the end of `drain_timeout` if the target is removed meanwhile.
pub(super) async fn or_target_removed<T>(
    core: &Core,
    abort: &Abort,
    connecting: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // Never due: ending the requests of a removed target wakes every task that waits for a deadline.
    let woken = core.deadlines.add();
    let mut connecting = std::pin::pin!(connecting);
    poll_fn(|cx| match connecting.as_mut().poll(cx) {
        Poll::Ready(made) => Poll::Ready(made),
        Poll::Pending if abort.is_set() || woken.ended(cx) => Poll::Ready(Err(Failure::aborted())),
        Poll::Pending => Poll::Pending,
    })
    .await
}
