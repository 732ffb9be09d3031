//! `tls.server(...)` and `tls.client(...)`: what the plan keeps of them, and which errors are reported at their
//! location.

use weir_plan::{CertificateFiles, ClientAuth, Plan, Point, Spec, TlsClient, TlsServer};
use weir_topology::{Request, evaluate};

fn request(source: &str) -> Request {
    Request { name: "t.star".to_owned(), source: source.as_bytes().to_vec(), ..Request::default() }
}

fn plan(source: &str) -> Plan {
    let done = evaluate(&request(source));
    done.unwrap_or_else(|e| panic!("{}\n{source}", e.iter().map(ToString::to_string).collect::<String>()))
        .plan
}

fn listens(point: &Point) -> Option<&TlsServer> {
    point
        .specs
        .iter()
        .find_map(|spec| if let Spec::Listen(l) = spec { Some(l.tls.as_ref()) } else { None })?
}

fn connects(point: &Point) -> Option<&TlsClient> {
    let servers = point.specs.iter().filter_map(|spec| match spec {
        Spec::Server { origin, .. } => origin.tls.as_ref(),
        _ => None,
    });
    servers.into_iter().next()
}

fn pair(name: &str) -> CertificateFiles {
    CertificateFiles { cert: format!("./{name}.pem"), key: format!("./{name}.key") }
}

#[test]
fn a_pair_may_stand_alone_or_in_a_list() {
    for (tls, certificates) in [
        ("\"a.pem\", \"a.key\"", vec![pair("a")]),
        ("cert=\"a.pem\", key=\"a.key\"", vec![pair("a")]),
        ("[(\"a.pem\", \"a.key\"), [\"b.pem\", \"b.key\"]]", vec![pair("a"), pair("b")]),
    ] {
        let plan = plan(&format!("listen(\":443\", server(), tls=tls.server({tls}))\n"));
        let tls = listens(&plan.points[0]).expect("TLS");
        assert_eq!(
            *tls,
            TlsServer {
                certificates,
                client_ca: None,
                client_auth: ClientAuth::Require,
                min_version: Default::default(),
                watch: false
            }
        );
        assert_eq!(Plan::from_json(&plan.to_json()).expect("reads"), plan);
    }
}

#[test]
fn clients_are_asked_as_the_file_says() {
    let tls = "tls.server(\"a.pem\", \"a.key\", client_ca=\"ca.pem\", client_auth=\"request\")";
    let plan = plan(&format!("listen(\":443\", server(), tls={tls})\n"));
    let tls = listens(&plan.points[0]).expect("TLS");
    assert_eq!((tls.client_ca.as_deref(), tls.client_auth), (Some("./ca.pem"), ClientAuth::Request));
}

#[test]
fn an_origin_is_verified_by_the_system_unless_the_file_says_by_whom() {
    for (tls, is) in [
        ("", TlsClient::default()),
        ("ca=\"system\"", TlsClient::default()),
        ("\"ca.pem\"", TlsClient { ca: Some("./ca.pem".to_owned()), ..TlsClient::default() }),
        ("name=\"b.test\"", TlsClient { name: Some("b.test".to_owned()), ..TlsClient::default() }),
        ("name=\"::1\"", TlsClient { name: Some("::1".to_owned()), ..TlsClient::default() }),
        ("cert=\"a.pem\", key=\"a.key\"", TlsClient { certificate: Some(pair("a")), ..TlsClient::default() }),
    ] {
        let plan = plan(&format!("listen(\":80\", server(addr=\"a.test:443\", tls=tls.client({tls})))\n"));
        assert_eq!(connects(&plan.points[0]), Some(&is), "{tls}");
        assert!(plan.points[0].warnings.is_empty(), "port 443 is right with TLS");
    }
}

/// What watches nothing has the plan that it always had.
#[test]
fn only_files_that_are_watched_are_in_the_plan_as_such() {
    let of = |watch: &str| {
        let client = format!("tls.client(\"ca.pem\"{watch})");
        let server = format!("tls.server(\"a.pem\", \"a.key\"{watch})");
        plan(&format!("listen(\":443\", server(addr=\"x:1\", tls={client}), tls={server})\n"))
    };
    let watches = |plan: &Plan| {
        let point = &plan.points[0];
        [listens(point).map(|tls| tls.watch), connects(point).map(|tls| tls.watch)]
    };
    let says = |plan: &Plan| String::from_utf8(plan.to_json()).expect("UTF-8").matches("\"watch\"").count();
    for (watch, is, count) in [("", false, 0), (", watch=False", false, 0), (", watch=True", true, 2)] {
        let plan = of(watch);
        assert_eq!((watches(&plan), says(&plan)), ([Some(is); 2], count), "{watch}");
        assert_eq!(Plan::from_json(&plan.to_json()).expect("reads"), plan);
    }
    assert_ne!(of(", watch=True").hash, of("").hash);
}

