//! Starting and stopping: sockets are bound, threads begin, and a drain ends them.

use crate::control::accept::{self, Share};
use crate::control::built_in::{self, Arrivals, BuiltIn};
use crate::control::clients::{Clients, explained, has_room_for, remedy};
use crate::control::event_loop::Loop;
use crate::control::handoff::Guests;
use crate::control::mailbox::{self, OWNER, ToLoop};
use crate::control::process::Process;
use crate::graph::builder::Builder;
use crate::health::monitor::{Keeper, Kept};
use crate::io::clock::Clock;
use crate::io::runtime::{Joined, Runtime};
use crate::log::Log;
use crate::log::error_log::Words;
use crate::nodes::NodeId;
use crate::transport::bind::{self, Bound, CannotListen};
use crate::transport::listener::Listener;
use crate::transport::socket_file::SocketFiles;
use crate::upstream::limit::Limit;
use crate::upstream::names::Names;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use weir_http1::{Limits, Networks};
use weir_stats::Key;
use weir_topology::plan::{Http, Listen, Paths, Point, Spec, To};
use weir_topology::serving::Serving;

/// How a topology is served.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Event loops where the file does not say; `None`: one per core.
    pub loops: Option<usize>,
    /// The name server that is asked in place of the system's.
    pub nameserver: Option<SocketAddr>,
    /// Nothing is said on standard error of targets that go up and down, or of names; only why requests failed.
    pub quiet: bool,
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
    /// Its listeners, in the order of the file.
    pub listening: Vec<Listening>,
    remote: Remote,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// Told by each loop as it ends, and by the built-in servers as they fail.
    ended: Receiver<Option<io::Error>>,
}

/// What can be said to a served topology, from any thread.
#[derive(Clone)]
pub struct Remote {
    loops: Arc<Vec<UnboundedSender<Message>>>,
    logs: Vec<Log>,
    draining: Arc<AtomicBool>,
    process: Arc<Process>,
    files: Arc<SocketFiles>,
}

impl Remote {
    /// Ends it: after the drain delay listeners close, and what is in progress has the drain timeout.
    pub fn drain(&self) {
        if !self.draining.swap(true, Ordering::Relaxed) {
            for tell in self.loops.iter() {
                // A loop that has ended needs no telling.
                let _ = tell.send(Message::Drain);
            }
        }
    }

    /// Takes a balancer's target away: no new picks, what is in flight there goes on to its end (`serving.md` §2).
    pub fn remove_target(&self, lb: NodeId, target: u32) {
        for number in 0..self.process.loops() {
            self.process.tell(number, ToLoop::Remove { lb, target });
        }
    }

    /// What must not be left behind is removed, since the process is to end at once.
    pub fn abandon(&self) {
        self.files.remove();
    }

    /// Log files are opened anew.
    pub fn reopen_logs(&self) {
        self.logs.iter().for_each(Log::reopen);
    }
}

/// The logs that are open, each once.
#[derive(Default)]
struct Logs(Vec<(String, Log)>);

impl Logs {
    /// The log of a listener.
    fn of(&mut self, http: &Http) -> Result<Option<Log>, Error> {
        let Some(to) = &http.access_log else { return Ok(None) };
        if let Some((_, log)) = self.0.iter().find(|(open, _)| open == to) {
            return Ok(Some(log.clone().with_format(http.log_format)));
        }
        let log = Log::open(to, http.log_format).map_err(|e| Error::Log(to.clone(), e))?;
        self.0.push((to.clone(), log.clone()));
        Ok(Some(log))
    }
}

/// What a loop is told.
enum Message {
    /// Begin nothing new, end what is in progress.
    Drain,
}

/// What a loop is given to begin with.
struct Doors {
    shares: Vec<(usize, Share)>,
    messages: UnboundedReceiver<Message>,
    mailbox: UnboundedReceiver<ToLoop>,
    files: Arc<SocketFiles>,
    /// Told once it accepts.
    begun: Sender<()>,
}

