//! The life of `weir serve`: addresses that cannot be had, limits, draining, signals; and what it says of each.

use crate::shared::common::{Scratch, run, run_with_input};
use crate::shared::serve;
use crate::shared::serve::{Fault, Origin, Stream, Weir, free_port, pause, reply, serve_fails, until};
use rustix::process::Signal;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn server(origin: &Origin) -> String {
    format!("server(addr = \"{}\")", origin.addr())
}

/// An origin that answers after this time.
fn slow(ms: u64) -> Origin {
    Origin::answering(move |_| {
        pause(ms);
        reply("slow")
    })
}

/// An origin that answers `slow` once it may; `/quick` at once.
fn held() -> (Origin, Arc<AtomicBool>) {
    let may_answer = Arc::new(AtomicBool::new(false));
    let may = may_answer.clone();
    let origin = Origin::answering(move |request| {
        if request.target() != "/quick" {
            until(|| may.load(SeqCst));
        }
        reply("slow")
    });
    (origin, may_answer)
}

#[test]
fn a_port_in_use_is_said_with_the_remedy() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = held.local_addr().expect("bound");
    let file = |loops: u32| format!("listen(\"{addr}\", respond(200), loops = {loops})\n");
    for loops in [1, 2] {
        serve_fails(
            &file(loops),
            3,
            &[&addr.to_string(), "listens there already", "choose another", "it is held by "],
        );
    }
    // A check binds nothing.
    assert_eq!(run_with_input(&["check", "--serve", "-"], &file(2)).code, Some(0));
    drop(held);
    // Nor is a port shared with another weir, though both would share it among their own loops.
    for loops in [1, 2] {
        let first = Weir::new(&file(loops));
        serve_fails(
            &file(2),
            3,
            &["listens there already", &format!("held by another weir, pid {}", first.pid())],
        );
        serve_fails(&file(1), 3, &["listens there already"]);
        assert_eq!(first.get("/").status(), 200);
    }
}

#[test]
fn an_address_that_is_not_ours_is_said_with_the_remedy() {
    let listen = |addr: &str| format!("listen(\"{addr}\", respond(200), loops = 1)\n");
    serve_fails(
        &listen("no-such-name.invalid:80"),
        3,
        &["no-such-name.invalid:80", "/etc/hosts", "or an address"],
    );
    // Of the documentation's network (RFC 5737).
    serve_fails(&listen("192.0.2.1:0"), 3, &["192.0.2.1:0", "no such address", "`ip address`", "\":PORT\""]);
}

#[test]
fn a_socket_file_that_exists_is_said_with_the_remedy() {
    let scratch = Scratch::new("serve-exists");
    let path = scratch.path("web.sock");
    let file = format!("listen(\"unix:{path}\", respond(200, \"unix\"))\n");
    let weir = Weir::new(&file);
    assert_eq!(weir.listening[0].1, format!("unix:{path}"));
    assert_eq!(weir.get("/").body_text(), "unix");
    serve_fails(&file, 3, &[&path, "listens there already"]);
    assert_eq!(weir.get("/").body_text(), "unix", "the other one's socket is not touched");
    drop(weir);
    // One that ends well, or cannot start for another reason, leaves nothing.
    let mut weir = Weir::new(&file);
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0));
    assert!(!std::fs::exists(&path).expect("readable"));
    let held = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let other = held.local_addr().expect("bound");
    serve_fails(
        &format!("{file}listen(\"{other}\", respond(200), name = \"other\")\n"),
        3,
        &["listens there already"],
    );
    assert!(!std::fs::exists(&path).expect("readable"), "a start that failed leaves a socket file behind");
    serve_fails(
        &format!("listen(\"unix:{}/no/such.sock\", respond(200))\n", scratch.path("x")),
        3,
        &["folder"],
    );
}

