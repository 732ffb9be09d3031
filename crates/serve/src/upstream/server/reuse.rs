//! Which open connection a request takes.

use super::Server;
use crate::exchange::{Exchange, OriginConn};
use crate::upstream::multiplexed::Choice;
use weir_plan::OriginProtocol;

impl Server {
    /// The open connection that the request takes, if there is one.
    pub(super) fn take(&self, ex: &Exchange, choice: Choice) -> Option<OriginConn> {
        if choice == Choice::New {
            return None;
        }
        let now_ns = ex.core.recent();
        let bound = ex.pinned.take(self.target.key, now_ns);
        // A connection that names its client cannot be shared.
        if self.origin.send_proxy.is_some() {
            return bound;
        }
        bound.or_else(|| match ex.is_upgrade() {
            true => self.take_for_upgrade(now_ns),
            false => self.take_shared(now_ns, choice),
        })
    }

    /// A connection that carries an upgrade, if there is one.
    fn take_for_upgrade(&self, now_ns: u64) -> Option<OriginConn> {
        let extended = self.target.multiplexed.take_extended(now_ns, self.origin.idle_ns(true));
        extended.or_else(|| match self.origin.protocol {
            OriginProtocol::H2 => None,
            _ => self.target.take_h1(now_ns, self.origin.idle_ns(false)),
        })
    }

    /// A connection for a request that is not an upgrade. HTTP/1.1 connections are left to upgrades where HTTP/2 may
    /// be used.
    pub(super) fn take_shared(&self, now_ns: u64, choice: Choice) -> Option<OriginConn> {
        match self.may_multiplex() {
            true => self.target.multiplexed.take(now_ns, self.origin.idle_ns(true), choice),
            false => self.target.take(now_ns, &self.origin, choice),
        }
    }

    /// Whether HTTP/2 is used or offered: not while a connection is open on which the origin chose HTTP/1.1.
    pub(super) fn may_multiplex(&self) -> bool {
        match self.origin.protocol {
            OriginProtocol::H1 => false,
            OriginProtocol::H2 => true,
            OriginProtocol::Auto => {
                self.tls.is_some() && self.origin.send_proxy.is_none() && self.target.h1_chosen().is_none()
            }
        }
    }
}
