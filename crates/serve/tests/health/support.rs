//! What the tests share: origins that follow a script, a client, and a served file.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use weir_plan::{Edge, Point, Spec};
use weir_serve::{NewTopology, Options, Running};

/// Nothing here takes longer.
pub const LIMIT: Duration = Duration::from_secs(20);

/// How an origin answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// With this status.
    Status(u16),
    /// By closing the connection.
    Close,
    /// Not until the test sets something else.
    Hold,
    /// With 200, half of a body, and the other half half a second and a bit later.
    Half,
}

/// An origin on a port of its own. Checks and requests may be answered differently.
pub struct Origin {
    pub addr: SocketAddr,
    state: Arc<State>,
}

struct State {
    name: String,
    modes: Mutex<(Mode, Mode)>,
    changed: Condvar,
    requests: AtomicU32,
    checks: AtomicU32,
    inside: AtomicU32,
    most: AtomicU32,
    connections: AtomicU32,
    accepted: AtomicU32,
    ended: AtomicBool,
    seen: Mutex<Vec<String>>,
}

impl Origin {
    pub fn new(name: &str) -> Origin {
        Origin::listen(name, "127.0.0.1:0")
    }

    pub fn listen(name: &str, addr: &str) -> Origin {
        let listener = TcpListener::bind(addr).expect("a free port");
        let addr = listener.local_addr().expect("its address");
        let ok = Mode::Status(200);
        let state = Arc::new(State {
            name: name.to_owned(),
            modes: Mutex::new((ok, ok)),
            changed: Condvar::new(),
            requests: AtomicU32::new(0),
            checks: AtomicU32::new(0),
            inside: AtomicU32::new(0),
            most: AtomicU32::new(0),
            connections: AtomicU32::new(0),
            accepted: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            seen: Mutex::default(),
        });
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.ended.load(SeqCst) {
                    return;
                }
                let state = shared.clone();
                std::thread::spawn(move || {
                    state.connections.fetch_add(1, SeqCst);
                    state.accepted.fetch_add(1, SeqCst);
                    let _ = state.serve(stream);
                    state.connections.fetch_sub(1, SeqCst);
                });
            }
        });
        Origin { addr, state }
    }

    /// How requests are answered from now on.
    pub fn answer(&self, mode: Mode) {
        self.state.modes.lock().unwrap().0 = mode;
        self.state.changed.notify_all();
    }

    /// How checks are.
    pub fn answer_checks(&self, mode: Mode) {
        self.state.modes.lock().unwrap().1 = mode;
        self.state.changed.notify_all();
    }

    pub fn requests(&self) -> u32 {
        self.state.requests.load(SeqCst)
    }

    pub fn checks(&self) -> u32 {
        self.state.checks.load(SeqCst)
    }

    /// Requests inside now, and the most there ever were.
    pub fn inside(&self) -> (u32, u32) {
        (self.state.inside.load(SeqCst), self.state.most.load(SeqCst))
    }

    pub fn connections(&self) -> u32 {
        self.state.connections.load(SeqCst)
    }

    /// Connections ever.
    pub fn accepted(&self) -> u32 {
        self.state.accepted.load(SeqCst)
    }

    /// The heads of all checks.
    pub fn heads_of_checks(&self) -> Vec<String> {
        self.state.seen.lock().unwrap().clone()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.state.ended.store(true, SeqCst);
        self.answer(Mode::Close);
        let _ = TcpStream::connect(self.addr);
    }
}

