//! Messages by the `h2` crate.

use crate::exchange::{Fields, Message};
use bytes::Bytes;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::future::poll_fn;

pub fn map(fields: &Fields) -> HeaderMap {
    let pair = |(name, value): &(String, String)| {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        let mut value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
        value.set_sensitive(name == "authorization");
        (name, value)
    };
    fields.iter().map(pair).collect()
}

/// Its decoder does not keep marks.
pub fn list(map: &HeaderMap) -> Fields {
    let pair = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    map.iter().map(pair).collect()
}

/// Reads a body and its trailers.
pub async fn read(fields: Fields, mut body: RecvStream) -> Result<Message, h2::Error> {
    let mut message = Message { fields, ..Message::default() };
    while let Some(bytes) = body.data().await {
        let bytes = bytes?;
        body.flow_control().release_capacity(bytes.len())?;
        message.body.extend_from_slice(&bytes);
    }
    message.trailers = body.trailers().await?.map(|map| list(&map));
    Ok(message)
}

/// Sends what follows a head.
pub async fn send(message: &Message, stream: &mut SendStream<Bytes>) -> Result<(), h2::Error> {
    let mut rest = &message.body[..];
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let Some(room) = poll_fn(|cx| stream.poll_capacity(cx)).await else { return Ok(()) };
        let (piece, behind) = rest.split_at(room?.min(rest.len()));
        rest = behind;
        let is_end = rest.is_empty() && message.trailers.is_none();
        stream.send_data(Bytes::copy_from_slice(piece), is_end)?;
    }
    if let Some(trailers) = &message.trailers {
        stream.send_trailers(map(trailers))?;
    }
    Ok(())
}

/// Whether nothing follows a message's head.
pub fn is_bare(message: &Message) -> bool {
    message.body.is_empty() && message.trailers.is_none()
}
