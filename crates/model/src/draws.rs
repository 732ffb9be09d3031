//! What draws are made for. A draw's key is made of the seed, the replication, one of these, and what it depends on; no two
//! purposes share a number, so no two draws share their bits. Numbers never change: they are part of every result.

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
    /// Right behind seed and replication, or in a request's way.
    purpose {
        /// A request: by number (in a closed loop by user and turn); its kind, its loop and its way begin here.
        REQUEST = 1,
        /// What a place draws for requests: by [`of_place`](super::of_place), place and way.
        DRAW = 2,
        /// What belongs to a node: a balancer's own state, a time-line of faults.
        NODE = 3,
        /// What a node chooses for a request: a balancer's pick, a split's share, a backoff.
        CHOICE = 4,
        /// A further attempt: by its number.
        ATTEMPT = 5,
        /// A further visit to a place on one way: by its number.
        VISIT = 6,
        /// Gaps between arrivals.
        ARRIVALS = 7,
        /// A branch of a fan-out: by its number.
        BRANCH = 8,
        /// A time-line that several nodes share: by name.
        TOGETHER = 10,
        /// A hedged attempt: by its number.
        HEDGE = 11,
        /// A health check.
        CHECK = 13,
        /// The kind of a request, and its key.
        MIX = 14,
        /// Which loop of a `listen` a request meets.
        MEETS = 15,
        /// What a further loop has of its own.
        LOOP = 16,
        /// A probe of how busy a target is.
        PROBE = 17,
    }
}

purposes! {
    /// What is drawn at a place, behind [`purpose::DRAW`].
    of_place {
        /// Work or a delay.
        WORK = 1,
        /// A crossing towards the node.
        OUT = 2,
        /// A crossing back.
        BACK = 3,
        /// How often a message is lost on the way there.
        LOSS_OUT = 4,
        /// How often it is lost on the way back.
        LOSS_BACK = 5,
        /// Whether a `flaky` node fails.
        FAILURE = 6,
        /// Which loop of a `listen` behind another a request meets.
        HOP = 7,
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
