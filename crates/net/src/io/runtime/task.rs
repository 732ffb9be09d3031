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
    /// Whether it stands among those that are ready.
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

    /// Its future again, if it has not ended. A panic, of which the hook has told already, ends it.
    pub fn poll(&self, mut future: Work) -> Option<Work> {
        let mut cx = Context::from_waker(&self.waker);
        // Whatever it shares with others is behind cells that a panic leaves as they are, as with an error.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx))) {
            Ok(Poll::Pending) => Some(future),
            Ok(Poll::Ready(())) | Err(_) => {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
                None
            }
        }
    }

    /// It was taken from the list: the next waker puts it there again.
    pub fn unlist(&self) {
        self.handle.listed.store(false, SeqCst);
    }

    /// Whoever waits for its end is woken.
    pub fn finish(&self) {
        self.ended.set(true);
        if let Some(joiner) = self.joiner.take() {
            joiner.wake();
        }
    }

    /// Ends it where it stands.
    pub fn cancel(&self) {
        let future = self.future.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
        self.finish();
    }
}

/// The end of a task; dropped, the task goes on.
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
    /// Whether it stands in the list already.
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
        // A loop that has ended has no use for it.
        let _ = self.list.send(key);
        // Either the loop sees the entry before it sleeps, or this sees that it sleeps.
        fence(SeqCst);
        if self.asleep.load(SeqCst) && self.asleep.swap(false, SeqCst) {
            // It fails when the counter is full only, and then it was notified already.
            let _ = write(&self.notice, &1u64.to_ne_bytes());
        }
    }

    /// From now on whoever puts a task into the list notifies the loop.
    pub fn mark_asleep(&self) {
        self.asleep.store(true, SeqCst);
        fence(SeqCst);
    }

    /// Nobody needs to notify it any more.
    pub fn mark_awake(&self) {
        if self.asleep.load(SeqCst) {
            self.asleep.store(false, SeqCst);
        }
    }
}
