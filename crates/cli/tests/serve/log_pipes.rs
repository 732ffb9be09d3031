//! Access logs that go to standard output, to pipes without a reader, and in the format that other programs read.

use crate::shared::common;
use crate::shared::common::Scratch;
use crate::shared::serve::{Stream, Weir, pause, serve_fails, until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::Duration;

fn listen(log: &str, format: &str) -> String {
    format!(
        "listen(\"127.0.0.1:0\", respond(200, \"some\"), name = \"web\", \
         http = http(access_log = \"{log}\", log_format = \"{format}\"))\n"
    )
}

/// Lines that it says were lost, over all.
fn lost(err: &str) -> usize {
    let counts =
        err.lines().filter_map(|l| l.split(" lost ").nth(1)?.split(' ').next()?.parse::<usize>().ok());
    counts.sum()
}

/// Asks so often over a few connections, each request right behind the last, and reads all answers.
fn ask_often(addr: &str, requests: usize) {
    const CLIENTS: usize = 4;
    const AT_ONCE: usize = 50;
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Stream::connect(addr).expect("weir accepts");
                let batch = "GET /some/path HTTP/1.1\r\nHost: h\r\n\r\n".repeat(AT_ONCE);
                for _ in 0..requests / CLIENTS / AT_ONCE {
                    client.send(&batch).expect("it is sent");
                    for _ in 0..AT_ONCE {
                        assert_eq!(client.response("GET").expect("an answer").status(), 200);
                    }
                }
            });
        }
    });
}

/// A reader of the log on standard output gets nothing else there.
#[test]
fn standard_output_holds_only_lines_of_the_log() {
    let mut weir = Weir::new(&listen("stdout", "json"));
    assert!(weir.err().contains(&format!("listening web {}\n", weir.listening[0].1)), "{}", weir.err());
    // On one connection, so that their order is that of their lines.
    let mut client = weir.client();
    for n in 0..5 {
        assert_eq!(client.get(&format!("/{n}")).expect("an answer").status(), 200);
    }
    drop(client);
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0));
    let lines: Vec<String> = std::iter::from_fn(|| weir.line(Duration::from_secs(1))).collect();
    let paths: Vec<Value> = lines
        .iter()
        .map(|l| serde_json::from_str::<Value>(l).unwrap_or_else(|e| panic!("{e}: {l}"))["path"].clone())
        .collect();
    assert_eq!(paths, ["/0", "/1", "/2", "/3", "/4"]);
}

/// The same where it is not the first listener's log, and as before where none goes there.
#[test]
fn listening_lines_leave_standard_output_to_any_log() {
    let plain = "listen(\"127.0.0.1:0\", respond(200), name = \"plain\")\n";
    let weir = Weir::new(&format!("{plain}{}", listen("stdout", "combined")));
    let names: Vec<&str> = weir.listening.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((names, weir.err().matches("listening ").count()), (vec!["plain", "web"], 2));
    let weir = Weir::new(&format!("{plain}{}", listen("stderr", "combined")));
    assert!(!weir.err().contains("listening"), "{}", weir.err());
}

/// A weir whose standard output has not been read so far.
struct Unread {
    child: Child,
    out: Option<std::process::ChildStdout>,
    err: std::sync::Arc<std::sync::Mutex<String>>,
    addr: String,
    _scratch: Scratch,
}

impl Unread {
    fn new(name: &str) -> Unread {
        let scratch = Scratch::new(name);
        let file = scratch.file("t.star", listen("stdout", "json"));
        let mut child = common::weir()
            .args(["serve", &file])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let err = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
        let (mut from, all) = (child.stderr.take().expect("piped"), err.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                all.lock().expect("no panic").push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        let out = child.stdout.take();
        let mut unread = Unread { child, out, err, addr: String::new(), _scratch: scratch };
        assert!(until(|| unread.err().ends_with('\n')), "it does not listen");
        unread.addr = unread.err().trim_end().rsplit(' ').next().expect("an address").to_owned();
        unread
    }

    fn err(&self) -> String {
        self.err.lock().expect("no panic").clone()
    }

    /// Told to end; whether it does so in time, and in order.
    fn ends(&mut self) -> bool {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).expect("a process");
        rustix::process::kill_process(pid, Signal::TERM).expect("it is there");
        until(|| self.child.try_wait().expect("it can be waited for").is_some())
            && self.child.wait().expect("it has ended").code() == Some(0)
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every request has its line in the pipe or in the count of those that were lost, which is reported while it runs.
#[test]
fn lines_of_a_pipe_that_nobody_reads_are_lost_and_counted() {
    const REQUESTS: usize = 20_000;
    let mut weir = Unread::new("pipe-unread");
    ask_often(&weir.addr, REQUESTS);
    // More than pipe and queue hold together.
    assert!(until(|| lost(&weir.err()) > 0), "not a word: {}", weir.err());
    assert!(weir.err().contains("the access log stdout lost"), "{}", weir.err());
    assert!(weir.ends(), "{}", weir.err());
    let mut text = String::new();
    weir.out.take().expect("not read yet").read_to_string(&mut text).expect("UTF-8");
    let whole = |line: &&str| serde_json::from_str::<Value>(line).is_ok_and(|l| l["path"] == "/some/path");
    let read = text.lines().filter(whole).count();
    // The last line may be torn: then it is counted as lost.
    assert!(text.lines().count() - read <= 1, "{read} whole lines of {}", text.lines().count());
    assert!(until(|| read + lost(&weir.err()) == REQUESTS), "{read} read, and {}", weir.err());
}

/// A reader that comes back finds the lines that are written from then on, each whole.
#[test]
fn a_pipe_that_is_read_again_goes_on() {
    const REQUESTS: usize = 20_000;
    let mut weir = Unread::new("pipe-again");
    ask_often(&weir.addr, REQUESTS);
    let mut out = weir.out.take().expect("not read yet");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).expect("UTF-8");
        text
    });
    // While it is read, there is room for all that wait.
    pause(500);
    ask_often(&weir.addr, 200);
    assert!(weir.ends(), "{}", weir.err());
    let text = reader.join().expect("no panic");
    let read = text.lines().count();
    assert!(text.lines().all(|l| serde_json::from_str::<Value>(l).is_ok()), "a line is torn");
    assert!(until(|| read + lost(&weir.err()) == REQUESTS + 200), "{read} read, and {}", weir.err());
    assert!(read > 8192, "{read}: what waited was not written");
}