/// As with a TCP port: the next process need not wait for the drain, which leaves its socket alone.
#[test]
fn a_successor_takes_the_path_while_a_drain_lasts() {
    let (origin, may_answer) = held();
    let scratch = Scratch::new("serve-successor");
    let path = scratch.path("web.sock");
    let listen = |node: &str| format!("listen(\"unix:{path}\", {node}, loops = 2)\n");
    let mut first = Weir::new(&listen(&server(&origin)));
    let mut busy = first.client();
    busy.send(GET).expect("it is sent");
    assert!(until(|| origin.arrivals().len() == 1));
    first.signal(Signal::TERM);
    assert!(until(|| !std::fs::exists(&path).expect("readable")), "it drains, and keeps the path");
    let mut second = Weir::new(&listen("respond(200, \"second\")"));
    may_answer.store(true, SeqCst);
    assert_eq!(busy.response("GET").expect("an answer").body_text(), "slow");
    drop(busy);
    assert_eq!(first.ends(), Some(0));
    assert_eq!(second.get("/").body_text(), "second");
    // A file that another has put in its place is not its own, however it ends.
    for signals in [1, 2] {
        std::fs::remove_file(&path).expect("it is there");
        let third = Weir::new(&listen("respond(200, \"third\")"));
        for _ in 0..signals {
            second.signal(Signal::TERM);
        }
        assert!(second.ends().is_some());
        assert_eq!(third.get("/").body_text(), "third");
        second = third;
    }
}

#[test]
fn a_name_without_address_is_a_target_that_is_down() {
    let mut weir = Weir::before("server(\"app\", addr = \"no-such-name.invalid:80\")");
    assert_eq!(weir.get("/").status(), 503);
    assert!(until(|| weir.err().contains("no-such-name.invalid")), "no warning: {:?}", weir.err());
    weir.assert_alive();
}

#[test]
fn listeners_are_told_in_the_order_of_the_file() {
    let file = "listen(\"127.0.0.1:0\", respond(200, \"1\"), name = \"one\")\n\
                listen(\"[::1]:0\", respond(200, \"2\"), name = \"two\")\n\
                listen(\"localhost:0\", respond(200, \"3\"))\n";
    let weir = Weir::new(file);
    let names: Vec<&str> = weir.listening.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["one", "two", "listen"]);
    assert!(weir.addr("two").starts_with("[::1]:"), "{:?}", weir.listening);
    for (name, body) in [("one", "1"), ("two", "2"), ("listen", "3")] {
        assert_eq!(weir.connect(name).get("/").expect("an answer").body_text(), body);
    }
    assert_eq!(weir.err(), "", "nothing is to be warned of");
    let weir = Weir::with(file, &["two"], 1);
    assert_eq!(weir.listening[0].0, "two");
    assert_eq!(weir.line(Duration::from_millis(100)), None);
    let scratch = Scratch::new("serve-names");
    let path = scratch.file("t.star", file);
    run(&["serve", &path, "three"]).fails(2, "no listener is called `three`; the file has one, two, listen");
}

/// A listener is nothing without those behind it; those before it are not started.
#[test]
fn a_named_listener_comes_with_those_behind_it() {
    let file = "one = listen(\"127.0.0.1:0\", respond(200, \"1\"), name = \"one\")\n\
                two = listen(\"127.0.0.1:0\", lb.first([one]), name = \"two\")\n\
                listen(\"127.0.0.1:0\", lb.first([two]), name = \"three\")\n\
                listen(\"127.0.0.1:0\", respond(200, \"4\"), name = \"four\")\n";
    for (named, started) in
        [("three", &["one", "two", "three"][..]), ("two", &["one", "two"]), ("one", &["one"])]
    {
        let weir = Weir::with(file, &[named], started.len());
        let names: Vec<&str> = weir.listening.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, started);
        assert_eq!(weir.line(Duration::from_millis(100)), None);
        assert_eq!(weir.connect(named).get("/").expect("an answer").body_text(), "1");
    }
}

#[test]
fn unix_sockets_and_ipv6_lead_to_origins() {
    let scratch = Scratch::new("serve-unix");
    let unix = Origin::unix(scratch.path("app.sock").into(), |peer| {
        loop {
            let request = peer.request()?;
            peer.send(reply(&format!("unix {}", request.field("host").unwrap_or_default())))?;
        }
    });
    let six = Origin::bind("[::1]:0".parse().expect("an address"), |peer| {
        loop {
            peer.request()?;
            peer.send(reply("six"))?;
        }
    });
    let weir = Weir::new(&format!(
        "listen(\"unix:{}\", {}, name = \"unix\")\nlisten(\"[::1]:0\", {}, name = \"six\")\n\
         listen(\"127.0.0.1:0\", server(addr = \"unix:/no/such\"), name = \"none\")\n",
        scratch.path("web.sock"),
        server(&unix),
        server(&six)
    ));
    for _ in 0..3 {
        assert_eq!(weir.connect("unix").get("/").expect("an answer").body_text(), "unix h");
        assert_eq!(weir.connect("six").get("/").expect("an answer").body_text(), "six");
    }
    assert_eq!(weir.connect("none").get("/").expect("an answer").status(), 503);
}

