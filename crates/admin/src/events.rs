//! `GET /events`: the changed parts of the page, once a second, as server-sent events. A slow reader misses
//! intermediate states.

use crate::answer::{Answer, Form, with_body};
use crate::limits::FOLLOWERS;
use crate::page::Parts;
use crate::page::TimedView;
use crate::server::Server;
use http_body_util::BodyExt;
use http_body_util::channel::{Channel, Sender};
use hyper::StatusCode;
use hyper::body::Bytes;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::watch;

/// The stream of events; `all`: of a page with all targets.
pub(crate) fn answer(server: &Server, all: bool, form: Form) -> Answer {
    if server.watcher.followers() >= FOLLOWERS {
        let why = format!("{FOLLOWERS} pages are already following; close one, or read /topology");
        return form.sentence(StatusCode::SERVICE_UNAVAILABLE, &why);
    }
    let (sender, body) = Channel::<Bytes, Infallible>::new(1);
    tokio::spawn(tell(sender, server.watcher.follow(), server.ends.clone(), all));
    with_body(StatusCode::OK, "text/event-stream", body.boxed())
}

/// Sends changes until the reader is gone, or the interface ends.
async fn tell(
    mut to: Sender<Bytes, Infallible>,
    mut seen: watch::Receiver<Option<Arc<TimedView>>>,
    mut ends: watch::Receiver<bool>,
    all: bool,
) {
    let mut known = BTreeMap::new();
    let mut ended = pin!(ends.wait_for(|ends| *ends));
    loop {
        let event = {
            let now = seen.borrow_and_update();
            now.as_ref().map(|now| event(&mut known, now.parts(all)))
        };
        // Waits until the one before was accepted; an error: the reader is gone.
        if let Some(event) = event
            && to.send_data(event).await.is_err()
        {
            return;
        }
        let mut changed = pin!(seen.changed());
        let goes_on = poll_fn(|cx| match ended.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(false),
            Poll::Pending => changed.as_mut().poll(cx).map(|changed| changed.is_ok()),
        });
        if !goes_on.await {
            return;
        }
    }
}

/// The changed parts, by their names; without changes: a sign of life.
fn event(known: &mut BTreeMap<String, String>, parts: &Parts) -> Bytes {
    let mut news = BTreeMap::new();
    for (name, html) in parts.each() {
        if known.get(name).is_none_or(|before| before != html) {
            known.insert(name.to_owned(), html.to_owned());
            news.insert(name, html);
        }
    }
    match serde_json::to_string(&news) {
        // A text without line feeds is one line of an event.
        Ok(json) => format!("data: {json}\n\n").into(),
        Err(_) => Bytes::from_static(b":\n\n"),
    }
}