/// Binds everything, then starts the threads.
pub fn start(
    point: &Arc<Point>,
    serving: &Arc<Serving>,
    nodes: &[NodeId],
    options: &Options,
) -> Result<Running, Error> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let Opened { files, listening, confs, shares, logs } =
        open(point, nodes, options.loops.unwrap_or(cores))?;
    let (built_in, arrivals) = BuiltIn::new();
    let (process, mailboxes) = process(point, serving, options, shares.len(), built_in)?;
    let confs = Arc::new(confs);
    let shared = Shared { point: point.clone(), serving: serving.clone(), process: process.clone(), confs };
    let (end, ended) = start_built_in(&shared, arrivals)?;
    let (loops, threads) = start_loops(&shared, shares, mailboxes, &files, &end)?;
    let logs = logs.0.into_iter().map(|(_, log)| log).collect();
    let remote = Remote { loops: Arc::new(loops), logs, draining: Arc::default(), process, files };
    Ok(Running { listening, remote, threads, ended })
}

/// What is open before anything runs.
struct Opened {
    /// First, as the fields are dropped in this order: removed again while the sockets are open, should anything fail.
    files: Arc<SocketFiles>,
    listening: Vec<Listening>,
    confs: Vec<Conf>,
    /// By loop: the listener's place and the loop's socket.
    shares: Vec<Vec<(usize, Share)>>,
    logs: Logs,
}

/// Binds the listeners and opens their logs. `default`: the loops of those that do not say.
fn open(point: &Point, nodes: &[NodeId], default: usize) -> Result<Opened, Error> {
    let listens: Vec<(String, &Listen, NodeId)> = nodes.iter().filter_map(|id| listen(point, *id)).collect();
    let count = |l: &Listen| l.loops.map_or(default, |n| n as usize).max(1);
    let loops = listens.iter().map(|(_, l, _)| count(l)).max().unwrap_or(1);
    // Descriptors are the process's: listeners without a limit of their own share them.
    let common = Clients::new(crate::control::clients::most_clients(), None, 0);
    let mut opened = Opened {
        files: Arc::default(),
        listening: Vec::new(),
        confs: Vec::new(),
        shares: (0..loops).map(|_| Vec::new()).collect(),
        logs: Logs::default(),
    };
    for (number, (name, listen, node)) in listens.into_iter().enumerate() {
        let bound = bind::bind(&listen.addr, count(listen), &opened.files).map_err(Error::Listen)?;
        let (addr, port) = match &bound {
            Bound::Tcp(_, address) => (address.to_string(), Some(address.port())),
            Bound::Unix(..) => (listen.addr.clone(), None),
        };
        for (at, share) in bound.shares().into_iter().enumerate() {
            opened.shares[at].push((number, share));
        }
        opened.listening.push(Listening { name: name.clone(), addr });
        let own = listen.http.max_clients.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let per_address = listen.http.max_clients_per_address;
        opened.confs.push(Conf {
            name,
            listen: listen.clone(),
            node,
            port,
            clients: Clients::new(own.unwrap_or(usize::MAX), per_address, count(listen)),
            common: own.is_none().then(|| common.clone()),
            log: opened.logs.of(&listen.http)?,
        });
    }
    Ok(opened)
}

/// What belongs to the process, and what the loops read of it.
fn process(
    point: &Arc<Point>,
    serving: &Serving,
    options: &Options,
    loops: usize,
    built_in: BuiltIn,
) -> Result<(Arc<Process>, Vec<UnboundedReceiver<ToLoop>>), Error> {
    let (clock, seed) = (Clock::new(), seed()?);
    let (mail, mailboxes): (Vec<_>, Vec<_>) = (0..loops).map(|_| unbounded_channel()).unzip();
    let words = Arc::new(Words::start(clock, options.quiet)?);
    let draw = Key::new(seed).with(NAMES);
    let process = Process {
        clock,
        seed,
        secret: [self::seed()?, self::seed()?],
        built_in,
        names: Names::start(point, serving, options.nameserver, clock, draw, mail.clone(), &words)?,
        words,
        connections: Limit::of(point, serving),
        shared: crate::graph::state::Shared::new(point, loops, clock.now(), Key::new(seed).with(STATE)),
        lbs: Process::lbs(point),
        guests: Guests::new(loops),
        serving: AtomicU32::new(loops as u32),
        mail,
    };
    Ok((Arc::new(process), mailboxes))
}

/// Where threads tell how they ended, and where that is heard.
type Ending = (Sender<Option<io::Error>>, Receiver<Option<io::Error>>);

