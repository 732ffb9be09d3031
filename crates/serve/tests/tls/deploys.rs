//! Origins that change the versions they speak, and several with different ones behind one balancer: no request fails.

use crate::common::certificates::Authority;
use crate::common::{self, RunningBalancer, configs, serve_node, serve_with, until};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use weir_serve::Exposition;

type Tls = TlsStream<tokio::net::TcpStream>;

const BOTH: &[&str] = &["h2", "http/1.1"];
const H1: &[&str] = &["http/1.1"];

/// An origin by TLS that answers with the version that it was asked by. With each deploy it is another process: what is
/// open ends as soon as it has no request.
struct Origin {
    addr: String,
    authority: Authority,
    /// The number of the deploy, and what it speaks.
    speaks: watch::Sender<(u32, &'static [&'static str])>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    /// Handshakes of TLS and SETTINGS of HTTP/2 that are not over, and the most at once.
    opening: AtomicUsize,
    most_opening: AtomicUsize,
    resumed: AtomicUsize,
}

impl Origin {
    fn new(name: &str, speaks: &'static [&'static str]) -> Origin {
        let authority = Authority::new(name);
        let config = (*configs::server(&authority, &["origin.test"])).clone();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let addr = listener.local_addr().expect("an address").to_string();
        let (speaks, deploys) = watch::channel((0, speaks));
        let origin = Origin { addr, authority, speaks, counts: Arc::default() };
        let counts = origin.counts.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                while let Ok((tcp, _)) = listener.accept().await {
                    let mut config = config.clone();
                    let (_, speaks) = *deploys.borrow();
                    config.alpn_protocols =
                        speaks.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
                    counts.connections.fetch_add(1, SeqCst);
                    tokio::spawn(connection(tcp, Arc::new(config), deploys.clone(), counts.clone()));
                }
            });
        });
        origin
    }

    fn deploy(&self, speaks: &'static [&'static str]) {
        self.speaks.send_modify(|(number, now)| (*number, *now) = (*number + 1, speaks));
    }

    fn node(&self) -> String {
        let ca = &self.authority.file;
        format!(
            "server(\"a\", addr=\"{}\", tls=tls.client(ca=\"{ca}\", name=\"origin.test\"), connect_timeout=10*s)",
            self.addr
        )
    }

    fn connections(&self) -> usize {
        self.counts.connections.load(SeqCst)
    }
}

async fn connection(
    tcp: tokio::net::TcpStream,
    config: Arc<rustls::ServerConfig>,
    mut deploys: watch::Receiver<(u32, &'static [&'static str])>,
    counts: Arc<Counts>,
) {
    deploys.mark_unchanged();
    let opening = counts.opening.fetch_add(1, SeqCst) + 1;
    counts.most_opening.fetch_max(opening, SeqCst);
    let tls = TlsAcceptor::from(config).accept(tcp).await;
    let Ok(tls) = tls else {
        counts.opening.fetch_sub(1, SeqCst);
        return;
    };
    if tls.get_ref().1.handshake_kind() == Some(rustls::HandshakeKind::Resumed) {
        counts.resumed.fetch_add(1, SeqCst);
    }
    match tls.get_ref().1.alpn_protocol() {
        Some(b"h2") => by_h2(tls, deploys, &counts).await,
        _ => {
            counts.opening.fetch_sub(1, SeqCst);
            let _ = by_h1(tls, deploys).await;
        }
    }
}

async fn by_h2(tls: Tls, mut deploys: watch::Receiver<(u32, &'static [&'static str])>, counts: &Counts) {
    // Slow enough that others would be seen that are opened meanwhile.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let connection = h2::server::handshake(tls).await;
    counts.opening.fetch_sub(1, SeqCst);
    let Ok(mut connection) = connection else { return };
    let mut is_ending = false;
    loop {
        let deployed = async {
            match is_ending {
                true => std::future::pending().await,
                false => deploys.changed().await,
            }
        };
        let request = match first(connection.accept(), deployed).await {
            Ok(request) => request,
            Err(_) => {
                is_ending = true;
                connection.graceful_shutdown();
                continue;
            }
        };
        let Some(Ok((_, mut respond))) = request else { return };
        let sent = respond.send_response(http::Response::new(()), false);
        let _ = sent.and_then(|mut stream| stream.send_data(Bytes::from_static(b"h2"), true));
    }
}

