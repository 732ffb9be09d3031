//! A source to follow, with what is known of its members before it is asked.

use crate::list::Snapshot;
use std::sync::Arc;
use weir_plan::SourceKind;

/// A source that is followed.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowedSource {
    /// What is asked.
    pub kind: SourceKind,
    /// The last list that it gave, if it was followed before. It is for sources that hold members which an answer
    /// lacks, as DNS does: they hold those of this list, too. The first list that is asked for is given all the same.
    pub last: Option<Arc<Snapshot>>,
}

impl From<SourceKind> for FollowedSource {
    /// A source of which nothing is known.
    fn from(kind: SourceKind) -> FollowedSource {
        FollowedSource { kind, last: None }
    }
}
