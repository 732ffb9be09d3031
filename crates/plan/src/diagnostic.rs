//! Diagnostics: what is wrong with a file, where, and what to do about it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

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
    /// The column after its last character on that line.
    pub end_column: u32,
    /// The message, one sentence without a full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The line of source.
    pub snippet: Option<String>,
}

impl Diagnostic {
    /// An error that lies in no file.
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            file: None,
            line: 0,
            column: 0,
            end_column: 0,
            message: message.into(),
            help: None,
            snippet: None,
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
                Diagnostic { file: Some(file.to_owned()), line, column, end_column: column, ..self }
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
        self.end_column = at.end_column;
        self.snippet = Some(at.snippet.to_string());
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
        if let Some(snippet) = &self.snippet {
            // Tabs would move the caret; control characters could do worse to a terminal.
            let line: String = snippet.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let from = (self.column as usize).saturating_sub(1).min(line.chars().count());
            let upto = (self.end_column as usize).saturating_sub(1).clamp(from, line.chars().count());
            let (line, from, upto) = shortened(&line, from, upto);
            write!(f, "\n{margin} |\n{number} | {}", line.trim_end())?;
            write!(f, "\n{margin} | {}{}", " ".repeat(from), "^".repeat((upto - from).max(1)))?;
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

/// At most 160 characters of a long line, around the part marked.
fn shortened(line: &str, from: usize, upto: usize) -> (String, usize, usize) {
    const MOST: usize = 160;
    let chars: Vec<char> = line.chars().collect();
    if chars.len() <= MOST {
        return (line.to_owned(), from, upto);
    }
    let start = from.saturating_sub(40);
    let end = (start + MOST).min(chars.len());
    (chars[start..end].iter().collect(), from - start, upto.min(end) - start)
}

/// A place in a file, with its line of source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// The column after the last character on that line.
    pub end_column: u32,
    /// The line, which the places on it share.
    pub snippet: Arc<str>,
}

impl Location {
    /// `file:line:column`.
    pub fn span(&self) -> String {
        format!("{}:{}:{}", self.file, self.line, self.column)
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
            end_column: 8,
            snippet: "x = foo(1)".into(),
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
        let at =
            Location { file: "a.star".into(), line: 1, column: 501, end_column: 504, snippet: line.into() };
        let text = Diagnostic::error("m").with_location(&at).to_string();
        assert!(text.lines().all(|l| l.len() < 180) && text.contains("^^^"), "{text}");
    }
}
