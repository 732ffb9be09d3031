//! The state that all connections share.

use crate::access::Access;
use crate::served::Service;
use crate::watcher::Watcher;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use weir_serve::SideListener;

/// The state shared by all connections.
pub(crate) struct Server {
    pub watcher: Arc<Watcher>,
    pub access: Access,
    /// Signals the end.
    pub ends: watch::Receiver<bool>,
    /// Sockets of this interface for a successor, with their addresses as written.
    pub own: Mutex<Vec<(String, OwnedFd)>>,
    pub asides: Arc<Vec<SideListener>>,
    /// Whether a successor accepts, and this process does not any more.
    pub replaced: watch::Sender<bool>,
}

impl Server {
    pub fn new(
        served: Arc<dyn Service>,
        access: Access,
        ends: watch::Receiver<bool>,
        own: Vec<(String, OwnedFd)>,
        asides: Arc<Vec<SideListener>>,
    ) -> Arc<Server> {
        let (own, replaced) = (Mutex::new(own), watch::Sender::new(false));
        Arc::new(Server { watcher: Watcher::new(served), access, ends, own, asides, replaced })
    }
}
