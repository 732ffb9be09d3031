//! A tunnel after 101 or an accepted CONNECT: bytes both ways, each half closed by itself. A reset of one side reaches
//! the other side as a reset, behind every byte that came before it (`docs/spec/serving.md#client-leaves`).

use super::origin_reply::OriginReply;
use super::{ClientEnd, Exchange, OriginEnd};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use weir_net::io::deadlines::Deadline;
use weir_net::io::timers::Sleep;
use weir_plan::fixed::LINGER_SILENCE_NS;

/// How a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Both sides have ended their streams.
    InOrder,
    /// Nothing moved for `tunnel_idle`.
    Idle,
    /// This side has broken it, and the other has what came before that.
    Reset(Side),
    /// The target's `drain_timeout` has passed.
    Aborted,
}

/// A side of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Origin,
}

/// How often a half-closed tunnel is looked at for the reset of the side that it no longer reads, ns.
const LOOK_NS: u64 = 1_000_000_000;

/// The shortest and the longest time between two looks at what a side has been sent before a reset, ns.
const DELIVERY_NS: [u64; 2] = [1_000_000, 100_000_000];

/// One direction.
#[derive(Default)]
struct Half {
    /// The sender's end of stream was read.
    ended: bool,
    shut: bool,
    /// The sender has broken the tunnel: its end is no end of stream.
    is_broken: bool,
}

impl Half {
    /// Forwards bytes from the client to the origin; returns whether any moved.
    ///
    /// # Errors
    /// The side that is broken.
    fn poll_up(
        &mut self,
        cx: &mut Context<'_>,
        client: &ClientEnd,
        origin: &mut OriginEnd,
    ) -> Result<bool, Side> {
        let mut moved = false;
        while !self.shut {
            match origin.poll_flush(cx) {
                Poll::Ready(done) => done.map_err(|_| Side::Origin)?,
                Poll::Pending => break,
            }
            if self.ended && self.is_broken {
                break;
            }
            if self.ended {
                self.shut = origin.poll_shutdown(cx).is_ready();
                break;
            }
            match client.poll_tunnel(cx) {
                Poll::Ready(Ok(true)) => {
                    let mut input = client.input();
                    let n = input.bytes().len();
                    origin.send_tunnel(cx, &mut input, n).map_err(|_| Side::Origin)?;
                    drop(input);
                    moved = true;
                    if client.has_ended_tunnel() {
                        // In one frame where both are HTTP/2: some peers take the last message for the end (hypercorn).
                        self.ended = true;
                        origin.end_tunnel();
                    }
                }
                Poll::Ready(Ok(false)) => self.ended = true,
                Poll::Ready(Err(e)) if is_cut(&e) => self.ended = true,
                Poll::Ready(Err(_)) => return Err(Side::Client),
                Poll::Pending => break,
            }
        }
        Ok(moved)
    }

    /// Forwards bytes from the origin to the client; returns whether any moved.
    ///
    /// # Errors
    /// The side that is broken.
    fn poll_down(
        &mut self,
        cx: &mut Context<'_>,
        client: &ClientEnd,
        origin: &mut OriginEnd,
    ) -> Result<bool, Side> {
        let gone = |done: io::Result<()>| done.map_err(|_| Side::Client);
        let mut moved = false;
        while !self.shut {
            match client.poll_flush(cx) {
                Poll::Ready(done) => gone(done)?,
                Poll::Pending => break,
            }
            if self.ended && self.is_broken {
                break;
            }
            if self.ended {
                self.shut = client.poll_shutdown(cx).is_ready();
                break;
            }
            // What was read with the head is already counted.
            let counted = origin.is_counted() || !origin.input().is_empty();
            match client.poll_capacity(cx, 0, counted) {
                Poll::Ready(done) => gone(done)?,
                Poll::Pending => break,
            }
            match origin.poll_tunnel(cx) {
                Poll::Ready(Ok(true)) => {
                    let n = origin.input().bytes().len();
                    gone(client.send_tunnel(cx, origin.input(), n))?;
                    moved = true;
                    if origin.has_ended_tunnel() {
                        self.ended = true;
                        client.end_tunnel();
                    }
                }
                Poll::Ready(Ok(false)) => self.ended = true,
                Poll::Ready(Err(e)) if is_cut(&e) => self.ended = true,
                Poll::Ready(Err(_)) => return Err(Side::Origin),
                Poll::Pending => break,
            }
        }
        Ok(moved)
    }
}

