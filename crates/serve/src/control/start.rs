//! Starting and stopping: sockets are bound, threads begin, and a drain ends them.

use super::built_in;
use super::hand_over::Predecessor;
use super::remote::Remote;
use super::spawn::{self, Inboxes, Shared, all_ended};
use crate::exchange::NodeId;
use crate::fleets::{self, FleetSet};
use crate::graph::blueprint::Blueprint;
use crate::graph::draws::Draws;
use crate::graph::state::ProcessState;
use crate::log::ErrorLog;
use crate::nodes::lb::ToOwner;
use crate::reload::listeners::{self, BoundListeners, ListenerSet};
use crate::reload::members::{self, Filled};
use crate::reload::options::{Error, Listening, Options};
use crate::reload::played;
use crate::reload::reloader::{self, Reloader};
use crate::reload::sources;
use crate::sync::{buffered, panics};
use crate::threads::certificates::Certificates;
use crate::threads::clients::shortage;
use crate::threads::generation::{Conf, Generation};
use crate::threads::mail::ToLoop;
use crate::threads::process::{Mail, Mailboxes, Process, Root, seed};
use crate::threads::watchdog;
use crate::transport::inner::{Inner, InnerAddress};
use crate::upstream::connect::BuiltInServers;
use crate::upstream::names::{Audience, FILE_WAIT, Following, Names, Resolver};
use crate::verify_run::{RunRole, VerifyRun};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use weir_net::io::system::ensure_descriptors;
use weir_plan::Point;
use weir_plan::serving::Serving;
use weir_plan::sticky;
use weir_stats::Key;

/// About the number of threads that are no loops: owner, built-in servers, reloads, names, sources of fleets, logs and the like.
const OTHER_THREADS: usize = 32;

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

/// Binds everything, then starts the threads.
pub fn start(
    point: &Arc<Point>,
    serving: &Arc<Serving>,
    nodes: &[NodeId],
    options: &Options,
) -> Result<Running, Error> {
    panics::keep_quiet();
    let options = &Options { loops: Some(options.default_loops()), ..options.clone() };
    // Before threads begin.
    weir_memory::allow_heaps(listeners::most_loops(point, nodes, options), OTHER_THREADS);
    let (Filled { point, serving, nodes }, fleets) = first_members(point, serving, nodes, options)?;
    let (point, serving, nodes) = (&point, &serving, &*nodes);
    if options.paired.is_none() {
        sources::check(point)?;
    }
    let certificates = Arc::new(Certificates::read(point, nodes).map_err(Error::Tls)?);
    let wanted = ListenerSet { point, nodes, certificates: &certificates };
    let bound = listeners::open(&wanted, options, None)?;
    let files = bound.files.clone();
    // If something does not start, threads that run already hold the files, and would leave them behind.
    let running = start_bound(point, serving, nodes, options, certificates, bound)
        .inspect_err(|_| files.remove(u32::MAX))?;
    begin_threads(&running.remote.reloader, point, fleets).inspect_err(|_| running.remote.drain())?;
    Ok(running)
}

/// Starts the threads that change what is served: of fleets, of changes that are played, and of certificates.
fn begin_threads(reloader: &Arc<Reloader>, point: &Arc<Point>, fleets: FleetSet) -> io::Result<()> {
    reloader.keep_fleets(fleets)?;
    played::start(reloader, point)?;
    reloader.follow_certificates();
    Ok(())
}

/// The topology with the members of the first lists, for which it waits a while. In a verification fleets are built-in
/// servers.
fn first_members(
    point: &Arc<Point>,
    serving: &Arc<Serving>,
    nodes: &[NodeId],
    options: &Options,
) -> Result<(Filled, FleetSet), Error> {
    if point.sourced().next().is_none() || options.paired.is_some() {
        let (point, serving, nodes) = (point.clone(), serving.clone(), nodes.to_vec());
        return Ok((Filled { point, serving, nodes }, FleetSet::default()));
    }
    let mut known = FleetSet::of_predecessor(&options.fleets, 0);
    let first = fleets::first_lists(&known.unheard(point), &options.readers, Key::new(seed()?))?;
    known.lists = first.lists;
    let set = known.renewed(point, 0, first.waited);
    let filled = members::filled(point, nodes, &set.members(), options.inject).map_err(Error::Members)?;
    Ok((filled, set))
}

