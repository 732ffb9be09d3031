//! The number of clients that may be connected: the limit of descriptors, a listener's own, one address's.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use weir_net::io::system::descriptors;
use weir_plan::fixed::{DESCRIPTORS_RESERVE, MIN_CLIENTS};

/// Raises the soft limit of descriptors to the hard one; returns the number of clients that allows, each with one
/// origin connection.
pub(crate) fn most_clients() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.or(limit.current);
    // It fails only if the system permits less than it reported; the limit stays what it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: limit.maximum });
    (descriptors() / 2).saturating_sub(DESCRIPTORS_RESERVE as usize).max(MIN_CLIENTS as usize)
}

/// Descriptors that no connection of a client or a request takes: for reloads, administration, logs and checks. Where
/// there are few, a quarter of what is above that number.
pub(crate) fn reserve() -> usize {
    let most = DESCRIPTORS_RESERVE as usize;
    most.min(descriptors().saturating_sub(most) / 4)
}

/// The warning at the start if the file may need more descriptors than there are: each loop may have a connection to
/// each target.
pub(crate) fn shortage(targets: usize, loops: usize, clients: usize) -> Option<String> {
    let (most, reserve) = (descriptors(), reserve());
    let needed = targets.saturating_mul(loops).saturating_add(clients).saturating_add(reserve);
    (needed > most).then(|| {
        format!(
            "this file may need {needed} open files: {targets} targets on {loops} loops, {clients} clients, a reserve of \
            {reserve}; the limit is {most}. Beyond it the oldest idle connections to targets are closed: raise the limit \
            (`ulimit -n`, LimitNOFILE= of a systemd unit)"
        )
    })
}

/// No limit.
const NOT_LIMITED: usize = usize::MAX;

/// No loop.
const NOWHERE: usize = usize::MAX;

/// Connections that a loop may have more than another, or requests that it may carry more, besides a quarter.
const SLACK: usize = 2;

/// The clients of one listener, over all loops.
#[derive(Clone)]
pub(crate) struct Clients(Arc<Inner>);

struct Inner {
    connected: AtomicUsize,
    /// The same for each loop of the listener.
    on_loop: Vec<AtomicUsize>,
    most: AtomicUsize,
    /// Whether loops are to have as many of them as each other.
    is_even: AtomicBool,
    /// The limit per address; the greatest number: none.
    most_each: AtomicUsize,
    /// By address, if that is limited. Locked once when a connection is accepted and once when it ends, never for a
    /// request.
    each: Mutex<HashMap<IpAddr, usize>>,
    /// Whether it was reported that the limits are reached: of all clients, of one address.
    said: [AtomicBool; 2],
}

/// A client that counts, until it is dropped.
pub(crate) struct ClientGuard {
    clients: Clients,
    on: usize,
    address: Option<IpAddr>,
}

impl Clients {
    /// With this limit of clients, and of clients per address, on this number of loops.
    pub fn new(most: usize, most_each: Option<u64>, loops: usize) -> Clients {
        let on_loop = (0..loops).map(|_| AtomicUsize::new(0)).collect();
        let clients = Clients(Arc::new(Inner {
            connected: AtomicUsize::new(0),
            on_loop,
            most: AtomicUsize::new(most),
            is_even: AtomicBool::new(false),
            most_each: AtomicUsize::new(NOT_LIMITED),
            each: Mutex::default(),
            said: Default::default(),
        }));
        clients.limit_to(most, most_each);
        clients
    }

    /// Changes the limits; connected clients stay.
    pub fn limit_to(&self, most: usize, most_each: Option<u64>) {
        let most_each = most_each.map_or(NOT_LIMITED, |n| usize::try_from(n).unwrap_or(NOT_LIMITED));
        self.0.most.store(most, Ordering::Relaxed);
        self.0.most_each.store(most_each, Ordering::Relaxed);
    }

