//! Finds places that a request can pass more than once on one way, and balancers that have something around them.

use super::Compiler;
use crate::compile::blocks::End;
use crate::compile::guards::is_plain;
use weir_plan::{Edge, Fleet, Lb, Spec};

impl Compiler<'_> {
    /// Gives a counter to each place that a request can pass more than once on one way.
    pub(super) fn find_repeated_places(&mut self) {
        let mut stages_of = vec![0u32; self.code.draw_keys.len()];
        let keys = self.code.draws.iter().map(|d| d.key).chain(self.code.flaky.iter().map(|f| f.key));
        let keys = keys.chain(self.code.losses.iter().map(|l| l.key));
        let keys = keys.chain(self.code.lossy.iter().map(|l| l.key));
        let keys = keys.chain(self.code.hops.iter().map(|h| h.key));
        let keys = keys.chain(self.connections.sites.iter().map(|c| c.key));
        keys.for_each(|key| stages_of[key as usize] += 1);
        for key in 0..stages_of.len() as u32 {
            // A place in a single block repeats only where one node is visited after another, or where members of
            // that block lead to one another, which takes a loop in the file; those are rare enough to examine all of
            // them.
            let looped = self.layout.drafts.iter().any(|d| d.end == End::Lb && d.nodes[0].len() > 1);
            if stages_of[key as usize] < 2 && !looped && !self.code.turns {
                continue;
            }
            let (_, place) = self.code.draw_keys[key as usize];
            if self.layout.most_visits(place) > 1 {
                let counter = Some(self.code.visits as u32);
                self.code.visits += 1;
                self.code.draws.iter_mut().filter(|d| d.key == key).for_each(|d| d.visits = counter);
                self.code.flaky.iter_mut().filter(|f| f.key == key).for_each(|f| f.visits = counter);
                self.code.losses.iter_mut().filter(|l| l.key == key).for_each(|l| l.visits = counter);
                self.code.lossy.iter_mut().filter(|l| l.key == key).for_each(|l| l.visits = counter);
                self.code.hops.iter_mut().filter(|h| h.key == key).for_each(|h| h.visits = counter);
                self.connections.sites.iter_mut().filter(|c| c.key == key).for_each(|c| c.visits = counter);
            }
        }
    }

    /// Whether a balancer is guarded, or may come to be: through an error that says which target was not reached, an
    /// empty list of targets, or others that probe its targets.
    pub(super) fn is_guarded(&self, lb: &Lb, nodes: &[u32]) -> bool {
        let point = self.layout.point;
        let weight = |id: u32| match point.specs[point.nodes[id as usize].spec as usize] {
            Spec::Weight { weight } => weight,
            _ => 1.0,
        };
        let of = |such: &[bool], n: &u32| such[*n as usize];
        let must_be = |node: &u32| match point.nodes[*node as usize].to {
            Edge::List(list) => {
                let targets = &point.lists[list as usize];
                let is_probed = |t: &u32| self.probed.get(*t as usize).is_some_and(|probed| *probed);
                // A source's list may be doubted, balancers outside must know when none is left inside, and newcomers have
                // ramps.
                let is_special = self.changes(*node, |fleet| {
                    fleet.source.is_some() || of(&self.inside, node) || lb.slow_start.is_some()
                });
                is_special
                    || self.is_set(*node)
                    || !targets.iter().any(|&t| weight(t) > 0.0)
                    || targets.iter().any(is_probed)
            }
            _ => false,
        };
        let special = |n: &u32| {
            [&self.unreached, &self.again, &self.elsewhere].iter().any(|such| of(such, n)) || must_be(n)
        };
        !is_plain(lb) || nodes.iter().any(special)
    }

    /// Whether any of these balancers has targets that change.
    pub(super) fn sees_changes(&self, nodes: &[u32]) -> bool {
        nodes.iter().any(|node| self.changes(*node, |_| true) || self.is_set(*node))
    }

    /// Whether a change has the operator's word on any target of a balancer.
    fn is_set(&self, node: u32) -> bool {
        let point = self.layout.point;
        match (&point.fleets, point.nodes[node as usize].to) {
            (Some(fleets), Edge::List(list)) => fleets.is_set(point, list),
            _ => false,
        }
    }

    /// Whether members of such a fleet are targets of a balancer, in a scenario that changes fleets.
    fn changes(&self, node: u32, is_such: impl Fn(&Fleet) -> bool) -> bool {
        let point = self.layout.point;
        let (Some(fleets), Edge::List(list)) = (&point.fleets, point.nodes[node as usize].to) else {
            return false;
        };
        let members = fleets.of_list(list).filter(|_| fleets.changes).unwrap_or_default();
        let mut known = members.iter().flatten().map(|member| member.fleet).collect::<Vec<_>>();
        known.dedup();
        known.into_iter().any(|fleet| is_such(&fleets.all[fleet as usize].fleet))
    }
}
