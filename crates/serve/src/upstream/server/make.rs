//! Makes the connection that a request is sent on.
//!
//! An upgrade goes by extended CONNECT (RFC 8441) on a connection of HTTP/2 whose origin allows that, or by HTTP/1.1. To
//! an origin that chooses its version by ALPN, and to which no such connection is open, it makes one that offers HTTP/1.1
//! alone. That connection does not show what the origin would have chosen, and requests that may use HTTP/2 leave it
//! alone.

use super::Server;
use super::dial::{Connection, within};
use crate::exchange::failure::FailureCause;
use crate::exchange::upstream::described;
use crate::exchange::{Exchange, Failure, OriginConn};
use crate::h1;
use crate::h2::client::{Conn, ConnLimits, Report};
use crate::transport::listener::Listener;
use crate::upstream::attempt::opening_failure;
use crate::upstream::multiplexed::{Choice, Maker, Making, Turn};
use std::future::poll_fn;
use std::rc::Rc;
use weir_net::io::Core;
use weir_net::io::timers::Sleep;
use weir_plan::OriginProtocol;
use weir_policy::Kind;

/// How often a request looks whether an origin that allowed no streams has more room, ns.
const LOOK_AGAIN_NS: u64 = 20_000_000;

/// The protocols that TLS offers by ALPN, the best first.
const H1: &[&str] = &["http/1.1"];
const H2: &[&str] = &["h2"];
const BOTH: &[&str] = &["h2", "http/1.1"];

impl Server {
    /// Makes a connection for a request, or waits for a place on one that is being made.
    pub(super) async fn connect(&self, ex: &Exchange, choice: Choice) -> Result<OriginConn, Failure> {
        let core = &ex.core;
        let mut limit = self.origin.connect_timeout_ns.map(|ns| core.timers.after(ns));
        if ex.is_upgrade() {
            self.connect_for_upgrade(ex, &mut limit, choice).await
        } else if self.may_multiplex() {
            self.multiplex(ex, &mut limit, choice).await
        } else {
            self.connect_h1(ex, &mut limit).await
        }
    }

    /// Makes a connection for an upgrade: of HTTP/1.1, or of HTTP/2 where nothing else is spoken.
    async fn connect_for_upgrade(
        &self,
        ex: &Exchange,
        limit: &mut Option<Sleep>,
        choice: Choice,
    ) -> Result<OriginConn, Failure> {
        // A server of this process takes both, whatever it is spoken to by.
        if self.origin.protocol != OriginProtocol::H2 || self.is_built_in() {
            match self.connect_h1(ex, limit).await {
                Err(failure) if failure.cause == FailureCause::UpgradeUnspoken && self.may_multiplex() => {}
                made => return made,
            }
        }
        // One that is open tells what another would.
        let (conn, is_reused) = match self.take_shared(ex.core.now(), choice) {
            Some(conn) => (conn, true),
            None => (self.multiplex(ex, limit, choice).await?, false),
        };
        if !conn.takes_upgrades() {
            return Err(Failure::no_upgrade(FailureCause::NoExtendedConnect));
        }
        if is_reused {
            self.target.counts.reused.one();
        }
        Ok(conn)
    }

    /// Makes an HTTP/1.1 connection. If the origin is known to choose that, one connection at a time offers both versions
    /// all the same: it may choose HTTP/2 by now, and connections that do not ask would go on for as long as requests do.
    async fn connect_h1(&self, ex: &Exchange, limit: &mut Option<Sleep>) -> Result<OriginConn, Failure> {
        // A tunnel lasts for days and says nothing about what the origin would choose by then.
        let question = if ex.is_upgrade() { None } else { self.target.ask_again() };
        let offers = if question.is_some() { BOTH } else { H1 };
        let connection = self.dial(ex, limit, offers).await.map_err(|failure| match failure.cause {
            FailureCause::Tls(why) if why.is_of_protocol() && ex.is_upgrade() => {
                Failure::no_upgrade(FailureCause::UpgradeUnspoken)
            }
            _ => failure,
        })?;
        if question.is_some() && connection.socket.is_h2() {
            self.target.forget_h1();
            let turn = self.target.multiplexed.turn(ex.core.now(), self.origin.idle_ns(true), Choice::Any);
            let maker = if let Turn::Make(maker) = turn { Some(maker) } else { None };
            return Ok(self.wrap_h2(ex, connection, maker));
        }
        let chosen = question.map(|_| self.target.chooses_h1());
        Ok(self.wrap_h1(&ex.core, connection, chosen))
    }

