//! Fleets in a plan: a template, its members, and what is surely wrong.

mod common;

use common::{plan, request, run};
use weir_plan::fleets::schedule;
use weir_plan::{Plan, Point, Spec, label};
use weir_topology::evaluate;

const FILE: &str = r#"
shared = delay(1*ms, server("database"))

def app():
    work = warmup(delay(dist.exponential(20*ms), shared), 3.0, requests = 9)
    return faulty(90*s, 10*s, queue(work, concurrency = 2), mode = "crash")

def racked():
    return block(60*s, 6*s, [delay(1*ms, server()), delay(2*ms, server())])[0]

apps = MAKE(5, app)
racks = MAKE(3, racked)
front = lb.p2c(apps + [weight(2, server("spare"))], on_empty = server("none"))
both = lb.random([front, lb.least_conn(racks)])
scenario("s", both, traffic.poisson(rate = 100), requests = 1000)
"#;

/// Each node with its place, kind and arguments, and the nodes that it leads to.
fn shown(point: &Point) -> Vec<String> {
    let node = |(id, node): (u32, &weir_plan::Node)| {
        let to = match node.to {
            weir_plan::Edge::List(list) => format!("{:?}", point.lists[list as usize]),
            other => format!("{other:?}"),
        };
        let place = &point.places[point.sites[node.site as usize].place as usize];
        format!("{id} {place:?} {} {:?} {to}", label(point, id), point.spec(id))
    };
    (0..).zip(&point.nodes).map(node).collect()
}

#[test]
fn members_are_those_of_a_pool() {
    let of = |make: &str| plan(&FILE.replace("MAKE", make));
    let (pools, fleets) = (of("pool"), of("fleet"));
    assert_eq!(shown(&pools.points[0]), shown(&fleets.points[0]));
    assert_ne!(pools.hash, fleets.hash);
}

#[test]
fn a_plan_has_the_template_once() {
    let large = "apps = fleet(100000, lambda: queue(server()))\n\
        scenario(\"s\", lb.random(apps), traffic.poisson(rate = 100), requests = 10, events = [change.rolling(apps, at = 1*ms)])\n";
    let plan = plan(large);
    assert_eq!(plan.points[0].nodes.len(), 200_001);
    let json = plan.to_json();
    assert!(json.len() < 10_000, "{}", json.len());
    let again = Plan::from_json(&json).expect("it is a plan");
    assert_eq!(again, plan);
    assert_eq!(again.hash, plan.hash);
}

