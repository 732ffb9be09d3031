//! Starting and stopping: sockets are bound, threads begin, and a drain ends them.

use super::adopt::Generation;
use super::built_in;
use super::by_hand::SetTarget;
use super::certificates::Certificates;
use super::hand_over::Predecessor;
use super::handoff::Transits;
use super::listeners::{self, BoundListeners};
use super::load::LoopLoads;
use super::process::{Mail, Process};
use super::reload::{self, Config, NewTopology, Reloader, Source};
use super::scrape;
use super::threads::{self, Drain, Shared, all_ended};
use super::watchdog;
use crate::exchange::NodeId;
use crate::graph::blueprint::Blueprint;
use crate::graph::draws::Draws;
use crate::graph::state::ProcessState;
use crate::health::snapshot::Snapshot;
use crate::log::ErrorLog;
use crate::metrics::{Exposition, ProcessMetrics};
use crate::sync::buffered;
use crate::transport::bind::CannotListen;
use crate::transport::inherit::Inherited;
use crate::transport::own::InnerAddress;
use crate::transport::socket_file::SocketFiles;
use crate::upstream::connect::BuiltInServers;
use crate::upstream::names::{Audience, Following, Names};
use crate::verify_run::{RunRole, VerifyRun};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use weir_net::io::clock::Clock;
use weir_net::io::system::{ensure_descriptors, explain, remedy};
use weir_net::transport::tls::CannotUse;
use weir_plan::Point;
use weir_plan::diagnostic::Diagnostic;
use weir_plan::serving::Serving;
use weir_plan::sticky;
use weir_stats::Key;

/// How a topology is served.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Event loops, if the file has none; `None`: one per core.
    pub loops: Option<usize>,
    /// The name server, instead of the system's.
    pub nameserver: Option<SocketAddr>,
    /// Do not report targets that go up and down, or names, on standard error; only failed requests.
    pub quiet: bool,
    /// The run of a verification that this process serves.
    pub paired: Option<Arc<VerifyRun>>,
    /// The limit of buffered HTTP/2 bytes in this process; `None`: a part of the memory. The first value holds.
    pub buffered: Option<usize>,
    /// The hash of the plan that is served first.
    pub plan: String,
    /// The source of the file for reloads; `None`: there are none.
    pub source: Option<Arc<dyn Source>>,
    /// Inherited listening sockets.
    pub inherited: Option<Arc<Inherited>>,
}

/// A listener that accepts.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Its name.
    pub name: String,
    /// Its address: `127.0.0.1:8080`, `unix:/path`.
    pub addr: String,
    /// The number of listeners before it.
    pub level: u32,
}

/// Why a topology cannot be served.
#[derive(Debug)]
pub enum Error {
    /// An address is not available.
    Listen(CannotListen),
    /// An access log cannot be opened.
    Log(String, io::Error),
    /// The file of a cookie's key cannot be used.
    StickyKey(Vec<Diagnostic>),
    /// Certificates or keys cannot be used.
    Tls(Vec<CannotUse>),
    /// Everything is open, and no descriptor is left for clients.
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
            Error::Full(e) => write!(f, "no client could be accepted: {}", explain(e)),
            Error::System(e) => write!(f, "cannot start: {}", explain(e)),
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
    /// Where built-in servers listen that belong to another process.
    pub servers: Vec<(NodeId, SocketAddr)>,
    remote: Remote,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// Each loop sends here as it ends, and the built-in servers as they fail.
    ended: Receiver<Option<io::Error>>,
}

/// Control of a served topology, from any thread.
#[derive(Clone)]
pub struct Remote {
    loops: Arc<[UnboundedSender<Drain>]>,
    draining: Arc<AtomicBool>,
    process: Arc<Process>,
    reloader: Arc<Reloader>,
    files: Arc<SocketFiles>,
}

impl Remote {
    /// Drains: after the drain delay listeners close, and requests in progress have the drain timeout.
    pub fn drain(&self) {
        if !self.draining.swap(true, Ordering::Relaxed) {
            self.reloader.stop();
            for tell in self.loops.iter() {
                // A loop that has ended needs no message.
                let _ = tell.send(Drain);
            }
        }
    }

    /// Another process accepts in this one's place: it ends what is in progress here, accepts nothing more, does not
    /// wait for health checks of balancers in front, and leaves socket files to the other.
    pub(super) fn give_place(&self) {
        self.process.replaced.store(true, Ordering::Relaxed);
        self.files.forget();
        self.drain();
    }

