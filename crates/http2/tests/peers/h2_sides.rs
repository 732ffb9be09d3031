//! The `h2` crate as either side of a list of exchanges.

use crate::exchange::{Exchange, Message};
use crate::h2_message::{is_bare, list, map, read, send};
use crate::pipe::Pipe;
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Request, Response};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use weir_testkit::Random;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Drives a connection, and adds the tasks that it brings; whether it is over.
type Driver = Box<dyn FnMut(&mut Context<'_>, &mut Vec<Task>) -> bool>;

/// What has come whole, by the number of its exchange, and what was reset.
#[derive(Default)]
pub struct Notes {
    pub whole: BTreeMap<usize, (u16, Message)>,
    pub resets: Vec<(usize, h2::Reason)>,
}

/// A side, as tasks that are polled in turns.
pub struct Side {
    connection: Driver,
    tasks: Vec<Task>,
    pub notes: Rc<RefCell<Notes>>,
    /// It has said goodbye, and reads nothing more.
    pub is_over: bool,
}

impl Side {
    /// Polls everything once; whether no message is on its way.
    pub fn turn(&mut self) -> bool {
        let cx = &mut Context::from_waker(Waker::noop());
        (self.connection)(cx, &mut self.tasks);
        self.tasks.retain_mut(|task| task.as_mut().poll(cx).is_pending());
        self.is_over = (self.connection)(cx, &mut self.tasks);
        self.tasks.is_empty()
    }
}

/// A server, with limits from a seed.
pub fn server(io: Pipe, exchanges: Rc<[Exchange]>, max_streams: u32, random: &mut Random) -> Side {
    let mut builder = h2::server::Builder::new();
    builder
        // Smaller ones than the default stall: see `h2_differences`.
        .initial_window_size([65_535, 100_000, 1_000_000][random.below(3)])
        .initial_connection_window_size([65_535, 1_000_000][random.below(2)])
        .max_frame_size([16_384, 100_000][random.below(2)])
        .header_table_size([4096, 0, 100, 10_000][random.below(4)])
        .max_concurrent_streams(max_streams);
    let mut handshake = Some(Box::pin(builder.handshake::<_, Bytes>(io)));
    let mut connection = None;
    let notes = Rc::new(RefCell::new(Notes::default()));
    let kept = notes.clone();
    let poll = move |cx: &mut Context<'_>, tasks: &mut Vec<Task>| {
        if let Some(waiting) = &mut handshake {
            let Poll::Ready(made) = waiting.as_mut().poll(cx) else { return false };
            connection = Some(made.expect("a handshake"));
            handshake = None;
        }
        let Some(connection) = &mut connection else { return false };
        while let Poll::Ready(accepted) = connection.poll_accept(cx) {
            let (request, respond) = accepted.expect("it goes on").expect("no error of the connection");
            tasks.push(Box::pin(serve(request, respond, exchanges.clone(), kept.clone())));
        }
        false
    };
    Side { connection: Box::new(poll), tasks: Vec::new(), notes, is_over: false }
}

async fn serve(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    exchanges: Rc<[Exchange]>,
    notes: Rc<RefCell<Notes>>,
) {
    let (head, body) = request.into_parts();
    let number: usize = head.uri.path().rsplit('/').next().and_then(|n| n.parse().ok()).expect("a number");
    let exchange = &exchanges[number];
    assert_eq!((head.method.as_str(), head.uri.host()), (&*exchange.method, Some("example.org")));
    if exchange.is_refused {
        return respond.send_reset(h2::Reason::REFUSED_STREAM);
    }
    match read(list(&head.headers), body).await {
        Ok(message) => drop(notes.borrow_mut().whole.insert(number, (0, message))),
        Err(error) => return note_reset(number, &error, &notes),
    }
    if let Err(error) = answer(exchange, &mut respond).await {
        note_reset(number, &error, &notes);
    }
}

async fn answer(exchange: &Exchange, respond: &mut SendResponse<Bytes>) -> Result<(), h2::Error> {
    let message = &exchange.answer;
    if exchange.has_interim {
        respond.send_informational(Response::builder().status(103).body(()).expect("a head"))?;
    }
    let mut head = Response::builder().status(exchange.status).body(()).expect("a head");
    *head.headers_mut() = map(&message.fields);
    let mut stream = respond.send_response(head, is_bare(message))?;
    send(message, &mut stream).await
}

fn note_reset(number: usize, error: &h2::Error, notes: &RefCell<Notes>) {
    assert!(error.is_reset(), "{error:?}");
    notes.borrow_mut().resets.push((number, error.reason().expect("a reason")));
}

/// A client, with limits from a seed.
pub fn client(io: Pipe, exchanges: Rc<[Exchange]>, random: &mut Random) -> Side {
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size([65_535, 500, 10_000, 1_000_000][random.below(4)])
        .initial_connection_window_size([65_535, 1_000_000][random.below(2)])
        .max_frame_size([16_384, 100_000][random.below(2)])
        .header_table_size([4096, 0, 100, 10_000][random.below(4)])
        .enable_push(false);
    let mut handshake = Some(Box::pin(builder.handshake::<_, Bytes>(io)));
    let mut connection = None;
    let notes = Rc::new(RefCell::new(Notes::default()));
    let kept = notes.clone();
    let poll = move |cx: &mut Context<'_>, tasks: &mut Vec<Task>| {
        if let Some(waiting) = &mut handshake {
            let Poll::Ready(made) = waiting.as_mut().poll(cx) else { return false };
            let (requests, driver) = made.expect("a handshake");
            connection = Some(Box::pin(driver));
            handshake = None;
            for number in 0..exchanges.len() {
                let (exchanges, notes, requests) = (exchanges.clone(), kept.clone(), requests.clone());
                tasks.push(Box::pin(async move {
                    let exchange = &exchanges[number];
                    match ask(number, exchange, requests).await {
                        Ok(Some(answer)) => drop(notes.borrow_mut().whole.insert(number, answer)),
                        Ok(None) => {}
                        Err(error) => note_reset(number, &error, &notes),
                    }
                }));
            }
        }
        if let Some(driver) = &mut connection
            && let Poll::Ready(ended) = driver.as_mut().poll(cx)
        {
            ended.expect("no error of the connection");
            connection = None;
        }
        handshake.is_none() && connection.is_none()
    };
    // Until the handshake is over there is something to do.
    let begun: Task = Box::pin(poll_fn({
        let mut turns = 0;
        move |_| {
            turns += 1;
            if turns > 3 { Poll::Ready(()) } else { Poll::Pending }
        }
    }));
    Side { connection: Box::new(poll), tasks: vec![begun], notes, is_over: false }
}

/// Sends a request; its answer, or nothing if it is given up.
async fn ask(
    number: usize,
    exchange: &Exchange,
    requests: h2::client::SendRequest<Bytes>,
) -> Result<Option<(u16, Message)>, h2::Error> {
    let uri = format!("http://example.org{}", Exchange::path(number));
    let mut head = Request::builder().method(&*exchange.method).uri(uri).body(()).expect("a head");
    *head.headers_mut() = map(&exchange.request.fields);
    let mut requests = requests.ready().await?;
    let (answer, mut stream) = requests.send_request(head, is_bare(&exchange.request))?;
    send(&exchange.request, &mut stream).await?;
    let (head, body) = answer.await?.into_parts();
    if exchange.is_cancelled {
        return Ok(None);
    }
    let message = read(list(&head.headers), body).await?;
    Ok(Some((head.status.as_u16(), message)))
}
