//! The runtime of a loop: tasks of one thread and the readiness of its sockets, by one epoll descriptor.
//!
//! A turn runs the tasks that are ready, then asks the system which sockets are, and waits for them if no task is.
//! Sockets are registered once and edge-triggered, without an interest in writing until a write was refused; a
//! listener is reported while a client waits there, so that accepting never fails for lack of one. Measured against
//! tokio's runtime in `bench/README.md`: a balancer's requests are many short turns of two sockets, so the cost of
//! each readiness is a good part of the total.
//!
//! Wakers may be used from any thread: other threads put the task into a list and notify the loop if it sleeps, its own
//! sockets do neither.

mod signs;
mod source;
mod stream;
mod task;
#[cfg(test)]
mod tests;
mod waiter;

pub use signs::LifeSigns;
pub use source::Source;
pub use stream::{Acceptor, Stream};
pub use task::JoinHandle;
pub use waiter::Waiter;

use crate::io::reuse::Memory;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use slab::Slab;
use source::{Readiness, Waits};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll};
use task::{Task, WakeList, Work};

/// Tasks that run before the sockets are checked again.
const TURN: usize = 256;

/// Reads and writes of one task before it lets others have their turn.
const BUDGET: u32 = 64;

/// Bytes that one task reads and writes before it lets others have their turn.
const BUDGET_BYTES: usize = 256 * 1024;

/// Tasks that have ended and are kept for the next.
const SPARE: usize = 256;

/// Events taken at once.
const EVENTS: usize = 1024;

/// The number of the wake list's descriptor among the sources.
const NOTICE: u64 = u64::MAX;

/// Tasks and sockets of one thread. A clone is the same runtime.
#[derive(Clone)]
pub struct Runtime(Rc<Inner>);

struct Inner {
    epoll: OwnedFd,
    sources: RefCell<Slab<Rc<Readiness>>>,
    tasks: RefCell<Slab<Rc<Task>>>,
    /// Those of them that have ended, for the next.
    spare: RefCell<VecDeque<Rc<Task>>>,
    ready: RefCell<VecDeque<Rc<Task>>>,
    /// Tasks that have used up their budget: ready after the next check of the sockets.
    later: RefCell<Vec<Rc<Task>>>,
    /// The task that runs now.
    current: RefCell<Option<Rc<Task>>>,
    /// The number of checks of the sockets, plus one.
    looks: Cell<u64>,
    /// The numbers of events of sockets and of tasks' turns so far.
    events: Cell<u64>,
    runs: Cell<u64>,
    /// The task that waits for the loop to be woken, and the number of turns by then.
    resting: RefCell<Option<(Rc<Task>, u64)>>,
    signs: Arc<LifeSigns>,
    budget: Cell<u32>,
    budget_bytes: Cell<usize>,
    wake_list: Arc<WakeList>,
    /// Tasks that a waker has put into the list.
    woken: Receiver<usize>,
}

