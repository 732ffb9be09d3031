//! Where results go: standard output, where a reader that leaves is not an error, but a full disk is; and files, which
//! are tried before the run and replaced only once their content is complete.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Writes to standard output and flushes it.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    to_reader(write).map(|_| ())
}

/// The same for what goes on for ever: returns whether there is still a reader.
pub(crate) fn to_reader(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<bool, Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failure::Environment(format!(
            "cannot write to standard output: {}",
            crate::failure::reason(&e)
        ))),
    }
}

/// The width of text for standard output: that of the terminal, of which only tables use what is more than usual.
pub(crate) fn width() -> usize {
    columns().map_or(weir_report::WIDTH, |n| n.max(weir_report::NARROWEST))
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

/// Says on standard error that a command which was interrupted has written nothing to a file.
pub(crate) fn note_unwritten(path: &Path) {
    let _ = writeln!(io::stderr(), "nothing is written to `{}`", path.display());
}

/// Files of which all are written or none: what this has made is removed again, unless it is kept.
#[derive(Default)]
pub(crate) struct FileSet {
    /// In the order in which they were made.
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl FileSet {
    /// Makes a folder, and those around it, where they are missing.
    pub(crate) fn make_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let missing = folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists());
        let missing: Vec<&Path> = missing.collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder).map_err(|e| Failure::from_io(folder, "make", &e))?;
            self.folders.push(folder.to_owned());
        }
        if folder.as_os_str().is_empty() || folder.is_dir() {
            return Ok(());
        }
        Err(Failure::from_io(folder, "make", &io::Error::from(ErrorKind::NotADirectory)))
    }

    /// Writes a file that does not exist yet.
    pub(crate) fn write_new(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        self.files.push(path.to_owned());
        file.write_all(content)
    }

    /// Writes a file, or replaces it.
    pub(crate) fn write(&mut self, path: &Path, content: &[u8]) -> Result<(), Failure> {
        let is_new = fs::symlink_metadata(path).is_err();
        Target::open(path)?.write(|out| out.write_all(content))?;
        self.files.extend(is_new.then(|| path.to_owned()));
        Ok(())
    }

    /// All of them are written.
    pub(crate) fn keep(mut self) {
        self.files.clear();
        self.folders.clear();
    }
}

