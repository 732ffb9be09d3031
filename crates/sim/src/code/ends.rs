//! Where the paths from targets end: at a server, or at a node that leads to several.

/// By member of a block: the member where the path from there ends; empty where it is not needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Past cables alone: the member that answers a probe.
    pub server: Vec<u32>,
    /// As far as there is only one path: the member that does the work.
    pub work: Vec<u32>,
}

impl Ends {
    /// The member that answers a probe sent to `member`.
    #[inline]
    pub fn server(&self, member: u32) -> u32 {
        self.server.get(member as usize).copied().unwrap_or(member)
    }

    /// The member that does the work of a request sent to `member`.
    #[inline]
    pub fn work(&self, member: u32) -> u32 {
        self.work.get(member as usize).copied().unwrap_or(member)
    }
}