/// Starts the thread of the built-in servers, and waits until it has begun.
fn start_built_in(shared: &Shared, arrivals: Arrivals) -> io::Result<Ending> {
    let (end, ended) = channel();
    let (inside, broken) = (shared.clone(), end.clone());
    let (begin, begun) = channel();
    std::thread::Builder::new().name("weir-servers".to_owned()).spawn(move || {
        let result = on_runtime(|runtime| async move {
            let (lp, kept) = inside.event_loop(runtime, u32::MAX, true)?;
            lp.keep(Keeper::new(kept));
            let _ = begin.send(());
            lp.run(async {
                built_in::run(lp.clone(), arrivals).await;
                Ok(())
            })
            .await
        });
        // Before it has begun the starting thread hears of it, later whoever waits for the end.
        let _ = broken.send(result.err());
    })?;
    if begun.recv().is_ok() {
        return Ok((end, ended));
    }
    // Else nobody could say why, where the thread has panicked.
    drop(end);
    let why = ended.recv().ok().flatten();
    Err(why.unwrap_or_else(|| io::Error::other("the built-in servers have ended")))
}

/// How loops are told, and their threads.
type Loops = (Vec<UnboundedSender<Message>>, Vec<JoinHandle<io::Result<()>>>);

/// Starts the loops, and waits until all accept: one that cannot ends the others.
fn start_loops(
    shared: &Shared,
    shares: Vec<Vec<(usize, Share)>>,
    mailboxes: Vec<UnboundedReceiver<ToLoop>>,
    files: &Arc<SocketFiles>,
    end: &Sender<Option<io::Error>>,
) -> io::Result<Loops> {
    let (mut tells, mut threads) = (Vec::new(), Vec::new());
    let (begin, begun) = channel();
    let mut result = Ok(());
    for ((number, shares), mailbox) in shares.into_iter().enumerate().zip(mailboxes) {
        let (tell, messages) = unbounded_channel();
        let shared = shared.clone();
        let doors = Doors { shares, messages, mailbox, files: files.clone(), begun: begin.clone() };
        let end = Ends(end.clone(), shared.process.clone());
        let thread = std::thread::Builder::new().name(format!("weir-loop-{number}")).spawn(move || {
            let _end = end;
            on_runtime(|runtime| shared.serve(runtime, number as u32, doors))
        });
        match thread {
            Ok(thread) => threads.push(thread),
            Err(e) => result = result.and(Err(e)),
        }
        tells.push(tell);
    }
    drop(begin);
    if begun.iter().count() == tells.len() {
        return Ok((tells, threads));
    }
    // Those that have begun end when nobody can tell them anything any more.
    drop(tells);
    Err(all_ended(threads, result).err().unwrap_or_else(|| io::Error::other("an event loop has ended")))
}

/// Waits for threads to end; the first error.
fn all_ended(threads: Vec<JoinHandle<io::Result<()>>>, before: io::Result<()>) -> io::Result<()> {
    threads.into_iter().fold(before, |result, thread| {
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("an event loop has panicked")));
        result.and(ended)
    })
}

/// What the process's state draws by, beside the seed.
const STATE: u64 = 0x53_5441_5445;

/// What is drawn by for names.
const NAMES: u64 = 0x4e41_4d45;

/// Tells that a thread has ended, however.
struct Ends(Sender<Option<io::Error>>, Arc<Process>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.1.guests.close();
        self.1.serving.fetch_sub(1, Ordering::Relaxed);
        let _ = self.0.send(None);
    }
}

fn listen(point: &Point, id: NodeId) -> Option<(String, &Listen, NodeId)> {
    let node = &point.nodes[id as usize];
    match (&point.specs[node.spec as usize], node.to) {
        (Spec::Listen(listen), To::Node(inside)) => {
            Some((node.name.clone().unwrap_or_default(), listen, inside))
        }
        _ => None,
    }
}

fn seed() -> io::Result<u64> {
    getrandom::u64().map_err(|e| io::Error::other(e.to_string()))
}

/// A listener as all loops see it.
struct Conf {
    name: String,
    listen: Listen,
    node: NodeId,
    port: Option<u16>,
    clients: Clients,
    common: Option<Clients>,
    log: Option<Log>,
}

/// What every thread begins with.
#[derive(Clone)]
struct Shared {
    point: Arc<Point>,
    serving: Arc<Serving>,
    process: Arc<Process>,
    confs: Arc<Vec<Conf>>,
}

