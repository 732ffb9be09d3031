//! The file is read again, another process takes over, and systemd is notified: `weir serve` as an operator runs it.

use crate::shared::common::{Scratch, run, weir};
use crate::shared::serve::admin::{addr, get, json};
use crate::shared::serve::{Origin, Stream, Weir, tell, until};
use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

fn answers(what: &str) -> String {
    format!("listen(\"127.0.0.1:0\", respond(200, \"{what}\"), name = \"web\")\n")
}

/// Requests on connections of their own until the end; what was not answered by 200.
fn under_load(at: &str, during: impl FnOnce()) -> (u32, Vec<String>) {
    let (end, asked, wrong) = (AtomicBool::new(false), AtomicU32::new(0), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !end.load(SeqCst) {
                    let got = Stream::connect(at)
                        .map_err(|e| format!("{e:?}"))
                        .and_then(|mut stream| {
                            let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
                            stream.ask(request).map_err(|e| format!("{e:?}"))
                        })
                        .map(|answer| answer.status());
                    if got != Ok(200) {
                        wrong.lock().unwrap().push(format!("{got:?}"));
                    }
                    asked.fetch_add(1, SeqCst);
                }
            });
        }
        assert!(until(|| asked.load(SeqCst) > 20));
        during();
        end.store(true, SeqCst);
    });
    (asked.into_inner(), wrong.into_inner().unwrap())
}

#[test]
fn sighup_reads_the_file_again() {
    let weir = Weir::new(&answers("one"));
    weir.scratch.file("topology.star", answers("two"));
    weir.signal(Signal::HUP);
    assert!(until(|| weir.get("/").body_text() == "two"), "{}", weir.err());
    // It is said once all threads have taken it over.
    let said = || weir.err().contains("reload: generation 1: settings of respond");
    assert!(until(said), "{}", weir.err());
    weir.scratch.file("topology.star", "listen(\"127.0.0.1:0\", respond(20, \"three\"))\n");
    weir.signal(Signal::HUP);
    assert!(until(|| weir.err().contains("weir serves as before")), "{}", weir.err());
    assert!(weir.err().contains("topology.star:1"), "with its place: {}", weir.err());
    assert_eq!(weir.get("/").body_text(), "two");
    // A hundred signals are a few reloads, one after another.
    weir.scratch.file("topology.star", answers("four"));
    (0..100).for_each(|_| weir.signal(Signal::HUP));
    assert!(until(|| weir.get("/").body_text() == "four"), "{}", weir.err());
    let reloads = || weir.err().matches("reload: generation").count();
    assert!(until(|| reloads() >= 2) && reloads() <= 101, "{}", weir.err());
}

#[test]
fn another_process_takes_the_place_of_one() {
    let scratch = Scratch::new("replace");
    let control = scratch.path("control");
    let mut old = Weir::with(&answers("old"), &["--control", &control, "--loops", "2"], 1);
    let at = old.addr("web").to_owned();
    assert_eq!(addr(&old, "control"), format!("unix:{control}"));
    let mut now = None;
    let (asked, wrong) = under_load(&at, || {
        // One that fails before it accepts changes nothing.
        let wrong = scratch.file("wrong.star", "listen(\"127.0.0.1:0\", nothing)\n");
        run(&["serve", &wrong, "--control", &control, "--replace"]).fails(2, "nothing");
        let new = Weir::with(&answers("new"), &["--control", &control, "--replace", "--loops", "2"], 1);
        assert_eq!(new.addr("web"), at, "the same socket: {}", new.err());
        assert_eq!(addr(&new, "control"), format!("unix:{control}"));
        assert_eq!(old.ends(), Some(0), "{}", old.err());
        now = Some(new);
    });
    assert!(wrong.is_empty(), "of {asked}: {wrong:?}");
    let new = now.expect("it took over");
    assert_eq!(new.get("/").body_text(), "new");
    assert_eq!(json(&format!("unix:{control}"), "/config")["generation"], 1, "the path is the new one's");
    run(&["admin", "reload", "--control", &control]).succeeds();
    run(&["admin", "drain", "--control", &control]).succeeds();
    let mut new = new;
    assert_eq!(new.ends(), Some(0), "{}", new.err());
    assert!(!std::path::Path::new(&control).exists(), "it goes with its process");
}