impl Runtime {
    /// Without tasks and sockets.
    pub fn new() -> io::Result<Runtime> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let ring = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        // Each notice is an edge of its own, so it need not be read.
        epoll::add(&epoll, &ring, EventData::new_u64(NOTICE), EventFlags::IN | EventFlags::ET)?;
        let (list, woken) = channel();
        Ok(Runtime(Rc::new(Inner {
            epoll,
            sources: RefCell::default(),
            tasks: RefCell::default(),
            spare: RefCell::default(),
            ready: RefCell::default(),
            later: RefCell::default(),
            current: RefCell::default(),
            looks: Cell::new(1),
            events: Cell::new(0),
            runs: Cell::new(0),
            resting: RefCell::default(),
            signs: Arc::default(),
            budget: Cell::new(BUDGET),
            budget_bytes: Cell::new(BUDGET_BYTES),
            wake_list: Arc::new(WakeList::new(list, ring)),
            woken,
        })))
    }

    /// Begins a task; a panic ends it alone.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) -> JoinHandle {
        self.begin(Work::new(future))
    }

    /// The same, in memory that is used again for futures of this kind: for tasks that come and go with requests. What the
    /// future returns is dropped.
    pub fn spawn_reusing<F: Future + 'static>(&self, memory: &Rc<Memory<F>>, future: F) -> JoinHandle {
        self.begin(Work::reusing(memory, future))
    }

    fn begin(&self, work: Work) -> JoinHandle {
        let task = self.spare().unwrap_or_else(|| self.new_task());
        task.begin(work);
        self.wake(&task);
        JoinHandle(task)
    }

    fn new_task(&self) -> Rc<Task> {
        let mut tasks = self.0.tasks.borrow_mut();
        let entry = tasks.vacant_entry();
        let task = Task::new(entry.key(), &self.0.wake_list);
        entry.insert(task).clone()
    }

    /// A task that has ended, to be used again. The first is the one that was kept longest, and is queued least likely.
    fn spare(&self) -> Option<Rc<Task>> {
        let task = self.0.spare.borrow_mut().pop_front()?;
        if task.is_free() {
            return Some(task);
        }
        self.0.tasks.borrow_mut().try_remove(task.key);
        None
    }

    /// Runs a future and all tasks until that future has ended; then all tasks are dropped.
    ///
    /// # Errors
    /// The system cannot report which sockets are ready.
    pub fn block_on<T>(&self, main: impl Future<Output = T>) -> io::Result<T> {
        let mut main = pin!(main);
        let me = self.new_task();
        self.wake(&me);
        let _at_the_end = DropsTasks(self);
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            if let Some(value) = self.turn(&me, &mut |cx| main.as_mut().poll(cx)) {
                return Ok(value);
            }
            self.wait(&mut events)?;
        }
    }

    /// Runs tasks that are ready; returns the value of the main one if it has ended.
    fn turn<T>(&self, me: &Rc<Task>, main: &mut dyn FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        self.collect();
        for _ in 0..TURN {
            let Some(task) = self.0.ready.borrow_mut().pop_front() else { break };
            task.queued.set(false);
            if Rc::ptr_eq(&task, me) {
                self.enter(&task);
                let polled = main(&mut Context::from_waker(&task.waker));
                self.leave();
                if let Poll::Ready(value) = polled {
                    return Some(value);
                }
            } else {
                self.run(&task);
            }
        }
        None
    }

    fn run(&self, task: &Rc<Task>) {
        let Some(future) = task.future.take() else { return };
        self.enter(task);
        let rest = task.poll(future);
        self.leave();
        match rest {
            Some(future) => task.future.set(Some(future)),
            None => {
                task.finish();
                self.keep(task);
            }
        }
    }

    /// Keeps a task that has ended for the next.
    fn keep(&self, task: &Rc<Task>) {
        let mut spare = self.0.spare.borrow_mut();
        if spare.len() < SPARE {
            spare.push_back(task.clone());
        } else {
            self.0.tasks.borrow_mut().try_remove(task.key);
        }
    }

    fn enter(&self, task: &Rc<Task>) {
        self.0.runs.set(self.0.runs.get() + 1);
        self.0.budget.set(BUDGET);
        self.0.budget_bytes.set(BUDGET_BYTES);
        *self.0.current.borrow_mut() = Some(task.clone());
    }

    fn leave(&self) {
        *self.0.current.borrow_mut() = None;
    }

    /// Makes a task ready.
    fn wake(&self, task: &Rc<Task>) {
        if !task.queued.replace(true) {
            self.0.ready.borrow_mut().push_back(task.clone());
        }
    }

    /// Makes the tasks ready that wakers have put into the list.
    fn collect(&self) {
        while let Ok(key) = self.0.woken.try_recv() {
            let task = self.0.tasks.borrow().get(key).cloned();
            let Some(task) = task else { continue };
            task.unlist();
            if !task.has_ended() {
                self.0.events.set(self.0.events.get() + 1);
                self.wake(&task);
            }
        }
    }

    /// Asks which sockets are ready; waits, if no task is.
    fn wait(&self, events: &mut Vec<Event>) -> io::Result<()> {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut timeout = Some(&at_once);
        // Others have run since, so what it waits for is to be found out anew.
        let disturbed = self.0.resting.borrow_mut().take_if(|(_, runs)| *runs != self.0.runs.get());
        if let Some((task, _)) = disturbed {
            self.wake(&task);
        }
        let is_idle = || self.0.ready.borrow().is_empty() && self.0.later.borrow().is_empty();
        if is_idle() {
            // A thread that puts a task into the list from now on notifies the loop; earlier entries are found here.
            self.0.wake_list.mark_asleep();
            self.collect();
            if is_idle() {
                timeout = None;
            }
        }
        events.clear();
        self.0.looks.set(self.0.looks.get() + 1);
        let sleeps = timeout.is_none();
        self.0.signs.waits(self.0.looks.get(), sleeps);
        let waited = epoll::wait(&self.0.epoll, rustix::buffer::spare_capacity(events), timeout);
        self.0.signs.goes_on(sleeps);
        self.0.wake_list.mark_awake();
        match waited {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        for event in &*events {
            let key = event.data.u64();
            let source = usize::try_from(key).ok().and_then(|k| self.0.sources.borrow().get(k).cloned());
            if let Some(source) = source {
                source.on_event(self, event.flags);
            }
        }
        self.0.events.set(self.0.events.get() + events.len() as u64);
        let resting = self.0.resting.borrow_mut().take();
        if let Some((task, _)) = resting.filter(|(task, _)| !task.queued.replace(true)) {
            self.0.ready.borrow_mut().push_front(task);
        }
        // After the tasks whose sockets have become ready.
        self.0.ready.borrow_mut().extend(self.0.later.borrow_mut().drain(..));
        Ok(())
    }

    /// The task to wake: the running one, if the waker is its own.
    fn waits(&self, cx: &Context<'_>) -> Waits {
        match &*self.0.current.borrow() {
            Some(task) if task.waker.will_wake(cx.waker()) => Waits::Task(task.clone()),
            _ => Waits::Other(cx.waker().clone()),
        }
    }

    /// The number of checks of the sockets, plus one.
    pub fn looks(&self) -> u64 {
        self.0.looks.get()
    }

    /// Whether the task that runs may still read and write in its turn.
    pub fn has_budget(&self) -> bool {
        self.0.budget.get() > 0 && self.0.budget_bytes.get() > 0
    }

    /// Counts one read or write; `false`: the budget is used up, and the task is woken after the next check of the
    /// sockets.
    fn spend(&self, cx: &Context<'_>) -> bool {
        if !self.has_budget() {
            self.later(cx);
            return false;
        }
        self.0.budget.set(self.0.budget.get() - 1);
        true
    }

    /// Counts bytes that were read or written.
    fn spent(&self, bytes: usize) {
        self.0.budget_bytes.set(self.0.budget_bytes.get().saturating_sub(bytes));
    }

    /// Gives the running task another turn after those that are ready now.
    pub fn again(&self, cx: &Context<'_>) {
        match self.waits(cx) {
            Waits::Task(task) => self.wake(&task),
            _ => cx.waker().wake_by_ref(),
        }
    }

    /// Gives the running task another turn after the next check of the sockets, so that tasks whose sockets have
    /// become ready get theirs.
    pub fn later(&self, cx: &Context<'_>) {
        match self.waits(cx) {
            Waits::Task(task) if !task.queued.replace(true) => self.0.later.borrow_mut().push(task),
            Waits::Task(_) => {}
            _ => cx.waker().wake_by_ref(),
        }
    }

    /// Waits for the next check of the sockets.
    pub async fn next_turn(&self) {
        let mut asked = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut asked, true) {
                return Poll::Ready(());
            }
            self.later(cx);
            Poll::Pending
        })
        .await;
    }

    /// Waits until the loop has slept and was woken, by whatever it was; then the task goes on before all others. It goes
    /// on as well, without a sleep, if others have a turn before that.
    pub async fn slept(&self) {
        let mut asked = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut asked, true) {
                return Poll::Ready(());
            }
            match self.waits(cx) {
                Waits::Task(task) => *self.0.resting.borrow_mut() = Some((task, self.0.runs.get())),
                _ => cx.waker().wake_by_ref(),
            }
            Poll::Pending
        })
        .await;
    }

    /// The number of times so far that a socket, a timer or another thread had something for this one.
    pub fn events(&self) -> u64 {
        self.0.events.get()
    }

    /// What other threads see of it.
    pub fn signs(&self) -> Arc<LifeSigns> {
        self.0.signs.clone()
    }

    /// Drops all tasks, and those that they begin meanwhile.
    fn end(&self) {
        self.0.resting.borrow_mut().take();
        self.0.ready.borrow_mut().clear();
        self.0.later.borrow_mut().clear();
        self.0.spare.borrow_mut().clear();
        loop {
            let Some(key) = self.0.tasks.borrow().iter().map(|(key, _)| key).next() else { break };
            let task = self.0.tasks.borrow_mut().remove(key);
            task.cancel();
        }
        self.0.ready.borrow_mut().clear();
    }
}

/// Drops the tasks when the runtime ends, also by a panic: they hold what holds the runtime.
struct DropsTasks<'a>(&'a Runtime);

impl Drop for DropsTasks<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A wait until the tasks that are ready now have read.
///
/// So a turn reads everything that has arrived and then sends everything that follows from it: the same code, of weir
/// and of the system, does the same thing many times in a row, which is cheaper than alternating between reads and
/// sends (`bench/README.md`).
#[derive(Default)]
pub struct AfterOthers(bool);

impl AfterOthers {
    /// Ready when they have; otherwise wakes the task then.
    pub fn poll(&mut self, rt: &Runtime, cx: &Context<'_>) -> Poll<()> {
        if self.0 || rt.0.ready.borrow().is_empty() {
            return Poll::Ready(());
        }
        self.0 = true;
        rt.again(cx);
        Poll::Pending
    }
}

/// Lets other tasks run.
#[cfg(test)]
pub(crate) async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
