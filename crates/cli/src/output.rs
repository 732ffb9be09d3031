//! Where results go: standard output, where a reader that leaves is not an error, but a full disk is; and files, which
//! are tried before the run and replaced only once their content is complete.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes to standard output and flushes it.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::Environment(format!(
            "cannot write to standard output: {}",
            crate::failure::reason(&e)
        ))),
        _ => Ok(()),
    }
}

/// The width of text for standard output: a terminal that is narrower than usual is filled, a wider one is not.
pub(crate) fn width() -> usize {
    columns().map_or(weir_report::WIDTH, |n| n.clamp(weir_report::NARROWEST, weir_report::WIDTH))
}

/// The columns of the terminal on standard output; `None`: it is not a terminal, or its width is not known.
#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|n| *n > 0)
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}

/// A file that will be written when the run has succeeded.
pub(crate) struct Target {
    /// As given, for messages.
    path: PathBuf,
    /// Where the content is prepared; `None`: written in place (a device, a pipe, a folder that takes no new file).
    beside: Option<PathBuf>,
}

impl Target {
    /// The same for a command that reads these files, of which it may overwrite none.
    pub(crate) fn not_over<P: AsRef<Path>>(read: &[P]) -> impl Fn(&Path) -> Result<Target, Failure> {
        let same =
            |a: &Path, b: &Path| fs::canonicalize(a).is_ok_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b));
        move |path| {
            if read.iter().any(|read| same(read.as_ref(), path)) {
                return Err(Failure::Usage(format!(
                    "`{}` is this command's input and would be overwritten; give the result another name",
                    path.display()
                )));
            }
            Target::open(path)
        }
    }

    /// Tries whether the file can be written, without changing it.
    pub(crate) fn open(path: &Path) -> Result<Target, Failure> {
        let cannot = |e: &io::Error| Failure::from_io(path, "write", e);
        let found = match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(cannot(&io::Error::from(ErrorKind::IsADirectory))),
            Ok(found) => Some(found),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(cannot(&e)),
        };
        let regular = found.as_ref().is_none_or(fs::Metadata::is_file);
        // Only a regular file: a pipe without a reader would block the try.
        if found.is_some() && regular {
            OpenOptions::new().append(true).open(path).map_err(|e| cannot(&e))?;
        }
        let beside = if regular { Some(beside(path)) } else { None };
        match beside.as_ref().map(File::create_new) {
            Some(Ok(_)) => {
                // Made anew when there is something to write, so that a killed run leaves nothing behind.
                beside.as_ref().map_or(Ok(()), fs::remove_file).map_err(|e| cannot(&e))?;
                Ok(Target { path: path.into(), beside })
            }
            Some(Err(e)) if found.is_none() => Err(cannot(&e)),
            _ => Ok(Target { path: path.into(), beside: None }),
        }
    }

    /// Writes the content and puts it in place.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        self.try_write(write).map_err(|e| {
            if let Some(beside) = &self.beside {
                let _ = fs::remove_file(beside);
            }
            Failure::from_io(&self.path, "write", &e)
        })
    }

    fn try_write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let file = match &self.beside {
            Some(beside) => File::create(beside)?,
            None => OpenOptions::new().write(true).create(true).truncate(true).open(&self.path)?,
        };
        let mut out = BufWriter::new(&file);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        let Some(beside) = &self.beside else { return Ok(()) };
        // Through a symbolic link, not over it.
        let end = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        if let Ok(found) = fs::metadata(&end) {
            fs::set_permissions(beside, found.permissions())?;
        }
        fs::rename(beside, end)
    }
}

/// A hidden name in the folder where the file itself is (behind a symbolic link, where that leads).
fn beside(path: &Path) -> PathBuf {
    let end = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let name = end.file_name().unwrap_or_default().to_string_lossy().into_owned();
    end.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("weir-output-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn what_is_read_is_not_overwritten() {
        let dir = scratch("read");
        let (read, other) = (dir.join("a.star"), dir.join("b.json"));
        fs::write(&read, "x").unwrap();
        std::os::unix::fs::symlink(&read, dir.join("link.json")).unwrap();
        let read_here = [&read];
        let open = Target::not_over(&read_here);
        assert_eq!(
            open(&dir.join("../").join(dir.file_name().unwrap()).join("a.star")).err().unwrap().code(),
            2
        );
        assert_eq!(open(&dir.join("link.json")).err().unwrap().code(), 2);
        open(&other).unwrap();
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_changes_only_when_its_content_is_complete() {
        let dir = scratch("replace");
        let path = dir.join("run.json");
        fs::write(&path, "before").unwrap();
        let target = Target::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        let failed = target.write(|out| {
            out.write_all(b"half")?;
            Err(io::Error::from(ErrorKind::StorageFull))
        });
        assert_eq!(failed.unwrap_err().code(), 3);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        target.write(|out| out.write_all(b"after")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn trying_leaves_nothing_behind() {
        let dir = scratch("try");
        Target::open(&dir.join("new.html")).unwrap();
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        assert_eq!(Target::open(&dir).err().unwrap().code(), 3);
        assert_eq!(Target::open(&dir.join("no/such/folder.json")).err().unwrap().code(), 3);
        fs::remove_dir_all(dir).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let dir = scratch("link");
        fs::write(dir.join("real.csv"), "before").unwrap();
        std::os::unix::fs::symlink("real.csv", dir.join("link.csv")).unwrap();
        Target::open(&dir.join("link.csv")).unwrap().write(|out| out.write_all(b"after")).unwrap();
        assert_eq!(fs::read_to_string(dir.join("real.csv")).unwrap(), "after");
        assert!(fs::symlink_metadata(dir.join("link.csv")).unwrap().is_symlink());
        fs::remove_dir_all(dir).unwrap();
    }
}
