//! A stand-in for Consul, by its API's documentation: it lists what a test says. A question with an index is
//! answered when the list has changed.

use crate::support::{LIMIT, Origin};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// The stand-in, on a port of its own. Its threads end with their connections, and the first one with this.
pub(crate) struct Consul {
    addr: SocketAddr,
    registry: Arc<Registry>,
}

#[derive(Default)]
struct Registry {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of changes so far, which is the index of the list.
    index: u64,
    /// The instances of the service; `None`: every answer is 500.
    list: Option<String>,
    /// Questions without an index so far.
    beginnings: usize,
    has_ended: bool,
}

impl Consul {
    /// Lists these as instances of the service `web`.
    pub(crate) fn new(origins: &[&Origin]) -> Consul {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("its address");
        let consul = Consul { addr, registry: Arc::default() };
        consul.list(origins);
        let registry = consul.registry.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if registry.state().has_ended {
                    return;
                }
                let registry = registry.clone();
                // A client that goes away ends its thread by an error.
                std::thread::spawn(move || drop(registry.serve(&stream)));
            }
        });
        consul
    }

    /// Lists these from now on.
    pub(crate) fn list(&self, origins: &[&Origin]) {
        let instance = |origin: &&Origin| {
            let (ip, port) = (origin.addr.ip(), origin.addr.port());
            format!(
                r#"{{"Node": {{"Node": "n1", "Address": "{ip}"}},
                    "Service": {{"ID": "web-{port}", "Address": "", "Port": {port}}}}}"#
            )
        };
        let instances: Vec<String> = origins.iter().map(instance).collect();
        self.registry.change(Some(format!("[{}]", instances.join(", "))));
    }

    /// Answers every question by 500 from now on.
    pub(crate) fn fail(&self) {
        self.registry.change(None);
    }

    /// How often it was asked without an index so far, as at the beginning.
    pub(crate) fn beginnings(&self) -> usize {
        self.registry.state().beginnings
    }

    /// A line with a fleet that it lists.
    pub(crate) fn fleet(&self, name: &str) -> String {
        format!("{name} = find.consul(\"http://{}\", \"web\", lambda: server(\"app\"))\n", self.addr)
    }

    /// A file with a fleet `apps` that it lists, and a node over it.
    pub(crate) fn api(&self, node: &str) -> String {
        format!("{}listen(\"127.0.0.1:0\", {node}, name = \"front\")\n", self.fleet("apps"))
    }
}

impl Drop for Consul {
    fn drop(&mut self) {
        self.registry.state().has_ended = true;
        self.registry.changed.notify_all();
        let _ = TcpStream::connect(self.addr);
    }
}

impl Registry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread has panicked")
    }

    fn change(&self, list: Option<String>) {
        let mut state = self.state();
        state.index += 1;
        state.list = list;
        self.changed.notify_all();
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        let mut out = stream;
        while let Some(first) = lines.next().transpose()? {
            // No field of the head matters.
            for field in lines.by_ref() {
                if field?.is_empty() {
                    break;
                }
            }
            let target = first.split(' ').nth(1).unwrap_or_default();
            out.write_all(self.answer(target).as_bytes())?;
        }
        Ok(())
    }

    /// The answer to a question; if that has an index, after a change or a while.
    fn answer(&self, target: &str) -> String {
        if !target.starts_with("/v1/health/service/web?") {
            return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned();
        }
        let asked = target.split_once("index=");
        let asked = asked.and_then(|(_, rest)| rest.split('&').next()?.parse::<u64>().ok());
        let is_known =
            |state: &mut State| !state.has_ended && asked.is_some_and(|index| state.index <= index);
        self.state().beginnings += usize::from(asked.is_none());
        let waited = self.changed.wait_timeout_while(self.state(), LIMIT, is_known);
        let (state, _) = waited.expect("no thread has panicked");
        let Some(list) = &state.list else {
            let reason = "rpc error making call: EOF";
            let length = reason.len();
            return format!("HTTP/1.1 500 Internal Server Error\r\nContent-Length: {length}\r\n\r\n{reason}");
        };
        let (index, length) = (state.index, list.len());
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Consul-Index: {index}\r\n\
             Content-Length: {length}\r\n\r\n{list}"
        )
    }
}