#[test]
fn every_loop_has_a_door_of_its_own() {
    let weir = Weir::new("listen(\"127.0.0.1:0\", respond(200), loops = 2)\n");
    let port: u16 = weir.listening[0].1.rsplit(':').next().and_then(|p| p.parse().ok()).expect("a port");
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux");
    let local = format!("0100007F:{port:04X}");
    // 0A is LISTEN.
    let doors = table.lines().map(str::split_whitespace).filter(|l| {
        let words: Vec<&str> = l.clone().collect();
        words.get(1) == Some(&local.as_str()) && words.get(3) == Some(&"0A")
    });
    assert_eq!(doors.count(), 2);
    let mut clients: Vec<Stream> = (0..50).map(|_| weir.client()).collect();
    for client in clients.iter_mut().rev() {
        assert_eq!(client.get("/").expect("an answer").status(), 200);
    }
}

#[test]
fn too_many_clients_wait() {
    for limit in ["max_clients", "max_clients_per_address"] {
        let weir = Weir::new(&format!(
            "listen(\"127.0.0.1:0\", respond(200), name = \"web\", loops = 1, http = http({limit} = 3))\n"
        ));
        // A client that has not asked yet is not idle, and makes no room.
        let mut three: Vec<Stream> = (0..3).map(|_| weir.client()).collect();
        // The fourth waits until one leaves.
        let mut fourth = weir.client();
        fourth.send(GET).expect("it is sent");
        fourth.patience(Duration::from_millis(300));
        assert_eq!(fourth.ending(), Fault::Silence, "{limit}");
        three.pop();
        fourth.patience(Duration::from_secs(3));
        assert_eq!(fourth.response("GET").expect("an answer").status(), 200, "{limit}");
    }
}

/// Out of descriptors, accepting pauses without spinning, and goes on as soon as some are free.
#[test]
fn without_descriptors_accepting_pauses() {
    let origin = Origin::named("origin");
    let file = format!(
        "listen(\"127.0.0.1:0\", {}, loops = 1, http = http(max_clients = 1000, idle_timeout = 60*s, head_timeout = 60*s))\n",
        server(&origin)
    );
    let mut weir = Weir::with_descriptors(&file, 40);
    assert_eq!(weir.get("/").status(), 200);
    let clients: Vec<Stream> = (0..80).map(|_| weir.client()).collect();
    assert!(until(|| weir.descriptors() >= 40), "{} descriptors", weir.descriptors());
    let before = weir.cpu_ms();
    pause(1000);
    let spent = weir.cpu_ms() - before;
    assert!(spent < 200, "{spent} ms of processor time in a second of waiting");
    weir.assert_alive();
    drop(clients);
    assert!(until(|| weir.ask(GET).is_ok_and(|a| a.status() == 200)), "it does not recover");
    weir.assert_alive();
    // It can be ended while it is full.
    let clients: Vec<Stream> = (0..80).map(|_| weir.client()).collect();
    assert!(until(|| weir.descriptors() >= 40));
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0), "full of clients it does not drain");
    drop(clients);
}

/// Connections that wait because descriptors have run out wait for a reason that an operator can read and mend; it is
/// not written ten times a second.
#[test]
fn without_descriptors_it_says_so() {
    let weir = Weir::with("listen(\"127.0.0.1:0\", respond(200), loops = 2)\n", &["--quiet"], 1);
    assert_eq!(weir.get("/").status(), 200);
    weir.allow_descriptors(false);
    let mut waits = weir.client();
    waits.send(GET).expect("it is sent");
    let says = || weir.err().lines().filter(|l| l.contains("Too many open files")).count();
    assert!(until(|| says() > 0));
    for word in ["cannot accept", "ulimit -n", "LimitNOFILE", "max_clients"] {
        assert!(weir.err().contains(word), "{}", weir.err());
    }
    pause(1000);
    assert_eq!(says(), 1, "{}", weir.err());
    weir.allow_descriptors(true);
    assert_eq!(waits.response("GET").expect("an answer").status(), 200);
}

