//! A point with what a machine adds: a delay before the scenario's first node, one before each server, one before each
//! node at which requests wait for a timer. They are nodes at places of their own, so they change no draw.
//!
//! The length of a hop to a server and the lateness of a timer are drawn afresh in each *turn*: where requests depend
//! on each other, a tenth of a millisecond changes the rest of a run. The prediction is the mean over such turns, not a
//! single one. The hop to a router is constant, so that requests arrive in the order in which they were sent.

use crate::calibrate::Calibration;
use crate::prepare::Arrangement;
use std::collections::BTreeMap;
use weir_model::Dist;
use weir_plan::insert::{self, Inserted};
use weir_plan::{Mode, NodeId, Point, Scenario, Spec};
use weir_workload::reachable;

/// The `def` of such a node: no file can have it.
const DEF: &str = "<machine>";

/// A point with other draws of its hops; turn 0 is the point itself.
pub(crate) fn turned(mut point: Point, turn: u32) -> Point {
    if turn > 0 {
        let places = point.places.iter_mut().filter(|place| place.def == DEF);
        places.for_each(|place| place.def = format!("{DEF} {turn}"));
    }
    point
}

/// A point to simulate, and where the nodes of the original point are in it.
#[derive(Clone, Debug)]
pub(crate) struct CalibratedPoint {
    pub point: Point,
    /// The servers, by their numbers in the original point.
    pub nodes: BTreeMap<NodeId, NodeId>,
}

impl CalibratedPoint {
    fn now(&self, id: NodeId) -> NodeId {
        self.nodes.get(&id).copied().unwrap_or(id)
    }
}

/// Puts the hops of a scenario in.
pub(crate) fn with_hops(
    point: &Point,
    scenario: &Scenario,
    prepared: &Arrangement,
    calibration: &Calibration,
) -> CalibratedPoint {
    let servers = &prepared.servers;
    let timed = before(point, &timers(point, scenario.root, calibration));
    let hop = drawn(calibration, calibration.server_hop_ns);
    let mut later: Vec<(NodeId, Spec)> = servers.iter().map(|id| (timed.now(*id), hop.clone())).collect();
    later.sort_by_key(|(id, _)| *id);
    let mut slowed = before(&timed.point, &later);
    slowed.nodes = prepared.compared().map(|id| (id, slowed.now(timed.now(id)))).collect();
    let hop = Spec::Delay { time: fixed(calibration.client_hop_ns) };
    insert::before_root(&mut slowed.point, &scenario.name, hop, DEF);
    let connect = calibration.connect_ns.max(0.0) as u64;
    for spec in &mut slowed.point.specs {
        if let Spec::Server { origin, .. } = spec {
            origin.connect.get_or_insert(Dist::Fixed { ns: connect });
        }
    }
    slowed
}

/// How long a hop with this median takes: as the hops to a router vary, so do all.
fn drawn(calibration: &Calibration, median_ns: f64) -> Spec {
    let median = calibration.client_hop_ns;
    let [first, .., last] = calibration.client_deciles_ns;
    if first >= last || median <= 0.0 {
        return Spec::Delay { time: fixed(median_ns) };
    }
    let values = calibration.client_deciles_ns.map(|ns| (ns * median_ns / median).max(0.0) as u64);
    Spec::Delay { time: Dist::Empirical { source: None, values_ns: values.into() } }
}

/// One and a half times as long at most, and half as long at least.
fn about(ns: f64) -> Dist {
    let ns = ns.max(0.0) as u64;
    if ns < 2 { fixed(ns as f64) } else { Dist::Uniform { low_ns: ns / 2, high_ns: ns + ns / 2 } }
}

fn fixed(ns: f64) -> Dist {
    Dist::Fixed { ns: ns.max(0.0) as u64 }
}

/// The nodes of a scenario that wait for timers, in order, and by how much longer.
fn timers(point: &Point, root: NodeId, calibration: &Calibration) -> Vec<(NodeId, Spec)> {
    let nothing = Dist::Fixed { ns: 0 };
    let spec = |id: NodeId| &point.specs[point.nodes[id as usize].spec as usize];
    let multiplies = |id: &NodeId| match spec(*id) {
        Spec::Warmup(_) | Spec::Gate(_) => true,
        Spec::Faulty(fault) => fault.mode == Mode::Slow,
        _ => false,
    };
    let all = 0..point.nodes.len() as NodeId;
    // A late timer is not work, which would be multiplied: it is modelled as a cable of half the time each way.
    let multiplied = reachable(point, &all.filter(multiplies).collect::<Vec<_>>());
    let later = |id: NodeId, ns: f64| match multiplied[id as usize] {
        true => Spec::Cable { time: about(ns / 2.0), loss: 0.0, resend_ns: None },
        false => Spec::Delay { time: about(ns) },
    };
    let waits = |(id, met): (NodeId, bool)| match spec(id) {
        Spec::Delay { time } if met && *time != nothing => Some((id, later(id, calibration.work_ns))),
        Spec::Cable { time, .. } if met && *time != nothing => Some((id, later(id, calibration.cable_ns))),
        _ => None,
    };
    (0..).zip(reachable(point, &[root])).filter_map(waits).collect()
}

