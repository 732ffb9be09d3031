//! The places of connections, so that no client keeps another out: those that have sent no whole request, those that
//! have asked something, and probes (`/healthz`, `/ready`) have places of their own. Where they have run out, the
//! connection of the same use that has been silent for longest is closed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What a connection is used for, by its last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// No whole request has arrived.
    Waits = 0,
    /// A request is being answered, or was.
    Asks = 1,
    /// A probe was, which counts among its own.
    Probes = 2,
}

/// A connection, as its task and its place share it.
#[derive(Debug)]
pub(crate) struct Activity {
    begun: Instant,
    /// When it last read or wrote, ns after `begun`.
    at_ns: AtomicU64,
    used_for: AtomicU8,
}

impl Activity {
    /// Bytes were read or written now.
    pub fn moves(&self) {
        self.at_ns.store(self.begun.elapsed().as_nanos() as u64, Relaxed);
    }

    fn is_used_for(&self, what: Use) -> bool {
        self.used_for.load(Relaxed) == what as u8
    }

    /// When it last read or wrote.
    fn last(&self) -> Instant {
        self.begun + std::time::Duration::from_nanos(self.at_ns.load(Relaxed))
    }
}

/// The connections of one listening socket.
#[derive(Debug)]
pub(crate) struct Places {
    /// The most connections of each use, by its number.
    most: [usize; 3],
    all: Mutex<PlaceTable>,
}

#[derive(Debug, Default)]
struct PlaceTable {
    next: u64,
    by_number: BTreeMap<u64, (Arc<Activity>, Option<AbortHandle>)>,
}

impl Places {
    /// With the most connections that wait, that ask, and that probe.
    pub fn new(waits: usize, asks: usize, probes: usize) -> Arc<Places> {
        Arc::new(Places { most: [waits, asks, probes], all: Mutex::default() })
    }

    /// A place for a connection that was just accepted, among those that have asked nothing yet.
    pub fn take(self: &Arc<Places>) -> Place {
        let activity = Arc::new(Activity {
            begun: Instant::now(),
            at_ns: AtomicU64::new(0),
            used_for: AtomicU8::new(Use::Waits as u8),
        });
        let mut taken = self.taken();
        self.make_room(&mut taken, Use::Waits);
        let number = taken.next;
        taken.next += 1;
        taken.by_number.insert(number, (activity.clone(), None));
        drop(taken);
        Place { number, activity, places: self.clone() }
    }

    /// A request has arrived on a connection, which counts among those of its use from now on.
    pub fn note_use(&self, activity: &Activity, what: Use) {
        if activity.is_used_for(what) {
            return;
        }
        self.make_room(&mut self.taken(), what);
        activity.used_for.store(what as u8, Relaxed);
    }

    /// Closes the connection of a use that was silent for longest if there is no place for one more.
    fn make_room(&self, taken: &mut PlaceTable, what: Use) {
        let most = self.most[what as usize];
        let alike = || taken.by_number.iter().filter(|(_, (one, _))| one.is_used_for(what));
        if alike().count() >= most
            && let Some(last) = alike().min_by_key(|(_, (one, _))| one.last()).map(|(number, _)| *number)
            && let Some((_, Some(task))) = taken.by_number.remove(&last)
        {
            task.abort();
        }
    }

    /// Runs a connection in a task, which ends if its place is needed for another.
    pub fn spawn(&self, place: Place, serving: impl Future<Output = ()> + Send + 'static) {
        let number = place.number;
        let task = tokio::spawn(async move {
            let _place = place;
            serving.await;
        });
        if let Some((_, held)) = self.taken().by_number.get_mut(&number) {
            *held = Some(task.abort_handle());
        }
    }

    /// The number of connections.
    pub fn count(&self) -> usize {
        self.taken().by_number.len()
    }

    fn taken(&self) -> MutexGuard<'_, PlaceTable> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    pub activity: Arc<Activity>,
    places: Arc<Places>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::{self, error::TryRecvError};

    /// Connections that last until they are closed for another; the sender of each is closed with it.
    fn lasting(places: &Arc<Places>, count: usize) -> Vec<(Arc<Activity>, oneshot::Receiver<()>)> {
        let begin = |_| {
            let place = places.take();
            let (activity, (open, closed)) = (place.activity.clone(), oneshot::channel());
            places.spawn(place, async move {
                std::future::pending::<()>().await;
                drop(open);
            });
            (activity, closed)
        };
        (0..count).map(begin).collect()
    }

    /// Whether a connection was closed.
    fn is_closed(one: &mut (Arc<Activity>, oneshot::Receiver<()>)) -> bool {
        one.1.try_recv() == Err(TryRecvError::Closed)
    }

    #[tokio::test]
    async fn a_silent_connection_makes_room_and_a_probe_does_not() {
        let places = Places::new(2, 1, 1);
        let mut first = Vec::new();
        for what in [Use::Asks, Use::Probes] {
            let one = lasting(&places, 1).remove(0);
            places.note_use(&one.0, what);
            first.push(one);
        }
        first.extend(lasting(&places, 2));
        tokio::task::yield_now().await;
        assert!(!first.iter_mut().any(is_closed), "each has its place");
        first[2].0.moves();
        lasting(&places, 1);
        tokio::task::yield_now().await;
        assert!(is_closed(&mut first[3]) && !is_closed(&mut first[2]), "the one that was silent for longest");
        // A thousand more close each other, and never the request or the probe.
        for _ in 0..1000 {
            lasting(&places, 1);
            tokio::task::yield_now().await;
        }
        assert!(!is_closed(&mut first[0]) && !is_closed(&mut first[1]));
        assert!(places.count() <= 4, "{}", places.count());
    }
}
