//! Serving another topology without losing a request (`docs/spec/operating.md#reload`): the file is read again on a
//! thread of its own, everything that can fail is done, and then all threads adopt it, one after another.
//!
//! One reload at a time; requests during one are answered by one more after it. Graphs that remain for their last
//! requests are counted: while there are too many the next reload waits, and after a while the oldest one's requests
//! are ended.

use super::changes;
use super::listeners::{self, BoundListeners, ListenerSet, Logs, PreviousListeners};
use super::options::{Options, cores};
use super::renewer::RenewerMessage;
use super::sources;
use crate::exchange::NodeId;
use crate::fleets::{FleetSet, Message};
use crate::graph::blueprint::Blueprint;
use crate::graph::draws::Draws;
use crate::log::AccessLog;
use crate::metrics::{Reload as ReloadResult, now_unix_ms};
use crate::sync::channel::{Receiver, channel};
use crate::sync::discards::MANY;
use crate::threads::certificates::Certificates;
use crate::threads::generation::{Conf, Generation, Reload};
use crate::threads::mail::ToLoop;
use crate::threads::process::Process;
use crate::transport::listening::LoopSocket;
use crate::upstream::names::{FILE_WAIT, Following, MEMBERS_WAIT};
use crate::verify_run::PlayerMessage;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_plan::named_files::digest_of_named_files;
use weir_plan::serving::Serving;
use weir_plan::sticky;
use weir_plan::{Point, Spec};
use weir_stats::Key;

/// Graphs of earlier generations that may remain before another is built.
pub(super) const MOST_LEFT: usize = 8;
/// The time that a thread may take to build its graph.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same to adopt it, once one has not built its own in time.
const PATIENCE_AGAIN: Duration = Duration::from_secs(1);
/// The time after which the next thread builds its graph though none of those before has finished.
const SLOW: Duration = Duration::from_secs(1);
/// The time without a free after which memory is given back.
const SETTLES: Duration = Duration::from_secs(1);
/// The time after which it is given back though more is freed.
const LATE: Duration = Duration::from_secs(60);
/// Why nothing is reloaded once the process drains.
const DRAINING: &str = "weir is draining and no longer reloads";

/// Why a topology is not served in place of the current one, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadError(pub String);

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReloadError {}

/// The source of the file for a reload.
pub trait Source: Send + Sync + fmt::Debug {
    /// The topology to be served, or what is wrong with it.
    fn read(&self) -> Result<NewTopology, ReloadError>;

    /// Reports the result of a reload; before it began [`Source::read`] was called.
    fn done(&self, _result: &Result<String, ReloadError>) {}
}

/// A topology that is to be served.
#[derive(Clone, Debug)]
pub struct NewTopology {
    /// Its nodes.
    pub point: Arc<Point>,
    /// What each is when served.
    pub serving: Arc<Serving>,
    /// The listeners.
    pub nodes: Vec<NodeId>,
    /// The plan's hash.
    pub plan: String,
    /// Whether the text is, byte for byte, the one that is served.
    pub is_same_text: bool,
    /// Its hints and warnings, as `weir check --serve` words them; none where they are not wanted.
    pub notes: Vec<String>,
}

/// The configuration that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The number of applied reloads.
    pub generation: u32,
    /// The plan's hash.
    pub plan: String,
    /// When it was applied, in ms since 1970.
    pub at_unix_ms: u64,
    /// The result of the last reload: the changes, or the error.
    pub last_reload: Option<Result<String, ReloadError>>,
    /// When the last reload ended, in ms since 1970.
    pub last_reload_unix_ms: Option<u64>,
    /// Whether one was requested and is not done.
    pub reload_under_way: bool,
    /// Changes that only a new process can make, in words.
    pub waits_for_hand_over: Vec<String>,
    /// Certificates that have expired or are not valid yet, a sentence each.
    pub warnings: Vec<String>,
}

/// The state from which a reload starts.
pub(crate) struct State {
    pub current: Arc<Generation>,
    pub logs: Logs,
    /// The least number that no listener has had.
    pub next: usize,
}

/// Requests for reloads, and their results.
#[derive(Default)]
struct ReloadQueue {
    asked: u64,
    done: u64,
    result: Option<Result<String, ReloadError>>,
    stops: bool,
}

