//! Another process (here: another instance in this one) takes the place of a running one under load.

use super::load::{Client, file, server, servers, two_loops, under_load};
use super::successor::{Control, successor};
use super::support::{LIMIT, Mode, Origin, serve_whole, until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use weir_serve::{HAND_OVER, Inherited, Options, Predecessor, SetTarget, TargetState, TargetWeight};

#[test]
fn nobody_is_there() {
    let control = Control::new("nobody");
    assert!(Predecessor::ask(&control.0).expect("that is no error").is_none());
    drop(UnixListener::bind(&control.0).expect("a socket that is left behind"));
    assert!(Predecessor::ask(&control.0).expect("that is no error").is_none());
}

#[test]
fn a_successor_takes_the_sockets_and_what_is_known_of_targets() {
    let (a, b, c) = (Origin::new("a"), Origin::new("b"), Origin::new("c"));
    let of = |lb: &str| {
        let eject = "eject = eject(consecutive = 1, base = 3600 * s, max = 3600 * s), panic = 0";
        file(&format!("{lb}([{}], name = \"apps\", {eject})", servers(&[&a, &b, &c])))
    };
    let control = Control::new("takes");
    let old = serve_whole(&of("lb.round_robin"), two_loops());
    a.answer(Mode::Close);
    until("a is ejected", || old.share("a", 10) == 0 && old.share("b", 10) > 0 && a.requests() > 0);
    let by_hand = SetTarget { state: Some(TargetState::Drain), ..SetTarget::default() };
    old.remote().set_target("apps", &b.addr.to_string(), by_hand).expect("it is there");
    until("b is drained", || old.share("c", 10) == 10);
    a.answer(Mode::Status(200));
    let ended = control.hands_over(&old);
    let predecessor = Predecessor::ask(&control.0).expect("it answers").expect("it is there");
    let new = successor(&of("lb.random"), &predecessor);
    assert_eq!(new.addr(), old.addr(), "the same sockets");
    new.heed(&predecessor);
    predecessor.relieve(&new.remote()).expect("it listens");
    ended.join().expect("no panic").expect("it went well");
    old.ends();
    assert_eq!(new.share("c", 30), 30, "a is out for an hour, b as long as it is wanted");
}

#[test]
fn what_is_set_for_a_time_is_taken_back_by_the_successor() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let of = file(&format!("lb.round_robin([{}], name = \"apps\")", servers(&[&a, &b])));
    let control = Control::new("for");
    let old = serve_whole(&of, two_loops());
    let drained =
        SetTarget { state: Some(TargetState::Drain), for_ns: Some(2_000_000_000), ..SetTarget::default() };
    let heavy = SetTarget { weight: Some(TargetWeight::Number(3.0)), ..SetTarget::default() };
    for set in [drained, heavy] {
        old.remote().set_target("apps", &a.addr.to_string(), set).expect("it is there");
    }
    let ended = control.hands_over(&old);
    let predecessor = Predecessor::ask(&control.0).expect("it answers").expect("it is there");
    let new = successor(&of, &predecessor);
    new.heed(&predecessor);
    predecessor.relieve(&new.remote()).expect("it listens");
    ended.join().expect("no panic").expect("it went well");
    old.ends();
    let by_hand = || new.remote().view(false).pools[0].targets[0].admin;
    until("its time is over", || by_hand() == "file" && new.share("a", 10) > 0);
    let left = &new.remote().view(false).pools[0].targets[0];
    assert_eq!((left.weight, left.weight_left_s), (3.0, None), "the weight holds until it is taken back");
}

#[test]
fn no_request_is_lost() {
    let a = Origin::new("a");
    let text = file(&format!("queue({}, concurrency = 100)", server(&a)));
    let mut now = serve_whole(&text, two_loops());
    let addr = now.addr();
    let (asked, wrong) = under_load(addr, true, |_| {
        for round in 0..5 {
            let control = Control::new(&format!("lost-{round}"));
            let ended = control.hands_over(&now);
            let predecessor = Predecessor::ask(&control.0).expect("it answers").expect("it is there");
            let new = successor(&text, &predecessor);
            predecessor.relieve(&new.remote()).expect("it listens");
            ended.join().expect("no panic").expect("it went well");
            std::mem::replace(&mut now, new).ends();
        }
    });
    assert!(wrong.is_empty(), "of {asked}: {wrong:?}");
}