impl Drop for FileSet {
    fn drop(&mut self) {
        self.files.iter().for_each(|file| drop(fs::remove_file(file)));
        // One that something else has been put into meanwhile stays.
        self.folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

/// What makes two names those of one file.
#[derive(Clone, Debug, PartialEq)]
enum Identity {
    /// Device and number, however the file is called.
    Existing(u64, u64),
    /// Where it will be.
    Coming(PathBuf),
}

impl Identity {
    /// `None`: it cannot be overwritten, since it is a device or a pipe, or is not there and cannot be.
    fn find(path: &Path) -> Option<Identity> {
        match fs::metadata(path) {
            Ok(found) => Identity::from_found(&found),
            Err(_) => end_of(path).map(Identity::Coming),
        }
    }

    fn from_found(found: &fs::Metadata) -> Option<Identity> {
        found.is_file().then(|| Identity::Existing(found.dev(), found.ino()))
    }

    /// That of an open stream, where it leads to a file.
    fn from_stream(stream: impl AsFd) -> Option<Identity> {
        let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
        Identity::from_found(&file.metadata().ok()?)
    }
}

/// Where a name leads that has no file yet: links are followed, the folder is the real one.
fn end_of(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    // As many links as Linux follows.
    for _ in 0..40 {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let end = folder.canonicalize().ok()?.join(path.file_name()?);
        match fs::read_link(&end) {
            Ok(link) => path = end.with_file_name("").join(link),
            Err(_) => return Some(end),
        }
    }
    None
}

/// The files that a command writes: none of them is one that it reads, nor another of them, whatever names they have.
pub(crate) struct Outputs {
    read: Vec<Identity>,
    /// Those so far, each with its option.
    taken: Vec<(Identity, &'static str)>,
}

impl Outputs {
    /// For a command that reads these files; `-` is standard input.
    pub(crate) fn new<P: AsRef<Path>>(read: &[P]) -> Outputs {
        let identity = |path: &P| match path.as_ref() {
            path if path.as_os_str() == "-" => Identity::from_stream(io::stdin()),
            path => Identity::find(path),
        };
        Outputs { read: read.iter().filter_map(identity).collect(), taken: Vec::new() }
    }

    /// The same for a command whose result goes to standard output in any case: no file may be that.
    pub(crate) fn beside_result<P: AsRef<Path>>(read: &[P]) -> Outputs {
        let mut outputs = Outputs::new(read);
        outputs.taken.extend(Identity::from_stream(io::stdout()).map(|result| (result, "standard output")));
        outputs
    }

    /// The file that an option names, if it is given. It is tried, and not changed.
    pub(crate) fn open(
        &mut self,
        option: &'static str,
        path: Option<&Path>,
    ) -> Result<Option<Target>, Failure> {
        let Some(path) = path else { return Ok(None) };
        if let Some(identity) = Identity::find(path) {
            if self.read.contains(&identity) {
                return Err(Failure::Usage(format!(
                    "`{}` is this command's input and would be overwritten; give {option} another name",
                    path.display()
                )));
            }
            if let Some((_, other)) = self.taken.iter().find(|(taken, _)| *taken == identity) {
                return Err(Failure::Usage(format!(
                    "{other} and {option} name the same file, `{}`; give each its own",
                    path.display()
                )));
            }
            self.taken.push((identity, option));
        }
        Target::open(path).map(Some)
    }
}

/// What was written at the end, each part for itself: one that could not be written keeps no other from it.
#[derive(Default)]
pub(crate) struct Written(Vec<Failure>);

impl Written {
    /// The result comes first, so that no file takes it along.
    pub(crate) fn result(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Written {
        Written(to_stdout(write).err().into_iter().collect())
    }

    /// Writes a file, if it is wanted.
    pub(crate) fn file(
        &mut self,
        target: Option<&Target>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) {
        self.0.extend(target.and_then(|target| target.write(write).err()));
    }

    /// Adds what was written elsewhere.
    pub(crate) fn add(&mut self, written: Result<(), Failure>) {
        self.0.extend(written.err());
    }

    /// The end of the command: `answer`, unless something could not be written. All of it is said.
    pub(crate) fn end(mut self, answer: Result<(), Failure>) -> Result<(), Failure> {
        let Some(last) = self.0.pop() else { return answer };
        answer.err().iter().chain(&self.0).for_each(Failure::tell);
        Err(last)
    }
}

/// A file that will be written when the run has succeeded.
pub(crate) struct Target {
    /// As given, for messages.
    path: PathBuf,
    /// Where the content is prepared; `None`: written in place (a device, a pipe, a folder that takes no new file).
    beside: Option<PathBuf>,
}

impl Target {
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

    /// Whether content is there as it is written, so that a part of it may be.
    pub(crate) fn is_written_in_place(&self) -> bool {
        self.beside.is_none()
    }

    /// Its name, as given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
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
        let read = dir.join("a.star");
        fs::write(&read, "x").unwrap();
        std::os::unix::fs::symlink(&read, dir.join("link.json")).unwrap();
        fs::hard_link(&read, dir.join("hard.json")).unwrap();
        let round = dir.join("../").join(dir.file_name().unwrap()).join("a.star");
        for name in [&read, &round, &dir.join("link.json"), &dir.join("hard.json")] {
            assert_eq!(Outputs::new(&[&read]).open("--save", Some(name)).err().unwrap().code(), 2);
        }
        assert!(Outputs::new(&[&read]).open("--save", Some(&dir.join("b.json"))).unwrap().is_some());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn no_two_outputs_are_one_file() {
        let dir = scratch("two");
        std::os::unix::fs::symlink("b.json", dir.join("link.json")).unwrap();
        std::os::unix::fs::symlink("link.json", dir.join("links.json")).unwrap();
        let coming = dir.join("b.json");
        let round = dir.join("../").join(dir.file_name().unwrap()).join("b.json");
        for name in [&coming, &round, &dir.join("link.json"), &dir.join("links.json")] {
            let mut outputs = Outputs::new::<&Path>(&[]);
            outputs.open("--html", Some(&coming)).unwrap();
            let failure = outputs.open("--save", Some(name)).err().unwrap();
            assert!(failure.code() == 2 && failure.words().contains("--html and --save"));
        }
        let mut outputs = Outputs::new::<&Path>(&[]);
        for option in ["--html", "--save"] {
            let target = outputs.open(option, Some(Path::new("/dev/null"))).unwrap();
            assert!(target.is_some_and(|target| target.is_written_in_place()));
        }
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
        let target = Target::open(&dir.join("new.html")).unwrap();
        assert!(!target.is_written_in_place());
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
