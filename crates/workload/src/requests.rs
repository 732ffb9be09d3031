//! The requests of one replication, one by one: when each is sent, its kind, and its sender.

use crate::mix;
use weir_model::draws::purpose;
use weir_model::mix::Mix;
use weir_plan::{Recording, Scenario};
use weir_stats::Key;

/// A request to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its number, from 0, in the order in which requests are sent.
    pub ordinal: u64,
    /// Its way: the key of its draws.
    pub way: Key,
    /// Its index in the scenario's `mix`; 0 without one.
    pub kind: u32,
    /// Its sender, as a key is written; `None`: unknown, so that it is a client of its own.
    pub sender: Option<String>,
}

/// The requests of one replication of a scenario.
#[derive(Clone, Debug)]
pub struct Requests {
    mix: Mix,
    recorded: Option<Recording>,
    key: Key,
}

impl Requests {
    /// The requests of a replication with this key (the seed's, with the replication's number).
    pub fn new(scenario: &Scenario, key: Key) -> Requests {
        Requests { mix: mix(scenario), recorded: scenario.recorded.clone(), key: key.with(purpose::REQUEST) }
    }

    /// A request of open traffic, by its number.
    pub fn open(&self, ordinal: u64) -> Request {
        self.request(ordinal, self.key.with(ordinal), None)
    }

    /// The `k`-th request (from 0) of a user of a closed loop.
    pub fn of_user(&self, ordinal: u64, user: u32, k: u64) -> Request {
        self.request(ordinal, self.key.with(u64::from(user)).with(k), Some(u64::from(user)))
    }

    fn request(&self, ordinal: u64, way: Key, user: Option<u64>) -> Request {
        let (kind, sender) = match &self.recorded {
            Some(recorded) => said(recorded, ordinal),
            None => {
                let (kind, sender) = self.mix.draw(way.with(purpose::MIX));
                (kind, sender.map(|key| key.to_string()))
            }
        };
        let sender = sender.or_else(|| user.map(|user| user.to_string()));
        Request { ordinal, way, kind, sender }
    }
}

/// A recorded request.
fn said(recorded: &Recording, ordinal: u64) -> (u32, Option<String>) {
    let Ok(at) = usize::try_from(ordinal) else { return (0, None) };
    let sender = recorded.senders.get(at).copied().flatten();
    let key = sender.and_then(|sender| recorded.keys.get(sender as usize)).cloned();
    (recorded.kinds.get(at).copied().unwrap_or(0), key)
}
