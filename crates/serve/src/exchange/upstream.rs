//! A target, as an exchange sees it.

use super::{NodeId, OriginConn};
use weir_net::io::Core;
use weir_plan::Origin;

/// The source of an answer.
pub(crate) trait Upstream {
    /// Its identity, a number that is the same in every graph.
    fn target(&self) -> u32;

    /// Its number in the graph that it was picked in.
    fn node(&self) -> NodeId;

    /// Its name, for logs.
    fn name(&self) -> &str;

    /// Its address as the file writes it; `None`: in this process.
    fn addr(&self) -> Option<&str>;

    /// Its description for messages.
    fn described(&self) -> String;

    /// Limits of its connections.
    fn origin(&self) -> &Origin;

    /// Keeps a connection for the next request.
    fn put(&self, core: &Core, conn: OriginConn);
}

/// Describes a server by its name and address.
pub(crate) fn described(name: &str, addr: Option<&str>) -> String {
    format!("server {name:?} ({})", addr.unwrap_or("built in"))
}
