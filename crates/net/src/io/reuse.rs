//! Reused memory for futures and values that are made for each request: requests arrive in bursts, and the system's
//! allocator keeps only seven free pieces of a size at hand. And objects with buffers that have grown, such as heads of
//! messages.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

/// Pieces of one type that are kept: for 256 requests at once.
const KEPT: usize = 256;
/// Objects of one type that are kept, for as many.
const SPARES_KEPT: usize = 256;

/// The free pieces of a loop, by the type of what lay in them.
#[derive(Default)]
pub struct Reuse(RefCell<Vec<(TypeId, Rc<dyn Any>)>>);

/// The memory of futures or values of one type: its free pieces.
pub struct Memory<T>(RefCell<Vec<Piece<T>>>);

type Piece<T> = Pin<Box<Option<T>>>;

/// A boxed future or value whose memory is returned when it is dropped.
pub struct ReusedBox<T> {
    /// `None` only during the drop.
    piece: Option<Piece<T>>,
    home: Rc<Memory<T>>,
}

/// A value with several owners, whose memory is returned when the last of them drops it.
pub struct Shared<T>(Rc<SharedPiece<T>>);

/// A shared value, and where its memory returns to.
struct SharedPiece<T> {
    value: Option<T>,
    /// Weak, since it owns the free pieces.
    home: Weak<SharedMemory<T>>,
}

/// The memory of shared values of one type: its free pieces.
struct SharedMemory<T>(RefCell<Vec<Rc<SharedPiece<T>>>>);

/// The message of a panic that can't happen: pieces are filled before they are lent.
const FILLED: &str = "a lent piece holds its value";

impl Reuse {
    /// Boxes a future or value; `memory` caches where its type has memory.
    pub fn boxed<T: 'static>(&self, memory: &mut Option<Rc<Memory<T>>>, value: T) -> ReusedBox<T> {
        let home = memory.get_or_insert_with(|| self.memory()).clone();
        ReusedBox { piece: Some(home.fill(value)), home }
    }

    /// Boxes a value.
    pub fn put<T: 'static>(&self, value: T) -> ReusedBox<T> {
        let home = self.memory();
        ReusedBox { piece: Some(home.fill(value)), home }
    }

    /// Puts a value where it can have several owners.
    pub fn share<T: 'static>(&self, value: T) -> Shared<T> {
        let home = self.memory_of(|| SharedMemory::<T>(RefCell::default()));
        let spare = home.0.borrow_mut().pop();
        Shared(match spare {
            Some(mut piece) => {
                Rc::get_mut(&mut piece).expect("nothing shares a free piece").value = Some(value);
                piece
            }
            None => Rc::new(SharedPiece { value: Some(value), home: Rc::downgrade(&home) }),
        })
    }

    /// The memory of futures or values of this type.
    pub fn memory<T: 'static>(&self) -> Rc<Memory<T>> {
        self.memory_of(|| Memory::<T>(RefCell::default()))
    }

    /// The memory of this kind; a new one, if it has none.
    fn memory_of<M: 'static>(&self, new: impl FnOnce() -> M) -> Rc<M> {
        let mut kinds = self.0.borrow_mut();
        // The number beside it is compared without a call.
        if let Some((_, kind)) = kinds.iter().find(|(of, _)| *of == TypeId::of::<M>())
            && let Ok(kind) = kind.clone().downcast()
        {
            return kind;
        }
        let kind = Rc::new(new());
        kinds.push((TypeId::of::<M>(), kind.clone()));
        kind
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

impl<T> Memory<T> {
    /// Puts this future or value into a piece.
    pub(crate) fn fill(&self, value: T) -> Piece<T> {
        let piece = self.0.borrow_mut().pop();
        match piece {
            Some(mut piece) => {
                piece.as_mut().set(Some(value));
                piece
            }
            None => Box::pin(Some(value)),
        }
    }

    /// Keeps a piece whose content was dropped, unless there are enough.
    pub(crate) fn keep(&self, piece: Piece<T>) {
        let mut free = self.0.borrow_mut();
        if free.len() < KEPT {
            free.push(piece);
        }
    }

    /// The number of free pieces.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.0.borrow().len()
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

impl<T> ReusedBox<T> {
    /// The value.
    // Inlined, since what takes it apart needs few of its parts.
    #[inline(always)]
    pub fn into_inner(mut self) -> T
    where
        T: Unpin,
    {
        let mut piece = self.piece.take().expect(FILLED);
        let value = piece.take().expect(FILLED);
        self.home.keep(piece);
        value
    }
}

impl<T> Deref for ReusedBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.piece.as_ref().and_then(|piece| piece.as_ref().get_ref().as_ref()).expect(FILLED)
    }
}

impl<T: Unpin> DerefMut for ReusedBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.piece.as_mut().and_then(|piece| piece.as_mut().get_mut().as_mut()).expect(FILLED)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.value.as_ref().expect(FILLED)
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let Some(last) = Rc::get_mut(&mut self.0) else { return };
        // Drops what it owned where it is, which may begin another value of its type.
        last.value = None;
        let Some(home) = self.0.home.upgrade() else { return };
        let mut free = home.0.borrow_mut();
        if free.len() < KEPT {
            free.push(self.0.clone());
        }
    }
}

impl<F> Drop for ReusedBox<F> {
    fn drop(&mut self) {
        let Some(mut piece) = self.piece.take() else { return };
        // Drops what it owned, which may begin another future of its kind.
        piece.as_mut().set(None);
        self.home.keep(piece);
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
    fn a_value_gives_its_memory_back_when_it_is_dropped_or_taken() {
        let reuse = Reuse::default();
        let mut value = reuse.put(vec![1]);
        value.push(2);
        assert_eq!((&value[..], reuse.memory::<Vec<i32>>().free()), (&[1, 2][..], 0));
        drop(value);
        assert_eq!(reuse.memory::<Vec<i32>>().free(), 1);
        assert_eq!(reuse.put(vec![3]).into_inner(), [3]);
        assert_eq!(reuse.memory::<Vec<i32>>().free(), 1);
    }

    #[test]
    fn a_shared_value_gives_its_memory_back_with_the_last_of_its_owners() {
        let reuse = Reuse::default();
        let free = || reuse.memory_of(|| SharedMemory::<Rc<()>>(RefCell::default())).0.borrow().len();
        let held = Rc::new(());
        let first = reuse.share(held.clone());
        let second = first.clone();
        drop(first);
        assert_eq!((free(), Rc::strong_count(&second)), (0, 2));
        drop(second);
        assert_eq!((free(), Rc::strong_count(&held)), (1, 1));
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
