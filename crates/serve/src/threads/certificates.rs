//! The certificates and bundles of a process: read before anything is bound, on every reload, and those that are
//! watched when they change.

use crate::transport::settings::{client_files, server_files};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_net::transport::tls;
use weir_plan::named_files::digest_of_named_files;
use weir_plan::{HttpVersion, Listen, NodeId, Origin, Point, Spec, TlsClient, levels, listeners, with_inner};

/// The certificates of a process, by listener and by server.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    /// By the listener's node: the certificates that it shows.
    listeners: BTreeMap<NodeId, Arc<tls::Server>>,
    /// By the node of a listener behind others: how those connect to it.
    inner: BTreeMap<NodeId, tls::OwnListener>,
    /// The TLS settings of servers.
    pub origins: Arc<tls::Clients>,
    /// Own certificates that have expired or are not valid yet, a sentence each.
    pub warnings: Vec<String>,
    /// The digest of all files that the topology names, from before they were read.
    pub files: [u8; 32],
}

impl Certificates {
    /// Reads the files that these listeners, those behind them (which may be other processes), and all servers name.
    ///
    /// # Errors
    /// Each unusable file.
    pub fn read(point: &Point, nodes: &[NodeId]) -> Result<Certificates, Vec<tls::CannotUse>> {
        let files = digest_of_named_files(point);
        let (mut all, mut wrong) = (Certificates { files, ..Certificates::default() }, Vec::new());
        let levels = levels(point);
        for id in with_inner(point, nodes) {
            let node = &point.nodes[id as usize];
            let Spec::Listen(listen) = &point.specs[node.spec as usize] else { continue };
            let Some(files) = &listen.tls else { continue };
            let files = server_files(files);
            let is_inner = levels.get(&id).is_some_and(|level| *level > 0);
            let read = tls::Server::read(&files, &protocols(listen));
            wrong.extend(read.and_then(|server| all.add(id, server, is_inner)).err());
        }
        let mut origins = tls::Clients::default();
        for origin in origins_of(point) {
            let Some(files) = origin.tls.as_ref().map(client_files) else { continue };
            wrong.extend(origins.read(&files).err());
        }
        all.origins = Arc::new(origins);
        all.warnings = all.warnings_now();
        wrong.dedup();
        if wrong.is_empty() { Ok(all) } else { Err(wrong) }
    }

    fn add(&mut self, id: NodeId, server: tls::Server, is_inner: bool) -> Result<(), tls::CannotUse> {
        if is_inner {
            self.inner.insert(id, tls::OwnListener::new(&server)?);
        }
        self.listeners.insert(id, Arc::new(server));
        Ok(())
    }

    /// A sentence for each own certificate that has expired or is not valid yet, as they are now.
    pub fn warnings_now(&self) -> Vec<String> {
        let of_listeners = self.listeners.values().flat_map(|server| server.warnings());
        let all: BTreeSet<String> = of_listeners.chain(self.origins.warnings()).collect();
        all.into_iter().collect()
    }

    /// Those that follow their files. `point`: the one of which these are.
    pub fn watched(&self, point: &Point) -> WatchedCertificates {
        let is_watched = |id: NodeId| match point.spec(id) {
            Some(Spec::Listen(listen)) => listen.tls.as_ref().is_some_and(|tls| tls.watch),
            _ => false,
        };
        let servers = self.listeners.iter().filter(|(id, _)| is_watched(**id));
        let servers = servers.map(|(id, server)| (server.clone(), self.inner.get(id).cloned()));
        // Once for all members of a fleet, which have the same.
        let files: BTreeSet<&TlsClient> =
            origins_of(point).filter_map(|origin| origin.tls.as_ref()).collect();
        let files = files.into_iter().filter(|tls| tls.watch).map(client_files);
        let clients = files.filter_map(|files| self.origins.get(&files)).collect();
        WatchedCertificates { servers: servers.collect(), clients }
    }

    /// How listeners behind others are connected to, by their nodes; cleartext without an entry.
    pub fn to_inner(&self) -> BTreeMap<NodeId, Arc<tls::Client>> {
        self.inner.iter().map(|(id, own)| (*id, own.client.clone())).collect()
    }

    /// The certificates of a listener; `None`: it speaks cleartext.
    pub fn server(&self, listener: NodeId) -> Option<Arc<tls::Server>> {
        self.listeners.get(&listener).cloned()
    }

