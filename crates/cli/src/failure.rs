//! Failures of a command: the exit codes of `docs/spec/language.md#output`, each with its message.

use std::io::Write;

/// An end other than success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// 1: the answer is no. A sentence; printed after `error: `.
    No(String),
    /// 2: wrong usage or a wrong topology. A sentence, or several with their places; printed after `error: `.
    Usage(String),
    /// 2: the whole text is that of the topology's diagnostics; empty if clap has printed the error.
    Worded(String),
    /// 3: the environment failed.
    Environment(String),
    /// 4: weir found a bug in itself.
    Fault(String),
    /// 130: interrupted; what was finished has been printed.
    Interrupted,
    /// 130: the same, with a sentence about how much that was.
    InterruptedAfter(String),
}

impl Failure {
    /// The environment failed at `path`.
    pub(crate) fn from_io(path: &std::path::Path, doing: &str, error: &std::io::Error) -> Failure {
        Failure::Environment(format!("cannot {doing} `{}`: {}", path.display(), reason(error)))
    }

    /// The exit code of the process.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::No(_) => 1,
            Failure::Usage(_) | Failure::Worded(_) => 2,
            Failure::Environment(_) => 3,
            Failure::Fault(_) => 4,
            Failure::Interrupted | Failure::InterruptedAfter(_) => 130,
        }
    }

    /// The message, for other places than standard error.
    pub(crate) fn words(self) -> String {
        match self {
            Failure::No(text)
            | Failure::Usage(text)
            | Failure::Worded(text)
            | Failure::Environment(text)
            | Failure::Fault(text)
            | Failure::InterruptedAfter(text) => text.trim_end().to_owned(),
            Failure::Interrupted => "interrupted".to_owned(),
        }
    }

    /// Ends the process at once, with its message: for where other threads would have to be waited for.
    pub(crate) fn exit(&self) {
        self.tell();
        std::process::exit(self.code().into())
    }

    /// Prints the message on standard error; a closed one is ignored.
    pub(crate) fn tell(&self) {
        let text = match self {
            // A running weir's own sentence begins with the word already.
            Failure::No(text) if text.starts_with("error: ") => text.clone(),
            Failure::No(text) | Failure::Usage(text) | Failure::Environment(text) => {
                format!("error: {text}\n")
            }
            Failure::Worded(text) | Failure::InterruptedAfter(text) => text.clone(),
            Failure::Fault(text) => format!(
                "error: weir found a bug in itself: {text}\n\
                 This is not your mistake. Please report it with the command, the topology file and this version: weir {}\n",
                env!("CARGO_PKG_VERSION")
            ),
            Failure::Interrupted => "interrupted\n".into(),
        };
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(text.as_bytes());
        if !text.is_empty() && !text.ends_with('\n') {
            let _ = err.write_all(b"\n");
        }
        let _ = err.flush();
    }
}

/// The system's message, without Rust's `(os error 2)`.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
