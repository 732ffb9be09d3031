//! Sockets, connections and the end.

use crate::answer::answer;
use crate::fetch::Source;
use crate::options::Options;
use crate::state::State;
use crate::{agent, log, peers, probe};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{LocalSet, spawn_local};
use weir_net::io::system::words;
use weir_plan::address::Address;

/// Connections at once.
const CONNECTIONS: usize = 1_000;
/// The longest head of a check, bytes, and the time limit for it and for an agent's line.
const HEAD_BYTES: usize = 8 << 10;
const HEAD: Duration = Duration::from_secs(5);
/// How long a connection lives: one whose client reads nothing holds its place no longer.
const CONNECTION: Duration = Duration::from_secs(300);
/// How long to wait where the system has no descriptor left for a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Why there is no gate: a sentence with the remedy.
#[derive(Debug)]
pub enum CannotStart {
    /// This address, as written, cannot be listened at.
    Listen(String, io::Error),
    /// TLS cannot be used.
    Tls(String),
    /// The system refused something else.
    System(io::Error),
}

impl fmt::Display for CannotStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotStart::Listen(at, e) if e.kind() == io::ErrorKind::AddrInUse => {
                write!(f, "cannot listen at {at}: something listens there already; choose another port")
            }
            CannotStart::Listen(at, e) => write!(f, "cannot listen at {at}: {}", words(e)),
            CannotStart::Tls(why) => f.write_str(why),
            CannotStart::System(e) => write!(f, "the gate cannot start: {}", words(e)),
        }
    }
}

impl std::error::Error for CannotStart {}

/// A gate whose sockets are open, before anything is answered.
pub struct OpenGate {
    /// What listens where: `listening gate 127.0.0.1:8081`.
    pub listening: Vec<String>,
    runtime: Runtime,
    sockets: Vec<TcpListener>,
    agent: Option<TcpListener>,
    application: Source,
    requests: Option<Source>,
    options: Options,
    stops: watch::Sender<u32>,
}

/// Ends a gate from another thread.
#[derive(Clone)]
pub struct Stopper(watch::Sender<u32>);

impl Stopper {
    /// Turns all away for `linger`, then ends; called again, it ends at once.
    pub fn stop(&self) {
        self.0.send_modify(|stops| *stops = stops.saturating_add(1));
    }
}

/// Opens the sockets.
///
/// # Errors
/// The address that is not available, or what else the system refuses.
pub fn bind(options: Options) -> Result<OpenGate, CannotStart> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().max_blocking_threads(4).build();
    let runtime = runtime.map_err(CannotStart::System)?;
    let _in = runtime.enter();
    let source = |url, limit| Source::new(url, limit).map_err(|e| CannotStart::Tls(e.to_string()));
    let application = source(&options.url, options.timeout)?;
    let requests = options.work.as_ref().map(|work| source(&work.from, options.timeout)).transpose()?;
    let (mut sockets, mut listening) = (Vec::new(), Vec::new());
    let mut open = |name: &str, written: &str, address: &Address| {
        let socket = listen(address).map_err(|e| CannotStart::Listen(written.to_owned(), e))?;
        let at = socket.local_addr().map_err(CannotStart::System)?;
        listening.push(format!("listening {name} {at}"));
        Ok(socket)
    };
    for (written, address) in &options.listen {
        sockets.push(open("gate", written, address)?);
    }
    let agent =
        options.agent.as_ref().map(|(written, address)| open("agent", written, address)).transpose()?;
    drop(_in);
    Ok(OpenGate {
        listening,
        runtime,
        sockets,
        agent,
        application,
        requests,
        options,
        stops: watch::Sender::new(0),
    })
}

/// A socket at an address; a port alone is that of all addresses, of both families where there are two.
fn listen(address: &Address) -> io::Result<TcpListener> {
    let at = |ip: IpAddr, port| std::net::TcpListener::bind(SocketAddr::new(ip, port));
    let socket = match address {
        Address::Port(port) => at(Ipv6Addr::UNSPECIFIED.into(), *port).or_else(|e| match e.kind() {
            io::ErrorKind::AddrInUse => Err(e),
            _ => at(Ipv4Addr::UNSPECIFIED.into(), *port),
        })?,
        Address::Ip(at) => std::net::TcpListener::bind(at)?,
        Address::Name(host, port) => std::net::TcpListener::bind((&host[..], *port))?,
        Address::Unix(_) => {
            return Err(io::Error::other("a gate knows its askers by address; write HOST:PORT"));
        }
    };
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}

impl OpenGate {
    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stops.clone())
    }

    /// Answers until it is stopped.
    pub fn run(self) {
        let OpenGate { runtime, sockets, agent, application, requests, options, stops, .. } = self;
        let state = Rc::new(RefCell::new(State::new(&options)));
        if options.ramp.is_some() {
            log::tell(
                options.log,
                "a ramp for n balancers has n steps; --agent makes a slope of it for HAProxy",
            );
        }
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let local = LocalSet::new();
        local.spawn_local(probe::application(state.clone(), application, options.interval));
        if let (Some(work), Some(requests)) = (&options.work, requests) {
            let family = work.family.clone();
            local.spawn_local(probe::requests(state.clone(), requests, family, options.interval));
            if let Some(name) = &work.peers {
                local.spawn_local(peers::ask(state.clone(), name.clone(), options.timeout));
            }
        }
        for socket in sockets {
            let state = state.clone();
            local.spawn_local(accept(socket, room.clone(), move |socket, peer| {
                check(state.clone(), socket, peer)
            }));
        }
        if let Some(socket) = agent {
            let state = state.clone();
            local.spawn_local(accept(socket, room, move |socket, _| tell_agent(state.clone(), socket)));
        }
        local.block_on(&runtime, end(state, stops.subscribe(), options.linger));
        // A name that is being resolved is not waited for.
        runtime.shutdown_background();
    }
}

/// Waits for the end; until `linger` after it all are turned away.
async fn end(state: Rc<RefCell<State>>, mut stops: watch::Receiver<u32>, linger: Duration) {
    let _ = stops.wait_for(|stops| *stops > 0).await;
    state.borrow_mut().is_ending = true;
    let _ = tokio::time::timeout(linger, stops.wait_for(|stops| *stops > 1)).await;
}

/// Accepts for ever, as long as there is room.
async fn accept<F>(socket: TcpListener, room: Arc<Semaphore>, serve: impl Fn(TcpStream, SocketAddr) -> F)
where
    F: Future<Output = ()> + 'static,
{
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match socket.accept().await {
            Ok((socket, peer)) => drop(spawn_local(within(place, serve(socket, peer)))),
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// Serves a connection for as long as one may live.
async fn within(place: OwnedSemaphorePermit, serve: impl Future<Output = ()>) {
    let _ = tokio::time::timeout(CONNECTION, serve).await;
    drop(place);
}

async fn check(state: Rc<RefCell<State>>, socket: TcpStream, peer: SocketAddr) {
    let service = service_fn(move |request| {
        let answered = answer(&state, peer.ip(), &request);
        async move { Ok::<_, Infallible>(answered) }
    });
    let _ = socket.set_nodelay(true);
    // A client that goes away, or sends something else, has no answer.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

async fn tell_agent(state: Rc<RefCell<State>>, mut socket: TcpStream) {
    let line = agent::line(&mut state.borrow_mut());
    let told = async {
        socket.write_all(line.as_bytes()).await?;
        socket.shutdown().await
    };
    let _ = tokio::time::timeout(HEAD, told).await;
}