    /// Whether it is draining.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// The health of targets, for a successor.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.reloader.snapshot()
    }

    /// Writes to the error log.
    pub fn say(&self, words: &str) {
        self.process.errors.urgent(|| words.to_owned());
    }

    /// Removes files that must not be left behind, before the process ends at once.
    pub fn abandon(&self) {
        self.files.remove(u32::MAX);
    }

    /// Whether all event loops, and the thread that owns health, answer within a second each.
    pub fn all_answer(&self) -> bool {
        self.process.ask_all(|_| ()).iter().all(Option::is_some)
    }

    /// All current metrics in this format. It waits at most a second for the loops; for one that does not answer it
    /// uses the last counts.
    /// said last.
    pub fn scrape(&self, format: Exposition) -> Vec<u8> {
        let (current, lost) = self.reloader.current();
        scrape::scrape(&self.process, &current, lost, format)
    }

    /// Reopens log files.
    pub fn reopen_logs(&self) {
        self.reloader.reopen_logs();
    }

    /// Requests a reload (`docs/spec/operating.md#reload`), which applies everything or nothing; the result goes to
    /// the error log.
    pub fn ask_reload(&self) {
        self.reloader.ask();
    }

    /// The same, and waits for the result: the changes in a sentence, or the error.
    pub fn reload(&self) -> Result<String, String> {
        self.reloader.reload()
    }

    /// Serves another topology from now on, instead of the file.
    pub fn serve_instead(&self, next: NewTopology) -> Result<String, String> {
        self.reloader.apply(next)
    }

    /// The configuration that is served, since when, and the result of the last reload.
    pub fn config(&self) -> Config {
        self.reloader.config()
    }

    /// Sets a target's state or weight by hand, until it is revoked (`docs/spec/operating.md#targets-by-hand`); with
    /// `for_ns` for that time.
    ///
    /// # Errors
    /// There is no such target: an error that lists the existing ones.
    pub fn set_target(&self, pool: &str, target: &str, by_hand: SetTarget) -> Result<(), String> {
        self.reloader.set_target(pool, target, by_hand)
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
    let BoundListeners { files, listening, confs, sockets, logs, mut inner, next, .. } =
        listeners::open(point, (nodes, &certificates), options, None)?;
    listeners::limit(&confs);
    let sticky_keys = sticky::keys(point).map_err(Error::StickyKey)?;
    let loops = sockets.len();
    let paired = options.paired.clone();
    let clock = paired.as_ref().map_or_else(Clock::start, |run| Clock::beginning(run.begins_ns));
    let seed = paired.as_ref().map_or_else(self::seed, |run| Ok(run.key.bits()))?;
    let key = paired.as_ref().map_or(Key::new(seed), |run| run.key);
    let draws = Draws::new(point, paired.as_ref().map_or(nodes, |run| std::slice::from_ref(&run.root)), key);
    let errors = Arc::new(ErrorLog::start(clock, options.quiet)?);
    if let Some(bytes) = options.buffered {
        buffered::set_limit(bytes);
    }
    // The loops, the owner, and, for process-wide state, the built-in servers too.
    let (mail, mailboxes): (Vec<_>, Vec<_>) = (0..=loops).map(|_| unbounded_channel()).unzip();
    let (notices, notified): (Vec<_>, Vec<_>) = (0..loops + 2).map(|_| unbounded_channel()).unzip();
    let mail = Mail(mail.into());
    let (built_in, handed) = unbounded_channel();
    let (built_in, listening_servers) = match paired.as_ref().map(|run| &run.role) {
        Some(RunRole::Routes { servers, listeners }) => {
            let reached = |(id, address): (&NodeId, &SocketAddr)| (*id, InnerAddress::Tcp(*address));
            inner.at.extend(listeners.iter().map(reached));
            (BuiltInServers::There(Arc::new(servers.clone())), Vec::new())
        }
        Some(RunRole::Serves(roots)) => {
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
    let following =
        Following { nameserver: options.nameserver, clock, draw, audience, errors: errors.clone() };
    let names = Arc::new(Names::default().update(point, serving, &following)?);
    let (to_built_in, built_in_mail) = unbounded_channel();
    let process = Arc::new(Process {
        clock,
        seed,
        token: paired.as_ref().map_or_else(self::seed, |run| Ok(run.secret))?,
        built_in,
        run: paired.clone(),
        errors,
        state,
        metrics: ProcessMetrics::default(),
        transits: Transits::new(loops),
        loads: LoopLoads::new(loops),
        serving: AtomicU32::new(loops as u32),
        ending: tokio::sync::watch::Sender::new(false),
        pulses: (0..=loops).map(|_| watchdog::Pulse::default()).collect(),
        drain_said: AtomicBool::new(false),
        drained: (0..MOST_LAYERS).map(|_| AtomicU32::new(0)).collect(),
        replaced: AtomicBool::new(false),
        to_built_in,
        mail,
    });
    if paired.is_some() {
        // A request of a run meets the loop that it meets in the simulation.
        process.transits.close();
    }
    watchdog::watch(clock, process.pulses.clone(), process.errors.clone())?;
    let (to_owner, owner_mail) = unbounded_channel();
    let first = Arc::new(Generation { blueprint, names, certificates, confs });
    let shared = Shared { process: process.clone(), first: first.clone(), to_owner };
    let inboxes = threads::Inboxes { mailboxes, notified, owner_mail, built_in_mail, arrivals };
    let (ended, loops, threads) = threads::start(&shared, sockets, inboxes, &files)?;
    let state = reload::State { current: first, logs, next };
    let reloader = Reloader::start(process.clone(), state, (key, following, files.clone()), options.clone())?;
    let remote = Remote { loops, draining: Arc::default(), process, reloader, files };
    Ok(Running { listening, servers, remote, threads, ended })
}

/// The most levels of listeners: more than any file has.
const MOST_LAYERS: usize = 64;

/// The purpose of draws for names.
const NAMES: u64 = 0x4e41_4d45;

fn seed() -> io::Result<u64> {
    getrandom::u64().map_err(|e| io::Error::other(e.to_string()))
}

impl Running {
    /// Restores a predecessor's knowledge of targets.
    pub fn heed(&self, predecessor: &Predecessor) {
        self.remote.reloader.heed(&predecessor.snapshot);
    }

    /// How it is reached from elsewhere.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Whether a client could be accepted, and a connection made for it: checked once everything else is open.
    pub fn check_room(&self) -> Result<(), Error> {
        ensure_descriptors(2).map_err(Error::Full)
    }

    /// Waits for the end: of a drain, or of a loop that has failed, which ends the others too.
    pub fn join(self) -> io::Result<()> {
        let result = self.ended.recv().ok().flatten().map_or(Ok(()), Err);
        self.remote.drain();
        let result = all_ended(self.threads, result);
        self.remote.process.ending.send_replace(true);
        self.remote.files.remove(u32::MAX);
        self.remote.reloader.finish_logs();
        self.remote.process.errors.finish();
        result
    }
}