/// With few descriptors it serves, or says why not, for every use of a descriptor.
#[test]
fn a_start_without_room_for_a_client_fails() {
    let origin = Origin::named("origin");
    let scratch = Scratch::new("serve-room");
    let path = scratch.path("web.sock");
    let listen = |addr: &str| format!("listen(\"{addr}\", {}, name = \"web\", loops = 2)\n", server(&origin));
    let file = scratch.file(
        "t.star",
        &(listen("127.0.0.1:0") + &listen(&format!("unix:{path}")).replace("web\"", "unix\"")),
    );
    let mut served = 0;
    // With fewer the file cannot even be read.
    for most in (10..60).step_by(2) {
        let script = format!("exec 2>&1; ulimit -n {most} && exec \"$0\" serve \"$1\"");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_weir"), &file]).stdin(std::process::Stdio::null());
        let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the shell starts");
        let mut said = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().expect("piped"));
        std::io::BufRead::read_line(&mut out, &mut said).expect("UTF-8");
        if let Some(addr) = said.strip_prefix("listening web ") {
            let answer = Stream::connect(addr.trim()).expect("it listens").get("/").expect("an answer");
            assert_eq!(answer.status(), 200, "{most} descriptors");
            served += 1;
            child.kill().expect("it runs");
            child.wait().expect("it has ended");
            std::fs::remove_file(&path).expect("it was killed");
            continue;
        }
        std::io::Read::read_to_string(&mut out, &mut said).expect("UTF-8");
        assert_eq!(child.wait().expect("it has ended").code(), Some(3), "{most} descriptors: {said}");
        assert!(said.contains("Too many open files") && said.contains("ulimit -n"), "{most}: {said}");
        assert!(!std::fs::exists(&path).expect("readable"), "{most}: {said}");
    }
    assert!((1..25).contains(&served), "{served}");
}

/// That this process has no descriptor to check with says nothing about the target.
#[test]
fn without_descriptors_no_target_goes_down() {
    let origin = Origin::named("origin");
    let weir = Weir::new(&format!(
        "listen(\"127.0.0.1:0\", lb.random([server(\"app\", addr = \"{}\")], panic = 0.0, \
         health = health.http(\"/check\", interval = 50*ms, fall = 2)), loops = 1)\n",
        origin.addr()
    ));
    let mut client = weir.client();
    assert_eq!(client.get("/").expect("an answer").status(), 200);
    weir.allow_descriptors(false);
    let checks = || origin.arrivals().iter().filter(|a| a.contains("/check")).count();
    pause(100);
    let before = checks();
    pause(500);
    assert_eq!(checks(), before, "it still has descriptors");
    assert_eq!(client.get("/").expect("an answer").status(), 200, "{}", weir.err());
    assert!(!weir.err().contains("is down"), "{}", weir.err());
    // Checks go on, and count again.
    weir.allow_descriptors(true);
    assert!(until(|| checks() > before + 2));
    drop(origin);
    assert!(until(|| weir.err().contains("is down")), "{}", weir.err());
}

#[test]
fn a_full_house_drains() {
    let mut weir = Weir::new(
        "listen(\"127.0.0.1:0\", respond(200), loops = 1, http = http(max_clients = 2, drain_timeout = 2*s))\n",
    );
    let mut clients: Vec<Stream> = (0..4).map(|_| weir.client()).collect();
    assert_eq!(clients[0].get("/").expect("an answer").status(), 200);
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0), "max_clients are connected, and it does not drain");
}

/// A client that waits for a place since before the signal is served as places become free; a later one is not let in.
#[test]
fn those_who_wait_at_a_drain_are_served() {
    for loops in [1, 2] {
        let (origin, may_answer) = held();
        let http = "http = http(max_clients = 2, drain_timeout = 60*s)";
        let mut weir =
            Weir::new(&format!("listen(\"127.0.0.1:0\", {}, loops = {loops}, {http})\n", server(&origin)));
        let mut clients: Vec<Stream> = (0..8).map(|_| weir.client()).collect();
        for client in &mut clients {
            client.send(GET).expect("it is sent");
        }
        assert!(until(|| origin.arrivals().len() == 2));
        let before = weir.cpu_ms();
        weir.signal(Signal::TERM);
        assert!(until(|| Stream::connect(&weir.listening[0].1).is_err()), "it still accepts");
        may_answer.store(true, SeqCst);
        for client in &mut clients {
            let answer = client.response("GET").expect("an answer");
            assert_eq!((answer.status(), answer.closes()), (200, true));
        }
        let spent = weir.cpu_ms() - before;
        assert!(spent < 300, "{spent} ms of processor time for six answers");
        drop(clients);
        assert_eq!(weir.ends(), Some(0));
    }
}