/// Whether a stream ended without the word of TLS that it ends, as many peers end theirs: it is no reset.
fn is_cut(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::UnexpectedEof
}

/// A tunnel that runs.
struct Tunnel<'a> {
    ex: &'a Exchange,
    reply: &'a mut OriginReply,
    up: Half,
    down: Half,
    /// When a half-closed tunnel is looked at.
    look: Deadline,
    idle_ns: Option<u64>,
}

/// Runs until both halves have ended, one side has broken it, nothing moved for `tunnel_idle`, or the target's
/// `drain_timeout` has passed. Of a tunnel that one side has broken, the other is still to be reset.
pub(super) async fn tunnel(ex: &Exchange, reply: &mut OriginReply) -> End {
    reply.abort.leave_graph();
    let idle_ns = ex.listener().http.tunnel_idle_ns;
    ex.client.session().deadline.set(None);
    reply.origin.set_deadline(idle_ns);
    let look = ex.core.deadlines.add();
    look.set(Some(LOOK_NS));
    let mut tunnel = Tunnel { ex, reply, up: Half::default(), down: Half::default(), look, idle_ns };
    match poll_fn(|cx| tunnel.poll(cx)).await {
        End::Reset(by) => match Box::pin(tunnel.end_in_reset(by)).await {
            Some(sooner) => sooner,
            None => End::Reset(by),
        },
        end => end,
    }
}

