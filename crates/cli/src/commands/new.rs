//! `weir new [EXAMPLE] [-o FILE]`: an example to start from; without a name the list of them.

use crate::args::written;
use crate::commands::help::wrapped;
use crate::examples::{ALL, Example};
use crate::failure::Failure;
use crate::output::{self, FileSet};
use clap::Args;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// `weir new`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir new                                         the examples, one line each
  weir new quickstart -o my.star                   a balancer and four servers, to start from
  weir new bamboo | less                           to read one")]
pub(crate) struct New {
    /// Which example; without it weir lists them
    #[arg(value_name = "EXAMPLE")]
    pub(crate) example: Option<String>,
    /// Write it to this file, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE", value_parser = written())]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn run(args: &New) -> Result<(), Failure> {
    let Some(name) = &args.example else {
        if args.output.is_some() {
            return Err(Failure::Usage(
                "which example? `weir new` lists them; write `weir new quickstart -o FILE`".to_owned(),
            ));
        }
        return output::to_stdout(list);
    };
    let example = find(name)?;
    match args.output.as_deref() {
        Some(path) => to_file(example, path),
        None => {
            output::to_stdout(|out| out.write_all(example.text.as_bytes()))?;
            if let Some((beside, _)) = example.beside.first() {
                tell(&format!(
                    "note: this example needs `{beside}` next to it; `weir new {} -o FILE` writes that too",
                    example.name
                ));
            }
            Ok(())
        }
    }
}

fn list(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Examples; `weir new NAME -o FILE` writes one, `weir sim FILE` runs it:\n")?;
    for example in ALL {
        let lines = wrapped(example.question(), 80, 20);
        writeln!(out, "  {:<17} {}", example.name, lines.trim_start())?;
    }
    Ok(())
}

/// The example of that name; the ending and a folder `examples/` are optional.
fn find(name: &str) -> Result<&'static Example, Failure> {
    let plain = name.strip_suffix(".star").unwrap_or(name);
    let plain = plain.strip_prefix("examples/").unwrap_or(plain);
    let last = |e: &Example| e.name.rsplit('/').next() == Some(plain);
    if let Some(example) = ALL.iter().find(|e| e.name == plain).or_else(|| ALL.iter().find(|e| last(e))) {
        return Ok(example);
    }
    let names: Vec<&str> = ALL.iter().map(|e| e.name).collect();
    let help = match weir_topology::manual::near(plain, &names).first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`weir new` lists them".to_owned(),
    };
    Err(Failure::Usage(format!("there is no example `{name}`; {help}")))
}

/// Writes the example and what it needs, or nothing. Existing files are not overwritten; they are checked before
/// anything is written.
fn to_file(example: &Example, path: &Path) -> Result<(), Failure> {
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let beside: Vec<(PathBuf, &str)> =
        example.beside.iter().map(|(name, text)| (folder.join(name), *text)).collect();
    let missing: Vec<&(PathBuf, &str)> = beside.iter().filter(|(path, text)| !is_there(path, text)).collect();
    if let Some((path, _)) = missing.iter().find(|(path, _)| path.exists()) {
        return Err(exists(path));
    }
    // The commands in its first lines name the written file.
    let shipped = format!("examples/{}.star", example.name);
    let mut files = FileSet::default();
    write(&mut files, path, &example.text.replace(&shipped, &path.display().to_string()))?;
    for (beside, text) in &missing {
        files.make_folder(beside.parent().unwrap_or(Path::new("")))?;
        if fs::canonicalize(beside)
            .is_ok_and(|beside| fs::canonicalize(path).is_ok_and(|path| beside == path))
        {
            return Err(Failure::Usage(format!(
                "the example `{}` needs `{}` next to it; give -o another name",
                example.name,
                beside.display()
            )));
        }
        write(&mut files, beside, text)?;
    }
    files.keep();
    for (path, _) in missing {
        tell(&format!("wrote {}", path.display()));
    }
    tell(&format!("wrote {}; try `weir sim {}`", path.display(), path.display()));
    Ok(())
}

/// Whether a file has this text already.
fn is_there(path: &Path, text: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
}

fn write(files: &mut FileSet, path: &Path, text: &str) -> Result<(), Failure> {
    files.write_new(path, text.as_bytes()).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Failure::from_io(path, "write", &e),
    })
}

fn exists(path: &Path) -> Failure {
    Failure::Environment(format!(
        "`{}` already exists, and `weir new` overwrites nothing; choose another name",
        path.display()
    ))
}

fn tell(sentence: &str) {
    let _ = writeln!(io::stderr(), "{sentence}");
}