/// What the hash is of: not the name of a variable.
#[test]
fn the_hash_covers_size_lag_and_changes() {
    let file = |variable: &str, more: &str, events: &str| {
        let source = format!(
            "{variable} = fleet(2, lambda: server(){more})\n\
             scenario(\"s\", lb.random({variable}), traffic.poisson(rate = 1), requests = 9, events = [{events}])\n"
        );
        plan(&source).hash
    };
    let first = file("apps", "", "");
    assert_eq!(first, file("backends", "", ""));
    let join = "change.join(apps, at = 1*ms)";
    let others = [
        file("apps", ", lag = 1*ms", ""),
        file("apps", ", name = \"x\"", ""),
        file("apps", "", join),
        file("apps", "", "change.join(apps, at = 2*ms)"),
        file("apps", "", &format!("{join}, {join}")),
    ];
    let mut all: Vec<&String> = others.iter().chain([&first]).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn a_scenario_has_the_members_that_join_in_it() {
    let source = "a = fleet(4, lambda: server(\"a\"))\nb = fleet(1, lambda: server(\"b\"))\n\
        top = lb.random([a, server(\"x\"), weight(3, b)])\n\
        scenario(\"s\", top, traffic.poisson(rate = 100), requests = 9000, events = [\n\
            change.rolling(a, at = 20*s, batch = 3, every = 1*s, into = b),\n\
            change.join(a, at = 10*s, k = 2),\n\
            change.leave(b, at = 30*s, k = 7)])\n\
        scenario(\"still\", top, traffic.poisson(rate = 100), requests = 9000)\n";
    let plan = plan(source);
    let point = &plan.points[0];
    let (grown, own) = point.grown(&point.scenarios[0]);
    let fleets = grown.fleets.as_ref().expect("it has fleets");
    let compact = &fleets.compact;
    let steps = schedule(compact, &own.events).expect("it can happen");
    // Six of `a` go to `b` in batches of three, and two have joined before.
    assert_eq!(steps.newcomers, [2, 6]);
    let instants: Vec<u64> = steps.steps.iter().map(|step| step.at_ns / 1_000_000_000).collect();
    assert_eq!(instants, [10, 20, 21, 30]);
    let weir_plan::Edge::List(list) = grown.nodes[own.root as usize].to else { panic!("a balancer") };
    let names = |list: &[u32]| {
        list.iter()
            .map(|id| {
                let node = &grown.nodes[*id as usize];
                let server = match (&grown.specs[node.spec as usize], node.to) {
                    (Spec::Weight { .. }, weir_plan::Edge::Node(next)) => next,
                    _ => *id,
                };
                grown.nodes[server as usize].name.clone().unwrap_or_default()
            })
            .collect::<String>()
    };
    // Members stand in their fleet's place, and newcomers behind all.
    assert_eq!(names(&grown.lists[list as usize]), "aaaaxbaabbbbbb");
    let still = point.grown(&point.scenarios[1]).0;
    assert!(std::ptr::eq(still, point), "nothing changes there");
}

#[test]
fn a_node_inside_of_a_member_is_that_members_alone() {
    let source = "inside = []\ndef f():\n    inside.append(server())\n    return queue(inside[0])\n\
        a = fleet(2, f)\nscenario(\"s\", lb.random([a] + inside), traffic.poisson(rate = 1), requests = 9)\n";
    let wrong = evaluate(&request(source)).expect_err("refused");
    assert_eq!(wrong[0].message, "it leads to a node inside of a fleet, of which each member has its own");
    assert_eq!(wrong[0].line, 6);
}

/// A plan that was edited by hand.
#[test]
fn impossible_fleets_are_refused_in_json_too() {
    let source = "a = fleet(2, lambda: queue(server()))\n\
        scenario(\"s\", lb.random(a), traffic.poisson(rate = 1), requests = 9, events = [change.leave(a, at = 1*ms, k = 2)])\n";
    let json = String::from_utf8(plan(source).to_json()).expect("text");
    assert!(Plan::from_json(json.as_bytes()).is_ok());
    for (from, to, says) in [
        ("\"size\":2", "\"size\":1", "2 members leave, but the fleet has 1 then"),
        ("\"size\":2", "\"size\":4000000", "members that ever are would be"),
        ("\"first\":0", "\"first\":2", "its members are not made by its function"),
        ("\"k\":2", "\"k\":0", "`k` must be at least 1"),
    ] {
        assert!(json.contains(from), "{json}");
        let wrong = Plan::from_json(json.replace(from, to).as_bytes()).expect_err(says).to_string();
        assert!(wrong.contains(says), "{wrong}");
    }
}

#[test]
fn changes_that_cannot_matter_are_warned_of() {
    let warned = |events: &str| {
        let source = format!(
            "a = fleet(2, lambda: server(model = 1*ms))\nb = fleet(2, lambda: server())\n\
             scenario(\"s\", lb.random(a), traffic.constant(rate = 10), requests = 100, events = [{events}])\n\
             scenario(\"t\", lb.random(b), traffic.constant(rate = 10), requests = 100)\n"
        );
        let found = run(&source).warnings;
        found.into_iter().map(|w| w.message).filter(|m| !m.contains("model")).collect::<Vec<_>>()
    };
    assert_eq!(warned("change.join(a, at = 5*s)"), Vec::<String>::new());
    assert_eq!(
        warned("change.join(a, at = 11*s)"),
        ["scenario \"s\" is over before this: its last request arrives at some 10s"]
    );
    let outside = warned("change.join(a, at = 1*s)");
    assert_eq!(
        outside,
        ["all changes of scenario \"s\" are outside of its window, which is from some 2.5s to 7.5s"]
    );
    let other = warned("change.join(b, at = 5*s)");
    assert_eq!(other, ["in scenario \"s\" no balancer has this fleet: the change has no effect"]);
}