/// The same with certificates read and listeners bound.
fn start_bound(
    point: &Arc<Point>,
    serving: &Arc<Serving>,
    nodes: &[NodeId],
    options: &Options,
    certificates: Arc<Certificates>,
    mut bound: BoundListeners,
) -> Result<Running, Error> {
    listeners::limit(&bound.confs, point);
    let sticky_keys = sticky::keys(point).map_err(Error::StickyKey)?;
    let run = options.paired.clone();
    let root = Root::new(run.as_deref())?;
    let draws = draws(point, nodes, run.as_deref(), root.key);
    let errors = Arc::new(ErrorLog::start(root.clock, options.quiet)?);
    if let Some(bytes) = options.buffered {
        buffered::set_limit(bytes);
    }
    let loops = bound.sockets.len();
    let mut mail = Channels::new(loops);
    let (built_in, servers) =
        built_in_servers(run.as_deref(), mail.handed, &mut bound.inner, &mut mail.inboxes)?;
    let state = Arc::new(ProcessState::new(mail.notices.into()));
    let mut blueprint = Blueprint::new(
        options.generation,
        played::at_start(point, run.as_deref()),
        serving.clone(),
        sticky_keys,
        &state,
        root.clock.now(),
        draws,
    );
    blueprint.make_tables(None, loops as u32);
    blueprint.inner = bound.inner;
    let following = following(options, &root, &mail.mail, &errors);
    let names = Arc::new(Names::default().update(point, serving, &following, FILE_WAIT)?);
    let mailboxes = Mailboxes { threads: mail.mail, to_built_in: mail.to_built_in };
    let process = Process {
        files: bound.files.clone(),
        ..Process::new(&root, run, errors, state, built_in, mailboxes)
    };
    let process = Arc::new(process);
    process.errors.warn(shortage(blueprint.reached.len(), loops, most_clients_of(&bound.confs)).as_slice());
    if process.run.is_some() {
        // A request of a run meets the loop that it meets in the simulation.
        process.transits.close();
    }
    watchdog::watch(root.clock, process.pulses.clone(), process.errors.clone())?;
    let first =
        Arc::new(Generation { blueprint: Arc::new(blueprint), names, certificates, confs: bound.confs });
    let shared = Shared { process: process.clone(), first: first.clone(), to_owner: mail.to_owner };
    let started = spawn::start(&shared, bound.sockets, mail.inboxes)?;
    let state = reloader::State { current: first, logs: bound.logs, next: bound.next };
    let reloader = Reloader::start(process.clone(), state, root.key, following, options.clone())?;
    let remote = Remote { loops: started.drains, draining: Arc::default(), process, reloader };
    Ok(Running {
        listening: bound.listening,
        servers,
        remote,
        threads: started.threads,
        ended: started.ended,
    })
}

/// How names are followed: all threads that connect get their addresses.
fn following(options: &Options, root: &Root, mail: &Mail, errors: &Arc<ErrorLog>) -> Following {
    let audience: Arc<dyn Audience> = Arc::new(mail.clone());
    Following {
        nameserver: options.nameserver,
        clock: root.clock,
        draw: Key::new(root.seed).with(NAMES),
        audience,
        errors: errors.clone(),
        resolver: Resolver::default(),
    }
}

/// The keys of draws of a plan that is served, or of a verification's run.
fn draws(point: &Point, nodes: &[NodeId], run: Option<&VerifyRun>, key: Key) -> Draws {
    match run {
        Some(run) => Draws::new(point, std::slice::from_ref(&run.root), key).with_joins(&run.timetable.joins),
        None => Draws::new(point, nodes, key),
    }
}

/// The clients that listeners admit, over all of them; without a limit none.
fn most_clients_of(confs: &BTreeMap<usize, Conf>) -> usize {
    let common = confs.values().filter_map(|conf| conf.admission.common.as_ref()?.most()).max();
    let own = confs.values().filter_map(|conf| conf.admission.clients.most());
    own.chain(common).fold(0, usize::saturating_add)
}

/// The mailboxes of all threads: their senders, and [`Inboxes`] for their receivers.
struct Channels {
    mail: Mail,
    notices: Vec<UnboundedSender<u32>>,
    to_owner: UnboundedSender<ToOwner>,
    to_built_in: UnboundedSender<ToLoop>,
    /// Connections to built-in servers.
    handed: UnboundedSender<(u32, UnixStream)>,
    inboxes: Inboxes,
}

impl Channels {
    fn new(loops: usize) -> Channels {
        // The loops, the owner, and, for process-wide state, the built-in servers too.
        let (mail, mailboxes): (Vec<_>, Vec<_>) = (0..=loops).map(|_| unbounded_channel()).unzip();
        let (notices, notified): (Vec<_>, Vec<_>) = (0..loops + 2).map(|_| unbounded_channel()).unzip();
        let (handed, arriving) = unbounded_channel();
        let (to_owner, owner_mail) = unbounded_channel();
        let (to_built_in, built_in_mail) = unbounded_channel();
        let arrivals = built_in::Arrivals { handed: arriving, listening: Vec::new() };
        let inboxes = Inboxes { mailboxes, notified, owner_mail, built_in_mail, arrivals };
        Channels { mail: Mail(mail.into()), notices, to_owner, to_built_in, handed, inboxes }
    }
}

/// How loops reach the built-in servers: in this process, or, in a verification, in another. Those of this process that
/// others reach are bound, and returned with their addresses.
fn built_in_servers(
    run: Option<&VerifyRun>,
    handed: UnboundedSender<(u32, UnixStream)>,
    inner: &mut Inner,
    inboxes: &mut Inboxes,
) -> Result<(BuiltInServers, Vec<(NodeId, SocketAddr)>), Error> {
    match run.map(|run| &run.role) {
        Some(RunRole::Routes { servers, listeners }) => {
            let reached = |(id, address): (&NodeId, &SocketAddr)| (*id, InnerAddress::Tcp(*address));
            inner.at.extend(listeners.iter().map(reached));
            Ok((BuiltInServers::There(Arc::new(servers.clone())), Vec::new()))
        }
        Some(RunRole::Serves(roots)) => {
            let bound = built_in::bind(roots).map_err(Error::Listen)?;
            let servers = bound.iter().map(|(root, address, _)| (*root, *address)).collect();
            inboxes.arrivals.listening = bound.into_iter().map(|(root, _, socket)| (root, socket)).collect();
            Ok((BuiltInServers::Here(handed), servers))
        }
        None => Ok((BuiltInServers::Here(handed), Vec::new())),
    }
}

/// The purpose of draws for names.
const NAMES: u64 = 0x4e41_4d45;

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
        self.remote.process.files.remove(u32::MAX);
        self.remote.reloader.finish_logs();
        self.remote.process.errors.finish();
        result
    }
}
