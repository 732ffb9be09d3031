//! Why a source gives no list, and how often that is worth a report.

use crate::place::Place;
use rustix::io::Errno;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use weir_plan::duration::show_ns;

/// A fault that lasts is reported again after this time.
const REMINDER_NS: u64 = 300_000_000_000;

/// What was reported so lately is not reported again, though a list came meanwhile: a file may be written badly and well in
/// turn.
const AGAIN_NS: u64 = 10_000_000_000;

/// The kinds of faults; each is reported once while there is no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The file, its folder, or what a symbolic link leads to does not exist.
    Missing,
    /// Weir may not read it, or not ask for it.
    Forbidden,
    /// It is a folder, a FIFO, a device or a socket.
    Irregular,
    /// Symbolic links lead in a circle.
    Circle,
    /// The system cannot read it.
    Unreadable,
    /// The system took too long to read it.
    Late,
    /// It has too many bytes.
    TooLarge,
    /// It lists too many members.
    TooMany,
    /// It is not UTF-8, or begins with a byte order mark.
    Encoding,
    /// It is empty, or ends inside the list.
    Cut,
    /// It is not JSON.
    Syntax,
    /// It is JSON, but not a list.
    Shape,
    /// A registry cannot be reached, or ends the connection.
    Unreachable,
    /// A registry answers with something else than a list.
    Unexpected,
    /// What is to be asked, or with which files, is wrong.
    Settings,
}

/// What is wrong with a list as a whole, wherever it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Its kind.
    pub kind: FaultKind,
    /// Where in the text, if the text is at fault.
    pub place: Option<Place>,
    /// What is wrong, without a full stop.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Defect {
    pub(crate) fn new(kind: FaultKind, problem: impl AsRef<str>, remedy: impl Into<String>) -> Defect {
        Defect { kind, place: None, problem: printable(problem.as_ref()), remedy: remedy.into() }
    }

    pub(crate) fn at_place(self, place: Place) -> Defect {
        Defect { place: Some(place), ..self }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl std::error::Error for Defect {}

/// A source gives no list. The last one that it gave stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The source in a few words; of a file its path.
    pub subject: String,
    /// What is wrong.
    pub defect: Defect,
    /// How long there has been no list; 0 at first.
    pub lasting: Duration,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject)?;
        if let Some(place) = self.defect.place {
            write!(f, ":{place}")?;
        }
        write!(f, ": {}", self.defect)?;
        match self.lasting.as_secs() {
            0 => Ok(()),
            s => write!(f, " (no list for {})", show_ns(i128::from(s) * 1_000_000_000)),
        }
    }
}

impl std::error::Error for Fault {}

/// Why changes of lists are seen by looks alone; each kind is reported once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwatchedKind {
    /// There is no inotify instance.
    Instance,
    /// There are too many watches.
    Watches,
    /// A folder cannot be watched.
    Folder,
}

/// The system does not say when lists change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwatched {
    /// Its kind.
    pub kind: UnwatchedKind,
    problem: String,
    remedy: &'static str,
}

impl Unwatched {
    /// No file can be watched at all.
    pub(crate) fn instance(e: Errno) -> Unwatched {
        let (problem, remedy) = match e {
            Errno::MFILE => (
                format!("no inotify instance is left: {e}"),
                "raise fs.inotify.max_user_instances, or the limit of open files",
            ),
            _ => (format!("there is no inotify: {e}"), "let weir use it, if 5s are too late"),
        };
        Unwatched { kind: UnwatchedKind::Instance, problem, remedy }
    }

    /// A folder cannot be watched.
    pub(crate) fn folder(folder: &Path, e: Errno) -> Unwatched {
        let (kind, problem, remedy) = match e {
            Errno::NOSPC => (
                UnwatchedKind::Watches,
                format!("no inotify watch is left: {e}"),
                "raise fs.inotify.max_user_watches",
            ),
            _ => (
                UnwatchedKind::Folder,
                printable(&format!("the folder {} cannot be watched: {e}", folder.display())),
                match e {
                    Errno::ACCESS => "let weir's user read the folder",
                    _ => "see to its file system, or move the file to another one",
                },
            ),
        };
        Unwatched { kind, problem, remedy }
    }
}

impl fmt::Display for Unwatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words("lists"))
    }
}

