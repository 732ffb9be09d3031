//! A channel to a thread whose senders take no lock: a loop answers, reports and writes its logs by it.
//!
//! The library's channel is its queue, in which the receiver only looks; it waits by a [`Signal`], which says why. What remains
//! is that one sender in 31 makes room for the next ones, which spin until it has.

use super::signal::Signal;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

/// Sends from any thread.
pub(crate) struct Sender<T> {
    queue: mpsc::Sender<T>,
    /// The number of items for which there is room; `None`: for any.
    room: Option<Arc<AtomicUsize>>,
    /// After the queue, which has one sender less by then.
    signal: EndingSignal,
}

/// Receives on one thread.
pub(crate) struct Receiver<T> {
    queue: mpsc::Receiver<T>,
    room: Option<Arc<AtomicUsize>>,
    signal: Arc<Signal>,
}

/// A signal that is raised at the end of a sender: there may be no other.
struct EndingSignal(Arc<Signal>);

impl Drop for EndingSignal {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// A channel with room for any number of items.
pub(crate) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    with_room(None)
}

/// A channel with room for this number of items.
pub(crate) fn bounded<T>(most: usize) -> (Sender<T>, Receiver<T>) {
    with_room(Some(Arc::new(AtomicUsize::new(most))))
}

fn with_room<T>(room: Option<Arc<AtomicUsize>>) -> (Sender<T>, Receiver<T>) {
    let (out, queue) = mpsc::channel();
    let signal = Arc::<Signal>::default();
    let sender = Sender { queue: out, room: room.clone(), signal: EndingSignal(signal.clone()) };
    (sender, Receiver { queue, room, signal })
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        let signal = EndingSignal(self.signal.0.clone());
        Sender { queue: self.queue.clone(), room: self.room.clone(), signal }
    }
}

impl<T> Sender<T> {
    /// Sends an item.
    ///
    /// # Errors
    /// The item, if there is no room, or the receiver is gone.
    pub fn send(&self, item: T) -> Result<(), T> {
        let take = |room: &Arc<AtomicUsize>| room.fetch_update(Relaxed, Relaxed, |room| room.checked_sub(1));
        if self.room.as_ref().is_some_and(|room| take(room).is_err()) {
            return Err(item);
        }
        self.queue.send(item).map_err(|unsent| unsent.0)?;
        self.signal.0.raise();
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// Takes an item, if there is one.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let item = self.queue.try_recv()?;
        self.room.iter().for_each(|room| _ = room.fetch_add(1, Relaxed));
        Ok(item)
    }

    /// Takes the items that are there.
    pub fn try_iter(&self) -> impl Iterator<Item = T> {
        std::iter::from_fn(|| self.try_recv().ok())
    }

    /// Takes an item, for which it waits at most for this time. Always called on the same thread.
    pub fn recv_timeout(&self, most: Duration) -> Result<T, RecvTimeoutError> {
        let begun = Instant::now();
        loop {
            match self.try_recv() {
                Ok(item) => return Ok(item),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {}
            }
            let left = most.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(RecvTimeoutError::Timeout);
            }
            self.signal.wait(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn items_come_in_order_and_then_the_end() {
        let (out, inbox) = channel();
        std::thread::scope(|scope| {
            let begun = Instant::now();
            scope.spawn(move || (0..1_000).for_each(|n| out.send(n).expect("there is room")));
            let all: Vec<u32> = std::iter::from_fn(|| inbox.recv_timeout(LONG).ok()).collect();
            assert!(all.into_iter().eq(0..1_000));
            assert_eq!(inbox.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
            assert!(begun.elapsed() < LONG / 2, "it was woken");
        });
    }

    #[test]
    fn the_last_of_several_senders_ends_the_wait() {
        let (out, inbox) = channel::<()>();
        std::thread::scope(|scope| {
            let (others, begun) = ([out.clone(), out], Instant::now());
            scope.spawn(move || drop(others));
            assert_eq!(inbox.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
            assert!(begun.elapsed() < LONG / 2, "it was woken");
        });
    }

    #[test]
    fn an_item_without_room_comes_back() {
        let (out, inbox) = bounded(2);
        assert_eq!([out.send(1), out.send(2), out.send(3)], [Ok(()), Ok(()), Err(3)]);
        assert_eq!(inbox.recv_timeout(Duration::ZERO), Ok(1));
        assert_eq!(out.send(4), Ok(()));
        assert!(inbox.try_iter().eq([2, 4]));
        assert_eq!(inbox.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout));
        drop(inbox);
        assert_eq!(out.send(5), Err(5));
    }
}
