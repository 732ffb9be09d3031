//! Which clients may come in: the limits of clients, and a client's count among them.

use super::clients::{ClientGuard, Clients};
use crate::metrics::Limit;
use crate::transport::session::ClientPlace;

/// The limits of one listener.
#[derive(Clone)]
pub(crate) struct Admission {
    /// The clients of the listener, over all loops.
    pub clients: Clients,
    /// The clients of all listeners without a limit of their own.
    pub common: Option<Clients>,
}

/// A client's counts, until it is dropped: at its listener, and among all clients without a listener's limit.
pub(crate) struct Place {
    pub own: ClientGuard,
    pub common: Option<ClientGuard>,
}

/// A client that lingers counts only where the limit is that of descriptors: a listener's own limits are of clients
/// that it serves.
struct LingeringPlace {
    _common: ClientGuard,
}

impl ClientPlace for Place {
    fn while_lingering(self: Box<Self>) -> Option<Box<dyn ClientPlace>> {
        let common = self.common?;
        Some(Box::new(LingeringPlace { _common: common }))
    }
}

impl ClientPlace for LingeringPlace {
    fn while_lingering(self: Box<Self>) -> Option<Box<dyn ClientPlace>> {
        Some(self)
    }
}

impl Admission {
    /// Counts a client; `None` if there is no room.
    pub fn take_place(&self) -> Option<Place> {
        let common = match &self.common {
            Some(common) => Some(common.take_place()?),
            None => None,
        };
        Some(Place { own: self.clients.take_place()?, common })
    }

    /// The number of clients that may be connected; `None`: it has no limit.
    pub fn most(&self) -> Option<usize> {
        self.clients.most().or_else(|| self.common.as_ref()?.most())
    }

    /// The limit at which there is no room.
    pub fn limit(&self) -> Limit {
        match &self.common {
            Some(_) if !self.clients.is_full() => Limit::OpenFiles,
            _ => Limit::MaxClients,
        }
    }
}
