//! Whether this host has the addresses that health checks are to be sent from.

use super::options::Error;
use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use weir_plan::{Point, Spec};

/// Looks at each address once.
///
/// # Errors
/// The first that this host does not have.
pub(crate) fn check(point: &Point) -> Result<(), Error> {
    let source = |spec: &Spec| if let Spec::Lb(lb) = spec { lb.health.as_ref()?.source } else { None };
    let all: BTreeSet<IpAddr> = point.specs.iter().filter_map(source).collect();
    // A socket of UDP sends nothing, and takes no port that a listener could want.
    let has = |source: IpAddr| match UdpSocket::bind((source, 0)) {
        Ok(_) => Ok(()),
        Err(e) => Err(Error::Source(source, e)),
    };
    all.into_iter().try_for_each(has)
}