/// More than there are descriptors for wait at the door itself.
#[test]
fn those_who_wait_beyond_descriptors_are_served_too() {
    let origin = slow(20);
    let file = format!(
        "listen(\"127.0.0.1:0\", {}, loops = 1, http = http(max_clients = 4, drain_timeout = 60*s))\n",
        server(&origin)
    );
    let mut weir = Weir::with_descriptors(&file, 40);
    let mut clients: Vec<Stream> = (0..60).map(|_| weir.client()).collect();
    for client in &mut clients {
        client.send(GET).expect("it is sent");
    }
    weir.signal(Signal::TERM);
    for client in &mut clients {
        assert_eq!(client.response("GET").expect("an answer").status(), 200);
    }
    drop(clients);
    assert_eq!(weir.ends(), Some(0));
}

#[test]
fn sigterm_drains() {
    for signal in [Signal::TERM, Signal::INT] {
        let (origin, may_end) = held();
        let mut weir = Weir::before(&server(&origin));
        let (mut busy, mut idle, mut fresh) = (weir.client(), weir.client(), weir.client());
        assert_eq!(idle.get("/quick").expect("an answer").status(), 200);
        busy.send(GET).expect("it is sent");
        assert!(until(|| origin.arrivals().len() == 2));
        weir.signal(signal);
        // An idle client is let go in order, after five seconds of idleness; a client that has asked gets its answer,
        // marked as the last.
        // The loops close their doors one by one.
        assert!(until(|| Stream::connect(&weir.listening[0].1).is_err()), "it still accepts");
        may_end.store(true, SeqCst);
        let answer = busy.response("GET").expect("an answer");
        assert_eq!((answer.status(), answer.closes()), (200, true));
        assert_eq!(busy.ending(), Fault::End);
        assert_eq!(idle.ending(), Fault::End);
        assert_eq!(fresh.ending(), Fault::End);
        drop((busy, idle, fresh));
        assert_eq!(weir.ends(), Some(0));
        // It says that it drains, and nothing was cut off.
        assert!(weir.err().lines().all(|line| line.contains("draining: ")), "{}", weir.err());
    }
}

/// Requests that race the signal are answered or were never taken: under load a drain loses none.
#[test]
fn a_drain_loses_no_request() {
    let origin = slow(3);
    let mut weir = Weir::before(&server(&origin));
    let addr = weir.listening[0].1.clone();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let addr = addr.clone();
            std::thread::spawn(move || {
                let mut served = 0;
                // Each on a connection of its own: one that is accepted is served.
                while let Ok(mut client) = Stream::connect(&addr) {
                    match client.get("/") {
                        Ok(answer) => assert_eq!(answer.status(), 200),
                        // Refused by the system: the door was closed with this one outside.
                        Err(Fault::Reset) => return (served, 1),
                        Err(fault) => panic!("{fault:?} instead of an answer"),
                    }
                    served += 1;
                }
                (served, 0)
            })
        })
        .collect();
    pause(500);
    weir.signal(Signal::TERM);
    let ended: Vec<(u32, u32)> = clients.into_iter().map(|c| c.join().expect("no panic")).collect();
    assert_eq!(weir.ends(), Some(0));
    let served: u32 = ended.iter().map(|(served, _)| served).sum();
    assert!(served > 100, "{ended:?}");
    // What the system lets in between the last look and the close of a door, no process can answer.
    assert!(ended.iter().map(|(_, lost)| lost).sum::<u32>() <= 1, "{ended:?}");
}

#[test]
fn drain_timeout_cuts_and_drain_delay_waits() {
    let origin = slow(60_000);
    let mut weir = Weir::set("drain_timeout = 1*s, drain_delay = 1*s", &server(&origin));
    let mut busy = weir.client();
    busy.send(GET).expect("it is sent");
    assert!(until(|| origin.arrivals().len() == 1));
    let begun = Instant::now();
    weir.signal(Signal::TERM);
    pause(300);
    // It still accepts, as long as others may not have noticed that it goes.
    let late = weir.ask("OPTIONS * HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n").expect("an answer");
    assert_eq!(late.status(), 200);
    assert_eq!(weir.ends(), Some(0));
    let took = begun.elapsed().as_secs_f64();
    assert!((1.8..10.0).contains(&took), "took {took}");
    let cut = busy.response("GET").expect("an answer");
    assert_eq!((cut.status(), cut.closes()), (502, true));
}

