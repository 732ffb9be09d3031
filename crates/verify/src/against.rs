//! Another proxy in place of weir: its configuration for the same topology, or what it cannot express.

use crate::prepare::{Arrangement, CannotVerify};
use crate::router::{ProxySetup, Router};
use std::fmt::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weir_plan::{Edge, Lb, NodeId, Spec};
use weir_policy::config::{Balance, LeastConnArgs, P2cArgs, RoundRobinArgs, Start, Ties};

/// The time within which another proxy must listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why another proxy does not run, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CannotRun(String);

impl fmt::Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotRun {}

impl Arrangement {
    /// The same with another proxy that routes.
    ///
    /// # Errors
    /// What that cannot do.
    pub fn against(mut self, router: Router) -> Result<Arrangement, CannotVerify> {
        if router != Router::Weir {
            self.against = Some(ProxySetup::new(&self, router)?);
        }
        Ok(self)
    }
}

impl ProxySetup {
    /// Translates a scenario.
    ///
    /// # Errors
    /// What the proxy cannot express.
    fn new(prepared: &Arrangement, router: Router) -> Result<ProxySetup, CannotVerify> {
        let cannot =
            |what: &str| CannotVerify(format!("{} cannot express this topology: {what}", router.name()));
        if !prepared.scenario.events.is_empty() {
            return Err(cannot("its targets change while it runs; leave `events` out"));
        }
        if prepared.listen().is_some_and(|listen| listen.tls.is_some() || listen.loops.unwrap_or(1) > 1) {
            return Err(cannot("the listener has TLS, or several event loops; leave both out"));
        }
        let point = &prepared.point;
        let entered = match point.nodes[prepared.listener as usize].to {
            Edge::Node(next) => &point.nodes[next as usize],
            _ => &point.nodes[prepared.listener as usize],
        };
        let (Spec::Lb(lb), Edge::List(list)) = (&point.specs[entered.spec as usize], entered.to) else {
            return Err(cannot("requests must enter at one balancer over servers without addresses"));
        };
        let servers = point.lists[list as usize].clone();
        if servers.iter().any(|server| prepared.servers.binary_search(server).is_err()) {
            return Err(cannot("a target of the balancer is not a server, or has a weight"));
        }
        let more = lb.health.is_some()
            || lb.eject.is_some()
            || lb.outlier.is_some()
            || lb.slow_start.is_some()
            || lb.sticky.is_some()
            || lb.spare.is_some()
            || lb.max_connections.is_some();
        if more {
            return Err(cannot(
                "health checks, ejection, slow start, sticky clients and spare targets are not translated",
            ));
        }
        if lb.max_waiting.is_some() || lb.wait_timeout_ns.is_some() {
            return Err(cannot(
                "`max_waiting` and `wait_timeout` are not translated: its queue before full servers has other limits",
            ));
        }
        let policy = policy(lb, router).map_err(|what| cannot(&what))?;
        if lb.max_in_flight.is_some() && router == Router::Nginx {
            return Err(cannot("it has no queue in which requests wait for `max_in_flight`"));
        }
        Ok(ProxySetup { router, policy, servers, most: lb.max_in_flight })
    }

    fn haproxy(&self, port: u16, addresses: &[SocketAddr]) -> String {
        let mut text = format!(
            "global\n  nbthread 1\n  maxconn 8000\n\
             defaults\n  mode http\n  timeout connect 10s\n  timeout client 300s\n  timeout server 300s\n  timeout queue 300s\n  \
             option http-keep-alive\n  http-reuse safe\n  retries 0\n\
             frontend scenario\n  bind 127.0.0.1:{port}\n  default_backend servers\n\
             backend servers\n  balance {}\n",
            self.policy
        );
        // It draws on a ring of hashes with sixteen points for each unit of weight, which is too few for an even share.
        let weight = if self.policy.starts_with("random") { " weight 256" } else { "" };
        for (number, address) in addresses.iter().enumerate() {
            let most = self.most.map_or_else(String::new, |most| format!(" maxconn {most}"));
            let _ = writeln!(text, "  server s{number} {address}{weight}{most}");
        }
        text
    }

    fn nginx(&self, port: u16, addresses: &[SocketAddr], folder: &str) -> String {
        let mut text = format!(
            "daemon off;\nworker_processes 1;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error crit;\n\
             events {{ worker_connections 20000; }}\n\
             http {{\n  access_log off;\n  client_body_temp_path {folder}/b;\n  proxy_temp_path {folder}/p;\n  \
             fastcgi_temp_path {folder}/f;\n  uwsgi_temp_path {folder}/u;\n  scgi_temp_path {folder}/s;\n  \
             keepalive_requests 1000000000;\n  upstream servers {{\n{}",
            if self.policy.is_empty() { String::new() } else { format!("    {};\n", self.policy) }
        );
        for address in addresses {
            let _ = writeln!(text, "    server {address} max_fails=0;");
        }
        let kept = addresses.len() * 64;
        let _ = write!(
            text,
            "    keepalive {kept};\n    keepalive_requests 1000000000;\n  }}\n  server {{\n    listen 127.0.0.1:{port} backlog=4096;\n    \
             location / {{\n      proxy_pass http://servers;\n      proxy_http_version 1.1;\n      \
             proxy_set_header Connection \"\";\n      proxy_next_upstream off;\n      proxy_read_timeout 300s;\n      \
             proxy_ignore_client_abort off;\n    }}\n  }}\n}}\n"
        );
        text
    }

