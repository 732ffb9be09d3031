//! The threads of a process: one for each event loop, one that owns process-wide state (health, balancers that all
//! loops share), one for the built-in servers.

use super::{built_in, drain, mailbox};
use crate::accept;
use crate::accept::room::{cut_lingering_short, make_room};
use crate::graph::builder::Thread;
use crate::graph::state::LocalState;
use crate::health::monitor::{Callbacks, Monitor};
use crate::metrics::Limit;
use crate::nodes::lb::{Owner, ToOwner};
use crate::reload::adopt;
use crate::reload::options::cores;
use crate::threads::clients::reserve;
use crate::threads::event_loop::Loop;
use crate::threads::generation::{Generation, Maker};
use crate::threads::mail::{IdleScope, ToLoop};
use crate::threads::process::Process;
use crate::transport::listening::LoopSocket;
use crate::transport::settings::TCP;
use crate::upstream::server::MakesRoom;
use crate::verify_run::{PlayerMessage, RunEvent, TargetFailure};
use std::future::poll_fn;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Poll;
use std::thread::JoinHandle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use weir_net::io::Core;
use weir_net::io::runtime::Runtime;
use weir_net::io::system::descriptors;
use weir_stats::Key;

/// Sent to a loop: begin nothing new, end what is in progress.
pub(super) struct Drain;

/// The start of every thread.
#[derive(Clone)]
pub(super) struct Shared {
    pub process: Arc<Process>,
    /// Dropped once it is built: other threads may follow.
    pub first: Arc<Generation>,
    pub to_owner: UnboundedSender<ToOwner>,
}

/// The receivers of threads' messages, by number.
pub(super) struct Inboxes {
    /// Of the loops, then of the owner.
    pub mailboxes: Vec<UnboundedReceiver<ToLoop>>,
    /// The same, then the built-in servers: changes of process-wide state.
    pub notified: Vec<UnboundedReceiver<u32>>,
    pub owner_mail: UnboundedReceiver<ToOwner>,
    pub built_in_mail: UnboundedReceiver<ToLoop>,
    pub arrivals: built_in::Arrivals,
}

/// The start of a loop.
struct Inbox {
    sockets: Vec<(usize, LoopSocket)>,
    drain: UnboundedReceiver<Drain>,
    mailbox: UnboundedReceiver<ToLoop>,
    notified: UnboundedReceiver<u32>,
    /// Sent once it accepts.
    begun: Sender<()>,
}

/// Serving threads, and how each is drained.
pub(super) struct StartedThreads {
    /// Each loop sends here as it ends, and the built-in servers as they fail.
    pub ended: Receiver<Option<io::Error>>,
    pub drains: Arc<[UnboundedSender<Drain>]>,
    pub threads: Vec<JoinHandle<io::Result<()>>>,
}

/// Starts all threads, and waits until all have begun: one that cannot ends the others.
pub(super) fn start(
    shared: &Shared,
    sockets: Vec<Vec<(usize, LoopSocket)>>,
    inboxes: Inboxes,
) -> io::Result<StartedThreads> {
    let Inboxes { mut mailboxes, mut notified, owner_mail, built_in_mail, arrivals } = inboxes;
    let (end, ended) = channel();
    let too_few = || io::Error::other("a mailbox is missing");
    let (built_in_notified, owner_notified) =
        (notified.pop().ok_or_else(too_few)?, notified.pop().ok_or_else(too_few)?);
    let owner_mailbox = mailboxes.pop().ok_or_else(too_few)?;
    let number = shared.process.built_in();
    start_service("weir-servers", &end, {
        let shared = shared.clone();
        move |rt, begun| shared.serve_built_in(rt, number, arrivals, built_in_mail, built_in_notified, begun)
    })?;
    let number = shared.process.owner();
    start_service("weir-owner", &end, {
        let shared = shared.clone();
        move |rt, begun| shared.own(rt, number, owner_mailbox, owner_mail, owner_notified, begun)
    })?;
    let receivers = sockets.into_iter().zip(mailboxes).zip(notified);
    let setups = receivers.map(|((sockets, mailbox), notified)| LoopSetup { sockets, mailbox, notified });
    let started = start_loops(shared, setups, &end);
    let LoopThreads { drains, threads } = started.inspect_err(|_| {
        shared.process.ending.send_replace(true);
    })?;
    Ok(StartedThreads { ended, drains, threads })
}

/// Starts a thread that serves no client, and waits until it has begun.
fn start_service<F: Future<Output = io::Result<()>>>(
    name: &str,
    end: &Sender<Option<io::Error>>,
    main: impl FnOnce(Runtime, Sender<()>) -> F + Send + 'static,
) -> io::Result<()> {
    let (begin, begun) = channel();
    let (failed, failure) = channel();
    let end = end.clone();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let result = on_runtime(|runtime| main(runtime, begin));
        // An error before its start goes to the starting thread, a later one to the thread that waits for the end.
        if let Some(e) = result.err()
            && let Err(e) = failed.send(e)
        {
            let _ = end.send(Some(e.0));
        }
    })?;
    if begun.recv().is_ok() {
        return Ok(());
    }
    // A thread that panicked sends no reason.
    Err(failure.recv().unwrap_or_else(|_| io::Error::other(format!("the thread {name} has ended"))))
}

