//! The certificates and bundles of a process: read before anything is bound, and again on every reload.

use std::collections::BTreeMap;
use std::sync::Arc;
use weir_net::transport::tls;
use weir_topology::plan::{HttpVersion, Listen, NodeId, Point, Spec, listeners};

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    /// By the listener's node: what it shows.
    listeners: BTreeMap<NodeId, Arc<tls::Server>>,
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
                    all.listeners.insert(*id, Arc::new(server));
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
        self.listeners.get(&listener).cloned()
    }

    /// What another plan's listeners and servers name; listeners that are to show the same as before go on with what clients know of
    /// them. `same`: which listener of the plan before each is.
    ///
    /// # Errors
    /// Each file that is of no use; then all is as it was.
    pub fn renewed(
        &self,
        (point, nodes): (&Point, &[NodeId]),
        same: &BTreeMap<NodeId, (NodeId, &Listen)>,
    ) -> Result<Certificates, Vec<tls::CannotUse>> {
        let mut new = Certificates::read(point, nodes)?;
        for (node, server) in &mut new.listeners {
            let Some((before, listen)) = same.get(node) else { continue };
            let Spec::Listen(now) = &point.specs[point.nodes[*node as usize].spec as usize] else { continue };
            let is_same = now.tls == listen.tls && now.http.versions == listen.http.versions;
            if let (true, Some(known)) = (is_same, self.listeners.get(before)) {
                // It was readable a moment ago.
                known.read_again().map_err(|e| vec![e])?;
                *server = known.clone();
            }
        }
        Ok(new)
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
