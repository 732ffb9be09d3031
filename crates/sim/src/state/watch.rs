//! Requests at members that a scenario's changes move, and at the others: counted where a balancer sends a request, and where
//! it gets it back.

use crate::code::Code;
use crate::code::changes::ChangeTables;
use crate::code::watch::{Role, WatchTables};

/// A share in whole parts, so that sums do not depend on their order.
pub(crate) const WHOLE: f64 = 1e6;

/// The requests at a member, or at several.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Requests that were sent there.
    sent: u64,
    /// How many are there, and how many there were over time, ns.
    inside: i64,
    inside_ns: i128,
    last_ns: u64,
}

impl Count {
    fn add(&mut self, by: i64, now_ns: u64) {
        self.inside_ns = self.until(now_ns);
        self.last_ns = self.last_ns.max(now_ns);
        self.inside += by;
        self.sent += u64::from(by > 0);
    }

    fn until(&self, at_ns: u64) -> i128 {
        self.inside_ns + i128::from(self.inside) * i128::from(at_ns.saturating_sub(self.last_ns))
    }
}

/// What was counted of a member until an instant, and its share then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemberSample {
    pub sent: u64,
    pub inside_ns: i128,
    pub connections_ns: i128,
    /// In parts of [`WHOLE`].
    pub share: u32,
}

/// What was counted until an instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchSample {
    pub at_ns: u64,
    /// By [`WatchTables::sites`].
    pub sites: Vec<MemberSample>,
    /// All others together.
    pub others: MemberSample,
}

/// The counts of a replication.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    sites: Vec<Count>,
    others: Count,
    /// By view and site: whether the balancer has seen it.
    seen: Vec<Vec<bool>>,
}

impl Watch {
    /// At the start.
    pub fn new(tables: &WatchTables) -> Watch {
        Watch {
            sites: vec![Count::default(); tables.sites.len()],
            others: Count::default(),
            seen: vec![vec![false; tables.sites.len()]; tables.roles.len()],
        }
    }

    /// A balancer sends a request to a place of its list (1), or gets it back from there (-1).
    pub fn count(&mut self, tables: &WatchTables, view: usize, place: u32, by: i64, now_ns: u64) {
        match tables.role(view, place) {
            Role::Watched(site) => self.sites[site as usize].add(by, now_ns),
            Role::Other => self.others.add(by, now_ns),
            Role::Neither => {}
        }
    }

    /// What was counted until then. `share` is what a balancer gives the target at a place of its list, from 0 to 1; `None`: it
    /// is no target of it.
    pub fn read(
        &mut self,
        code: &Code,
        at_ns: u64,
        servers_ns: &[i128],
        share: impl Fn(usize, u32) -> Option<f64>,
    ) -> WatchSample {
        let (Some(tables), Some(changes)) = (code.watch.as_deref(), code.changes.as_deref()) else {
            return WatchSample::default();
        };
        let sample = |of: &Count| MemberSample {
            sent: of.sent,
            inside_ns: of.until(at_ns),
            ..MemberSample::default()
        };
        let mut sites = Vec::with_capacity(tables.sites.len());
        for site in 0..tables.sites.len() {
            let connections_ns = servers_of(code, tables, site, servers_ns);
            let share = self.share_of(tables, changes, site, &share);
            sites.push(MemberSample { connections_ns, share, ..sample(&self.sites[site]) });
        }
        let others =
            MemberSample { connections_ns: others_ns(code, tables, servers_ns), ..sample(&self.others) };
        WatchSample { at_ns, sites, others }
    }

    /// The mean share of a member over the balancers that see it, or saw it.
    fn share_of(
        &mut self,
        tables: &WatchTables,
        changes: &ChangeTables,
        site: usize,
        share: &impl Fn(usize, u32) -> Option<f64>,
    ) -> u32 {
        let (mut sum, mut number) = (0.0, 0u32);
        for (view, of) in changes.views.iter().enumerate() {
            let Some(&place) = of.places.get(&tables.sites[site].member) else { continue };
            let own = share(view, place);
            let seen = &mut self.seen[view][site];
            *seen |= own.is_some();
            number += u32::from(*seen);
            sum += own.unwrap_or(0.0);
        }
        if number > 0 { (sum / f64::from(number) * WHOLE).round() as u32 } else { 0 }
    }
}

/// Connections to the servers of a member, over time.
fn servers_of(code: &Code, tables: &WatchTables, site: usize, servers_ns: &[i128]) -> i128 {
    let Some(connections) = code.connections.as_deref() else { return 0 };
    let of = connections.of_member.get(&tables.sites[site].member);
    let servers = of.into_iter().flat_map(|(servers, _)| servers);
    servers.filter_map(|server| servers_ns.get(*server as usize)).sum()
}

/// Connections to the servers of all others, over time.
fn others_ns(code: &Code, tables: &WatchTables, servers_ns: &[i128]) -> i128 {
    let Some(connections) = code.connections.as_deref() else { return 0 };
    let of = tables.others.iter().filter_map(|member| connections.of_member.get(member));
    of.flat_map(|(servers, _)| servers).filter_map(|server| servers_ns.get(*server as usize)).sum()
}