/// By a signal and by the admin interface: the program starts anew as a child, and takes over.
#[test]
fn the_program_starts_anew_in_its_own_place() {
    let scratch = Scratch::new("upgrade");
    let control = scratch.path("control");
    let mut first = Weir::with(&answers("first"), &["--control", &control], 1);
    let at = first.addr("web").to_owned();
    let ask = || get(&at, "/").1;
    let generation = || json(&format!("unix:{control}"), "/config")["generation"].clone();
    assert_eq!(ask(), "first");
    // A file that cannot be served ends the new process; the old one goes on and says why.
    let file = first.scratch.file("topology.star", "nothing at all\n");
    first.signal(Signal::USR2);
    assert!(until(|| first.err().contains("this process goes on")), "{}", first.err());
    run(&["admin", "upgrade", "--control", &control]).fails(1, "before it accepted");
    assert_eq!((ask().as_str(), generation()), ("first", 0.into()));
    std::fs::write(&file, answers("second")).expect("it can be written");
    first.signal(Signal::USR2);
    assert_eq!(first.ends(), Some(0), "{}", first.err());
    assert_eq!((ask().as_str(), generation()), ("second", 1.into()));
    std::fs::write(&file, answers("third")).expect("it can be written");
    let said = run(&["admin", "upgrade", "--control", &control]);
    let said = said.succeeds();
    assert!(said.contains("has taken over"), "{said}");
    assert!(until(|| ask() == "third"));
    run(&["admin", "drain", "--control", &control]).succeeds();
    assert!(until(|| !std::path::Path::new(&control).exists()), "the last one ends too");
}

/// The path by which it was started leads to the new program: a whole path, one from the working folder, and a name
/// that the shell looked up. So it is for each process after it, and where a supervisor adopts them.
#[test]
fn an_upgrade_follows_a_link_that_was_switched() {
    for (started, is_supervised) in
        [("$PWD/current", false), ("./current", false), ("current", false), ("./current", true)]
    {
        let scratch = Scratch::new("upgrade-link");
        let (folder, control, link) = (scratch.path(""), scratch.path("control"), scratch.path("current"));
        let programs = ["v1", "v2"].map(|version| {
            let own = scratch.path(version);
            let from = env!("CARGO_BIN_EXE_weir");
            std::fs::hard_link(from, &own)
                .or_else(|_| std::fs::copy(from, &own).map(drop))
                .expect("a program");
            own
        });
        let switch = |to: &str| {
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(to, &link).expect("a link");
        };
        switch(&programs[0]);
        let file = scratch.file("topology.star", answers("one"));
        let mut command = Command::new("sh");
        let script =
            format!("cd {folder} && PATH=$PWD:$PATH && exec {started} serve {file} --control {control}");
        command.args(["-c", &script]).stdin(std::process::Stdio::null());
        let _supervisor = is_supervised.then(|| {
            let path = scratch.path("notify");
            command.env("NOTIFY_SOCKET", &path);
            UnixDatagram::bind(&path).expect("a socket")
        });
        let mut first = Weir::run(command, Scratch::new("upgrade-link-weir"), 1);
        for program in [&programs[1], &programs[0]] {
            switch(program);
            let ran = run(&["admin", "upgrade", "--control", &control]);
            let said = ran.succeeds();
            let process = said.split(' ').nth(1).expect("process N has taken over");
            let runs = std::fs::read_link(format!("/proc/{process}/exe")).expect("it runs");
            assert_eq!(runs, std::path::Path::new(program), "{started}: {said}");
        }
        assert_eq!(first.ends(), Some(0), "{}", first.err());
        run(&["admin", "drain", "--control", &control]).succeeds();
        assert!(until(|| !std::path::Path::new(&control).exists()), "the last one ends too");
    }
}

#[test]
fn an_upgrade_without_a_control_socket_is_refused() {
    let weir = Weir::with(&answers("one"), &[], 1);
    weir.signal(Signal::USR2);
    assert!(until(|| weir.err().contains("start weir with --control PATH")), "{}", weir.err());
    assert_eq!(weir.get("/").body_text(), "one");
}

