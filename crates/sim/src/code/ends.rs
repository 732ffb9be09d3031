//! Where the ways from targets end: at a server, or at a node that leads to several.

/// By member of a block: the member where the way from there ends; empty where nobody asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Past cables alone: who answers a probe.
    pub server: Vec<u32>,
    /// As far as there is one way only: who does the work.
    pub work: Vec<u32>,
}

impl Ends {
    /// Who answers a probe that was sent to a member.
    #[inline]
    pub fn server(&self, member: u32) -> u32 {
        self.server.get(member as usize).copied().unwrap_or(member)
    }

    /// Who does the work that a request brings to a member.
    #[inline]
    pub fn work(&self, member: u32) -> u32 {
        self.work.get(member as usize).copied().unwrap_or(member)
    }
}
