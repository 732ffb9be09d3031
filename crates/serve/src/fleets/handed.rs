//! The members of fleets, for the process that takes the place of this one: it does not begin empty, and doubts a short list.

use super::FleetSet;
use super::fleet::{FleetMembers, MemberKey};
use super::outage::HandedOutage;
use serde::{Deserialize, Deserializer, Serialize};
use weir_plan::SourceKind;
use weir_policy::fleet::{Doubt, MemberRecord};

/// A fleet's members in an offer to a successor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandedFleet {
    pub(super) name: String,
    /// From an older process `path`, that of its file.
    #[serde(alias = "path", deserialize_with = "read_source")]
    pub(super) source: SourceKind,
    /// How far its lists are believed; from an older process as where a file does not say it.
    #[serde(default = "usual_doubt")]
    pub(super) doubt: Doubt,
    /// While that gives no list; from an older process none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outage: Option<HandedOutage>,
    /// In the order of their places.
    pub(super) members: Vec<HandedMember>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HandedMember {
    pub key: MemberKey,
    pub record: MemberRecord,
}

fn usual_doubt() -> Doubt {
    Doubt { shrink: Some(0.5), grace_ns: 300_000_000_000 }
}

/// A source as a process of any age hands it.
#[derive(Deserialize)]
#[serde(untagged)]
enum HandedSource {
    Path(String),
    Kind(Box<SourceKind>),
}

fn read_source<'de, D: Deserializer<'de>>(text: D) -> Result<SourceKind, D::Error> {
    Ok(match HandedSource::deserialize(text)? {
        HandedSource::Path(path) => SourceKind::File(path),
        HandedSource::Kind(kind) => *kind,
    })
}

impl FleetSet {
    /// For a successor: the fleets that have had a list.
    pub fn hand(&self, now_ns: u64) -> Vec<HandedFleet> {
        self.fleets.iter().filter(|fleet| fleet.has_list).map(|fleet| fleet.hand(now_ns)).collect()
    }

    /// Those of a predecessor.
    pub fn of_predecessor(handed: &[HandedFleet], now_ns: u64) -> FleetSet {
        let fleets = handed.iter().map(|fleet| FleetMembers::restored(fleet, now_ns)).collect();
        FleetSet { fleets, ..FleetSet::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it was written before there were other sources than files.
    const OLD: &str = r#"[{"name":"api","path":"api.json","members":[
        {"key":{"addr":"a:1","id":"x"},"record":{"weight":1.0,"drain":false,"withdrawn_for_ns":null}},
        {"key":{"addr":"b:1"},"record":{"weight":2.0,"drain":false,"withdrawn_for_ns":60}}]}]"#;

    /// As it is written now.
    const NEW: &str = r#"[{"name":"web","source":{"dns":{"name":"web.internal","records":{"addresses":
        {"port":80}},"hold_ns":5}},"outage":{"lasting_ns":7000000000,"reason":"no answer"},"members":[]},
        {"name":"api","source":{"file":"api.json"},"members":[]}]"#;

    fn read(text: &str) -> Vec<HandedFleet> {
        serde_json::from_str(text).expect("an offer")
    }

    #[test]
    fn an_older_process_hands_the_path_of_a_file() {
        let handed = read(OLD);
        assert_eq!(handed[0].source, SourceKind::File("api.json".to_owned()));
        assert_eq!(handed[0].outage, None);
        let set = FleetSet::of_predecessor(&handed, 1_000);
        let counts = set.fleets[0].counts();
        assert_eq!((counts.up, counts.withdrawn, set.next_deadline_ns()), (1, 1, Some(1_060)));
    }

    #[test]
    fn any_source_is_handed_with_its_outage() {
        let handed = read(NEW);
        assert_eq!(handed[1].source, SourceKind::File("api.json".to_owned()));
        assert_eq!(handed[0].source.to_string(), "dns web.internal:80");
        let again = serde_json::to_string(&handed).expect("plain data");
        assert_eq!(read(&again), handed);
        // The clock of a process begins at 0.
        let set = FleetSet::of_predecessor(&handed, 0);
        let outages = set.fleets.iter().map(|fleet| (fleet.stale_s(1_000_000_000), fleet.error()));
        assert_eq!(outages.collect::<Vec<_>>(), [(Some(8.0), Some("no answer")), (None, None)]);
        let handed = set.hand(2_000_000_000);
        let outages = handed.iter().map(|fleet| Some(fleet.outage.as_ref()?.lasting_ns));
        assert_eq!(outages.collect::<Vec<_>>(), [Some(9_000_000_000), None]);
    }
}
