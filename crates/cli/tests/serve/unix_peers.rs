//! Clients behind a proxy that reaches weir over a Unix socket: weir knows them from X-Forwarded-* if the file trusts
//! `unix:`, and from the PROXY protocol if the file demands it of `unix:`; otherwise no client is known.

use crate::shared::common;
use crate::shared::serve;
use crate::shared::serve::{Message, Origin, Stream, Weir};
use rustix::process::Signal;
use serde_json::Value;

/// What a proxy in front says of its client, after an element that the client has made up.
const SAID: &str = "X-Forwarded-For: 192.0.2.1, 203.0.113.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n";

/// A listener on a Unix socket before an origin, with a route, a template and an access log that tell which client weir
/// sees.
struct Case {
    weir: Weir,
    origin: Origin,
    scratch: common::Scratch,
}

/// Both versions of the header for the client 203.0.113.9:4000, which came to 192.0.2.80:443.
const PROXY: [&[u8]; 2] = [
    b"PROXY TCP4 203.0.113.9 192.0.2.80 4000 443\r\n",
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x09\xc0\0\x02\x50\x0f\xa0\x01\xbb",
];

impl Case {
    fn new(name: &str, http: &str, server: &str) -> Case {
        let scratch = common::Scratch::new(name);
        let origin = Origin::answering(|request| {
            let said = |name: &str| request.all(name).join("|");
            let all = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-client"].map(said);
            serve::reply(&all.join(" / "))
        });
        // What no client can match is refused: without a trusted peer no client has an address.
        let network = if http.is_empty() { "" } else { ", client = \"203.0.113.0/24\"" };
        let file = format!(
            "app = rewrite(server(\"app\", addr = \"{}\"{server}), set = {{\"x-client\": \"{{client}}\"}})\n\
             to = redirect(\"https://{{host}}{{uri}}\")\n\
             known = respond(200, \"known\")\n\
             site = route([(when(path = \"/to\"), to), \
                 (when(path = \"/known\"{network}), known)], otherwise = app)\n\
             listen(\"unix:{}\", site, name = \"web\", loops = 1, http = http(access_log = \"{}\"{http}))\n",
            origin.addr(),
            scratch.path("web.sock"),
            scratch.path("log")
        );
        Case { weir: Weir::new(&file), origin, scratch }
    }

    /// The answer to a GET with these fields, on a connection that begins with these bytes.
    fn ask(&self, begin: &[u8], target: &str, fields: &str) -> Message {
        let mut client = self.weir.client();
        client.send(begin).expect("weir takes it");
        client.ask(&format!("GET {target} HTTP/1.1\r\nHost: h:8443\r\n{fields}\r\n")).expect("an answer")
    }

    /// The client of each line of the access log.
    fn logged(mut self) -> Vec<Value> {
        self.weir.signal(Signal::TERM);
        assert_eq!(self.weir.ends(), Some(0));
        self.origin.read_only_http();
        let log = std::fs::read_to_string(self.scratch.path("log")).expect("a log");
        let line = |l: &str| serde_json::from_str::<Value>(l).expect("JSON");
        log.lines().map(|l| line(l)["client"].clone()).collect()
    }
}

#[test]
fn a_trusted_proxy_names_the_client() {
    let case = Case::new("unix-trusted", ", trusted = [\"unix:\"]", "");
    let seen = case.ask(b"", "/", SAID).body_text();
    assert_eq!(seen, "192.0.2.1, 203.0.113.7 / https / shop.example / 203.0.113.7");
    assert_eq!(case.ask(b"", "/known", SAID).body_text(), "known");
    // The client came by TLS to that very port, as the proxy says.
    assert_eq!(case.ask(b"", "/to", SAID).field("location"), Some("https://h:8443/to"));
    // Without a word of the proxy there is no client, and what came is what weir saw itself.
    assert_eq!(case.ask(b"", "/", "").body_text(), " / http / h:8443 / ");
    assert_eq!(
        case.logged(),
        ["203.0.113.7".into(), "203.0.113.7".into(), "203.0.113.7".into(), Value::Null]
    );
}

