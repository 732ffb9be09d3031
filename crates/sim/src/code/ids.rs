//! The numbers by which the engine's tables are indexed, a type for each kind.

use super::NOT;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub(crate) struct $name(pub u32);

        impl $name {
            /// The index in a table of them.
            #[inline(always)]
            pub(crate) const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// The row of a request, branch or health check in flight, in every table that has a row for each.
    SlotId
}
id! {
    /// A member of a block: members are numbered through all blocks.
    MemberId
}
id! {
    /// A stage: a node's position in a block ([`super::Stage`]).
    StageId
}
id! {
    /// A site of the plan: a place in the topology file where a node is made.
    SiteId
}

macro_rules! optional {
    ($name:ident) => {
        impl $name {
            /// No such number.
            pub(crate) const NONE: $name = $name(NOT);

            /// Whether it is not [`Self::NONE`].
            #[inline(always)]
            pub(crate) const fn is_some(self) -> bool {
                self.0 != NOT
            }
        }
    };
}

optional!(SlotId);
optional!(MemberId);

impl MemberId {
    /// What a member has, in a table where that of all members of its block begins at `offset`. The offset counts from
    /// member 0 and wraps around.
    #[inline(always)]
    pub(crate) const fn index_from(self, offset: u32) -> usize {
        self.number_from(offset) as usize
    }

    /// The same as a number.
    #[inline(always)]
    pub(crate) const fn number_from(self, offset: u32) -> u32 {
        self.0.wrapping_add(offset)
    }
}
