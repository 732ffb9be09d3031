//! What the sources of fleets list: text, the JSON of `docs/spec/serving.md#find` (`weir.find/1`), and what
//! differs from one list to the next.

use crate::json::Lines;
use crate::number::count;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use weir_discovery::{Member, State, printable};

/// A fleet as its source lists it.
#[derive(Clone, Debug)]
pub struct ListedFleet<'a> {
    /// Its name.
    pub fleet: &'a str,
    /// The source in a few words.
    pub source: &'a str,
    /// The members of the last list; none if there was no list.
    pub members: &'a [Member],
    /// Why there is no list.
    pub error: Option<String>,
}

/// The JSON `weir.find/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    fleets: Vec<FleetEntry<'a>>,
}

#[derive(Serialize)]
struct FleetEntry<'a> {
    fleet: &'a str,
    source: &'a str,
    members: Vec<MemberEntry<'a>>,
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct MemberEntry<'a> {
    addr: &'a str,
    id: Option<&'a str>,
    weight: f64,
    state: &'static str,
}

impl<'a> Document<'a> {
    fn new(fleets: &'a [ListedFleet<'a>]) -> Document<'a> {
        let member = |member: &'a Member| MemberEntry {
            addr: &member.addr,
            id: member.id.as_deref(),
            weight: member.weight,
            state: name(member.state),
        };
        let entry = |listed: &'a ListedFleet<'a>| FleetEntry {
            fleet: listed.fleet,
            source: listed.source,
            members: listed.members.iter().map(member).collect(),
            error: listed.error.as_deref(),
        };
        Document { schema: "weir.find/1", fleets: fleets.iter().map(entry).collect() }
    }
}

