//! Registries behind TLS: which are trusted, which are not, and what weir shows to them.

use super::super::{Client, GivenTrust, Trust, trust};
use super::{ask, client, raw, run};
use crate::fault::{Defect, FaultKind};
use crate::file::folder::Folder;
use crate::registry::fake::{BOUND, Fake, Question, Reply};
use crate::registry::fake_tls::Authority;
use std::io::{Read, Write};
use weir_net::transport::tls::NamedPem;
use weir_plan::{CertificateFiles, TlsClient};

/// The name that registries' certificates are for.
const NAME: &str = "registry.test";

fn answer(_: &Question) -> Reply {
    Reply::Json("[]".to_owned())
}

/// A registry with a certificate for [`NAME`].
fn start(authority: &Authority) -> Fake {
    Fake::start_tls(authority.server(NAME, None), answer)
}

/// What `tls.client(ca=..., name=...)` says, with the authority in a file of this folder.
fn arguments(folder: &Folder, name: Option<&str>) -> TlsClient {
    let ca = Some(folder.path("ca.pem").display().to_string());
    TlsClient { ca, name: name.map(str::to_owned), ..TlsClient::default() }
}

fn named(field: &str, pem: &str) -> NamedPem {
    NamedPem { name: format!("kube.yaml: {field}"), pem: pem.as_bytes().to_vec() }
}

/// The same as a kubeconfig has it.
fn given(authority: &Authority, name: Option<&str>) -> GivenTrust {
    let authorities = Some(named("certificate-authority-data", &authority.pem));
    GivenTrust { authorities, certificate: None, name: name.map(str::to_owned) }
}

/// Asks a registry once, by a client that proves itself by nothing else.
fn get(fake: &Fake, trust: Trust) -> Result<(), Defect> {
    let answer = run(async { client(&fake.url, trust, None).get("/list", BOUND).await });
    answer.map(|answer| assert_eq!(answer.json(), Ok("[]")))
}

#[test]
fn a_registry_of_the_authority_and_the_name_is_asked() {
    let folder = Folder::new("tls-right");
    let authority = Authority::new("right");
    folder.write("ca.pem", &authority.pem);
    let named = start(&authority);
    assert_eq!(get(&named, trust(Some(&arguments(&folder, Some(NAME))))), Ok(()));
    assert_eq!(get(&named, Trust::Given(given(&authority, Some(NAME)))), Ok(()));
    // Without a name the host of the address counts.
    let by_address = Fake::start_tls(authority.server("127.0.0.1", None), answer);
    assert_eq!(get(&by_address, trust(Some(&arguments(&folder, None)))), Ok(()));
    assert_eq!(get(&by_address, Trust::Given(given(&authority, None))), Ok(()));
    // Questions that follow go by the same connection.
    run(async {
        let mut client = client(&named.url, Trust::Given(given(&authority, Some(NAME))), None);
        for _ in 0..3 {
            assert!(client.get("/list", BOUND).await.expect("an answer").json().is_ok());
        }
        let lines = client.watch("/watch", BOUND).await.expect("an answer");
        let line = lines.expect("lines").next(BOUND).await.expect("a line");
        assert_eq!(line, Some(b"[]".to_vec()));
    });
}

#[test]
fn anothers_name_is_a_sentence_with_both_names() {
    let authority = Authority::new("names");
    let fake = start(&authority);
    for (name, shown) in [(None, "127.0.0.1"), (Some("other.test"), "other.test")] {
        let defect = get(&fake, Trust::Given(given(&authority, name))).expect_err(shown);
        let text = defect.to_string();
        assert_eq!(defect.kind, FaultKind::Unreachable, "{text}");
        assert!(text.starts_with(&format!("{} cannot be reached: ", fake.url)), "{text}");
        let problem = format!("its certificate is not for {shown}, but for {NAME}; ");
        assert!(text.contains(&problem), "{text}");
        assert!(text.contains("`name` of `tls.client`") && text.contains("`tls-server-name`"), "{text}");
    }
}

#[test]
fn an_unknown_authority_is_a_sentence() {
    let folder = Folder::new("tls-unknown");
    let (own, others) = (Authority::new("own"), Authority::new("others"));
    folder.write("ca.pem", &own.pem);
    let fake = start(&others);
    for trust in [trust(Some(&arguments(&folder, Some(NAME)))), Trust::Given(given(&own, Some(NAME)))] {
        let defect = get(&fake, trust).expect_err("an unknown authority");
        let text = defect.to_string();
        assert_eq!(defect.kind, FaultKind::Unreachable, "{text}");
        let problem =
            "its certificate is not signed by a known authority; give its authority: `ca` of `tls.client`";
        assert!(text.contains(problem), "{text}");
    }
}

/// As of a registry whose certificate was made by one command.
#[test]
fn the_certificate_of_an_authority_is_a_sentence_unless_it_is_the_one_that_is_named() {
    let (own, others) = (Authority::new("own"), Authority::with_names("others", vec![NAME.to_owned()]));
    let fake = Fake::start_tls(others.own_server(), answer);
    let defect = get(&fake, Trust::Given(given(&own, Some(NAME)))).expect_err("an authority's certificate");
    let text = defect.to_string();
    let problem =
        "its certificate is an authority's own (CA:TRUE); give that very certificate: `ca` of `tls.client`";
    assert!(text.contains(problem) && !text.contains("EndEntity"), "{text}");
    assert_eq!(get(&fake, Trust::Given(given(&others, Some(NAME)))), Ok(()));
}

