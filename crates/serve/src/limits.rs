//! How many clients may be connected: the limit of descriptors, a listener's own, one address's.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Descriptors that are not for clients and origins: listeners, logs, timers, runtimes.
const RESERVE: u64 = 64;

/// Raises the soft limit of descriptors to the hard one; how many clients that allows, each with one origin connection.
pub(crate) fn most_clients() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.or(limit.current);
    // It fails only where the system says less than it did; the limit stays what it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: limit.maximum });
    let now = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    usize::try_from((now / 2).saturating_sub(RESERVE).max(16)).unwrap_or(usize::MAX)
}

/// The clients of one listener, over all loops.
#[derive(Clone)]
pub(crate) struct Clients(Arc<Inner>);

struct Inner {
    connected: AtomicUsize,
    most: usize,
    most_each: Option<usize>,
    /// By address, where that is limited. Locked once when a connection is accepted and once when it ends, never for a request.
    each: Mutex<HashMap<IpAddr, usize>>,
}

/// A client that counts, until it is dropped.
pub(crate) struct Counted {
    clients: Clients,
    address: Option<IpAddr>,
}

impl Clients {
    /// So many at once at most, and so many from one address.
    pub fn new(most: usize, most_each: Option<u64>) -> Clients {
        let most_each = most_each.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        Clients(Arc::new(Inner { connected: AtomicUsize::new(0), most, most_each, each: Mutex::default() }))
    }

    /// Whether no further one may be accepted.
    pub fn is_full(&self) -> bool {
        self.0.connected.load(Ordering::Relaxed) >= self.0.most
    }

    /// Counts a client; `None` if there are too many from its address.
    pub fn count(&self, address: Option<IpAddr>) -> Option<Counted> {
        let address = address.filter(|_| self.0.most_each.is_some());
        if let (Some(ip), Some(most)) = (address, self.0.most_each) {
            let mut each = self.each();
            let count = each.entry(ip).or_insert(0);
            if *count >= most {
                return None;
            }
            *count += 1;
        }
        self.0.connected.fetch_add(1, Ordering::Relaxed);
        Some(Counted { clients: self.clone(), address })
    }

    fn each(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, usize>> {
        // A count is a count, even if a thread died while it held the lock.
        self.0.each.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.clients.0.connected.fetch_sub(1, Ordering::Relaxed);
        if let Some(ip) = self.address {
            let mut each = self.clients.each();
            if let Some(count) = each.get_mut(&ip) {
                *count -= 1;
                if *count == 0 {
                    each.remove(&ip);
                }
            }
        }
    }
}