/// The threads of all loops, and the senders by which these are drained.
struct LoopThreads {
    drains: Arc<[UnboundedSender<Drain>]>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// A loop's sockets, and its receivers.
struct LoopSetup {
    sockets: Vec<(usize, LoopSocket)>,
    mailbox: UnboundedReceiver<ToLoop>,
    notified: UnboundedReceiver<u32>,
}

/// Starts the loops, and waits until all accept: one that cannot ends the others.
fn start_loops(
    shared: &Shared,
    loops: impl Iterator<Item = LoopSetup>,
    end: &Sender<Option<io::Error>>,
) -> io::Result<LoopThreads> {
    let (mut drains, mut threads) = (Vec::new(), Vec::new());
    let (begin, begun) = channel();
    let mut result = Ok(());
    let shares_cores = shared.process.loops() as usize > cores();
    for (number, setup) in loops.enumerate() {
        let LoopSetup { sockets, mailbox, notified } = setup;
        let (tell, drain) = unbounded_channel();
        let shared = shared.clone();
        let inbox = Inbox { sockets, drain, mailbox, notified, begun: begin.clone() };
        let end = Ends(end.clone(), shared.process.clone());
        let thread = std::thread::Builder::new().name(format!("weir-loop-{number}")).spawn(move || {
            let _end = end;
            if shares_cores {
                weir_memory::open_heap();
            }
            on_runtime(|runtime| shared.serve(runtime, number as u32, inbox))
        });
        match thread {
            Ok(thread) => threads.push(thread),
            Err(e) => result = result.and(Err(e)),
        }
        drains.push(tell);
    }
    drop(begin);
    if begun.iter().count() == drains.len() {
        return Ok(LoopThreads { drains: drains.into(), threads });
    }
    // Those that have begun end when their senders are gone.
    drop(drains);
    Err(all_ended(threads, result).err().unwrap_or_else(|| io::Error::other("an event loop has ended")))
}

/// Waits for threads to end; the first error.
pub(super) fn all_ended(threads: Vec<JoinHandle<io::Result<()>>>, before: io::Result<()>) -> io::Result<()> {
    threads.into_iter().fold(before, |result, thread| {
        let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("an event loop has panicked")));
        result.and(ended)
    })
}

/// Reports that a thread has ended, in any way.
struct Ends(Sender<Option<io::Error>>, Arc<Process>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.1.transits.close();
        self.1.serving.fetch_sub(1, Ordering::Relaxed);
        let _ = self.0.send(None);
    }
}

/// Runs a future on a runtime of this thread alone.
fn on_runtime<F: Future<Output = io::Result<()>>>(main: impl FnOnce(Runtime) -> F) -> io::Result<()> {
    let runtime = Runtime::new()?;
    runtime.block_on(main(runtime.clone()))?
}

/// How a loop makes room.
struct Room(Weak<Loop>);

impl MakesRoom for Room {
    fn note_demand(&self) {
        if let Some(lp) = self.0.upgrade() {
            lp.state.metrics.limits.one(Limit::MaxConnections);
        }
    }

    fn close_idle(&self, target: u32) {
        if let Some(lp) = self.0.upgrade() {
            // Another connection of this loop may be idle, if it was not reusable.
            lp.targets.close_idle(target);
            lp.process.tell_others(lp.number, || ToLoop::CloseIdle { target });
        }
    }

    fn free_descriptor(&self) -> bool {
        let Some(lp) = self.0.upgrade() else { return false };
        lp.state.metrics.limits.one(Limit::Descriptors);
        lp.process.note_reserve();
        // A client that lingers closes when its task runs, so the request waits for that.
        if cut_lingering_short(&lp) {
            return false;
        }
        if lp.targets.close_oldest() {
            return true;
        }
        lp.process.tell_others(lp.number, || ToLoop::CloseOldest);
        make_room(&lp, IdleScope::Anybody);
        false
    }
}

impl Shared {
    /// A thread's loop, with its graph.
    fn begin(
        &self,
        rt: Runtime,
        number: u32,
        owner: Owner,
        notified: UnboundedReceiver<u32>,
    ) -> io::Result<Rc<Loop>> {
        let process = &self.process;
        let thread = if number == process.built_in() { Thread::BuiltIn } else { Thread::Proxy };
        let key = Key::new(process.seed).with(u64::from(number));
        let core = Core::new(rt, process.clock, key, TCP)?;
        if number < process.loops() {
            core.keep_reserve(descriptors().saturating_sub(reserve()));
        }
        let state = LocalState::new(process.state.clone(), number as usize);
        let lp = Loop::new(number, core, process.clone(), state);
        lp.needs("the mail of the process's state", lp.state.clone().read(notified));
        let room: Rc<dyn MakesRoom> = Rc::new(Room(Rc::downgrade(&lp)));
        lp.builds_by(Maker { thread, owner, room });
        if thread == Thread::Proxy {
            lp.set_listeners(adopt::listeners(&lp, &self.first));
        }
        if let Some(graph) = adopt::build_first(&lp, &self.first) {
            lp.set_graph(graph);
        }
        Ok(lp)
    }

