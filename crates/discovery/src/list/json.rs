//! The list of `find.file`: a JSON array of addresses, of objects with an address, or of Prometheus' target groups.
//!
//! The text is cut into raw values first, which know where they are: a wrong entry is left out with its line and
//! column, and only a text that is no JSON array fails as a whole. Numbers stay text until they are read here, so that
//! `serde_json`'s feature `arbitrary_precision`, which `starlark` switches on for the whole program, changes nothing.

use super::{Builder, MOST_BYTES, MOST_ENTRIES, Member, Objection, Snapshot, State, too_many};
use crate::fault::{Defect, FaultKind};
use crate::place::{self, Place, Places};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::fmt;
use std::path::Path;
use weir_plan::address::{self, Address};
use weir_plan::http::short;
use weir_plan::ranges::{WEIGHTS, wrong_weight};

/// The remedy where the file is something else.
const EXAMPLE: &str = "write a JSON array, such as [\"10.0.0.1:8080\"]";

/// The remedy of a mistake.
const CORRECT: &str = "correct it there: a list is a JSON array, such as [\"10.0.0.1:8080\"]";

/// The remedy of half a list: a reader sees a renamed file whole.
const RENAME: &str = "write the whole list to another file of its folder, then rename that over this one";

/// The remedy of another encoding.
const UTF8: &str = "save it as UTF-8 without a byte order mark";

/// Reads a list.
///
/// # Errors
/// Bytes that are no list of members, with line and column.
pub fn parse(bytes: &[u8]) -> Result<Snapshot, Defect> {
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large());
    }
    let text = decode(bytes)?;
    judge_beginning(text)?;
    let mut reader =
        Reader { text, places: Places::new(text), list: Builder::default(), entries: 0, failed: None };
    let mut json = serde_json::Deserializer::from_str(text);
    let read = json.deserialize_seq(Elements(&mut |raw, number| reader.read_entry(raw, number)));
    let ended = read.and_then(|()| json.end());
    if let Some(defect) = reader.failed {
        return Err(defect);
    }
    ended.map_err(|e| malformed(text, &e))?;
    Ok(reader.list.finish())
}

/// The list has more bytes than are read.
pub(crate) fn too_large() -> Defect {
    Defect::new(
        FaultKind::TooLarge,
        format!("the list has more than {} MiB", MOST_BYTES >> 20),
        "divide it into several files, each with a fleet of its own",
    )
}

/// The text of these bytes.
fn decode(bytes: &[u8]) -> Result<&str, Defect> {
    let encoding =
        |problem: &str, place| Err(Defect::new(FaultKind::Encoding, problem, UTF8).at_place(place));
    match bytes {
        [0xef, 0xbb, 0xbf, ..] => return encoding("the file begins with a byte order mark", Place::START),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => {
            return encoding("the file is UTF-16 or UTF-32", Place::START);
        }
        _ => {}
    }
    std::str::from_utf8(bytes).or_else(|e| {
        let valid = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
        let place = Places::new(valid).find(valid.len());
        match e.error_len() {
            Some(_) => encoding("the file is not UTF-8", place),
            None => Err(cut(place)),
        }
    })
}

/// Judges what every text has that is a list.
fn judge_beginning(text: &str) -> Result<(), Defect> {
    let start = text.len() - text.trim_start_matches([' ', '\t', '\r', '\n']).len();
    let wrong = |kind, problem: &str, remedy: &str| {
        Err(Defect::new(kind, problem, remedy).at_place(Places::new(text).find(start)))
    };
    match text.as_bytes().get(start) {
        Some(b'[') => Ok(()),
        None => wrong(FaultKind::Cut, "the file is empty", "write [] if there are no members"),
        Some(b'{') => {
            wrong(FaultKind::Shape, "the file is an object, not a list", "put it in brackets: [{...}]")
        }
        Some(_) => wrong(FaultKind::Shape, "the file is not a list", EXAMPLE),
    }
}

/// What is wrong with a text that is not JSON.
fn malformed(text: &str, e: &serde_json::Error) -> Defect {
    let mut places = Places::new(text);
    if e.classify() == Category::Eof {
        return cut(places.find(text.len()));
    }
    let place = places.find(place::offset(text, e.line(), e.column()));
    Defect::new(FaultKind::Syntax, format!("the file is not JSON: {}", message(e)), CORRECT).at_place(place)
}

fn cut(end: Place) -> Defect {
    Defect::new(FaultKind::Cut, "the file ends inside the list", RENAME).at_place(end)
}

/// What an error says, without its place.
fn message(e: &serde_json::Error) -> String {
    let whole = e.to_string();
    whole.rsplit_once(" at line ").map(|(message, _)| message.to_owned()).unwrap_or(whole)
}

