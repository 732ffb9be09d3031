//! A target, as an exchange sees it.

use super::OriginConn;
use weir_net::io::Core;
use weir_plan::Origin;

/// Where an answer comes from.
pub(crate) trait Upstream {
    /// Its identity, as a number that is the same in every graph.
    fn target(&self) -> u32;

    /// Its name, for logs.
    fn name(&self) -> &str;

    /// How it is called to a person.
    fn described(&self) -> String;

    /// Limits of its connections.
    fn origin(&self) -> &Origin;

    /// Keeps a connection for the next request.
    fn put(&self, core: &Core, conn: OriginConn);
}

/// How a server is called: by its name and where it is.
pub(crate) fn described(name: &str, addr: Option<&str>) -> String {
    format!("server {name:?} ({})", addr.unwrap_or("built in"))
}
