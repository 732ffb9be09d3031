//! How a thread gets its graph: the first one, and those of reloads (`docs/spec/operating.md#reload`).
//!
//! The owner of the process's state adopts a new generation first and passes it on to the loops in the mail that
//! carries news of health: news before it belongs to the old generation, news after it to the new one.

use crate::accept;
use crate::exchange::abort::AbortFlag;
use crate::graph::Graph;
use crate::graph::builder::{Builder, Draft};
use crate::nodes::Id;
use crate::sync::channel::Sender;
use crate::sync::discards::Slice;
use crate::sync::slices::{AT_ONCE, Pauses, Slices};
use crate::threads::admission::Admission;
use crate::threads::event_loop::Loop;
use crate::threads::generation::{Generation, Maker, Reload};
use crate::threads::mail::ToLoop;
use crate::transport::listener::{Listener, ListenerConfig, ListenerLogs};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::TargetId;

/// Steps between two looks at the clock: most take some microseconds at most, a new balancer more.
const BUILT_AT_ONCE: usize = 8;

/// Builds a thread's graph in slices, between which requests are served. The reload adopts it later.
pub(crate) fn prepare(lp: &Rc<Loop>, generation: Arc<Generation>, done: Sender<()>) {
    let draft = Rc::<Draft>::default();
    lp.set_draft(generation.blueprint.epoch, draft.clone());
    let own = lp.clone();
    lp.core.runtime.spawn(async move {
        let pauses = Pauses::new(&own.core);
        // A reload that could not wait has taken it.
        while own.has_draft(&draft) && build_slice(&own, &generation, &draft, &pauses) == Some(false) {
            // What a slice has freed would else be merged when the graph is adopted, that of all slices at once.
            weir_memory::merge_freed();
            pauses.pause().await;
        }
        weir_memory::merge_freed();
        // Before the thread that began this may free it.
        drop(generation);
        let _ = done.send(());
    });
}

/// A thread's first graph.
pub(crate) fn build_first(lp: &Rc<Loop>, generation: &Generation) -> Option<Rc<Graph>> {
    build(lp, generation, &Rc::default())
}

/// A thread's graph of a generation, as far as it is not in the draft already; the balancers that the thread has get their
/// targets of it by [`Draft::adopt`].
fn build(lp: &Rc<Loop>, generation: &Generation, draft: &Draft) -> Option<Rc<Graph>> {
    let graph = with_builder(lp, generation, draft, |builder| {
        while !builder.advance(usize::MAX) {}
        builder.graph()
    });
    graph.map(Rc::new)
}

/// Builds for the length of a slice; returns whether all is built. `None`: the thread builds nothing.
fn build_slice(lp: &Rc<Loop>, generation: &Generation, draft: &Draft, pauses: &Pauses<'_>) -> Option<bool> {
    with_builder(lp, generation, draft, |builder| {
        (0..AT_ONCE / BUILT_AT_ONCE)
            .map(|_| builder.advance(BUILT_AT_ONCE))
            .find(|is_built| *is_built || pauses.is_due())
            .unwrap_or(false)
    })
}

fn with_builder<T>(
    lp: &Rc<Loop>,
    generation: &Generation,
    draft: &Draft,
    act: impl FnOnce(&Builder<'_>) -> T,
) -> Option<T> {
    let Maker { thread, owner, room } = lp.maker()?;
    let process = &lp.process;
    let listeners: Vec<_> = generation.confs.iter().map(|(number, conf)| (*number, conf.node)).collect();
    Some(act(&Builder {
        blueprint: &generation.blueprint,
        core: &lp.core,
        thread: *thread,
        state: &lp.state,
        newest: &lp.newest,
        targets: &lp.targets,
        owner,
        names: &generation.names,
        built_in: &process.built_in,
        token: process.token,
        tls: &generation.certificates.origins,
        room,
        in_run: process.run.is_some(),
        records: process.run.clone().filter(|run| run.records),
        doubts: process.run.clone().filter(|run| run.has_doubts()),
        number: lp.number,
        listeners: &listeners,
        discards: &lp.discards,
        before: lp.graph(),
        draft,
    }))
}

/// Ends requests at removed targets when `drain_timeout` is over: no target is blamed. In a verification they go on until
/// their answers have come, as in the simulation.
fn end_later(lp: &Rc<Loop>, gone: Vec<(Id, TargetId, AbortFlag)>) {
    if gone.is_empty() || lp.process.run.is_some() {
        return;
    }
    let (core, discards) = (lp.core.clone(), lp.discards.clone());
    let timeout_ns = lp.drain_timeout_ns();
    lp.core.runtime.spawn(async move {
        core.timers.after(timeout_ns).await;
        let slices = Slices::new(&core.runtime);
        for (_, _, abort) in &gone {
            slices.step().await;
            abort.set(true);
        }
        // A request that waits for an origin waits for a deadline as well.
        core.deadlines.wake_all();
        discards.put(gone, Slice::Memory);
    });
}

/// The listeners of a generation as one loop sees them.
pub(crate) fn listeners(lp: &Loop, generation: &Generation) -> BTreeMap<usize, (Rc<Listener>, Admission)> {
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

/// Closes the idle connections of targets to which no way leads any more, and keeps those of targets to which one leads again.
fn retire(lp: &Rc<Loop>, graph: &Graph, before: Option<&Graph>) {
    let (blueprint, is_built_in) = (&graph.blueprint, lp.number == lp.process.built_in());
    if let (false, Some(sharing), Some(before)) = (is_built_in, &blueprint.sharing, before)
        && sharing.epoch() == before.blueprint.epoch
        && lp.targets.retire_changed(&lp.core.runtime, &sharing.gained, &sharing.lost)
    {
        return;
    }
    let reached = if is_built_in { graph.reached_inside().into() } else { blueprint.reached.clone() };
    let (own, pass) = (lp.clone(), lp.targets.begin_pass());
    let retires = async move { own.targets.retire_but(&own.core, pass, &reached).await };
    lp.core.runtime.spawn(retires);
}

/// Adopts a generation: on the owner's thread, a loop's, or that of the built-in servers.
pub(crate) fn adopt(lp: &Rc<Loop>, reload: Reload) {
    let Reload { generation, sockets, own, mut seen, done } = reload;
    let draft = lp.take_draft(generation.blueprint.epoch).unwrap_or_default();
    let Some(graph) = build(lp, &generation, &draft) else { return };
    let before = lp.graph();
    lp.set_graph(graph.clone());
    if lp.number != lp.process.built_in() {
        let removed = lp.set_listeners(listeners(lp, &generation));
        accept::drain::begin(lp, removed);
    }
    let now_ns = lp.core.now();
    let gone = if let Some(monitor) = lp.monitor() {
        // The monitor comes first, by the flags that the graph's balancers have already: its view of the targets comes with
        // them, and the owner's own balancers go through all of them once.
        let health = monitor.adopt(graph.clone());
        let gone = draft.adopt(now_ns, health.iter().map(|(id, health)| (*id, health)));
        let update = |(id, health)| Some((id, graph.lb(id)?.follow_first(health)));
        seen = health.into_iter().filter_map(update).collect();
        gone
    } else {
        let gone = draft.adopt(now_ns, seen.iter().map(|(id, seen)| (*id, &seen.health)));
        for (id, seen) in &seen {
            if let Some(lb) = graph.lb(*id) {
                lb.follow(seen);
            }
        }
        gone
    };
    end_later(lp, gone);
    retire(lp, &graph, before.as_deref());
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
    // Before the thread that began this may free it; that may have ended.
    drop(generation);
    let _ = done.send(());
}
