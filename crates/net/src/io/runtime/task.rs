//! A task: a future of its own, and how it is woken.

use rustix::io::write;
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

type Work = Pin<Box<dyn Future<Output = ()>>>;

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
    pub fn new(key: usize, wake_list: &Arc<WakeList>, future: Option<Work>) -> Rc<Task> {
        let handle = Arc::new(Handle { key, listed: AtomicBool::new(false), wake_list: wake_list.clone() });
        Rc::new(Task {
            key,
            future: Cell::new(future),
            queued: Cell::new(false),
            waker: handle.clone().into(),
            handle,
            ended: Cell::new(false),
            joiner: Cell::new(None),
        })
    }

    /// Polls the future; returns it if it has not ended. A panic, which the hook has reported, ends it.
    pub fn poll(&self, mut future: Work) -> Option<Work> {
        let mut cx = Context::from_waker(&self.waker);
        // What it shares with others is behind cells that a panic leaves valid, as an error does.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx))) {
            Ok(Poll::Pending) => Some(future),
            Ok(Poll::Ready(())) | Err(_) => {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
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

    /// Cancels it.
    pub fn cancel(&self) {
        let future = self.future.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
        self.finish();
    }
}

/// Waits for the end of a task; dropping this does not end the task.
pub struct JoinHandle(pub(super) Rc<Task>);

impl Future for JoinHandle {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.ended.get() {
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
