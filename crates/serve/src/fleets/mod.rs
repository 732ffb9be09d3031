//! Fleets whose members a source lists (`find.*`): from a list to targets that requests are sent to.
//!
//! [`fleet`] has the members of each, by the rules of `weir_policy::fleet`; [`set`] all fleets of a topology, and which
//! of another topology each is. [`keeper`] is the thread that takes lists and lets time pass; what it follows is in [`sources`],
//! and the lists that wait for it are in [`updates`]. It changes what is served by one door, [`Applies`]; [`failures`] asks the
//! threads about targets that only a doubted list lacks. What the error log says is in [`words`], and in [`gaps`] what it says of
//! parts of sources.

mod changes;
mod doubts;
mod failures;
mod fleet;
mod gaps;
mod handed;
mod keeper;
mod outage;
mod seats;
mod set;
mod sources;
mod start;
mod updates;
mod words;

pub(crate) use changes::Changes;
pub(crate) use failures::{Answer, Question, Withdrawn};
pub(crate) use fleet::{FleetMembers, ListResult, MemberKey};
pub use handed::HandedFleet;
pub(crate) use keeper::{Applies, Message, start};
pub(crate) use set::FleetSet;
pub(crate) use start::{FirstLists, first_lists};
