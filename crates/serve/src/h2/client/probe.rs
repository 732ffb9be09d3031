//! One request on a connection of its own, whose status is all that matters: health checks.

use super::Conn;
use crate::h2::fields;
use crate::message::ConnectionHold;
use std::rc::Rc;
use weir_net::io::Core;
use weir_net::transport::socket::Socket;

/// Sends a request without body, given by its head in HTTP/1.1 syntax; returns the status of its answer, if there is
/// one. The rest is cancelled.
pub(crate) async fn ask(core: &Rc<Core>, socket: Socket, head: &[u8]) -> Option<u16> {
    let conn = Conn::open(core, socket, u64::MAX, None, ConnectionHold::default()).await.ok()?;
    let request = fields::request(head, false, conn.https)?;
    let (answer, _) = conn.sender.clone().send_request(request, true).ok()?;
    let answer = answer.await.ok()?;
    Some(answer.status().as_u16())
}
