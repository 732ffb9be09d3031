//! Helpers of tests that evaluate files.

use weir_plan::{Plan, Spec};
use weir_topology::{Evaluated, Request, evaluate};

/// The file `t.star` with this text.
pub fn request(source: &str) -> Request {
    Request { name: "t.star".to_owned(), source: source.as_bytes().to_vec(), ..Request::default() }
}

/// The result of evaluating it.
pub fn run(source: &str) -> Evaluated {
    evaluate(&request(source))
        .unwrap_or_else(|e| panic!("{}", e.iter().map(|d| format!("{d}\n")).collect::<String>()))
}

/// Its plan.
pub fn plan(source: &str) -> Plan {
    run(source).plan
}

/// The spec of the node made last.
#[allow(dead_code, reason = "not all files of tests look at one node")]
pub fn last(source: &str) -> Spec {
    let plan = plan(&format!("{source}\n"));
    let point = &plan.points[0];
    point.specs[point.nodes.last().expect("a node").spec as usize].clone()
}
