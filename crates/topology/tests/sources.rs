//! `find.*` in a plan: what each argument becomes, and what is refused in a plan that was edited by hand.

#[allow(dead_code, reason = "each test binary uses some of it")]
mod common;

use common::plan;
use std::path::PathBuf;
use weir_plan::{
    ConsulSource, DnsRecords, DnsSource, EurekaHost, EurekaSource, FleetSource, KubernetesPort,
    KubernetesSource, Plan, SourceKind, Spec, TlsClient,
};
use weir_topology::{Request, evaluate};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

/// A file with a fleet of this source.
fn file(call: &str) -> String {
    let call = call.replace("APP", "lambda: server(\"app\")");
    format!(
        "apps = {call}\n\
         scenario(\"s\", lb.random(apps), traffic.constant(rate = 10), requests = 9)\n"
    )
}

/// The source of the only fleet of a plan.
fn source_of(plan: &Plan) -> FleetSource {
    let specs = &plan.points[0].written().specs;
    let source = |spec: &Spec| match spec {
        Spec::Fleet(fleet) => fleet.source.clone(),
        _ => None,
    };
    specs.iter().find_map(source).expect("a fleet with a source")
}

/// The source of a call.
fn from(call: &str) -> SourceKind {
    source_of(&plan(&file(call))).from
}

fn dns() -> DnsSource {
    DnsSource {
        name: "app.internal".to_owned(),
        records: DnsRecords::Addresses { port: 8080 },
        hold_ns: 30 * S,
        servers: Vec::new(),
    }
}

#[test]
fn dns_is_asked_for_addresses_or_services() {
    assert_eq!(from("find.dns(\"app.internal\", APP, port = 8080)"), SourceKind::Dns(dns()));
    assert_eq!(from("find.dns(\"app.internal\", APP, 8080, \"A\", 30*s, None)"), SourceKind::Dns(dns()));
    let services = DnsSource {
        records: DnsRecords::Services,
        hold_ns: 0,
        servers: vec!["10.0.0.2:53".to_owned(), "[::1]:53".to_owned()],
        ..dns()
    };
    let call = "find.dns(\"app.internal\", APP, type = \"SRV\", hold = 0*s, server = [\"10.0.0.2:53\", \"[::1]:53\"])";
    assert_eq!(from(call), SourceKind::Dns(services));
    let one = DnsSource { servers: vec!["ns.internal:53".to_owned()], ..dns() };
    let call = "find.dns(\"app.internal\", APP, port = 8080, server = \"ns.internal:53\")";
    assert_eq!(from(call), SourceKind::Dns(one));
}

#[test]
fn eureka_has_one_server_or_several() {
    let plain = EurekaSource {
        urls: vec!["http://a:8761/eureka".to_owned()],
        app: "SHOP".to_owned(),
        secure: false,
        host: EurekaHost::Ip,
        poll_ns: 30 * S,
        auth: None,
        tls: None,
    };
    let call = "find.eureka(\"http://a:8761/eureka\", \"SHOP\", APP)";
    assert_eq!(from(call), SourceKind::Eureka(plain.clone()));
    let all = EurekaSource {
        urls: vec!["https://a/eureka".to_owned(), "http://b:8761/eureka".to_owned()],
        secure: true,
        host: EurekaHost::Name,
        poll_ns: 50 * MS,
        auth: Some("./eureka.auth".to_owned()),
        tls: Some(TlsClient::default()),
        ..plain
    };
    let call = "find.eureka([\"https://a/eureka\", \"http://b:8761/eureka\"], \"SHOP\", APP, secure = True, \
                host = \"name\", poll = 50*ms, auth = \"eureka.auth\", tls = tls.client())";
    assert_eq!(from(call), SourceKind::Eureka(all));
}

#[test]
fn consul_lists_what_passes_unless_it_is_asked_for_all() {
    let plain = ConsulSource::new("http://127.0.0.1:8500", "shop");
    let call = "find.consul(\"http://127.0.0.1:8500\", \"shop\", APP)";
    assert_eq!(from(call), SourceKind::Consul(plain.clone()));
    let all = ConsulSource {
        tag: Some("v2".to_owned()),
        datacenter: Some("dc2".to_owned()),
        passing: false,
        stale: false,
        token: Some("./consul.token".to_owned()),
        ..plain
    };
    let call = "find.consul(\"http://127.0.0.1:8500\", \"shop\", APP, tag = \"v2\", datacenter = \"dc2\", \
                passing = False, stale = False, token = \"consul.token\")";
    assert_eq!(from(call), SourceKind::Consul(all));
}

#[test]
fn a_port_of_kubernetes_is_a_number_or_a_name() {
    let of = |namespace: Option<&str>, port, kubeconfig: Option<&str>| {
        SourceKind::Kubernetes(KubernetesSource {
            service: "shop".to_owned(),
            namespace: namespace.map(str::to_owned),
            port,
            kubeconfig: kubeconfig.map(str::to_owned),
        })
    };
    assert_eq!(from("find.kubernetes(\"shop\", APP)"), of(None, None, None));
    let number = Some(KubernetesPort::Number(8080));
    assert_eq!(from("find.kubernetes(\"shop\", APP, port = 8080)"), of(None, number, None));
    let name = Some(KubernetesPort::Name("http".to_owned()));
    let call = "find.kubernetes(\"shop\", APP, \"web\", \"http\", \"kube.yaml\")";
    assert_eq!(from(call), of(Some("web"), name, Some("./kube.yaml")));
}