/// Reloads a process.
pub(crate) struct Reloader {
    pub(crate) process: Arc<Process>,
    /// Held during a reload or a change of members, either of which may wait for old requests; nothing else waits for
    /// that.
    pub(super) applying: Mutex<()>,
    /// Held for a read, or to replace it.
    pub(crate) state: Mutex<State>,
    config: Mutex<Config>,
    /// What former generations leave, and graphs may still have.
    former: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    asked: Mutex<ReloadQueue>,
    changed: Condvar,
    pub(super) key: Key,
    following: Following,
    pub(super) options: Options,
    /// The fleets whose members are listed, and the thread that keeps them.
    pub(super) fleets: Mutex<FleetSet>,
    pub(super) keeper: Mutex<Option<mpsc::Sender<Message>>>,
    /// Epochs that changes of members have made.
    pub(super) of_members: Mutex<BTreeSet<u32>>,
    /// The thread that renews certificates, if any is watched.
    pub(super) renewer: Mutex<Option<mpsc::Sender<RenewerMessage>>>,
    /// How many threads may build their graphs at the same time: one for each core. Each pauses for as long as it works
    /// ([`Pauses`](crate::sync::slices::Pauses)), so that requests have the other half of the cores.
    cores: usize,
}

/// What the next generation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A file that was read again.
    File,
    /// The same file with other members of fleets.
    Members,
}

/// A reload that no other change can come between.
struct Turn<'a> {
    next: NewTopology,
    fleets: FleetSet,
    one_at_a_time: MutexGuard<'a, ()>,
}

/// A topology all of whose files are read.
pub(super) struct PreparedTopology {
    pub point: Arc<Point>,
    pub serving: Arc<Serving>,
    pub nodes: Vec<NodeId>,
    pub certificates: Certificates,
    /// The keys of sticky cookies.
    pub keys: BTreeMap<NodeId, [u64; 2]>,
}

impl Reloader {
    /// With a thread that reads the file on request.
    pub fn start(
        process: Arc<Process>,
        state: State,
        key: Key,
        following: Following,
        options: Options,
    ) -> io::Result<Arc<Reloader>> {
        let config = Config {
            generation: options.generation,
            plan: options.plan.clone(),
            at_unix_ms: now_unix_ms(),
            last_reload: None,
            last_reload_unix_ms: None,
            reload_under_way: false,
            waits_for_hand_over: Vec::new(),
            warnings: state.current.certificates.warnings.clone(),
        };
        process.metrics.generation.store(u64::from(options.generation), Ordering::Relaxed);
        process.errors.warn(&config.warnings);
        let reloader = Arc::new(Reloader {
            process,
            applying: Mutex::default(),
            state: Mutex::new(state),
            config: Mutex::new(config),
            former: Mutex::default(),
            asked: Mutex::default(),
            changed: Condvar::new(),
            key,
            following,
            options,
            fleets: Mutex::default(),
            keeper: Mutex::default(),
            of_members: Mutex::default(),
            cores: cores(),
            renewer: Mutex::default(),
        });
        if reloader.options.source.is_some() {
            let own = reloader.clone();
            std::thread::Builder::new().name("weir-reload".to_owned()).spawn(move || own.run())?;
        }
        Ok(reloader)
    }

    /// Requests a reload.
    pub fn ask(&self) -> u64 {
        let mut asked = lock(&self.asked);
        asked.asked += 1;
        self.changed.notify_all();
        // The thread may wait for a graph to end.
        self.process.state.graph_ended.raise();
        asked.asked
    }

