//! Certificates that follow their files (`watch=True`): no handshake fails through renewals, in whichever way files are
//! replaced. What is shown to origins: [`origins`].

mod files;
mod origins;

use crate::common::certificates::Authority;
use crate::common::configs::client;
use crate::common::{Conn, RunningBalancer, serve, serve_with, until};
use crate::connect;
use files::{EndGuard, PairFiles, Way, der, rename, shown, without_sessions};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use weir_serve::Exposition;

/// One file with the certificates of these authorities.
fn bundle(authorities: &[&Authority]) -> String {
    authorities.iter().map(|one| std::fs::read_to_string(&one.file).expect("a file")).collect()
}

/// The counts of handshakes, with these labels, that did not end well.
fn failures(served: &RunningBalancer, metric: &str, good: &[&str]) -> Vec<String> {
    let all = served.scrape(Exposition::Prometheus);
    let lines = all.lines().filter(|line| line.starts_with(metric) && !line.ends_with(" 0"));
    let bad = lines.filter(|line| !good.iter().any(|good| line.contains(&format!("result=\"{good}\""))));
    bad.map(str::to_owned).collect()
}

/// Under load, with and without sessions, and with a reload now and then.
#[test]
fn no_handshake_fails_through_fifty_renewals() {
    let names = ["a.test", "b.test", "c.test"];
    let authority = Authority::new("renewals");
    let issue = |name: &str| authority.issue(&[name], false);
    let ways = names.into_iter().zip([Way::Rename, Way::Swap, Way::Write]);
    let mut all: Vec<PairFiles> =
        ways.map(|(name, way)| PairFiles::new(&authority, name, way, &issue(name))).collect();
    let pairs: Vec<String> = all.iter().map(|files| format!("({})", files.words())).collect();
    let tls = format!("tls.server([{}], watch=True)", pairs.join(", "));
    let text = format!("listen(\"127.0.0.1:0\", respond(200, body=\"ok\"), tls={tls})");
    let served = serve_with(&text, 2, false);
    let (end, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (full, addr) = (without_sessions(&authority), served.addr.clone());
    std::thread::scope(|scope| {
        let _guard = EndGuard(&end);
        for config in [full.clone(), Arc::new(client(&authority))] {
            let (end, count, addr) = (&end, &count, &addr);
            scope.spawn(move || {
                for name in names.iter().cycle() {
                    shown(&config, addr, name);
                    count.fetch_add(1, SeqCst);
                    if end.load(SeqCst) {
                        return;
                    }
                }
            });
        }
        for round in 0..50 {
            let before = count.load(SeqCst);
            for (files, name) in all.iter_mut().zip(names) {
                let pair = issue(name);
                files.replace(&pair);
                until(|| shown(&full, &addr, name) == der(&pair.0));
            }
            until(|| count.load(SeqCst) > before);
            if round % 10 == 9 {
                served.reload(&text);
            }
        }
    });
    assert_eq!(failures(&served, "weir_tls_handshakes_total{", &["ok"]), [""; 0]);
}

/// Whichever half comes first; meanwhile other pairs are renewed.
#[test]
fn a_pair_that_does_not_fit_waits_for_its_other_half() {
    let authority = Authority::new("halves");
    let issue = |name: &str| authority.issue(&[name], false);
    let first = issue("a.test");
    let halved = PairFiles::new(&authority, "a.test", Way::Rename, &first);
    let mut other = PairFiles::new(&authority, "b.test", Way::Rename, &issue("b.test"));
    let pairs = format!("[({}), ({})]", halved.words(), other.words());
    let tls = format!("tls.server({pairs}, watch=True)");
    let served = serve(&format!("listen(\"127.0.0.1:0\", respond(200, body=\"ok\"), tls={tls})"));
    let full = without_sessions(&authority);
    let shown = |name: &str| shown(&full, &served.addr, name);
    let mut before = der(&first.0);
    for (first_half, second_half) in [("tls.key", "tls.crt"), ("tls.crt", "tls.key")] {
        let pair = issue("a.test");
        let put = |half: &str| halved.rename(half, if half == "tls.crt" { &pair.0 } else { &pair.1 });
        put(first_half);
        // It was replaced later, so that by then the half was looked at as well.
        let whole = issue("b.test");
        other.replace(&whole);
        until(|| shown("b.test") == der(&whole.0));
        assert_eq!(shown("a.test"), before, "the former pair is whole");
        put(second_half);
        before = der(&pair.0);
        until(|| shown("a.test") == before);
    }
    assert_eq!(failures(&served, "weir_tls_handshakes_total{", &["ok"]), [""; 0]);
}

/// A client that trusts the listener's authority, and shows a certificate of another.
fn client_of(trusted: &Authority, signer: &Authority) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&trusted.file).expect("PEM")).expect("a certificate");
    let (cert, key) = signer.issue(&["client.test"], false);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    let config = builder.with_root_certificates(roots).with_client_auth_cert(vec![der(&cert)], key);
    Arc::new(config.expect("a pair"))
}

