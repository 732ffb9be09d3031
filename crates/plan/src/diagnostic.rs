//! Diagnostics: what is wrong with a file, where, and what to do about it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The file cannot be run.
    Error,
    /// It can be run, but is almost certainly a mistake.
    Warning,
    /// It may be intended, but is worth a look; results do not mention it.
    Hint,
    /// Output of the file's `print`; shown by `weir check` alone.
    Printed,
}

/// One finding. `Display` renders it as rustc would: message, place, line of source, caret, help.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file, as the user named it; `None` where no file is at fault (a wrong `-p`).
    pub file: Option<String>,
    /// The line, from 1; 0 where no line is at fault.
    pub line: u32,
    /// The column of its first character, from 1; 0 where no line is at fault.
    pub column: u32,
    /// The message, one sentence without a full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The line of source, as much as is shown of it.
    pub excerpt: Option<Excerpt>,
}

impl Diagnostic {
    /// An error that lies in no file.
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            file: None,
            line: 0,
            column: 0,
            message: message.into(),
            help: None,
            excerpt: None,
        }
    }

    /// Output of a file's `print`: at most a thousand characters, safe for a terminal.
    pub fn printed(text: &str) -> Diagnostic {
        let shown = text.chars().take(1000).map(|c| if c.is_control() && c != '\n' { ' ' } else { c });
        Diagnostic { severity: Severity::Printed, ..Diagnostic::error(shown.collect::<String>()) }
    }

    /// The same with the name of a file, but no line.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Diagnostic {
        self.file = Some(file.into());
        self
    }

    /// The same with a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The same at `file:line:column`, as a plan keeps places: without the line itself.
    #[must_use]
    pub fn at_span(self, span: &str) -> Diagnostic {
        let mut parts = span.rsplitn(3, ':');
        let column = parts.next().and_then(|c| c.parse().ok());
        let line = parts.next().and_then(|l| l.parse().ok());
        match (column, line, parts.next()) {
            (Some(column), Some(line), Some(file)) => {
                Diagnostic { file: Some(file.to_owned()), line, column, ..self }
            }
            _ => self,
        }
    }

    /// The same at a place in a file.
    #[must_use]
    pub fn with_location(mut self, at: &Location) -> Diagnostic {
        self.file = Some(at.file.clone());
        self.line = at.line;
        self.column = at.column;
        self.excerpt = Some(at.excerpt.clone());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.severity == Severity::Printed {
            return write!(f, "{}: {}", self.file.as_deref().unwrap_or_default(), self.message);
        }
        let word = match self.severity {
            Severity::Printed => "print",
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "hint",
        };
        write!(f, "{word}: {}", self.message)?;
        let number = self.line.to_string();
        let margin = " ".repeat(if self.line > 0 { number.len() } else { 1 });
        match &self.file {
            Some(file) if self.line > 0 => write!(f, "\n{margin}--> {file}:{}:{}", self.line, self.column)?,
            Some(file) => write!(f, "\n{margin}--> {file}")?,
            None => {}
        }
        if let Some(Excerpt { text, from, upto }) = &self.excerpt {
            // Tabs would move the caret; control characters could do worse to a terminal.
            let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let (before, marked) = (*from as usize, upto.saturating_sub(*from).max(1) as usize);
            write!(f, "\n{margin} |\n{number} | {}", line.trim_end())?;
            write!(f, "\n{margin} | {}{}", " ".repeat(before), "^".repeat(marked))?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n{margin} = help: {help}")?;
        }
        Ok(())
    }
}

/// An error of the system without its number.
pub fn plainly(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// A place in a file, with its line of source. It is small, however long the line is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// What is shown of the line.
    pub excerpt: Excerpt,
}

impl Location {
    /// `file:line:column`.
    pub fn span(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What a message shows of a line of source, and what it marks there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Excerpt {
    /// The line, or a part of one that is long.
    text: String,
    /// The first character that is marked, from 0.
    from: u32,
    /// The character after the last that is marked.
    upto: u32,
}

impl Excerpt {
    /// Characters that are shown, at most.
    const MOST: usize = 160;
    /// Characters shown before the mark, of a line that is cut.
    const BEFORE: usize = 40;

    /// What is shown of a line, around the bytes that are marked. No more of the line is read than is shown: a generated
    /// file is one line, and has as many places as calls.
    pub fn around(line: &str, marked: Range<usize>) -> Excerpt {
        let before = line.get(..marked.start).unwrap_or(line);
        let is_whole = line.chars().take(Excerpt::MOST + 1).count() <= Excerpt::MOST;
        let begin = match before.char_indices().rev().take(Excerpt::BEFORE).last() {
            Some((at, _)) if !is_whole => at,
            _ => 0,
        };
        let chars = |range: Range<usize>| line.get(range).unwrap_or_default().chars();
        let from = chars(begin..before.len()).count();
        let marked = chars(marked).take(Excerpt::MOST - from).count();
        let text = chars(begin..line.len()).take(Excerpt::MOST).collect();
        // Both are at most `MOST`.
        Excerpt { text, from: from as u32, upto: (from + marked) as u32 }
    }

    /// The same, of which each character is shown as another.
    #[must_use]
    pub fn shown_as(self, show: impl FnOnce(&str) -> String) -> Excerpt {
        Excerpt { text: show(&self.text), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_like_rustc() {
        let at = Location {
            file: "a.star".into(),
            line: 12,
            column: 5,
            excerpt: Excerpt::around("x = foo(1)", 4..7),
        };
        let d = Diagnostic::error("no such thing").with_location(&at).help("take another");
        assert_eq!(
            d.to_string(),
            "error: no such thing\n  --> a.star:12:5\n   |\n12 | x = foo(1)\n   |     ^^^\n   = help: take another"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let line = format!("{}foo{}", "x".repeat(500), "y".repeat(500));
        for (marked, shown) in [(500..503, "^^^"), (500..1003, "^^^"), (0..1003, "^^^"), (1003..1003, "^")] {
            let at = Location {
                file: "a.star".into(),
                line: 1,
                column: 501,
                excerpt: Excerpt::around(&line, marked.clone()),
            };
            let text = Diagnostic::error("m").with_location(&at).to_string();
            assert!(text.lines().all(|l| l.len() < 180) && text.ends_with(shown), "{marked:?}: {text}");
        }
        let text = Excerpt::around(&line, 500..503);
        assert_eq!((text.text.len(), text.from, text.upto, &text.text[40..43]), (160, 40, 43, "foo"));
    }
}