    /// Reloads the file, and returns the result.
    pub fn reload(&self) -> Result<String, ReloadError> {
        if self.options.source.is_none() {
            return Err(ReloadError("there is no file to read again".to_owned()));
        }
        let own = self.ask();
        let mut asked = lock(&self.asked);
        while asked.done < own && !asked.stops {
            asked = self.changed.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
        let ends = || Err(ReloadError(DRAINING.to_owned()));
        if asked.done < own { ends() } else { asked.result.clone().unwrap_or_else(ends) }
    }

    /// Ends all reloading.
    pub fn stop(&self) {
        lock(&self.asked).stops = true;
        self.changed.notify_all();
        self.stop_keeper();
        self.process.run.iter().for_each(|run| run.player.send(PlayerMessage::Stop));
        self.stop_renewer();
        // A reload that waits for a graph to end checks `stops` whenever it is woken.
        self.process.state.graph_ended.raise();
    }

    fn run(self: &Arc<Self>) {
        // Changes of members leave former generations as well.
        self.free_former();
        while let Some(up_to) = self.next() {
            let nothing = || Err(ReloadError(String::new()));
            let read = self.options.source.as_ref().map_or_else(nothing, |source| source.read());
            let result = read.and_then(|next| self.apply(next));
            self.process.metrics.reloaded(if result.is_ok() {
                ReloadResult::Applied
            } else {
                ReloadResult::Failed
            });
            if let Err(wrong) = &result {
                self.process.errors.urgent(|| format!("reload: {wrong}\nweir serves as before"));
                let mut config = lock(&self.config);
                config.last_reload = Some(Err(wrong.clone()));
                config.last_reload_unix_ms = Some(now_unix_ms());
            }
            if let Some(source) = &self.options.source {
                source.done(&result);
            }
            let mut asked = lock(&self.asked);
            (asked.done, asked.result) = (up_to, Some(result));
            self.changed.notify_all();
            drop(asked);
            self.free_former();
        }
    }

    /// Waits for requests; returns the number that the next reload answers. `None`: reloading has ended.
    fn next(&self) -> Option<u64> {
        let mut asked = lock(&self.asked);
        loop {
            if asked.stops {
                return None;
            }
            if asked.asked > asked.done {
                return Some(asked.asked);
            }
            asked = self.changed.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Serves another topology from now on; on an error nothing changes.
    pub fn apply(self: &Arc<Self>, next: NewTopology) -> Result<String, ReloadError> {
        let result = self.replace(next);
        // Also where it has failed: listeners may show what it has read.
        self.follow_certificates();
        result
    }

    fn replace(self: &Arc<Self>, next: NewTopology) -> Result<String, ReloadError> {
        let Some(Turn { next, fleets, one_at_a_time: _one_at_a_time }) = self.take_turn(&next)? else {
            return Ok(self.stay(lock(&self.state).current.blueprint.generation));
        };
        let (before, logs, next_number) = {
            let state = lock(&self.state);
            (state.current.clone(), state.logs.clone(), state.next)
        };
        let (plan, notes) = (next.plan.clone(), next.notes.clone());
        let previous = PreviousListeners {
            confs: &before.confs,
            inner: &before.blueprint.inner,
            logs: &logs,
            next: next_number,
            loops: self.process.loops() as usize,
        };
        let (generation, bound) = self.prepare(&before, &previous, next)?;
        // Nothing fails from here on.
        listeners::limit(&generation.confs, &generation.blueprint.point);
        self.process.files.take(&bound.files);
        let number = generation.blueprint.generation;
        let is_same = lock(&self.config).plan == plan;
        let mut sentence =
            format!("generation {number}: {}", changes::sentence(&before, &generation, is_same));
        let silent = self.hand_out(&generation, bound.sockets);
        self.keep_former(before.large_parts());
        let warnings = generation.certificates.warnings.clone();
        *lock(&self.state) = State { current: generation, logs: bound.logs, next: bound.next };
        if let Err(e) = self.keep_fleets(fleets) {
            sentence.push_str(&format!("; lists of members cannot be followed: {e}"));
        }
        self.process.metrics.generation.store(u64::from(number), Ordering::Relaxed);
        for wait in &bound.waits {
            sentence.push_str(&format!("; {wait}: that needs a hand-over"));
        }
        if silent {
            sentence.push_str("; one thread does not answer, and follows once it does");
        }
        self.process.errors.urgent(|| format!("reload: {sentence}"));
        notes.iter().for_each(|note| self.process.errors.urgent(|| note.clone()));
        self.process.errors.warn(&warnings);
        let at_unix_ms = now_unix_ms();
        *lock(&self.config) = Config {
            generation: number,
            plan,
            at_unix_ms,
            last_reload: Some(Ok(sentence.clone())),
            last_reload_unix_ms: Some(at_unix_ms),
            reload_under_way: false,
            waits_for_hand_over: bound.waits,
            warnings,
        };
        Ok(sentence)
    }

    /// Waits for first lists, and while too many graphs remain; members change meanwhile. `None`: no byte of the files is
    /// another one.
    fn take_turn(&self, next: &NewTopology) -> Result<Option<Turn<'_>>, ReloadError> {
        let first = self.first_lists(&next.point).map_err(ReloadError)?;
        loop {
            let one_at_a_time = lock(&self.applying);
            let (next, fleets) = self.fill(next, &first).map_err(ReloadError)?;
            if self.is_served(&next) {
                return Ok(None);
            }
            if self.epochs_of_reloads().len() <= MOST_LEFT {
                return Ok(Some(Turn { next, fleets, one_at_a_time }));
            }
            drop(one_at_a_time);
            self.wait_for_room()?;
        }
    }

    /// Whether no byte of the files is another one than those that are served.
    fn is_served(&self, next: &NewTopology) -> bool {
        let before = lock(&self.state).current.clone();
        next.is_same_text
            && *next.point == *before.blueprint.point
            && digest_of_named_files(&next.point) == before.certificates.files
    }

    /// Serves on as before: no byte of the files is another one.
    fn stay(&self, number: u32) -> String {
        let sentence = format!("generation {number}: nothing has changed");
        self.process.errors.urgent(|| format!("reload: {sentence}"));
        let mut config = lock(&self.config);
        config.last_reload = Some(Ok(sentence.clone()));
        config.last_reload_unix_ms = Some(now_unix_ms());
        sentence
    }

    /// Does everything that can fail: reads certificates and keys, binds new listeners, looks up names.
    fn prepare(
        &self,
        before: &Generation,
        previous: &PreviousListeners<'_>,
        next: NewTopology,
    ) -> Result<(Arc<Generation>, BoundListeners), ReloadError> {
        let NewTopology { point, serving, nodes, plan: _, is_same_text: _, notes: _ } = next;
        let certificates = certificates(before, &point, &nodes)?;
        let keys = sticky::keys(&point).map_err(|wrong| all_failed(&wrong))?;
        let topology = PreparedTopology { point, serving, nodes, certificates, keys };
        self.build(before, previous, topology, Step::File)
    }

    /// Builds the next generation: binds new listeners, looks up names.
    pub(super) fn build(
        &self,
        before: &Generation,
        previous: &PreviousListeners<'_>,
        topology: PreparedTopology,
        step: Step,
    ) -> Result<(Arc<Generation>, BoundListeners), ReloadError> {
        let PreparedTopology { point, serving, nodes, certificates, keys } = topology;
        if step == Step::File {
            sources::check(&point).map_err(failed)?;
        }
        let wanted = ListenerSet { point: &point, nodes: &nodes, certificates: &certificates };
        let mut bound = listeners::open(&wanted, &self.options, Some(previous)).map_err(failed)?;
        let patience = match step {
            Step::File => FILE_WAIT,
            Step::Members => MEMBERS_WAIT,
        };
        let names = before.names.update(&point, &serving, &self.following, patience).map_err(failed)?;
        let draws = Draws::new(&point, &nodes, self.key);
        let epoch = before.blueprint.epoch + 1;
        let now_ns = self.process.clock.now();
        let mut blueprint = Blueprint::new(epoch, point, serving, keys, &self.process.state, now_ns, draws);
        blueprint.inner = std::mem::take(&mut bound.inner);
        match step {
            Step::File => blueprint.generation = before.blueprint.generation + 1,
            Step::Members => {
                blueprint.generation = before.blueprint.generation;
                blueprint.share_with(&before.blueprint);
            }
        }
        blueprint.make_tables(Some(&before.blueprint), self.process.loops());
        let generation = Generation {
            blueprint: Arc::new(blueprint),
            names: Arc::new(names),
            certificates: Arc::new(certificates),
            confs: std::mem::take(&mut bound.confs),
        };
        Ok((Arc::new(generation), bound))
    }

    /// Epochs of which some thread still has a graph, without those that changes of members have made.
    fn epochs_of_reloads(&self) -> Vec<u32> {
        let mut epochs = self.process.state.epochs();
        let mut of_members = lock(&self.of_members);
        of_members.retain(|epoch| epochs.contains(epoch));
        epochs.retain(|epoch| !of_members.contains(epoch));
        epochs
    }

    /// Waits while too many graphs remain; then ends the requests of the oldest.
    fn wait_for_room(&self) -> Result<(), ReloadError> {
        let current = lock(&self.state).current.clone();
        let most = current.confs.values().map(|conf| conf.listen.http.drain_timeout_ns).max();
        let mut end = Instant::now() + Duration::from_nanos(most.unwrap_or_default());
        loop {
            let epochs = self.epochs_of_reloads();
            let Some(oldest) = epochs.first().filter(|_| epochs.len() > MOST_LEFT) else { return Ok(()) };
            if lock(&self.asked).stops {
                return Err(ReloadError(DRAINING.to_owned()));
            }
            if Instant::now() >= end {
                let oldest = *oldest;
                self.process.errors.urgent(|| {
                    format!(
                        "reload: {} generations still have requests: ending the remaining requests of \
                        generation {oldest}",
                        epochs.len()
                    )
                });
                self.process.tell_all(|| ToLoop::Ask(Box::new(move |lp| lp.cut(oldest))));
                self.process.tell(self.process.built_in(), ToLoop::Ask(Box::new(move |lp| lp.cut(oldest))));
                end = Instant::now() + Duration::from_secs(1);
            }
            self.process.state.graph_ended.wait(end.saturating_duration_since(Instant::now()));
        }
    }

    /// Lets all threads build their graphs while they serve requests, then sends them the generation: first to the built-in
    /// servers, so that requests sent there find them, then to the owner of process-wide state, which passes it on to
    /// the loops. Returns whether a thread does not answer.
    pub(super) fn hand_out(
        &self,
        generation: &Arc<Generation>,
        sockets: Vec<Vec<(usize, LoopSocket)>>,
    ) -> bool {
        let patience = self.build_graphs(generation);
        let silent = !self.adopt_inside(generation, patience);
        !self.adopt_outside(generation, sockets, patience) || silent
    }

    /// Lets all threads build their graphs of a generation while they serve requests. Returns how long they may take to adopt
    /// it.
    pub(super) fn build_graphs(&self, generation: &Arc<Generation>) -> Duration {
        let (owner, built_in, loops) = (self.process.owner(), self.process.built_in(), self.process.loops());
        let end = Instant::now() + PATIENCE;
        let (done, built) = channel();
        let (mut room, mut left) = (self.cores, loops + 2);
        for to in (0..loops).chain([owner, built_in]) {
            if room > 0 {
                room -= 1;
            } else if built.recv_timeout(SLOW.min(end.saturating_duration_since(Instant::now()))).is_ok() {
                left -= 1;
            } else {
                // A thread that does not answer holds up one other, once.
                room += 1;
            }
            self.process.tell(to, ToLoop::Build(generation.clone(), done.clone()));
        }
        drop(done);
        // A blocked thread has had its time; it builds its graph when it continues.
        let is_built = all_heard(&built, left, end.saturating_duration_since(Instant::now()));
        if is_built { PATIENCE } else { PATIENCE_AGAIN }
    }

    /// Lets the built-in servers adopt a generation; returns whether they have in time.
    pub(super) fn adopt_inside(&self, generation: &Arc<Generation>, patience: Duration) -> bool {
        all_heard(&self.send(self.process.built_in(), generation, Vec::new()), 1, patience)
    }

    /// Lets the owner and the loops adopt a generation; returns whether all have in time.
    pub(super) fn adopt_outside(
        &self,
        generation: &Arc<Generation>,
        sockets: Vec<Vec<(usize, LoopSocket)>>,
        patience: Duration,
    ) -> bool {
        let heard = self.send(self.process.owner(), generation, sockets);
        all_heard(&heard, self.process.loops() + 1, patience)
    }

    /// Sends a generation to a thread, which adopts it.
    fn send(
        &self,
        to: u32,
        generation: &Arc<Generation>,
        sockets: Vec<Vec<(usize, LoopSocket)>>,
    ) -> Receiver<()> {
        let (done, heard) = channel();
        let (generation, own, seen) = (generation.clone(), Vec::new(), Vec::new());
        self.process.tell(to, ToLoop::Reload(Box::new(Reload { generation, sockets, own, seen, done })));
        heard
    }

    /// Keeps parts of a former generation until no graph has them; frees those of others that are left alone, since
    /// reloads may follow each other without a pause.
    pub(super) fn keep_former(&self, parts: Vec<Arc<dyn Any + Send + Sync>>) {
        let mut former = lock(&self.former);
        former.retain(|part| Arc::strong_count(part) > 1);
        former.extend(parts);
    }

    /// Frees what former generations leave, on this thread, as soon as no graph is left that has it, and gives their
    /// memory back; until a reload is requested. Nothing that a loop frees at once grows with the plan.
    fn free_former(&self) {
        let is_asked = || {
            let asked = lock(&self.asked);
            asked.stops || asked.asked > asked.done
        };
        // Where loops share cores this thread may lose its own while it holds the lock of a loop's heap, and that loop waits
        // until it has one again: up to 67 ms with 64 loops on two cores.
        let shares_cores = self.process.loops() as usize > self.cores;
        let many = if shares_cores { 8 * MANY } else { MANY };
        let state = &self.process.state;
        // What a reload leaves is given back in any case; there, what changes of members leave once it is much.
        let (mut owes, mut last) = (true, Instant::now());
        while !is_asked() {
            if state.takes_freed(many) {
                owes = true;
                // Little by little: a loop that allocates meanwhile waits.
                if !shares_cores || last.elapsed() >= LATE {
                    weir_memory::give_back();
                    last = Instant::now();
                }
            }
            lock(&self.former).retain(|part| Arc::strong_count(part) > 1);
            // Until nothing has been freed for a while, here or by a loop.
            let wait = if owes { SETTLES } else { Duration::MAX };
            if state.graph_ended.wait(wait) {
                owes |= !shares_cores;
            } else {
                weir_memory::give_back();
                (owes, last) = (false, Instant::now());
            }
        }
    }

    /// Notes which certificates have expired or are not valid yet, now that some were renewed; says those that are new.
    pub(super) fn set_warnings(&self, warnings: Vec<String>) {
        let mut config = lock(&self.config);
        let before = std::mem::replace(&mut config.warnings, warnings.clone());
        drop(config);
        let new: Vec<String> = warnings.into_iter().filter(|warning| !before.contains(warning)).collect();
        self.process.errors.warn(&new);
    }

    /// The configuration that is served.
    pub fn config(&self) -> Config {
        let asked = lock(&self.asked);
        let reload_under_way = asked.asked > asked.done && !asked.stops;
        drop(asked);
        Config { reload_under_way, ..lock(&self.config).clone() }
    }

    /// The generation that is served, and the number of lost lines of access logs.
    pub fn current(&self) -> (Arc<Generation>, u64) {
        let state = lock(&self.state);
        (state.current.clone(), state.logs.all().map(AccessLog::lost).sum())
    }

    /// Reopens log files.
    pub fn reopen_logs(&self) {
        lock(&self.state).logs.all().for_each(AccessLog::reopen);
    }

    /// Copies of the sockets that the parent keeps open, with their addresses.
    pub fn kept_sockets(&self) -> Vec<(String, OwnedFd)> {
        self.options.inherited.as_ref().map(|all| all.kept()).unwrap_or_default()
    }

    /// Writes the last lines.
    pub fn finish_logs(&self) {
        lock(&self.state).logs.all().for_each(AccessLog::finish);
    }
}

fn certificates(before: &Generation, point: &Point, nodes: &[NodeId]) -> Result<Certificates, ReloadError> {
    let listen = |id: NodeId| match &point.specs[point.nodes[id as usize].spec as usize] {
        Spec::Listen(listen) => Some(listen),
        _ => None,
    };
    let (mut same, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for node in nodes {
        let Some(now) = listen(*node) else { continue };
        // As listeners are kept: each that takes a free port continues an earlier one.
        let mut all = before.confs.iter();
        let is_it = |number: &usize, conf: &Conf| conf.listen.addr == now.addr && !taken.contains(number);
        if let Some((number, conf)) = all.find(|(number, conf)| is_it(number, conf)) {
            taken.insert(*number);
            same.insert(*node, (conf.node, &conf.listen));
        }
    }
    before.certificates.renewed(point, nodes, &same).map_err(|wrong| all_failed(&wrong))
}

/// Whether this number of threads has answered in time.
fn all_heard(from: &Receiver<()>, count: u32, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    (0..count).all(|_| from.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok())
}

fn failed(wrong: impl fmt::Display) -> ReloadError {
    ReloadError(wrong.to_string())
}

fn all_failed(wrong: &[impl fmt::Display]) -> ReloadError {
    ReloadError(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