/// Whether a client gets an answer; it resumes its session if it may.
fn is_answered(config: &Arc<ClientConfig>, addr: &str) -> bool {
    let mut tls = connect(config, addr, "a.test");
    tls.sock.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    let asked = write!(tls, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").and_then(|()| tls.flush());
    let mut head = [0; 12];
    asked.is_ok() && tls.read_exact(&mut head).is_ok() && head.ends_with(b" 200")
}

#[test]
fn authorities_of_clients_follow_their_file() {
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let file = Path::new(&first.file).with_file_name("clients.pem");
    rename(&file, &bundle(&[&first]));
    let tls =
        format!("tls.server({}, client_ca=\"{}\", watch=True)", first.words(&["a.test"]), file.display());
    let served = serve(&format!("listen(\"127.0.0.1:0\", respond(200, body=\"ok\"), tls={tls})"));
    let clients = [client_of(&first, &first), client_of(&first, &second)];
    let answered = || clients.each_ref().map(|config| is_answered(config, &served.addr));
    assert_eq!(answered(), [true, false]);
    rename(&file, &bundle(&[&first, &second]));
    until(|| answered() == [true, true]);
    // A session belongs to a certificate that was verified by the former file.
    rename(&file, &bundle(&[&second]));
    until(|| answered() == [false, true]);
}

#[test]
fn the_end_of_a_renewed_certificate_is_known() {
    let authority = Authority::new("ends");
    let valid = authority.issue(&["a.test"], false);
    let mut files = PairFiles::new(&authority, "a.test", Way::Rename, &valid);
    let tls = format!("tls.server({}, watch=True)", files.words());
    let served = serve(&format!("listen(\"127.0.0.1:0\", respond(200, body=\"ok\"), tls={tls})"));
    assert_eq!(served.warnings(), [""; 0]);
    files.replace(&authority.issue(&["a.test"], true));
    until(|| served.warnings().len() == 1);
    assert!(served.warnings()[0].ends_with("has expired; renew it"), "{:?}", served.warnings());
    let text = served.scrape(Exposition::Prometheus);
    let metric = "weir_tls_certificate_not_after_seconds{";
    let line = text.lines().find(|line| line.starts_with(metric)).expect("the metric");
    // 1 January 2021.
    assert!(line.ends_with(" 1609459200"), "{line}");
    files.replace(&valid);
    until(|| served.warnings().is_empty());
}

/// It is recognised by the very certificates that it shows, also by connections that had begun before.
#[test]
fn a_listener_behind_another_is_trusted_through_its_renewals() {
    let authority = Authority::new("behind");
    let mut files = PairFiles::new(&authority, "in", Way::Swap, &authority.issue(&["inner.test"], false));
    let served = serve_with(
        &format!(
            "inner = listen(\"127.0.0.1:0\", respond(200, body=\"ok\"), name=\"inner\", \
             tls=tls.server({}, watch=True), http=http(versions=[\"h1\"], max_requests=1))\n\
             listen(\"127.0.0.1:0\", inner, name=\"outer\")",
            files.words()
        ),
        2,
        false,
    );
    let (end, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (full, outer) = (without_sessions(&authority), served.addrs[1].clone());
    std::thread::scope(|scope| {
        let _guard = EndGuard(&end);
        for _ in 0..3 {
            scope.spawn(|| {
                let mut conn = Conn::new(&outer);
                while !end.load(SeqCst) {
                    assert_eq!(conn.get("/", "").status, 200);
                    count.fetch_add(1, SeqCst);
                }
            });
        }
        for _ in 0..20 {
            let (before, pair) = (count.load(SeqCst), authority.issue(&["inner.test"], false));
            files.replace(&pair);
            until(|| shown(&full, &served.addrs[0], "inner.test") == der(&pair.0));
            until(|| count.load(SeqCst) > before + 3);
        }
    });
}
