//! All that is done to a balancer's policy, told in a verification that records.

use super::Lb;
use crate::exchange::NodeId;
use crate::exchange::paired::{Paired, Told};
use std::sync::Arc;
use weir_policy::Deed;

/// Whom it is told, and of which balancer.
pub(crate) struct Recorder {
    pub run: Arc<Paired>,
    pub lb: NodeId,
    pub on_loop: u32,
}

impl Lb {
    /// Tells of a deed, if anybody listens.
    #[inline]
    pub(super) fn note(&self, deed: impl FnOnce() -> Deed) {
        if let Some(records) = &self.records {
            records.run.tell(Told::Did(records.lb, records.on_loop, deed()));
        }
    }
}
