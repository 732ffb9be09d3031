//! `weir serve` with TLS and real clients: curl and OpenSSL, which are skipped where they are not installed; what is
//! said of certificates that cannot be used, at start, on SIGHUP and of origins.

use crate::shared::certificates::Authority;
use crate::shared::common::run;
use crate::shared::serve;
use crate::shared::serve::{Weir, serve_fails, tell, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Whether a client is there.
fn has(client: &str) -> bool {
    let there = Command::new(client).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        tell(&format!("{client} is not installed: passed over"));
    }
    there.is_ok()
}

fn port(addr: &str) -> &str {
    addr.rsplit_once(':').expect("an address").1
}

/// What curl prints for these arguments, with the names of the tests at this address; its exit code.
fn curl(addr: &str, args: &[&str]) -> (String, i32) {
    let port = port(addr);
    let mut command = Command::new("curl");
    command.args(["-sS", "--max-time", "20"]);
    for name in ["a.test", "b.test"] {
        command.args(["--resolve", &format!("{name}:{port}:127.0.0.1")]);
    }
    let done = command.args(args).output().expect("curl runs");
    (String::from_utf8_lossy(&done.stdout).into_owned(), done.status.code().unwrap_or(-1))
}

/// A listener with TLS before this node.
fn listen(tls: &str, node: &str) -> String {
    format!("listen(\"127.0.0.1:0\", {node}, name = \"web\", tls = tls.server({tls}))\n")
}

const HELLO: &str = "respond(200, body = \"hello\")";

#[test]
fn curl_speaks_both_versions_and_sessions_are_resumed() {
    if !has("curl") {
        return;
    }
    let authority = Authority::new("curl");
    let weir = Weir::new(&listen(&authority.words(&["a.test"]), HELLO));
    let addr = weir.addr("web");
    let url = format!("https://a.test:{}/", port(addr));
    for version in [&["--tlsv1.3"][..], &["--tls-max", "1.2"]] {
        let args = [&["--cacert", &authority.file], version, &[&url[..]]].concat();
        assert_eq!(curl(addr, &args), ("hello".to_owned(), 0), "{version:?}");
    }
    // No client speaks what is broken.
    assert_ne!(curl(addr, &["--cacert", &authority.file, "--tls-max", "1.1", &url]).1, 0);
    if has("openssl") {
        let shell =
            "openssl s_client -connect $0 -servername a.test -CAfile $1 -reconnect -tls1_2 </dev/null 2>&1";
        let done = Command::new("sh").args(["-c", shell, addr, &authority.file]).output().expect("a shell");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(said.contains("Verify return code: 0") && said.contains("Reused, TLSv1.2"), "{said}");
    }
}

#[test]
fn who_speaks_the_wrong_language_is_told_in_its_own() {
    let authority = Authority::new("wrong");
    let clear = "listen(\"127.0.0.1:0\", respond(200), name = \"clear\")\n";
    let mut weir = Weir::new(&(listen(&authority.words(&["a.test"]), HELLO) + clear));
    let answer = weir.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("an answer");
    assert_eq!(answer.status(), 400);
    assert!(answer.body_text().contains("https://"), "{}", answer.body_text());
    // As much of a ClientHello as says what it is.
    let mut tcp = TcpStream::connect(weir.addr("clear")).expect("weir accepts");
    tcp.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, b'\n']).expect("it is taken");
    tcp.shutdown(std::net::Shutdown::Write).expect("a socket");
    let mut alert = Vec::new();
    tcp.read_to_end(&mut alert).expect("an alert");
    assert_eq!(alert, [0x15, 3, 1, 0, 2, 2, 40]);
    // What is no TLS after its first byte, and what ends or goes on for ever.
    for bytes in [&[0x16][..], &[0x16, 3, 1, 0, 0], &[0x16; 70_000], &[0x16, 3, 3, 0x40, 1, 1, 1]] {
        let mut tcp = TcpStream::connect(weir.addr("web")).expect("weir accepts");
        let _ = tcp.write_all(bytes).and_then(|()| tcp.shutdown(std::net::Shutdown::Write));
        let _ = tcp.read_to_end(&mut Vec::new());
    }
    weir.assert_alive();
}

