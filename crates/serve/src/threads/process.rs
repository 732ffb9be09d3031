//! The state that all threads of a process share: the clock, the seed, their mailboxes, the connections to the
//! built-in servers, and process-wide state of nodes.

use super::event_loop::Loop;
use super::load::LoopLoads;
use super::mail::ToLoop;
use super::transit::Transits;
use super::watchdog::Pulse;
use crate::graph::state::ProcessState;
use crate::log::ErrorLog;
use crate::metrics::ProcessMetrics;
use crate::sync::channel::{Sender, channel};
use crate::transport::socket_file::SocketFiles;
use crate::upstream::connect::BuiltInServers;
use crate::upstream::names::Audience;
use crate::verify_run::VerifyRun;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use weir_net::io::clock::Clock;
use weir_stats::Key;

/// The time that a question from outside may take.
const ANSWER: Duration = Duration::from_secs(1);
/// What each target adds to that where threads answer between requests.
const EACH: Duration = Duration::from_micros(20);
/// The longest that is waited for a thread that hangs: scrapers wait for 10 s.
const LONGEST: Duration = Duration::from_secs(8);

/// The time for answers that threads gather between requests, from each of this number of targets.
pub(crate) fn answer_limit(targets: usize) -> Duration {
    (ANSWER + EACH * targets.try_into().unwrap_or(u32::MAX)).min(LONGEST)
}

/// The place for a thread's answer.
struct PendingAnswer<T> {
    number: u32,
    tell: Sender<(u32, T)>,
}

impl<T> PendingAnswer<T> {
    fn send(self, answer: T) {
        // The asking thread may have ended.
        let _ = self.tell.send((self.number, answer));
    }
}

/// Shared by all threads.
pub(crate) struct Process {
    pub clock: Clock,
    /// The root of draws.
    pub seed: u64,
    /// A secret: the proof of health checks.
    pub token: u64,
    pub built_in: BuiltInServers,
    /// The run of a verification that it serves.
    pub run: Option<Arc<VerifyRun>>,
    /// Messages on standard error.
    pub errors: Arc<ErrorLog>,
    /// Queues, limits, budgets, faults.
    pub state: Arc<ProcessState>,
    /// Process-wide counts, and the last counts of threads.
    pub metrics: ProcessMetrics,
    /// Connections on their way between loops.
    pub transits: Transits,
    /// What each loop carries.
    pub loads: LoopLoads,
    /// Loops that have not ended.
    pub serving: AtomicU32,
    /// Raised when the threads that serve no client are to end.
    pub ending: tokio::sync::watch::Sender<bool>,
    /// The files of its listening Unix sockets.
    pub files: Arc<SocketFiles>,
    /// Signs of life, by thread: the loops, then the owner.
    pub pulses: Arc<[Pulse]>,
    /// Whether it was reported that descriptors run out.
    pub reserve_said: AtomicBool,
    /// Whether a drain in progress was reported.
    pub drain_said: AtomicBool,
    /// By level of listeners: the loops that have nothing more to do there.
    pub drained: Box<[AtomicU32]>,
    /// Whether another process accepts in its place.
    pub replaced: AtomicBool,
    /// The connection to the process that accepts in its place; it closes when this one ends.
    pub successor: OnceLock<UnixStream>,
    /// The mailbox of the thread of the built-in servers.
    pub to_built_in: UnboundedSender<ToLoop>,
    /// Mailboxes: of the loops that serve, by their numbers, then of the owner.
    pub mail: Mail,
}

/// The clock of a process and the roots of what it draws: its own, or those of a verification.
pub(crate) struct Root {
    pub clock: Clock,
    pub seed: u64,
    pub key: Key,
    /// A secret: the proof of health checks.
    pub token: u64,
}

impl Root {
    /// Of a verification, or new.
    pub fn new(run: Option<&VerifyRun>) -> io::Result<Root> {
        let Some(run) = run else {
            let seed = seed()?;
            return Ok(Root { clock: Clock::start(), seed, key: Key::new(seed), token: self::seed()? });
        };
        Ok(Root {
            clock: Clock::beginning(run.begins_ns),
            seed: run.key.bits(),
            key: run.key,
            token: run.secret,
        })
    }
}

/// The most levels of listeners: more than any file has.
const MOST_LAYERS: usize = 64;

/// A number that cannot be guessed.
pub(crate) fn seed() -> io::Result<u64> {
    getrandom::u64().map_err(|e| io::Error::other(e.to_string()))
}

/// Where messages to threads go.
pub(crate) struct Mailboxes {
    pub threads: Mail,
    pub to_built_in: UnboundedSender<ToLoop>,
}

/// The mailboxes of all threads that have a graph of the proxy.
#[derive(Clone)]
pub(crate) struct Mail(pub Arc<[UnboundedSender<ToLoop>]>);

impl Audience for Mail {
    fn tell(&self, name: u32, addresses: &Arc<[SocketAddr]>) {
        for mailbox in self.0.iter() {
            // A thread that has ended needs no message.
            let _ = mailbox.send(ToLoop::Addresses { name, addresses: addresses.clone() });
        }
    }

