//! Starting and stopping: sockets are bound, threads begin, and a drain ends them.

use super::admission::Admission;
use super::built_in;
use super::certificates::Certificates;
use super::clients::{Clients, most_clients};
use super::handoff::Transits;
use super::load::LoopLoads;
use super::mailbox::ToLoop;
use super::process::{Mail, Process};
use super::threads::{self, Conf, Drain, Shared, all_ended};
use super::watchdog;
use crate::exchange::NodeId;
use crate::graph::blueprint::Blueprint;
use crate::graph::draws::Draws;
use crate::graph::identity::inside;
use crate::graph::state::ProcessState;
use crate::log::{AccessLog, ErrorLog};
use crate::transport::bind::{self, Bound, CannotListen};
use crate::transport::listener::Believed;
use crate::transport::listening::LoopSocket;
use crate::transport::own::{Inner, Reached, reached_at};
use crate::transport::paired::{Paired, Part};
use crate::transport::socket_file::SocketFiles;
use crate::upstream::connect::BuiltInServers;
use crate::upstream::names::{Audience, Names};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use weir_http1::Networks;
use weir_net::io::clock::Clock;
use weir_net::io::held;
use weir_net::io::system::{explained, has_room_for, remedy};
use weir_net::transport::tls::CannotUse;
use weir_stats::Key;
use weir_topology::diagnostic::Diagnostic;
use weir_topology::plan::{Http, Listen, Point, Spec, levels, with_inner};
use weir_topology::serving::Serving;
use weir_topology::sticky;

/// How a topology is served.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Event loops where the file does not say; `None`: one per core.
    pub loops: Option<usize>,
    /// The name server that is asked in place of the system's.
    pub nameserver: Option<SocketAddr>,
    /// Nothing is said on standard error of targets that go up and down, or of names; only why requests failed.
    pub quiet: bool,
    /// The run of a verification that this process serves.
    pub paired: Option<Arc<Paired>>,
    /// Bytes of HTTP/2 bodies that may wait in this process, all told; `None`: a part of the memory. What is said first counts.
    pub buffered: Option<usize>,
}

/// A listener that accepts.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Its name.
    pub name: String,
    /// Where: `127.0.0.1:8080`, `unix:/path`.
    pub addr: String,
}

/// Why nothing is served.
#[derive(Debug)]
pub enum Error {
    /// An address cannot be had.
    Listen(CannotListen),
    /// An access log cannot be opened.
    Log(String, io::Error),
    /// The file of a cookie's key cannot be used.
    StickyKey(Vec<Diagnostic>),
    /// Certificates or keys cannot be used.
    Tls(Vec<CannotUse>),
    /// All is open, and nothing is left for clients.
    Full(io::Error),
    /// The system refused something else.
    System(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Listen(e) => e.fmt(f),
            Error::Log(to, e) => {
                let remedy = remedy(e).unwrap_or("check its folder and permissions");
                write!(f, "cannot open the access log {to}: {e}; {remedy}")
            }
            Error::StickyKey(wrong) => {
                let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
                f.write_str(&wrong.join("\n\n"))
            }
            Error::Tls(wrong) => {
                let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
                f.write_str(&wrong.join("\n"))
            }
            Error::Full(e) => write!(f, "no client could be accepted: {}", explained(e)),
            Error::System(e) => write!(f, "cannot start: {}", explained(e)),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Error {
        Error::System(e)
    }
}

/// A served topology.
pub struct Running {
    /// Its listeners, in the order of the file; in a verification once for each of their loops.
    pub listening: Vec<Listening>,
    /// Where built-in servers listen that are a process of their own.
    pub servers: Vec<(NodeId, SocketAddr)>,
    remote: Remote,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// Told by each loop as it ends, and by the built-in servers as they fail.
    ended: Receiver<Option<io::Error>>,
}

/// What can be said to a served topology, from any thread.
#[derive(Clone)]
pub struct Remote {
    loops: Arc<[UnboundedSender<Drain>]>,
    logs: Vec<AccessLog>,
    certificates: Arc<Certificates>,
    draining: Arc<AtomicBool>,
    process: Arc<Process>,
    blueprint: Arc<Blueprint>,
    files: Arc<SocketFiles>,
}

impl Remote {
    /// Ends it: after the drain delay listeners close, and what is in progress has the drain timeout.
    pub fn drain(&self) {
        if !self.draining.swap(true, Ordering::Relaxed) {
            for tell in self.loops.iter() {
                // A loop that has ended needs no telling.
                let _ = tell.send(Drain);
            }
        }
    }

