//! What a thread no longer needs, freed a few pieces at a time: ten thousand connections that end together, or the nodes
//! of a former graph, would hold up all requests of an event loop (`docs/spec/operating.md#costs`).

use super::slices::Pauses;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use weir_net::io::Core;

/// The time between slices of connections, ns.
const BETWEEN_NS: u64 = 1_000_000;

/// Pieces of memory that threads free on average before they are given back: a thread that allocates meanwhile waits until all
/// that is free in its heap is given back, for a hundred thousand targets at once 70 ms.
pub(crate) const MANY: usize = 2048;

/// The pieces of a thread that wait to be freed.
#[derive(Default)]
pub(crate) struct Discards {
    heaps: RefCell<VecDeque<Box<dyn Heap>>>,
    /// Wakes the task that frees them.
    waker: RefCell<Option<Waker>>,
}

/// How many pieces are freed before the sockets are polled again, or the clock is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    /// Each is a system call or more: a connection.
    Connections = 16,
    /// Each is some memory.
    Memory = 32,
}

/// Pieces of one kind.
trait Heap {
    fn slice(&self) -> Slice;

    /// How many there are.
    fn len(&self) -> usize;

    /// Frees this many, or all.
    fn free(&mut self, most: usize);
}

struct Pieces<T> {
    left: Vec<T>,
    slice: Slice,
}

impl<T> Heap for Pieces<T> {
    fn slice(&self) -> Slice {
        self.slice
    }

    fn len(&self) -> usize {
        self.left.len()
    }

    fn free(&mut self, most: usize) {
        self.left.truncate(self.left.len().saturating_sub(most));
    }
}

impl Discards {
    /// Frees these soon.
    pub fn put<T: 'static>(&self, pieces: Vec<T>, slice: Slice) {
        if pieces.is_empty() {
            return;
        }
        self.heaps.borrow_mut().push_back(Box::new(Pieces { left: pieces, slice }));
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Whether all is freed.
    pub fn is_empty(&self) -> bool {
        self.heaps.borrow().is_empty()
    }

    /// Frees a slice of what waits, of however many heaps; `None`: nothing does. A drop may put more here.
    fn free_some(&self) -> Option<Slice> {
        let slice = self.heaps.borrow().front()?.slice();
        let mut left = slice as usize;
        while left > 0 {
            let next = self.heaps.borrow_mut().pop_front_if(|heap| heap.slice() == slice);
            let Some(mut heap) = next else { break };
            let before = heap.len();
            heap.free(left);
            left -= before - heap.len();
            if heap.len() > 0 {
                self.heaps.borrow_mut().push_front(heap);
            }
        }
        Some(slice)
    }

    /// Frees what is put here, for ever; calls `freed` with the number of pieces of memory that were freed since the last
    /// call, when they are many, and when all is freed.
    pub async fn run(self: Rc<Self>, core: Rc<Core>, freed: impl Fn(usize)) {
        loop {
            let mut pieces = 0;
            let pauses = Pauses::new(&core);
            while let Some(slice) = self.free_some() {
                match slice {
                    // The other ends have work with it as well, before what else they get.
                    Slice::Connections => {
                        core.timers.sleep_until_about(core.now() + BETWEEN_NS).await;
                        pauses.begin_slice();
                    }
                    Slice::Memory => {
                        pieces += Slice::Memory as usize;
                        if !pauses.is_due() {
                            continue;
                        }
                        weir_memory::merge_freed();
                        if pieces >= MANY {
                            freed(std::mem::take(&mut pieces));
                        }
                        pauses.pause().await;
                    }
                }
            }
            if pieces > 0 {
                weir_memory::merge_freed();
                freed(pieces);
            }
            poll_fn(|cx| {
                if !self.heaps.borrow().is_empty() {
                    return Poll::Ready(());
                }
                *self.waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            })
            .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Piece(Rc<Cell<usize>>);

    impl Drop for Piece {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    /// However many are put there at once, no step frees more than a slice, and none frees less: ten thousand targets have
    /// a connection each.
    #[test]
    fn a_step_frees_a_slice() {
        let (discards, freed) = (Discards::default(), Rc::new(Cell::new(0)));
        let targets = (0..5_000).map(|_| (1, Slice::Connections));
        let all = [(5_000, Slice::Connections), (1, Slice::Memory), (1_000, Slice::Memory)];
        for (count, slice) in targets.chain(all) {
            discards.put((0..count).map(|_| Piece(freed.clone())).collect(), slice);
        }
        let mut steps = 0;
        loop {
            let before = freed.get();
            if discards.free_some().is_none() {
                break;
            }
            steps += 1;
            let most = if before < 10_000 { Slice::Connections } else { Slice::Memory } as usize;
            assert!(freed.get() - before <= most, "{before} to {}", freed.get());
        }
        assert_eq!((freed.get(), steps), (11_001, 10_000 / 16 + 1_001_usize.div_ceil(32)));
    }
}