/// Gives each element of an array, and its number from 1, to a function, until that returns false.
struct Elements<'f, 'de>(&'f mut dyn FnMut(&'de RawValue, usize) -> bool);

impl<'de> Visitor<'de> for Elements<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(raw) = elements.next_element::<&RawValue>()? {
            number += 1;
            if !(self.0)(raw, number) {
                return Err(A::Error::custom("more than is read"));
            }
        }
        Ok(())
    }
}

/// What an entry that is an object may say; other keys are ignored.
#[derive(Default)]
struct Fields<'a> {
    addr: Option<&'a RawValue>,
    weight: Option<&'a RawValue>,
    state: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    targets: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Key {
    Addr,
    Weight,
    State,
    Id,
    Targets,
    #[serde(other)]
    Ignored,
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<'de>, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Fields::default();
                while let Some(key) = map.next_key()? {
                    let value: &RawValue = map.next_value()?;
                    let (field, name) = match key {
                        Key::Addr => (&mut fields.addr, "addr"),
                        Key::Weight => (&mut fields.weight, "weight"),
                        Key::State => (&mut fields.state, "state"),
                        Key::Id => (&mut fields.id, "id"),
                        Key::Targets => (&mut fields.targets, "targets"),
                        Key::Ignored => continue,
                    };
                    if field.replace(value).is_some() {
                        return Err(A::Error::duplicate_field(name));
                    }
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A list while its entries are read.
struct Reader<'a> {
    text: &'a str,
    places: Places<'a>,
    list: Builder,
    /// The number of entries so far, and of addresses in groups.
    entries: usize,
    /// Why the list is none.
    failed: Option<Defect>,
}

/// A value that does not fit, and why.
type Misfit<'a> = (&'a RawValue, Objection);

impl<'a> Reader<'a> {
    /// Reads an entry. Returns whether the list can go on.
    fn read_entry(&mut self, raw: &'a RawValue, number: usize) -> bool {
        if !self.count(raw) {
            return false;
        }
        let added = match raw.get().as_bytes().first() {
            Some(b'"') => self.add_plain(raw, number),
            Some(b'{') => self.read_object(raw, number),
            _ => {
                let problem = format!("an entry is an address or an object, not {}", describe(raw));
                Err((
                    raw,
                    Objection::new(problem, "write \"10.0.0.1:8080\" or {\"addr\": \"10.0.0.1:8080\"}"),
                ))
            }
        };
        if let Err((raw, objection)) = added {
            self.leave_out(raw, number, objection);
        }
        self.failed.is_none()
    }

    fn read_object(&mut self, raw: &'a RawValue, number: usize) -> Result<(), Misfit<'a>> {
        let fields: Fields<'a> = serde_json::from_str(raw.get()).map_err(|e| {
            let problem = format!("the entry cannot be read: {}", message(&e));
            (raw, Objection::new(problem, "each key must be a text, and there once"))
        })?;
        match (fields.addr, fields.targets) {
            (None, Some(targets)) => self.read_group(targets, number),
            (Some(addr), None) => {
                let (weight, state, id) =
                    (read_weight(fields.weight)?, read_state(fields.state)?, read_id(fields.id)?);
                let (address, addr_text) = read_address(addr)?;
                self.add(addr, number, address, Member { addr: addr_text, id, weight, state });
                Ok(())
            }
            (Some(_), Some(targets)) => {
                let problem = "an entry has either \"addr\" or \"targets\", not both";
                Err((targets, Objection::new(problem, "make two entries of it")))
            }
            (None, None) => {
                Err((raw, Objection::new("the entry has no address", "write \"addr\": \"10.0.0.1:8080\"")))
            }
        }
    }

    /// Reads the addresses of a group; each that is wrong is left out by itself.
    fn read_group(&mut self, targets: &'a RawValue, number: usize) -> Result<(), Misfit<'a>> {
        if !targets.get().starts_with('[') {
            let problem = format!("\"targets\" must be a list of addresses, not {}", describe(targets));
            return Err((targets, Objection::new(problem, "write \"targets\": [\"10.0.0.1:8080\"]")));
        }
        let mut json = serde_json::Deserializer::from_str(targets.get());
        let mut read = |raw, _: usize| {
            if !self.count(raw) {
                return false;
            }
            if let Err((raw, objection)) = self.add_plain(raw, number) {
                self.leave_out(raw, number, objection);
            }
            self.failed.is_none()
        };
        // The text around it has been read before, so that it fails only where a list is too long.
        let _ = json.deserialize_seq(Elements(&mut read));
        Ok(())
    }

    /// Counts an entry. Returns whether it may be read.
    fn count(&mut self, raw: &'a RawValue) -> bool {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            self.fail(raw, too_many(MOST_ENTRIES, "entries"));
        }
        self.failed.is_none()
    }

    /// Ends the list.
    fn fail(&mut self, raw: &'a RawValue, defect: Defect) {
        self.failed = Some(defect.at_place(self.places.find(offset(self.text, raw))));
    }

    /// Adds the member of an address alone.
    fn add_plain(&mut self, raw: &'a RawValue, number: usize) -> Result<(), Misfit<'a>> {
        let (address, addr) = read_address(raw)?;
        self.add(raw, number, address, Member { addr, id: None, weight: 1.0, state: State::Up });
        Ok(())
    }

    fn add(&mut self, raw: &'a RawValue, number: usize, address: Address, member: Member) {
        match self.list.add(address, member) {
            Ok(None) => {}
            Ok(Some(objection)) => self.leave_out(raw, number, objection),
            Err(defect) => self.fail(raw, defect),
        }
    }

    fn leave_out(&mut self, raw: &'a RawValue, number: usize, objection: Objection) {
        let (text, places) = (self.text, &mut self.places);
        self.list.leave_out(number, objection, || Some(places.find(offset(text, raw))));
    }
}

