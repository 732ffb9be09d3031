//! The hash of a plan: over its meaning (places included), not over lines, comments, labels or paths.

use crate::fleets::compact;
use crate::{
    Change, Edge, Faulty, Fleet, FleetSource, Lb, Listen, Node, Origin, Plan, Point, Scenario, Spec,
    TlsClient,
};
use serde::Serialize;
use std::io::{self, Write};
use weir_model::process::Life;
use weir_model::{Dist, Traffic};

/// A hasher as a writer.
struct Sink(blake3::Hasher);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    /// A value as JSON with a terminator, so that no two sequences of values run together.
    fn put(&mut self, value: &impl Serialize) {
        // Writing to a hasher does not fail, and plans hold nothing that JSON lacks.
        let written = serde_json::to_writer(&mut *self, value);
        debug_assert!(written.is_ok());
        self.0.update(b"\n");
    }
}

/// The hash of a plan, 32 hexadecimal digits.
pub fn plan_hash(plan: &Plan) -> String {
    let mut sink = Sink(blake3::Hasher::new());
    sink.put(&plan.schema);
    sink.put(&plan.points.len());
    for point in plan.points.iter().map(compact) {
        hash_point(point, &mut sink);
    }
    sink.0.finalize().to_hex().as_str()[..32].to_owned()
}

/// The hash of what a scenario's requests are: their arrivals and kinds, their number (`requests` overrides that of the
/// file) and duration, and the seed. Replication r of two scenarios with one hash has the same requests.
pub fn requests_hash(scenario: &Scenario, requests: Option<u64>, seed: u64) -> String {
    let mut sink = Sink(blake3::Hasher::new());
    let Scenario { traffic, mix, recorded, duration_ns, .. } = scenario;
    sink.put(&(seed, bare_traffic(traffic), mix, recorded, requests.or(scenario.requests), duration_ns));
    sink.0.finalize().to_hex().as_str()[..32].to_owned()
}

/// Traffic without the paths of its files.
fn bare_traffic(traffic: &Traffic) -> Traffic {
    match traffic {
        Traffic::Renewal { gap } => Traffic::Renewal { gap: bare(gap) },
        Traffic::Closed { users, think } => Traffic::Closed { users: *users, think: bare(think) },
        Traffic::Trace { arrivals_ns, .. } => {
            Traffic::Trace { file: String::new(), arrivals_ns: arrivals_ns.clone() }
        }
        other => other.clone(),
    }
}

/// A fleet without its name in words, its location and the paths of its source.
fn bare_fleet(fleet: &Fleet) -> Fleet {
    let bare_source =
        |source: &FleetSource| FleetSource { from: source.from.without_paths(), ..source.clone() };
    let source = fleet.source.as_ref().map(bare_source);
    let life = fleet.life.as_ref().map(|life| Life { boot: bare(&life.boot), ..life.clone() });
    let (label, span) = (String::new(), String::new());
    Fleet { label, span, lag: bare(&fleet.lag), source, life, ..fleet.clone() }
}

/// A server that shares its cores, without the name of a file of its work.
fn bare_server(spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    if let Spec::Concurrent { work, .. } = &mut spec {
        *work = bare(work);
    }
    spec
}

fn hash_point(point: &Point, sink: &mut Sink) {
    sink.put(&point.params);
    sink.put(&point.places);
    let sites: Vec<u32> = point.sites.iter().map(|s| s.place).collect();
    sink.put(&sites);
    for spec in &point.specs {
        match spec {
            Spec::Delay { time } => sink.put(&("delay", bare(time))),
            Spec::Cable { time, loss, resend_ns } => sink.put(&("cable", bare(time), loss, resend_ns)),
            Spec::Concurrent { .. } => sink.put(&bare_server(spec)),
            Spec::Faulty(fault) if fault.up.is_some() || fault.down.is_some() => {
                let plain = Faulty { up: None, down: None, ..fault.clone() };
                sink.put(&("faulty", plain, fault.up.as_ref().map(bare), fault.down.as_ref().map(bare)));
            }
            Spec::Lb(lb) if lb.sticky_key.is_some() => {
                sink.put(&Spec::Lb(Lb { sticky_key: Some(String::new()), ..lb.clone() }));
            }
            Spec::Listen(listen) if let Some(tls) = &listen.tls => {
                sink.put(&Spec::Listen(Listen { tls: Some(tls.without_paths()), ..listen.clone() }));
            }
            Spec::Server { addr, model, origin } if origin.tls.is_some() || origin.connect.is_some() => {
                let tls = origin.tls.as_ref().map(TlsClient::without_paths);
                let origin = Origin { tls, connect: origin.connect.as_ref().map(bare), ..origin.clone() };
                sink.put(&Spec::Server { addr: addr.clone(), model: *model, origin });
            }
            Spec::Fleet(fleet) => sink.put(&Spec::Fleet(bare_fleet(fleet))),
            other => sink.put(other),
        }
    }
    sink.put(&point.lists);
    for node in &point.nodes {
        hash_node(node, sink);
    }
    for s in &point.scenarios {
        sink.put(&(
            &s.name,
            s.root,
            bare_traffic(&s.traffic),
            &s.mix,
            s.requests,
            s.duration_ns,
            s.window,
            s.deadline_ns,
            s.patience_ns,
        ));
        if let Some(recorded) = &s.recorded {
            sink.put(recorded);
        }
        if let Some(every_ns) = s.every_ns {
            sink.put(&("every", every_ns));
        }
        for change in &s.events {
            sink.put(&Change { span: String::new(), ..change.clone() });
        }
    }
    for e in &point.expectations {
        let conditions: Vec<_> = e.conditions.iter().map(|c| (c.metric, c.is, c.bound)).collect();
        sink.put(&("expect", &e.scenario, &e.node, conditions));
    }
}

/// A node in binary: there may be millions.
fn hash_node(node: &Node, sink: &mut Sink) {
    let (tag, target) = match node.to {
        Edge::None => (0u8, 0),
        Edge::Node(id) => (1, id),
        Edge::List(id) => (2, id),
    };
    let mut bytes = [0u8; 17];
    bytes[..4].copy_from_slice(&node.site.to_le_bytes());
    bytes[4..8].copy_from_slice(&node.spec.to_le_bytes());
    bytes[8] = tag;
    bytes[9..13].copy_from_slice(&target.to_le_bytes());
    let length = node.name.as_ref().map_or(u32::MAX, |n| u32::try_from(n.len()).unwrap_or(u32::MAX - 1));
    bytes[13..].copy_from_slice(&length.to_le_bytes());
    sink.0.update(&bytes);
    if let Some(name) = &node.name {
        sink.0.update(name.as_bytes());
    }
}

/// A distribution without the name of the file that its values came from.
fn bare(dist: &Dist) -> Dist {
    match dist {
        Dist::Empirical { values_ns, .. } => Dist::Empirical { source: None, values_ns: values_ns.clone() },
        Dist::Sum { a, b } => Dist::Sum { a: Box::new(bare(a)), b: Box::new(bare(b)) },
        Dist::Rounded { of, to_ns } => Dist::Rounded { of: Box::new(bare(of)), to_ns: *to_ns },
        other => other.clone(),
    }
}
