//! Names of origins: `addr="host:port"` is resolved again when its answer's TTL ends, on a thread of its own.
//!
//! No loop ever waits for it: loops begin with what is known after a while ([`fixed::DNS_START_NS`]) and receive every
//! change by message. [`follow`] decides what an answer, or none, means; [`system`] asks `/etc/hosts` and the name servers
//! of `resolv.conf`. Literal addresses do not pass through here. The thread, one for all names ([`thread`]), begins with the
//! first of them.

mod follow;
mod system;
mod thread;

use crate::log::ErrorLog;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thread::Batch;
use weir_net::io::clock::Clock;
use weir_plan::address::Address;
use weir_plan::serving::{Role, Serving};
use weir_plan::{Point, Spec, fixed};
use weir_stats::Key;

pub(crate) use thread::Resolver;

/// How long the first result of new names is waited for when a list of members has them: other fleets wait as well.
pub(crate) const MEMBERS_WAIT: Duration = Duration::from_millis(250);

/// The same when a file is read.
pub(crate) const FILE_WAIT: Duration = Duration::from_nanos(fixed::DNS_START_NS);

/// The names of a plan.
#[derive(Clone, Default)]
pub(crate) struct Names {
    /// By host; a host has few ports.
    names: BTreeMap<String, Vec<Arc<Name>>>,
    /// The number of names that were ever followed: each has its own number.
    ever: u32,
}

/// A name that is followed while any plan has it.
#[derive(Debug)]
pub(crate) struct Name {
    /// Its number in messages to loops.
    pub number: u32,
    host: String,
    port: u16,
    addresses: Mutex<Arc<[SocketAddr]>>,
}

impl Name {
    /// Its known addresses; there may be none.
    pub fn addresses(&self) -> Arc<[SocketAddr]> {
        self.known().clone()
    }

    fn known(&self) -> MutexGuard<'_, Arc<[SocketAddr]>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What following names needs.
#[derive(Clone)]
pub(crate) struct Following {
    /// A name server in place of the system's.
    pub nameserver: Option<SocketAddr>,
    pub clock: Clock,
    pub draw: Key,
    pub audience: Arc<dyn Audience>,
    pub errors: Arc<ErrorLog>,
    /// The thread that resolves.
    pub resolver: Resolver,
}

/// Receives new addresses of names: all threads that connect.
pub(crate) trait Audience: Send + Sync {
    /// Sends the new addresses of a name.
    fn tell(&self, name: u32, addresses: &Arc<[SocketAddr]>);

    /// Whether any thread still listens.
    fn is_there(&self) -> bool;
}

impl Names {
    /// The names of another plan: those that stay are still followed, new ones start to be. `patience`: how long it waits
    /// for the first results of new names.
    pub fn update(
        &self,
        point: &Point,
        serving: &Serving,
        following: &Following,
        patience: Duration,
    ) -> io::Result<Names> {
        let mut names = Names { names: BTreeMap::new(), ever: self.ever };
        let mut new = Vec::new();
        let served = point.nodes.iter().zip(&serving.roles).filter(|(_, role)| **role == Role::Proxy);
        for (node, _) in served {
            if let Spec::Server { addr: Some(addr), .. } = &point.specs[node.spec as usize]
                && let Some(Address::Name(host, port)) = Address::parse(addr)
                && names.get(&host, port).is_none()
            {
                let name = self.get(&host, port).cloned().unwrap_or_else(|| {
                    names.ever += 1;
                    let addresses = Mutex::new(Arc::from([]));
                    let name = Arc::new(Name { number: names.ever - 1, host, port, addresses });
                    new.push(name.clone());
                    name
                });
                names.names.entry(name.host.clone()).or_default().push(name);
            }
        }
        if !new.is_empty() {
            follow(&new, following, patience)?;
        }
        Ok(names)
    }

    /// Finds a name.
    pub fn get(&self, host: &str, port: u16) -> Option<&Arc<Name>> {
        self.names.get(host)?.iter().find(|name| name.port == port)
    }
}

/// Starts to follow names, and waits a while for the first result of each.
fn follow(names: &[Arc<Name>], following: &Following, patience: Duration) -> io::Result<()> {
    let (first, answers) = channel();
    following.resolver.give(Batch { names: names.iter().map(Arc::downgrade).collect(), first }, following)?;
    let end = Instant::now() + patience;
    let mut waited: BTreeMap<u32, &Arc<Name>> = names.iter().map(|name| (name.number, name)).collect();
    while !waited.is_empty() {
        let Ok(heard) = answers.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
        waited.remove(&heard);
    }
    for name in waited.values() {
        following.errors.note(|| {
            format!(
                "warning: the name {} of a server is not resolved yet: the server is down until then",
                name.host
            )
        });
    }
    Ok(())
}
