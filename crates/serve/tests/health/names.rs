//! `addr="host:port"`: resolved again and again, without a loop that waits.

use crate::dns::{Dns, Says, addresses};
use crate::support::{Mode, Origin, RunningBalancer, pause, serve_with, until};
use std::time::{Duration, Instant};
use weir_serve::Options;

fn serve(file: &str, dns: &Dns) -> RunningBalancer {
    serve_with(file, Options { loops: Some(2), nameserver: Some(dns.addr), ..Options::default() })
}

/// Two origins on one port of two addresses.
fn two() -> (Origin, Origin, u16) {
    loop {
        let a = Origin::new("a");
        let port = a.addr.port();
        if std::net::TcpListener::bind(("127.0.0.2", port)).is_ok() {
            return (a, Origin::listen("b", &format!("127.0.0.2:{port}")), port);
        }
    }
}

#[test]
fn connections_follow_a_name_and_idle_ones_to_its_old_address_close() {
    let (a, b, port) = two();
    let dns = Dns::new(addresses("127.0.0.1"));
    let x = serve(&format!(r#"x = server("s", addr="origin.test:{port}", idle_timeout="60s")"#), &dns);
    assert!(x.bodies(20).iter().all(|body| body == "a"));
    assert!(a.connections() > 0, "idle connections are kept");
    dns.says(addresses("127.0.0.2"));
    until("b answers", || x.bodies(20).iter().all(|body| body == "b"));
    until("no connection to a is left", || a.connections() == 0);
    // Nothing is asked in between that a request would wait for.
    dns.says(Says::Nothing);
    let asked = dns.asked();
    until("it was asked again", || dns.asked() > asked);
    let begun = Instant::now();
    assert!(x.bodies(20).iter().all(|body| body == "b"), "the last good answer stays");
    assert!(begun.elapsed() < Duration::from_secs(2));
    drop(b);
}

/// Containers have such names.
#[test]
fn names_with_underscores_are_names() {
    let dns = Dns::new(addresses("127.0.0.1"));
    for name in ["my_app", "project_web_1", "a_b.example"] {
        let origin = Origin::new("a");
        let x = serve(&format!(r#"x = server("s", addr="{name}:{}")"#, origin.addr.port()), &dns);
        assert!(x.bodies(2).iter().all(|body| body == "a"), "{name}");
    }
}

#[test]
fn a_name_that_does_not_resolve_is_down_until_it_does() {
    let (a, b, port) = two();
    let dns = Dns::new(Says::NoSuchName);
    let x = serve(
        &format!(
            r#"x = lb.round_robin([server("s", addr="origin.test:{port}"), server("b", addr="{}")], panic=0.0, pass_over="0s")"#,
            b.addr
        ),
        &dns,
    );
    until("only b is picked", || x.bodies(40).iter().all(|body| body == "b"));
    dns.says(addresses("127.0.0.1"));
    until("it is up", || x.share("a", 40) > 0);
    assert!((0..40).all(|_| x.get().status == 200));
    // Failures keep the answer; denials count after three.
    dns.says(Says::Failure);
    let asked = dns.asked();
    until("two failures", || dns.asked() >= asked + 4);
    assert!(x.share("a", 40) > 0);
    dns.says(Says::NoSuchName);
    until("it is down", || x.bodies(40).iter().all(|body| body == "b"));
    drop(a);
}

#[test]
fn without_an_address_there_is_no_target() {
    let dns = Dns::new(Says::Failure);
    let x = serve(r#"x = lb.random([server("s", addr="origin.test:80")], panic=0.0)"#, &dns);
    until("no target", || x.get().status == 503);
}

#[test]
fn the_next_address_is_tried_where_one_refuses() {
    let a = Origin::new("a");
    let port = a.addr.port();
    // IPv6 first, and another address of IPv4 where no server is.
    let dns = Dns::new(addresses("127.0.0.3 127.0.0.1 ::1"));
    let x = serve(&format!(r#"x = server("s", addr="origin.test:{port}")"#), &dns);
    assert!(x.bodies(10).iter().all(|body| body == "a"));
}

#[test]
fn a_check_goes_where_the_name_leads() {
    let (a, b, port) = two();
    let dns = Dns::new(addresses("127.0.0.1"));
    a.answer_checks(Mode::Status(500));
    let x = serve(
        &format!(
            r#"x = lb.random([server("s", addr="origin.test:{port}")], panic=0.0, health=health.http("/", interval="30ms", fall=1, rise=1))"#
        ),
        &dns,
    );
    until("down", || x.get().status == 503);
    let head = a.heads_of_checks().pop().expect("a check");
    assert!(head.contains(&format!("Host: origin.test:{port}\r\n")), "{head}");
    dns.says(addresses("127.0.0.2"));
    until("up elsewhere", || x.get().body == "b");
    assert!(b.checks() > 0);
}

#[test]
fn the_hosts_file_is_read() {
    let a = Origin::new("a");
    let file = format!(r#"x = server("s", addr="localhost:{}")"#, a.addr.port());
    let x = serve_with(&file, Options { loops: Some(1), ..Options::default() });
    until("it answers", || {
        pause(Duration::from_millis(1));
        x.get().body == "a"
    });
}