impl State {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut to = stream.try_clone()?;
        let mut from = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if from.read_line(&mut head)? == 0 {
                    return Ok(());
                }
            }
            let is_check = head.contains("User-Agent: weir-health");
            if is_check {
                self.checks.fetch_add(1, SeqCst);
                self.seen.lock().unwrap().push(head);
            } else {
                self.requests.fetch_add(1, SeqCst);
                let now = self.inside.fetch_add(1, SeqCst) + 1;
                self.most.fetch_max(now, SeqCst);
            }
            let mode = self.mode(is_check);
            if !is_check {
                self.inside.fetch_sub(1, SeqCst);
            }
            if mode == Mode::Half {
                to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nhalf and")?;
                pause_between_halves();
                to.write_all(b" half")?;
                continue;
            }
            let Mode::Status(status) = mode else { return Ok(()) };
            let (name, n) = (&self.name, self.name.len());
            // In one piece, or the other side's delayed acknowledgement holds up the rest.
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {n}\r\n\r\n{name}");
            to.write_all(answer.as_bytes())?;
            if is_check {
                return Ok(());
            }
        }
    }

    fn mode(&self, is_check: bool) -> Mode {
        let mut modes = self.modes.lock().unwrap();
        loop {
            let mode = if is_check { modes.1 } else { modes.0 };
            if mode != Mode::Hold {
                return mode;
            }
            modes = self.changed.wait_timeout(modes, LIMIT).unwrap().0;
        }
    }
}

/// Longer than any `drain_timeout` of these tests: that nothing happens shows in time only.
#[allow(clippy::disallowed_methods)]
fn pause_between_halves() {
    std::thread::sleep(Duration::from_millis(600));
}

/// A served file.
pub struct RunningBalancer {
    addr: SocketAddr,
    running: Option<Running>,
    /// The first balancer that a request meets.
    lb: Option<u32>,
    point: Arc<Point>,
    nodes: Vec<u32>,
    removed: Mutex<Vec<u32>>,
    /// The last file that it was given.
    text: Mutex<String>,
}

/// Serves the node that the file calls `x`.
pub fn serve(file: &str, loops: usize) -> RunningBalancer {
    serve_with(file, Options { loops: Some(loops), ..Options::default() })
}

pub fn serve_with(file: &str, options: Options) -> RunningBalancer {
    serve_whole(&format!("{file}\nlisten(\"127.0.0.1:0\", x, name=\"front\")\n"), options)
}

/// Serves a file that has its own listener.
pub fn serve_whole(file: &str, options: Options) -> RunningBalancer {
    let source = file.as_bytes().to_vec();
    let request = weir_topology::Request { name: "t.star".to_owned(), source, ..Default::default() };
    let plan = weir_topology::evaluate(&request).unwrap_or_else(|e| panic!("{e:?}")).plan;
    let point = Arc::new(plan.points[0].clone());
    let serving = weir_plan::serving::serving(&point, false).unwrap_or_else(|e| panic!("{e:?}"));
    let nodes = weir_plan::listeners(&point);
    let running =
        weir_serve::start(&point, &Arc::new(serving), &nodes, &options).unwrap_or_else(|e| panic!("{e}"));
    let addr = running.listening[0].addr.parse().expect("an address");
    let is_lb = |n: &weir_plan::Node| matches!(point.specs[n.spec as usize], Spec::Lb(_));
    let lb = point.nodes.iter().rposition(is_lb).map(|id| id as u32);
    let text = Mutex::new(file.to_owned());
    RunningBalancer { addr, running: Some(running), lb, point, nodes, removed: Mutex::default(), text }
}

