//! Reused memory for futures that are made for each request: requests arrive in bursts, and the system's allocator
//! keeps only seven free pieces of a size at hand. And objects with buffers that have grown, such as heads of messages.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Pieces of one kind that are kept.
const KEPT: usize = 256;
/// Objects of one type that are kept.
const SPARES_KEPT: usize = 64;

/// The free pieces of a loop, by the kind of future.
#[derive(Default)]
pub struct Reuse(RefCell<Vec<Rc<dyn Any>>>);

/// The free pieces of one kind.
struct Kind<F>(RefCell<Vec<Piece<F>>>);

type Piece<F> = Pin<Box<Option<F>>>;

/// A boxed future whose memory is returned when it is dropped.
pub struct ReusedBox<F> {
    /// `None` only during the drop.
    piece: Option<Piece<F>>,
    home: Rc<Kind<F>>,
}

/// The memory of futures of one kind.
pub struct Memory<F>(Rc<Kind<F>>);

impl Reuse {
    /// Boxes a future; `memory` caches where its kind has memory.
    pub fn boxed<F: Future + 'static>(&self, memory: &mut Option<Memory<F>>, future: F) -> ReusedBox<F> {
        memory.get_or_insert_with(|| self.memory()).boxed(future)
    }

    fn memory<F: 'static>(&self) -> Memory<F> {
        let mut kinds = self.0.borrow_mut();
        if let Some(kind) = kinds.iter().find(|kind| kind.is::<Kind<F>>())
            && let Ok(kind) = kind.clone().downcast()
        {
            return Memory(kind);
        }
        let kind = Rc::new(Kind::<F>(RefCell::default()));
        kinds.push(kind.clone());
        Memory(kind)
    }
}

/// Objects that a loop keeps for their next use, a list of each type. They go from hand to hand in their boxes and come
/// back here, so that a request in a warm process allocates none.
#[derive(Default)]
pub struct Spares(RefCell<Vec<Box<dyn Any>>>);

impl Spares {
    /// Takes an object of this type, as it was left; a new one, if none is kept.
    pub fn take<T: Default + 'static>(&self) -> Box<T> {
        find(&mut self.0.borrow_mut()).and_then(Vec::pop).unwrap_or_default()
    }

    /// Keeps an object, unless there are enough of its type.
    pub fn keep<T: 'static>(&self, spare: Box<T>) {
        let mut lists = self.0.borrow_mut();
        match find(&mut lists) {
            Some(list) if list.len() < SPARES_KEPT => list.push(spare),
            Some(_) => {}
            None => lists.push(Box::new(vec![spare])),
        }
    }
}

/// The list of this type, if one was begun.
fn find<T: 'static>(lists: &mut [Box<dyn Any>]) -> Option<&mut Vec<Box<T>>> {
    lists.iter_mut().find_map(|list| list.downcast_mut())
}

impl<F: Future> Memory<F> {
    fn boxed(&self, future: F) -> ReusedBox<F> {
        let piece = self.0.0.borrow_mut().pop();
        let piece = match piece {
            Some(mut piece) => {
                piece.as_mut().set(Some(future));
                piece
            }
            None => Box::pin(Some(future)),
        };
        ReusedBox { piece: Some(piece), home: self.0.clone() }
    }
}

impl<F: Future> Future for ReusedBox<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.piece.as_mut().and_then(|piece| piece.as_mut().as_pin_mut()) {
            Some(future) => future.poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for ReusedBox<F> {
    fn drop(&mut self) {
        let Some(mut piece) = self.piece.take() else { return };
        // Drops what it owned, which may begin another future of its kind.
        piece.as_mut().set(None);
        let mut free = self.home.0.borrow_mut();
        if free.len() < KEPT {
            free.push(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Waker;

    #[test]
    fn objects_are_kept_by_type_up_to_a_bound() {
        let spares = Spares::default();
        spares.keep(Box::new(String::from("other")));
        for n in 0..SPARES_KEPT + 2 {
            spares.keep(Box::new(vec![n]));
        }
        for n in (0..SPARES_KEPT).rev() {
            assert_eq!(*spares.take::<Vec<usize>>(), [n]);
        }
        assert!(spares.take::<Vec<usize>>().is_empty());
        assert_eq!(*spares.take::<String>(), "other");
    }

    #[test]
    fn memory_is_used_again_and_what_it_held_is_dropped() {
        let (reuse, held) = (Reuse::default(), Rc::new(()));
        let make = |ready: bool| {
            let held = held.clone();
            poll_fn(move |_| if ready { Poll::Ready(Rc::strong_count(&held)) } else { Poll::Pending })
        };
        let mut cx = Context::from_waker(Waker::noop());
        let at = |boxed: &ReusedBox<_>| boxed.piece.as_ref().map(|p| std::ptr::from_ref(&**p).addr());
        let mut memory = None;
        let mut first = reuse.boxed(&mut memory, make(true));
        let place = at(&first);
        assert_eq!(Pin::new(&mut first).poll(&mut cx), Poll::Ready(2));
        drop(first);
        assert_eq!(Rc::strong_count(&held), 1);
        let (second, third) = (reuse.boxed(&mut memory, make(false)), reuse.boxed(&mut None, make(false)));
        assert!(at(&second) == place && at(&third) != place);
        drop(second);
        assert_eq!(Rc::strong_count(&held), 2);
    }
}
