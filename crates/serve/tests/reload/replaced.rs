//! A reload that replaces all targets of a pool: requests that have not picked yet go to the new ones, and answers that
//! are under way keep no generation (`docs/spec/operating.md#reload`).

use crate::load::{Client, file, server, servers, two_loops, under_load};
use crate::support::{Mode, Origin, serve_whole, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

#[test]
fn a_pool_is_replaced_under_load() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    for scope in ["loop", "process"] {
        let of = |origin: &Origin| {
            file(&format!("lb.p2c([{}], name = \"apps\", scope = \"{scope}\")", server(origin)))
        };
        let x = serve_whole(&of(&a), two_loops());
        let (asked, wrong) = under_load(x.addr(), false, |_| {
            for i in 1..40 {
                x.reload(&of([&a, &b][i % 2])).expect("it can be served");
            }
        });
        assert!(wrong.is_empty(), "scope {scope}, of {asked}: {wrong:?}");
    }
}

#[test]
fn requests_that_wait_pick_a_new_target() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let pools = [
        ("queue(lb.p2c([SERVER], name = \"apps\"), concurrency = 1, name = \"slots\")", "slots"),
        ("lb.p2c([SERVER], name = \"apps\", max_in_flight = 1)", "apps"),
        ("lb.p2c([SERVER], name = \"apps\", max_in_flight = 1, scope = \"process\")", "apps"),
    ];
    for (pool, node) in pools {
        let of = |origin: &Origin| file(&pool.replace("SERVER", &server(origin)));
        let x = serve_whole(&of(&a), two_loops());
        a.answer(Mode::Hold);
        let before = a.inside().0;
        let first = x.send("");
        until("one is inside", || a.inside().0 == before + 1);
        let waiting: Vec<_> = (0..4).map(|_| x.send("")).collect();
        let counted = format!("weir_queue_waiting{{node=\"{node}\"}} 4\n");
        until("four wait", || crate::scraped(&x).contains(&counted));
        x.reload(&of(&b)).expect("it can be served");
        a.answer(Mode::Status(200));
        assert_eq!(first.wait().body, "a");
        for one in waiting {
            let got = one.wait();
            assert_eq!((got.status, got.body.as_str()), (200, "b"), "{pool}");
        }
    }
}

#[test]
fn a_request_whose_body_is_on_its_way_or_that_backs_off_picks_a_new_target() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let of = |node: &str, origin: &Origin| {
        file(&node.replace("POOL", &format!("lb.p2c([{}], name = \"apps\")", server(origin))))
    };
    let buffered = "buffered(POOL, 1 * KiB)";
    let x = serve_whole(&of(buffered, &a), two_loops());
    let mut client = Client::new(x.addr());
    let stream = client.0.get_mut();
    stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab").expect("a socket");
    until("it has come", || crate::scraped(&x).contains("weir_requests_in_flight{listener=\"front\"} 1\n"));
    x.reload(&of(buffered, &b)).expect("it can be served");
    client.0.get_mut().write_all(b"cd").expect("a socket");
    assert_eq!(client.answer(), Some((200, "b".to_owned())));

    let retried = "retry(2, POOL, on = [\"status_5xx\"], backoff = 1 * s, backoff_max = 1 * s)";
    let x = serve_whole(&of(retried, &a), two_loops());
    a.answer(Mode::Status(503));
    let before = a.requests();
    let one = x.send("");
    until("its first attempt has failed", || a.requests() == before + 1);
    x.reload(&of(retried, &b)).expect("it can be served");
    // On a busy machine the second attempt may have begun before the reload.
    a.answer(Mode::Status(200));
    assert_eq!(one.wait().status, 200);
}

#[test]
fn a_wrapped_target_stays_when_others_go() {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    for wrapper in
        ["SERVER", "weight(1, SERVER)", "timeout(5 * s, SERVER)", "queue(SERVER, concurrency = 50)"]
    {
        let of = |origins: &[&Origin]| {
            let wrapped: Vec<String> =
                origins.iter().map(|o| wrapper.replace("SERVER", &server(o))).collect();
            let list = wrapped.join(", ");
            file(&format!(
                "lb.round_robin([{list}], eject = eject(consecutive = 1, base = 3600 * s, max = 3600 * s))"
            ))
        };
        let x = serve_whole(&of(&[&a, &b, &c]), two_loops());
        b.answer(Mode::Close);
        until("b is ejected", || x.bodies(12).iter().all(|name| ["a", "c"].contains(&name.as_str())));
        b.answer(Mode::Status(200));
        let said = x.reload(&of(&[&c, &b])).expect("it can be served");
        assert!(said.contains("+0 -1 target"), "{wrapper}: {said}");
        assert_eq!(x.share("c", 20), 20, "{wrapper}: b's ejection lasts for an hour");
    }
    // The weight of a server is no part of it, either.
    let weighted = |list: String| file(&format!("lb.round_robin([{list}])"));
    let x = serve_whole(&weighted(servers(&[&a, &c])), two_loops());
    let list = format!("weight(2, {}), {}", server(&a), server(&c));
    let said = x.reload(&weighted(list)).expect("it can be served");
    assert!(!said.contains("target") && said.contains("1 weight"), "{said}");
}

/// Answers that are under way keep no generation: a ninth would end the oldest.
#[test]
fn streams_go_on_while_another_pool_changes() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let streams = listener.local_addr().expect("an address");
    let (accepted, begun) = channel::<TcpStream>();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
            if accepted.send(stream).is_err() {
                return;
            }
        }
    });
    let others = [Origin::new("a"), Origin::new("b")];
    let of = |i: usize| {
        let other = server(&others[i % 2]);
        let route = format!(
            "route([(when(path = \"/other\"), lb.p2c([{other}], name = \"other\"))], \
             otherwise = lb.p2c([server(addr = \"{streams}\")], name = \"streams\"))"
        );
        format!("listen(\"127.0.0.1:0\", {route}, name = \"front\", http = http(drain_timeout = 600 * s))\n")
    };
    let x = serve_whole(&of(0), two_loops());
    let mut open = Vec::new();
    for i in 1..=12 {
        let mut client = Client::new(x.addr());
        client.0.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("a socket");
        let mut byte = [0];
        let mut read = Vec::new();
        while !read.ends_with(b"1\r\na\r\n") {
            client.0.read_exact(&mut byte).expect("the stream begins");
            read.push(byte[0]);
        }
        open.push((client, begun.recv().expect("the origin answers")));
        x.reload(&of(i)).expect("it can be served");
    }
    for (mut client, mut origin) in open {
        origin.write_all(b"1\r\nz\r\n0\r\n\r\n").expect("weir reads");
        let mut rest = [0; 11];
        client.0.read_exact(&mut rest).expect("the stream ends in order");
        assert_eq!(&rest, b"1\r\nz\r\n0\r\n\r\n");
    }
}
