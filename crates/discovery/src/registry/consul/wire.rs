//! What Consul is asked and answers: the question, its instances, and the index of blocking queries. By the
//! API's documentation (`developer.hashicorp.com/consul/api-docs`: `health`, `features/blocking`,
//! `api-structure`).

use crate::fault::{Defect, FaultKind, printable};
use crate::list::{MOST_ENTRIES, Objection, Registered, Snapshot, State, Subject, listed, too_many};
use crate::registry::http::LIST_TIME;
use crate::registry::json::Flaw;
use hyper::header::HeaderMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::time::Duration;
use weir_plan::ConsulSource;
use weir_plan::http::short;

/// How long an answer to a blocking query may take: the 5 minutes that it asks Consul to wait, the sixteenth of
/// them that Consul adds at most, and a moment for the way.
const BLOCKING_TIME: Duration = Duration::from_secs(320);

/// The least time between the starts of two questions: there are at most ten a second.
pub(super) const LEAST_APART: Duration = Duration::from_millis(100);

/// The same where Consul has no index to wait with: there is nothing left but to ask again and again.
const POLL: Duration = Duration::from_secs(1);

/// What is written as `%XX`: everything but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What is said of an answer that is another list, or none.
const NO_INSTANCES: &str = "is no list of a service's instances";

/// The remedy where the answer is something else.
const REMEDY: &str = "is that address Consul's?";

/// The path and query of the question for a service's instances: with an index, when the list has changed
/// since.
pub(super) fn question(source: &ConsulSource, index: Option<u64>) -> String {
    let encode = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
    let mut query = Vec::new();
    query.extend(index.map(|index| format!("index={index}&wait=5m")));
    query.extend(source.passing.then(|| "passing=1".to_owned()));
    query.extend(source.stale.then(|| "stale".to_owned()));
    query.extend(source.tag.as_deref().map(|tag| format!("tag={}", encode(tag))));
    query.extend(source.datacenter.as_deref().map(|datacenter| format!("dc={}", encode(datacenter))));
    let path = format!("/v1/health/service/{}", encode(&source.service));
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// Where the blocking queries are.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    index: Option<u64>,
}

impl Cursor {
    /// The index that the next question waits to be passed; `None`: it is answered at once.
    pub(super) fn index(&self) -> Option<u64> {
        self.index
    }

    /// How long the answer to the next question may take.
    pub(super) fn limit(&self) -> Duration {
        if self.index.is_some() { BLOCKING_TIME } else { LIST_TIME }
    }

    /// Notes the index of a list. One that goes back, as after a restart from a backup, and 0, which some
    /// versions answer by mistake, are not waited with. Returns the least time from the start of that list's
    /// question to that of the next one.
    pub(super) fn advance(&mut self, index: u64) -> Duration {
        let before = self.index.take();
        self.index = Some(index).filter(|index| *index > 0 && before.is_none_or(|before| *index >= before));
        if before.is_none() && index == 0 { POLL } else { LEAST_APART }
    }

    /// Begins anew after a failure.
    pub(super) fn restart(&mut self) {
        self.index = None;
    }
}

/// The index of an answer.
pub(super) fn read_index(headers: &HeaderMap) -> Option<u64> {
    headers.get("x-consul-index")?.to_str().ok()?.trim().parse().ok()
}

/// Whether the answer lacks instances that the token may not read.
pub(super) fn is_filtered(headers: &HeaderMap) -> bool {
    headers.get("x-consul-results-filtered-by-acls").is_some_and(|value| value.as_bytes() == b"true")
}

/// What to do about a refusal with this status and reason, where that can be said.
pub(super) fn remedy(status: u16, reason: &str, service: &str) -> Option<String> {
    let remedy = match status {
        401 | 403 if reason.contains("ACL not found") => {
            "the token is not known there: write one that is into the file of `token=`"
        }
        401 | 403 => return Some(rule(service)),
        404 => "write `url` as that of Consul's API, such as \"http://127.0.0.1:8500\"",
        429 => "raise Consul's limits of requests, or ask another agent",
        500 if reason.contains("No cluster leader") => {
            "Consul's servers have elected no leader: see to them; with `stale=True` any of them may answer"
        }
        500 if reason.contains("No path to datacenter") => {
            "the agent knows no way to that datacenter: see to the name in `datacenter=`, and to the agent"
        }
        _ => return None,
    };
    Some(remedy.to_owned())
}

/// The rule that a token needs to read the instances of this service.
pub(super) fn rule(service: &str) -> String {
    let service = printable(&short(service));
    format!(
        "name a token in `token=` whose policy has `service \"{service}\" {{ policy = \"read\" }}` and \
         `node_prefix \"\" {{ policy = \"read\" }}`"
    )
}

