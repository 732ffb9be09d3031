//! How many members a change adds, removes and sets, in numbers and in words.

use std::ops::AddAssign;

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
}