    /// Takes a balancer's target away: no new picks, what is in flight there goes on to its end (`serving.md` §2).
    pub fn remove_target(&self, lb: NodeId, target: u32) {
        let lb = self.blueprint.id(lb);
        self.process.tell(self.process.owner(), ToLoop::WantsRemoved { lb, target });
    }

    /// What is served, and by whom: for whoever looks.
    pub(crate) fn served(&self) -> (&Arc<Process>, &Arc<Blueprint>) {
        (&self.process, &self.blueprint)
    }

    /// Whether it was told to end.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// What must not be left behind is removed, since the process is to end at once.
    pub fn abandon(&self) {
        self.files.remove(u32::MAX);
    }

    /// Certificates and bundles are read again, for connections that begin from now on; what cannot be used is said, and
    /// stays as it was.
    pub fn reread_certificates(&self) {
        self.certificates.read_again(&self.process.errors);
    }

    /// Log files are opened anew.
    pub fn reopen_logs(&self) {
        self.logs.iter().for_each(AccessLog::reopen);
    }
}

/// The logs that are open, each once.
#[derive(Default)]
struct Logs(Vec<(String, AccessLog)>);

impl Logs {
    /// The log of a listener.
    fn of(&mut self, http: &Http) -> Result<Option<AccessLog>, Error> {
        let Some(to) = &http.access_log else { return Ok(None) };
        if let Some((_, log)) = self.0.iter().find(|(open, _)| open == to) {
            return Ok(Some(log.clone().with_format(http.log_format)));
        }
        let log = AccessLog::open(to, http.log_format).map_err(|e| Error::Log(to.clone(), e))?;
        self.0.push((to.clone(), log.clone()));
        Ok(Some(log))
    }
}

/// Binds everything, then starts the threads.
pub fn start(
    point: &Arc<Point>,
    serving: &Arc<Serving>,
    nodes: &[NodeId],
    options: &Options,
) -> Result<Running, Error> {
    let certificates = Arc::new(Certificates::read(point, nodes).map_err(Error::Tls)?);
    let Opened { files, listening, confs, sockets, logs, mut inner } =
        open(point, (nodes, &certificates), options)?;
    let sticky_keys = sticky::keys(point).map_err(Error::StickyKey)?;
    let loops = sockets.len();
    let layers = confs.iter().map(|conf| conf.level + 1).max().unwrap_or(1);
    let paired = options.paired.clone();
    let clock = paired.as_ref().map_or_else(Clock::start, |run| Clock::beginning(run.begins_ns));
    let seed = paired.as_ref().map_or_else(self::seed, |run| Ok(run.key.bits()))?;
    let key = paired.as_ref().map_or(Key::new(seed), |run| run.key);
    let draws = Draws::new(point, paired.as_ref().map_or(nodes, |run| std::slice::from_ref(&run.root)), key);
    let errors = Arc::new(ErrorLog::start(clock, options.quiet)?);
    if let Some(bytes) = options.buffered {
        held::limit_to(bytes);
    }
    // The loops, the owner, and for what is the process's the built-in servers too.
    let (mail, mailboxes): (Vec<_>, Vec<_>) = (0..=loops).map(|_| unbounded_channel()).unzip();
    let (notices, notified): (Vec<_>, Vec<_>) = (0..loops + 2).map(|_| unbounded_channel()).unzip();
    let mail = Mail(mail.into());
    let (built_in, handed) = unbounded_channel();
    let (built_in, listening_servers) = match paired.as_ref().map(|run| &run.part) {
        Some(Part::Routes { servers, listeners }) => {
            let reached = |(id, address): (&NodeId, &SocketAddr)| (*id, Reached::Tcp(*address));
            inner.at.extend(listeners.iter().map(reached));
            (BuiltInServers::There(Arc::new(servers.clone())), Vec::new())
        }
        Some(Part::Serves(roots)) => {
            (BuiltInServers::Here(built_in), built_in::bind(roots).map_err(Error::Listen)?)
        }
        None => (BuiltInServers::Here(built_in), Vec::new()),
    };
    let servers = listening_servers.iter().map(|(root, address, _)| (*root, *address)).collect();
    let arrivals = built_in::Arrivals {
        handed,
        listening: listening_servers.into_iter().map(|(root, _, socket)| (root, socket)).collect(),
    };
    let state = Arc::new(ProcessState::new(notices.into()));
    let plan = (point.clone(), serving.clone());
    let mut blueprint = Blueprint::new(0, plan, sticky_keys, &state, clock.now(), draws);
    blueprint.inner = inner;
    let blueprint = Arc::new(blueprint);
    let audience: Arc<dyn Audience> = Arc::new(mail.clone());
    let draw = Key::new(seed).with(NAMES);
    let names = Names::start(point, serving, options.nameserver, clock, draw, audience, &errors)?;
    let process = Arc::new(Process {
        clock,
        seed,
        token: paired.as_ref().map_or_else(self::seed, |run| Ok(run.secret))?,
        built_in,
        run: paired.clone(),
        errors,
        state,
        transits: Transits::new(loops),
        loads: LoopLoads::new(loops),
        serving: AtomicU32::new(loops as u32),
        ending: tokio::sync::watch::Sender::new(false),
        pulses: (0..=loops).map(|_| watchdog::Pulse::default()).collect(),
        drain_said: AtomicBool::new(false),
        drained: (0..layers).map(|_| AtomicU32::new(0)).collect(),
        mail,
    });
    if paired.is_some() {
        // A request of a run meets the loop that it meets in the simulation.
        process.transits.close();
    }
    watchdog::watch(clock, process.pulses.clone(), process.errors.clone())?;
    let (to_owner, owner_mail) = unbounded_channel();
    let shared = Shared {
        blueprint: blueprint.clone(),
        process: process.clone(),
        names: Arc::new(names),
        certificates: certificates.clone(),
        confs: Arc::new(confs),
        to_owner,
    };
    let inboxes = threads::Inboxes { mailboxes, notified, owner_mail, arrivals };
    let (ended, loops, threads) = threads::start(&shared, sockets, inboxes, &files)?;
    let logs = logs.0.into_iter().map(|(_, log)| log).collect();
    let draining = Arc::default();
    let remote = Remote { loops, logs, certificates, draining, process, blueprint, files };
    Ok(Running { listening, servers, remote, threads, ended })
}

/// What is open before anything runs.
struct Opened {
    /// First, as the fields are dropped in this order: removed again while the sockets are open, should anything fail.
    files: Arc<SocketFiles>,
    listening: Vec<Listening>,
    confs: Vec<Conf>,
    /// By loop: the listener's number and the socket.
    sockets: Vec<Vec<(usize, LoopSocket)>>,
    logs: Logs,
    /// Where those are reached that stand behind others.
    inner: Inner,
}

/// Binds the listeners and opens their logs. `default`: the loops of those that do not say.
fn open(
    point: &Point,
    (nodes, certificates): (&[NodeId], &Certificates),
    options: &Options,
) -> Result<Opened, Error> {
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
    let default = options.loops.unwrap_or_else(cores);
    let listens: Vec<(String, &Listen, NodeId)> = nodes.iter().filter_map(|id| listen(point, *id)).collect();
    let count = |l: &Listen| l.loops.map_or(default, |n| n as usize).max(1);
    let loops = listens.iter().map(|(_, l, _)| count(l)).max().unwrap_or(1);
    // Descriptors are the process's: listeners without a limit of their own share them.
    let common = Clients::new(most_clients(), None, 0);
    let mut opened = Opened {
        files: Arc::default(),
        listening: Vec::new(),
        confs: Vec::new(),
        sockets: (0..loops).map(|_| Vec::new()).collect(),
        logs: Logs::default(),
        inner: Inner::default(),
    };
    let levels = levels(point);
    for (number, (name, listen, node)) in listens.into_iter().enumerate() {
        let level = levels.get(&node).copied().unwrap_or(0);
        // In a verification ports are free ones, and each loop has one of its own, so that a request can meet the one that it meets in
        // the simulation.
        let at = if options.paired.is_some() { ANY_PORT } else { &listen.addr };
        let at_once = if options.paired.is_some() && level == 0 { 1 } else { count(listen) };
        let mut port = None;
        for first in (0..count(listen)).step_by(at_once) {
            let bound = bind::bind(at, at_once, (level, &opened.files)).map_err(Error::Listen)?;
            let addr = match &bound {
                Bound::Tcp(_, address) => address.to_string(),
                Bound::Unix(..) => listen.addr.clone(),
            };
            if let Bound::Tcp(_, address) = &bound {
                port = Some(address.port());
            }
            if level > 0 {
                opened.inner.at.insert(node, reached(&bound, &listen.addr));
            }
            for (at, socket) in (first..).zip(bound.sockets()) {
                opened.sockets[at].push((number, socket));
            }
            opened.listening.push(Listening { name: name.clone(), addr });
        }
        let own = listen.http.max_clients.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let per_address = listen.http.max_clients_per_address;
        opened.confs.push(Conf {
            name,
            tls: certificates.of(node),
            listen: listen.clone(),
            node,
            port,
            level,
            inner: None,
            admission: Admission {
                clients: Clients::new(own.unwrap_or(usize::MAX), per_address, count(listen)),
                common: own.is_none().then(|| common.clone()),
            },
            log: opened.logs.of(&listen.http)?,
        });
    }
    believe(point, &mut opened);
    Ok(opened)
}

/// Listeners behind others believe their own process, as far as those before them believe their peers.
fn believe(point: &Point, opened: &mut Opened) {
    let believes = opened.confs.iter().filter(|conf| !conf.listen.http.trusted.is_empty());
    let believes: Vec<_> =
        believes.map(|conf| (conf.listen.http.trusted.clone(), with_inner(point, &[conf.node]))).collect();
    for conf in opened.confs.iter_mut().filter(|conf| conf.level > 0) {
        let before = believes.iter().filter(|(_, behind)| behind.contains(&conf.node));
        let mut trusted: Vec<String> = before.flat_map(|(trusted, _)| trusted.iter().cloned()).collect();
        // What its own process is taken for.
        trusted.push("unix".to_owned());
        let trusted = Networks::parse(&trusted).unwrap_or_default();
        conf.inner = Some(Believed { own: opened.inner.own.clone(), trusted });
    }
}

fn reached(bound: &Bound, addr: &str) -> Reached {
    match bound {
        Bound::Tcp(_, address) => Reached::Tcp(reached_at(*address)),
        Bound::Unix(..) => Reached::Unix(addr.strip_prefix("unix:").unwrap_or(addr).into()),
    }
}

/// On loopback, whichever is free.
const ANY_PORT: &str = "127.0.0.1:0";

/// What is drawn by for names.
const NAMES: u64 = 0x4e41_4d45;

/// A listener of the plan: its name, its arguments, its node.
fn listen(point: &Point, id: NodeId) -> Option<(String, &Listen, NodeId)> {
    let node = &point.nodes[id as usize];
    match &point.specs[node.spec as usize] {
        Spec::Listen(listen) if inside(point, id) != id => {
            Some((node.name.clone().unwrap_or_default(), listen, id))
        }
        _ => None,
    }
}

fn seed() -> io::Result<u64> {
    getrandom::u64().map_err(|e| io::Error::other(e.to_string()))
}

impl Running {
    /// How it is spoken to from elsewhere.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Whether a client could be accepted, and a connection made for it: to be asked once all else is open.
    pub fn check_room(&self) -> Result<(), Error> {
        has_room_for(2).map_err(Error::Full)
    }

    /// Waits for the end: of a drain, or of a loop that has failed, which ends the others too.
    pub fn join(self) -> io::Result<()> {
        let result = self.ended.recv().ok().flatten().map_or(Ok(()), Err);
        self.remote.drain();
        let result = all_ended(self.threads, result);
        self.remote.process.ending.send_replace(true);
        self.remote.files.remove(u32::MAX);
        self.remote.logs.iter().for_each(AccessLog::finish);
        self.remote.process.errors.finish();
        result
    }
}
