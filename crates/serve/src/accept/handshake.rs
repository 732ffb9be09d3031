//! A client's TLS handshake, before anything else: it has the time of a head, and a client that speaks cleartext gets
//! an explanation.
//!
//! A handshake costs a thousand times as much as a request, up to some milliseconds with RSA keys. A loop does one
//! step of one handshake between two polls of its sockets, so that a storm of them delays others by no more than
//! that.

use crate::h1;
use crate::log::Client;
use crate::metrics::Handshake;
use crate::transport::session::Session;
use std::future::poll_fn;
use std::task::{Context, Poll};
use weir_net::io::Core;
use weir_net::transport::socket::Socket;
use weir_net::transport::tls;
use weir_net::transport::wire::Wire;
use weir_plan::fixed::{DRAIN_IDLE_NS, LINGER_SILENCE_NS};

/// The first byte of a TLS record with a part of a handshake in it.
const HANDSHAKE: u8 = 0x16;

/// Does the handshake if the listener requires one; `None`: the client is gone.
pub(crate) async fn perhaps(core: &Core, session: &Session, wire: Wire) -> Option<Wire> {
    let Some(tls) = &session.listener.tls else { return Some(wire) };
    let (plain, came) = wire.into_parts();
    // Boxed, so that the connection does not carry its memory to the end.
    let secured = Box::pin(secured(core, session, tls, plain, came)).await;
    session.listener.counts.handshakes.one(secured.as_ref().err().copied().unwrap_or(Handshake::Done));
    let secured = secured.ok()?;
    Some(Wire::new(secured, core.buffers.clone()))
}

/// Does the handshake on a socket from which some bytes were read already.
async fn secured(
    core: &Core,
    session: &Session,
    server: &tls::Server,
    mut plain: Socket,
    mut came: Vec<u8>,
) -> Result<Socket, Handshake> {
    session.deadline.set(session.listener.http.head_timeout_ns);
    let mut until_ns = Some(core.now().saturating_add(DRAIN_IDLE_NS));
    if came.is_empty() {
        let mut first = [0];
        let read = poll_fn(|cx| {
            // A drain does not wait for a silent client.
            if session.is_draining()
                && let Some(until_ns) = until_ns.take()
            {
                session.deadline.set(Some(until_ns.saturating_sub(core.now())));
            }
            in_time(cx, session, |cx| plain.poll_read(cx, &mut first))
        });
        match read.await {
            None => return Err(Handshake::Late),
            Some(Err(_) | Ok(0)) => return Err(Handshake::Gone),
            Some(Ok(_)) => {}
        }
        came.extend(first);
    }
    session.deadline.set(session.listener.http.head_timeout_ns);
    if came.first() != Some(&HANDSHAKE) {
        answer_in_cleartext(core, session, plain).await;
        return Err(Handshake::Cleartext);
    }
    let mut accepting = server.accept(plain, core.buffers.clone()).ok_or(Handshake::Failed)?;
    poll_fn(|cx| core.heavy.poll_turn(&core.runtime, cx)).await;
    accepting.stream.feed_first(&came);
    let shaken = poll_fn(|cx| in_time(cx, session, |cx| accepting.stream.poll_handshake(cx))).await;
    match shaken.ok_or(Handshake::Late)? {
        Ok(()) => {
            let (socket, agreed) = accepting.done();
            session.set_tls_parameters(agreed);
            Ok(socket)
        }
        Err(why) => {
            tell(session, why);
            end(session, accepting.stream.into_plain()).await;
            Err(match why {
                _ if why.is_of_certificate() => Handshake::Certificate,
                tls::TlsError::Broken => Handshake::Gone,
                tls::TlsError::Late => Handshake::Late,
                _ => Handshake::Failed,
            })
        }
    }
}

/// Its result, unless the time of a head is over.
fn in_time<T>(
    cx: &mut Context<'_>,
    session: &Session,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Poll<Option<T>> {
    match poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if session.deadline.ended(cx) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    }
}

/// Errors of clients' certificates are logged, for their issuers; the rest is the noise of any open port.
fn tell(session: &Session, why: tls::TlsError) {
    let Some(errors) = session.listener.errors.as_ref().filter(|_| why.is_of_certificate()) else { return };
    errors.request_failed(|| {
        let Client { listener: name, ip, .. } = session.client();
        let from = ip.map_or("a client".to_owned(), |ip| ip.to_canonical().to_string());
        format!("listener {name:?}: no TLS with {from}: {}", why.of_client())
    });
}

/// Answers a client that speaks HTTP where TLS is required.
async fn answer_in_cleartext(core: &Core, session: &Session, mut plain: Socket) {
    let text = "400 Bad Request: this port speaks HTTPS (TLS); write https:// in place of http://\n";
    let mut out = Vec::new();
    h1::render_alone(400, text, &core.date(), &mut out);
    session.deadline.set(Some(LINGER_SILENCE_NS));
    let mut sent = 0;
    poll_fn(|cx| {
        in_time(cx, session, |cx| {
            while sent < out.len() {
                match plain.poll_write(cx, &out[sent..]) {
                    Poll::Ready(Ok(n @ 1..)) => sent += n,
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(())
        })
    })
    .await;
    end(session, plain).await;
}

/// Ends a connection after its last bytes. Input is discarded for a while, so that a reset does not destroy them; the
/// client counts as connected for that time.
async fn end(session: &Session, mut plain: Socket) {
    session.deadline.set(Some(LINGER_SILENCE_NS));
    if poll_fn(|cx| plain.poll_shutdown(cx)).await.is_err() {
        return;
    }
    let mut thrown = [0; 1024];
    poll_fn(|cx| {
        in_time(cx, session, |cx| {
            while let Poll::Ready(read) = plain.poll_read(cx, &mut thrown) {
                if !matches!(read, Ok(1..)) {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
    })
    .await;
}
