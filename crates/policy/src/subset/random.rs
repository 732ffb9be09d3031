//! Random subsets: targets drawn for each loop, replaced one by one.
//!
//! - Idea: each loop draws `size` of the targets, each set with the same chance, and keeps them.
//! - Signal: the targets alone. State: the members for each loop.
//! - Cost of a change: O(1) per newcomer and loop, O(n) for each member that leaves.
//! - Formula: a leaver is replaced by a draw from the others; the n-th target takes the place of a member, each with the
//!   same chance, with the chance size/n (Vitter's reservoir, so that sets stay equally likely).
//! - Pathologies: a target is in a binomial number of subsets: with 300 loops that take 30 % of 300 targets the least
//!   used has three quarters and the most used five quarters of the mean.
//! - Source: Site Reliability Engineering (2016), ch. 20, as the method that is not good enough.
//! - In the language: `subset.random(size)`.

use super::population::Population;
use super::{SubsetPolicy, renew};
use crate::TargetId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_stats::Key;

/// The arguments of `subset.random`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomArgs {
    /// Targets in a subset.
    pub size: u32,
}

/// The subsets of one balancer.
#[derive(Clone, Debug)]
pub(super) struct Random {
    size: usize,
    /// By loop.
    clients: Vec<Client>,
}

/// One loop.
#[derive(Clone, Debug, Default)]
struct Client {
    /// In no order.
    members: Vec<TargetId>,
    /// By index, as it was last published.
    list: Arc<[TargetId]>,
    /// Whether the members have changed since then.
    is_stale: bool,
}

impl Random {
    pub fn new(args: RandomArgs, loops: u32) -> Random {
        Random { size: args.size.max(1) as usize, clients: vec![Client::default(); loops as usize] }
    }
}

/// One of the targets that are not members; `None` if all are.
fn draw_outside(all: &Population, members: &[TargetId], draw: Key) -> Option<TargetId> {
    let outside = (all.count() as usize).checked_sub(members.len()).filter(|outside| *outside > 0)?;
    let at = draw.below(outside as u64) as usize;
    let mut taken = members.to_vec();
    taken.sort_unstable();
    all.iter().filter(|target| taken.binary_search(target).is_err()).nth(at)
}

impl SubsetPolicy for Random {
    fn leave(&mut self, all: &Population, leavers: &[TargetId], draw: Key) {
        for (on, client) in (0..).zip(&mut self.clients) {
            let members = &mut client.members;
            let before = members.len();
            members.retain(|target| leavers.binary_search(target).is_err());
            client.is_stale |= members.len() < before;
            for i in members.len()..before {
                let Some(target) = draw_outside(all, members, draw.with(on).nth(i as u64)) else { break };
                members.push(target);
            }
        }
    }

    fn join(&mut self, all: &Population, newcomers: &[TargetId], draw: Key) {
        let before = u64::from(all.count()) - newcomers.len() as u64;
        for (on, client) in (0..).zip(&mut self.clients) {
            let draw = draw.with(on);
            for (n, &target) in (before + 1..).zip(newcomers) {
                if client.members.len() < self.size {
                    client.members.push(target);
                    client.is_stale = true;
                } else if let Some(member) = client.members.get_mut(draw.nth(n).below(n) as usize) {
                    *member = target;
                    client.is_stale = true;
                }
            }
        }
    }

    fn settle(&mut self, _all: &Population) -> u64 {
        for client in self.clients.iter_mut().filter(|client| client.is_stale) {
            renew(&mut client.list, client.members.clone());
            client.is_stale = false;
        }
        0
    }

    fn lists(&self) -> Vec<Arc<[TargetId]>> {
        self.clients.iter().map(|client| client.list.clone()).collect()
    }
}
