//! HTTP/2 for tests that write HTTP/1.1: a client's text becomes streams, and streams an origin's text.

use super::text::{Body, Cut, Head, Text};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response, StatusCode};
use std::future::{Future, poll_fn};
use std::net::TcpStream as StdStream;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Both ends of a connection of its own.
pub fn pair() -> (StdStream, StdStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let near = StdStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    (near, listener.accept().expect("a connection").0)
}

/// A socket of the runtime.
pub fn of_runtime(stream: StdStream) -> TcpStream {
    stream.set_nonblocking(true).expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    TcpStream::from_std(stream).expect("a socket")
}

/// Runs one side on a thread's own runtime.
pub fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work);
}

/// Whichever ends first: `None`, if that is the second.
async fn unless<T>(first: impl Future<Output = T>, second: impl Future) -> Option<T> {
    let (mut first, mut second) = (pin!(first), pin!(second));
    poll_fn(|cx| match first.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => second.as_mut().poll(cx).map(|_| None),
    })
    .await
}

/// A client's requests, one after another as HTTP/1.1 has them, each in a stream.
pub async fn client(
    near: StdStream,
    far: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    scheme: &str,
) {
    let (from, mut to) = of_runtime(near).into_split();
    let Ok((mut sender, connection)) = h2::client::handshake(far).await else { return };
    let mut connection = tokio::spawn(connection);
    let mut text = Text::new(from);
    while let Some(Some(head)) = unless(text.head(), &mut connection).await {
        if !exchange(&mut sender, &mut text, &mut to, &head, scheme).await {
            break;
        }
    }
    drop(to);
    drop(sender);
    // The drop is still to be reported, unless the connection has ended: a task that has been joined cannot be joined
    // again.
    if !connection.is_finished() {
        let _ = tokio::time::timeout(Duration::from_secs(1), connection).await;
    }
}

/// One request and its answer; whether there may be another.
async fn exchange(
    sender: &mut SendRequest<Bytes>,
    text: &mut Text<OwnedReadHalf>,
    to: &mut OwnedWriteHalf,
    head: &Head,
    scheme: &str,
) -> bool {
    let mut words = head.first.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let uri = format!("{scheme}://{}{target}", head.field("host").expect("HTTP/2 names its host"));
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in head.common() {
        request = request.header(name, value);
    }
    let request = request.body(()).unwrap_or_else(|e| panic!("{e}: {head:?}"));
    let mut body = head.body(Body::Length(0));
    let Ok(mut ready) = sender.clone().ready().await else { return false };
    let Ok((answer, mut stream)) = ready.send_request(request, body == Body::Length(0)) else { return false };
    drop(ready);
    let going = async {
        let sent = upload(text, &mut stream, &mut body).await;
        // Bytes of the next request may come; the end of the stream is the client's leaving.
        text.until_the_end().await;
        sent
    };
    let is_whole = unless(download(answer, to, method == "HEAD", head.closes()), going).await;
    is_whole.is_some_and(|whole| whole.is_ok()) && body == Body::Length(0) && !head.closes()
}

/// A body, as fast as the other side takes it.
async fn upload<R: AsyncRead + Unpin>(
    text: &mut Text<R>,
    stream: &mut SendStream<Bytes>,
    body: &mut Body,
) -> Result<(), Cut> {
    if *body == Body::Length(0) {
        return Ok(());
    }
    let has_length = matches!(body, Body::Length(_));
    while let Some(piece) = text.piece(body).await? {
        send(stream, piece, has_length && *body == Body::Length(0)).await?;
    }
    if has_length { Ok(()) } else { stream.send_data(Bytes::new(), true).map_err(|_| Cut) }
}

async fn send(stream: &mut SendStream<Bytes>, mut data: Bytes, ends: bool) -> Result<(), Cut> {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let room = poll_fn(|cx| stream.poll_capacity(cx)).await.ok_or(Cut)?.map_err(|_| Cut)?;
        let piece = data.split_to(room.min(data.len()));
        stream.send_data(piece, ends && data.is_empty()).map_err(|_| Cut)?;
    }
    Ok(())
}