/// The walk goes on from the right as long as the addresses are those of trusted proxies.
#[test]
fn the_client_is_the_rightmost_untrusted_address() {
    let case = Case::new("unix-chain", ", trusted = [\"unix:\", \"203.0.113.7\"]", "");
    assert_eq!(
        case.ask(b"", "/", SAID).body_text(),
        "192.0.2.1, 203.0.113.7 / https / shop.example / 192.0.2.1"
    );
    assert_eq!(case.ask(b"", "/known", SAID).body_text().split(" / ").last(), Some("192.0.2.1"));
    assert_eq!(case.logged(), ["192.0.2.1", "192.0.2.1"]);
}

#[test]
fn without_the_word_no_peer_of_a_unix_socket_is_trusted() {
    let case = Case::new("unix-untrusted", "", "");
    assert_eq!(case.ask(b"", "/", SAID).body_text(), " / http / h:8443 / ");
    assert_eq!(case.ask(b"", "/to", SAID).field("location"), Some("https://h/to"));
    assert_eq!(case.logged(), [Value::Null, Value::Null]);
}

/// The client is the one that the header names; what it says of others is not believed.
#[test]
fn a_proxy_must_begin_with_a_header() {
    let case = Case::new("unix-proxy", ", proxy_from = [\"unix:\"]", "");
    for header in PROXY {
        assert_eq!(case.ask(header, "/", SAID).body_text(), "203.0.113.9 / http / h:8443 / 203.0.113.9");
        assert_eq!(case.ask(header, "/known", "").body_text(), "known");
    }
    let mut bare: Stream = case.weir.client();
    assert!(bare.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").is_err(), "it has sent no header");
    let why = "listener \"web\": a local client is cut off: it sent no PROXY header";
    assert!(serve::until(|| case.weir.err().contains(why)), "{}", case.weir.err());
    assert_eq!(case.logged(), ["203.0.113.9"; 4]);
}

/// A balancer that speaks for itself (its checks) stays the peer: then `trusted` says whether its fields are believed.
#[test]
fn trust_is_in_the_peer_that_the_header_names() {
    let case = Case::new("unix-both", ", proxy_from = [\"unix:\"], trusted = [\"unix:\"]", "");
    let own: [&[u8]; 2] = [b"PROXY UNKNOWN\r\n", b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"];
    for header in own {
        let seen = case.ask(header, "/", SAID).body_text();
        assert_eq!(seen, "192.0.2.1, 203.0.113.7 / https / shop.example / 203.0.113.7");
    }
    assert_eq!(case.ask(PROXY[0], "/", SAID).body_text(), "203.0.113.9 / http / h:8443 / 203.0.113.9");
    assert_eq!(case.logged(), ["203.0.113.7", "203.0.113.7", "203.0.113.9"]);
}

/// An origin that wants the header too gets both addresses that came, though the socket has none.
#[test]
fn both_ends_go_on_to_the_origin() {
    for header in PROXY {
        let origin = Origin::new(|peer| {
            let line = peer.stream.line()?;
            let request = peer.request()?;
            let line = String::from_utf8_lossy(&line);
            peer.send(serve::reply(&format!("{line} {}", request.target())))
        });
        let scratch = common::Scratch::new("unix-send-proxy");
        let weir = Weir::new(&format!(
            "listen(\"unix:{}\", server(\"app\", addr = \"{}\", send_proxy = \"v1\"), name = \"web\", \
             http = http(proxy_from = [\"unix:\"]))\n",
            scratch.path("web.sock"),
            origin.addr()
        ));
        let mut client = weir.client();
        client.send(header).expect("weir takes it");
        let answer = client.ask("GET /x HTTP/1.1\r\nHost: h\r\n\r\n").expect("an answer");
        assert_eq!(answer.body_text(), "PROXY TCP4 203.0.113.9 192.0.2.80 4000 443 /x");
    }
}
