//! What connections of a test run on, on both sides of weir: the table that tests of nodes run through.

use super::certificates::Authority;
use super::configs;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use weir_topology::plan::{Point, Spec, TlsClient, TlsServer};

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Cleartext,
    Tls,
}

/// All of them; cleartext is what a test has anyway.
pub const OTHERS: &[Transport] = &[Transport::Tls];

thread_local! {
    static NOW: Cell<Transport> = const { Cell::new(Transport::Cleartext) };
}

/// Addresses of listeners and origins that speak TLS now.
static SECURE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Who has signed everything, and what everybody shows.
static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new("transports"));

/// What origins are called.
const NAME: &str = "weir.test";

/// What clients call listeners: by an address, so that they may ask for any host.
const HERE: &str = "127.0.0.1";

/// Runs a test on a transport.
pub fn on(transport: Transport, test: fn()) {
    let before = NOW.replace(transport);
    test();
    NOW.set(before);
}

/// Whether it is TLS in this thread now.
pub fn is_tls() -> bool {
    NOW.get() == Transport::Tls
}

fn secure() -> std::sync::MutexGuard<'static, BTreeSet<String>> {
    SECURE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What begins to listen in this thread speaks TLS there, if that is its transport.
pub fn listens(addr: &str) {
    if NOW.get() == Transport::Tls {
        secure().insert(addr.to_owned());
    }
}

/// Nobody listens there any more.
pub fn ends(addr: &str) {
    secure().remove(addr);
}

fn is_secure(addr: &str) -> bool {
    secure().contains(addr)
}

/// The same topology on the transport of this thread.
pub fn adapt(point: &mut Point) {
    let is_tls = NOW.get() == Transport::Tls;
    for spec in &mut point.specs {
        match spec {
            Spec::Listen(listen) if is_tls => {
                let certificates = vec![AUTHORITY.files(&[HERE])];
                let tls = TlsServer { certificates, client_ca: None, client_auth: Default::default() };
                listen.tls = Some(tls);
            }
            Spec::Server { addr: Some(addr), origin, .. } if is_secure(addr) => {
                let ca = Some(AUTHORITY.file.clone());
                origin.tls = Some(TlsClient { ca, name: Some(NAME.to_owned()), certificate: None });
            }
            _ => {}
        }
    }
}

/// A connection, of a client or an origin.
pub enum Link {
    Plain(TcpStream),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
    Origin(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Link {
    /// To an address, as it is spoken to.
    pub fn connect(addr: &str) -> Link {
        let tcp = TcpStream::connect(addr).expect("a connection");
        if !is_secure(addr) {
            return Link::Plain(tcp);
        }
        let config = configs::client(&AUTHORITY);
        let name = ServerName::try_from(HERE).expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a client");
        Link::Client(Box::new(StreamOwned::new(tls, tcp)))
    }

    /// Of an origin that listens at this address.
    pub fn accept(addr: &str, tcp: TcpStream) -> Link {
        if !is_secure(addr) {
            return Link::Plain(tcp);
        }
        let tls = ServerConnection::new(configs::server(&AUTHORITY, &[NAME])).expect("a server");
        Link::Origin(Box::new(StreamOwned::new(tls, tcp)))
    }

    /// What it runs on.
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Link::Plain(tcp) => tcp,
            Link::Client(tls) => &tls.sock,
            Link::Origin(tls) => &tls.sock,
        }
    }

    /// For how long a read waits.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.tcp().set_read_timeout(limit)
    }
}

impl Read for Link {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Link::Plain(tcp) => tcp.read(into),
            Link::Client(tls) => tls.read(into),
            Link::Origin(tls) => tls.read(into),
        }
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Link::Plain(tcp) => tcp.write(bytes),
            Link::Client(tls) => tls.write(bytes),
            Link::Origin(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Link::Plain(tcp) => tcp.flush(),
            Link::Client(tls) => tls.flush(),
            Link::Origin(tls) => tls.flush(),
        }
    }
}
