//! Clients and origins on the `h2` crate.

use bytes::Bytes;
use h2::client::SendRequest;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Runs a test's peers, 20 s at most.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), work).await });
    ended.expect("it ends within 20 s")
}

/// A connection to a listener.
pub struct Client {
    pub sender: SendRequest<Bytes>,
    /// How the connection ended.
    pub ended: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

/// A response that came whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub fields: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
}

impl Answer {
    /// The first field of that name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    /// To an address, with small windows so that they matter.
    pub async fn new(addr: &str) -> Client {
        let stream = TcpStream::connect(addr).await.expect("a connection");
        let (sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        Client { sender, ended: tokio::spawn(connection) }
    }

    /// Begins a request.
    pub async fn begin(
        &mut self,
        request: Request<()>,
        ends: bool,
    ) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
        let mut sender = self.sender.clone().ready().await.expect("a stream is free");
        sender.send_request(request, ends).expect("it may be sent")
    }

    /// A request without body.
    pub async fn ask(&mut self, request: Request<()>) -> Result<Answer, h2::Error> {
        read(self.begin(request, true).await.0).await
    }

    /// GET of a path.
    pub async fn get(&mut self, path: &str) -> Answer {
        self.ask(get(path)).await.expect("an answer")
    }

    /// A request with this body and these trailers.
    pub async fn send(
        &mut self,
        request: Request<()>,
        body: &[u8],
        trailers: Option<HeaderMap>,
    ) -> Result<Answer, h2::Error> {
        let (answer, mut stream) = self.begin(request, false).await;
        let body = Bytes::copy_from_slice(body);
        let sending = tokio::spawn(async move {
            write(&mut stream, body, trailers.is_none()).await?;
            trailers.map_or(Ok(()), |trailers| stream.send_trailers(trailers))
        });
        let answer = read(answer).await;
        let _ = sending.await;
        answer
    }
}

/// A GET.
pub fn get(path: &str) -> Request<()> {
    Request::get(format!("http://test{path}")).body(()).expect("a request")
}

/// A POST.
pub fn post(path: &str) -> Request<()> {
    Request::post(format!("http://test{path}")).body(()).expect("a request")
}

/// Fields.
pub fn fields(list: &[(&'static str, &'static str)]) -> HeaderMap {
    list.iter().map(|(n, v)| (n.parse().expect("a name"), v.parse().expect("a value"))).collect()
}

/// Writes, no faster than the other side takes it.
pub async fn write(stream: &mut SendStream<Bytes>, mut body: Bytes, ends: bool) -> Result<(), h2::Error> {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let Some(room) = room.transpose()? else { return Ok(()) };
        let piece = body.split_to(room.min(body.len()));
        stream.send_data(piece, ends && body.is_empty())?;
    }
    Ok(())
}

/// A whole answer.
pub async fn read(answer: h2::client::ResponseFuture) -> Result<Answer, h2::Error> {
    let (head, mut body) = answer.await?.into_parts();
    let data = collect(&mut body).await?;
    let trailers = body.trailers().await?;
    Ok(Answer { status: head.status.as_u16(), fields: head.headers, body: data, trailers })
}

/// A whole body.
pub async fn collect(body: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut data = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        data.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok(data)
}

