//! Small files of registries: tokens, names, kubeconfigs. The thread of all registries never waits for them.

use crate::fault::{Defect, FaultKind};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Reads the files of one source on another thread, one set after another, so that a file system that hangs
/// holds one thread and not more and more of them. Clones are the same reader.
#[derive(Clone, Debug)]
pub(super) struct FileReader {
    turn: Arc<Semaphore>,
}

impl Default for FileReader {
    fn default() -> FileReader {
        FileReader { turn: Arc::new(Semaphore::new(1)) }
    }
}

impl FileReader {
    /// Runs a function that reads files, and waits for it this long. `files`: their name in a message, such as
    /// `of the connection`.
    ///
    /// # Errors
    /// The function's own, or it did not end in time.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        files: &str,
        within: Duration,
        read: impl FnOnce() -> Result<T, Defect> + Send + 'static,
    ) -> Result<T, Defect> {
        let reading = async {
            let turn = self.turn.clone().acquire_owned().await;
            let run = move || {
                let result = read();
                drop(turn);
                result
            };
            spawn_blocking(run).await
        };
        match timeout(within, reading).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => {
                let problem = format!("the reading of the files {files} broke off");
                Err(Defect::new(FaultKind::Unreadable, problem, "see to these files"))
            }
            Err(_) => {
                let problem = format!("the files {files} were not read within {}s", within.as_secs());
                Err(Defect::new(FaultKind::Late, problem, "see to their file system"))
            }
        }
    }
}

/// A regular file's bytes, which are this many at most. It may wait: for the function of a [`FileReader`].
///
/// # Errors
/// The system's, or the file is another kind of file, or larger.
pub(super) fn read_small_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Opening something else, such as a FIFO, might wait for ever.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= most {
        return Ok(bytes);
    }
    Err(io::Error::other(match most >> 20 {
        0 => format!("it has more than {most} bytes"),
        mib => format!("it has more than {mib} MiB"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::folder::Folder;
    use crate::registry::fake::BOUND;
    use std::sync::mpsc::channel;
    use tokio::runtime::Builder;

    #[test]
    fn a_file_that_hangs_is_late_and_holds_one_thread() {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let files = FileReader::default();
            let (release, hang) = channel();
            let (run, runs) = channel();
            let first = run.clone();
            let hanging = move || {
                let _ = first.send("first");
                let _ = hang.recv_timeout(BOUND);
                Ok(())
            };
            let short = Duration::from_millis(20);
            let defect = files.read("of a test (/a/b)", short, hanging).await.expect_err("it hangs");
            assert_eq!(defect.kind, FaultKind::Late);
            assert!(defect.to_string().starts_with("the files of a test (/a/b) were not read within "));
            // Another one waits for its turn, and is not run at all.
            let second = move || {
                let _ = run.send("second");
                Ok(())
            };
            let defect = files.clone().read("of a test", short, second).await.expect_err("no turn");
            assert_eq!(defect.kind, FaultKind::Late);
            release.send(()).expect("a file that hangs");
            assert_eq!(files.read("of a test", BOUND, || Ok(7)).await, Ok(7));
            assert_eq!(runs.iter().collect::<Vec<_>>(), ["first"]);
        });
    }

    #[test]
    fn only_small_regular_files_are_read() {
        let folder = Folder::new("small-files");
        folder.write("file", "abc");
        let read = |name: &str, most| read_small_file(&folder.path(name), most).map_err(|e| e.to_string());
        assert_eq!(read("file", 3), Ok(b"abc".to_vec()));
        assert_eq!(read("file", 2), Err("it has more than 2 bytes".to_owned()));
        assert_eq!(read("", 3), Err("it is no regular file".to_owned()));
        let missing = read_small_file(&folder.path("missing"), 3).expect_err("no file");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
