//! What a Eureka server answers: applications with their instances, as its JSON has them.
//!
//! Encoders differ: one application or instance may be an object instead of a list, a port may be a number or
//! a text, and fields may be missing. A field of another type counts as missing, so that one odd instance
//! costs no list. Fields are cut out as raw values first, so that only those are read that are needed, and
//! that `serde_json`'s feature `arbitrary_precision` changes nothing.

use crate::fault::{Defect, FaultKind};
use crate::registry::json::Flaw;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;
use weir_plan::EurekaHost;
use weir_plan::http::short;

/// The remedy where the answer is something else.
const REMEDY: &str = "is that address the registry's, with its path, such as \"http://host:8761/eureka\"?";

/// What a registry says of an instance. The order is that of the names, which hashes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Down,
    OutOfService,
    Starting,
    Unknown,
    Up,
}

impl Status {
    const ALL: [Status; 5] =
        [Status::Down, Status::OutOfService, Status::Starting, Status::Unknown, Status::Up];

    /// Its name on the wire.
    pub(super) fn name(self) -> &'static str {
        match self {
            Status::Down => "DOWN",
            Status::OutOfService => "OUT_OF_SERVICE",
            Status::Starting => "STARTING",
            Status::Unknown => "UNKNOWN",
            Status::Up => "UP",
        }
    }
}

/// A port of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Port {
    /// Its number as the registry has it; `None`: it has none.
    pub(super) number: Option<i64>,
    /// Whether the instance listens at it.
    pub(super) is_enabled: bool,
}

/// The whole registry, or what has changed in it lately.
#[derive(Debug, Deserialize)]
pub(super) struct Applications<'a> {
    #[serde(borrow, rename = "apps__hashcode")]
    hash: Option<&'a RawValue>,
    #[serde(borrow)]
    application: Option<ObjectList<Application<'a>>>,
}

/// An application with its instances.
#[derive(Debug, Deserialize)]
pub(super) struct Application<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    instance: Option<ObjectList<Instance<'a>>>,
}

/// An instance. Servers apply overridden statuses to `status` themselves.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Instance<'a> {
    #[serde(borrow)]
    instance_id: Option<&'a RawValue>,
    #[serde(borrow)]
    host_name: Option<&'a RawValue>,
    #[serde(borrow)]
    ip_addr: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    port: Option<&'a RawValue>,
    #[serde(borrow)]
    secure_port: Option<&'a RawValue>,
    #[serde(borrow)]
    action_type: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    applications: Object<Applications<'a>>,
}

#[derive(Deserialize)]
struct PortFields<'a> {
    #[serde(borrow, rename = "$")]
    number: Option<&'a RawValue>,
    #[serde(borrow, rename = "@enabled")]
    enabled: Option<&'a RawValue>,
}

/// Reads an answer of the server at this URL.
///
/// # Errors
/// It is no registry.
pub(super) fn read<'a>(text: &'a str, url: &str) -> Result<Applications<'a>, Defect> {
    let wrong = |kind, why: &str| {
        Defect::new(kind, format!("what {url} answers is no registry of Eureka: {why}"), REMEDY)
    };
    let body: Object<Body<'a>> = serde_json::from_str(text).map_err(|e| {
        let Flaw { kind, words } = Flaw::new(&e, "has another form than Eureka's lists");
        wrong(kind, &format!("it {words}"))
    })?;
    let Object(Body { applications: Object(applications) }) = body;
    // An empty registry has a hash.
    if applications.hash.is_none() && applications.application.is_none() {
        return Err(wrong(FaultKind::Shape, "it has no applications"));
    }
    Ok(applications)
}

impl<'a> Applications<'a> {
    /// How many instances of the whole registry have which status, as the server counts them.
    pub(super) fn hash(&self) -> Option<String> {
        text(self.hash)
    }

    pub(super) fn applications(&self) -> &[Application<'a>] {
        let list = self.application.as_ref();
        list.map(|list| list.0.as_slice()).unwrap_or_default()
    }
}

impl<'a> Application<'a> {
    /// Its name in small letters.
    pub(super) fn name(&self) -> String {
        text(self.name).unwrap_or_default().to_lowercase()
    }

    pub(super) fn instances(&self) -> &[Instance<'a>] {
        let list = self.instance.as_ref();
        list.map(|list| list.0.as_slice()).unwrap_or_default()
    }
}

impl Instance<'_> {
    /// What tells it from the others of its application. Old clients give none; then it is the host, as in
    /// Eureka.
    pub(super) fn id(&self) -> String {
        let id = filled(self.instance_id).or_else(|| filled(self.host_name));
        id.or_else(|| filled(self.ip_addr)).unwrap_or_default()
    }

    /// Its status, or the word that is none.
    pub(super) fn status(&self) -> Result<Status, String> {
        let word = text(self.status).unwrap_or_default();
        let known = Status::ALL.into_iter().find(|status| status.name().eq_ignore_ascii_case(&word));
        known.ok_or_else(|| short(&word))
    }

    /// Where it is; empty: the registry does not say it.
    pub(super) fn host(&self, which: EurekaHost) -> String {
        let host = match which {
            EurekaHost::Ip => filled(self.ip_addr).or_else(|| filled(self.host_name)),
            EurekaHost::Name => filled(self.host_name),
        };
        host.unwrap_or_default()
    }

    /// Its secure port, or the other one.
    pub(super) fn port(&self, secure: bool) -> Port {
        let raw = if secure { self.secure_port } else { self.port };
        let object = raw.filter(|raw| raw.get().starts_with('{'));
        match object.and_then(|raw| serde_json::from_str::<PortFields<'_>>(raw.get()).ok()) {
            Some(fields) => {
                let is_false = |raw: &RawValue| word(raw).eq_ignore_ascii_case("false");
                let is_disabled = fields.enabled.is_some_and(is_false);
                Port { number: number(fields.number), is_enabled: !is_disabled }
            }
            None => Port { number: number(raw), is_enabled: true },
        }
    }

    /// Whether a delta says that it is gone.
    pub(super) fn is_deleted(&self) -> bool {
        text(self.action_type).is_some_and(|action| action.eq_ignore_ascii_case("DELETED"))
    }
}

/// The text that a value is.
fn text(raw: Option<&RawValue>) -> Option<String> {
    raw.filter(|raw| raw.get().starts_with('"')).and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// The same, where it is not empty.
fn filled(raw: Option<&RawValue>) -> Option<String> {
    text(raw).filter(|text| !text.is_empty())
}

/// A value with or without quotes.
fn word(raw: &RawValue) -> String {
    text(Some(raw)).unwrap_or_else(|| raw.get().to_owned())
}

fn number(raw: Option<&RawValue>) -> Option<i64> {
    raw.and_then(|raw| word(raw).trim().parse().ok())
}

/// An object: a derived reader alone would take a list for one.
#[derive(Debug)]
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Object)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A list of objects, or one by itself.
#[derive(Debug)]
struct ObjectList<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ObjectList<T>, D::Error> {
        deserializer.deserialize_any(ObjectListVisitor(PhantomData)).map(ObjectList)
    }
}

struct ObjectListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects, or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(Object(one)) = elements.next_element::<Object<T>>()? {
            all.push(one);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        Ok(vec![T::deserialize(MapAccessDeserializer::new(map))?])
    }

    /// Encoders that come from XML write an empty list so.
    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        if text.is_empty() { Ok(Vec::new()) } else { Err(E::invalid_type(Unexpected::Str(text), &self)) }
    }
}