    /// Whether loops are to have as many clients as each other: where targets are divided among loops, some get as much more
    /// as their loops carry.
    pub fn divide_evenly(&self, is_even: bool) {
        self.0.is_even.store(is_even, Ordering::Relaxed);
    }

    fn most_each(&self) -> Option<usize> {
        Some(self.0.most_each.load(Ordering::Relaxed)).filter(|most| *most != NOT_LIMITED)
    }

    /// The loop that is to serve a client that loop `me` has accepted. `carries`: the load of a loop.
    pub fn lightest(&self, me: usize, carries: impl Fn(usize) -> usize) -> usize {
        let has = |on: usize| self.0.on_loop.get(on).map_or(usize::MAX, |n| n.load(Ordering::Relaxed));
        let loops = 0..self.0.on_loop.len();
        let is_more = |one: usize, other: usize| one >= other + other / 4 + SLACK;
        let mine = carries(me);
        if let Some(idlest) = loops.clone().min_by_key(|on| (carries(*on), has(*on)))
            && is_more(mine, carries(idlest))
        {
            return idlest;
        }
        let fewest = loops.filter(|on| !is_more(carries(*on), mine)).min_by_key(|on| has(*on));
        let is_even = self.0.is_even.load(Ordering::Relaxed);
        let has_more = |fewest: usize| match is_even {
            true => has(me) > has(fewest),
            false => is_more(has(me), has(fewest)),
        };
        fewest.filter(|fewest| has_more(*fewest)).unwrap_or(me)
    }

    /// Whether a limit is to be reported, which is once: `each`: that of one address.
    pub fn says(&self, each: bool) -> bool {
        !self.0.said[usize::from(each)].swap(true, Ordering::Relaxed)
    }

    /// The limit of clients; `None`: there is none.
    pub fn most(&self) -> Option<usize> {
        Some(self.0.most.load(Ordering::Relaxed)).filter(|most| *most != NOT_LIMITED)
    }

    /// The number of connected clients.
    pub fn connected(&self) -> usize {
        self.0.connected.load(Ordering::Relaxed)
    }

    /// Whether no further client may be accepted.
    pub fn is_full(&self) -> bool {
        self.0.connected.load(Ordering::Relaxed) >= self.0.most.load(Ordering::Relaxed)
    }

    /// Counts a client; `None` if there is no room.
    pub fn take_place(&self) -> Option<ClientGuard> {
        let most = self.0.most.load(Ordering::Relaxed);
        let one_more = |n: usize| (n < most).then_some(n + 1);
        self.0.connected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(ClientGuard { clients: self.clone(), on: NOWHERE, address: None })
    }

    fn each(&self) -> std::sync::MutexGuard<'_, HashMap<IpAddr, usize>> {
        // A count is a count, even if a thread died while it held the lock.
        self.0.each.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl ClientGuard {
    /// Counts it for that loop and address; unchanged if there are too many from the address.
    pub fn on(mut self, address: Option<IpAddr>, on: usize) -> Result<ClientGuard, ClientGuard> {
        let most_each = self.clients.most_each();
        let limited = address.filter(|_| most_each.is_some());
        if let (Some(ip), Some(most)) = (limited, most_each) {
            let mut each = self.clients.each();
            let count = each.entry(ip).or_insert(0);
            if *count >= most {
                drop(each);
                return Err(self);
            }
            *count += 1;
            drop(each);
        }
        if let Some(n) = self.clients.0.on_loop.get(on) {
            n.fetch_add(1, Ordering::Relaxed);
        }
        (self.address, self.on) = (limited, on);
        Ok(self)
    }
}

impl ClientGuard {
    /// Counts a client of the loop for its address, too; unchanged if there are too many from it.
    pub fn with_address(mut self, address: IpAddr) -> Result<ClientGuard, ClientGuard> {
        let on = std::mem::replace(&mut self.on, NOWHERE);
        let counted = self.on(Some(address), NOWHERE);
        match counted {
            Ok(counted) => Ok(ClientGuard::with_loop(counted, on)),
            Err(counted) => Err(ClientGuard::with_loop(counted, on)),
        }
    }