/// It tells a waiting operator that it does not hang, and what to do.
#[test]
fn a_drain_that_lasts_is_told() {
    let (origin, may_answer) = held();
    let mut weir = Weir::set("drain_timeout = 60*s", &server(&origin));
    let mut busy = weir.client();
    busy.send(GET).expect("it is sent");
    assert!(until(|| origin.arrivals().len() == 1));
    weir.signal(Signal::TERM);
    assert!(until(|| weir.err().contains("a second signal ends at once")), "{}", weir.err());
    may_answer.store(true, SeqCst);
    assert_eq!(busy.response("GET").expect("an answer").status(), 200);
    assert_eq!(weir.ends(), Some(0));
    assert_eq!(weir.err().matches("draining: ").count(), 1, "{}", weir.err());
    assert!(!weir.err().contains("cut off"), "{}", weir.err());
}

#[test]
fn a_second_signal_ends_at_once() {
    let origin = slow(60_000);
    let scratch = Scratch::new("serve-second");
    let path = scratch.path("web.sock");
    let mut weir = Weir::new(&format!("listen(\"unix:{path}\", {})\n", server(&origin)));
    let mut busy = weir.client();
    busy.send(GET).expect("it is sent");
    assert!(until(|| origin.arrivals().len() == 1));
    weir.signal(Signal::INT);
    pause(300);
    assert_eq!(weir.exit_code(), None);
    weir.signal(Signal::INT);
    assert_eq!(weir.ends(), Some(130));
    assert!(!std::fs::exists(&path).expect("readable"), "the next start would fail");
}

/// Origins are killed and come back while clients ask: with retries, no client sees an error.
#[test]
fn origins_that_come_and_go_are_not_noticed() {
    let (one, two) = (free_port(), free_port());
    let fine = |peer: &mut serve::Peer| {
        loop {
            peer.request()?;
            peer.send(reply("fine"))?;
        }
    };
    let mut origins = [Some(Origin::bind(one, fine)), Some(Origin::bind(two, fine))];
    let mut weir = Weir::before(&format!(
        "retry(3, lb.round_robin([server(\"one\", addr = \"{one}\"), server(\"two\", addr = \"{two}\")]))"
    ));
    let asked: [AtomicUsize; 4] = Default::default();
    let ends = AtomicBool::new(false);
    // No request of one change meets the next: then both might have been away.
    let all_go_on = || {
        let before = asked.each_ref().map(|n| n.load(SeqCst));
        until(|| asked.iter().zip(before).all(|(n, before)| n.load(SeqCst) > before + 20))
    };
    std::thread::scope(|scope| {
        for (worker, asked) in asked.iter().enumerate() {
            let (weir, ends) = (&weir, &ends);
            scope.spawn(move || {
                let mut client = weir.client();
                while !ends.load(SeqCst) {
                    let answer = client.get("/").expect("an answer");
                    assert_eq!(answer.status(), 200, "worker {worker}, request {asked:?}");
                    asked.fetch_add(1, SeqCst);
                }
            });
        }
        let mut went_on = true;
        for turn in 0..12 {
            let (at, addr) = [(0, one), (1, two)][turn % 2];
            drop(origins[at].take());
            pause(100);
            went_on &= all_go_on();
            origins[at] = Some(Origin::bind(addr, fine));
            pause(100);
            went_on &= all_go_on();
        }
        ends.store(true, SeqCst);
        assert!(went_on, "{asked:?}");
    });
    weir.assert_alive();
}

/// The same without origins of the test: those that weir is itself.
#[test]
fn a_file_without_addresses_is_served_by_weir_itself() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/quickstart.star"));
    let weir = Weir::listening(&text.expect("it is there").replace(":8080", ":0"), 1);
    let mut client = weir.client();
    for _ in 0..10 {
        let answer = client.get("/").expect("an answer");
        assert_eq!(answer.status(), 200);
        let name = answer.field("x-weir-server").expect("its name").to_owned();
        assert_eq!(answer.body_text(), format!("{name}\n"));
    }
}
