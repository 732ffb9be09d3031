//! Edges of the limits: connections that belong to one client, long targets and heads, an `Expect` in any case.

use crate::shared::serve::{Message, Origin, Stream, Weir, reply, until};
use std::time::Duration;

/// An origin that begins NTLM on each connection: from then on the connection is its client's.
fn ntlm() -> Origin {
    Origin::answering(|_| {
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM\r\nContent-Length: 2\r\n\r\nno".to_vec()
    })
}

fn asked(client: &mut Stream) -> Message {
    let answer = client.get("/").expect("an answer");
    assert_eq!(answer.status(), 401);
    answer
}

/// Its client stays, and asks no more: neither limit of the server is forgotten.
#[test]
fn a_bound_connection_ends_though_its_client_stays() {
    for limits in ["idle_timeout = 300*ms", "idle_timeout = 60*s, max_age = 300*ms"] {
        let origin = ntlm();
        let weir = Weir::before(&format!("server(addr = \"{}\", {limits})", origin.addr()));
        let mut client = weir.client();
        asked(&mut client);
        assert!(until(|| origin.open() == 0), "{limits}: the connection stays open");
        // The client did not notice: it is served on another connection.
        asked(&mut client);
        assert_eq!(origin.accepted(), 2, "{limits}");
        origin.read_only_http();
    }
}

/// As long as neither limit has come it is the same one, and no other client's.
#[test]
fn a_bound_connection_is_one_clients() {
    let origin = ntlm();
    let weir = Weir::before(&format!("server(addr = \"{}\", idle_timeout = 60*s)", origin.addr()));
    let mut clients = [weir.client(), weir.client()];
    for _ in 0..5 {
        clients.iter_mut().for_each(|client| drop(asked(client)));
    }
    assert_eq!((origin.accepted(), origin.open()), (2, 2));
    drop(clients);
    assert!(until(|| origin.open() == 0), "their clients have gone");
}

#[test]
fn a_target_is_no_longer_behind_a_rewrite() {
    const MOST: usize = 8192;
    let origin = Origin::named("some");
    let to = format!("/{}/", "long".repeat(1000));
    let node = format!("rewrite(server(addr = \"{}\"), path = (\"/api/\", \"{to}\"))", origin.addr());
    let weir = Weir::before(&node);
    for (rewritten, status) in [(MOST, 200), (MOST + 1, 414)] {
        let target = format!("/api/{}", "x".repeat(rewritten - to.len()));
        assert_eq!(weir.get(&target).status(), status, "{rewritten} bytes behind the rewrite");
    }
    let arrived: Vec<usize> = origin.arrivals().iter().map(|a| a.len() - "GET ".len()).collect();
    assert_eq!(arrived, [MOST]);
}

/// What a listener takes in, its built-in servers take too, with the fields that weir itself adds.
#[test]
fn a_built_in_server_takes_the_largest_head() {
    const HEAD: usize = 128 << 10;
    let weir = Weir::set("max_head = 128*KiB", "server(\"model\", model = 1*ms)");
    let begin = "GET / HTTP/1.1\r\nHost: h\r\n";
    for size in [33 << 10, 64 << 10, HEAD - 512, HEAD] {
        let mut head = begin.to_owned();
        let fields = 4;
        for n in 0..fields {
            let left = size - head.len() - "\r\n".len();
            let name = format!("X-{n}: ");
            let value = left / (fields - n) - name.len() - "\r\n".len();
            head += &format!("{name}{}\r\n", "v".repeat(value));
        }
        head += "\r\n";
        assert_eq!(head.len(), size);
        let answer = weir.ask(&head).expect("an answer");
        assert_eq!((answer.status(), answer.body_text().as_str()), (200, "model\n"), "{size} bytes");
    }
    let too_large = format!("{begin}X: {}\r\n\r\n", "v".repeat(HEAD));
    assert_eq!(weir.ask(&too_large).expect("an answer").status(), 431);
}

/// RFC 9110, 10.1.1: the expectation is compared without case.
#[test]
fn an_expectation_may_be_written_in_any_case() {
    let origin = Origin::new(|peer| {
        loop {
            let mut head = peer.head()?;
            if head.field("expect").is_some_and(|e| e.eq_ignore_ascii_case("100-continue")) {
                peer.send("HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            peer.body(&mut head)?;
            peer.send(reply(&head.body_text()))?;
        }
    });
    let weir = Weir::before(&format!("server(addr = \"{}\")", origin.addr()));
    for expect in ["100-continue", "100-Continue", "100-CONTINUE"] {
        let mut client = weir.client();
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nExpect: {expect}\r\nContent-Length: 4\r\n\r\n");
        client.send(&head).expect("it is sent");
        client.patience(Duration::from_secs(5));
        assert_eq!(client.line().expect("an interim answer"), b"HTTP/1.1 100 Continue", "{expect}");
        assert_eq!(client.line().expect("its end"), b"");
        client.send("body").expect("it is sent");
        let answer = client.response("POST").expect("an answer");
        assert_eq!((answer.status(), answer.body_text().as_str()), (200, "body"), "{expect}");
    }
    let answer = weir.ask("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-contin\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(answer.expect("an answer").status(), 417);
}
