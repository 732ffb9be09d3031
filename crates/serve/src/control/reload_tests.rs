//! What a reload costs a loop, as work and not as time: between two polls of the sockets it builds, retires and forgets a
//! slice, however many targets there are.

use super::panic_tests::serve;
use crate::reload::reloader::NewTopology;
use crate::sync::slices::AT_ONCE;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_plan::listeners;
use weir_plan::serving::serving;

const TARGETS: usize = 3_000;
const LIMIT: Duration = Duration::from_secs(60);

/// A balancer of [`TARGETS`] targets, none of which is in a file of another `base`.
fn text(base: u32) -> String {
    let addr = format!("\"127.{base}.%d.%d:1\" % (i // 250, i % 250)");
    let pool = format!("pool({TARGETS}, lambda i: server(\"s%d\" % i, addr={addr}))");
    format!("listen(\"127.0.0.1:0\", lb.round_robin({pool}), name=\"l\")")
}

fn topology(text: &str) -> NewTopology {
    let request = weir_topology::Request { source: text.into(), name: "t.star".into(), ..Default::default() };
    let evaluated = weir_topology::evaluate(&request).unwrap_or_else(|errors| panic!("{text}: {errors:#?}"));
    let point = Arc::new(evaluated.plan.points.into_iter().next().expect("a point"));
    let roles = Arc::new(serving(&point, true).unwrap_or_else(|why| panic!("{text}: {why:?}")));
    let nodes = listeners(&point);
    NewTopology { point, serving: roles, nodes, plan: String::new(), is_same_text: false, notes: Vec::new() }
}

#[test]
fn a_reload_costs_a_loop_no_more_than_a_slice_at_once() {
    let (running, _) = serve(&text(1));
    let (remote, next) = (running.remote(), topology(&text(2)));
    let looks = || remote.process().ask_all(|lp| lp.core.runtime.looks())[0].expect("an answer");
    let before = looks();
    let said = remote.serve_instead(next).expect("it can be served");
    assert!(said.contains("+3000 -3000 targets"), "{said}");
    // Its nodes, their counters, and both generations' targets compared.
    let turns = looks() - before;
    assert!(turns >= (4 * TARGETS / AT_ONCE) as u64, "{turns} turns");
    let end = Instant::now() + LIMIT;
    let of_loop = || remote.process().ask_all(|lp| (lp.targets.len(), lp.targets.visits.most.get()))[0];
    let (left, most) = loop {
        let (left, most) = of_loop().expect("an answer");
        if left == TARGETS || Instant::now() >= end {
            break (left, most);
        }
    };
    assert_eq!(left, TARGETS, "the former targets are forgotten");
    // A pass of the generation and one of the clock may meet in a turn.
    assert!((AT_ONCE..=2 * AT_ONCE).contains(&most), "{most} targets in one turn");
    remote.drain();
}
