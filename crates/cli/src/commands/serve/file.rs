//! The topology file of `weir serve`: read at the start, and again for each reload.

use super::{check, choose, supervised};
use crate::args::File;
use crate::failure::{Failure, reason};
use crate::input::{self, Printed};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_serve::{NewTopology, ReloadError, Source};

/// The time in which a file must arrive for a reload (`docs/spec/operating.md#unchanged-files`).
const PATIENCE: Duration = Duration::from_secs(10);

/// The most reads that may hang: the system ends none of them, and each has a thread.
const MOST_HANGING: usize = 8;

/// The topology file of the command line.
#[derive(Debug)]
pub(super) struct FromFile {
    pub file: File,
    pub inject: bool,
    pub listeners: Vec<String>,
    /// Reads for a reload that have not ended.
    hanging: Arc<AtomicUsize>,
    texts: Mutex<Texts>,
}

/// Digests of the file's bytes.
#[derive(Debug, Default)]
struct Texts {
    read: Option<blake3::Hash>,
    served: Option<blake3::Hash>,
}

impl Texts {
    /// Notes bytes that were read; whether they are those that are served.
    fn read(&mut self, bytes: &[u8]) -> bool {
        self.read = Some(blake3::hash(bytes));
        self.read == self.served
    }

    /// Those that were read last are served.
    fn serve(&mut self) {
        self.served = self.read;
    }
}

impl FromFile {
    pub fn new(file: File, inject: bool, listeners: Vec<String>) -> FromFile {
        FromFile { file, inject, listeners, hanging: Arc::default(), texts: Mutex::default() }
    }

    /// Reads it for the start; its hints and warnings go to standard error.
    pub fn load(&self) -> Result<NewTopology, Failure> {
        let topology = self.evaluate(input::read(&self.file.file)?)?;
        self.texts().serve();
        let mut err = std::io::stderr().lock();
        for note in &topology.notes {
            let _ = writeln!(err, "{note}");
        }
        Ok(topology)
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn evaluate(&self, source: Vec<u8>) -> Result<NewTopology, Failure> {
        let is_same_text = self.texts().read(&source);
        let mut notes = Vec::new();
        let mut note = |sentence: String| {
            if !self.file.verbosity.quiet {
                notes.push(sentence);
            }
        };
        let plan = input::plan(&self.file, source, Printed::Dropped, &mut note)?;
        let (point, serving) = check(&plan, self.inject, &mut note)?;
        let nodes = choose(point, &self.listeners)?;
        let (point, serving) = (Arc::new(point.clone()), Arc::new(serving));
        Ok(NewTopology { point, serving, nodes, plan: plan.hash.clone(), is_same_text, notes })
    }

    /// The bytes of the file, on a thread of their own: a file on a server that has gone may never arrive.
    fn read_in_time(&self) -> Result<Vec<u8>, Failure> {
        let name = self.file.file.display().to_string();
        let stuck = self.hanging.load(SeqCst);
        if stuck >= MOST_HANGING {
            return Err(Failure::Environment(format!(
                "{stuck} earlier reads of `{name}` have not ended; see what its file system waits for"
            )));
        }
        let (sender, receiver) = sync_channel(1);
        let (path, hanging) = (self.file.file.clone(), self.hanging.clone());
        hanging.fetch_add(1, SeqCst);
        let began = std::thread::Builder::new().name("weir-file".to_owned()).spawn(move || {
            let read = regular(&path).and_then(|()| input::read(&path));
            hanging.fetch_sub(1, SeqCst);
            // The reload may have given up.
            let _ = sender.send(read);
        });
        if let Err(e) = began {
            self.hanging.fetch_sub(1, SeqCst);
            return Err(Failure::Environment(format!(
                "cannot start a thread to read `{name}`: {}",
                reason(&e)
            )));
        }
        match receiver.recv_timeout(PATIENCE) {
            Ok(read) => read,
            Err(RecvTimeoutError::Timeout) => Err(Failure::Environment(format!(
                "`{name}` has not come within {} s; see what its file system waits for, then reload again",
                PATIENCE.as_secs()
            ))),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::Fault(format!("the thread that reads `{name}` has ended without an answer")))
            }
        }
    }
}

/// Whether a reload can read it: a pipe would wait for its writer, and gives its bytes once only.
fn regular(path: &Path) -> Result<(), Failure> {
    match std::fs::metadata(path) {
        Ok(there) if !there.is_file() => Err(Failure::Usage(format!(
            "`{}` is not a regular file: a reload reads it again from its beginning",
            path.display()
        ))),
        // What is missing is said when it is opened.
        _ => Ok(()),
    }
}

impl Source for FromFile {
    fn read(&self) -> Result<NewTopology, ReloadError> {
        supervised::reloading();
        let read = self.read_in_time().and_then(|source| self.evaluate(source));
        read.map_err(|failure| ReloadError(failure.words()))
    }

    fn done(&self, result: &Result<String, ReloadError>) {
        if result.is_ok() {
            self.texts().serve();
        }
        supervised::reloaded(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Settings, Verbosity};

    fn source(path: &Path) -> FromFile {
        let file = File::unswept(path, &Settings { params: Vec::new() }, Verbosity { quiet: true });
        FromFile::new(file, false, Vec::new())
    }

    #[test]
    fn a_pipe_is_refused_and_hanging_reads_are_bounded() {
        let path = std::env::temp_dir().join(format!("weir-fifo-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success());
        let from = source(&path);
        let why = from.read().expect_err("a pipe").0;
        std::fs::remove_file(&path).expect("it is there");
        assert!(why.contains("is not a regular file"), "{why}");
        assert_eq!(from.hanging.load(SeqCst), 0);
        from.hanging.store(MOST_HANGING, SeqCst);
        let why = from.read().expect_err("too many").0;
        assert!(why.contains("8 earlier reads"), "{why}");
    }
}
