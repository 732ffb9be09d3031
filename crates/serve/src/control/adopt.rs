//! How a thread comes to its graph: the first one, and those of files that were read again (`docs/spec/operating.md#reload`).
//!
//! The owner of the process's state adopts a new generation first and passes it on to the loops in the mail by which it tells them of
//! health: what they hear before belongs to the old generation, what comes after it to the new one.

use super::accept;
use super::admission::Admission;
use super::certificates::Certificates;
use super::event_loop::Loop;
use super::mailbox::ToLoop;
use crate::exchange::NodeId;
use crate::exchange::abort::AbortFlag;
use crate::graph::Graph;
use crate::graph::blueprint::Blueprint;
use crate::graph::builder::{Builder, Thread};
use crate::log::AccessLog;
use crate::nodes::Id;
use crate::nodes::lb::{HealthUpdate, Owner};
use crate::transport::listener::{Listener, ListenerConfig, ListenerLogs, OwnProcessTrust};
use crate::transport::listening::LoopSocket;
use crate::transport::own::InnerAddress;
use crate::upstream::names::Names;
use crate::upstream::server::MakesRoom;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use weir_net::transport::tls;
use weir_plan::Listen;

/// A listener as all loops see it.
pub(super) struct Conf {
    pub name: String,
    pub listen: Listen,
    pub node: NodeId,
    pub port: Option<u16>,
    /// How many listeners stand before it, and of one behind others: whom it believes.
    pub level: u32,
    pub inner: Option<OwnProcessTrust>,
    /// Loops that accept there.
    pub loops: usize,
    /// Where it is reached from this process.
    pub reached: Option<InnerAddress>,
    pub tls: Option<Arc<tls::Server>>,
    pub admission: Admission,
    pub log: Option<AccessLog>,
    pub traces: Option<AccessLog>,
}

/// A file as it is served, from when it was read.
pub(super) struct Generation {
    pub blueprint: Arc<Blueprint>,
    pub names: Arc<Names>,
    pub certificates: Arc<Certificates>,
    /// Its listeners, by number.
    pub confs: BTreeMap<usize, Conf>,
}

/// How the graphs of a thread are built.
pub(crate) struct Maker {
    pub thread: Thread,
    pub owner: Owner,
    pub room: Rc<dyn MakesRoom>,
}

/// A new generation on its way to a thread.
pub(crate) struct Reload {
    pub(super) generation: Arc<Generation>,
    /// Sockets of new listeners, by their numbers: of each loop, and of this one.
    pub(super) sockets: Vec<Vec<(usize, LoopSocket)>>,
    pub(super) own: Vec<(usize, LoopSocket)>,
    /// What the owner knows of the health of each balancer in it.
    pub(super) seen: Vec<(Id, Arc<HealthUpdate>)>,
    /// Told by each loop that has adopted it.
    pub(super) done: Sender<()>,
}

/// Builds a thread's graph of a generation. What of its balancers' targets is gone has their `drain_timeout` to end.
pub(super) fn build(lp: &Rc<Loop>, generation: &Generation) -> Option<Rc<Graph>> {
    let Maker { thread, owner, room } = lp.maker()?;
    let process = &lp.process;
    let gone = RefCell::default();
    let listeners: Vec<_> = generation.confs.iter().map(|(number, conf)| (*number, conf.node)).collect();
    let builder = Builder {
        blueprint: &generation.blueprint,
        core: &lp.core,
        thread: *thread,
        state: &lp.state,
        targets: &lp.targets,
        owner,
        names: &generation.names,
        built_in: &process.built_in,
        token: process.token,
        tls: &generation.certificates.origins,
        room,
        in_run: process.run.is_some(),
        records: process.run.clone().filter(|run| run.records),
        number: lp.number,
        listeners: &listeners,
        gone: &gone,
    };
    let graph = Rc::new(builder.graph());
    end_later(lp, gone.into_inner());
    Some(graph)
}

/// Requests at targets that are gone end as `drain_timeout` is over: nobody is blamed.
fn end_later(lp: &Rc<Loop>, gone: Vec<(Id, u32, AbortFlag)>) {
    if gone.is_empty() {
        return;
    }
    let core = lp.core.clone();
    let timeout_ns = lp.drain_timeout_ns();
    lp.core.runtime.spawn(async move {
        core.timers.after(timeout_ns).await;
        gone.iter().for_each(|(_, _, abort)| abort.set(true));
        // Whoever waits for an origin waits for a deadline as well.
        core.deadlines.wake_all();
    });
}

/// The listeners of a generation as one loop sees them.
pub(super) fn listeners(lp: &Loop, generation: &Generation) -> BTreeMap<usize, (Rc<Listener>, Admission)> {
    let mut listeners: BTreeMap<usize, (Rc<Listener>, Admission)> = BTreeMap::new();
    for (number, conf) in &generation.confs {
        let others =
            || listeners.values().flat_map(|(listener, _)| listener.log.iter().chain(&listener.traces));
        let log = conf.log.as_ref().map(|log| log.on_loop(lp.number, others()));
        let traces = conf.traces.as_ref().map(|to| to.on_loop(lp.number, others().chain(&log)));
        let logs = ListenerLogs { access: log, traces, errors: lp.process.errors.clone() };
        let config = ListenerConfig {
            name: &conf.name,
            addr: &conf.listen.addr,
            http: &conf.listen.http,
            port: conf.port,
            tls: conf.tls.clone(),
        };
        let listener = Listener {
            level: conf.level,
            inner: conf.inner.clone(),
            counts: lp.state.metrics.listener(&conf.name),
            ..Listener::new(*number, &config, logs, lp.process.run.clone())
        };
        listeners.insert(*number, (Rc::new(listener), conf.admission.clone()));
    }
    listeners
}

/// Takes a generation over: on the owner's thread, a loop's, or that of the built-in servers.
pub(super) fn adopt(lp: &Rc<Loop>, reload: Reload) {
    let Reload { generation, sockets, own, mut seen, done } = reload;
    let Some(graph) = build(lp, &generation) else { return };
    lp.has_graph(graph.clone());
    if lp.number != lp.process.built_in() {
        lp.has_listeners(listeners(lp, &generation));
    }
    if let Some(monitor) = lp.monitor() {
        seen = monitor.adopt(graph.clone(), &lp.state.metrics);
    } else {
        for (id, seen) in &seen {
            if let Some(lb) = graph.lb(*id) {
                lb.follow(seen);
            }
        }
    }
    lp.targets.retire_but(&graph.reached());
    for (number, socket) in own {
        match socket.watch(&lp.core.runtime) {
            Ok(socket) => accept::begin(lp, number, socket),
            Err(e) => lp.process.errors.cannot_accept(&e),
        }
    }
    if lp.number == lp.process.owner() {
        for (number, own) in (0..).zip(sockets) {
            let (generation, seen, done) = (generation.clone(), seen.clone(), done.clone());
            let reload = Reload { generation, sockets: Vec::new(), own, seen, done };
            lp.process.tell(number, ToLoop::Reload(Box::new(reload)));
        }
    }
    // Who began this may have gone.
    let _ = done.send(());
}