    /// Starts it in front of servers at these addresses.
    ///
    /// # Errors
    /// It is not installed, or does not listen.
    pub fn begin(&self, servers: &[(NodeId, SocketAddr)]) -> Result<ProxyProcess, CannotRun> {
        let mut last = CannotRun(String::new());
        for _ in 0..TRIES {
            let mut other = self.spawn(servers)?;
            match other.wait(self.router.name()) {
                Ok(()) => return Ok(other),
                // Its port may have gone to another meanwhile.
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    /// Starts it on a port that is free at this moment: it cannot choose one and report it.
    fn spawn(&self, servers: &[(NodeId, SocketAddr)]) -> Result<ProxyProcess, CannotRun> {
        let name = self.router.name();
        let failed = |e: std::io::Error| CannotRun(format!("{name} cannot be run: {e}"));
        let address =
            |server: &NodeId| servers.iter().find(|(id, _)| id == server).map(|(_, address)| *address);
        let addresses: Vec<SocketAddr> = self.servers.iter().filter_map(address).collect();
        let port =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr()).map_err(failed)?.port();
        let secret = getrandom::u64().map_err(|e| CannotRun(e.to_string()))?;
        let folder = std::env::temp_dir().join(format!("weir-verify-{secret:016x}"));
        std::fs::create_dir(&folder).map_err(failed)?;
        let mut other =
            ProxyProcess { child: None, folder: folder.clone(), address: (Ipv4Addr::LOCALHOST, port).into() };
        let file = folder.join("conf");
        let text = match self.router {
            Router::Nginx => self.nginx(port, &addresses, &folder.display().to_string()),
            _ => self.haproxy(port, &addresses),
        };
        std::fs::write(&file, text).map_err(failed)?;
        let mut command = Command::new(name);
        match self.router {
            Router::Nginx => {
                command.arg("-p").arg(&folder).arg("-c").arg(&file).arg("-e").arg(folder.join("error"))
            }
            _ => command.arg("-db").arg("-f").arg(&file),
        };
        let path = format!("{}:/usr/sbin:/usr/local/sbin", std::env::var("PATH").unwrap_or_default());
        command.env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        other.child = Some(command.spawn().map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                CannotRun(format!("{name} is not installed; install it (apt install {name})"))
            }
            _ => failed(e),
        })?);
        Ok(other)
    }
}

/// The number of attempts to start it.
const TRIES: u32 = 5;

/// A policy in a proxy's terms, or why it has none.
fn policy(lb: &Lb, router: Router) -> Result<String, String> {
    let rotates = "among equally loaded targets it takes the next in turn: write ties = \"rotate\"";
    let words =
        match (&lb.balance, router) {
            (Balance::LeastConn(LeastConnArgs { error_hold_ns: 1.., .. }), _) => {
                return Err("it does not support `error_hold`".to_owned());
            }
            (Balance::LeastConn(LeastConnArgs { ties, .. }), _) if *ties != Ties::Rotate => return Err(rotates.to_owned()),
            (Balance::LeastConn(_), Router::Haproxy) => "leastconn",
            (Balance::LeastConn(_), _) => "least_conn",
            (Balance::RoundRobin(RoundRobinArgs { start: Start::Random }), _) => {
                return Err("its cycle begins with the first target: write start = \"first\"".to_owned());
            }
            (Balance::RoundRobin(_), Router::Haproxy) => "roundrobin",
            (Balance::RoundRobin(_), _) => "",
            (Balance::Random, Router::Haproxy) => "random(1)",
            (Balance::Random, _) => "random",
            (Balance::P2c(P2cArgs { choices: 2, bias, error_hold_ns: 0, .. }), Router::Haproxy)
                if *bias == 1.0 =>
            {
                "random(2)"
            }
            (Balance::P2c(P2cArgs { choices: 2, bias, error_hold_ns: 0, .. }), _) if *bias == 1.0 => {
                "random two least_conn"
            }
            _ => return Err(
                "it has no equivalent of this policy; lb.least_conn, lb.round_robin, lb.random and lb.p2c are translated"
                    .to_owned(),
            ),
        };
    Ok(words.to_owned())
}

/// A running proxy; dropping it ends it.
#[derive(Debug)]
pub(crate) struct ProxyProcess {
    child: Option<Child>,
    folder: PathBuf,
    /// Where it listens.
    pub address: SocketAddr,
}

impl ProxyProcess {
    /// Waits until it listens.
    #[expect(clippy::disallowed_methods, reason = "it does not report when it listens")]
    fn wait(&mut self, name: &str) -> Result<(), CannotRun> {
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(self.address).is_err() {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || Instant::now() > until {
                return Err(CannotRun(format!("{name} does not listen: {}", self.said())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Ends it, and returns its standard error.
    fn said(&mut self) -> String {
        let Some(mut child) = self.child.take() else { return String::new() };
        let _ = child.kill();
        let said = child.wait_with_output().map(|out| String::from_utf8_lossy(&out.stderr).trim().to_owned());
        said.unwrap_or_default()
    }
}

impl Drop for ProxyProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