impl Shared {
    fn event_loop(&self, rt: Runtime, number: u32, built_in: bool) -> io::Result<(Rc<Loop>, Vec<Kept>)> {
        let builder = Builder {
            point: &self.point,
            serving: &self.serving,
            process: &self.process,
            built_in,
            number,
            seed: Key::new(self.process.seed).with(u64::from(number)).with(1),
        };
        let (graph, kept) = builder.graph(&rt);
        Ok((Loop::new(rt, self.process.clone(), graph, number)?, kept))
    }

    async fn serve(self, rt: Runtime, number: u32, doors: Doors) -> io::Result<()> {
        let (lp, kept) = self.event_loop(rt, number, false)?;
        lp.run(self.serve_on(&lp, kept, doors)).await
    }

    async fn serve_on(&self, lp: &Rc<Loop>, kept: Vec<Kept>, doors: Doors) -> io::Result<()> {
        if lp.number == OWNER {
            lp.keep(Keeper::new(kept));
        }
        let Doors { shares, mut messages, mailbox, files, begun } = doors;
        lp.needs("the mailbox", mailbox::run(lp.clone(), mailbox));
        let listeners: Vec<Rc<Listener>> =
            (0..).zip(self.confs.iter()).map(|(n, c)| Rc::new(c.listener(n))).collect();
        lp.has_listeners(listeners.clone());
        let mut accepting = Vec::new();
        for (at, share) in shares {
            let task = accept::run(lp.clone(), listeners[at].clone(), share.open(&lp.runtime)?);
            accepting.push(lp.runtime.spawn(task));
        }
        // Whoever waits for all loops hears of this one, or that it is gone.
        let _ = begun.send(());
        drop(begun);
        let Some(Message::Drain) = messages.recv().await else { return Ok(()) };
        self.drain(lp, accepting, &files).await;
        Ok(())
    }

    /// Ends a loop (`serving.md` §2, Drain).
    async fn drain(&self, lp: &Rc<Loop>, accepting: Vec<Joined>, files: &SocketFiles) {
        let longest = |of: fn(&Conf) -> u64| self.confs.iter().map(of).max().unwrap_or(0);
        let delay_ns = longest(|c| c.listen.http.drain_delay_ns);
        if delay_ns > 0 {
            lp.timers.after(delay_ns).await;
        }
        self.process.guests.close();
        // Before the queues are looked at for the last time: nobody new finds the way in then.
        files.remove();
        lp.closing.send_replace(true);
        let end_ns = lp.now().saturating_add(longest(|c| c.listen.http.drain_timeout_ns));
        for task in accepting {
            task.await;
        }
        lp.drain();
        // Those who were let in last are not known yet.
        lp.timers.after(LOOK_NS).await;
        // The keeper's loop ends last: others ask it, as long as they have requests.
        let is_needed = || lp.number == OWNER && self.process.serving.load(Ordering::Relaxed) > 1;
        let are_coming = || self.process.guests.are_coming(lp.number);
        while (lp.has_clients() || are_coming() || is_needed()) && lp.now() < end_ns {
            lp.timers.after(LOOK_NS).await;
        }
    }
}

/// How often a draining loop looks whether somebody is left, ns.
const LOOK_NS: u64 = 5_000_000;

impl Conf {
    fn listener(&self, number: usize) -> Listener {
        let http = self.listen.http.clone();
        Listener {
            number,
            name: self.name.clone(),
            node: self.node,
            limits: Limits {
                max_head: usize::try_from(http.max_head).unwrap_or(usize::MAX),
                max_headers: http.max_headers as usize,
                ..Limits::default()
            },
            trusted: Networks::parse(&http.trusted).unwrap_or_default(),
            raw_paths: http.paths == Paths::Raw,
            port: self.port,
            clients: self.clients.clone(),
            common: self.common.clone(),
            log: self.log.clone(),
            built_in: false,
            http,
        }
    }
}

/// Runs a future on a runtime of this thread alone.
fn on_runtime<F: Future<Output = io::Result<()>>>(main: impl FnOnce(Runtime) -> F) -> io::Result<()> {
    let runtime = Runtime::new()?;
    runtime.block_on(main(runtime.clone()))?
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
        self.remote.files.remove();
        self.remote.logs.iter().for_each(Log::finish);
        self.remote.process.words.finish();
        result
    }
}
