//! One drain for three ends: of a process, of the old process at a hand-over, of a listener that a reload removes
//! (`docs/spec/serving.md#drain`). A client far away may have sent a request that has not arrived yet.

use super::load::{Client, file, server, two_loops};
use super::successor::{Control, successor};
use super::support::{Mode, Origin, RunningBalancer, serve_whole, until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use weir_serve::Predecessor;

/// A second listener of this address and these settings, beside that of [`file`].
fn both(first: &str, second: SocketAddr, node: &str, http: &str) -> String {
    format!("{}listen(\"{second}\", {node}, name = \"second\", http = http({http}))\n", file(first))
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port")
}

/// Sends one more request on a connection whose listener drains, and reads to the end: the answer must be the last.
fn assert_answered_once_more(client: &mut Client) {
    let stream = client.0.get_mut();
    stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi").expect("it is open");
    let mut whole = String::new();
    client.0.read_to_string(&mut whole).expect("text, and the end");
    assert!(whole.starts_with("HTTP/1.1 200") && whole.contains("onnection: close"), "{whole:?}");
}

/// Waits for the end of an idle connection; how long it took.
fn ends_by_itself(client: &mut Client) -> Duration {
    let begun = Instant::now();
    assert_eq!(client.0.read(&mut [0]).expect("the end in order"), 0);
    begun.elapsed()
}

/// Clients with a connection each, of which some have had an answer.
fn connected(addr: SocketAddr, count: usize) -> Vec<Client> {
    let mut clients: Vec<_> = (0..count).map(|_| Client::new(addr)).collect();
    for client in clients.iter_mut().skip(1) {
        assert_eq!(client.get(), Some((200, "a".to_owned())));
    }
    clients
}

/// After the drain began: a request is answered, and an idle connection ends after five seconds.
fn drains_with_patience(mut clients: Vec<Client>) {
    let (mut idle, mut fresh) = (clients.pop().expect("one"), clients.remove(0));
    for client in &mut clients {
        assert_answered_once_more(client);
    }
    assert_answered_once_more(&mut fresh);
    let took = ends_by_itself(&mut idle);
    assert!(took > Duration::from_secs(2), "an idle connection has five seconds in all, not {took:?}");
}

#[test]
fn a_request_on_its_way_is_answered_by_a_process_that_drains() {
    let a = Origin::new("a");
    let x = serve_whole(&file(&server(&a)), two_loops());
    let clients = connected(x.addr(), 4);
    x.drain();
    until("the listener is closed", || TcpStream::connect(x.addr()).is_err());
    drains_with_patience(clients);
    x.ends();
}

#[test]
fn a_request_on_its_way_is_answered_by_the_old_process_of_a_hand_over() {
    let a = Origin::new("a");
    let text = file(&server(&a));
    let old = serve_whole(&text, two_loops());
    let clients = connected(old.addr(), 4);
    let control = Control::new("patient");
    let ended = control.hands_over(&old);
    let predecessor = Predecessor::ask(&control.0).expect("it answers").expect("it is there");
    let new = successor(&text, &predecessor);
    predecessor.relieve(&new.remote()).expect("it listens");
    ended.join().expect("no panic").expect("it went well");
    drains_with_patience(clients);
    old.ends();
    assert_eq!(new.get().status, 200);
}

#[test]
fn a_request_on_its_way_is_answered_by_a_removed_listener() {
    let (a, second) = (Origin::new("a"), free());
    let x = serve_whole(&both(&server(&a), second, &server(&a), ""), two_loops());
    let clients = connected(second, 4);
    let mut other = Client::new(x.addr());
    x.reload(&file(&server(&a))).expect("it can be served");
    until("the listener is closed", || TcpStream::connect(second).is_err());
    let leaving = x.remote().view(false).leaving;
    let seen: Vec<_> = leaving.iter().map(|one| (one.addr.clone(), one.connections)).collect();
    assert_eq!(seen, [(second.to_string(), 4)], "it is in the view while it drains");
    drains_with_patience(clients);
    until("it has gone", || x.remote().view(false).leaving.is_empty());
    assert_eq!(other.get(), Some((200, "a".to_owned())), "the other is as before");
    assert_eq!(other.get(), Some((200, "a".to_owned())), "and stays open");
}

#[test]
fn a_removed_listener_accepts_until_its_delay_is_over() {
    let (a, second) = (Origin::new("a"), free());
    let x = serve_whole(&both(&server(&a), second, &server(&a), "drain_delay = 1500*ms"), two_loops());
    x.reload(&file(&server(&a))).expect("it can be served");
    // Two more reloads meanwhile change nothing for it.
    for body in ["x", "y"] {
        x.reload(&file(&format!("respond(200, body = \"{body}\")"))).expect("it can be served");
    }
    assert_answered_once_more(&mut Client::new(second));
    until("the listener is closed", || TcpStream::connect(second).is_err());
    assert_eq!(x.get().body, "y");
}

fn held(x: &RunningBalancer, second: SocketAddr, a: &Origin) -> (Client, super::Pending) {
    a.answer(Mode::Hold);
    let stays = x.send("");
    let mut goes = Client::new(second);
    goes.0.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is sent");
    until("both are inside", || a.inside().0 == 2);
    (goes, stays)
}

#[test]
fn a_removed_listener_cuts_its_own_requests_when_its_time_is_over() {
    let (a, second) = (Origin::new("a"), free());
    let x = serve_whole(&both(&server(&a), second, &server(&a), "drain_timeout = 300*ms"), two_loops());
    let (mut goes, stays) = held(&x, second, &a);
    x.reload(&file(&server(&a))).expect("it can be served");
    let mut whole = String::new();
    goes.0.read_to_string(&mut whole).expect("text, and the end");
    assert!(whole.starts_with("HTTP/1.1 502") && whole.contains("onnection: close"), "{whole:?}");
    a.answer(Mode::Status(200));
    assert_eq!(stays.wait().status, 200, "the other listener's request of the same generation goes on");
}

#[test]
fn what_a_process_cuts_is_answered_as_reset() {
    let a = Origin::new("a");
    let text = format!("listen(\"127.0.0.1:0\", {}, http = http(drain_timeout = 300*ms))\n", server(&a));
    let x = serve_whole(&text, two_loops());
    a.answer(Mode::Hold);
    let asked = x.send("");
    until("it is inside", || a.inside().0 == 1);
    x.drain();
    assert_eq!(asked.wait().status, 502);
    x.ends();
}
