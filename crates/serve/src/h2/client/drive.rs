//! The task of a connection to an origin.

use super::liveness::Liveness;
use super::{Conn, Ending, Fault, Report};
use crate::h2::link::{AnswerHead, Link, LinkEnd};
use crate::message::{HeadKind, Opening, OpeningError, RESPONSE_LIMITS};
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};
use weir_http1::Response;
use weir_http2::{ErrorCode, Event, Head};
use weir_net::io::Core;
use weir_net::io::deadlines::Deadline;
use weir_net::io::runtime::AfterOthers;

/// Takes what the opening of a connection has come to.
type OnOpen = Box<dyn FnOnce(Opening)>;

/// What drives a connection: it does not keep it.
pub(super) struct Driver {
    core: Rc<Core>,
    conn: Weak<Conn>,
    link: Rc<Link>,
    liveness: Rc<Liveness>,
    /// Takes what the opening has come to; `None`: it has.
    on_open: Cell<Option<OnOpen>>,
    opening: Deadline,
    opening_ns: Option<u64>,
    report: Option<Report>,
}

impl Driver {
    pub fn new(conn: &Rc<Conn>, opening_ns: Option<u64>, on_open: OnOpen, report: Option<Report>) -> Driver {
        let opening = conn.core.deadlines.add();
        opening.set(opening_ns);
        Driver {
            core: conn.core.clone(),
            conn: Rc::downgrade(conn),
            link: conn.link.clone(),
            liveness: conn.liveness.clone(),
            on_open: Cell::new(Some(on_open)),
            opening,
            opening_ns,
            report,
        }
    }

    /// Drives it to its end: when it is dropped everywhere else, or the origin ends or floods it, or does not answer.
    pub async fn run(self) {
        let mut turn = AfterOthers::default();
        let end = poll_fn(|cx| self.poll(cx, &mut turn)).await;
        self.link.finish(LinkEnd::Gone);
        let tls = self.link.wire.borrow().socket.tls_failure();
        self.opens(Err(match end {
            None if !self.liveness.is_dead() => OpeningError::Late(self.opening_ns),
            _ => tls.map_or(OpeningError::NoHttp2, OpeningError::Tls),
        }));
        if let Some(conn) = self.conn.upgrade() {
            conn.ends(match end {
                Some(LinkEnd::Fault(error)) if error.code == ErrorCode::ENHANCE_YOUR_CALM => Ending::Flood,
                _ if self.liveness.is_dead() => Ending::Silent,
                _ => Ending::Origin,
            });
        }
        self.link.wire.borrow_mut().close();
    }

    /// Ready at the end; with `None` the origin was silent for too long.
    fn poll(&self, cx: &mut Context<'_>, turn: &mut AfterOthers) -> Poll<Option<LinkEnd>> {
        let polled = self.link.poll(cx, turn, |event, head| self.take(&event, head));
        if polled.is_ready() {
            return polled.map(Some);
        }
        let is_late = self.is_opening() && self.opening.ended(cx);
        if is_late || !self.liveness.is_trusted() && self.liveness.poll_dead(cx, &self.link) {
            return Poll::Ready(None);
        }
        self.link.rest();
        Poll::Pending
    }

    fn take(&self, event: &Event, head: &Head) {
        match *event {
            Event::Interim { stream, status } => {
                self.put_head(stream, status, HeadKind::Interim, head, false)
            }
            Event::Answer { stream, status, is_end } => {
                self.put_head(stream, status, HeadKind::Final, head, !is_end);
                if is_end {
                    self.link.end_body(stream);
                }
            }
            Event::SettingsChanged => {
                self.opens(Ok(()));
                self.with_conn(Conn::forget_refusals);
            }
            Event::Unprocessed { .. } => self.with_conn(Conn::note_refusal),
            Event::Pong => self.liveness.answers(),
            Event::Failed(error) => {
                self.report(&Fault::Ours(error));
                self.opens(Err(OpeningError::NoHttp2));
                self.with_conn(|conn| conn.ends(Ending::Origin));
            }
            Event::GoAway { code, ref text, .. } => {
                if code != ErrorCode::NO_ERROR {
                    self.report(&Fault::Theirs(code, text));
                }
                self.with_conn(|conn| conn.ends(Ending::Origin));
            }
            _ => {}
        }
    }

    fn with_conn(&self, act: impl FnOnce(&Conn)) {
        if let Some(conn) = self.conn.upgrade() {
            act(&conn);
        }
    }

    #[cold]
    fn report(&self, fault: &Fault<'_>) {
        if let Some(report) = &self.report {
            report(fault);
        }
    }

    fn is_opening(&self) -> bool {
        let on_open = self.on_open.take();
        let is_opening = on_open.is_some();
        self.on_open.set(on_open);
        is_opening
    }

    /// Notes, once, what the opening has come to.
    fn opens(&self, opened: Opening) {
        let Some(on_open) = self.on_open.take() else { return };
        if let Some(conn) = self.conn.upgrade() {
            conn.opened.set(Some(opened));
        }
        on_open(opened);
    }

    /// Leaves the head of an answer with its stream.
    fn put_head(&self, stream: u32, status: u16, kind: HeadKind, head: &Head, has_body: bool) {
        let mut scratch = self.core.buffers.small();
        self.link.put_head(stream, |asked| {
            let mut response = self.core.spares.take::<Response>();
            let read = head.response(status, asked, has_body, &RESPONSE_LIMITS, &mut response, &mut scratch);
            AnswerHead { kind, read: read.map(|()| response) }
        });
        self.core.buffers.keep_small(scratch);
    }
}
