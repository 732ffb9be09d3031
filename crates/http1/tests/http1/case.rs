//! A golden case: a file with a reason, the codec's settings, the input bytes and the expected result.
//!
//! ```text
//! # Why it is so (section)
//! response                      what the stream is: request (default) or response
//! trusted 10.0.0.0/8            and anything else that `Case::tell` knows
//! == in
//! HTTP/1.1 200 OK\r\n
//! \r\n
//! == out
//! ```

use crate::escape::{escape, unescape};
use crate::way::{Event, Setup, at_once};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use weir_http1::{Networks, Version};

pub struct Case {
    pub path: PathBuf,
    pub setup: Setup,
    pub responses: bool,
    pub bytes: Vec<u8>,
    /// The file before `== out`.
    pub given: String,
    pub expected: String,
}

impl Case {
    pub fn outcome(&self) -> String {
        describe(&at_once(&self.setup, self.responses, &self.bytes))
    }

    fn tell(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words = || rest.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        match word {
            "request" => {}
            "response" => self.responses = true,
            "peer" => self.setup.peer = rest.parse().ok(),
            "https" => self.setup.https = true,
            "port" => self.setup.port = rest.parse().ok(),
            "trusted" => self.setup.trusted = Networks::parse(&words()).unwrap(),
            "upgrades" => self.setup.upgrades = words(),
            "connect" => self.setup.connect = words(),
            "raw" => self.setup.raw_paths = true,
            "target" => self.setup.edits.target = Some(rest.into()),
            "set" => {
                let (name, value) = rest.split_once(": ").unwrap();
                self.setup.edits.set.push((name.into(), value.into()));
            }
            "remove" => self.setup.edits.remove.push(rest.into()),
            "asked-head" => {
                self.setup.asked.head = true;
                self.setup.client.head = true;
            }
            "asked-connect" => self.setup.asked.connect = true,
            "asked-upgrade" => self.setup.asked.upgrade = true,
            "client-1.0" => self.setup.client.version = Version::H10,
            "client-trailers" => self.setup.client.te_trailers = true,
            "client-close" => self.setup.client.close = true,
            "client-keep-alive" => self.setup.client.keep_alive_10 = true,
            _ => panic!("{}: {word} means nothing", self.path.display()),
        }
    }
}

/// The result of a stream, as text.
pub fn describe(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        let (what, out) = match event {
            Event::Whole { out, kept: true, end } => (format!("whole, {end} bytes read"), Some(out)),
            Event::Whole { out, kept: false, end } => {
                (format!("whole, {end} bytes read, then closed"), Some(out))
            }
            Event::Open { out } => ("cut short".to_string(), Some(out)),
            Event::Tunnel { out } => ("tunnel".to_string(), Some(out)),
            Event::Here(here) => (format!("answered here: {here:?}"), None),
            Event::Refused(rule) => (format!("refused: {} {}", rule.status, rule.name), None),
        };
        writeln!(text, "-- {what}").unwrap();
        if let Some(out) = out {
            text.push_str(&escape(out));
        }
    }
    if text.is_empty() {
        text.push_str("-- nothing yet\n");
    }
    text
}

/// All golden cases, in order of their names.
pub fn all() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(read).collect()
}

#[allow(clippy::disallowed_methods, reason = "cases are files")]
fn read(path: PathBuf) -> Case {
    let text = std::fs::read_to_string(&path).unwrap();
    let (given, expected) = text.split_once("== out\n").unwrap_or((&text, ""));
    let (told, bytes) = given.split_once("== in\n").unwrap_or_else(|| panic!("{}: no bytes", path.display()));
    let mut case = Case {
        path,
        setup: Setup::plain(),
        responses: false,
        bytes: unescape(bytes),
        given: given.to_string(),
        expected: expected.to_string(),
    };
    assert!(told.starts_with("# "), "{}: says no reason", case.path.display());
    for line in told.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        case.tell(line);
    }
    case
}