/// Where in the text a value is that was cut out of it.
fn offset(text: &str, raw: &RawValue) -> usize {
    raw.get().as_ptr().addr().saturating_sub(text.as_ptr().addr())
}

fn read_address(raw: &RawValue) -> Result<(Address, String), Misfit<'_>> {
    let wrong = |problem: String, remedy: Option<String>| Err((raw, Objection { problem, remedy }));
    let example = || Some("write \"10.0.0.1:8080\"".to_owned());
    let Some(text) = read_text(raw) else {
        return wrong(format!("an address must be a text, not {}", describe(raw)), example());
    };
    if let Err(e) = address::server(&text) {
        // A port alone is the address of a listener.
        let remedy = e.remedy.filter(|_| text.parse::<u64>().is_err());
        return wrong(e.problem, remedy.or_else(example));
    }
    match Address::parse(&text) {
        Some(Address::Unix(path)) if Path::new(&path).is_dir() => wrong(
            format!("\"{}\" is a folder, not a socket", short(&text)),
            Some("name the socket in it".to_owned()),
        ),
        Some(address) => Ok((address, text)),
        None => wrong(format!("\"{}\" is not an address", short(&text)), example()),
    }
}

fn read_weight(raw: Option<&RawValue>) -> Result<f64, Misfit<'_>> {
    let Some(raw) = raw else { return Ok(1.0) };
    let is_number = raw.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let weight = raw.get().parse::<f64>().ok().filter(|weight| is_number && wrong_weight(*weight).is_none());
    weight.ok_or_else(|| {
        let (least, most) = WEIGHTS;
        let problem = match is_number {
            true => format!("the weight must be 0, or from {least} to {most}, not {}", short(raw.get())),
            false => format!("the weight must be a number, not {}", describe(raw)),
        };
        (raw, Objection::new(problem, "write \"weight\": 1"))
    })
}

fn read_state(raw: Option<&RawValue>) -> Result<State, Misfit<'_>> {
    let Some(raw) = raw else { return Ok(State::Up) };
    match read_text(raw).as_deref() {
        Some("up") => Ok(State::Up),
        Some("drain") => Ok(State::Drain),
        _ => {
            let problem = format!("the state must be \"up\" or \"drain\", not {}", describe(raw));
            Err((raw, Objection::new(problem, "leave the entry out if the member is down")))
        }
    }
}

fn read_id(raw: Option<&RawValue>) -> Result<Option<String>, Misfit<'_>> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(None) };
    read_text(raw).map(Some).ok_or_else(|| {
        let problem = format!("the id must be a text, not {}", describe(raw));
        (raw, Objection::new(problem, "put it in quotes"))
    })
}

/// The text that a value is; `None` where it is another, or has half a surrogate pair.
fn read_text(raw: &RawValue) -> Option<String> {
    raw.get().starts_with('"').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// A value in words.
fn describe(raw: &RawValue) -> String {
    match raw.get().as_bytes().first() {
        Some(b'"') => read_text(raw).map_or_else(
            || "a text with half a surrogate pair".to_owned(),
            |text| format!("the text \"{}\"", short(&text)),
        ),
        Some(b'{') => "an object".to_owned(),
        Some(b'[') => "a list".to_owned(),
        Some(b't' | b'f' | b'n') => raw.get().to_owned(),
        _ => format!("the number {}", short(raw.get())),
    }
}