/// Adds a delay before each of these nodes.
fn before(point: &Point, nodes: &[(NodeId, Spec)]) -> CalibratedPoint {
    let Inserted { point, nodes } = insert::before(point, nodes, DEF, |_| format!("{DEF}/hop"), |_| false);
    CalibratedPoint { point, nodes: (0..).zip(nodes).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::fleets::TargetNews;
    use weir_topology::{Request, evaluate};

    const FILE: &str = r#"
apps = pool(3, lambda: queue(delay(5 * ms, server("app"))))
web = listen("127.0.0.1:0", lb.round_robin(apps), name = "web", loops = 2)
scenario("listens", web, traffic.constant(rate = 10), requests = 10)
scenario("bare", lb.round_robin(apps), traffic.constant(rate = 10), requests = 10)
scenario("alone", delay(7 * ms, server("one")), traffic.constant(rate = 10), requests = 10)
"#;

    /// Members that join have hops as well, and each balancer sees the same changes.
    #[test]
    fn hops_change_no_member() {
        let file = r#"
apps = fleet(3, lambda: queue(delay(5 * ms, server("app"))))
changes = [change.rolling(apps, at = 2 * s, every = 1 * s, which = "random")]
scenario("bare", lb.random(apps), traffic.constant(rate = 10), requests = 100, window = "all", events = changes)
"#;
        let request = Request { source: file.into(), name: "t.star".into(), ..Request::default() };
        let plan = evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:?}")).plan;
        let (point, scenario) = plan.points[0].grown(&plan.points[0].scenarios[0]);
        let prepared = crate::prepare::Arrangement::new(&plan.points[0], scenario, false).unwrap();
        assert_eq!((prepared.servers.len(), prepared.newcomers().len()), (6, 3));
        let calibration = Calibration { client_hop_ns: 1e6, server_hop_ns: 1e6, ..Calibration::default() };
        let slowed = with_hops(point, scenario, &prepared, &calibration);
        let moves = |point: &Point, now: &dyn Fn(NodeId) -> NodeId| {
            let key = weir_stats::Key::new(1).with(0);
            let sights = weir_sim::timetable(point, &point.scenarios[0], key).unwrap().sights;
            let now = |of: TargetNews| match of {
                TargetNews::Add(id) => TargetNews::Add(now(id)),
                TargetNews::Remove(id) => TargetNews::Remove(now(id)),
                TargetNews::List(list) => panic!("a fleet has no source: {list:?}"),
            };
            let seen =
                sights.into_iter().map(|sight| (sight.at_ns, sight.news.into_iter().map(now).collect()));
            seen.collect::<Vec<(u64, Vec<TargetNews>)>>()
        };
        let now = moves(&slowed.point, &|id| id);
        assert_eq!(now.len(), 3);
        assert_eq!(now, moves(&prepared.point, &|id| slowed.nodes[&id] + 1), "a hop is before each server");
    }

    #[test]
    fn each_hop_adds_its_time() {
        let request = Request { source: FILE.into(), name: "t.star".into(), ..Request::default() };
        let plan = evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:?}")).plan;
        let calibration =
            Calibration { client_hop_ns: 1e6, server_hop_ns: 1.5e6, work_ns: 5e5, ..Calibration::default() };
        for (name, plain, slow) in [("listens", 5.0, 8.0), ("bare", 5.0, 8.0), ("alone", 7.0, 10.0)] {
            let point = &plan.points[0];
            let scenario = point.scenarios.iter().find(|s| s.name == name).unwrap();
            let prepared = crate::prepare::Arrangement::new(point, scenario, false).unwrap();
            let slowed = with_hops(point, scenario, &prepared, &calibration);
            for (point, mean) in [(point, plain), (&slowed.point, slow)] {
                let options = weir_sim::Options {
                    seed: 1,
                    first: 0,
                    replications: 1,
                    settled_over: None,
                    stretch: 1,
                    requests: None,
                    threads: 1,
                    members: true,
                    connections: false,
                    scenarios: vec![name.to_owned()],
                };
                let plan = weir_plan::Plan { points: vec![point.clone()], ..plan.clone() };
                let stop = std::sync::atomic::AtomicBool::new(false);
                let results = weir_sim::run(&plan, &options, &|_, _| {}, &stop).unwrap();
                // What is drawn about a late timer: a twentieth of a millisecond, after ten requests.
                let found = results.scenarios[0].latency_all.mean.value.unwrap();
                assert!((found - mean).abs() < if mean == slow { 0.25 } else { 1e-9 }, "{name}: {found}");
                let shown =
                    |id: u32| results.scenarios[0].nodes.iter().any(|n| n.id == Some(id) && n.requests > 0);
                if mean == slow {
                    assert!(slowed.nodes.values().all(|id| shown(*id)), "{name}: each server is still known");
                }
            }
        }
    }
}
