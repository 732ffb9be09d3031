//! Where the paths from targets end: at a server, or at a node that leads to several.

use crate::code::MemberId;

/// By member of a block: the member where the path from there ends; empty where it is not needed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Past cables alone: the member that answers a probe.
    pub server: Vec<MemberId>,
    /// As far as there is only one path: the member that does the work.
    pub work: Vec<MemberId>,
}

impl Ends {
    /// The member that answers a probe sent to `member`.
    #[inline]
    pub fn server(&self, member: MemberId) -> MemberId {
        self.server.get(member.index()).copied().unwrap_or(member)
    }

    /// The member that does the work of a request sent to `member`.
    #[inline]
    pub fn work(&self, member: MemberId) -> MemberId {
        self.work.get(member.index()).copied().unwrap_or(member)
    }
}
