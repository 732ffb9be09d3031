//! dev
use std::sync::Arc;
use weir_topology::plan::*;
use weir_topology::serving::*;
fn main() {
    let port = std::env::args().nth(1).unwrap();
    let origin = std::env::args().nth(2).unwrap();
    let kind = std::env::args().nth(3).unwrap_or_default();
    let mut specs = vec![];
    let mut nodes = vec![];
    let mut lists = vec![];
    let node = |spec: u32, to: To, name: &str| Node { site: 0, spec, to, name: Some(name.into()) };
    let mut targets = vec![];
    for o in origin.split(',') {
        specs.push(Spec::Server { addr: Some(format!("127.0.0.1:{o}")), model: None, origin: Origin::default() });
        nodes.push(node(specs.len() as u32 - 1, To::None, o));
        targets.push(nodes.len() as u32 - 1);
    }
    let mut top = 0;
    if targets.len() > 1 {
        lists.push(targets);
        specs.push(Spec::Lb(Lb::plain(weir_policy::config::Balance::LeastConn { ties: Default::default(), error_hold_ns: 0 })));
        nodes.push(node(specs.len() as u32 - 1, To::List(0), "lb"));
        top = nodes.len() as u32 - 1;
    }
    if kind == "faults" {
        specs.push(Spec::Timeout { time_ns: Some(2_000_000_000) });
        nodes.push(node(specs.len() as u32 - 1, To::Node(top), "t"));
        top = nodes.len() as u32 - 1;
        use weir_policy::config::*;
        use weir_policy::Kind;
        specs.push(Spec::Retry(Retry { attempts: 3, on: vec![Kind::ConnectFailed, Kind::Refused, Kind::Reset], exclude: Exclude::Tried, methods: Methods::Idempotent, work: Work::Redraw, backoff_ns: 0, backoff_max_ns: 0, on_status: vec![], budget: None, replay_bytes: 65536 }));
        nodes.push(node(specs.len() as u32 - 1, To::Node(top), "r"));
        top = nodes.len() as u32 - 1;
    }
    specs.push(Spec::Listen(Listen { addr: format!("127.0.0.1:{port}"), protocol: ListenProtocol::Http, loops: None, http: Http::default() }));
    nodes.push(node(specs.len() as u32 - 1, To::Node(top), "l"));
    let id = nodes.len() as u32 - 1;
    let n = nodes.len();
    let point = Arc::new(Point { params: vec![], places: vec![], sites: vec![], specs, lists, nodes, scenarios: vec![], warnings: vec![] });
    let serving = Arc::new(Serving { roles: vec![Role::Proxy; n], notes: vec![] });
    let loops = std::env::var("LOOPS").ok().and_then(|s| s.parse().ok());
    let r = weir_serve::start(&point, &serving, &[id], &weir_serve::Options { loops }).unwrap();
    println!("listening {} {}", r.listening[0].name, r.listening[0].addr);
    r.join().unwrap();
}