/// The list of an answer. Its order does not depend on that of the answer. An instance that is wrong is left
/// out.
///
/// # Errors
/// It is no list of instances, or has too many.
pub(super) fn read_list(text: &str) -> Result<Snapshot, Defect> {
    let Instances { mut all, mut wrong, strange, has_more } =
        serde_json::from_str::<Instances>(text).map_err(|e| malformed(&e))?;
    if has_more {
        return Err(too_many(MOST_ENTRIES, "entries"));
    }
    if strange > 0 && all.is_empty() && wrong.is_empty() {
        // It is a list of something else.
        return Err(Defect::new(FaultKind::Shape, format!("the answer {NO_INSTANCES}"), REMEDY));
    }
    all.sort_by(|a, b| (&a.id, &a.host, a.port).cmp(&(&b.id, &b.host, b.port)));
    wrong.sort_by(|a, b| a.problem.cmp(&b.problem));
    let first = all.len() + 1;
    let mut list = listed(all)?;
    let unknown = || Objection::new("it is no instance with a Node and a Service", "see to Consul");
    let others = std::iter::repeat_with(unknown).take(strange);
    for (i, objection) in wrong.into_iter().chain(others).enumerate() {
        list.leave_out(Subject::Entry(first + i), objection, || None);
    }
    Ok(list)
}

/// What is wrong with a text that is no list.
fn malformed(e: &serde_json::Error) -> Defect {
    let Flaw { kind, words } = Flaw::new(e, NO_INSTANCES);
    Defect::new(kind, format!("the answer {words}"), REMEDY)
}

/// The entries of an answer, at most [`MOST_ENTRIES`].
#[derive(Default)]
struct Instances {
    all: Vec<Registered>,
    /// Why others do not count.
    wrong: Vec<Objection>,
    /// Entries that are no instances at all.
    strange: usize,
    /// Whether there are more.
    has_more: bool,
}

impl Instances {
    fn add(&mut self, raw: &RawValue) {
        match serde_json::from_str::<Entry<'_>>(raw.get()).map(Entry::register) {
            Ok(Ok(instance)) => self.all.push(instance),
            Ok(Err(objection)) => self.wrong.push(objection),
            Err(_) => self.strange += 1,
        }
    }
}

impl<'de> Deserialize<'de> for Instances {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Instances, D::Error> {
        json.deserialize_seq(Instances::default())
    }
}

impl<'de> Visitor<'de> for Instances {
    type Value = Instances;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Instances, A::Error> {
        for _ in 0..MOST_ENTRIES {
            let Some(entry) = elements.next_element::<&RawValue>()? else { return Ok(self) };
            self.add(entry);
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {
            self.has_more = true;
        }
        Ok(self)
    }
}

/// An instance, its node, and its checks, which are not read: Consul leaves out what does not pass.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry<'a> {
    node: Node,
    #[serde(borrow)]
    service: Service<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    /// Its name.
    node: String,
    address: Option<String>,
}

/// Numbers are cut out as raw values, so that one of another type costs this instance, not the list.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Service<'a> {
    /// Unique on its node.
    #[serde(rename = "ID")]
    id: String,
    /// Empty where it is the node's.
    address: Option<String>,
    /// 0 where there is none.
    #[serde(borrow)]
    port: Option<&'a RawValue>,
    #[serde(borrow)]
    weights: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Weights<'a> {
    #[serde(borrow)]
    passing: Option<&'a RawValue>,
}

impl Entry<'_> {
    /// The instance, or which of its fields has a wrong type. What is in that field is not said.
    fn register(self) -> Result<Registered, Objection> {
        let Entry { node, service } = self;
        let id = format!("{}/{}", node.node, service.id);
        let wrong = |field: &str, remedy: &str| {
            Objection::new(format!("the {field} of \"{}\" cannot be read", short(&id)), remedy)
        };
        let port: Option<i64> = service.port.map_or(Some(0), |raw| raw.get().parse().ok());
        let port = port.ok_or_else(|| wrong("port", "register it with a port from 1 to 65535"))?;
        let weight = service.weights.map_or(Some(1.0), read_weight);
        let weight = weight.ok_or_else(|| wrong("weight", "register it with a number as Weights.Passing"))?;
        let own = service.address.filter(|address| !address.is_empty());
        Ok(Registered {
            host: own.or(node.address).unwrap_or_default(),
            port,
            id: Some(id),
            weight,
            state: State::Up,
        })
    }
}

