//! A task: a future of its own, and how it is woken.

use crate::io::reuse::Memory;
use rustix::io::write;
use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst, fence};
use std::sync::mpsc::Sender;
use std::task::{Context, Poll, Wake, Waker};

/// The future of a task, with the memory that it lies in.
pub(super) struct Work {
    future: Pin<Box<dyn BoxedFuture>>,
    /// Where its memory goes when it has ended: a [`Memory`] of its kind.
    home: Option<Rc<dyn Any>>,
}

/// A future in a box that outlives it.
trait BoxedFuture {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;

    /// Drops the future and gives the box back to its home.
    fn give_back(self: Pin<Box<Self>>, home: Option<&dyn Any>);
}

impl<F: Future + 'static> BoxedFuture for Option<F> {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.as_pin_mut().map_or(Poll::Ready(()), |future| future.poll(cx).map(drop))
    }

    fn give_back(mut self: Pin<Box<Self>>, home: Option<&dyn Any>) {
        self.as_mut().set(None);
        if let Some(memory) = home.and_then(|home| home.downcast_ref::<Memory<F>>()) {
            memory.keep(self);
        }
    }
}

impl Work {
    pub fn new(future: impl Future<Output = ()> + 'static) -> Work {
        Work { future: Box::pin(Some(future)), home: None }
    }

    /// In reused memory, to which its box returns.
    pub fn reusing<F: Future + 'static>(memory: &Rc<Memory<F>>, future: F) -> Work {
        Work { future: memory.fill(future), home: Some(memory.clone()) }
    }

    fn give_back(self) {
        self.future.give_back(self.home.as_deref());
    }
}

/// A task.
pub(super) struct Task {
    pub key: usize,
    /// `None` while it runs, when it has ended, and for the main future, which is not kept here.
    pub future: Cell<Option<Work>>,
    /// Whether it is queued among the ready tasks.
    pub queued: Cell<bool>,
    pub waker: Waker,
    handle: Arc<Handle>,
    ended: Cell<bool>,
    joiner: Cell<Option<Waker>>,
}

impl Task {
    pub fn new(key: usize, wake_list: &Arc<WakeList>) -> Rc<Task> {
        let handle = Arc::new(Handle { key, listed: AtomicBool::new(false), wake_list: wake_list.clone() });
        Rc::new(Task {
            key,
            future: Cell::new(None),
            queued: Cell::new(false),
            waker: handle.clone().into(),
            handle,
            ended: Cell::new(false),
            joiner: Cell::new(None),
        })
    }

    /// Gives a task that is new, or has ended, its future.
    pub fn begin(&self, work: Work) {
        debug_assert!(!self.queued.get(), "a queued task is not free");
        self.ended.set(false);
        self.future.set(Some(work));
    }

    /// Whether only the runtime's list and the caller hold it: no queue, no socket and no handle does. A waker may be left; it
    /// wakes the next future for nothing.
    pub fn is_free(self: &Rc<Task>) -> bool {
        Rc::strong_count(self) == 2
    }

    /// Polls the future; returns it if it has not ended. A panic, which the hook has reported, ends it.
    pub fn poll(&self, mut work: Work) -> Option<Work> {
        let mut cx = Context::from_waker(&self.waker);
        // What it shares with others is behind cells that a panic leaves valid, as an error does.
        match catch_unwind(AssertUnwindSafe(|| work.future.as_mut().poll(&mut cx))) {
            Ok(Poll::Pending) => Some(work),
            Ok(Poll::Ready(())) | Err(_) => {
                let _ = catch_unwind(AssertUnwindSafe(|| work.give_back()));
                None
            }
        }
    }

    /// Notes that it was taken from the list: the next waker puts it there again.
    pub fn unlist(&self) {
        self.handle.listed.store(false, SeqCst);
    }

    /// Ends it and wakes the task that waits for its end.
    pub fn finish(&self) {
        self.ended.set(true);
        if let Some(joiner) = self.joiner.take() {
            joiner.wake();
        }
    }

    /// Whether its future has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.get()
    }

    /// Cancels it.
    pub fn cancel(&self) {
        let work = self.future.take();
        let _ = catch_unwind(AssertUnwindSafe(|| work.map(Work::give_back)));
        self.finish();
    }
}

/// Waits for the end of a task; dropping this does not end the task.
pub struct JoinHandle(pub(super) Rc<Task>);

impl Future for JoinHandle {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.has_ended() {
            return Poll::Ready(());
        }
        self.0.joiner.set(Some(cx.waker().clone()));
        Poll::Pending
    }
}

/// A task as wakers know it.
struct Handle {
    key: usize,
    /// Whether it is already in the list.
    listed: AtomicBool,
    wake_list: Arc<WakeList>,
}

impl Wake for Handle {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.listed.swap(true, SeqCst) {
            self.wake_list.add(self.key);
        }
    }
}

/// The list of tasks that were woken, and how a loop that sleeps is notified of it.
pub(super) struct WakeList {
    list: Sender<usize>,
    asleep: AtomicBool,
    notice: OwnedFd,
}

impl WakeList {
    pub fn new(list: Sender<usize>, notice: OwnedFd) -> WakeList {
        WakeList { list, asleep: AtomicBool::new(false), notice }
    }

    fn add(&self, key: usize) {
        // A loop that has ended ignores it.
        let _ = self.list.send(key);
        // Either the loop sees the entry before it sleeps, or this sees that it sleeps.
        fence(SeqCst);
        if self.asleep.load(SeqCst) && self.asleep.swap(false, SeqCst) {
            // It fails only if the counter is full, and then the loop was notified already.
            let _ = write(&self.notice, &1u64.to_ne_bytes());
        }
    }

    /// From now on a thread that puts a task into the list notifies the loop.
    pub fn mark_asleep(&self) {
        self.asleep.store(true, SeqCst);
        fence(SeqCst);
    }

    /// From now on the loop need not be notified.
    pub fn mark_awake(&self) {
        if self.asleep.load(SeqCst) {
            self.asleep.store(false, SeqCst);
        }
    }
}
