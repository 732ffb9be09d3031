//! Names of origins: `addr="host:port"` is resolved again when its answer's TTL ends, on a thread of its own.
//!
//! No loop ever waits for it: loops begin with what is known after [`fixed::DNS_START_NS`] and receive every change
//! by message. [`follow`] decides what an answer, or none, means; [`system`] asks `/etc/hosts` and the name servers
//! of `resolv.conf`. Literal addresses do not pass through here. The thread exists only if a file has names.

mod follow;
mod system;

use crate::log::ErrorLog;
use follow::{Follow, Step};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use system::System;
use weir_net::io::clock::Clock;
use weir_plan::address::Address;
use weir_plan::serving::{Role, Serving};
use weir_plan::{Point, Spec, fixed};
use weir_stats::Key;

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
}

/// Receives new addresses of names: all threads that connect.
pub(crate) trait Audience: Send + Sync {
    /// Sends the new addresses of a name.
    fn tell(&self, name: u32, addresses: &Arc<[SocketAddr]>);

    /// Whether any thread still listens.
    fn is_there(&self) -> bool;
}

impl Names {
    /// The names of another plan: those that stay are still followed, new ones start to be, and it waits a while for
    /// those.
    pub fn update(&self, point: &Point, serving: &Serving, following: &Following) -> io::Result<Names> {
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
            follow(&new, following)?;
        }
        Ok(names)
    }

    /// Finds a name.
    pub fn get(&self, host: &str, port: u16) -> Option<&Arc<Name>> {
        self.names.get(host)?.iter().find(|name| name.port == port)
    }
}

/// Starts to follow names, and waits a while for the first result of each.
fn follow(names: &[Arc<Name>], following: &Following) -> io::Result<()> {
    let (first, answers) = channel();
    let followed: Vec<Weak<Name>> = names.iter().map(Arc::downgrade).collect();
    let own = following.clone();
    std::thread::Builder::new().name("weir-names".to_owned()).spawn(move || {
        // Without a runtime nothing is resolved; missing descriptors show elsewhere first.
        let _ = run(followed, &own, &first);
    })?;
    let end = Instant::now() + Duration::from_nanos(fixed::DNS_START_NS);
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

/// Resolves until no plan has the names any more, or no loop listens.
fn run(names: Vec<Weak<Name>>, following: &Following, first: &Sender<u32>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let system = Rc::new(System::new(following.nameserver));
    let one = |name| One { name, following: following.clone(), first: first.clone() };
    let tasks: Vec<_> =
        names.into_iter().map(|name| local.spawn_local(one(name).follow(system.clone()))).collect();
    runtime.block_on(local.run_until(async move {
        for task in tasks {
            // A failed task does not stop the others.
            let _ = task.await;
        }
    }));
    Ok(())
}

/// One name.
struct One {
    name: Weak<Name>,
    following: Following,
    first: Sender<u32>,
}

impl One {
    async fn follow(self, system: Rc<System>) {
        let Following { draw, clock, audience, errors, .. } = &self.following;
        let Some(number) = self.name.upgrade().map(|name| name.number) else { return };
        let mut state = Follow::new(draw.with(u64::from(number)));
        while audience.is_there()
            && let Some(name) = self.name.upgrade()
        {
            let heard = system.lookup(&name.host).await;
            let Step { addresses, wait_ns, word } = state.heard(clock.now(), heard);
            if let Some(list) = addresses {
                let list: Arc<[SocketAddr]> = list.iter().map(|ip| SocketAddr::new(*ip, name.port)).collect();
                list.clone_into(&mut name.known());
                audience.tell(number, &list);
            }
            let _ = self.first.send(number);
            if let Some(word) = word {
                errors.note(|| format!("warning: the name {} of a server {word}", name.host));
            }
            drop(name);
            tokio::time::sleep(Duration::from_nanos(wait_ns)).await;
        }
    }
}
