//! How many members a change adds, removes and sets, and which, in numbers and in words.

use super::fleet::MemberKey;
use std::ops::AddAssign;
use weir_discovery::printable;
use weir_plan::http::short;

/// The most members of one kind of change that are named; the others are counted.
const MOST_NAMES: usize = 5;

/// Numbers of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub added: u64,
    pub removed: u64,
    /// Those that have another weight, or begin or cease to drain.
    pub changed: u64,
}

impl Changes {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Changes::default()
    }

    /// In words: `+2 -1 members, 3 changed`.
    pub fn words(self) -> String {
        let Changes { added, removed, changed } = self;
        let of = if added + removed == 1 { "" } else { "s" };
        match (added + removed, changed) {
            (0, 1) => "1 member changed".to_owned(),
            (0, n) => format!("{n} members changed"),
            (_, 0) => format!("+{added} -{removed} member{of}"),
            (_, n) => format!("+{added} -{removed} member{of}, {n} changed"),
        }
    }
}

impl AddAssign for Changes {
    fn add_assign(&mut self, more: Changes) {
        self.added += more.added;
        self.removed += more.removed;
        self.changed += more.changed;
    }
}

/// What happens to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberEvent {
    Added,
    Removed,
    /// Removed since it was withdrawn, and has failed.
    Failed,
    /// Removed since it was withdrawn for its grace.
    Expired,
    Changed,
}

/// The members that changes concern, by name: the first of each kind, the others counted.
#[derive(Clone, Debug, Default)]
pub(super) struct MemberNames {
    added: NameList,
    removed: NameList,
    changed: NameList,
}

/// Some names, and the number of others.
#[derive(Clone, Debug, Default)]
struct NameList {
    names: Vec<String>,
    more: u64,
}

impl MemberNames {
    /// Notes what happens to a member.
    pub fn note(&mut self, event: MemberEvent, member: &MemberKey) {
        let (list, why) = match event {
            MemberEvent::Added => (&mut self.added, ""),
            MemberEvent::Removed => (&mut self.removed, ""),
            MemberEvent::Failed => (&mut self.removed, " (withdrawn, failed)"),
            MemberEvent::Expired => (&mut self.removed, " (grace over)"),
            MemberEvent::Changed => (&mut self.changed, ""),
        };
        list.add(|| member.words() + why);
    }

    /// In words, as `weir find --watch` has them, with why a withdrawn member goes: `+ 10.0.0.3:80  - 10.0.0.1:80 (grace over)
    /// and 2 more`.
    pub fn words(&self) -> String {
        let kinds = [("+", &self.added), ("-", &self.removed), ("~", &self.changed)];
        let some = kinds.iter().filter(|(_, list)| !list.names.is_empty());
        let words = some.map(|(sign, list)| {
            let names = list.names.join(", ");
            if list.more > 0 {
                format!("{sign} {names} and {} more", list.more)
            } else {
                format!("{sign} {names}")
            }
        });
        words.collect::<Vec<_>>().join("  ")
    }
}

impl AddAssign for MemberNames {
    fn add_assign(&mut self, others: MemberNames) {
        let MemberNames { added, removed, changed } = others;
        for (list, others) in
            [(&mut self.added, added), (&mut self.removed, removed), (&mut self.changed, changed)]
        {
            others.names.into_iter().for_each(|name| list.add(|| name));
            list.more += others.more;
        }
    }
}

impl NameList {
    /// Adds a name, which is made if it is one of the first.
    fn add(&mut self, name: impl FnOnce() -> String) {
        if self.names.len() < MOST_NAMES { self.names.push(name()) } else { self.more += 1 }
    }
}

impl MemberKey {
    /// Its address, and its id where it has one, as a log has them.
    fn words(&self) -> String {
        let id = self.id.as_ref().map(|id| format!(" ({})", short(id))).unwrap_or_default();
        printable(&format!("{}{id}", short(&self.addr)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_a_few_words() {
        let words = |added, removed, changed| Changes { added, removed, changed }.words();
        assert_eq!(words(2, 1, 0), "+2 -1 members");
        assert_eq!(words(1, 0, 3), "+1 -0 member, 3 changed");
        assert_eq!((words(0, 0, 1), words(0, 0, 2)), ("1 member changed".into(), "2 members changed".into()));
    }

    #[test]
    fn members_are_named_and_many_are_counted() {
        let key =
            |addr: &str, id: Option<&str>| MemberKey { addr: addr.to_owned(), id: id.map(str::to_owned) };
        let mut names = MemberNames::default();
        assert_eq!(names.words(), "");
        names.note(MemberEvent::Removed, &key("10.0.0.1:80", Some("i-1\u{1b}")));
        names.note(MemberEvent::Added, &key("10.0.0.3:80", None));
        assert_eq!(names.words(), "+ 10.0.0.3:80  - 10.0.0.1:80 (i-1\u{fffd})");
        let mut others = MemberNames::default();
        (0..17).for_each(|n| others.note(MemberEvent::Changed, &key(&format!("h{n}:1"), None)));
        others.note(MemberEvent::Added, &key("10.0.0.4:80", None));
        names += others;
        let changed = "~ h0:1, h1:1, h2:1, h3:1, h4:1 and 12 more";
        let want = format!("+ 10.0.0.3:80, 10.0.0.4:80  - 10.0.0.1:80 (i-1\u{fffd})  {changed}");
        assert_eq!(names.words(), want);
    }
}