impl Unwatched {
    /// The same in words of other files than lists, such as `certificates`.
    pub fn words(&self, files: &str) -> String {
        let Unwatched { kind, problem, remedy } = self;
        let some = if *kind == UnwatchedKind::Instance { "" } else { "some " };
        format!("{some}{files} are not watched, but looked at every 5s: {problem}; {remedy}")
    }
}

/// A text from outside, safe for a terminal, a log and a page: U+FFFD is in the place of control characters,
/// also of those that turn the direction of a text, which then seems to be another one.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_turn(c) { '\u{fffd}' } else { c }).collect()
}

/// Whether a character begins or ends an embedding, an override or an isolate of the bidirectional algorithm.
fn is_turn(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Which faults of a source are reported: each kind once, then every five minutes.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Since when there has been no list.
    since_ns: Option<u64>,
    /// The kinds that were reported since then, and when.
    kinds: Vec<(FaultKind, u64)>,
    /// When the fault is reported again.
    reminder_ns: u64,
}

impl Reports {
    /// Notes a fault. Returns for how long there has been no list, if that is to be reported now.
    pub(crate) fn admit(&mut self, now_ns: u64, kind: FaultKind) -> Option<Duration> {
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        let reported = self.kinds.iter().find(|(reported, _)| *reported == kind);
        if reported.is_some() && now_ns < self.reminder_ns {
            return None;
        }
        self.kinds.retain(|(reported, _)| *reported != kind);
        self.kinds.push((kind, now_ns));
        self.reminder_ns = now_ns + REMINDER_NS;
        Some(Duration::from_nanos(now_ns - since_ns))
    }

    /// Notes a list.
    pub(crate) fn clear(&mut self, now_ns: u64) {
        self.since_ns = None;
        self.kinds.retain(|(_, at_ns)| now_ns < at_ns + AGAIN_NS);
        self.reminder_ns = self.kinds.iter().map(|(_, at_ns)| at_ns + AGAIN_NS).max().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn each_kind_is_reported_once_and_then_every_five_minutes() {
        let mut reports = Reports::default();
        let mut admit = |s: u64, kind| reports.admit(s * S, kind).map(|d| d.as_secs());
        assert_eq!(admit(10, FaultKind::Missing), Some(0));
        assert_eq!(admit(15, FaultKind::Missing), None);
        assert_eq!(admit(20, FaultKind::Cut), Some(10));
        assert_eq!(admit(25, FaultKind::Missing), None);
        assert_eq!(admit(315, FaultKind::Missing), None);
        assert_eq!(admit(320, FaultKind::Cut), Some(310));
        assert_eq!(admit(325, FaultKind::Missing), None);
        assert_eq!(admit(620, FaultKind::Missing), Some(610));
        reports.clear(630 * S);
        assert_eq!(reports.admit(631 * S, FaultKind::Missing), Some(Duration::ZERO));
        // A list each second changes nothing.
        for s in 632..641 {
            reports.clear(s * S);
            assert_eq!(reports.admit(s * S, FaultKind::Missing), None);
        }
        assert_eq!(reports.admit(641 * S, FaultKind::Cut), Some(Duration::from_secs(1)));
        reports.clear(645 * S);
        assert_eq!(reports.admit(651 * S, FaultKind::Missing), Some(Duration::ZERO));
    }

    #[test]
    fn a_text_from_outside_neither_controls_a_terminal_nor_turns_around() {
        assert_eq!(printable("a\u{1b}b\n\u{7f}\u{9b}"), "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(printable("a\u{202a}\u{202e}b\u{2066}\u{2069}"), "a\u{fffd}\u{fffd}b\u{fffd}\u{fffd}");
        let others = "\u{e9} \u{5d0} \u{1f600} \u{2029}\u{202f} \u{2065}";
        assert_eq!(printable(others), others);
    }

    #[test]
    fn a_fault_is_a_sentence_with_place_remedy_and_time() {
        let defect = Defect::new(FaultKind::Cut, "the text ends\u{1b}[1m", "write all of it");
        let fault = |defect, s| {
            let lasting = Duration::from_secs(s);
            Fault { subject: "/a/b.json".into(), defect, lasting }.to_string()
        };
        assert_eq!(fault(defect.clone(), 0), "/a/b.json: the text ends\u{fffd}[1m; write all of it");
        let defect = defect.at_place(Place { line: 3, column: 7 });
        assert_eq!(
            fault(defect, 310),
            "/a/b.json:3:7: the text ends\u{fffd}[1m; write all of it (no list for 310s)"
        );
    }
}