/// A client that begins a handshake and stops has the time of a head.
#[test]
fn a_handshake_that_does_not_go_on_ends() {
    let authority = Authority::new("slow");
    let tls = format!("tls.server({})", authority.words(&["a.test"]));
    let http = "http(head_timeout = 100*ms)";
    let weir =
        Weir::new(&format!("listen(\"127.0.0.1:0\", {HELLO}, name = \"web\", tls = {tls}, http = {http})\n"));
    for bytes in [&[][..], &[0x16], &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]] {
        let mut tcp = TcpStream::connect(weir.addr("web")).expect("weir accepts");
        tcp.set_read_timeout(Some(serve::PATIENCE)).expect("a socket");
        tcp.write_all(bytes).expect("it is taken");
        assert_eq!(tcp.read_to_end(&mut Vec::new()).expect("an end"), 0, "{bytes:?}");
    }
}

#[test]
fn clients_show_certificates_where_the_file_says_so() {
    if !has("curl") {
        return;
    }
    let (authority, other) = (Authority::new("clients"), Authority::new("others"));
    let own = authority.words(&["a.test"]);
    let (good, bad) = (authority.files(&["client"]), other.files(&["client"]));
    for (auth, without) in [("require", false), ("request", true)] {
        let tls = format!("{own}, client_ca = \"{}\", client_auth = \"{auth}\"", authority.file);
        let weir = Weir::new(&listen(&tls, HELLO));
        let addr = weir.addr("web");
        let url = format!("https://a.test:{}/", port(addr));
        let ask = |more: &[&str]| curl(addr, &[&["--cacert", &authority.file], more, &[&url[..]]].concat());
        assert_eq!(ask(&["--cert", &good.cert, "--key", &good.key]), ("hello".to_owned(), 0));
        assert_eq!(ask(&[]).1 == 0, without, "{auth}");
        assert_ne!(ask(&["--cert", &bad.cert, "--key", &bad.key]).1, 0);
        assert!(until(|| weir.err().contains("not signed by an authority in `client_ca`")), "{}", weir.err());
        assert!(without || until(|| weir.err().contains("it shows no certificate")), "{}", weir.err());
    }
}

