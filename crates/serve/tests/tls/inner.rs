//! Listeners with TLS behind others: weir reaches them itself, and trusts the very certificates that they show.

use crate::common::certificates::Authority;
use crate::common::configs::client;
use crate::common::transport::{Transport, with_transport};
use crate::common::{Conn, Origin, RunningBalancer, get, serve, serve_with, until};
use crate::{connect, status};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection};
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use weir_serve::Exposition;

/// An inner listener with these certificates and arguments before a node, and the nodes before it.
fn file(tls: &str, more: &str, node: &str) -> String {
    let tls = if tls.is_empty() { String::new() } else { format!(", tls=tls.server({tls})") };
    format!(
        "inner = listen(\"127.0.0.1:0\", {node}, name=\"inner\"{tls}{more})\n\
         listen(\"127.0.0.1:0\", inner, name=\"outer\")\n"
    )
}

fn outer(served: &RunningBalancer) -> &str {
    served.addrs.last().expect("a listener")
}

/// Handshakes at the inner listener that ended well.
fn handshakes(served: &RunningBalancer) -> u64 {
    let all = served.scrape(Exposition::Prometheus);
    let name = "weir_tls_handshakes_total{listener=\"inner\",result=\"ok\"} ";
    let found = all.lines().find_map(|line| line.strip_prefix(name));
    found.map_or(0, |n| n.parse().expect("a number"))
}

/// By whichever version it takes, for any Host of the request; others that name it get what its certificate covers.
#[test]
fn it_is_reached_by_tls() {
    let authority = Authority::new("inner");
    let pairs = format!("[({}), ({})]", authority.words(&["inner.test"]), authority.words(&["b.test"]));
    let asks = format!("{pairs}, client_ca=\"{}\", client_auth=\"request\"", authority.file);
    for (tls, versions, hop) in [
        (&pairs, "[\"h1\"]", "1.1 weir"),
        (&pairs, "[\"h2\"]", "2.0 weir"),
        (&pairs, "[\"h1\", \"h2\"]", "2.0 weir"),
        (&asks, "[\"h1\"]", "1.1 weir"),
    ] {
        let origin = Origin::named("o");
        let node = format!("server(\"o\", addr=\"{}\")", origin.addr);
        let served = serve(&file(tls, &format!(", http=http(versions={versions})"), &node));
        let mut conn = Conn::new(outer(&served));
        for host in ["inner.test", "b.test", "elsewhere.test"] {
            conn.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            let answer = conn.response();
            assert_eq!((answer.status, &*answer.body), (200, "o"), "{host} {versions}");
        }
        let seen: Vec<String> = origin.seen().into_iter().map(|(head, _)| head).collect();
        let hop = format!("Via: {hop}\r\n");
        assert!(seen.len() == 3 && seen.iter().all(|head| head.contains(&hop)), "{versions}: {seen:?}");
        assert_eq!(handshakes(&served), 1);
        if versions == "[\"h1\"]" {
            let config = Arc::new(client(&authority));
            let asked = |host| status(&mut connect(&config, &served.addr, "inner.test"), host);
            assert_eq!([asked("inner.test"), asked("elsewhere.test")], [200, 421]);
        }
    }
}

/// Whose client came how is known behind TLS as it is in the clear: the own process says so, and no other.
#[test]
fn its_own_process_is_believed() {
    believed("http");
    with_transport(Transport::Tls, || believed("https"));
}

/// Where clients come so.
fn believed(proto: &str) {
    let authority = Authority::new("believed");
    let origin = Origin::named("o");
    let lb = format!("lb.first([server(\"o\", addr=\"{}\")], sticky=\"srv\")", origin.addr);
    let served = serve(&format!(
        "inner = listen(\"127.0.0.1:0\", {lb}, tls=tls.server({}), name=\"inner\")\n\
         listen(\"127.0.0.1:0\", inner, http=http(trusted=[\"127.0.0.1\"]), name=\"outer\")",
        authority.words(&["inner.test"])
    ));
    let answer = Conn::new(outer(&served)).get("/", "X-Forwarded-For: 203.0.113.9\r\n");
    let cookie = answer.header("set-cookie").expect("it sticks");
    assert_eq!(cookie.ends_with("; Secure"), proto == "https", "{cookie}");
    let head = origin.seen()[0].0.to_ascii_lowercase();
    assert!(head.contains("x-forwarded-for: 203.0.113.9, 127.0.0.1\r\n"), "{head}");
    assert!(head.contains(&format!("x-forwarded-proto: {proto}\r\n")), "{head}");
}

/// A check knows it as a request does.
#[test]
fn it_is_checked_by_tls() {
    let authority = Authority::new("checked");
    for versions in ["[\"h1\"]", "[\"h2\"]"] {
        let served = serve(&format!(
            "inner = listen(\"127.0.0.1:0\", respond(200), tls=tls.server({}), http=http(versions={versions}))\n\
             check = health.http(\"/\", interval=20*ms, rise=1, initial=\"down\")\n\
             listen(\"127.0.0.1:0\", lb.first([inner], health=check, panic=None))",
            authority.words(&["inner.test"])
        ));
        until(|| get(outer(&served), "/").status == 200);
    }
}

