//! Rendezvous subsets: for each loop the targets with the highest hashes.
//!
//! - Idea: every loop ranks all targets by a hash of its own and takes the first `size`. A change of one target changes
//!   at most one member of a loop's subset, and the changes before it do not matter.
//! - Signal: the addresses alone. State: the members for each loop with their hashes.
//! - Cost of a change: a hash per newcomer and loop, n hashes for each loop that a leaver was a member of.
//! - Formula: rank by XXH64(address, seed + number of the loop), highest first.
//! - Pathologies: no balance: a target is in a binomial number of subsets (`random.rs`), and an address that is unlucky
//!   stays so. Clients with the same seed and number, such as the same loops of several instances, share their subsets:
//!   without a seed each instance has its own.
//! - Source: gRPC proposal A68, "Random subsetting with rendezvous hashing" (2023); Thaler, Ravishankar (1998).
//! - In the language: `subset.rendezvous(size, seed=None)`.

use super::population::Population;
use super::{SubsetPolicy, renew};
use crate::TargetId;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::sync::Arc;
use twox_hash::XxHash64;
use weir_stats::Key;

/// The arguments of `subset.rendezvous`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RendezvousArgs {
    /// Targets in a subset.
    pub size: u32,
    /// What hashes are seeded with, beside the number of the loop; `None`: the key of the balancer.
    pub seed: Option<u64>,
}

/// A target by its hash, the highest first.
type Ranked = (Reverse<u64>, TargetId);

/// The subsets of one balancer.
#[derive(Clone, Debug)]
pub(super) struct Rendezvous {
    size: usize,
    /// By loop.
    clients: Vec<Client>,
}

/// One loop.
#[derive(Clone, Debug)]
struct Client {
    seed: u64,
    /// The highest hash first.
    members: Vec<Ranked>,
    /// By index, as it was last published.
    list: Arc<[TargetId]>,
    /// Whether the members have changed since then.
    is_stale: bool,
}

impl Rendezvous {
    pub fn new(args: RendezvousArgs, loops: u32, key: Key) -> Rendezvous {
        let seed = args.seed.unwrap_or_else(|| key.bits());
        let client = |on| Client {
            seed: seed.wrapping_add(on),
            members: Vec::new(),
            list: Arc::default(),
            is_stale: false,
        };
        let clients = (0..u64::from(loops)).map(client).collect();
        Rendezvous { size: args.size.max(1) as usize, clients }
    }
}

impl Client {
    /// Adds a target if it ranks among the first.
    fn add(&mut self, all: &Population, size: usize, target: TargetId) {
        let hash = XxHash64::oneshot(self.seed, all.name(target).as_bytes());
        let ranked = (Reverse(hash), target);
        let at = self.members.partition_point(|other| *other < ranked);
        if at < size {
            self.members.insert(at, ranked);
            self.members.truncate(size);
            self.is_stale = true;
        }
    }
}

impl SubsetPolicy for Rendezvous {
    fn leave(&mut self, all: &Population, leavers: &[TargetId], _draw: Key) {
        for client in &mut self.clients {
            if client.members.iter().any(|(_, target)| leavers.binary_search(target).is_ok()) {
                client.members.clear();
                client.is_stale = true;
                all.iter().for_each(|target| client.add(all, self.size, target));
            }
        }
    }

    fn join(&mut self, all: &Population, newcomers: &[TargetId], _draw: Key) {
        for client in &mut self.clients {
            newcomers.iter().for_each(|&target| client.add(all, self.size, target));
        }
    }

    fn settle(&mut self, _all: &Population) -> u64 {
        for client in self.clients.iter_mut().filter(|client| client.is_stale) {
            renew(&mut client.list, client.members.iter().map(|(_, target)| *target).collect());
            client.is_stale = false;
        }
        0
    }

    fn lists(&self) -> Vec<Arc<[TargetId]>> {
        self.clients.iter().map(|client| client.list.clone()).collect()
    }
}