    fn with_loop(mut counted: ClientGuard, on: usize) -> ClientGuard {
        counted.on = on;
        counted
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        self.clients.0.connected.fetch_sub(1, Ordering::Relaxed);
        if let Some(n) = self.clients.0.on_loop.get(self.on) {
            n.fetch_sub(1, Ordering::Relaxed);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_accepts_everything_keeps_about_its_share() {
        let clients = Clients::new(usize::MAX, None, 4);
        let mut held = Vec::new();
        for _ in 0..1000 {
            held.push(
                clients
                    .take_place()
                    .and_then(|place| place.on(None, clients.lightest(0, |_| 0)).ok())
                    .unwrap(),
            );
        }
        let loads: Vec<usize> = clients.0.on_loop.iter().map(|n| n.load(Ordering::Relaxed)).collect();
        let least = *loads[1..].iter().min().unwrap();
        assert!(loads[0] <= least + least / 4 + SLACK, "{loads:?}");
        assert!(loads[1..].iter().all(|n| *n >= 200 && *n <= 260), "{loads:?}");
        held.clear();
        assert!(clients.0.on_loop.iter().all(|n| n.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn loops_with_subsets_have_as_many_clients_as_each_other() {
        let clients = Clients::new(usize::MAX, None, 8);
        clients.divide_evenly(true);
        // As a hash of the system spreads them.
        let accepted_by = |n: u32| (n.wrapping_mul(0x9E37_79B9) >> 27) as usize % 8;
        let on = |n| clients.take_place()?.on(None, clients.lightest(accepted_by(n), |_| 0)).ok();
        let held: Vec<ClientGuard> = (0..64).filter_map(on).collect();
        let loads: Vec<usize> = clients.0.on_loop.iter().map(|n| n.load(Ordering::Relaxed)).collect();
        assert_eq!(loads, [8; 8]);
        drop(held);
    }

    #[test]
    fn what_loops_carry_counts_before_how_many_they_have() {
        let clients = Clients::new(usize::MAX, None, 3);
        let on = |loops: &[(usize, usize)]| -> Vec<ClientGuard> {
            let each = loops.iter().flat_map(|(on, many)| std::iter::repeat_n(*on, *many));
            each.filter_map(|on| clients.take_place()?.on(None, on).ok()).collect()
        };
        let _held = on(&[(0, 1), (1, 100), (2, 30)]);
        for (carry, expected) in [
            // A connection that carries a hundred requests weighs more than a hundred idle ones.
            ([100, 0, 0], [2, 2, 2]),
            ([0, 0, 0], [0, 0, 0]),
            ([1, 0, 0], [0, 0, 0]),
            // With about the same load: by their number.
            ([90, 100, 100], [0, 0, 0]),
            ([90, 120, 100], [0, 0, 0]),
            ([100, 90, 70], [2, 2, 2]),
        ] {
            let served_on = [0, 1, 2].map(|me| clients.lightest(me, |on| carry[on]));
            assert_eq!(served_on, expected, "{carry:?}");
        }
    }

    #[test]
    fn one_address_has_its_own_limit() {
        let clients = Clients::new(usize::MAX, Some(2), 1);
        let count = |ip| clients.take_place().and_then(|place| place.on(ip, 0).ok());
        let (a, b) = ("10.0.0.1".parse().ok(), "10.0.0.2".parse().ok());
        let one = count(a);
        let two = count(a);
        assert!(one.is_some() && two.is_some() && count(a).is_none());
        let three = count(b);
        assert!(three.is_some());
        drop(one);
        assert!(count(a).is_some());
    }

    #[test]
    fn there_are_as_many_places_as_it_says() {
        let clients = Clients::new(2, None, 2);
        let one = clients.take_place();
        let two = clients.take_place();
        assert!(one.is_some() && two.is_some() && clients.take_place().is_none() && clients.is_full());
        drop(one);
        assert!(clients.take_place().is_some());
    }
}