/// The trust with this certificate as both ways have it.
fn both_with_certificate(folder: &Folder, authority: &Authority, pair: &(String, String)) -> [Trust; 2] {
    folder.write("own.pem", &pair.0);
    folder.write("own.key", &pair.1);
    let path = |name: &str| folder.path(name).display().to_string();
    let files = CertificateFiles { cert: path("own.pem"), key: path("own.key") };
    let arguments = TlsClient { certificate: Some(files), ..arguments(folder, Some(NAME)) };
    let certificate = Some((named("client-certificate-data", &pair.0), named("client-key-data", &pair.1)));
    let given = GivenTrust { certificate, ..given(authority, Some(NAME)) };
    [trust(Some(&arguments)), Trust::Given(given)]
}

#[test]
fn a_certificate_is_shown_where_it_is_asked_for() {
    let folder = Folder::new("tls-certificate");
    let (authority, clients) = (Authority::new("registries"), Authority::new("clients"));
    folder.write("ca.pem", &authority.pem);
    let fake = Fake::start_tls(authority.server(NAME, Some(&clients)), answer);
    for trust in both_with_certificate(&folder, &authority, &clients.issue("weir.test")) {
        assert_eq!(get(&fake, trust), Ok(()));
    }
    // Another authority's, and none. What the registry says of it may come before the question or after it.
    let wrong = both_with_certificate(&folder, &authority, &authority.issue("weir.test"));
    let none = Trust::Given(given(&authority, Some(NAME)));
    for trust in wrong.into_iter().chain([none]) {
        let defect = get(&fake, trust).expect_err("a registry that refuses");
        assert!(matches!(defect.kind, FaultKind::Unreachable | FaultKind::Cut), "{defect}");
        assert!(defect.to_string().contains(&fake.url), "{defect}");
    }
}

#[test]
fn a_key_of_another_certificate_is_a_fault() {
    let folder = Folder::new("tls-pair");
    let authority = Authority::new("pairs");
    folder.write("ca.pem", &authority.pem);
    let fake = start(&authority);
    let pair = (authority.issue("a.test").0, authority.issue("b.test").1);
    for trust in both_with_certificate(&folder, &authority, &pair) {
        let defect = get(&fake, trust).expect_err("no pair");
        assert_eq!(defect.kind, FaultKind::Settings, "{defect}");
        assert!(defect.to_string().contains("does not match the certificate"), "{defect}");
    }
}

#[test]
fn files_are_read_anew_at_each_connection() {
    let folder = Folder::new("tls-anew");
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    let fake = start(&after);
    run(async {
        let trust = trust(Some(&arguments(&folder, Some(NAME))));
        let mut client: Client = client(&fake.url, trust, None);
        let defect = client.get("/list", BOUND).await.expect_err("no file yet");
        assert_eq!(defect.kind, FaultKind::Settings, "{defect}");
        assert!(defect.to_string().contains("ca.pem"), "{defect}");
        folder.write("ca.pem", &before.pem);
        let defect = client.get("/list", BOUND).await.expect_err("an unknown authority");
        assert_eq!(defect.kind, FaultKind::Unreachable, "{defect}");
        folder.write("ca.pem", &after.pem);
        client.get("/list", BOUND).await.expect("an answer");
    });
}

#[test]
fn a_server_without_tls_is_a_fault() {
    let authority = Authority::new("plain");
    let mut fake = Fake::start(answer);
    fake.url = fake.url.replace("http://", "https://");
    let defect = get(&fake, Trust::Given(given(&authority, None))).expect_err("no TLS");
    assert_eq!(defect.kind, FaultKind::Unreachable, "{defect}");
    // Nor does a question without TLS come through to a registry that has it.
    let mut fake = start(&authority);
    fake.url = fake.url.replace("https://", "http://");
    let defect = ask(&fake, BOUND).expect_err("TLS");
    assert!(matches!(defect.kind, FaultKind::Unreachable | FaultKind::Cut), "{defect}");
}

#[test]
fn an_address_of_the_wrong_scheme_is_a_sentence_with_the_other_one() {
    // As a server in Go answers to the first bytes of TLS.
    let fake = Fake::accept("https", |mut socket| {
        if socket.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {
            let _ = socket.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n");
        }
        drop(std::io::copy(&mut socket, &mut std::io::sink()));
    });
    let authority = Authority::new("scheme");
    let defect = get(&fake, Trust::Given(given(&authority, None))).expect_err("no TLS");
    let problem = format!("{} cannot be reached: it does not speak TLS", fake.url);
    assert_eq!(defect.to_string(), format!("{problem}; is the registry's address http://?"));
    // As it answers without TLS where it has TLS.
    let text = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    let fake = Fake::start(move |_| raw(text));
    let defect = ask(&fake, BOUND).expect("an answer").json().expect_err("a refusal");
    let problem = format!("{}/list?a=b is asked without TLS, and wants it", fake.url);
    assert_eq!(defect.to_string(), format!("{problem}; is the registry's address https://?"));
    // Others answer with an alert.
    let fake = Fake::start(|_| raw(b"\x15\x03\x03\x00\x02\x02\x32"));
    let defect = ask(&fake, BOUND).expect_err("no HTTP");
    let problem = format!("{}/list?a=b gives no whole answer: it does not speak HTTP/1.1", fake.url);
    assert_eq!(defect.to_string(), format!("{problem}; is the registry's address https://?"));
}