/// A plan's meaning does not depend on where its files are, but does depend on what verifies which peer.
#[test]
fn paths_are_not_hashed_and_the_rest_is() {
    let of = |tls: &str| {
        plan(&format!("listen(\":443\", server(addr=\"x:1\", tls=tls.client(name=\"n\")), tls={tls})\n")).hash
    };
    let one = of("tls.server(\"a.pem\", \"a.key\")");
    assert_eq!(one, of("tls.server(\"b.pem\", \"b.key\")"));
    assert_ne!(one, of("tls.server([(\"a.pem\", \"a.key\"), (\"b.pem\", \"b.key\")])"));
    assert_ne!(one, of("tls.server(\"a.pem\", \"a.key\", client_ca=\"c.pem\")"));
    assert_ne!(one, of("None"));
}

#[test]
fn what_is_wrong_is_said_with_the_remedy() {
    for (source, part, help) in [
        ("listen(\":1\", server(), tls=tls.server(\"a.pem\"))", "without a key", "tls.server([("),
        ("listen(\":1\", server(), tls=tls.server([]))", "needs 1 to", "tls.server("),
        ("listen(\":1\", server(), tls=tls.server([\"a.pem\"]))", "list of pairs", "tls.server("),
        ("listen(\":1\", server(), tls=tls.server(7))", "a path or a list of pairs", "tls.server("),
        ("listen(\":1\", server(), tls=tls.server([(\"a\", \"b\")], key=\"c\"))", "no certificate", "pairs"),
        ("listen(\":1\", server(), tls=tls.server(\"\", \"a.key\"))", "not the path of a file", "PEM"),
        (
            "listen(\":1\", server(), tls=tls.server(\"a\", \"b\", client_auth=\"request\"))",
            "client_ca",
            "as well",
        ),
        (
            "listen(\":1\", server(), tls=tls.server(\"a\", \"b\", client_ca=\"c\", client_auth=\"no\"))",
            "client_auth",
            "request",
        ),
        ("listen(\":1\", server(), tls=tls.client())", "must be certificates", "tls.server("),
        (
            "listen(\":1\", server(addr=\"x:1\", tls=tls.client(cert=\"a.pem\")))",
            "without a `key`",
            "leave both out",
        ),
        (
            "listen(\":1\", server(addr=\"x:1\", tls=tls.client(name=\"a b\")))",
            "name of a host",
            "app.example.com",
        ),
        ("listen(\":1\", server(addr=\"unix:/x\", tls=tls.client()))", "has no name", "name="),
        (
            "listen(\":1\", server(), tls=tls.server(\"a\", \"b\", watch=\"yes\"))",
            "must be True or False",
            "",
        ),
        (
            "listen(\":1\", server(addr=\"x:1\", tls=tls.client(watch=True)))",
            "without a file",
            "leave it out",
        ),
        ("listen(\":1\", server(addr=\"x:1\", tls=\"yes\"))", "must be TLS to an origin", "tls.client()"),
    ] {
        let wrong = evaluate(&request(&format!("{source}\n"))).map(|_| ()).expect_err(source);
        let said: String = wrong.iter().map(ToString::to_string).collect();
        assert!(said.contains(part) && said.contains(help), "{source}: {said}");
    }
}

#[test]
fn a_plan_that_holds_nonsense_is_refused() {
    let tls = "tls.server(\"a.pem\", \"a.key\")";
    let one =
        plan(&format!("listen(\":443\", server(addr=\"x:1\", tls=tls.client(name=\"n\")), tls={tls})\n"));
    let text = String::from_utf8(one.to_json()).expect("UTF-8");
    for (from, to) in [
        ("[{\"cert\":\"./a.pem\",\"key\":\"./a.key\"}]", "[]"),
        ("\"key\":\"./a.key\"", "\"key\":\"\""),
        ("\"client_auth\":\"require\"", "\"client_auth\":\"request\""),
        ("\"name\":\"n\"", "\"name\":\"a b\""),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        assert!(Plan::from_json(text.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
    }
}
