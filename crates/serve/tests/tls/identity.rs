//! What is known of a client and its connection: its certificate in routes and templates, TLS in lines of the log.

use crate::common::certificates::Authority;
use crate::common::configs::client;
use crate::common::{RunningBalancer, serve, until};
use crate::{Tls, connect};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::io::{Read, Write};
use std::sync::Arc;

/// The authority as a client's only one.
fn roots(authority: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&authority.file).expect("PEM")).expect("a certificate");
    roots
}

/// A client that shows a certificate for this name.
fn client_with(authority: &Authority, name: &str) -> Arc<ClientConfig> {
    let (cert, key) = authority.issue(&[name], false);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let chain = vec![CertificateDer::from_pem_slice(cert.as_bytes()).expect("PEM")];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    let config =
        builder.with_root_certificates(roots(authority)).with_client_auth_cert(chain, key).expect("a pair");
    Arc::new(config)
}

/// The head of the answer to a GET with these fields.
fn ask(tls: &mut Tls, path: &str, fields: &str) -> String {
    write!(tls, "GET {path} HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n").expect("it is taken");
    let mut read = Vec::new();
    while !read.windows(4).any(|w| w == b"\r\n\r\n") {
        let mut piece = [0; 4096];
        let n = tls.read(&mut piece).expect("an answer");
        assert!(n > 0, "an answer");
        read.extend_from_slice(&piece[..n]);
    }
    String::from_utf8_lossy(&read).into_owned()
}

fn serve_clients(authority: &Authority, node: &str, http: &str) -> RunningBalancer {
    let pair = authority.words(&["a.test"]);
    let ca = &authority.file;
    serve(&format!(
        "listen(\"127.0.0.1:0\", {node}, tls=tls.server({pair}, client_ca=\"{ca}\", client_auth=\"request\"), http=http({http}))"
    ))
}

#[test]
fn routes_and_templates_know_a_client_by_its_certificate() {
    let authority = Authority::new("identity");
    let served = serve_clients(
        &authority,
        "route([(when(client_name=\"billing.*\"), redirect(\"/{client_name}?{client_sha256}&{client_subject}\")), \
         (when(path=\"/name\"), redirect(\"/{client_name}\"))], otherwise=respond(403))",
        "",
    );
    let billing = client_with(&authority, "billing.prod");
    // A resumed session knows the certificate as well.
    for _ in 0..2 {
        let head = ask(&mut connect(&billing, &served.addr, "a.test"), "/", "");
        let (_, location) = head.split_once("Location: /billing.prod?").expect("a redirection");
        assert_eq!(location.find('&'), Some(64), "{head}");
        assert!(location[65..].starts_with("CN="), "{head}");
    }
    let other = client_with(&authority, "shop.prod");
    let mut tls = connect(&other, &served.addr, "a.test");
    assert!(ask(&mut tls, "/", "").starts_with("HTTP/1.1 403 "));
    let mut none = connect(&Arc::new(client(&authority)), &served.addr, "a.test");
    assert!(ask(&mut none, "/", "").starts_with("HTTP/1.1 403 "));
    // No URL lacks a part.
    assert!(ask(&mut none, "/name", "").starts_with("HTTP/1.1 400 "));
}

/// The keys of a client that has the post-quantum exchange are made by it; an older client is served as before.
#[test]
fn the_post_quantum_key_exchange_is_preferred() {
    use rustls::NamedGroup::{X25519, X25519MLKEM768};
    let authority = Authority::new("exchange");
    let served = serve_clients(&authority, "respond(200)", "");
    for (offered, agreed) in [(vec![X25519, X25519MLKEM768], X25519MLKEM768), (vec![X25519], X25519)] {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.kx_groups.retain(|group| offered.contains(&group.name()));
        let builder = ClientConfig::builder_with_provider(Arc::new(provider));
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let config = builder.with_root_certificates(roots(&authority)).with_no_client_auth();
        let mut tls = connect(&Arc::new(config), &served.addr, "a.test");
        assert!(ask(&mut tls, "/", "").starts_with("HTTP/1.1 200 "));
        assert_eq!(tls.conn.negotiated_key_exchange_group().map(|group| group.name()), Some(agreed));
    }
}

#[test]
fn the_least_version_is_kept_to() {
    let authority = Authority::new("versions");
    for (least, works) in [("1.2", true), ("1.3", false)] {
        let tls = format!("{}, min_version=\"{least}\"", authority.words(&["a.test"]));
        let served =
            serve(&format!("listen(\"127.0.0.1:0\", respond(200, body=\"ok\"), tls=tls.server({tls}))"));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS12]).expect("a version");
        let config = Arc::new(builder.with_root_certificates(roots(&authority)).with_no_client_auth());
        let mut tls = connect(&config, &served.addr, "a.test");
        assert_eq!(tls.flush().is_ok(), works, "{least}");
        let mut newer = connect(&Arc::new(client(&authority)), &served.addr, "a.test");
        assert!(ask(&mut newer, "/", "").starts_with("HTTP/1.1 200 "));
    }
}

#[test]
fn lines_of_the_log_have_the_fields_of_the_file() {
    let authority = Authority::new("log");
    let log = format!("{}.log", authority.file);
    let fields = "[\"header:X-Tenant\", \"response:x-shard\", \"header:x-real-ip\"]";
    let served = serve_clients(
        &authority,
        "respond(200, body=\"ok\", headers={\"x-shard\": \"7\"})",
        &format!("access_log=\"{log}\", log_fields={fields}"),
    );
    let mut tls = connect(&Arc::new(client(&authority)), &served.addr, "a.test");
    let long = "t".repeat(2000);
    let asks =
        format!("X-Tenant: {long}\r\nX-Real-IP: 1.2.3.4\r\nUser-Agent: test/1\r\nReferer: https://b/\r\n");
    assert!(ask(&mut tls, "/", &asks).starts_with("HTTP/1.1 200 "));
    let text = || std::fs::read_to_string(&log).unwrap_or_default();
    until(|| text().ends_with('\n'));
    let line = text();
    let end = format!(
        ",\"user_agent\":\"test/1\",\"referer\":\"https://b/\",\"scheme\":\"https\",\"tls\":\"1.3\",\
         \"server_name\":\"a.test\",\"upstream\":null,\"header:X-Tenant\":\"{}\",\"response:x-shard\":\"7\",\
         \"header:x-real-ip\":null}}\n",
        "t".repeat(1024)
    );
    assert!(line.ends_with(&end), "{line}");
}

#[test]
fn a_sample_leaves_out_only_what_went_well() {
    let authority = Authority::new("sample");
    let log = format!("{}.log", authority.file);
    let node = "route([(when(path=\"/bad\"), respond(500))], otherwise=respond(200))";
    let served = serve_clients(&authority, node, &format!("access_log=\"{log}\", log_sample=0.0"));
    let mut tls = connect(&Arc::new(client(&authority)), &served.addr, "a.test");
    for path in ["/", "/", "/bad", "/"] {
        let _ = ask(&mut tls, path, "");
    }
    let text = || std::fs::read_to_string(&log).unwrap_or_default();
    until(|| text().ends_with('\n'));
    let scraped = served.scrape(weir_serve::Exposition::Prometheus);
    assert!(scraped.contains("weir_log_lines_sampled_total{listener=\"listen\"} 3\n"), "{scraped}");
    drop(served);
    assert_eq!(text().matches('\n').count(), 1);
    assert!(text().contains("\"path\":\"/bad\""));
}
