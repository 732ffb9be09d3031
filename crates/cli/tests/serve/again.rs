//! A process that is started again, or beside another one: cookies of `sticky=` hold, and Unix sockets are bound anew.

use crate::shared::common;
use crate::shared::common::Scratch;
use crate::shared::serve;
use crate::shared::serve::{Origin, Weir, serve_fails};
use rustix::process::Signal;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A balancer with a cookie before these origins, and what else it is given.
fn balancer(origins: &[Origin], more: &str) -> String {
    let servers: Vec<String> = NAMES
        .iter()
        .zip(origins)
        .map(|(name, origin)| format!("server(\"{name}\", addr = \"{}\")", origin.addr()))
        .collect();
    format!("lb.random([{}], sticky = \"srv\"{more})", servers.join(", "))
}

/// Which origin answers a client that sends this field, and the cookie that it is given.
fn ask(weir: &Weir, field: &str) -> (String, Option<String>) {
    let answer = weir.ask(&format!("GET / HTTP/1.1\r\nHost: h\r\n{field}\r\n")).expect("an answer");
    let cookie = answer.field("set-cookie").and_then(|c| c.split(';').next()).map(str::to_owned);
    (answer.body_text(), cookie)
}

/// The cookie of each origin, by asking until all have answered.
fn cookies(weir: &Weir) -> Vec<String> {
    let mut found = vec![None; NAMES.len()];
    for _ in 0..500 {
        let (name, cookie) = ask(weir, "");
        let at = NAMES.iter().position(|n| *n == name).expect("one of them");
        let cookie = cookie.expect("a new client gets a cookie");
        assert_eq!(found[at].get_or_insert(cookie.clone()), &cookie, "two cookies for {name}");
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    found.into_iter().map(|cookie| cookie.expect("all have answered")).collect()
}

fn leads_there(weir: &Weir, cookies: &[String]) {
    for (name, cookie) in NAMES.iter().zip(cookies) {
        for _ in 0..4 {
            assert_eq!(ask(weir, &format!("Cookie: {cookie}\r\n")), ((*name).to_owned(), None));
        }
    }
}

#[test]
fn a_cookie_is_the_same_among_instances_and_after_a_restart() {
    let origins = NAMES.map(Origin::named);
    let node = balancer(&origins, "");
    let (mut first, second) = (Weir::before(&node), Weir::before(&node));
    let given = cookies(&first);
    assert_eq!(cookies(&second), given);
    leads_there(&second, &given);
    first.signal(Signal::TERM);
    assert_eq!(first.ends(), Some(0));
    leads_there(&Weir::before(&node), &given);
    // By their names: the order in the file, and what else is in it, is no part of it.
    let mut turned: Vec<&Origin> = origins.iter().collect();
    turned.reverse();
    let servers: Vec<String> = NAMES
        .iter()
        .rev()
        .zip(turned)
        .map(|(name, origin)| format!("server(\"{name}\", addr = \"{}\")", origin.addr()))
        .collect();
    let other = format!("timeout(9*s, lb.round_robin([{}], sticky = \"srv\"))", servers.join(", "));
    leads_there(&Weir::before(&other), &given);
}

/// A cookie cannot be made without the file of the key; two processes with the same file make the same one.
#[test]
fn a_key_of_a_file_makes_other_cookies() {
    let origins = NAMES.map(Origin::named);
    let scratch = Scratch::new("sticky-key");
    let (one, two) =
        (scratch.file("one.key", [7; 32]), scratch.file("two.key", b"another key of enough bytes"));
    let with = |file: &str| Weir::before(&balancer(&origins, &format!(", sticky_key = \"{file}\"")));
    let none = cookies(&Weir::before(&balancer(&origins, "")));
    let first = with(&one);
    let given = cookies(&first);
    assert!(given.iter().all(|cookie| !none.contains(cookie)), "{given:?} {none:?}");
    assert!(cookies(&with(&two)).iter().all(|cookie| !given.contains(cookie) && !none.contains(cookie)));
    leads_there(&with(&one), &given);
    // One that was made without the key is not valid: the client gets another.
    let (_, cookie) = ask(&first, &format!("Cookie: {}\r\n", none[0]));
    assert!(cookie.is_some_and(|cookie| given.contains(&cookie)));
}

fn listen(path: &str) -> String {
    format!("listen(\"unix:{path}\", respond(200, \"unix\"), loops = 2)\n")
}

/// What a process leaves behind that had no time to remove it is no reason to ask for help.
#[test]
fn a_socket_that_a_killed_process_left_behind_is_bound_anew() {
    let scratch = Scratch::new("stale");
    let path = scratch.path("web.sock");
    for _ in 0..2 {
        let mut weir = Weir::new(&listen(&path));
        assert_eq!(weir.get("/").body_text(), "unix");
        weir.signal(Signal::KILL);
        assert!(weir.ends().is_some());
        assert!(std::fs::exists(&path).expect("readable"), "it had no time to remove it");
    }
    let mut weir = Weir::new(&listen(&path));
    assert_eq!(weir.get("/").body_text(), "unix");
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0));
    assert_eq!(scratch.names(), Vec::<String>::new(), "nothing of it is left, nor a lock");
}

