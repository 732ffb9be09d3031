//! Origins at their worst, one script for each fault: nothing hangs, nothing is doubled, and the right one is blamed.
//!
//! Each fault is met twice: by a server without a balancer, and by
//! `retry(3, lb.round_robin([bad, good], start="first"))`.

use crate::shared::serve::{Fault, Origin, Peer, Weir, closed_port, origin, pause, reply, tell, until};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// A fault and what it must come to.
struct Case {
    name: &'static str,
    script: fn(&mut Peer) -> Result<(), Fault>,
    /// What a client sees of a server without a balancer: the status, and how its body ends.
    alone: (u16, Body),
    /// Whether a further attempt may follow: for GET, for POST.
    again: (bool, bool),
    /// Whether requests reach the origin at all.
    arrives: bool,
}

/// How the body of an answer ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Body {
    Whole,
    /// A client can tell that it is not whole.
    Cut,
}
use Body::{Cut, Whole};

const NEVER: (bool, bool) = (false, false);
const IDEMPOTENT: (bool, bool) = (true, false);

const CASES: &[Case] = &[
    // Before anything was read: the connection is there, so a request may have been taken in.
    Case {
        name: "resets-after-accept",
        script: Peer::breaks,
        alone: (502, Whole),
        again: IDEMPOTENT,
        arrives: false,
    },
    Case {
        name: "resets-before-it-answers",
        script: |peer| peer.request().and_then(|_| peer.breaks()),
        alone: (502, Whole),
        again: IDEMPOTENT,
        arrives: true,
    },
    Case {
        name: "closes-before-it-answers",
        script: |peer| peer.request().map(drop),
        alone: (502, Whole),
        again: IDEMPOTENT,
        arrives: true,
    },
    Case {
        name: "resets-mid-head",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\nContent-Le")?;
            pause(50);
            peer.breaks()
        },
        alone: (502, Whole),
        again: IDEMPOTENT,
        arrives: true,
    },
    Case {
        name: "closes-mid-head",
        script: |peer| peer.request().and_then(|_| peer.send("HTTP/1.1 200 OK\r\nContent-Le")),
        alone: (502, Whole),
        again: IDEMPOTENT,
        arrives: true,
    },
    // Once a byte of an answer went on, nothing is tried again, and the client can tell that it is cut.
    Case {
        name: "resets-mid-body",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nsome")?;
            pause(100);
            peer.breaks()
        },
        alone: (200, Cut),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "body-too-short",
        script: |peer| {
            peer.request().and_then(|_| peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"))
        },
        alone: (200, Cut),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "last-chunk-missing",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n")
        },
        alone: (200, Cut),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "chunk-garbage",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\nzz\r\nmore")
        },
        alone: (200, Cut),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "reset-of-a-body-without-length",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\n\r\nsome")?;
            pause(100);
            peer.breaks()
        },
        alone: (200, Cut),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "stops-mid-body",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome")?;
            peer.wait_for_end()
        },
        alone: (200, Cut),
        again: NEVER,
        arrives: true,
    },
    // A timeout is not in `on` unless it is put there.
    Case {
        name: "never-answers",
        script: |peer| peer.request().and_then(|_| peer.wait_for_end()),
        alone: (504, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "stops-mid-head",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\nX")?;
            peer.wait_for_end()
        },
        alone: (504, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "only-interim-answers",
        script: |peer| {
            peer.request()?;
            for _ in 0..20 {
                peer.send("HTTP/1.1 102 Processing\r\n\r\n")?;
                pause(50);
            }
            peer.wait_for_end()
        },
        alone: (504, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "drips",
        script: |peer| {
            peer.request()?;
            reply("some").iter().try_for_each(|byte| {
                pause(2);
                peer.send([*byte])
            })
        },
        alone: (200, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "garbage",
        script: |peer| {
            peer.request().and_then(|_| peer.send([0x16, 3, 1, 0, 0xff, b'\n', b'\n', 7].repeat(500)))
        },
        alone: (502, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "other-protocol",
        script: |peer| peer.request().and_then(|_| peer.send("SSH-2.0-OpenSSH_9.2\r\n")),
        alone: (502, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "both-lengths",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n0\r\n\r\n")
        },
        alone: (502, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "two-lengths",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nsome")
        },
        alone: (502, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "head-of-a-megabyte",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 200 OK\r\nX-Big: ")?;
            peer.send("v".repeat(1 << 20))?;
            peer.send("\r\nContent-Length: 2\r\n\r\nok")
        },
        alone: (502, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "five-thousand-fields",
        script: |peer| {
            let fields: String = (0..5000).fold(String::new(), |mut all, i| {
                let _ = write!(all, "X-{i}: 1\r\n");
                all
            });
            peer.request()?;
            peer.send(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok"))
        },
        alone: (502, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "thirty-interim-answers",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(30))?;
            peer.send(reply("some"))
        },
        alone: (200, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "flood-of-interim-answers",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 102 Processing\r\n\r\n".repeat(100_000))?;
            peer.send(reply("some"))
        },
        alone: (502, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "unasked-101",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nsome")
        },
        alone: (502, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "bytes-left-over",
        script: |peer| {
            loop {
                peer.request()?;
                peer.send([reply("some"), reply("stale")].concat())?;
            }
        },
        alone: (200, Whole),
        again: NEVER,
        arrives: true,
    },
    Case {
        name: "answers-500",
        script: |peer| {
            peer.request()?;
            peer.send("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nsome")
        },
        alone: (500, Whole),
        again: NEVER,
        arrives: true,
    },
];

/// Short limits, so that silence shows soon.
const LIMITS: &str = "connect_timeout = 1*s, response_timeout = 400*ms, body_timeout = 600*ms";

fn request(method: &str, target: &str) -> String {
    match method {
        "POST" => format!("POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody"),
        _ => format!("{method} {target} HTTP/1.1\r\nHost: h\r\n\r\n"),
    }
}

#[test]
fn every_fault_comes_to_what_was_promised() {
    let good = Origin::named("good");
    let origins: Vec<Origin> = CASES.iter().map(|case| Origin::new(case.script)).collect();
    let mut file = format!("good = server(\"good\", addr = \"{}\")\n", good.addr());
    for (case, origin) in CASES.iter().zip(&origins) {
        let _ = write!(
            file,
            "bad = server(\"bad\", addr = \"{}\", {LIMITS})\n\
             listen(\"127.0.0.1:0\", bad, name = \"{name}\", loops = 1)\n\
             for method in [\"GET\", \"POST\"]:\n    \
             listen(\"127.0.0.1:0\", retry(3, lb.round_robin([bad, good], start = \"first\")), name = \"{name}+\" + method, loops = 1)\n",
            origin.addr(),
            name = case.name,
        );
    }
    let mut weir = Weir::listening(&file, 3 * CASES.len());
    let mut wrong = Vec::new();
    std::thread::scope(|scope| {
        let weir = &weir;
        let judged: Vec<_> = CASES
            .iter()
            .zip(&origins)
            .map(|(case, origin)| scope.spawn(move || judge(weir, case, origin)))
            .collect();
        for one in judged {
            wrong.extend(one.join().expect("no panic"));
        }
    });
    weir.assert_alive();
    good.read_only_http();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a fault comes to, for GET and POST, alone and with a good server beside.
fn judge(weir: &Weir, case: &Case, origin: &Origin) -> Vec<String> {
    let mut wrong = Vec::new();
    for (method, again) in [("GET", case.again.0), ("POST", case.again.1)] {
        for (beside, listener) in [(false, case.name.to_owned()), (true, format!("{}+{method}", case.name))] {
            origin.take_arrivals();
            let begun = Instant::now();
            let mut client = weir.connect(&listener);
            let answer = client.send(request(method, "/")).and_then(|()| client.response(method));
            let took = begun.elapsed();
            let mut say = |what: String| wrong.push(format!("{listener} {method}: {what}"));
            // The reset may come before weir has seen the connection made: then there was none, and nothing was sent.
            let (again, alone) = match &answer {
                Ok(answer) if !case.arrives && beside && answer.status() == 200 => (true, case.alone),
                Ok(answer) if !case.arrives && answer.status() == 503 => (again, (503, Whole)),
                _ => (again, case.alone),
            };
            let want = if beside && again { (200, Whole) } else { alone };
            match &answer {
                Ok(answer) => {
                    let end = if answer.cut.is_none() { Whole } else { Cut };
                    if (answer.status(), end) != want {
                        say(format!("{} {end:?}, not {want:?}", answer.status()));
                    }
                    let good = answer.body_text() == "good";
                    if good != (beside && again) {
                        say(format!("the body {:?}", answer.body_text()));
                    }
                }
                Err(fault) => say(format!("{fault:?} instead of an answer")),
            }
            if took > Duration::from_secs(4) {
                say(format!("took {took:?}"));
            }
            pause(30);
            let arrivals = origin.take_arrivals().len();
            if arrivals != usize::from(case.arrives) {
                say(format!("{arrivals} arrivals at the bad origin"));
            }
        }
    }
    wrong
}

#[test]
fn a_get_is_tried_again_after_a_reset_and_a_post_is_not() {
    let bad = Origin::new(|peer| peer.request().and_then(|_| peer.breaks()));
    let good = Origin::named("good");
    let weir = Weir::new(&format!(
        "both = [server(\"bad\", addr = \"{}\"), server(\"good\", addr = \"{}\")]\n\
         listen(\"127.0.0.1:0\", retry(3, lb.round_robin(both, start = \"first\")), name = \"one\")\n\
         listen(\"127.0.0.1:0\", retry(3, lb.round_robin(both, start = \"first\")), name = \"two\")\n",
        bad.addr(),
        good.addr()
    ));
    let answer = weir.connect("one").get("/once").expect("an answer");
    assert_eq!((answer.status(), answer.body_text().as_str()), (200, "good"));
    assert_eq!(
        (bad.take_arrivals(), good.take_arrivals()),
        (vec!["GET /once".into()], vec!["GET /once".into()])
    );
    let answer = weir.connect("two").ask(&request("POST", "/post")).expect("an answer");
    assert_eq!(answer.status(), 502);
    assert_eq!(
        (bad.take_arrivals(), good.take_arrivals()),
        (vec!["POST /post".into()], Vec::<String>::new())
    );
}

#[test]
fn without_a_connection_every_method_is_tried_again() {
    let good = Origin::named("good");
    let dead = closed_port();
    let weir = Weir::new(&format!(
        "dead = server(\"dead\", addr = \"{dead}\", connect_timeout = 1*s)\n\
         listen(\"127.0.0.1:0\", dead, name = \"alone\")\n\
         good = server(\"good\", addr = \"{}\")\n\
         listen(\"127.0.0.1:0\", retry(2, lb.round_robin([dead, good], start = \"first\")), name = \"both\")\n",
        good.addr()
    ));
    for method in ["GET", "POST"] {
        let answer = weir.connect("alone").ask(&request(method, "/")).expect("an answer");
        assert_eq!(answer.status(), 503, "{method}");
        for _ in 0..4 {
            let answer = weir.connect("both").ask(&request(method, "/")).expect("an answer");
            assert_eq!((answer.status(), answer.body_text().as_str()), (200, "good"), "{method}");
        }
    }
    assert_eq!(good.arrivals().len(), 8);
}

#[test]
fn a_black_hole_is_given_up_when_the_connect_timeout_ends() {
    let Some((addr, _door, _waiting)) = origin::black_hole() else {
        tell("black hole: ran 0, skipped 1: this system answers a SYN whatever the backlog");
        return;
    };
    let weir = Weir::before(&format!("server(\"hole\", addr = \"{addr}\", connect_timeout = 1*s)"));
    let begun = Instant::now();
    let answer = weir.get("/");
    let took = begun.elapsed();
    assert_eq!(answer.status(), 503);
    assert!((Duration::from_millis(900)..Duration::from_secs(3)).contains(&took), "{took:?}");
}

/// An idle connection that ends exactly when it is used again: a GET is sent once more, a POST is not.
#[test]
fn a_connection_that_ends_when_it_is_used_again() {
    for (method, breaks) in [("GET", false), ("GET", true), ("POST", false), ("POST", true)] {
        let origin = Origin::new(move |peer| {
            peer.request()?;
            peer.send(reply("first"))?;
            peer.request()?;
            if breaks { peer.breaks() } else { Ok(()) }
        });
        let weir = Weir::set("", &format!("server(addr = \"{}\", idle_timeout = 60*s)", origin.addr()));
        let mut client = weir.client();
        assert_eq!(client.get("/1").expect("an answer").status(), 200);
        let answer = client.ask(&request(method, "/2")).expect("an answer");
        if method == "GET" {
            assert_eq!((answer.status(), answer.body_text().as_str()), (200, "first"), "breaks: {breaks}");
            assert_eq!(
                (origin.arrivals(), origin.accepted()),
                (vec!["GET /1".into(), "GET /2".into(), "GET /2".into()], 2)
            );
        } else {
            assert_eq!(answer.status(), 502, "breaks: {breaks}");
            assert_eq!(
                (origin.arrivals(), origin.accepted()),
                (vec!["GET /1".into(), "POST /2".to_owned()], 1)
            );
        }
    }
}

/// An idle connection that the origin has closed is not used: even a POST is safe.
#[test]
fn a_connection_that_has_ended_is_not_used_again() {
    let origin = Origin::new(|peer| peer.request().and_then(|_| peer.send(reply("one"))));
    let weir = Weir::before(&format!("server(addr = \"{}\", idle_timeout = 60*s)", origin.addr()));
    for i in 0..20 {
        let answer = weir.ask(&request("POST", "/")).expect("an answer");
        assert_eq!(answer.status(), 200, "request {i}");
        assert!(until(|| origin.open() == 0));
        // The end has been sent; what it takes to arrive.
        pause(10);
    }
    assert_eq!((origin.arrivals().len(), origin.accepted()), (20, 20));
}

/// A response that must not have a body, and has one, in turn with others: no answer is ever taken for another.
#[test]
fn a_hostile_origin_never_shifts_an_answer() {
    let origin = Origin::new(|peer| {
        let mut turn = peer.number;
        loop {
            let request = peer.request()?;
            let nonce = request.target().trim_start_matches('/').to_owned();
            let body = format!("{nonce} of {}", peer.number);
            let own = format!(
                "HTTP/1.1 200 OK\r\nX-Nonce: {nonce}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let stale = "HTTP/1.1 200 OK\r\nX-Nonce: stale\r\nContent-Length: 5\r\n\r\nstale";
            turn += 1;
            peer.send(match (request.method(), turn % 8) {
                // A body after HEAD, as it would be after GET.
                ("HEAD", _) => own,
                (_, 0) => format!("HTTP/1.1 204 No Content\r\nX-Nonce: {nonce}\r\nContent-Length: 5\r\n\r\nstale"),
                (_, 1) => format!("HTTP/1.1 304 Not Modified\r\nX-Nonce: {nonce}\r\n\r\n{stale}"),
                (_, 2) => format!("{own}{stale}"),
                (_, 3) => format!("HTTP/1.1 103 Early Hints\r\nX-Nonce: stale\r\n\r\n{own}\r\n\r\n"),
                (_, 4) => format!("HTTP/1.1 204 No Content\r\nX-Nonce: {nonce}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{stale}"),
                (_, 5) => format!("HTTP/1.1 100 Continue\r\n\r\n{own}HTTP/1.1 100 Continue\r\n\r\n"),
                (_, 6) => format!(
                    "HTTP/1.1 200 OK\r\nX-Nonce: {nonce}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n{stale}",
                    body.len()
                ),
                _ => own,
            })?;
        }
    });
    let weir = Weir::before(&format!("server(addr = \"{}\")", origin.addr()));
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let weir = &weir;
            scope.spawn(move || {
                let mut client = weir.client();
                for i in 0..150 {
                    let method = if i % 5 == 0 { "HEAD" } else { "GET" };
                    let nonce = format!("{worker}-{i}");
                    let answer = client.ask(&request(method, &format!("/{nonce}"))).expect("an answer");
                    let wrong = answer.status() == 502 && answer.field("x-nonce").is_none();
                    assert!(wrong || answer.field("x-nonce") == Some(nonce.as_str()), "{nonce}: {answer:?}");
                    let body = answer.body_text();
                    let own = body.is_empty() || body.starts_with(&format!("{nonce} ")) || wrong;
                    assert!(own && answer.cut.is_none(), "{nonce}: {answer:?}");
                    if answer.closes() {
                        client = weir.client();
                    }
                }
            });
        }
    });
    origin.read_only_http();
}

/// What was malformed by a client is the client's fault, and costs the origin nothing.
#[test]
fn a_client_that_is_wrong_is_to_blame() {
    let good = Origin::named("good");
    let weir = Weir::new(&format!(
        "a = server(\"a\", addr = \"{0}\")\nb = server(\"b\", addr = \"{0}\")\n\
         listen(\"127.0.0.1:0\", lb.round_robin([a, b], eject = eject(consecutive = 1)), name = \"web\")\n",
        good.addr()
    ));
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in ["zz\r\n", "5\r\nhello\r\nzz\r\n", "5\r\nhelloX", "-1\r\n", "5\nhello"] {
        let answer = weir.ask(&format!("{head}{body}")).expect("an answer");
        assert_eq!(answer.status(), 400, "{body:?}");
        assert!(answer.closes(), "{body:?}");
    }
    for i in 0..20 {
        let mut client = weir.client();
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nhalf").expect("it is sent");
        pause(i % 4);
        client.reset();
    }
    for _ in 0..4 {
        assert_eq!(weir.get("/").status(), 200, "a client's fault ejected a target");
    }
}
