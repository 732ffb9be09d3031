//! Names of origins: `addr="host:port"` is resolved again when its answer's TTL ends, on a thread of its own.
//!
//! No loop ever waits for it: loops begin with what is known after [`fixed::DNS_START_NS`], and are told of every change by
//! message.
//! [`follow`] says what an answer, or none, means; [`system`] asks `/etc/hosts` and the name servers of `resolv.conf`.
//! Literal addresses never come here. The thread is there only where a file has names.

mod follow;
mod system;

use crate::log::ErrorLog;
use follow::{Follow, Step};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use system::System;
use weir_net::io::clock::Clock;
use weir_stats::Key;
use weir_topology::address::Address;
use weir_topology::plan::{Point, Spec, fixed};
use weir_topology::serving::{Role, Serving};

/// The names of a plan.
#[derive(Default)]
pub(crate) struct Names {
    /// In order of their first mention: host, port, and what was known at the start.
    names: Vec<(String, u16, Arc<[SocketAddr]>)>,
}

/// Who is told of names' addresses: all threads that connect.
pub(crate) trait Audience: Send + Sync {
    /// A name has these addresses now.
    fn tell(&self, name: u32, addresses: &Arc<[SocketAddr]>);

    /// Whether anybody is there.
    fn is_there(&self) -> bool;
}

impl Names {
    /// Begins to resolve all names of a plan. `nameserver`: in place of the system's.
    pub fn start(
        point: &Point,
        serving: &Serving,
        nameserver: Option<SocketAddr>,
        clock: Clock,
        draw: Key,
        audience: Arc<dyn Audience>,
        errors: &Arc<ErrorLog>,
    ) -> io::Result<Names> {
        let mut names = Names::default();
        let served = point.nodes.iter().zip(&serving.roles).filter(|(_, role)| **role == Role::Proxy);
        for (node, _) in served {
            if let Spec::Server { addr: Some(addr), .. } = &point.specs[node.spec as usize]
                && let Some(Address::Name(host, port)) = Address::parse(addr)
                && names.find(&host, port).is_none()
            {
                names.names.push((host, port, Arc::from([])));
            }
        }
        if names.names.is_empty() {
            return Ok(names);
        }
        let (first, answers) = channel();
        let hosts: Vec<(String, u16)> =
            names.names.iter().map(|(host, port, _)| (host.clone(), *port)).collect();
        let count = hosts.len();
        let said = errors.clone();
        std::thread::Builder::new().name("weir-names".to_owned()).spawn(move || {
            // Without a runtime nothing is resolved; that there are no descriptors left shows elsewhere first.
            let _ = run(&hosts, nameserver, clock, draw, &audience, &first, &said);
        })?;
        names.wait(&answers, count, errors);
        Ok(names)
    }

    /// Waits for the first word on each name, for a while.
    fn wait(
        &mut self,
        answers: &std::sync::mpsc::Receiver<(u32, Arc<[SocketAddr]>)>,
        count: usize,
        errors: &ErrorLog,
    ) {
        let end = Instant::now() + Duration::from_nanos(fixed::DNS_START_NS);
        let mut heard = vec![false; count];
        while heard.contains(&false) {
            let Ok((name, list)) = answers.recv_timeout(end.saturating_duration_since(Instant::now())) else {
                break;
            };
            heard[name as usize] = true;
            self.names[name as usize].2 = list;
        }
        for ((host, ..), _) in self.names.iter().zip(heard).filter(|(_, heard)| !heard) {
            errors.note(|| {
                format!("warning: the name {host} of a server is not resolved yet: it is down until then")
            });
        }
    }

    fn find(&self, host: &str, port: u16) -> Option<usize> {
        self.names.iter().position(|(h, p, _)| h == host && *p == port)
    }

    /// The number of a name, and its addresses at the start.
    pub fn of(&self, host: &str, port: u16) -> Option<(u32, &[SocketAddr])> {
        let at = self.find(host, port)?;
        Some((at as u32, &self.names[at].2))
    }
}

/// Resolves for ever, or until no loop listens.
fn run(
    hosts: &[(String, u16)],
    nameserver: Option<SocketAddr>,
    clock: Clock,
    draw: Key,
    audience: &Arc<dyn Audience>,
    first: &Sender<(u32, Arc<[SocketAddr]>)>,
    errors: &Arc<ErrorLog>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let system = Rc::new(System::new(nameserver));
    let tasks: Vec<_> = (0u32..)
        .zip(hosts)
        .map(|(name, (host, port))| {
            let one = One {
                name,
                host: host.clone(),
                port: *port,
                clock,
                audience: audience.clone(),
                first: first.clone(),
                errors: errors.clone(),
            };
            local.spawn_local(one.follow(system.clone(), draw.with(u64::from(name))))
        })
        .collect();
    runtime.block_on(local.run_until(async move {
        for task in tasks {
            // One that has failed is no reason not to go on with the others.
            let _ = task.await;
        }
    }));
    Ok(())
}

/// One name.
struct One {
    name: u32,
    host: String,
    port: u16,
    clock: Clock,
    audience: Arc<dyn Audience>,
    first: Sender<(u32, Arc<[SocketAddr]>)>,
    errors: Arc<ErrorLog>,
}

impl One {
    async fn follow(self, system: Rc<System>, draw: Key) {
        let mut state = Follow::new(draw);
        while self.audience.is_there() {
            let heard = system.lookup(&self.host).await;
            let Step { addresses, wait_ns, word } = state.heard(self.clock.now(), heard);
            if let Some(list) = addresses {
                let list: Arc<[SocketAddr]> = list.iter().map(|ip| SocketAddr::new(*ip, self.port)).collect();
                self.audience.tell(self.name, &list);
                let _ = self.first.send((self.name, list));
            } else {
                let _ = self.first.send((self.name, Arc::from([])));
            }
            if let Some(word) = word {
                self.errors.note(|| format!("warning: the name {} of a server {word}", self.host));
            }
            tokio::time::sleep(Duration::from_nanos(wait_ns)).await;
        }
    }
}
