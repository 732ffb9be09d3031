//! Certificates of weir's own that are shown to origins, and authorities by which origins are verified.

use super::files::{EndGuard, PairFiles, Way, der, rename};
use super::{bundle, failures};
use crate::common::certificates::Authority;
use crate::common::{Conn, configs, get, serve_node, serve_with, until};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// An origin that answers one request on each connection.
struct TlsOrigin {
    addr: String,
    seen: Arc<Handshakes>,
}

/// What an origin has seen of weir.
#[derive(Default)]
struct Handshakes {
    /// The certificate of the last full or resumed handshake.
    last: Mutex<Option<CertificateDer<'static>>>,
    failed: AtomicUsize,
}

impl TlsOrigin {
    fn new(config: Arc<ServerConfig>) -> TlsOrigin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address").to_string();
        let seen = Arc::<Handshakes>::default();
        let own = seen.clone();
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let (config, seen) = (config.clone(), own.clone());
                std::thread::spawn(move || answer(tcp, config, &seen));
            }
        });
        TlsOrigin { addr, seen }
    }

    /// Whether this is the certificate that it was shown last.
    fn has_seen(&self, pem: &str) -> bool {
        self.seen.last.lock().expect("no panic").as_ref() == Some(&der(pem))
    }
}

fn answer(tcp: TcpStream, config: Arc<ServerConfig>, seen: &Handshakes) {
    let mut tls = StreamOwned::new(ServerConnection::new(config).expect("a server"), tcp);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut piece = [0; 4096];
        match tls.read(&mut piece) {
            Ok(n @ 1..) => head.extend_from_slice(&piece[..n]),
            _ => {
                seen.failed.fetch_add(usize::from(tls.conn.is_handshaking()), SeqCst);
                return;
            }
        }
    }
    let shown = tls.conn.peer_certificates().and_then(|all| all.first()).cloned();
    *seen.last.lock().expect("no panic") = shown;
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let sent = tls.write_all(answer);
    tls.conn.send_close_notify();
    // Weir may have gone.
    let _ = sent.and_then(|()| tls.flush());
}

/// An origin that asks for a certificate of this authority.
fn asking(authority: &Authority) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&authority.file).expect("PEM")).expect("a certificate");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let (cert, key) = authority.issue(&["origin.test"], false);
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    let builder = builder.with_client_cert_verifier(verifier.expect("an authority"));
    Arc::new(builder.with_single_cert(vec![der(&cert)], key).expect("a pair"))
}

/// Under load, on a new connection for each request.
#[test]
fn no_handshake_with_an_origin_fails_through_fifty_renewals() {
    let authority = Authority::new("asked");
    let issue = || authority.issue(&["weir.test"], false);
    let config = asking(&authority);
    let mut all: Vec<(TlsOrigin, PairFiles)> = [("one", Way::Rename), ("two", Way::Swap)]
        .into_iter()
        .map(|(name, way)| (TlsOrigin::new(config.clone()), PairFiles::new(&authority, name, way, &issue())))
        .collect();
    let servers: Vec<String> = all
        .iter()
        .map(|(origin, files)| {
            let (addr, ca, pair) = (&origin.addr, &authority.file, files.words().replacen(", ", ", key=", 1));
            let tls = format!("tls.client(ca=\"{ca}\", name=\"origin.test\", cert={pair}, watch=True)");
            format!("server(addr=\"{addr}\", tls={tls}, connect_timeout=10*s)")
        })
        .collect();
    let text = format!("listen(\"127.0.0.1:0\", lb.round_robin([{}], pass_over=0*s))", servers.join(", "));
    let served = serve_with(&text, 2, false);
    let (end, addr) = (AtomicBool::new(false), served.addr.clone());
    std::thread::scope(|scope| {
        let _guard = EndGuard(&end);
        for _ in 0..3 {
            scope.spawn(|| {
                let mut conn = Conn::new(&addr);
                while !end.load(SeqCst) {
                    assert_eq!(conn.get("/", "").status, 200);
                }
            });
        }
        for _ in 0..50 {
            for (origin, files) in &mut all {
                let pair = issue();
                files.replace(&pair);
                until(|| origin.has_seen(&pair.0));
            }
        }
    });
    let failed = all.iter().map(|(origin, _)| origin.seen.failed.load(SeqCst)).sum::<usize>();
    assert_eq!(failed, 0);
    let bad = failures(&served, "weir_upstream_tls_handshakes_total{", &["full", "resumed"]);
    assert_eq!(bad, [""; 0]);
}

/// A new authority is added, origins change to it, and the former one is removed.
#[test]
fn authorities_of_origins_follow_their_file() {
    let (first, second) = (Authority::new("former"), Authority::new("later"));
    let [one, two] = [&first, &second].map(|by| TlsOrigin::new(configs::server(by, &["origin.test"])));
    let file = Path::new(&first.file).with_file_name("origins.pem");
    rename(&file, &bundle(&[&first]));
    let tls = format!("tls=tls.client(ca=\"{}\", name=\"origin.test\", watch=True)", file.display());
    let served = serve_node(&format!(
        "route([(when(path=\"/two\"), server(addr=\"{}\", {tls}))], otherwise=server(addr=\"{}\", {tls}))",
        two.addr, one.addr
    ));
    let statuses = || ["/", "/two"].map(|path| get(&served.addr, path).status);
    assert_eq!(statuses(), [200, 503]);
    rename(&file, &bundle(&[&first, &second]));
    until(|| {
        let [of_one, of_two] = statuses();
        assert_eq!(of_one, 200);
        of_two == 200
    });
    // What is not a bundle takes nothing away.
    rename(&file, "nothing");
    assert_eq!(statuses(), [200, 200]);
    rename(&file, &bundle(&[&second]));
    until(|| statuses() == [503, 200]);
}