/// Writes the document with a line for each member.
pub(crate) fn json(fleets: &[ListedFleet<'_>], out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Lines::default());
    Document::new(fleets).serialize(&mut serializer).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// Writes the document on one line.
pub(crate) fn json_line(fleets: &[ListedFleet<'_>], out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &Document::new(fleets))?;
    out.write_all(b"\n")
}

/// Writes a heading for each fleet and a line for each of its members.
pub(crate) fn text(fleets: &[ListedFleet<'_>], out: &mut dyn Write) -> io::Result<()> {
    fleets.iter().try_for_each(|listed| {
        writeln!(out, "{}", heading(listed))?;
        write_members(listed.members, out)
    })
}

fn heading(listed: &ListedFleet<'_>) -> String {
    let ListedFleet { fleet, source, members, error } = listed;
    let n = count(members.len() as u64);
    let of = if members.len() == 1 { "member" } else { "members" };
    match error {
        None => format!("{fleet} ({source}): {n} {of}"),
        Some(why) if members.is_empty() => format!("{fleet} ({source}): no list: {why}"),
        Some(why) => format!("{fleet} ({source}): {n} {of} of the last list; none comes now: {why}"),
    }
}

/// Writes address, state, weight and id of each, one below the other.
fn write_members(members: &[Member], out: &mut dyn Write) -> io::Result<()> {
    let cells = |member: &Member| {
        let id = member.id.as_deref().map(printable).unwrap_or_default();
        [printable(&member.addr), name(member.state).to_owned(), format!("weight {}", member.weight), id]
    };
    let rows: Vec<[String; 4]> = members.iter().map(cells).collect();
    let mut widths = [0; 4];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let [a, s, w, _] = widths;
    for [addr, state, weight, id] in &rows {
        let line = format!("  {addr:<a$}  {state:<s$}  {weight:<w$}  {id}");
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// What differs between two lists, in words: members that came, went, and changed. `None`: nothing.
pub(crate) fn changes(before: &[Member], now: &[Member]) -> Option<String> {
    let (known, listed) = (by_address(before), by_address(now));
    let (mut words, mut changed) = (Vec::new(), Vec::new());
    for member in now {
        match known.get(member.addr.as_str()) {
            None => words.push(format!("+ {}", described(member))),
            Some(old) if old.id != member.id => {
                words.push(format!("+ {}{}", described(member), id_of(member)));
            }
            Some(old) => changed.extend(difference(old, member)),
        }
    }
    for old in before {
        match listed.get(old.addr.as_str()) {
            None => words.push(format!("- {}", printable(&old.addr))),
            Some(member) if member.id != old.id => {
                words.push(format!("- {}{}", printable(&old.addr), id_of(old)));
            }
            Some(_) => {}
        }
    }
    words.append(&mut changed);
    (!words.is_empty()).then(|| words.join("  "))
}

fn by_address(members: &[Member]) -> BTreeMap<&str, &Member> {
    members.iter().map(|member| (member.addr.as_str(), member)).collect()
}

/// A member that came: its address, and what is unusual about it.
fn described(member: &Member) -> String {
    let mut words = printable(&member.addr);
    if member.state == State::Drain {
        words.push_str(" drain");
    }
    if member.weight != 1.0 {
        words.push_str(&format!(" weight {}", member.weight));
    }
    words
}

/// What tells two members of one address apart.
fn id_of(member: &Member) -> String {
    member.id.as_deref().map_or_else(|| " without id".to_owned(), |id| format!(" id {}", printable(id)))
}

/// What a member has become; `None`: it is as it was.
fn difference(before: &Member, now: &Member) -> Option<String> {
    let mut words = format!("~ {}", printable(&now.addr));
    if before.state != now.state {
        words.push_str(&format!(" {}", name(now.state)));
    }
    if before.weight != now.weight {
        words.push_str(&format!(" weight {}", now.weight));
    }
    (before.state != now.state || before.weight != now.weight).then_some(words)
}

fn name(state: State) -> &'static str {
    match state {
        State::Up => "up",
        State::Drain => "drain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(addr: &str, id: Option<&str>, weight: f64, state: State) -> Member {
        Member { addr: addr.to_owned(), id: id.map(str::to_owned), weight, state }
    }

    fn up(addr: &str) -> Member {
        member(addr, None, 1.0, State::Up)
    }

    fn written(
        fleets: &[ListedFleet<'_>],
        write: impl Fn(&[ListedFleet<'_>], &mut dyn Write) -> io::Result<()>,
    ) -> String {
        let mut out = Vec::new();
        write(fleets, &mut out).expect("memory");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn members_are_one_below_the_other() {
        let members =
            [up("10.0.0.1:80"), member("10.0.0.12:8080", Some("a\u{1b}b"), 0.5, State::Drain), up("a:1")];
        let error = Some("it does not answer; see to it".to_owned());
        let fleets = [
            ListedFleet { fleet: "api", source: "consul web", members: &members, error: None },
            ListedFleet { fleet: "one", source: "file one.json", members: &members[..1], error: None },
            ListedFleet { fleet: "none", source: "dns none:80", members: &[], error: error.clone() },
            ListedFleet { fleet: "old", source: "dns old:80", members: &members[..1], error },
        ];
        let wanted = "\
api (consul web): 3 members
  10.0.0.1:80     up     weight 1
  10.0.0.12:8080  drain  weight 0.5  a\u{fffd}b
  a:1             up     weight 1
one (file one.json): 1 member
  10.0.0.1:80  up  weight 1
none (dns none:80): no list: it does not answer; see to it
old (dns old:80): 1 member of the last list; none comes now: it does not answer; see to it
  10.0.0.1:80  up  weight 1
";
        assert_eq!(written(&fleets, text), wanted);
    }

    #[test]
    fn the_document_has_a_line_for_each_member_or_is_one_line() {
        let members = [up("a:1"), member("b:2", Some("i-2"), 0.5, State::Drain)];
        let fleets = [
            ListedFleet { fleet: "api", source: "consul web", members: &members, error: None },
            ListedFleet { fleet: "x", source: "file x", members: &[], error: Some("gone".to_owned()) },
        ];
        let line = written(&fleets, json_line);
        let wanted = concat!(
            r#"{"schema":"weir.find/1","fleets":[{"fleet":"api","source":"consul web","members":["#,
            r#"{"addr":"a:1","id":null,"weight":1.0,"state":"up"},"#,
            r#"{"addr":"b:2","id":"i-2","weight":0.5,"state":"drain"}],"error":null},"#,
            r#"{"fleet":"x","source":"file x","members":[],"error":"gone"}]}"#,
            "\n"
        );
        assert_eq!(line, wanted);
        let document = written(&fleets, json);
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&document), read(&line));
        let member = r#"{"addr": "a:1", "id": null, "weight": 1.0, "state": "up"},"#;
        assert!(document.lines().any(|line| line.trim() == member), "{document}");
    }

    #[test]
    fn changes_are_what_came_what_went_and_what_became_of_the_others() {
        let before = [up("a:1"), up("b:1"), member("c:1", Some("1"), 1.0, State::Up), up("d:1")];
        assert_eq!(changes(&before, &before), None);
        let now = [
            member("b:1", None, 1.0, State::Drain),
            member("c:1", Some("2"), 1.0, State::Up),
            member("d:1", None, 2.0, State::Up),
            member("e:1", None, 0.5, State::Drain),
        ];
        let words = "+ c:1 id 2  + e:1 drain weight 0.5  - a:1  - c:1 id 1  ~ b:1 drain  ~ d:1 weight 2";
        assert_eq!(changes(&before, &now).as_deref(), Some(words));
        assert_eq!(changes(&[], &now[..1]).as_deref(), Some("+ b:1 drain"));
        // Their order says nothing.
        assert_eq!(changes(&before[..2], &[up("b:1"), up("a:1")]), None);
    }
}
