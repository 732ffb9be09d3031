//! EndpointSlices as the API server writes them: pages of lists, events of watches, and all slices of a
//! service.
//!
//! Fields that mean nothing here (zones, hints, annotations) are not read. The objects are kept as text until
//! they are known to be slices, since an event may hold a bookmark or a status as well.

use crate::fault::{Defect, FaultKind};
use crate::list::{MOST_BYTES, MOST_ENTRIES, MOST_MEMBERS, too_many};
use crate::registry::json::Flaw;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_plan::http::short;

/// A port of a slice's endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlicePort {
    /// Its name; empty: the only one of a service.
    pub(super) name: String,
    /// Its number; `None`: any.
    pub(super) number: Option<i64>,
}

/// What runs at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    /// An address without brackets, or a name.
    pub(super) host: String,
    /// The pod's uid, or the name of what is there.
    pub(super) id: Option<String>,
    pub(super) is_ready: bool,
    pub(super) is_serving: bool,
    pub(super) is_terminating: bool,
}

/// A part of a service's endpoints, all with the same ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slice {
    /// The TCP ports.
    pub(super) ports: Vec<SlicePort>,
    pub(super) instances: Vec<Instance>,
    /// The length of its text.
    bytes: usize,
}

/// All slices of a service, by name, within the limits of a list.
#[derive(Clone, Debug, Default)]
pub(super) struct Slices {
    all: BTreeMap<String, Slice>,
    bytes: u64,
    instances: usize,
}

/// What a page says beside its slices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageEnd {
    /// The version of the whole list.
    pub(super) version: String,
    /// Where the next page begins.
    pub(super) next: Option<String>,
}

/// What an event of a watch has done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// The version that the watch has come to.
    pub(super) version: String,
    /// Whether a slice is another one; false for a bookmark.
    pub(super) is_change: bool,
}

impl Slices {
    /// The slices with their names, in the order of those.
    pub(super) fn all(&self) -> &BTreeMap<String, Slice> {
        &self.all
    }

    /// Adds the slices of a page.
    ///
    /// # Errors
    /// The text is no page, or the list is above a limit.
    pub(super) fn add_page(&mut self, text: &str) -> Result<PageEnd, Defect> {
        let page: PageRecord =
            serde_json::from_str(text).map_err(|e| malformed("a list that cannot be read", &e))?;
        for slice in page.items.unwrap_or_default() {
            self.put(slice)?;
        }
        let ListMetadata { resource_version, next } = page.metadata;
        if resource_version.is_empty() {
            let problem = "the API server's answer is no list of EndpointSlices: it has no resourceVersion";
            return Err(Defect::new(FaultKind::Shape, problem, "is that address the API server's?"));
        }
        let next = next.filter(|next| !next.is_empty());
        Ok(PageEnd { version: resource_version, next })
    }

    /// Applies an event of a watch.
    ///
    /// # Errors
    /// The watch is at an error, the line is no event, or the list is above a limit now.
    pub(super) fn apply(&mut self, line: &[u8]) -> Result<Progress, Defect> {
        let event: EventRecord =
            serde_json::from_slice(line).map_err(|e| malformed("an event that cannot be read", &e))?;
        let (version, is_change) = match event.kind.as_str() {
            "ADDED" | "MODIFIED" => (self.put(event.object)?, true),
            "DELETED" => {
                let gone = read_slice(event.object)?;
                self.remove(&gone.metadata.name);
                (gone.metadata.resource_version, true)
            }
            "BOOKMARK" => (read_slice(event.object)?.metadata.resource_version, false),
            "ERROR" => return Err(refusal(event.object)),
            other => {
                let problem = format!("the watch has an event \"{}\"", short(other));
                return Err(Defect::new(FaultKind::Shape, problem, "is that address the API server's?"));
            }
        };
        Ok(Progress { version, is_change })
    }

    /// Puts a slice in the place of the one with its name. Returns its version.
    fn put(&mut self, raw: &RawValue) -> Result<String, Defect> {
        let SliceRecord { metadata, endpoints, ports } = read_slice(raw)?;
        let slice = Slice {
            ports: ports.unwrap_or_default().into_iter().filter_map(PortRecord::tcp).collect(),
            instances: endpoints.unwrap_or_default().into_iter().map(EndpointRecord::instance).collect(),
            bytes: raw.get().len(),
        };
        self.remove(&metadata.name);
        self.bytes += slice.bytes as u64;
        self.instances += slice.instances.len();
        self.all.insert(metadata.name, slice);
        if self.bytes > MOST_BYTES {
            return Err(too_large());
        }
        if self.instances > MOST_ENTRIES {
            return Err(too_many(MOST_ENTRIES, "endpoints"));
        }
        if self.all.len() > MOST_MEMBERS {
            return Err(too_many(MOST_MEMBERS, "slices"));
        }
        Ok(metadata.resource_version)
    }

