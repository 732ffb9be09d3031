//! A TLS connection over sockets that take few bytes at a time.

use super::*;
use crate::io::runtime::{Runtime, yield_now};
use crate::transport::socket::Raw;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::future::poll_fn;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Both ends' configurations, of a certificate for `a.test`.
fn configs() -> (Arc<ClientConfig>, Arc<ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a certificate");
    let provider = super::super::provider;
    let client = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let client = client.expect("versions").with_root_certificates(roots).with_no_client_auth();
    let server = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let server = server.expect("versions").with_no_client_auth();
    let server = server.with_single_cert(vec![made.cert.der().clone()], key).expect("a pair");
    (Arc::new(client), Arc::new(server))
}

/// Both ends of a connection whose system buffers are as small as they can be.
fn pair(rt: &Runtime) -> (Stream, Stream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    for end in [&ours, &theirs] {
        end.set_nonblocking(true).expect("it does not block");
        socket2::SockRef::from(end).set_send_buffer_size(1).expect("a size");
    }
    let buffers = Rc::<Buffers>::default();
    let (client, server) = configs();
    let name = ServerName::try_from("a.test").expect("a name");
    let watch = |end: UnixStream| Raw::Unix(end).watch(rt).expect("it is watched");
    let client = ClientConnection::new(client, name).expect("a client");
    let server = ServerConnection::new(server).expect("a server");
    (Stream::new(watch(ours), client, buffers.clone()), Stream::new(watch(theirs), server, buffers))
}

fn run<F: Future>(main: impl FnOnce(Runtime) -> F) -> F::Output {
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(main(runtime.clone())).expect("it runs")
}

/// Both handshakes, in turns.
async fn shake_hands(a: &mut Stream, b: &mut Stream) {
    let (mut a_done, mut b_done) = (false, false);
    poll_fn(|cx| {
        a_done = a_done || a.poll_handshake(cx).map(|done| done.expect("a handshake")).is_ready();
        b_done = b_done || b.poll_handshake(cx).map(|done| done.expect("a handshake")).is_ready();
        if a_done && b_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn content(length: usize) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// However few bytes are taken and read at a time, all arrive once and in order, and what is held is never more than
/// was written, falls as the system takes it, and is nothing at the end.
#[test]
fn few_bytes_at_a_time_arrive_whole() {
    for (step, room) in [(1, 3000), (7, 1), (1000, 777), (200_000, 40_000), (200_000, 1)] {
        let whole = content(if step == 1 { 700 } else { 300_000 });
        let (read, ended) = run(|rt| async move {
            let (mut a, mut b) = pair(&rt);
            shake_hands(&mut a, &mut b).await;
            let (mut written, mut shut, mut read) = (0, false, Vec::new());
            let mut space = vec![0; room];
            let ended = poll_fn(|cx| {
                while written < whole.len() {
                    let to = whole.len().min(written + step);
                    match a.poll_write(cx, &whole[written..to]) {
                        Poll::Ready(n) => {
                            let n = n.expect("it is taken");
                            assert!(n > 0 && a.held() <= n, "{n} {}", a.held());
                            written += n;
                        }
                        Poll::Pending => break,
                    }
                }
                if written == whole.len() && !shut {
                    shut = a.poll_shutdown(cx).map(|done| done.expect("it ends")).is_ready();
                    assert!(!shut || a.held() == 0);
                }
                match b.poll_read(cx, &mut space) {
                    Poll::Ready(Ok(0)) => Poll::Ready(true),
                    Poll::Ready(Ok(n)) => {
                        read.extend_from_slice(&space[..n]);
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                    Poll::Ready(Err(_)) => Poll::Ready(false),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await;
            (read, ended)
        });
        assert!(ended, "by close_notify");
        assert!(read == content(read.len()) && (read.len() == 300_000 || step == 1 && read.len() == 700));
    }
}

/// Untaken bytes stay inside, and count as not sent.
#[test]
fn what_the_system_does_not_take_is_held() {
    run(|rt| async move {
        let (mut a, mut b) = pair(&rt);
        shake_hands(&mut a, &mut b).await;
        let whole = content(BATCH);
        let n = poll_fn(|cx| a.poll_write(cx, &whole)).await.expect("it is taken");
        assert!(a.held() > BATCH / 2 && a.held() <= n, "{} of {n}", a.held());
        let again = poll_fn(|cx| Poll::Ready(a.poll_write(cx, &whole).is_pending())).await;
        assert!(again, "nothing more is taken before that has left");
    });
}

/// Waiting plaintext is input, though the socket is silent; a ticket is not, though the socket is not silent.
#[test]
fn what_waits_inside_is_input_and_tickets_are_none() {
    run(|rt| async move {
        let (mut a, mut b) = pair(&rt);
        shake_hands(&mut a, &mut b).await;
        // The server's tickets.
        assert!(!a.has_input(), "nothing that anybody reads");
        poll_fn(|cx| b.poll_write(cx, b"hello")).await.expect("it is taken");
        while !a.has_input() {
            yield_now().await;
        }
        let mut two = [0; 2];
        for part in [&b"he"[..], b"ll"] {
            let n = poll_fn(|cx| a.poll_read(cx, &mut two)).await.expect("it is there");
            assert_eq!(&two[..n], part);
            assert!(a.has_input() && !a.is_hung_up());
            assert!(poll_fn(|cx| Poll::Ready(a.poll_readable(cx).is_ready())).await);
        }
        assert!(!a.plain.has_input(), "the socket itself has nothing left");
        let n = poll_fn(|cx| a.poll_read(cx, &mut two)).await.expect("it is there");
        assert_eq!(&two[..n], b"o");
        assert!(!a.has_input());
    });
}

/// An end without close_notify may be an attacker's: it is an error, and nothing that was read before is lost.
#[test]
fn an_end_without_close_notify_is_an_error() {
    run(|rt| async move {
        let (mut a, mut b) = pair(&rt);
        shake_hands(&mut a, &mut b).await;
        poll_fn(|cx| b.poll_write(cx, b"hello")).await.expect("it is taken");
        drop(b);
        let mut space = [0; 64];
        let n = poll_fn(|cx| a.poll_read(cx, &mut space)).await.expect("it is there");
        assert_eq!(&space[..n], b"hello");
        for _ in 0..2 {
            let end = poll_fn(|cx| a.poll_read(cx, &mut space)).await;
            assert_eq!(end.map_err(|e| e.kind()), Err(io::ErrorKind::UnexpectedEof));
        }
        assert!(a.is_hung_up() && a.has_input());
    });
}
