//! An upgrade between the versions of HTTP. By HTTP/1.1 it is a GET with Upgrade and its 101, by HTTP/2 an extended
//! CONNECT and its 2xx (RFC 8441); each is read as the former, whatever it came by.
//!
//! What is left is the key of WebSocket. Over HTTP/1.1 it proves that the server has understood (RFC 6455 §1.3), and HTTP/2
//! has none (RFC 8441 §5). So weir asks an origin of HTTP/1.1 with a key of its own and checks the proof, and proves
//! itself to a client of HTTP/1.1.

use super::failure::FailureCause;
use super::origin_reply::OriginReply;
use super::reply::{Answer, Reply, ReplySource};
use super::{Exchange, Failure};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use data_encoding::BASE64;
use weir_http1::{Edits, Response, Version, check_switch, first_upgrade};
use weir_policy::Kind;
use weir_stats::Key;

const WEBSOCKET: &str = "websocket";
const KEY: &str = "Sec-WebSocket-Key";
const ACCEPT: &str = "Sec-WebSocket-Accept";

/// The changes of a request that is an upgrade for a connection of this version; `None`: there are none beyond `edits`.
pub(crate) fn edit_request(ex: &Exchange, edits: &Edits, to: Version) -> Option<Edits> {
    let stays_h1 = to != Version::H2 && !ex.request.is_extended_connect();
    if !ex.is_upgrade() || stays_h1 || first_upgrade(&ex.request, &ex.hop()) != Some(WEBSOCKET) {
        return None;
    }
    let mut edits = edits.clone();
    edits.set.retain(|(name, _)| !name.eq_ignore_ascii_case(KEY.as_bytes()));
    match to {
        Version::H2 => edits.remove.push(KEY.into()),
        _ => edits.set.push((KEY.into(), key(ex.draw).into_bytes())),
    }
    Some(edits)
}

/// Checks that a 101 switches to what was asked for.
pub(crate) fn check(ex: &Exchange, response: &Response) -> Result<(), Failure> {
    let failure = |cause| Failure::new(Kind::BadResponse).with_cause(cause);
    check_switch(&ex.request, &ex.hop(), response).map_err(|refusal| failure(FailureCause::Rule(refusal)))?;
    let has_own_key = ex.request.is_extended_connect()
        && response.version() != Version::H2
        && first_upgrade(&ex.request, &ex.hop()) == Some(WEBSOCKET);
    let is_proven =
        || response.field("sec-websocket-accept") == Some(accept(key(ex.draw).as_bytes()).as_bytes());
    if has_own_key && !is_proven() { Err(failure(FailureCause::UnprovenSwitch)) } else { Ok(()) }
}

/// Fails an extended CONNECT whose answer is a 2xx but no agreement, from a server that knows no upgrade, or from weir
/// itself: the client would take it for a tunnel.
pub(super) fn refuse_ignored(ex: &Exchange, reply: Reply) -> Answer {
    if !ex.request.is_extended_connect() || !(200..300).contains(&reply.status()) {
        return Ok(reply);
    }
    let failure = Failure::no_upgrade(FailureCause::UpgradeIgnored);
    let failure = match &reply.source {
        ReplySource::Origin(origin) => failure.with_server(origin.upstream.node()),
        ReplySource::Local(_) => failure,
    };
    reply.discard(ex);
    Err(failure)
}

/// Changes the head of a 101 for a client of another version than the origin's.
pub(super) fn edit_response(ex: &Exchange, reply: &mut OriginReply) {
    let by_h2 = reply.response().version() == Version::H2;
    if !ex.is_upgrade() || by_h2 == ex.request.is_extended_connect() {
        return;
    }
    let protocol = first_upgrade(&ex.request, &ex.hop());
    if protocol == Some(WEBSOCKET) {
        reply.edits.remove.push(ACCEPT.into());
    }
    if let Some(protocol) = protocol.filter(|_| by_h2) {
        reply.add.push(("Upgrade", protocol.into()));
        if let Some(key) = ex.request.field("sec-websocket-key").filter(|_| protocol == WEBSOCKET) {
            reply.add.push((ACCEPT, accept(key).into_bytes()));
        }
    }
}

/// The key of a request, the same as often as it is asked for.
fn key(draw: Key) -> String {
    let of_key = draw.with(0x6b65_7973);
    let halves = [0, 1].map(|half| of_key.with(half).bits().to_be_bytes());
    BASE64.encode(&halves.concat())
}

/// The proof that a server has understood this key (RFC 6455 §4.2.2).
fn accept(key: &[u8]) -> String {
    let proof = [key, b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"].concat();
    BASE64.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &proof).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455 §1.3.
    #[test]
    fn a_key_has_its_proof() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
