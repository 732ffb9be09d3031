//! The purposes of draws. A draw's key consists of the seed, the replication, one of these purposes, and what it
//! depends on. No two purposes share a number, so no two draws share their bits. The numbers never change: they are
//! part of every result.

/// Purposes by name, and the list of them all.
macro_rules! purposes {
    ($(#[$about:meta])* $module:ident { $($(#[$what:meta])* $name:ident = $number:literal,)* }) => {
        $(#[$about])*
        pub mod $module {
            $($(#[$what])* pub const $name: u64 = $number;)*

            #[cfg(test)]
            pub(super) const ALL: &[(&str, u64)] = &[$((stringify!($name), $name)),*];
        }
    };
}

purposes! {
    /// Directly after seed and replication, or within a request's way.
    purpose {
        /// A request: by number (in a closed loop by user and turn). Its kind, its loop and its way begin here.
        REQUEST = 1,
        /// Draws of a site for requests: by [`of_place`](super::of_place), place and way.
        DRAW = 2,
        /// Draws of a node: a balancer's own state, a timeline of faults.
        NODE = 3,
        /// Choices of a node for a request: a balancer's pick, a split's share, a backoff.
        CHOICE = 4,
        /// A further attempt: by its number.
        ATTEMPT = 5,
        /// A further visit to a site on one way: by its number.
        VISIT = 6,
        /// Gaps between arrivals.
        ARRIVALS = 7,
        /// A branch of a fan-out: by its number.
        BRANCH = 8,
        /// A timeline that several nodes share: by name.
        TOGETHER = 10,
        /// A hedged attempt: by its number.
        HEDGE = 11,
        /// A health check.
        CHECK = 13,
        /// The kind of a request, and its key.
        MIX = 14,
        /// The loop of a `listen` that a request meets.
        MEETS = 15,
        /// Draws of a further loop.
        LOOP = 16,
        /// A probe of a target's load.
        PROBE = 17,
        /// Which members of a fleet a change concerns: by change and step.
        CHANGE = 18,
        /// How much later a balancer sees a change.
        LAG = 19,
        /// The address by which a balancer is known to those that it checks.
        ASKER = 20,
        /// How long a process boots: by fleet, member and occasion.
        BOOT = 21,
    }
}

purposes! {
    /// Draws at a site, after [`purpose::DRAW`].
    of_place {
        /// Work or a delay.
        WORK = 1,
        /// A crossing towards the node.
        OUT = 2,
        /// A crossing back.
        BACK = 3,
        /// The number of losses of a message on the way there.
        LOSS_OUT = 4,
        /// The number of losses on the way back.
        LOSS_BACK = 5,
        /// Whether a `flaky` node fails.
        FAILURE = 6,
        /// The loop of a `listen` behind another that a request meets.
        HOP = 7,
        /// How long a new connection to a server takes.
        CONNECT = 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn no_purpose_is_used_twice() {
        for all in [purpose::ALL, of_place::ALL] {
            let mut names = BTreeMap::new();
            for (name, number) in all {
                assert_eq!(names.insert(number, name), None, "{name} has the number of another");
            }
        }
    }
}
