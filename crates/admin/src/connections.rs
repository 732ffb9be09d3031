//! Connections: each is a task of the one thread, under limits; [`crate::route`] answers its requests.

use crate::access::Channel;
use crate::limits::{ACCEPTS, HEAD, HEAD_BYTES, LAST_WORDS, PROBES, WAITING};
use crate::places::{Activity, Places, Use};
use crate::route;
use crate::server::Server;
use crate::stalls::Stalls;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{sleep, timeout};
use weir_serve::SideListener;

/// The pause after a connection that could not be accepted, for example without a descriptor.
const PAUSE: Duration = Duration::from_millis(100);

/// How often the end is waited for.
const LOOK: Duration = Duration::from_millis(10);

/// An accepted connection.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A listening socket.
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Socket {
    /// Within a runtime; `None`: it was taken before.
    pub fn from_listener(aside: &mut SideListener) -> io::Result<Option<Socket>> {
        match (aside.tcp.take(), aside.unix.take()) {
            (Some(socket), _) => TcpListener::from_std(socket).map(|socket| Some(Socket::Tcp(socket))),
            (None, Some(socket)) => UnixListener::from_std(socket).map(|socket| Some(Socket::Unix(socket))),
            (None, None) => Ok(None),
        }
    }
}

impl Server {
    /// Answers until the end.
    pub async fn run(self: Arc<Self>, sockets: Vec<(Socket, Channel, usize)>) {
        tokio::spawn(self.watcher.clone().run());
        let mut all = Vec::new();
        for (socket, via, most) in sockets {
            let places = Places::new(WAITING, most, PROBES);
            all.push(places.clone());
            tokio::spawn(self.clone().accept(socket, via, places));
        }
        // Its sender has gone, or signals the end.
        let _ = self.ends.clone().wait_for(|ends| *ends).await;
        let all_gone = async {
            while all.iter().any(|places| places.count() > 0) {
                sleep(LOOK).await;
            }
        };
        let _ = timeout(LAST_WORDS, all_gone).await;
    }

    async fn accept(self: Arc<Self>, socket: Socket, via: Channel, places: Arc<Places>) {
        let mut ends = self.ends.clone();
        let mut ended = pin!(ends.wait_for(|ends| *ends));
        let mut replaced = self.replaced.subscribe();
        let mut gone = pin!(replaced.wait_for(|replaced| *replaced));
        let mut accepts = 0;
        loop {
            let accepted = poll_fn(|cx| {
                if ended.as_mut().poll(cx).is_ready() || gone.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(None);
                }
                match &socket {
                    Socket::Tcp(socket) => {
                        socket.poll_accept(cx).map(|one| Some(one.map(|(stream, _)| Stream::Tcp(stream))))
                    }
                    Socket::Unix(socket) => {
                        socket.poll_accept(cx).map(|one| Some(one.map(|(stream, _)| Stream::Unix(stream))))
                    }
                }
            });
            match accepted.await {
                None => return,
                Some(Ok(stream)) => {
                    let place = places.take();
                    let activity = place.activity.clone();
                    match stream {
                        Stream::Tcp(stream) => {
                            places.spawn(place, self.clone().serve(stream, via, activity, places.clone()));
                        }
                        Stream::Unix(stream) => {
                            places.spawn(
                                place,
                                self.clone().serve_local(stream, via, activity, places.clone()),
                            );
                        }
                    }
                }
                Some(Err(_)) => sleep(PAUSE).await,
            }
            accepts += 1;
            if accepts % ACCEPTS == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// A local client: a request, or a process that wants to take over.
    async fn serve_local(
        self: Arc<Self>,
        stream: UnixStream,
        via: Channel,
        activity: Arc<Activity>,
        places: Arc<Places>,
    ) {
        if via != Channel::Control || !wants_place(&stream).await {
            return self.serve(stream, via, activity, places).await;
        }
        let Ok(stream) = stream.into_std() else { return };
        let own = std::mem::take(&mut *self.own.lock().unwrap_or_else(PoisonError::into_inner));
        let copies = own.iter().filter_map(|(addr, socket)| Some((addr.clone(), socket.try_clone().ok()?)));
        let (copies, server, served) = (copies.collect(), self.clone(), self.watcher.served());
        // It may take minutes, and is not one of the few concurrent questions.
        let asked = std::thread::Builder::new().name("weir-hand-over".to_owned()).spawn(move || {
            if served.hand_over(stream, copies) {
                server.asides.iter().for_each(SideListener::forget_file);
                server.replaced.send_replace(true);
            } else {
                *server.own.lock().unwrap_or_else(PoisonError::into_inner) = own;
            }
        });
        // Without a thread the other side gets no answer, and reports that.
        drop(asked);
    }

    async fn serve<S>(self: Arc<Self>, stream: S, via: Channel, activity: Arc<Activity>, places: Arc<Places>)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (server, asked) = (self.clone(), activity.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let server = server.clone();
            let is_probe = matches!(request.uri().path(), "/healthz" | "/ready");
            places.note_use(&asked, if is_probe { Use::Probes } else { Use::Asks });
            async move { Ok::<_, Infallible>(route::respond(&server, via, request).await) }
        });
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(HEAD_BYTES)
                .serve_connection(TokioIo::new(Stalls::new(stream, activity)), service)
        );
        let mut ends = self.ends.clone();
        let mut ended = pin!(ends.wait_for(|ends| *ends));
        let mut told = false;
        // A client that has broken off knows it.
        let _ = poll_fn(|cx| {
            if !told && ended.as_mut().poll(cx).is_ready() {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            connection.as_mut().poll(cx)
        })
        .await;
    }
}

/// Whether the first byte of a connection is that of a successor, with which no request begins.
async fn wants_place(stream: &UnixStream) -> bool {
    let first = async {
        let mut byte = [1];
        loop {
            stream.readable().await?;
            let peeked = stream.try_io(Interest::READABLE, || {
                Ok(rustix::net::recv(stream, &mut byte, rustix::net::RecvFlags::PEEK)?)
            });
            match peeked {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                peeked => return peeked.map(|_| byte[0]),
            }
        }
    };
    matches!(timeout(HEAD, first).await, Ok(Ok(0)))
}