/// Signals that are for later do not end a process that starts.
#[test]
fn a_signal_during_the_start_is_heeded_after_it() {
    let scratch = Scratch::new("early");
    let slow = format!("x = [i * i for i in range(3000000)]\n{}", answers("one"));
    let file = scratch.file("topology.star", slow);
    let mut command = weir();
    command.args(["serve", &file]);
    let weir = Weir::begin(command, Scratch::new("early-weir"));
    // Until it handles signals, which is its first deed: the mask says so, and no time.
    assert!(until(|| weir.catches(Signal::HUP) && weir.catches(Signal::USR1)));
    weir.signal(Signal::USR1);
    weir.signal(Signal::HUP);
    let weir = weir.wait_until_listening(1);
    assert!(until(|| weir.err().contains("reload: ")), "{}", weir.err());
    assert_eq!(weir.get("/").body_text(), "one");
}

#[test]
fn without_anybody_there_it_starts() {
    let scratch = Scratch::new("replace-nobody");
    let control = scratch.path("control");
    let weir = Weir::with(&answers("alone"), &["--control", &control, "--replace"], 1);
    assert_eq!(weir.get("/").body_text(), "alone");
    run(&["serve", "x.star", "--replace"]).fails(2, "--control");
}

#[test]
fn systemd_is_told() {
    let scratch = Scratch::new("notify");
    let path = scratch.path("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let said = || {
        let mut bytes = [0; 4096];
        let n = socket.recv(&mut bytes).expect("a word");
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    };
    let until_said =
        |what: &str| (0..100).map(|_| said()).find(|word| word.contains(what)).expect("in a hundred words");
    let file = scratch.file("topology.star", answers("one"));
    let mut command = weir();
    command.args(["serve", &file]).env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "300000");
    let mut weir = Weir::run(command, Scratch::new("notify-weir"), 1);
    assert!(until_said("READY=1").contains("STATUS=serving 1 listener"));
    until_said("WATCHDOG=1");
    scratch.file("topology.star", answers("two"));
    weir.signal(Signal::HUP);
    let reloading = until_said("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert!(until_said("READY=1").contains("STATUS=generation 1"));
    weir.signal(Signal::TERM);
    until_said("STOPPING=1");
    assert_eq!(weir.ends(), Some(0));
}

#[test]
fn sockets_of_systemd_are_taken() {
    let there = Command::new("systemd-socket-activate").arg("--version").output();
    if !there.is_ok_and(|ran| ran.status.success()) {
        return tell("skipped: there is no systemd-socket-activate");
    }
    let free = || std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    let scratch = Scratch::new("activate");
    let at = free().to_string();
    let fits =
        scratch.file("fits.star", format!("listen(\"{at}\", respond(200, \"given\"), name = \"web\")\n"));
    let activated = |file: &str| {
        let mut command = Command::new("systemd-socket-activate");
        // It starts weir with the first connection, which waits before the socket until then.
        command.args(["-l", &at, env!("CARGO_BIN_EXE_weir"), "serve", file]);
        command
    };
    let mut child = activated(&fits).spawn().expect("it starts");
    let ask = || {
        let mut stream = Stream::connect(&at).ok()?;
        stream.ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok().map(|a| a.body_text())
    };
    assert!(until(|| ask().as_deref() == Some("given")));
    let _ = child.kill();
    let _ = child.wait();
    let other = scratch.file("other.star", answers("other"));
    let child = activated(&other).stderr(std::process::Stdio::piped()).spawn().expect("it starts");
    assert!(until(|| std::net::TcpStream::connect(&at).is_ok()));
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains(&format!("LISTEN_FDS has a socket at {at}")), "{said}");
    assert_eq!(ended.status.code(), Some(3));
}