/// Processes that start at once find one stale socket: one of them takes it, the others name that one.
#[test]
fn one_of_many_takes_a_stale_socket() {
    let scratch = Scratch::new("stale-many");
    let path = scratch.path("web.sock");
    drop(UnixListener::bind(&path).expect("the path is free"));
    let file = scratch.file("t.star", listen(&path));
    let start = || {
        let mut command = common::weir();
        command
            .args(["serve", &file])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        command.spawn().expect("the binary starts")
    };
    let mut all: Vec<_> = (0..5).map(|_| start()).collect();
    let ended = |all: &mut Vec<std::process::Child>| -> Vec<i32> {
        all.iter_mut().filter_map(|c| c.try_wait().expect("a child").and_then(|c| c.code())).collect()
    };
    let only_one = serve::until(|| ended(&mut all).len() == 4);
    let answer = serve::Stream::connect(&format!("unix:{path}")).map(|mut client| client.get("/"));
    let codes = ended(&mut all);
    for child in &mut all {
        let _ = child.kill();
        let _ = child.wait();
    }
    assert!(only_one && codes == [3; 4], "{codes:?}");
    assert_eq!(answer.expect("it accepts").expect("an answer").body_text(), "unix");
}

/// A file that is not a socket, or a socket on which a process listens, is left alone, and the start fails.
#[test]
fn what_else_is_in_the_way_stays() {
    let scratch = Scratch::new("in-the-way");
    let path = scratch.file("data.sock", "precious");
    serve_fails(&listen(&path), 3, &[&path, "not a stale socket", "choose another path"]);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "precious");

    let folder = scratch.path("folder.sock");
    std::fs::create_dir(&folder).expect("a folder can be made");
    serve_fails(&listen(&folder), 3, &[&folder]);

    // A link to a stale socket was made on purpose.
    let (stale, link) = (scratch.path("stale.sock"), scratch.path("link.sock"));
    drop(UnixListener::bind(&stale).expect("the path is free"));
    std::os::unix::fs::symlink(&stale, &link).expect("a link can be made");
    serve_fails(&listen(&link), 3, &[&link]);
    let is_link = std::fs::symlink_metadata(&link).expect("it is there").is_symlink();
    let is_socket = std::fs::metadata(&stale).expect("it is there").file_type().is_socket();
    assert!(is_link && is_socket);

    let path = scratch.path("busy.sock");
    let busy = UnixListener::bind(&path).expect("the path is free");
    serve_fails(&listen(&path), 3, &[&path, "listens there already"]);
    drop(serve::Stream::connect(&format!("unix:{path}")).expect("it still listens"));
    drop(busy);
}