/// Each way in which an origin's certificate can be wrong, and what the log and the client get.
#[test]
fn what_is_wrong_with_an_origin_is_said() {
    let (authority, other) = (Authority::new("origins"), Authority::new("nobody"));
    let expired = authority.files_of("expired", &authority.issue(&["a.test"], true));
    // With the host that the client of the test asks for.
    let right = authority.words(&["a.test", "h"]);
    let asks = format!("{right}, client_ca = \"{}\"", authority.file);
    let own = authority.words(&["client"]).replacen("\", \"", "\", key = \"", 1);
    let ca = |of: &Authority| format!("ca = \"{}\"", of.file);
    let mine = ca(&authority);
    let an_authority_that_has_not_signed = ca(&other);
    let named = format!("{mine}, name = \"b.test\"");
    for (origin, tls, says) in [
        (&right, named.as_str(), "for another name"),
        (&right, an_authority_that_has_not_signed.as_str(), "not signed by a known authority"),
        (&right, "", "not signed by a known authority"),
        (&asks, mine.as_str(), "requires a client certificate"),
        (&asks, &format!("{mine}, cert = {own}"), ""),
        (&right, mine.as_str(), ""),
    ] {
        let name = if tls.contains("name =") { "" } else { ", name = \"a.test\"" };
        let tls = format!("{tls}{name}");
        let tls = tls.trim_start_matches(", ");
        let origin = Weir::new(&listen(origin, HELLO));
        let server = format!("server(addr = \"{}\", tls = tls.client({tls}))", origin.addr("web"));
        let weir = Weir::before(&server);
        let answer = weir.get("/");
        if says.is_empty() {
            assert_eq!(answer.body_text(), "hello", "{tls}: {}", weir.err());
        } else {
            assert_eq!(answer.status(), 503, "{tls}: {}", weir.err());
            assert!(until(|| weir.err().contains(says)), "{tls}: {}", weir.err());
        }
    }
    // Another server shows one that has expired.
    if has("openssl") {
        let mut server = Command::new("openssl");
        server.args(["s_server", "-accept", "127.0.0.1:0", "-www", "-cert", &expired.cert, "-key"]);
        server.arg(&expired.key).stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null());
        let mut server = server.spawn().expect("it runs");
        let mut said = String::new();
        let mut out = server.stdout.take().expect("piped");
        while !said.contains("ACCEPT 127.0.0.1:") || !said.ends_with('\n') {
            let mut piece = [0; 256];
            let n = out.read(&mut piece).expect("it says where it listens");
            assert!(n > 0, "{said}");
            said.push_str(&String::from_utf8_lossy(&piece[..n]));
        }
        let addr = said.split("ACCEPT ").nth(1).expect("an address").trim();
        let tls = format!("tls.client({mine}, name = \"a.test\")");
        let weir = Weir::before(&format!("server(addr = \"{addr}\", tls = {tls})"));
        assert_eq!(weir.get("/").status(), 503);
        assert!(until(|| weir.err().contains("its certificate has expired; renew it")), "{}", weir.err());
        server.kill().and_then(|()| server.wait()).expect("it ends");
    }
}

#[test]
fn what_cannot_be_used_ends_the_start_with_a_sentence() {
    let (authority, other) = (Authority::new("start"), Authority::new("second"));
    let (good, second) = (authority.files(&["a.test"]), other.files(&["a.test"]));
    let pair = authority.issue(&["b.test"], false);
    let empty = authority.files_of("empty", &(String::new(), String::new()));
    let junk = authority.files_of("junk", &("no PEM at all".to_owned(), pair.1.replace('\n', "?")));
    let two = |cert: &str, key: &str| listen(&format!("\"{cert}\", \"{key}\""), HELLO);
    let bundle = |path: &str| {
        let pair = format!("\"{}\", \"{}\"", good.cert, good.key);
        listen(&format!("{pair}, client_ca = \"{path}\""), HELLO)
    };
    let origin = |tls: &str| {
        format!("listen(\"127.0.0.1:0\", server(addr = \"127.0.0.1:1\", tls = tls.client({tls})))\n")
    };
    for (file, says, remedy) in [
        (two("/nowhere/a.pem", &good.key), "there is no such file", "folder of the file that names it"),
        (two("/", &good.key), "is not a regular file", "certificate"),
        (two(&good.cert, "/nowhere/a.key"), "the key \"/nowhere/a.key\" cannot be read", "folder"),
        (
            two(&good.cert, &second.key),
            "does not match the certificate",
            "give the key that it was made with",
        ),
        (two(&empty.cert, &good.key), "has no certificate", "BEGIN CERTIFICATE"),
        (two(&good.cert, &empty.key), "has no private key", "BEGIN PRIVATE KEY"),
        (two(&junk.cert, &good.key), "has no certificate", "PEM"),
        (bundle(&empty.cert), "bundle of authorities", "has no certificate"),
        (bundle("/nowhere/ca.pem"), "bundle of authorities", "no such file"),
        (origin(&format!("ca = \"{}\"", empty.cert)), "bundle of authorities", "has no certificate"),
        (
            origin(&format!("cert = \"{}\", key = \"{}\"", good.cert, second.key)),
            "does not match",
            "give the key",
        ),
    ] {
        let said = serve_fails(&file, 2, &[says, remedy]);
        assert!(said.starts_with("error: the "), "{said}");
        // The same without serving it; a file can be looked at where there are no keys.
        let path = authority.files_of("topology", &(file, String::new())).cert;
        run(&["check", "--serve", &path]).fails(2, says);
        let checked = run(&["check", &path]);
        assert!(checked.err.starts_with("warning: the ") && checked.err.contains(says), "{}", checked.err);
        checked.succeeds();
    }
}