/// What every source takes besides.
#[test]
fn doubt_and_size_are_those_of_every_source() {
    for call in [
        "find.file(\"a.json\", APP MORE)",
        "find.dns(\"a\", APP, port = 1 MORE)",
        "find.eureka(\"http://a\", \"a\", APP MORE)",
        "find.consul(\"http://a\", \"a\", APP MORE)",
        "find.kubernetes(\"a\", APP MORE)",
    ] {
        let with = |more: &str| source_of(&plan(&file(&call.replace(" MORE", more))));
        let usual = with("");
        assert_eq!((usual.shrink, usual.grace_ns), (Some(0.5), 300 * S), "{call}");
        let other = with(", shrink = None, grace = 1*s, size = 7, name = \"x\", lag = 2*s, life = life()");
        assert_eq!((other.shrink, other.grace_ns), (None, S), "{call}");
        let json = plan(&file(&call.replace(" MORE", ", size = 7"))).to_json();
        assert!(String::from_utf8(json).expect("text").contains("\"size\":7"), "{call}");
    }
}

/// Not that of what its function makes, where the node of a fleet is.
#[test]
fn a_fleet_has_the_location_of_its_call_which_is_not_hashed() {
    let source = |before: &str| {
        format!(
            "{before}def app():\n    return server(\"app\")\n\n\
             apps = find.dns(\"app.internal\", app, port = 8080)\n\
             scenario(\"s\", lb.random(apps), traffic.constant(rate = 10), requests = 9)\n"
        )
    };
    let span_of = |plan: &Plan| {
        let specs = &plan.points[0].written().specs;
        let span = |spec: &Spec| if let Spec::Fleet(fleet) = spec { Some(fleet.span.clone()) } else { None };
        specs.iter().find_map(span).expect("a fleet")
    };
    let (plain, moved) = (plan(&source("")), plan(&source("# a comment\n")));
    assert!(span_of(&plain).ends_with(":4:8"), "{}", span_of(&plain));
    assert!(span_of(&moved).ends_with(":5:8"), "{}", span_of(&moved));
    assert_eq!(plain.hash, moved.hash);
}

#[test]
fn paths_begin_at_the_file_and_are_not_hashed() {
    let call = "find.eureka(\"http://a\", \"a\", APP, auth = \"NAME.auth\")";
    let with = |name: &str| plan(&file(&call.replace("NAME", name)));
    assert_eq!(with("a").hash, with("b").hash);
    assert_ne!(with("a").hash, plan(&file("find.eureka(\"http://a\", \"a\", APP)")).hash);
    let request = Request {
        name: "t.star".to_owned(),
        path: Some(PathBuf::from("/etc/weir/t.star")),
        source: file(call).into_bytes(),
        ..Request::default()
    };
    let plan = evaluate(&request).expect("it is right").plan;
    let SourceKind::Eureka(source) = source_of(&plan).from else { panic!("another source") };
    assert_eq!(source.auth.as_deref(), Some("/etc/weir/NAME.auth"));
}

/// A plan that was edited by hand is held to the ranges of a file.
#[test]
fn wrong_sources_are_refused_in_json_too() {
    let dns = "find.dns(\"app.internal\", APP, port = 8080)";
    let eureka = "find.eureka(\"https://a\", \"shop\", APP, auth = \"x\", tls = tls.client())";
    let consul = "find.consul(\"http://a\", \"shop\", APP, token = \"x\")";
    let kubernetes = "find.kubernetes(\"shop\", APP, \"web\", 8080)";
    for (call, from, to, says) in [
        (dns, "\"shrink\":0.5", "\"shrink\":1.5", "shrink must be between 0 and 1"),
        (dns, "app.internal", "app internal", "find.dns: name:"),
        (dns, "\"port\":8080", "\"port\":0", "find.dns: port must be 1 to 65535"),
        (dns, "\"hold_ns\":30000000000", "\"hold_ns\":3600000000001", "hold_ns must be 0 to"),
        (eureka, "[\"https://a\"]", "[]", "find.eureka: urls must be 1 to 100, not 0"),
        (eureka, "https://a", "http://a", "tls: there is no URL with https"),
        (eureka, "https://a", "https://a@b", "no password"),
        (eureka, "\"shop\"", "\"\"", "find.eureka: app:"),
        (eureka, "\"poll_ns\":30000000000", "\"poll_ns\":1", "poll_ns must be 50000000 to"),
        (eureka, "\"auth\":\"./x\"", "\"auth\":\"\"", "find.eureka: auth:"),
        (consul, "http://a", "http://a/v1", "ends with /v1"),
        (consul, "\"token\":\"./x\"", "\"token\":\"\"", "find.consul: token:"),
        (kubernetes, "\"service\":\"shop\"", "\"service\":\"Shop\"", "find.kubernetes: service:"),
        (kubernetes, "\"number\":8080", "\"number\":0", "find.kubernetes: port must be 1 to 65535"),
        (kubernetes, "{\"number\":8080}", "{\"name\":\"8080\"}", "is a number, and no name"),
    ] {
        let plan = plan(&file(call));
        let json = String::from_utf8(plan.to_json()).expect("text");
        assert_eq!(Plan::from_json(json.as_bytes()).expect("it is right"), plan);
        assert!(json.contains(from), "{json}");
        let wrong = Plan::from_json(json.replace(from, to).as_bytes()).expect_err(says).to_string();
        assert!(wrong.contains(says), "{wrong}");
    }
}