    /// The health monitor of a thread that owns it.
    fn monitor(&self, lp: &Rc<Loop>, publish: impl Fn(ToLoop) + 'static) {
        let Some(graph) = lp.graph() else { return };
        let (errors, token, run) =
            (self.process.errors.clone(), self.process.token, self.process.run.clone());
        let (doubts, core) = (run.clone().filter(|run| run.has_doubts()), lp.core.clone());
        let hears = Callbacks {
            publish: Box::new(move |lb, seen| publish(ToLoop::Health { lb, seen })),
            ejected: Box::new(move |count| {
                run.iter().for_each(|run| run.report(RunEvent::Ejected(count)));
            }),
            failed: Box::new(move |lb, target| {
                let failure = || PlayerMessage::Failed(TargetFailure { lb, target, at_ns: core.now() });
                doubts.iter().for_each(|run| run.player.send(failure()));
            }),
        };
        lp.monitors(Monitor::new(lp.core.clone(), graph, errors, token, hears));
    }

    /// Runs the built-in servers for as long as any loop is there.
    async fn serve_built_in(
        self,
        rt: Runtime,
        number: u32,
        arrivals: built_in::Arrivals,
        mail: UnboundedReceiver<ToLoop>,
        notified: UnboundedReceiver<u32>,
        begun: Sender<()>,
    ) -> io::Result<()> {
        // Balancers inside of them have their health here.
        let (to_owner, owner_mail) = unbounded_channel();
        let lp = self.begin(rt, number, Owner { mail: to_owner, is_here: true }, notified)?;
        self.monitor(&lp, |_| {});
        lp.needs("the owner's mail", mailbox::run_owner(lp.clone(), owner_mail));
        lp.needs("the mailbox", mailbox::run(lp.clone(), mail));
        // The waiting thread is notified in no other way.
        let _ = begun.send(());
        drop((begun, self));
        until_the_end(&lp, built_in::run(lp.clone(), arrivals)).await
    }

    /// Owns process-wide state, for as long as any loop is there.
    async fn own(
        self,
        rt: Runtime,
        number: u32,
        mailbox: UnboundedReceiver<ToLoop>,
        owner_mail: UnboundedReceiver<ToOwner>,
        notified: UnboundedReceiver<u32>,
        begun: Sender<()>,
    ) -> io::Result<()> {
        let owner = Owner { mail: self.to_owner.clone(), is_here: true };
        let lp = self.begin(rt, number, owner, notified)?;
        let process = self.process.clone();
        self.monitor(&lp, move |message| {
            let ToLoop::Health { lb, seen } = message else { return };
            process.tell_others(number, || ToLoop::Health { lb, seen: seen.clone() });
        });
        lp.needs("the mailbox", mailbox::run(lp.clone(), mailbox));
        let _ = begun.send(());
        drop((begun, self));
        until_the_end(&lp, mailbox::run_owner(lp.clone(), owner_mail)).await
    }

    /// Runs an event loop to the end of a drain.
    async fn serve(self, rt: Runtime, number: u32, inbox: Inbox) -> io::Result<()> {
        let Inbox { sockets, mut drain, mailbox, notified, begun } = inbox;
        let owner = Owner { mail: self.to_owner.clone(), is_here: false };
        let lp = self.begin(rt, number, owner, notified)?;
        let process = self.process.clone();
        drop(self);
        let main = async {
            lp.needs("the mailbox", mailbox::run(lp.clone(), mailbox));
            for (listener, socket) in sockets {
                accept::begin(&lp, listener, socket.watch(&lp.core.runtime)?);
            }
            // The thread that waits for all loops is notified of this one's end.
            let _ = begun.send(());
            drop(begun);
            let Some(Drain) = drain.recv().await else { return Ok(()) };
            drain::drain(&process, &lp).await;
            Ok(())
        };
        lp.run(main).await
    }
}

/// Runs a future on a thread that serves no client, until all loops have ended.
async fn until_the_end(lp: &Loop, main: impl Future<Output = ()>) -> io::Result<()> {
    let mut ending = lp.process.ending.subscribe();
    let mut ends = std::pin::pin!(ending.wait_for(|ending| *ending));
    let mut main = std::pin::pin!(main);
    let either = poll_fn(|cx| match ends.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(Ok(())),
        Poll::Pending => main.as_mut().poll(cx).map(Ok),
    });
    lp.run(either).await
}