/// Whatever else a file has is served: one that is forgotten must not end reloads, hand-overs and restarts.
#[test]
fn an_expired_certificate_is_a_warning() {
    let authority = Authority::new("dated");
    let expired = authority.files_of("expired", &authority.issue(&["a.test"], true));
    let of = |more: &str| {
        let tls = listen(&format!("\"{}\", \"{}\"", expired.cert, expired.key), HELLO);
        format!("listen(\"127.0.0.1:0\", respond(200{more}), name = \"plain\")\n{tls}")
    };
    let warns = "warning: the certificate ";
    let weir = Weir::new(&of(""));
    assert_eq!(weir.get("/").status(), 200);
    assert!(
        until(|| weir.err().contains(warns) && weir.err().contains("has expired; renew it")),
        "{}",
        weir.err()
    );
    weir.replace(&of(", body = \"more\""));
    weir.signal(Signal::HUP);
    assert!(until(|| weir.err().contains("generation 1")), "{}", weir.err());
    assert!(until(|| weir.err().matches(warns).count() == 2), "{}", weir.err());
    assert_eq!(weir.get("/").status(), 200);
    let path = authority.files_of("topology", &(of(""), String::new())).cert;
    let checked = run(&["check", "--serve", &path]);
    assert!(checked.err.contains(warns), "{}", checked.err);
    checked.succeeds();
}

/// While clients come all the time, certificates change: no client is refused, later clients see the new one, and one
/// that cannot be used changes nothing.
#[test]
fn certificates_change_while_clients_come() {
    if !has("curl") || !has("openssl") {
        return;
    }
    let authority = Authority::new("change");
    let weir = Weir::new(&listen(&authority.words(&["a.test"]), HELLO));
    let (addr, end) = (weir.addr("web").to_owned(), AtomicBool::new(false));
    let url = format!("https://a.test:{}/", port(&addr));
    let shown = || {
        let shell = "openssl s_client -connect $0 -servername a.test </dev/null 2>/dev/null | openssl x509 -noout -serial";
        let done = Command::new("sh").args(["-c", shell, &addr]).output().expect("a shell");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let rereads = || weir.err().matches("reload: ").count();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut asked = 0;
                    while !end.load(SeqCst) {
                        let got = curl(&addr, &["--cacert", &authority.file, &url]);
                        assert_eq!(got, ("hello".to_owned(), 0), "after {asked}: {}", weir.err());
                        asked += 1;
                    }
                    asked
                })
            })
            .collect();
        let mut seen = vec![shown()];
        for round in 0..5 {
            let broken = round == 2;
            let (cert, key) = authority.issue(&["a.test"], false);
            let key = if broken { authority.issue(&["a.test"], false).1 } else { key };
            authority.files_of("a.test", &(cert, key));
            let before = rereads();
            weir.signal(Signal::HUP);
            assert!(until(|| rereads() > before), "{}", weir.err());
            let now = shown();
            assert!(now.starts_with("serial=") && seen.contains(&now) == broken, "{round}: {now} {seen:?}");
            seen.push(now);
        }
        end.store(true, SeqCst);
        assert!(clients.into_iter().map(|c| c.join().expect("no client was refused")).sum::<u32>() > 0);
    });
    let said = weir.err();
    assert!(
        said.contains("does not match the certificate") && said.contains("weir serves as before"),
        "{said}"
    );
    assert!(said.contains("certificates read again"), "{said}");
}