/// Certificates are replaced, in the same files and by others, while requests come on connections that are new each
/// time: none is lost.
#[test]
fn replaced_certificates_are_followed() {
    let authority = Authority::new("replaced");
    let text = |file_name: &str, name: &str| {
        let files = authority.files_of(file_name, &authority.issue(&[name], false));
        let pair = format!("\"{}\", \"{}\"", files.cert, files.key);
        file(&pair, ", http=http(versions=[\"h1\"], max_requests=1)", "respond(200, body=\"ok\")")
    };
    let served = serve_with(&text("a", "first.test"), 2, false);
    let (end, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (config, addr) = (Arc::new(client(&authority)), outer(&served).to_owned());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut conn = Conn::new(&addr);
                while !end.load(SeqCst) {
                    assert_eq!(conn.get("/", "").status, 200, "after {}", asked.load(SeqCst));
                    asked.fetch_add(1, SeqCst);
                }
            });
        }
        let goes_on = || {
            let before = asked.load(SeqCst);
            until(|| asked.load(SeqCst) > before + 20);
        };
        goes_on();
        for round in 0..20 {
            let name = format!("{round}.test");
            // By turns the arguments stay the same, and change.
            served.reload(&text(["a", "a", "b"][round % 3], &name));
            goes_on();
            let mut tls = connect(&config, &served.addr, &name);
            assert_eq!(status(&mut tls, &name), 200, "it shows what was read again");
        }
        end.store(true, SeqCst);
    });
}

/// A listener that speaks TLS from now on, or not any more, is another target: no connection of before is used.
#[test]
fn tls_may_come_and_go() {
    let authority = Authority::new("comes");
    let words = authority.words(&["inner.test"]);
    let text = |tls: &str| file(tls, "", "respond(200, body=\"ok\")");
    let served = serve(&text(""));
    let mut conn = Conn::new(outer(&served));
    assert_eq!((conn.get("/", "").status, handshakes(&served)), (200, 0));
    let plain = get(&served.addrs[0], "/");
    assert_eq!(plain.status, 200);
    served.reload(&text(&words));
    assert_eq!(conn.get("/", "").status, 200);
    assert!(handshakes(&served) > 0, "in cleartext it is reached no more");
    let before = get(&served.addrs[0], "/");
    assert_eq!(before.status, 400, "{before:?}");
    served.reload(&text(""));
    assert_eq!(conn.get("/", "").status, 200);
    assert_eq!(get(&served.addrs[0], "/").status, 200);
}

/// Shows a certificate, whether or not it has its key.
#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesServerCert for Shows {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// A process that has taken its address gets no request: neither with a certificate of the same authority for the same
/// name, nor with the listener's own, whose key it does not have.
#[test]
fn somebody_else_at_its_address_is_not_trusted() {
    let authority = Authority::new("else");
    let own = authority.issue(&["inner.test"], false);
    let files = authority.files_of("own", &own);
    let other = authority.issue(&["inner.test"], false);
    for (number, shown) in [&other.0, &own.0].into_iter().enumerate() {
        let path = std::env::temp_dir().join(format!("weir-else-{}-{number}", std::process::id()));
        let served = serve(&format!(
            "inner = listen(\"unix:{}\", respond(200, body=\"ok\"), tls=tls.server(\"{}\", \"{}\"), name=\"inner\", \
             http=http(versions=[\"h1\"], max_requests=1))\n\
             listen(\"127.0.0.1:0\", inner, name=\"outer\")",
            path.display(),
            files.cert,
            files.key
        ));
        assert_eq!(get(outer(&served), "/").body, "ok");
        std::fs::remove_file(&path).expect("its file");
        let listener = UnixListener::bind(&path).expect("a socket");
        let config = shows(shown, &other.1);
        let stranger = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("weir");
            let mut tls = ServerConnection::new(config).expect("a server");
            let ended = tls.complete_io(&mut stream).is_err();
            let _ = stream.flush();
            ended
        });
        assert_eq!(get(outer(&served), "/").status, 503);
        assert!(stranger.join().expect("it has ended"), "it was told nothing");
        let _ = std::fs::remove_file(&path);
    }
}

fn shows(cert: &str, key: &str) -> Arc<ServerConfig> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let chain = vec![CertificateDer::from_pem_slice(cert.as_bytes()).expect("PEM")];
    let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    let key = provider.key_provider.load_private_key(key).expect("a key");
    let shows = Shows(Arc::new(CertifiedKey::new(chain, key)));
    let builder = ServerConfig::builder_with_provider(Arc::new(provider));
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    Arc::new(builder.with_cert_resolver(Arc::new(shows)))
}
