//! The certificates and bundles of a process: read before anything is bound, and again on SIGHUP.

use crate::log::ErrorLog;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_net::transport::tls;
use weir_topology::plan::{HttpVersion, Listen, NodeId, Point, Spec, listeners};

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    /// By the listener's node: its name, and what it shows.
    listeners: BTreeMap<NodeId, (String, Arc<tls::Server>)>,
    /// What servers say of TLS.
    pub origins: tls::Clients,
}

impl Certificates {
    /// Reads what these listeners, and all servers, name.
    ///
    /// # Errors
    /// Each file that is of no use.
    pub fn read(point: &Point, nodes: &[NodeId]) -> Result<Certificates, Vec<tls::CannotUse>> {
        let (mut all, mut wrong) = (Certificates::default(), Vec::new());
        for id in nodes {
            let node = &point.nodes[*id as usize];
            let Spec::Listen(listen) = &point.specs[node.spec as usize] else { continue };
            let Some(files) = &listen.tls else { continue };
            match tls::Server::read(files, &protocols(listen)) {
                Ok(server) => {
                    let name = node.name.clone().unwrap_or_default();
                    all.listeners.insert(*id, (name, Arc::new(server)));
                }
                Err(e) => wrong.push(e),
            }
        }
        for spec in &point.specs {
            let Spec::Server { addr: Some(_), origin, .. } = spec else { continue };
            let read = origin.tls.as_ref().map_or(Ok(()), |files| all.origins.read(files));
            wrong.extend(read.err());
        }
        wrong.dedup();
        if wrong.is_empty() { Ok(all) } else { Err(wrong) }
    }

    /// What a listener shows; `None`: it speaks cleartext.
    pub fn of(&self, listener: NodeId) -> Option<Arc<tls::Server>> {
        self.listeners.get(&listener).map(|(_, server)| server.clone())
    }

    /// Until when each certificate is valid, s since 1970: its listener, its file.
    pub fn not_after(&self) -> impl Iterator<Item = (&str, String, u64)> {
        self.listeners.values().flat_map(|(name, server)| {
            server.not_after().into_iter().map(move |(file, at_s)| (name.as_str(), file, at_s))
        })
    }

    /// Reads everything again, and says what came of it. Where a file is of no use what was read before stays.
    pub fn read_again(&self, errors: &ErrorLog) {
        let (mut renewed, mut kept) = (0, 0);
        let listeners = self.listeners.values().map(|(name, server)| {
            (server.read_again(), format!("the certificates of listener {name:?} stay as they were"))
        });
        let origins =
            self.origins.read_again().map(|read| (read, "origins stay verified as before".to_owned()));
        for (read, otherwise) in listeners.chain(origins) {
            match read {
                Ok(()) => renewed += 1,
                Err(e) => {
                    kept += 1;
                    errors.urgent(|| format!("{e}; {otherwise}"));
                }
            }
        }
        errors.urgent(|| match (renewed, kept) {
            (0, 0) => {
                "SIGHUP: there are no certificates to read again; nothing else is reloaded yet".to_owned()
            }
            (_, 0) => "SIGHUP: certificates were read again; nothing else is reloaded yet".to_owned(),
            _ => format!(
                "SIGHUP: certificates were read again, {kept} of {} not taken; nothing else is reloaded yet",
                renewed + kept
            ),
        });
    }
}

/// Whether all certificates, keys and bundles that a topology names can be used, as far as this machine knows.
///
/// # Errors
/// Each file that is of no use.
pub fn check_certificates(point: &Point) -> Result<(), Vec<tls::CannotUse>> {
    Certificates::read(point, &listeners(point)).map(drop)
}

/// What a listener offers by ALPN, the best first.
fn protocols(listen: &Listen) -> Vec<&'static str> {
    let speaks = |version| listen.http.versions.contains(&version);
    let h2 = speaks(HttpVersion::H2).then_some("h2");
    let h1 = speaks(HttpVersion::H1).then_some("http/1.1");
    h2.into_iter().chain(h1).collect()
}