/// Eight graphs linger before a further reload waits: meanwhile all else is answered, and the end comes at once.
#[test]
fn a_reload_that_waits_holds_nobody_up() {
    let origin = Origin::new(|peer| {
        peer.request()?;
        peer.wait_for_end()
    });
    let file = |turn: usize| {
        format!(
            "listen(\"127.0.0.1:0\", route([(when(path = \"/held\"), rewrite(server(\"held\", addr = \"{}\"), set = {{\"x-turn\": \"{turn}\"}}))], \
             otherwise = respond(200, \"{turn}\")), name = \"web\", http = http(drain_timeout = 3600 * s))\n",
            origin.addr()
        )
    };
    let mut weir = Weir::with(&file(0), &["--admin", "127.0.0.1:0"], 1);
    let admin = addr(&weir, "admin");
    let mut held = Vec::new();
    for turn in 1..=9 {
        let mut client = weir.client();
        client.send("GET /held HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        assert!(until(|| origin.arrivals().len() == turn));
        held.push(client);
        weir.scratch.file("topology.star", file(turn));
        weir.signal(Signal::HUP);
        if turn < 9 {
            assert!(until(|| weir.get("/").body_text() == turn.to_string()), "{turn}: {}", weir.err());
        }
    }
    // The ninth waits for an hour. No other does.
    for _ in 0..3 {
        assert_eq!(json(&admin, "/config")["generation"], 8);
        assert_eq!(get(&admin, "/ready").0, 200);
        assert!(get(&admin, "/metrics").1.contains("weir_config_generation 8"));
        assert_eq!(weir.get("/").body_text(), "8");
    }
    weir.signal(Signal::TERM);
    assert!(until(|| get_status(&admin, "/ready") != Some(200)), "it drains");
    weir.signal(Signal::TERM);
    weir.ends();
    drop(held);
}

/// What a path is answered with, if the admin interface is still there.
fn get_status(at: &str, path: &str) -> Option<u16> {
    let mut stream = Stream::connect(at).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.ask(&request).ok().map(|answer| answer.status())
}

/// A predecessor that says nothing: the successor says so and ends, and the other goes on as soon as it can.
#[test]
fn a_predecessor_that_is_stopped_is_said() {
    let scratch = Scratch::new("stopped");
    let control = scratch.path("control");
    let mut old = Weir::with(&answers("old"), &["--control", &control], 1);
    let file = scratch.file("new.star", answers("new"));
    old.signal(Signal::STOP);
    run(&["serve", &file, "--control", &control, "--replace"]).fails(3, "does not answer: end it");
    old.signal(Signal::CONT);
    assert_eq!(old.get("/").body_text(), "old");
    // One that is killed leaves its socket's file, on which no process listens.
    old.signal(Signal::KILL);
    old.ends();
    let new = Weir::with(&answers("new"), &["--control", &control, "--replace"], 1);
    assert_eq!(new.get("/").body_text(), "new");
}

/// A start prints what `weir check --serve` says of a file, and so does a reload.
#[test]
fn a_reload_prints_hints_as_a_start_does() {
    let weir = Weir::new(&answers("one"));
    let idle = "a = server(\"a\", addr = \"127.0.0.1:9\")\nlisten(\"127.0.0.1:0\", delay(5*ms, a), name = \"web\")\n";
    let said = run(&["check", "--serve", &weir.scratch.file("other.star", idle)]);
    let hint = said.err.lines().next().unwrap_or_default().to_owned();
    assert!(!hint.is_empty(), "the file has a hint: {}", said.err);
    weir.scratch.file("topology.star", idle);
    weir.signal(Signal::HUP);
    let hint = hint.replace("other.star", "topology.star");
    let tail = hint.rsplit('/').next().unwrap_or_default().to_owned();
    assert!(until(|| weir.err().contains(&tail)), "{tail}: {}", weir.err());
}

/// A pipe in the place of the file ends a reload at once, and the next one is served.
#[test]
fn a_pipe_in_place_of_the_file_holds_up_no_reload() {
    let weir = Weir::new(&answers("one"));
    let path = weir.scratch.path("topology.star");
    std::fs::remove_file(&path).expect("it is there");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    weir.signal(Signal::HUP);
    assert!(until(|| weir.err().contains("is not a regular file")), "{}", weir.err());
    std::fs::remove_file(&path).expect("it is there");
    weir.scratch.file("topology.star", answers("two"));
    weir.signal(Signal::HUP);
    assert!(until(|| weir.get("/").body_text() == "two"), "{}", weir.err());
}