impl Tunnel<'_> {
    /// Forwards both ways; ready at the end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let Tunnel { ex, reply, up, down, .. } = self;
        // One after the other: the first error of a socket is its last, and after it a read shows an end of stream.
        let polled = up.poll_up(cx, &ex.client, &mut reply.origin);
        let both = polled.and_then(|moved| Ok(moved | down.poll_down(cx, &ex.client, &mut reply.origin)?));
        let moved = match both {
            Ok(moved) => moved,
            Err(by) => return Poll::Ready(End::Reset(by)),
        };
        if up.shut && down.shut {
            return Poll::Ready(End::InOrder);
        }
        if let Some(by) = self.poll_unread(cx) {
            return Poll::Ready(End::Reset(by));
        }
        self.poll_limits(cx, moved)
    }

    /// The side that has broken the tunnel after its end of stream, when nothing is read from it any more.
    fn poll_unread(&mut self, cx: &mut Context<'_>) -> Option<Side> {
        if self.up.shut == self.down.shut || !self.look.ended(cx) {
            return None;
        }
        self.look.set(Some(LOOK_NS));
        let _ = self.look.ended(cx);
        match self.up.shut {
            true => self.ex.client.is_broken(cx).then_some(Side::Client),
            false => self.reply.origin.is_broken(cx).then_some(Side::Origin),
        }
    }

    /// Applies the limits of a tunnel in which bytes have moved or not.
    fn poll_limits(&mut self, cx: &mut Context<'_>, moved: bool) -> Poll<End> {
        if moved {
            self.reply.origin.set_deadline(self.idle_ns);
        }
        match () {
            () if self.reply.abort.is_set() || self.ex.is_cut() => Poll::Ready(End::Aborted),
            () if self.reply.origin.is_late(cx) => Poll::Ready(End::Idle),
            () => Poll::Pending,
        }
    }

    /// Forwards what a broken side had sent before, and waits until the other side has it: a reset destroys what waits
    /// anywhere. The limits of the tunnel hold on; returns the one that has ended it.
    async fn end_in_reset(&mut self, by: Side) -> Option<End> {
        let half = if by == Side::Client { &mut self.up } else { &mut self.down };
        half.is_broken = true;
        let was_shut = half.shut;
        if let Some(sooner) = poll_fn(|cx| self.poll_rest(cx, by)).await {
            return Some(sooner);
        }
        if was_shut {
            // The system does not show what waits before an end of stream.
            self.reply.origin.set_deadline(Some(LINGER_SILENCE_NS));
            poll_fn(|cx| self.poll_discard(cx, by)).await;
            return None;
        }
        let mut pause_ns = DELIVERY_NS[0];
        while !self.has_delivered(by) {
            let mut pause = self.ex.core.timers.after(pause_ns);
            if let Some(sooner) = poll_fn(|cx| self.poll_pause(cx, &mut pause)).await {
                return Some(sooner);
            }
            pause_ns = (2 * pause_ns).min(DELIVERY_NS[1]);
        }
        None
    }

    /// Forwards what a broken side had sent before; ready when all of it was sent, or with the limit that was reached.
    fn poll_rest(&mut self, cx: &mut Context<'_>, by: Side) -> Poll<Option<End>> {
        let Tunnel { ex, reply, up, down, .. } = self;
        let (client, origin) = (&ex.client, &mut reply.origin);
        let (half, is_sent) = match by {
            Side::Client => (up, origin.poll_flush(cx)),
            Side::Origin => (down, client.poll_flush(cx)),
        };
        // Both may be broken.
        if half.shut || matches!(is_sent, Poll::Ready(Err(_))) {
            return Poll::Ready(None);
        }
        let polled = match by {
            Side::Client => half.poll_up(cx, client, origin),
            Side::Origin => half.poll_down(cx, client, origin),
        };
        let (has_more, is_sent) = match by {
            Side::Client => (client.has_more(), origin.poll_flush(cx)),
            Side::Origin => (origin.has_more(), client.poll_flush(cx)),
        };
        if polled.is_err() || (half.ended || !has_more) && is_sent.is_ready() {
            return Poll::Ready(None);
        }
        self.poll_limits(cx, polled == Ok(true)).map(Some)
    }

    /// Takes and drops what the other side of a broken one still sends; ready when it ends, or is silent.
    fn poll_discard(&mut self, cx: &mut Context<'_>, by: Side) -> Poll<()> {
        let Tunnel { ex, reply, .. } = self;
        loop {
            let polled = match by {
                Side::Client => reply.origin.poll_tunnel(cx),
                Side::Origin => ex.client.poll_tunnel(cx),
            };
            match (polled, by) {
                (Poll::Ready(Ok(true)), Side::Client) => {
                    let n = reply.origin.input().bytes().len();
                    reply.origin.input().consume(n);
                }
                (Poll::Ready(Ok(true)), Side::Origin) => {
                    let n = ex.client.input().bytes().len();
                    ex.client.input().consume(n);
                }
                (Poll::Ready(_), _) => return Poll::Ready(()),
                (Poll::Pending, _) if reply.abort.is_set() || ex.is_cut() || reply.origin.is_late(cx) => {
                    return Poll::Ready(());
                }
                (Poll::Pending, _) => return Poll::Pending,
            }
        }
    }

    /// Whether the other side of a broken one has what it was sent.
    fn has_delivered(&self, by: Side) -> bool {
        match by {
            Side::Client => self.reply.origin.has_delivered(),
            Side::Origin => self.ex.client.has_delivered(),
        }
    }

    /// Ready at the end of a pause, or with the limit that was reached.
    fn poll_pause(&mut self, cx: &mut Context<'_>, pause: &mut Sleep) -> Poll<Option<End>> {
        match pause.poll_ended(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => self.poll_limits(cx, false).map(Some),
        }
    }
}