#[test]
fn a_successor_that_dies_changes_nothing() {
    let a = Origin::new("a");
    let old = serve_whole(&file(&server(&a)), two_loops());
    for tells in [false, true] {
        let control = Control::new(&format!("dies-{tells}"));
        let ended = control.hands_over(&old);
        if tells {
            drop(Predecessor::ask(&control.0).expect("it answers"));
        } else {
            let mut stream = UnixStream::connect(&control.0).expect("it listens");
            std::io::Write::write_all(&mut stream, HAND_OVER).expect("it reads");
        }
        let why = ended.join().expect("no panic").expect_err("nobody took over");
        assert!(why.to_string().contains("this process goes on"), "{why}");
        assert_eq!(old.bodies(20).len(), 20);
        assert!(old.bodies(20).iter().all(|name| name == "a"));
    }
}

/// The answer to a request on a connection of its own.
fn ask(addr: SocketAddr) -> String {
    let mut stream = TcpStream::connect(addr).expect("it is accepted");
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("it is sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the whole answer");
    text
}

#[test]
fn a_socket_without_a_listener_refuses_until_the_old_process_has_ended() {
    let (a, b) = (Origin::new("a"), Origin::new("b"));
    let second = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    let one = file(&server(&a));
    let both = format!("{one}listen(\"{second}\", {}, name = \"second\")\n", server(&b));
    let control = Control::new("left");
    let old = serve_whole(&both, Options { generation: 3, ..two_loops() });
    a.answer(Mode::Hold);
    let held = old.send("");
    until("it is inside", || a.inside().0 == 1);
    let ended = control.hands_over(&old);
    let predecessor = Predecessor::ask(&control.0).expect("it answers").expect("it is there");
    assert_eq!(predecessor.generation, 3);
    let new = successor(&one, &predecessor);
    predecessor.relieve(&new.remote()).expect("it listens");
    ended.join().expect("no panic").expect("it went well");
    // Each loop of the old process empties its queue of connections first: one refusal says nothing of the other loop.
    let is_refused = |text: &str| text.starts_with("HTTP/1.1 503") && text.contains("Connection: close");
    until("the old process accepts no more", || (0..20).all(|_| is_refused(&ask(second))));
    let mut silent = TcpStream::connect(second).expect("it is accepted");
    let text = ask(second);
    assert!(is_refused(&text), "{text:?}");
    a.answer(Mode::Status(200));
    assert_eq!(held.wait().status, 200);
    old.ends();
    until("the socket is closed", || TcpStream::connect(second).is_err());
    silent.set_read_timeout(Some(LIMIT)).expect("a timeout");
    assert!(!matches!(silent.read(&mut [0]), Ok(1..)), "a client that sends nothing gets nothing");
    assert_eq!(new.get().status, 200);
}

#[test]
fn a_socket_of_the_parent_outlives_its_listener() {
    let kept = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = kept.local_addr().expect("its address");
    let inherited = Arc::new(Inherited::default());
    inherited.add_kept(kept.try_clone().expect("a copy").into()).expect("it listens");
    let one = file("respond(200, body = \"first\")");
    let both = format!("{one}listen(\"{addr}\", respond(200, body = \"second\"), name = \"second\")\n");
    let x = serve_whole(&both, Options { inherited: Some(inherited), ..two_loops() });
    for _ in 0..3 {
        assert_eq!(Client::new(addr).get(), Some((200, "second".to_owned())));
        x.reload(&one).expect("it can be served");
        x.reload(&both).expect("the socket can be taken again");
    }
    let control = Control::new("kept");
    x.reload(&one).expect("it can be served");
    let ended = control.hands_over(&x);
    let predecessor = Predecessor::ask(&control.0).expect("it answers").expect("it is there");
    let new = successor(&one, &predecessor);
    predecessor.relieve(&new.remote()).expect("it listens");
    ended.join().expect("no panic").expect("it went well");
    x.ends();
    new.reload(&both).expect("it was handed over, though no listener had it");
    assert_eq!(Client::new(addr).get(), Some((200, "second".to_owned())));
}
