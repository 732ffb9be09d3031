//! State that outlives a graph.

use super::blueprint::Blueprint;
use super::builder::{Builder, Draft, Thread};
use super::draws::Draws;
use super::state::LocalState;
use crate::graph::Graph;
use crate::graph::state::ProcessState;
use crate::nodes::lb::{self, Owner};
use crate::transport::settings::TCP;
use crate::upstream::connect::BuiltInServers;
use crate::upstream::names::Names;
use crate::upstream::server::MakesRoom;
use crate::upstream::target::Targets;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;
use weir_net::io::Core;
use weir_net::io::clock::Clock;
use weir_net::io::runtime::Runtime;
use weir_net::transport::tls;
use weir_plan as plan;
use weir_plan::serving::serving;
use weir_policy::{Ask, PickOutcome, TargetId};
use weir_stats::Key;

struct NoRoom;

impl MakesRoom for NoRoom {
    fn close_idle(&self, _: u32) {}

    fn free_descriptor(&self) -> bool {
        false
    }
}

type Plan = (Arc<plan::Point>, Arc<weir_plan::serving::Serving>);

/// A balancer with these arguments, of servers at these ports.
fn plan(balancer: &str, ports: [u16; 2]) -> Plan {
    let servers = ports.map(|port| format!("server(addr = \"127.0.0.1:{port}\")")).join(", ");
    let text =
        format!("listen(\"127.0.0.1:0\", lb.{})", balancer.replace("SERVERS", &format!("[{servers}]")));
    let request = weir_topology::Request { source: text.into(), name: "t.star".into(), ..Default::default() };
    let evaluated = weir_topology::evaluate(&request).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let point = Arc::new(evaluated.plan.points.into_iter().next().expect("a point"));
    let roles = Arc::new(serving(&point, false).expect("it can be served"));
    (point, roles)
}

/// A thread that builds graphs.
struct Bench {
    core: Rc<Core>,
    process: Arc<ProcessState>,
    state: Rc<LocalState>,
    targets: Rc<Targets>,
}

impl Bench {
    fn new() -> Bench {
        let runtime = Runtime::new().expect("epoll");
        let mail: Arc<[_]> = (0..3).map(|_| unbounded_channel().0).collect();
        let process = Arc::new(ProcessState::new(mail));
        Bench {
            core: Core::new(runtime, Clock::start(), Key::new(1), TCP).expect("timers"),
            state: LocalState::new(process.clone(), 0),
            process,
            targets: Rc::default(),
        }
    }

    fn blueprint(&self, epoch: u32, plan: Plan, before: Option<&Blueprint>) -> Arc<Blueprint> {
        let (point, roles) = plan;
        let draws = Draws::new(&point, &[], Key::new(3));
        let mut blueprint = Blueprint::new(epoch, point, roles, BTreeMap::new(), &self.process, 0, draws);
        blueprint.make_tables(before, 1);
        Arc::new(blueprint)
    }

    /// A blueprint's balancer, in a graph of it.
    fn balancer(&self, blueprint: &Arc<Blueprint>) -> (Rc<lb::Lb>, Graph) {
        let draft = Draft::default();
        let builder = Builder {
            blueprint,
            core: &self.core,
            thread: Thread::Proxy,
            state: &self.state,
            newest: &Rc::default(),
            targets: &self.targets,
            owner: &Owner { mail: unbounded_channel().0, is_here: true },
            names: &Names::default(),
            built_in: &BuiltInServers::Here(unbounded_channel().0),
            token: 1,
            tls: &tls::Clients::default(),
            room: &(Rc::new(NoRoom) as Rc<dyn MakesRoom>),
            in_run: false,
            records: None,
            doubts: None,
            number: 0,
            listeners: &[],
            before: None,
            discards: &Rc::default(),
            draft: &draft,
        };
        while !builder.advance(1) {}
        let graph = builder.graph();
        draft.adopt(self.core.now(), std::iter::empty());
        let lb = graph.balancers().next().expect("the balancer").clone();
        (lb, graph)
    }
}

/// Requests in flight and probation carry over to the next graph.
#[test]
fn a_later_graph_goes_on_with_the_state() {
    let bench = Bench::new();
    let graph = |epoch, ports| {
        let plan = plan("least_conn(SERVERS, name = \"apps\", eject = eject())", ports);
        bench.balancer(&bench.blueprint(epoch, plan, None))
    };
    let pick = |lb: &lb::Lb| {
        let ask = Ask { draw: Key::new(5), key: None, now_ns: 0, exclude: &[], sticky: None };
        match lb.state.upstream.borrow_mut().pick(&ask) {
            PickOutcome::Target(ticket) => ticket.target,
            other => panic!("{other:?}"),
        }
    };
    let (old, of_old) = graph(0, [1, 2]);
    let first = pick(&old);
    old.state.flags().set_half_open(first, true);
    let (new, _of_new) = graph(1, [1, 2]);
    assert_eq!(old.id, new.id, "it is the same balancer");
    assert!(new.state.flags().has_probation());
    assert_eq!(pick(&new).0, 1 - first.0, "the other has fewer in flight");
    // Regardless of their order in the file, targets are recognised by identity.
    let (turned, _of_turned) = graph(2, [2, 1]);
    assert!(turned.state.flags().has_probation() && Rc::ptr_eq(&turned.state, &new.state));
    assert_eq!(turned.targets.len(), 2);
    // One is removed and another added: its index is new, since requests of older graphs may be at the old one's.
    let (other, _of_other) = graph(3, [2, 3]);
    assert_eq!(other.targets.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
    assert!(!other.has_target(TargetId(0)) && other.has_target(TargetId(2)));
    assert_eq!(pick(&other), TargetId(2), "nothing is in flight there");
    // The end of a graph is signalled once nothing has it.
    assert!(!bench.process.graph_ended.wait(Duration::ZERO) && bench.process.epochs() == [0, 1, 2, 3]);
    drop((old, of_old));
    assert!(bench.process.graph_ended.wait(Duration::ZERO) && bench.process.epochs() == [1, 2, 3]);
}

/// A table is made with its blueprint, on no thread that serves clients; what is the same as before is taken over.
#[test]
fn tables_are_made_before_they_are_needed() {
    let bench = Bench::new();
    for policy in ["maglev", "ring_hash"] {
        let plan = |ports| plan(&format!("{policy}(SERVERS, name = \"{policy}\", key = key.path())"), ports);
        let own = |lb: &lb::Lb| lb.state.upstream.borrow_mut().balancer().table().expect("it hashes");
        let mut before: Option<(Arc<Blueprint>, weir_policy::Table)> = None;
        for (epoch, ports, is_new) in [(0, [1, 2], true), (1, [1, 2], false), (2, [3, 2], true)] {
            let blueprint = bench.blueprint(epoch, plan(ports), before.as_ref().map(|(before, _)| &**before));
            let (lb, _graph) = bench.balancer(&blueprint);
            let table = blueprint.table(lb.node).expect("it hashes");
            assert!(own(&lb).is_copy_of(&table), "{policy} {epoch}: the balancer makes none");
            if let Some((_, before)) = &before {
                assert_eq!(!table.is_copy_of(before), is_new, "{policy} {epoch}");
            }
            before = Some((blueprint, table));
        }
    }
}