    fn wrap_h1(
        &self,
        core: &Core,
        Connection { socket, held }: Connection,
        chosen: Option<Rc<()>>,
    ) -> OriginConn {
        let mut conn = Box::new(h1::client::Conn::new(core, socket, self.old_ns(core), held));
        conn.bound = self.origin.send_proxy.is_some();
        conn.chosen = chosen;
        OriginConn::H1(conn)
    }

    /// Waits for a place on an HTTP/2 connection.
    async fn multiplex(
        &self,
        ex: &Exchange,
        limit: &mut Option<Sleep>,
        choice: Choice,
    ) -> Result<OriginConn, Failure> {
        loop {
            if !self.may_multiplex() {
                return self.connect_h1(ex, limit).await;
            }
            match self.target.multiplexed.turn(ex.core.now(), self.origin.idle_ns(true), choice) {
                Turn::Make(maker) => {
                    let making = maker.making();
                    let conn = self.make(ex, limit, maker).await?;
                    if ex.is_upgrade() {
                        // Only the origin's settings say whether it may begin.
                        self.wait_for(&making, limit).await?;
                    }
                    return Ok(conn);
                }
                Turn::Wait(making) => self.wait_for(&making, limit).await?,
                Turn::Pause => {
                    let pause = ex.core.timers.after(LOOK_AGAIN_NS);
                    within(limit, pause).await.ok_or(self.no_streams())?;
                }
                Turn::GiveUp => return Err(refused()),
            }
            if let Some(conn) = self.take_shared(ex.core.now(), choice) {
                self.target.counts.reused.one();
                return Ok(conn);
            }
        }
    }

    /// Waits until a connection is made and the origin's settings have come.
    async fn wait_for(&self, making: &Making, limit: &mut Option<Sleep>) -> Result<(), Failure> {
        let mut waits = false;
        within(limit, poll_fn(|cx| making.poll(cx, &mut waits))).await.ok_or(self.too_late())?
    }

    /// Makes an HTTP/2 connection, which the target shares from now on. Its first request does not wait for the origin's
    /// settings; others do.
    async fn make(
        &self,
        ex: &Exchange,
        limit: &mut Option<Sleep>,
        maker: Maker,
    ) -> Result<OriginConn, Failure> {
        let core = &ex.core;
        let offers = if self.origin.protocol == OriginProtocol::H2 { H2 } else { BOTH };
        let connection = self.dial(ex, limit, offers).await;
        let connection = connection.inspect_err(|failure| maker.made(Err(*failure)))?;
        if self.origin.protocol == OriginProtocol::Auto && !connection.socket.is_h2() {
            maker.made(Ok(()));
            return Ok(self.wrap_h1(core, connection, Some(self.target.chooses_h1())));
        }
        Ok(self.wrap_h2(ex, connection, Some(maker)))
    }

    /// `maker`: for which others wait.
    fn wrap_h2(
        &self,
        ex: &Exchange,
        Connection { socket, held }: Connection,
        maker: Option<Maker>,
    ) -> OriginConn {
        let core = &ex.core;
        let limits = ConnLimits {
            old_ns: self.old_ns(core),
            most_requests: self.origin.max_requests,
            most_streams: self.origin.max_streams,
            opening_ns: self.origin.connect_timeout_ns,
        };
        let report = self.report(ex.listener());
        let handle = Conn::open(core, socket, limits, held, report, move |opened| {
            if let Some(maker) = maker {
                maker.made(opened.map_err(opening_failure));
            }
        });
        self.target.share(core, handle.conn().clone());
        OriginConn::H2(handle)
    }

    /// Writes what is wrong with a connection of this server to the error log. Those of built-in servers, which have none,
    /// are this process's own.
    fn report(&self, listener: &Listener) -> Option<Report> {
        let log = listener.errors.clone().filter(|_| !listener.is_built_in())?;
        let (name, addr) = (self.name.clone(), self.addr.clone());
        Some(Box::new(move |fault| {
            log.connection_failed(|| format!("{}: {fault}", described(&name, addr.as_deref())));
        }))
    }

    /// When a connection made now will be too old, ns. Jitter of a tenth, so that connections made together do not
    /// end together.
    fn old_ns(&self, core: &Core) -> u64 {
        match self.origin.max_age_ns {
            Some(age) => {
                let sooner = (age / 10).min(core.draw().below((age / 10).max(1)));
                core.now().saturating_add(age - sooner)
            }
            None => u64::MAX,
        }
    }

    /// The failure of a request that waited for an origin which allows no streams.
    fn no_streams(&self) -> Failure {
        Failure::new(Kind::Overloaded).with_cause(FailureCause::NoStreams(self.origin.connect_timeout_ns))
    }
}

/// The failure of a request on which the origin did no work.
pub(super) fn refused() -> Failure {
    Failure::new(Kind::Refused).with_cause(FailureCause::Refused)
}
