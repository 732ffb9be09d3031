//! What connections of a test run on, on both sides of weir: the table that tests of nodes run through.

use super::certificates::Authority;
use super::{configs, translate};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use weir_plan::{CertificateFiles, OriginProtocol, Point, Spec, TlsClient, TlsServer};

/// What carries messages, on both sides of weir.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Cleartext,
    Tls,
    /// HTTP/2 by prior knowledge.
    Http2,
    /// HTTP/2 by ALPN.
    Http2Tls,
}

impl Transport {
    fn is_tls(self) -> bool {
        matches!(self, Transport::Tls | Transport::Http2Tls)
    }

    /// Whether it is HTTP/2.
    pub fn is_http2(self) -> bool {
        matches!(self, Transport::Http2 | Transport::Http2Tls)
    }
}

thread_local! {
    static NOW: Cell<Transport> = const { Cell::new(Transport::Cleartext) };
}

/// What listeners and origins speak now, where it is not cleartext.
static SPOKEN: Mutex<BTreeMap<String, Transport>> = Mutex::new(BTreeMap::new());

/// The authority of all certificates, and the certificate of each side.
static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new("transports"));

/// What listeners show. In files that are written once: others read them.
static SHOWN: LazyLock<CertificateFiles> = LazyLock::new(|| AUTHORITY.files(&[HERE]));

/// What origins are called.
const NAME: &str = "weir.test";

/// What clients call listeners: by an address, so that they may ask for any host.
const HERE: &str = "127.0.0.1";

/// Runs a test on a transport.
pub fn with_transport(transport: Transport, test: fn()) {
    let before = NOW.replace(transport);
    test();
    NOW.set(before);
}

/// Whether it is TLS in this thread now.
pub fn is_tls() -> bool {
    NOW.get().is_tls()
}

/// Whether it is HTTP/2 in this thread now.
pub fn is_http2() -> bool {
    NOW.get().is_http2()
}

fn spoken() -> std::sync::MutexGuard<'static, BTreeMap<String, Transport>> {
    SPOKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What begins to listen in this thread speaks what the thread's transport is.
pub fn listens(addr: &str) {
    spoken().insert(addr.to_owned(), NOW.get());
}

/// No origin listens there any more.
pub fn ends(addr: &str) {
    spoken().remove(addr);
}

fn transport_of(addr: &str) -> Transport {
    spoken().get(addr).copied().unwrap_or(Transport::Cleartext)
}

/// The same topology on the transport of this thread.
pub fn adapt(point: &mut Point) {
    for spec in &mut point.specs {
        match spec {
            Spec::Listen(listen) if is_tls() => {
                let certificates = vec![SHOWN.clone()];
                let tls = TlsServer {
                    certificates,
                    client_ca: None,
                    client_auth: Default::default(),
                    min_version: Default::default(),
                    watch: false,
                };
                listen.tls = Some(tls);
            }
            Spec::Server { addr: Some(addr), origin, .. } => {
                let transport = transport_of(addr);
                if transport.is_tls() {
                    let ca = Some(AUTHORITY.file.clone());
                    let name = Some(NAME.to_owned());
                    origin.tls = Some(TlsClient { ca, name, ..TlsClient::default() });
                }
                if transport == Transport::Http2 {
                    origin.protocol = OriginProtocol::H2;
                }
            }
            // Built-in servers have no TLS.
            Spec::Server { addr: None, origin, .. } if is_http2() => origin.protocol = OriginProtocol::H2,
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
        let transport = transport_of(addr);
        if transport.is_http2() {
            return Link::Plain(by_http2(tcp, transport));
        }
        if !transport.is_tls() {
            return Link::Plain(tcp);
        }
        let config = configs::client(&AUTHORITY);
        let name = ServerName::try_from(HERE).expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a client");
        Link::Client(Box::new(StreamOwned::new(tls, tcp)))
    }

    /// A connection to an origin that listens at this address, for its script: HTTP/2 has a thread for each stream.
    pub fn accept(addr: &str, tcp: TcpStream, script: impl Fn(Link) + Clone + Send + 'static) {
        match transport_of(addr) {
            Transport::Cleartext => script(Link::Plain(tcp)),
            Transport::Tls => {
                let tls = ServerConnection::new(configs::server(&AUTHORITY, &[NAME])).expect("a server");
                script(Link::Origin(Box::new(StreamOwned::new(tls, tcp))));
            }
            Transport::Http2 => translate::run(async {
                translate::origin(translate::of_runtime(tcp), move |end| script(Link::Plain(end))).await;
            }),
            Transport::Http2Tls => translate::run(async {
                let mut config = (*configs::server(&AUTHORITY, &[NAME])).clone();
                config.alpn_protocols = vec![b"h2".to_vec()];
                let tls = TlsAcceptor::from(Arc::new(config)).accept(translate::of_runtime(tcp)).await;
                let Ok(tls) = tls else { return };
                translate::origin(tls, move |end| script(Link::Plain(end))).await;
            }),
        }
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

/// A connection of HTTP/1.1 whose other end sends everything on by HTTP/2.
fn by_http2(tcp: TcpStream, transport: Transport) -> TcpStream {
    let (own, near) = translate::pair();
    std::thread::spawn(move || {
        translate::run(async {
            let tcp = translate::of_runtime(tcp);
            if !transport.is_tls() {
                return translate::client(near, tcp, "http").await;
            }
            let mut config = configs::client(&AUTHORITY);
            config.alpn_protocols = vec![b"h2".to_vec()];
            let name = ServerName::try_from(HERE).expect("a name");
            let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await;
            translate::client(near, tls.expect("a handshake"), "https").await;
        });
    });
    own
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