/// What an origin does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// 200 with this body and these trailers, after these interim responses.
    Ok(&'static [u16], Vec<u8>, Option<HeaderMap>),
    /// Sends the request's body back as it comes, with its trailers.
    Echo,
    /// Breaks the stream off, behind so much of an answer if it is any.
    Reset(Reason, Option<&'static str>),
    /// The same behind so many bytes of the request's body.
    ResetBehind(Reason, usize),
    /// Nothing, until the client goes.
    Silence,
}

/// A request that an origin got.
pub type Got = http::request::Parts;

/// An origin.
pub struct Origin {
    pub addr: String,
    got: Arc<Mutex<Vec<Got>>>,
    connections: Arc<AtomicUsize>,
    reset: Arc<Mutex<Vec<Reason>>>,
}

impl Origin {
    /// One that does this with the n-th request, with at most this number at once on a connection.
    pub fn new(most: u32, script: impl Fn(usize, &Got) -> Reply + Send + Sync + 'static) -> Origin {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let addr = listener.local_addr().expect("an address").to_string();
        let origin = Origin { addr, got: Arc::default(), connections: Arc::default(), reset: Arc::default() };
        let (got, connections, reset) =
            (origin.got.clone(), origin.connections.clone(), origin.reset.clone());
        let script = Arc::new(script);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                while let Ok((stream, _)) = listener.accept().await {
                    connections.fetch_add(1, SeqCst);
                    tokio::spawn(connection(stream, most, got.clone(), reset.clone(), script.clone()));
                }
            });
        });
        origin
    }

    /// What it got.
    pub fn got(&self) -> Vec<Got> {
        self.got.lock().expect("no panic").clone()
    }

    /// Connections that ever were.
    pub fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    /// Streams that were reset before they were answered.
    pub fn resets(&self) -> Vec<Reason> {
        self.reset.lock().expect("no panic").clone()
    }
}

async fn connection(
    stream: TcpStream,
    most: u32,
    got: Arc<Mutex<Vec<Got>>>,
    reset: Arc<Mutex<Vec<Reason>>>,
    script: Arc<impl Fn(usize, &Got) -> Reply + Send + Sync + 'static>,
) {
    let mut builder = h2::server::Builder::new();
    let Ok(mut connection) = builder.max_concurrent_streams(most).handshake(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (head, body) = request.into_parts();
        let then = {
            let mut got = got.lock().expect("no panic");
            got.push(head.clone());
            script(got.len() - 1, &head)
        };
        let reset = reset.clone();
        tokio::spawn(async move {
            // The client may have gone.
            let _ = answer(then, body, respond, &reset).await;
        });
    }
}

async fn answer(
    then: Reply,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
    reset: &Mutex<Vec<Reason>>,
) -> Result<(), h2::Error> {
    match then {
        Reply::Ok(interim, data, trailers) => {
            for status in interim {
                let hint = Response::builder().status(*status).header("link", "</a>").body(());
                respond.send_informational(hint.expect("a response"))?;
            }
            collect(&mut body).await?;
            let mut stream = respond.send_response(Response::new(()), false)?;
            let ends = trailers.is_none();
            if data.is_empty() && ends {
                stream.send_data(Bytes::new(), true)?;
            }
            write(&mut stream, data.into(), ends).await?;
            trailers.map_or(Ok(()), |trailers| stream.send_trailers(trailers))
        }
        Reply::Echo => {
            let mut stream = respond.send_response(Response::new(()), false)?;
            while let Some(piece) = body.data().await {
                let piece = piece?;
                body.flow_control().release_capacity(piece.len())?;
                write(&mut stream, piece, false).await?;
            }
            stream.send_trailers(body.trailers().await?.unwrap_or_default())
        }
        Reply::Reset(reason, None) => {
            respond.send_reset(reason);
            Ok(())
        }
        Reply::Reset(reason, Some(part)) => {
            let mut stream = respond.send_response(Response::new(()), false)?;
            write(&mut stream, part.into(), false).await?;
            // The part is to arrive before the end does.
            tokio::task::yield_now().await;
            stream.send_reset(reason);
            Ok(())
        }
        Reply::ResetBehind(reason, mut bytes) => {
            while bytes > 0
                && let Some(piece) = body.data().await
            {
                let piece = piece?;
                bytes = bytes.saturating_sub(piece.len());
                body.flow_control().release_capacity(piece.len())?;
            }
            respond.send_reset(reason);
            Ok(())
        }
        Reply::Silence => {
            let reason = std::future::poll_fn(|cx| respond.poll_reset(cx)).await?;
            reset.lock().expect("no panic").push(reason);
            Ok(())
        }
    }
}