/// At the end what waits is written as fast as it is read: a slow reader loses nothing.
#[test]
fn a_slow_reader_gets_all_at_the_end() {
    // Less than the queue holds, and many times what a pipe does.
    const REQUESTS: usize = 6000;
    let mut weir = Unread::new("pipe-slow");
    ask_often(&weir.addr, REQUESTS);
    let mut out = weir.out.take().expect("not read yet");
    let reader = std::thread::spawn(move || {
        let (mut text, mut piece) = (Vec::new(), vec![0; 32 * 1024]);
        while let Ok(n @ 1..) = out.read(&mut piece) {
            text.extend_from_slice(&piece[..n]);
            pause(2);
        }
        text
    });
    assert!(weir.ends(), "{}", weir.err());
    let text = String::from_utf8(reader.join().expect("no panic")).expect("UTF-8");
    assert_eq!(text.lines().count() + lost(&weir.err()), REQUESTS, "{}", weir.err());
    assert_eq!(lost(&weir.err()), 0, "{}", weir.err());
}

/// To wait for a reader would be a start that hangs without a word.
#[test]
fn a_fifo_without_a_reader_is_said_at_start() {
    let scratch = Scratch::new("log-fifo");
    let path = scratch.path("access.fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    serve_fails(&listen(&path, "json"), 3, &[&path, "no process reads this FIFO", "start its reader first"]);
    // With one it is a log as any other. Opened both ways first, so that opening does not wait.
    let both = File::options().read(true).write(true).open(&path).expect("it is there");
    let mut reader = File::open(&path).expect("it is there");
    let mut weir = Weir::new(&listen(&path, "json"));
    assert_eq!(weir.get("/1").status(), 200);
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0));
    drop(both);
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("UTF-8");
    assert!(text.lines().count() == 1 && text.contains("\"/1\""), "{text}");
}

/// The user of Basic is named, and all that clients send is escaped as nginx and Apache do: no byte looks like a
/// column.
#[test]
fn combined_is_what_nginx_and_apache_write() {
    let scratch = Scratch::new("log-clf");
    let path = scratch.path("access.log");
    let mut weir = Weir::new(&listen(&path, "combined"));
    // On one connection, so that their order is that of their lines.
    let mut client = weir.client();
    let mut ask = |fields: &str| {
        let request = format!("GET /x HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        assert_eq!(client.ask(&request).expect("an answer").status(), 200, "{fields}");
    };
    // Aladdin:open sesame (RFC 7617); `a b"\<0a>:x`; no Basic; no user.
    ask("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n");
    ask("Authorization: bAsIc YSBiIlwKOng=\r\n");
    ask("Authorization: Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n");
    ask("Referer: /a\"b\\c\r\nUser-Agent: caf\u{e9}\t1\r\n");
    drop(client);
    weir.signal(Signal::TERM);
    assert_eq!(weir.ends(), Some(0));
    let text = std::fs::read_to_string(&path).expect("it is there");
    let lines: Vec<&str> = text.lines().collect();
    let users: Vec<&str> = lines.iter().filter_map(|l| l.split(" [").next()).collect();
    assert_eq!(
        users,
        ["127.0.0.1 - Aladdin", "127.0.0.1 - a_b\\x22\\x5C\\x0A", "127.0.0.1 - -", "127.0.0.1 - -"]
    );
    assert!(
        lines[3].ends_with("\"GET /x HTTP/1.1\" 200 4 \"/a\\x22b\\x5Cc\" \"caf\\xC3\\xA9\\x091\""),
        "{}",
        lines[3]
    );
    assert!(!text.contains("sesame"), "a password is in the log");
}