    /// The same for another point of the same file; `same`: which listener of the point before each is.
    pub fn moved(&self, same: &BTreeMap<NodeId, NodeId>) -> Certificates {
        fn moved<T: Clone>(of: &BTreeMap<NodeId, T>, same: &BTreeMap<NodeId, NodeId>) -> BTreeMap<NodeId, T> {
            same.iter().filter_map(|(now, before)| Some((*now, of.get(before)?.clone()))).collect()
        }
        Certificates {
            listeners: moved(&self.listeners, same),
            inner: moved(&self.inner, same),
            origins: self.origins.clone(),
            warnings: self.warnings.clone(),
            files: self.files,
        }
    }

    /// Reads the files of another plan's listeners and servers; listeners that are to show the same as before keep
    /// what clients know of them. `same`: which listener of the plan before each is.
    ///
    /// # Errors
    /// Each unusable file; then nothing has changed.
    pub fn renewed(
        &self,
        point: &Point,
        nodes: &[NodeId],
        same: &BTreeMap<NodeId, (NodeId, &Listen)>,
    ) -> Result<Certificates, Vec<tls::CannotUse>> {
        let mut new = Certificates::read(point, nodes)?;
        for (node, server) in &mut new.listeners {
            let Some((before, listen)) = same.get(node) else { continue };
            let Spec::Listen(now) = &point.specs[point.nodes[*node as usize].spec as usize] else { continue };
            let Some(known) = self.listeners.get(before) else { continue };
            if let Some(own) = new.inner.get_mut(node) {
                // Earlier graphs continue with theirs.
                if let Some(was) = self.inner.get(before) {
                    *own = was.clone();
                }
                own.changes(known, server);
            }
            if now.tls == listen.tls && now.http.versions == listen.http.versions {
                known.show(server);
                *server = known.clone();
            }
        }
        Ok(new)
    }
}

/// Certificates and bundles that follow their files.
pub(crate) struct WatchedCertificates {
    /// Those of listeners, and how listeners behind others are connected to.
    servers: Vec<(Arc<tls::Server>, Option<tls::OwnListener>)>,
    /// Those for servers.
    clients: Vec<Arc<tls::Client>>,
}

impl WatchedCertificates {
    /// The paths of their files.
    pub fn paths(&self) -> BTreeSet<String> {
        let of_servers = self.servers.iter().flat_map(|(server, _)| server.paths());
        let of_clients = self.clients.iter().flat_map(|client| client.paths());
        of_servers.chain(of_clients).map(str::to_owned).collect()
    }

    /// Reads those of the files again of which `is_due` says so. Returns what has become of each part.
    pub fn renew(&self, is_due: impl Fn(&str) -> bool) -> Vec<tls::Renewal> {
        let mut renewals = Vec::new();
        for (server, own) in &self.servers {
            renewals.extend(server.renew(&is_due, own.as_ref()));
        }
        for client in &self.clients {
            renewals.extend(client.renew(&is_due));
        }
        renewals
    }
}

/// How the servers of a topology are spoken to: those with an address, and the members that a source may list.
fn origins_of(point: &Point) -> impl Iterator<Item = &Origin> {
    let there = point.specs.iter().filter(|spec| matches!(spec, Spec::Server { addr: Some(_), .. }));
    there.chain(point.sourced_servers()).filter_map(|spec| match spec {
        Spec::Server { origin, .. } => Some(origin),
        _ => None,
    })
}

/// Checks that all certificates, keys and bundles that a topology names can be used, as far as this machine can tell.
/// Returns a sentence for each certificate that has expired or is not valid yet.
///
/// # Errors
/// Each unusable file.
pub fn check_certificates(point: &Point) -> Result<Vec<String>, Vec<tls::CannotUse>> {
    Certificates::read(point, &listeners(point)).map(|certificates| certificates.warnings)
}

/// What a listener offers by ALPN, the best first.
fn protocols(listen: &Listen) -> Vec<&'static str> {
    let speaks = |version| listen.http.versions.contains(&version);
    let h2 = speaks(HttpVersion::H2).then_some("h2");
    let h1 = speaks(HttpVersion::H1).then_some("http/1.1");
    h2.into_iter().chain(h1).collect()
}
