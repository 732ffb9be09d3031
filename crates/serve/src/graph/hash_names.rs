//! The names by which a hashing policy knows a balancer's targets, the same on all loops: a target keeps its name as long
//! as it exists, whatever comes and goes around it, so that its keys stay where they are.

use crate::exchange::NodeId;
use std::sync::Arc;
use weir_plan::{Edge, Point, Spec};
use weir_policy::TargetNames;
use weir_policy::key::TakenNames;

/// The names of one balancer's targets, by index.
#[derive(Debug, Default)]
pub(crate) struct HashNames(Vec<Option<HashName>>);

#[derive(Debug)]
struct HashName {
    /// The identity of the target.
    target: u32,
    name: Arc<str>,
}

impl HashNames {
    /// Names these targets, by index: `None` is none. `name`: of a target that has none yet, by index; repeats get
    /// a number.
    pub fn renew(&mut self, targets: &[Option<u32>], name: impl Fn(usize) -> String) -> TargetNames {
        self.0.resize_with(targets.len(), || None);
        for (named, target) in self.0.iter_mut().zip(targets) {
            if named.as_ref().map(|named| named.target) != *target {
                *named = None;
            }
        }
        let is_new = |i: usize| targets[i].filter(|_| self.0[i].is_none());
        let new: Vec<(usize, u32)> = (0..targets.len()).filter_map(|i| Some((i, is_new(i)?))).collect();
        if !new.is_empty() {
            let kept: Vec<Arc<str>> = self.0.iter().flatten().map(|named| named.name.clone()).collect();
            let mut taken = TakenNames::new(kept.iter().map(|name| &**name));
            for (i, target) in new {
                self.0[i] = Some(HashName { target, name: taken.take(&name(i)).into() });
            }
        }
        let of =
            |named: &Option<HashName>| named.as_ref().map(|named| named.name.clone()).unwrap_or_default();
        TargetNames::of_distinct(self.0.iter().map(of))
    }
}

/// The name by which a target is hashed: the address of the first server or listener on its way, otherwise that
/// server's name.
pub(super) fn hash_name(point: &Point, mut id: NodeId) -> String {
    loop {
        let node = &point.nodes[id as usize];
        let name = || node.name.clone().unwrap_or_default();
        id = match (&point.specs[node.spec as usize], node.to) {
            (Spec::Server { addr: Some(addr), .. }, _) => return addr.clone(),
            (Spec::Listen(listen), _) => return listen.addr.clone(),
            (_, Edge::Node(next)) => next,
            (_, Edge::List(list)) => match point.lists[list as usize].first() {
                Some(first) => *first,
                None => return name(),
            },
            _ => return name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_keeps_its_name() {
        let mut names = HashNames::default();
        let mut renew = |targets: &[Option<u32>]| -> Vec<String> {
            names.renew(targets, |_| "app".to_owned()).iter().map(|name| String::from(&**name)).collect()
        };
        assert_eq!(renew(&[Some(1), Some(2), Some(3)]), ["app", "app#1", "app#2"]);
        assert_eq!(renew(&[Some(1), None, Some(3)]), ["app", "", "app#2"]);
        assert_eq!(renew(&[None, Some(4), Some(3), Some(5)]), ["", "app", "app#2", "app#1"]);
        assert_eq!(renew(&[]), [""; 0]);
    }
}