async fn by_h1(
    mut tls: Tls,
    mut deploys: watch::Receiver<(u32, &'static [&'static str])>,
) -> std::io::Result<()> {
    let mut held = Vec::new();
    loop {
        while !held.ends_with(b"\r\n\r\n") {
            let mut piece = [0; 4096];
            let deployed = async {
                match held.is_empty() {
                    true => deploys.changed().await,
                    false => std::future::pending().await,
                }
            };
            let n = match first(tls.read(&mut piece), deployed).await {
                Ok(n) => n?,
                Err(_) => 0,
            };
            if n == 0 {
                return tls.shutdown().await;
            }
            held.extend_from_slice(&piece[..n]);
        }
        held.clear();
        tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh1").await?;
        tls.flush().await?;
    }
}

/// What ends first; of both the first.
async fn first<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> Result<A, B> {
    let (mut a, mut b) = (std::pin::pin!(a), std::pin::pin!(b));
    std::future::poll_fn(|cx| match a.as_mut().poll(cx) {
        Poll::Ready(a) => Poll::Ready(Ok(a)),
        Poll::Pending => b.as_mut().poll(cx).map(Err),
    })
    .await
}

/// Clients that ask without a pause, and by how many answers of each kind.
struct Load {
    ends: Arc<AtomicBool>,
    clients: Vec<std::thread::JoinHandle<()>>,
    answers: Arc<Mutex<BTreeMap<(u16, String), usize>>>,
    last: Arc<Mutex<String>>,
}

impl Load {
    fn begin(served: &RunningBalancer, clients: usize) -> Load {
        let (ends, answers, last) = (Arc::<AtomicBool>::default(), Arc::default(), Arc::default());
        let mut load = Load { ends, clients: Vec::new(), answers, last };
        for _ in 0..clients {
            let (ends, answers, last) = (load.ends.clone(), load.answers.clone(), load.last.clone());
            let addr = served.addr.clone();
            load.clients.push(std::thread::spawn(move || {
                let mut client = common::Conn::new(&addr);
                while !ends.load(SeqCst) {
                    let answer = client.get("/", "");
                    last.lock().expect("no panic").clone_from(&answer.body);
                    *answers.lock().expect("no panic").entry((answer.status, answer.body)).or_default() += 1;
                }
            }));
        }
        load
    }

    /// Waits until requests are answered by this version, and for a while.
    fn until_by(&self, version: &str) {
        until(|| *self.last.lock().expect("no panic") == version);
        common::pause(100);
    }

    /// All answers.
    fn end(self) -> BTreeMap<(u16, String), usize> {
        self.ends.store(true, SeqCst);
        self.clients.into_iter().for_each(|client| client.join().expect("it has had answers"));
        let answers = self.answers.lock().expect("no panic");
        answers.clone()
    }
}

/// Under load, so that connections are always open: also those that the origin's former choice has made.
#[test]
fn an_origin_loses_http_2_in_a_deploy_and_gets_it_back() {
    let origin = Origin::new("deploys", BOTH);
    let served = serve_node(&origin.node());
    let load = Load::begin(&served, 6);
    load.until_by("h2");
    for _ in 0..3 {
        origin.deploy(H1);
        load.until_by("h1");
        origin.deploy(BOTH);
        load.until_by("h2");
    }
    let answers = load.end();
    assert!(answers.keys().all(|(status, _)| *status == 200), "{answers:?}");
    assert_eq!(answers.len(), 2, "{answers:?}");
}