/// What a client got; status 0: no answer.
#[derive(Clone, Debug, Default)]
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl RunningBalancer {
    /// A request on a connection of its own, so that any loop may get it.
    pub fn get(&self) -> Got {
        self.get_with("")
    }

    /// The same with further fields, each with its line end.
    pub fn get_with(&self, fields: &str) -> Got {
        self.send(fields).wait()
    }

    /// Sends a request; the answer is read later.
    pub fn send(&self, fields: &str) -> Pending {
        let mut stream = TcpStream::connect(self.addr).expect("weir listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
        let head = format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}Connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it reads");
        Pending { stream }
    }

    /// Serves another file from now on; what has changed.
    pub fn reload(&self, file: &str) -> Result<String, weir_serve::ReloadError> {
        let source = file.as_bytes().to_vec();
        let request = weir_topology::Request { name: "t.star".to_owned(), source, ..Default::default() };
        let plan = weir_topology::evaluate(&request).unwrap_or_else(|e| panic!("{e:?}")).plan;
        let point = Arc::new(plan.points[0].clone());
        let serving = weir_plan::serving::serving(&point, false).unwrap_or_else(|e| panic!("{e:?}"));
        let nodes = weir_plan::listeners(&point);
        let before = std::mem::replace(&mut *self.text.lock().expect("one thread"), file.to_owned());
        let next = NewTopology {
            point,
            serving: Arc::new(serving),
            nodes,
            plan: plan.hash,
            is_same_text: before == file,
            notes: Vec::new(),
        };
        self.running.as_ref().expect("it runs").remote().serve_instead(next)
    }

    /// What its predecessor knew is known here, too.
    pub fn heed(&self, predecessor: &weir_serve::Predecessor) {
        self.running.as_ref().expect("it runs").heed(predecessor);
    }

    /// Waits for its end, which another has begun.
    pub fn ends(mut self) {
        self.running.take().expect("it runs").join().expect("it ends well");
    }

    /// Where the first listener listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What can be said to it from elsewhere.
    pub fn remote(&self) -> weir_serve::Remote {
        self.running.as_ref().expect("it runs").remote()
    }

    /// Begins to end it.
    pub fn drain(&self) {
        self.running.as_ref().expect("it runs").remote().drain();
    }

    /// Takes a target of the balancer away, by its place in the file.
    pub fn remove_target(&self, target: u32) {
        let remote = self.running.as_ref().expect("it runs").remote();
        let (mut point, lb) = ((*self.point).clone(), self.lb.expect("a balancer"));
        let Edge::List(list) = point.nodes[lb as usize].to else { panic!("targets") };
        let mut removed = self.removed.lock().expect("one thread");
        removed.push(target);
        let mut at = 0..;
        point.lists[list as usize].retain(|_| !removed.contains(&at.next().expect("a number")));
        let serving = Arc::new(weir_plan::serving::serving(&point, false).expect("it can be served"));
        let (point, nodes) = (Arc::new(point), self.nodes.clone());
        remote
            .serve_instead(NewTopology {
                point,
                serving,
                nodes,
                plan: String::new(),
                is_same_text: false,
                notes: Vec::new(),
            })
            .expect("a reload");
    }

    /// The bodies of `n` answers, each the name of an origin.
    pub fn bodies(&self, n: usize) -> Vec<String> {
        (0..n).map(|_| self.get().body).collect()
    }

    /// The number of requests, of `n`, that an origin answered.
    pub fn share(&self, name: &str, n: usize) -> usize {
        self.bodies(n).iter().filter(|b| *b == name).count()
    }
}

impl Drop for RunningBalancer {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.remote().drain();
            // A failure of a loop must be seen, but not while another unwinds.
            let ended = running.join();
            assert!(std::thread::panicking() || ended.is_ok(), "{ended:?}");
        }
    }
}

/// A request under way.
pub struct Pending {
    stream: TcpStream,
}

impl Pending {
    /// Whether an answer has come.
    pub fn is_answered(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket");
        let seen = self.stream.peek(&mut [0]).is_ok();
        self.stream.set_nonblocking(false).expect("a socket");
        seen
    }

    pub fn wait(mut self) -> Got {
        let mut text = Vec::new();
        let read = self.stream.read_to_end(&mut text);
        let late = |e: &std::io::Error| matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!read.as_ref().is_err_and(late), "no answer within {LIMIT:?}");
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        Got { status, head: head.to_owned(), body: body.to_owned() }
    }
}

/// Waits until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "never: {what}");
        pause(Duration::from_millis(2));
    }
}

/// Lets time pass.
pub fn pause(time: Duration) {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}

/// An address where no process listens.
pub fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port")
}
