//! The histories of requests, what typical ones consist of, and how a run went over time: what is too much for every run.
//!
//! A replication is a function of its seed, so it can be had again: what is asked for here is told by a second run of the
//! replications concerned, by the engine that walks from wait to wait (`crate::reference`). A run of which nothing of this is
//! wanted pays nothing for it, and no event of the fast engine asks whether somebody listens.

pub(crate) mod history;
mod series;
mod tracks;
mod typical;

pub use history::{History, Selection, Stage};
pub use series::{PoolOverTime, QueueOverTime, Series, UpOverTime};
pub use typical::{Part, Typical};

pub(crate) use series::{Look, PoolLook};
pub(crate) use tracks::{Noted, Stay, Tracks, Try};