/// By HTTP/2 each is one connection, by HTTP/1.1 as many as there are requests at once.
#[test]
fn origins_of_different_versions_are_in_one_pool() {
    let origins = [("mixed-2", BOTH), ("mixed-1", H1), ("mixed-2b", BOTH)]
        .map(|(name, speaks)| Origin::new(name, speaks));
    let nodes: Vec<String> = origins.iter().map(Origin::node).collect();
    let served = serve_node(&format!("lb.round_robin([{}])", nodes.join(", ")));
    let load = Load::begin(&served, 6);
    load.until_by("h1");
    load.until_by("h2");
    let under_way = served.scrape(Exposition::Prometheus);
    let answers = load.end();
    let text = served.scrape(Exposition::Prometheus);
    let count = |version: &str| answers.get(&(200, version.to_owned())).copied().unwrap_or(0);
    let (h1, h2) = (count("h1"), count("h2"));
    assert_eq!(answers.len(), 2, "{answers:?}");
    // A third of the picks, up to those that are under way.
    assert!((h1 * 2).abs_diff(h2) <= 12, "{answers:?}");
    assert_eq!((origins[0].connections(), origins[2].connections()), (1, 1));
    assert!(origins[1].connections() <= 6);
    let value = |text: &str, series: &str| {
        let line = text.lines().find(|line| line.contains(series)).expect(series);
        line.rsplit(' ').next().and_then(|n| n.parse::<usize>().ok()).expect("a number")
    };
    assert_eq!(value(&text, "protocol=\"h2\"}"), 2);
    assert!((1..=6).contains(&value(&text, "protocol=\"h1\"}")));
    assert!(value(&under_way, "weir_upstream_streams{") <= 6);
    assert_eq!(value(&text, "weir_upstream_streams{"), 0);
    let shaken = value(&text, "result=\"full\"}") + value(&text, "result=\"resumed\"}");
    assert_eq!(shaken, origins.iter().map(Origin::connections).sum::<usize>());
}

/// On each of several loops.
#[test]
fn first_requests_at_once_make_one_connection_per_loop() {
    let loops = 2;
    let origin = Origin::new("burst", BOTH);
    let served = serve_with(&format!("listen(\"127.0.0.1:0\", {})", origin.node()), loops, false);
    let clients: Vec<_> = (0..40)
        .map(|_| {
            let mut client = common::Conn::new(&served.addr);
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            client
        })
        .collect();
    for mut client in clients {
        let answer = client.response();
        assert_eq!((answer.status, answer.body.as_str()), (200, "h2"));
    }
    assert!(origin.connections() <= loops, "{}", origin.connections());
    assert!(origin.counts.most_opening.load(SeqCst) <= loops);
}

/// The second connection to each of many targets resumes the session of the first, on whichever loop.
#[test]
fn sessions_of_many_targets_are_kept() {
    let origins: Vec<Origin> = (0..24).map(|n| Origin::new(&format!("many-{n}"), BOTH)).collect();
    let nodes: Vec<String> = origins
        .iter()
        .map(|origin| origin.node().replace("connect_timeout", "max_requests=1, connect_timeout"))
        .collect();
    let text = format!("listen(\"127.0.0.1:0\", lb.round_robin([{}], start=\"first\"))", nodes.join(", "));
    let served = serve_with(&text, 1, false);
    let begun = Instant::now();
    for _ in 0..2 * origins.len() {
        assert_eq!(common::get(&served.addr, "/").body, "h2");
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    for origin in &origins {
        assert_eq!((origin.connections(), origin.counts.resumed.load(SeqCst)), (2, 1));
    }
    let text = served.scrape(Exposition::Prometheus);
    for (result, count) in [("full", 24), ("resumed", 24), ("failed", 0)] {
        let end = format!("result=\"{result}\"}} {count}");
        let is_there = text
            .lines()
            .any(|line| line.starts_with("weir_upstream_tls_handshakes_total{") && line.ends_with(&end));
        assert!(is_there, "{end} is not in {text}");
    }
}