/// The weight of an instance that passes; 1 where there is none.
fn read_weight(raw: &RawValue) -> Option<f64> {
    let weights: Weights<'_> = serde_json::from_str(raw.get()).ok()?;
    weights.passing.map_or(Some(1.0), |passing| passing.get().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> ConsulSource {
        let source = ConsulSource::new("http://127.0.0.1:8500", "api");
        ConsulSource { passing: false, stale: false, ..source }
    }

    /// Members as `addr*weight#id`, then findings.
    fn read(text: &str) -> Result<String, Defect> {
        let list = read_list(text)?;
        let members = list.members.iter().map(|member| {
            let id = member.id.as_deref().unwrap_or_default();
            format!("{}*{}#{id}", member.addr, member.weight)
        });
        let findings = list.left_out.iter().map(ToString::to_string);
        Ok(members.chain(findings).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_question_has_what_the_source_asks_for() {
        assert_eq!(question(&source(), None), "/v1/health/service/api");
        assert_eq!(question(&source(), Some(7)), "/v1/health/service/api?index=7&wait=5m");
        let source = ConsulSource {
            service: "api/v2 \u{e9}?".to_owned(),
            tag: Some("blue&green".to_owned()),
            datacenter: Some("dc-2".to_owned()),
            passing: true,
            stale: true,
            ..source()
        };
        assert_eq!(
            question(&source, Some(u64::MAX)),
            "/v1/health/service/api%2Fv2%20%C3%A9%3F?index=18446744073709551615&wait=5m&passing=1&stale\
             &tag=blue%26green&dc=dc-2"
        );
    }

    #[test]
    fn an_index_is_waited_with_until_it_goes_back_or_is_0() {
        let mut cursor = Cursor::default();
        let mut advance = |index| {
            let apart = cursor.advance(index);
            (apart, cursor.index(), cursor.limit())
        };
        let waits = |index| (LEAST_APART, Some(index), BLOCKING_TIME);
        let anew = |apart| (apart, None::<u64>, LIST_TIME);
        assert_eq!(advance(7), waits(7));
        assert_eq!(advance(7), waits(7));
        assert_eq!(advance(12), waits(12));
        // It goes back: the next question is answered at once, and its index counts.
        assert_eq!(advance(3), anew(LEAST_APART));
        assert_eq!(advance(3), waits(3));
        assert_eq!(advance(0), anew(LEAST_APART));
        // Consul has none: asking ten times a second would be all that is left.
        assert_eq!(advance(0), anew(POLL));
        assert_eq!(advance(1), waits(1));
        cursor.restart();
        assert_eq!((cursor.index(), cursor.limit()), (None, LIST_TIME));
    }

    #[test]
    fn an_instance_has_its_own_address_or_its_nodes() {
        // As the documentation shows an answer, without the fields that are not read.
        let text = r#"[
          {"Node": {"ID": "40e4a748", "Node": "foobar", "Address": "10.1.10.12", "Datacenter": "dc1"},
           "Service": {"ID": "redis", "Service": "redis", "Tags": ["primary"], "Address": "10.1.10.13",
             "TaggedAddresses": {"lan": {"address": "10.1.10.13", "port": 8000}}, "Meta": null, "Port": 8000,
             "Weights": {"Passing": 10, "Warning": 1}, "Namespace": "default"},
           "Checks": [{"Node": "foobar", "CheckID": "service:redis", "Status": "passing"}]},
          {"Node": {"Node": "bar", "Address": "fd00::2"}, "Service": {"ID": "b", "Address": "", "Port": 81}},
          {"Node": {"Node": "bar", "Address": "10.0.0.2"}, "Service": {"ID": "a", "Port": 80, "Weights": null}},
          {"Node": {"Node": "bar", "Address": "x"}, "Service": {"ID": "c",
            "Port": 1, "Weights": {"Passing": 0}}}
        ]"#;
        assert_eq!(
            read(text).expect("a list"),
            "10.0.0.2:80*1#bar/a [fd00::2]:81*1#bar/b x:1*0#bar/c 10.1.10.13:8000*10#foobar/redis"
        );
        assert_eq!(read("[]").expect("a list"), "");
    }

    #[test]
    fn what_cannot_be_a_member_is_left_out_with_its_id() {
        let wrong = |host: &str, port: i64, weight: f64| {
            format!(
                r#"[{{"Node": {{"Node": "n", "Address": "{host}"}},
                     "Service": {{"ID": "s", "Port": {port}, "Weights": {{"Passing": {weight}}}}}}}]"#
            )
        };
        for text in [
            wrong("10.0.0.1", 0, 1.0),
            wrong("10.0.0.1", 70_000, 1.0),
            wrong("0.0.0.0", 80, 1.0),
            wrong("224.0.0.1", 80, 1.0),
            wrong("", 80, 1.0),
            wrong("10.0.0.1", 80, -1.0),
        ] {
            let word = read(&text).expect("a list");
            assert!(word.starts_with("entry 1: ") && word.contains("n/s"), "{word}");
        }
    }

    #[test]
    fn an_odd_entry_costs_no_list() {
        let good = r#"{"Node": {"Node": "n", "Address": "a"}, "Service": {"ID": "s", "Port": 1}}"#;
        let of =
            |fields: &str| format!(r#"{{"Node": {{"Node": "n"}}, "Service": {{"ID": "odd", {fields}}}}}"#);
        for (odd, words) in [
            (of(r#""Port": "secret""#), "the port of \"n/odd\" cannot be read"),
            (of(r#""Port": 80.5"#), "the port of \"n/odd\" cannot be read"),
            (of(r#""Port": 80, "Weights": "secret""#), "the weight of \"n/odd\" cannot be read"),
            (of(r#""Port": 80, "Weights": {"Passing": "secret"}"#), "the weight of \"n/odd\" cannot be read"),
            (r#""secret""#.to_owned(), "it is no instance"),
            (r#"{"Node": {"Node": "secret"}}"#.to_owned(), "it is no instance"),
        ] {
            for text in [format!("[{odd}, {good}]"), format!("[{good}, {odd}]")] {
                let word = read(&text).expect("a list");
                assert!(word.starts_with("a:1*1#n/s entry 2: ") && word.contains(words), "{word}");
                assert!(!word.contains("secret"), "{word}");
            }
        }
        let alone = read(&format!("[{}]", of(r#""Port": true"#))).expect("a list");
        assert!(alone.starts_with("entry 1: the port"), "{alone}");
    }

    #[test]
    fn what_is_no_list_is_said_without_its_text() {
        let deep = "[".repeat(10_000);
        for (text, kind) in [
            ("", FaultKind::Cut),
            ("[", FaultKind::Cut),
            (r#"[{"Node": {"Node": "secret"#, FaultKind::Cut),
            ("secret", FaultKind::Syntax),
            ("[] secret", FaultKind::Syntax),
            (r#"{"secret": 1}"#, FaultKind::Shape),
            (r#"["secret"]"#, FaultKind::Shape),
            (r#"[{"Node": {"Node": "n"}}]"#, FaultKind::Shape),
            ("null", FaultKind::Shape),
        ] {
            let defect = read(text).expect_err(text);
            assert_eq!(defect.kind, kind, "{text}: {defect}");
            assert!(!defect.to_string().contains("secret"), "{defect}");
        }
        assert!(read(&deep).is_err());
        let ignored = format!(
            r#"[{{"Node": {{"Node": "n", "Address": "a"}}, "Service": {{"ID": "s", "Port": 1}}, "X": {}{}}}]"#,
            "[".repeat(10_000),
            "]".repeat(10_000)
        );
        assert_eq!(read(&ignored).expect("a list"), "a:1*1#n/s");
    }

    #[test]
    fn refusals_have_a_remedy_where_there_is_one() {
        let rule = "`service \"api\" { policy = \"read\" }`";
        for (status, reason, words) in [
            (403, "Permission denied", rule),
            (401, "", rule),
            (403, "ACL not found", "the token is not known"),
            (404, "", ":8500"),
            (429, "", "limits"),
            (500, "No cluster leader", "leader"),
            (500, "rpc error: No path to datacenter", "`datacenter=`"),
        ] {
            let remedy = remedy(status, reason, "api").expect(reason);
            assert!(remedy.contains(words), "{status} {reason}: {remedy}");
        }
        assert_eq!(remedy(500, "something else", "api"), None);
        assert_eq!(remedy(302, "", "api"), None);
    }

    #[test]
    fn fields_of_an_answer_are_read() {
        let mut headers = HeaderMap::new();
        assert_eq!((read_index(&headers), is_filtered(&headers)), (None, false));
        for (text, index) in [("7", Some(7)), ("0", Some(0)), ("-1", None), ("", None), ("x", None)] {
            headers.insert("x-consul-index", text.parse().expect("a value"));
            assert_eq!(read_index(&headers), index, "{text}");
        }
        headers.insert("x-consul-results-filtered-by-acls", "true".parse().expect("a value"));
        assert!(is_filtered(&headers));
    }
}