async fn download(
    mut answer: ResponseFuture,
    to: &mut OwnedWriteHalf,
    is_head: bool,
    closes: bool,
) -> Result<(), Cut> {
    // Those that have come by the time the final head has are written first.
    while let Some(interim) = poll_fn(|cx| answer.poll_informational(cx)).await {
        let interim = interim.map_err(|_| Cut)?;
        write(to, &text_of(interim.status(), interim.headers(), "")).await?;
    }
    let (head, mut body) = answer.await.map_err(|_| Cut)?.into_parts();
    let has_length = head.headers.contains_key("content-length");
    let framing = match has_length || is_head {
        true => "",
        false if body.is_end_stream() => "content-length: 0\r\n",
        false => "transfer-encoding: chunked\r\n",
    };
    let close = if closes { "connection: close\r\n" } else { "" };
    write(to, &text_of(head.status, &head.headers, &format!("{framing}{close}"))).await?;
    write_body(&mut body, to, framing.starts_with('t')).await
}

async fn write_body(body: &mut RecvStream, to: &mut OwnedWriteHalf, is_chunked: bool) -> Result<(), Cut> {
    while let Some(piece) = body.data().await {
        let piece = piece.map_err(|_| Cut)?;
        match is_chunked {
            true if piece.is_empty() => {}
            true => {
                write(to, format!("{:x}\r\n", piece.len()).as_bytes()).await?;
                write(to, &piece).await?;
                write(to, b"\r\n").await?;
            }
            false => write(to, &piece).await?,
        }
        body.flow_control().release_capacity(piece.len()).map_err(|_| Cut)?;
    }
    if is_chunked { write(to, b"0\r\n\r\n").await } else { Ok(()) }
}

fn fields(text: &mut Vec<u8>, list: &HeaderMap) {
    for (name, value) in list {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
}

fn text_of(status: StatusCode, list: &HeaderMap, more: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {} X\r\n", status.as_u16()).into_bytes();
    fields(&mut text, list);
    text.extend_from_slice(more.as_bytes());
    text.extend_from_slice(b"\r\n");
    text
}

async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), Cut> {
    to.write_all(bytes).await.map_err(|_| Cut)
}

/// An origin: each stream is a connection of HTTP/1.1 that `script` has on a thread of its own.
pub async fn origin(
    far: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    script: impl Fn(StdStream) + Clone + Send + 'static,
) {
    let Ok(mut connection) = h2::server::handshake(far).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (near, end) = pair();
        let script = script.clone();
        std::thread::spawn(move || script(near));
        tokio::spawn(stream(request, respond, of_runtime(end)));
    }
}

/// One stream of an origin.
async fn stream(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, near: TcpStream) {
    let (from, mut to) = near.into_split();
    let (head, mut body) = request.into_parts();
    let going = async {
        // Its sender may go; behind its end the way stays open, since its end would say that the client has gone.
        if pass_on(&head, &mut body, &mut to).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    unless(reply(&mut Text::new(from), &mut respond), going).await;
}

/// A request as text.
async fn pass_on(
    head: &http::request::Parts,
    body: &mut RecvStream,
    to: &mut OwnedWriteHalf,
) -> Result<(), Cut> {
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let host = head.uri.authority().map_or("", |host| host.as_str());
    let mut text = format!("{} {target} HTTP/1.1\r\nhost: {host}\r\n", head.method).into_bytes();
    fields(&mut text, &head.headers);
    let is_chunked = !body.is_end_stream() && !head.headers.contains_key("content-length");
    text.extend_from_slice(if is_chunked { b"transfer-encoding: chunked\r\n\r\n" } else { b"\r\n" });
    write(to, &text).await?;
    write_body(body, to, is_chunked).await
}

/// What the origin says to it. Where it breaks off, so does the stream.
async fn reply(text: &mut Text<OwnedReadHalf>, respond: &mut SendResponse<Bytes>) {
    let head = loop {
        let head = unless(text.head(), poll_fn(|cx| respond.poll_reset(cx))).await;
        let Some(Some(head)) = head else { return respond.send_reset(Reason::INTERNAL_ERROR) };
        let mut response = Response::builder().status(head.first.split(' ').nth(1).expect("a status"));
        for (name, value) in head.common() {
            response = response.header(name, value);
        }
        let response = response.body(()).unwrap_or_else(|e| panic!("{e}: {head:?}"));
        if response.status().is_informational() {
            let _ = respond.send_informational(response);
            continue;
        }
        break (response, head.body(Body::Open));
    };
    let (response, mut body) = head;
    let Ok(mut stream) = respond.send_response(response, body == Body::Length(0)) else { return };
    if upload(text, &mut stream, &mut body).await.is_err() {
        stream.send_reset(Reason::INTERNAL_ERROR);
    }
}