    fn remove(&mut self, name: &str) {
        if let Some(gone) = self.all.remove(name) {
            self.bytes -= gone.bytes as u64;
            self.instances -= gone.instances.len();
        }
    }
}

/// The service's slices are more than is read.
pub(super) fn too_large() -> Defect {
    let problem = format!("the service's EndpointSlices have more than {} MiB", MOST_BYTES >> 20);
    Defect::new(FaultKind::TooLarge, problem, "divide it into several services, each with a fleet of its own")
}

#[derive(Deserialize)]
struct PageRecord<'a> {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct EventRecord<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct SliceRecord {
    metadata: Metadata,
    endpoints: Option<Vec<EndpointRecord>>,
    ports: Option<Vec<PortRecord>>,
}

/// The part of a slice that says which it is.
#[derive(Deserialize)]
struct NameRecord {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    resource_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndpointRecord {
    addresses: Option<Vec<String>>,
    conditions: Option<Conditions>,
    target_ref: Option<TargetRef>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct Conditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Deserialize)]
struct TargetRef {
    uid: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct PortRecord {
    name: Option<String>,
    port: Option<i64>,
    protocol: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusRecord {
    code: Option<i64>,
    reason: Option<String>,
    message: Option<String>,
}

impl EndpointRecord {
    fn instance(self) -> Instance {
        // The API gives no meaning to the addresses after the first, and Kubernetes itself does not look at
        // them.
        let host = self.addresses.and_then(|all| all.into_iter().next()).unwrap_or_default();
        let conditions = self.conditions.unwrap_or_default();
        let is_ready = conditions.ready.unwrap_or(true);
        let of_target = self.target_ref.and_then(|target| {
            let uid = target.uid.filter(|uid| !uid.is_empty());
            uid.or(target.name.filter(|name| !name.is_empty()))
        });
        Instance {
            host: host.parse::<IpAddr>().map_or(host, |ip| ip.to_string()),
            id: of_target,
            is_ready,
            is_serving: conditions.serving.unwrap_or(is_ready),
            is_terminating: conditions.terminating.unwrap_or(false),
        }
    }
}

impl PortRecord {
    /// The port, unless it is one of UDP or SCTP.
    fn tcp(self) -> Option<SlicePort> {
        let is_tcp = self.protocol.is_none_or(|protocol| protocol == "TCP");
        is_tcp.then(|| SlicePort { name: self.name.unwrap_or_default(), number: self.port })
    }
}

fn read_slice(raw: &RawValue) -> Result<SliceRecord, Defect> {
    serde_json::from_str(raw.get()).map_err(|e| match serde_json::from_str::<NameRecord>(raw.get()) {
        Ok(NameRecord { metadata }) if !metadata.name.is_empty() => {
            let name = short(&metadata.name);
            malformed(&format!("the EndpointSlice \"{name}\", which cannot be read"), &e)
        }
        _ => malformed("an EndpointSlice that cannot be read", &e),
    })
}

/// What a watch says that cannot go on.
fn refusal(raw: &RawValue) -> Defect {
    let status: StatusRecord = match serde_json::from_str(raw.get()) {
        Ok(status) => status,
        Err(e) => return malformed("an error that cannot be read", &e),
    };
    let code = status.code.unwrap_or_default();
    let words = [status.reason, status.message].into_iter().flatten();
    let words = words.filter(|word| !word.is_empty()).map(|word| format!(", {}", short(&word)));
    let words: String = words.collect();
    let problem = format!("the watch ended with the error {code}{words}");
    Defect::new(FaultKind::Unexpected, problem, "see to the API server if this lasts")
}

fn malformed(what: &str, e: &serde_json::Error) -> Defect {
    let Flaw { kind, words } = Flaw::new(e, "has another form than Kubernetes gives it");
    let problem = format!("the API server sends {what}: it {words}");
    Defect::new(kind, problem, "is that address the API server's?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_are_absent_mean_what_kubernetes_says() {
        let instance = |text: &str| {
            let record: EndpointRecord = serde_json::from_str(text).expect(text);
            let one = record.instance();
            (one.is_ready, one.is_serving, one.is_terminating)
        };
        assert_eq!(instance(r#"{"addresses": ["10.0.0.1"]}"#), (true, true, false));
        assert_eq!(instance(r#"{"addresses": [], "conditions": {}}"#), (true, true, false));
        let unready = r#"{"conditions": {"ready": false, "terminating": null}}"#;
        assert_eq!(instance(unready), (false, false, false));
        let ending = r#"{"conditions": {"ready": false, "serving": true, "terminating": true}}"#;
        assert_eq!(instance(ending), (false, true, true));
    }

    #[test]
    fn identities_are_uids_else_names_and_addresses_have_one_spelling() {
        let instance = |text: &str| {
            let record: EndpointRecord = serde_json::from_str(text).expect(text);
            let one = record.instance();
            (one.host, one.id)
        };
        let of = |host: &str, id: Option<&str>| (host.to_owned(), id.map(str::to_owned));
        let both = r#"{"addresses": ["fd00:0::1", "x"], "targetRef": {"name": "a-1", "uid": "u-1"}}"#;
        assert_eq!(instance(both), of("fd00::1", Some("u-1")));
        let named = r#"{"addresses": ["db.example.com"], "targetRef": {"name": "a-1", "uid": ""}}"#;
        assert_eq!(instance(named), of("db.example.com", Some("a-1")));
        assert_eq!(instance(r#"{"targetRef": null}"#), of("", None));
    }

    #[test]
    fn pages_and_events_that_are_none_are_sentences() {
        let mut slices = Slices::default();
        let deep = format!(r#"{{"items": {}1{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        for (wrong, kind) in [
            ("", FaultKind::Cut),
            (r#"{"items": ["#, FaultKind::Cut),
            ("<html>", FaultKind::Syntax),
            ("[]", FaultKind::Shape),
            ("{}", FaultKind::Shape),
            (r#"{"items": 1}"#, FaultKind::Shape),
            (r#"{"items": [1]}"#, FaultKind::Shape),
            (deep.as_str(), FaultKind::Shape),
        ] {
            let defect = slices.add_page(wrong).expect_err(wrong);
            assert_eq!(defect.kind, kind, "{defect}");
            assert!(defect.to_string().len() < 300, "{defect}");
        }
        for (wrong, kind) in [
            ("{", FaultKind::Cut),
            (r#"{"type": }"#, FaultKind::Syntax),
            (r#"{"type": "ADDED"}"#, FaultKind::Shape),
            (r#"{"type": "NEW", "object": {}}"#, FaultKind::Shape),
        ] {
            assert_eq!(slices.apply(wrong.as_bytes()).expect_err(wrong).kind, kind, "{wrong}");
        }
        let odd = r#"{"items": [{"metadata": {"name": "web-1"}, "endpoints": 7}]}"#;
        let problem = slices.add_page(odd).expect_err(odd).problem;
        let name = "the EndpointSlice \"web-1\", which cannot be read";
        let wanted =
            format!("the API server sends {name}: it has another form than Kubernetes gives it, at its");
        assert!(problem.starts_with(&wanted), "{problem}");
        let expired = br#"{"type": "ERROR", "object": {"kind": "Status", "reason": "Expired", "code": 410}}"#;
        let defect = slices.apply(expired).expect_err("an error");
        assert!(defect.to_string().contains("410, Expired;"), "{defect}");
        assert!(slices.all().is_empty());
    }

    #[test]
    fn slices_come_change_and_go_and_are_counted() {
        let mut slices = Slices::default();
        let end = slices.add_page(r#"{"metadata": {"resourceVersion": "5", "continue": ""}, "items": null}"#);
        assert_eq!(end.expect("a page"), PageEnd { version: "5".to_owned(), next: None });
        let mut apply = |kind: &str, version: u32, endpoints: &str| {
            let metadata = format!(r#"{{"name": "web-1", "resourceVersion": "{version}"}}"#);
            let object = format!(r#"{{"metadata": {metadata}, "endpoints": {endpoints}, "ports": null}}"#);
            let line = format!(r#"{{"type": "{kind}", "object": {object}}}"#);
            let progress = slices.apply(line.as_bytes()).expect("an event");
            assert_eq!(progress.version, version.to_string());
            (progress.is_change, slices.all.len(), slices.instances)
        };
        assert_eq!(apply("ADDED", 6, r#"[{"addresses": ["10.0.0.1"]}]"#), (true, 1, 1));
        assert_eq!(apply("MODIFIED", 7, r#"[{"addresses": ["a"]}, {"addresses": ["b"]}]"#), (true, 1, 2));
        assert_eq!(apply("BOOKMARK", 8, "null"), (false, 1, 2));
        assert_eq!(apply("DELETED", 9, "[]"), (true, 0, 0));
        assert_eq!(slices.bytes, 0);
    }

    #[test]
    fn only_ports_of_tcp_count() {
        let text = r#"[{"name": "", "port": 80}, {"port": 53, "protocol": "UDP"}, {"protocol": "TCP"}]"#;
        let records: Vec<PortRecord> = serde_json::from_str(text).expect("ports");
        let ports: Vec<SlicePort> = records.into_iter().filter_map(PortRecord::tcp).collect();
        let of = |number| SlicePort { name: String::new(), number };
        assert_eq!(ports, [of(Some(80)), of(None)]);
    }
}
