//! State that outlives a graph.

use super::blueprint::Blueprint;
use super::builder::{Builder, Draft, Thread};
use super::draws::Draws;
use super::state::LocalState;
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

/// A balancer of servers at these ports.
fn plan(ports: [u16; 2]) -> (Arc<plan::Point>, Arc<weir_plan::serving::Serving>) {
    let servers = ports.map(|port| format!("server(addr = \"127.0.0.1:{port}\")")).join(", ");
    let text =
        format!("listen(\"127.0.0.1:0\", lb.least_conn([{servers}], name = \"apps\", eject = eject()))");
    let request = weir_topology::Request { source: text.into(), name: "t.star".into(), ..Default::default() };
    let evaluated = weir_topology::evaluate(&request).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let point = Arc::new(evaluated.plan.points.into_iter().next().expect("a point"));
    let roles = Arc::new(serving(&point, false).expect("it can be served"));
    (point, roles)
}

/// Requests in flight and probation carry over to the next graph.
#[test]
fn a_later_graph_goes_on_with_the_state() {
    let core = Core::new(Runtime::new().expect("epoll"), Clock::start(), Key::new(1), TCP).expect("timers");
    let mail: Arc<[_]> = (0..3).map(|_| unbounded_channel().0).collect();
    let process = Arc::new(ProcessState::new(mail));
    let state = LocalState::new(process.clone(), 0);
    let targets = Rc::<Targets>::default();
    let (owner, room) =
        (Owner { mail: unbounded_channel().0, is_here: true }, Rc::new(NoRoom) as Rc<dyn MakesRoom>);
    let graph = |epoch, (point, roles): (Arc<plan::Point>, _)| {
        let (draft, draws) = (Draft::default(), Draws::new(&point, &[], Key::new(3)));
        let blueprint = Arc::new(Blueprint::new(epoch, point, roles, BTreeMap::new(), &process, 0, draws));
        let builder = Builder {
            blueprint: &blueprint,
            core: &core,
            thread: Thread::Proxy,
            state: &state,
            newest: &Rc::default(),
            targets: &targets,
            owner: &owner,
            names: &Names::default(),
            built_in: &BuiltInServers::Here(unbounded_channel().0),
            token: 1,
            tls: &tls::Clients::default(),
            room: &room,
            in_run: false,
            records: None,
            number: 0,
            listeners: &[],
            before: None,
            discards: &Rc::default(),
            draft: &draft,
        };
        while !builder.advance(1) {}
        let (graph, _) = builder.graph(&[]);
        let lb = graph.balancers().next().expect("the balancer").clone();
        (lb, graph)
    };
    let pick = |lb: &lb::Lb| {
        let ask = Ask { draw: Key::new(5), key: None, now_ns: 0, exclude: &[], sticky: None };
        match lb.state.upstream.borrow_mut().pick(&ask) {
            PickOutcome::Target(ticket) => ticket.target,
            other => panic!("{other:?}"),
        }
    };
    let (old, of_old) = graph(0, plan([1, 2]));
    let first = pick(&old);
    old.state.flags().set_half_open(first, true);
    let (new, _of_new) = graph(1, plan([1, 2]));
    assert_eq!(old.id, new.id, "it is the same balancer");
    assert!(new.state.flags().has_probation());
    assert_eq!(pick(&new).0, 1 - first.0, "the other has fewer in flight");
    // Regardless of their order in the file, targets are recognised by identity.
    let (turned, _of_turned) = graph(2, plan([2, 1]));
    assert!(turned.state.flags().has_probation() && Rc::ptr_eq(&turned.state, &new.state));
    assert_eq!(turned.targets.len(), 2);
    // One is removed and another added: its index is new, since requests of older graphs may be at the old one's.
    let (other, _of_other) = graph(3, plan([2, 3]));
    assert_eq!(other.targets.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
    assert!(!other.has_target(TargetId(0)) && other.has_target(TargetId(2)));
    assert_eq!(pick(&other), TargetId(2), "nothing is in flight there");
    // The end of a graph is signalled once nothing has it.
    assert!(!process.graph_ended.wait(Duration::ZERO) && process.epochs() == [0, 1, 2, 3]);
    drop((old, of_old));
    assert!(process.graph_ended.wait(Duration::ZERO) && process.epochs() == [1, 2, 3]);
}
