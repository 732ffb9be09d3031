//! The balancers of a scenario on its event loops ([`crate::loops`]).

use super::walker::Walker;

impl Walker<'_> {
    /// The balancer that a request meets at a place, on its loop.
    pub(super) fn instance(&self, lb: u32, member: u32, meets: u32) -> u32 {
        let site = &self.walk.lbs[lb as usize];
        let of_loop = if site.shared { 0 } else { meets * self.code.instances.len() as u32 };
        member.wrapping_add(site.offset) + of_loop
    }

    /// The balancers of all loops at the place of the first one's.
    pub(super) fn on_all_loops(&self, first: u32) -> impl Iterator<Item = u32> + use<> {
        let site = &self.walk.lbs[self.balancers[first as usize].lb as usize];
        let (loops, each) = (if site.shared { 1 } else { self.walk.loops }, self.code.instances.len() as u32);
        (0..loops).map(move |meets| first + meets * each)
    }

    /// The balancer of the first loop at the same place: it keeps what all loops share.
    pub(super) fn first_of(&self, instance: u32) -> u32 {
        instance % (self.code.instances.len() as u32).max(1)
    }
}