    fn is_there(&self) -> bool {
        self.0.iter().any(|mailbox| !mailbox.is_closed())
    }
}

impl Process {
    /// Reports, once, that all descriptors but the reserve are in use.
    pub fn note_reserve(&self) {
        if !self.reserve_said.swap(true, Relaxed) {
            let text =
                "the limit of open files (`ulimit -n`) is reached: the oldest idle connections are closed";
            self.errors.urgent(|| text.to_owned());
        }
    }

    /// Nothing has happened yet.
    pub fn new(
        root: &Root,
        run: Option<Arc<VerifyRun>>,
        errors: Arc<ErrorLog>,
        state: Arc<ProcessState>,
        built_in: BuiltInServers,
        mail: Mailboxes,
    ) -> Process {
        // The last mailbox is the owner's.
        let loops = mail.threads.0.len() - 1;
        Process {
            clock: root.clock,
            seed: root.seed,
            token: root.token,
            built_in,
            run,
            errors,
            state,
            metrics: ProcessMetrics::default(),
            transits: Transits::new(loops),
            loads: LoopLoads::new(loops),
            serving: AtomicU32::new(loops as u32),
            ending: tokio::sync::watch::Sender::new(false),
            files: Arc::default(),
            pulses: (0..=loops).map(|_| Pulse::default()).collect(),
            reserve_said: AtomicBool::new(false),
            drain_said: AtomicBool::new(false),
            drained: (0..MOST_LAYERS).map(|_| AtomicU32::new(0)).collect(),
            replaced: AtomicBool::new(false),
            successor: OnceLock::new(),
            to_built_in: mail.to_built_in,
            mail: mail.threads,
        }
    }

    /// The number of loops that serve.
    pub fn loops(&self) -> u32 {
        self.owner()
    }

    /// The number of the owner of process-wide state: health, and balancers that all loops share.
    pub fn owner(&self) -> u32 {
        self.mail.0.len() as u32 - 1
    }

    /// The number of the thread of the built-in servers.
    pub fn built_in(&self) -> u32 {
        self.mail.0.len() as u32
    }

    /// Sends to a thread; one that has ended needs no message.
    pub fn tell(&self, number: u32, message: ToLoop) {
        let mail =
            self.mail.0.get(number as usize).or((number == self.built_in()).then_some(&self.to_built_in));
        if let Some(mail) = mail {
            let _ = mail.send(message);
        }
    }

    /// Sends to all loops and the owner.
    pub fn tell_all(&self, message: impl Fn() -> ToLoop) {
        (0..=self.owner()).for_each(|number| self.tell(number, message()));
    }

    /// Sends to all loops and the owner, except this thread.
    pub fn tell_others(&self, me: u32, message: impl Fn() -> ToLoop) {
        (0..=self.owner()).filter(|number| *number != me).for_each(|number| self.tell(number, message()));
    }

    /// Asks all loops, and the owner as the last; returns answers by their numbers, `None` for those that do not
    /// answer within a second (they hang, or have ended).
    pub fn ask_all<T: Send + 'static>(
        &self,
        question: impl Fn(&Rc<Loop>) -> T + Send + Sync + 'static,
    ) -> Vec<Option<T>> {
        self.ask_each(ANSWER, move |lp, answer| answer.send(question(lp)))
    }

    /// The same for long questions, which are answered between requests, within this limit.
    pub fn ask_all_in_turns<T, F>(
        &self,
        limit: Duration,
        question: impl Fn(Rc<Loop>) -> F + Send + Sync + 'static,
    ) -> Vec<Option<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        self.ask_each(limit, move |lp, answer| {
            let work = question(lp.clone());
            lp.core.runtime.spawn(async move { answer.send(work.await) });
        })
    }

    /// Gives each thread a question with the place for its answer, and waits for the answers.
    fn ask_each<T: Send + 'static>(
        &self,
        limit: Duration,
        question: impl Fn(&Rc<Loop>, PendingAnswer<T>) + Send + Sync + 'static,
    ) -> Vec<Option<T>> {
        let (question, (tell, heard)) = (Arc::new(question), channel());
        for number in 0..=self.owner() {
            let (question, answer) = (question.clone(), PendingAnswer { number, tell: tell.clone() });
            self.tell(number, ToLoop::Ask(Box::new(move |lp| question(lp, answer))));
        }
        drop(tell);
        let mut answers: Vec<Option<T>> = (0..=self.owner()).map(|_| None).collect();
        let end = Instant::now() + limit;
        while let Ok((number, answer)) = heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
            answers[number as usize] = Some(answer);
        }
        answers
    }

    /// The load of a loop, with the connections on their way there.
    pub fn carries(&self, number: usize) -> usize {
        self.loads.get(number) + self.transits.coming(number)
    }

    /// The signs of life of a thread; the built-in servers' are not watched.
    pub fn pulse(&self, number: u32) -> Option<&Pulse> {
        self.pulses.get(number as usize)
    }
}
