//! One file, two worlds: a scenario is simulated, then served on this machine and loaded over real sockets, and both
//! are compared (`docs/spec/language.md#verify`).
//!
//! Run k is paired with replication k: the same requests at the same instants, the same work and the same choices,
//! since all draws are keyed by a header that only the processes of the run trust. What remains to be compared is the
//! model of the world and the machine.
#![forbid(unsafe_code)]

mod against;
mod busy;
mod calibrate;
mod children;
mod compare;
mod connections;
mod figures;
mod hops;
mod omissions;
mod options;
mod outcome;
mod pairs;
mod part;
mod prepare;
mod record;
mod router;
mod run;
mod runs;
mod schedule;
mod statistics;
mod tolerances;
mod trial;
mod world;

pub use calibrate::{Calibration, calibrate};
pub use children::{CHILD, child};
pub use options::{Error, Options};
pub use outcome::{
    AtQuantile, BothWorlds, Connections, MissingScenario, Omission, OmissionCause, Progress,
    ScenarioVerified, TargetShares, Verification,
};
pub use prepare::CannotVerify;
pub use record::{ClientRequest, Line, RecordError, Replay, SCHEMA, ServerRequest, replay};
pub use router::Router;
pub use run::verify;
pub use statistics::{Statistic, Unit, Verdict};
pub use tolerances::Tolerances;
