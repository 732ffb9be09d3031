//! TLS sessions with one origin, for all loops: what resumes a connection without a certificate being shown again.
//!
//! Each target has its own, so that neither the number of targets nor a name that several of them share pushes a
//! target's sessions out, and no target is shown the ticket of another.

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sessions that are kept at most.
const MOST: usize = 4;

/// The sessions with one target. All connections to it use one name.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Cache>);

#[derive(Debug, Default)]
struct Cache {
    group: Option<NamedGroup>,
    /// The last session of TLS 1.2, which may be used often.
    old: Option<Tls12ClientSessionValue>,
    /// Tickets of TLS 1.3, the newest last, each used once.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    /// Locked for a handshake, never for a request.
    fn kept(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        let mut kept = self.kept();
        kept.tickets.clear();
        kept.old = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().old.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.kept().old = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        kept.old = None;
        push(&mut kept.tickets, ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().tickets.pop_back()
    }
}

/// Adds the newest; the oldest makes room.
fn push<T>(tickets: &mut VecDeque<T>, ticket: T) {
    if tickets.len() == MOST {
        tickets.pop_front();
    }
    tickets.push_back(ticket);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_tickets_are_kept_the_newest() {
        let mut tickets = VecDeque::new();
        (0..10).for_each(|n| push(&mut tickets, n));
        assert_eq!(tickets, [6, 7, 8, 9]);
    }
}
