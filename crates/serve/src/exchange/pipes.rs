//! Large bodies from socket to socket, without a copy in this process (`docs/spec/background.md#read-size`).

use super::origin_reply::OriginReply;
use super::{Body, Exchange, Failure, OriginEnd};
use crate::message::{Piece, ResponseBodyError};
use std::task::{Context, Poll};
use weir_net::io::pipes::Pipe;

/// What is left of a body for which a pipe is worth its calls, bytes.
const WORTH: u64 = 64 * 1024;

/// The piece after which the next one goes through a pipe: of a sender that sends little at a time more is read at once
/// than is moved at once.
const LARGE: usize = 32 * 1024;

/// Bytes moved at once at most.
const MOST: usize = 512 * 1024;

/// Reads more of the answer's body, into the input of the origin's end or into a pipe.
pub(super) fn poll_answer(
    cx: &mut Context<'_>,
    ex: &Exchange,
    reply: &mut OriginReply,
    into: &mut Option<Pipe>,
) -> Poll<Result<Piece, ResponseBodyError>> {
    // What is read ahead of the client (`buffered`) is kept in memory: a pipe that the client does not empty would hold
    // the origin up.
    let may_pipe = reply.last_piece >= LARGE && reply.ahead == 0 && ex.client.takes_pipes();
    let left = if may_pipe { reply.origin.pipeable() } else { None };
    let Some((most, mut pipe)) = left.and_then(|left| take(ex, left)) else {
        return reply.origin.poll_data(cx);
    };
    let polled = reply.origin.poll_data_pipe(cx, &mut pipe, most);
    if pipe.held() > 0 {
        *into = Some(pipe);
    }
    polled
}

/// Reads more of the request's body, into the input of the client's end or into a pipe. `last_piece`: the length of the
/// piece before.
pub(super) fn poll_request(
    cx: &mut Context<'_>,
    ex: &Exchange,
    body: &mut Body,
    origin: &OriginEnd,
    last_piece: usize,
    into: &mut Option<Pipe>,
) -> Poll<Result<Piece, Failure>> {
    let may_pipe = last_piece >= LARGE && !body.is_kept && origin.takes_pipes();
    let left = if may_pipe { ex.client.pipeable() } else { None };
    let Some((most, mut pipe)) = left.and_then(|left| take(ex, left)) else {
        return ex.poll_body(cx, body);
    };
    let polled = ex.poll_body_pipe(cx, body, &mut pipe, most);
    if pipe.held() > 0 {
        *into = Some(pipe);
    }
    polled
}

/// A pipe for a body of which so much is left, and how much of it to move; `None`: it is to be read.
fn take(ex: &Exchange, left: u64) -> Option<(usize, Pipe)> {
    if left < WORTH {
        return None;
    }
    Some((left.min(MOST as u64) as usize, ex.core.pipe()?))
}
