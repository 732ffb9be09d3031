//! Histories of requests, what typical ones consist of, and how a run went over time: what would cost too much in
//! every run.
//!
//! A replication is a function of its seed, so it can be repeated: what is recorded here comes from a second run of
//! the replications concerned, by the engine that walks from wait to wait (`crate::reference`). A run that asks for
//! none of this pays nothing for it, and no event of the fast engine checks whether it is being recorded.

mod connections;
mod ends;
mod fleets;
pub(crate) mod history;
mod outages;
mod series;
mod subsets;
mod tracks;
mod typical;

pub(crate) use connections::ConnectionSample;
pub use connections::ConnectionsOverTime;
pub use ends::{LatencyClass, LatencyOverTime};
pub use fleets::FleetOverTime;
pub(crate) use fleets::{FleetSample, change_marks};
pub use history::{History, Selection, Stage};
pub use outages::Mark;
pub use series::{PoolOverTime, QueueOverTime, Series, UpOverTime};
pub(crate) use subsets::SubsetSample;
pub use subsets::SubsetsOverTime;
pub use typical::{TimePart, Typical};

pub(crate) use outages::{MOST_CHANGES, OutageSite, marks};
pub(crate) use series::{PoolSample, StateSample};
pub(crate) use tracks::{RecordedRequest, StageTime, Tracks, Try};
