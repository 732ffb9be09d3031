//! Parsing and running topology files, the first and those that it loads.

use crate::language::context::{Context, File};
use crate::language::value::{DurationValue, FunctionValue, NamespaceValue, Poison};
use crate::names;
use crate::nodes;
use crate::places::load_argument::readable;
use crate::places::{Calls, at_of};
use crate::reading::read_regular;
use starlark::ErrorKind;
use starlark::PrintHandler;
use starlark::environment::{FrozenModule, Globals, GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::{Evaluator, FileLoader};
use starlark::syntax::{AstModule, Dialect};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use weir_plan::diagnostic::plainly;
use weir_plan::diagnostic::{Diagnostic, Location};

/// The deepest nesting of calls.
const MOST_FRAMES: usize = 1000;
/// Steps (calls and rounds of loops) of one file.
const MOST_STEPS: u64 = 100_000_000;
/// No topology file is larger than this, MiB.
const MOST_MIB: u64 = 16;

/// Runs files for one evaluation.
pub(crate) struct Runner<'a> {
    context: &'a Context,
    builtins: Vec<String>,
    /// Loaded files by their real path.
    loaded: HashMap<PathBuf, FrozenModule>,
    /// Files whose loading is under way.
    open: Vec<(PathBuf, String)>,
    files: u32,
}

/// The modules that `load` finds: the modules that this file names, by the name in the text.
struct LoadedModules(HashMap<String, FrozenModule>);

impl FileLoader for LoadedModules {
    fn load(&self, path: &str) -> starlark::Result<FrozenModule> {
        self.0
            .get(path)
            .cloned()
            .ok_or_else(|| crate::language::value::stop(format!("\"{path}\" was not loaded")))
    }
}

/// Output of `print` is a finding like others, so that it leaves the child process in the order of the text.
struct Printer<'a> {
    context: &'a Context,
    file: &'a str,
}

impl PrintHandler for Printer<'_> {
    fn println(&self, text: &str) -> starlark::Result<()> {
        self.context.find(Diagnostic::printed(text).in_file(self.file));
        Ok(())
    }
}

/// A file to run.
pub(crate) struct Source {
    /// The file's name as the user gave it, for messages.
    pub(crate) name: String,
    /// Where it lies; `None` for standard input.
    pub(crate) path: Option<PathBuf>,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
}

impl<'a> Runner<'a> {
    /// A runner whose findings go to the context.
    pub(crate) fn new(context: &'a Context) -> Runner<'a> {
        let builtins = GlobalsBuilder::extended_by(&[LibraryExtension::Print])
            .build()
            .names()
            .map(|n| n.as_str().to_owned())
            .collect();
        Runner { context, builtins, loaded: HashMap::new(), open: Vec::new(), files: 0 }
    }

    /// Runs the topology file.
    pub(crate) fn main(&mut self, source: &Source) {
        if let Some(real) = source.path.as_ref().and_then(|p| p.canonicalize().ok()) {
            self.open.push((real, source.name.clone()));
        }
        self.run(source, false);
    }

    /// Parses and runs a file; returns its frozen module, if it is requested and exists.
    fn run(&mut self, source: &Source, freeze: bool) -> Option<FrozenModule> {
        let ast = self.parse(source)?;
        let number = self.files;
        self.files += 1;
        let folder = source
            .path
            .as_ref()
            .and_then(|p| p.parent())
            .map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        let label =
            Path::new(&source.name).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let codemap = ast.file_span(starlark_syntax::codemap::Span::default()).file.id();
        let file = File { number, label, folder: folder.clone(), calls: Calls::new(&ast) };
        self.context.state.borrow_mut().files.add(codemap, file);
        let names = names::check(&ast, &self.builtins);
        names.findings.into_iter().for_each(|f| self.context.find(f));
        let loader = self.loads(&ast, source, &folder);
        if names.shadowed {
            // The file gives such a name another meaning: running it would report false errors.
            return None;
        }
        let globals = globals(&names.unknown);
        let printer = Printer { context: self.context, file: &source.name };
        Module::with_temp_heap(|module| {
            let ran = {
                let mut eval = Evaluator::new(&module);
                eval.extra = Some(self.context);
                eval.set_loader(&loader);
                eval.set_print_handler(&printer);
                eval.set_max_callstack_size(MOST_FRAMES)
                    .and_then(|()| eval.set_max_tick_count(MOST_STEPS))
                    .map_err(starlark::Error::new_other)
                    .and_then(|()| {
                        let _runs = self.context.own_time.run();
                        eval.eval_module(ast, &globals).map(drop)
                    })
            };
            if let Err(error) = ran {
                self.context.find(finding(&error, &source.name));
                return None;
            }
            if !freeze {
                return None;
            }
            match module.freeze() {
                Ok(frozen) => Some(frozen),
                Err(_) => {
                    self.context.find(
                        Diagnostic::error("this file cannot be loaded: its values cannot be frozen")
                            .in_file(&source.name),
                    );
                    None
                }
            }
        })
    }

    fn parse(&mut self, source: &Source) -> Option<AstModule> {
        let whole = |message: String| Diagnostic::error(message).in_file(&source.name);
        if source.bytes.len() as u64 > MOST_MIB << 20 {
            self.context.find(whole(format!("the file is larger than {MOST_MIB} MiB")));
            return None;
        }
        let text = match std::str::from_utf8(&source.bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(e) => {
                let line = source.bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
                let mut finding = whole(format!(
                    "the file is not UTF-8: byte {} (line {line}) is not part of a character",
                    e.valid_up_to()
                ));
                finding.help = Some("save it as UTF-8".to_owned());
                self.context.find(finding);
                return None;
            }
        };
        let dialect = Dialect { enable_f_strings: true, ..Dialect::Extended };
        match AstModule::parse(&source.name, readable(text), &dialect) {
            Ok(ast) => Some(ast),
            Err(error) => {
                self.context.find(finding(&error, &source.name));
                None
            }
        }
    }

    /// Runs the files that a file loads, in the order of its text.
    fn loads(&mut self, ast: &AstModule, source: &Source, folder: &Path) -> LoadedModules {
        let mut modules = HashMap::new();
        for load in ast.loads() {
            if modules.contains_key(load.module_id) {
                continue;
            }
            let at = at_of(&load.span);
            let module = self
                .load(load.module_id, &at, source, folder)
                .unwrap_or_else(|| poisoned(load.symbols.values().copied()));
            modules.insert(load.module_id.to_owned(), module);
        }
        LoadedModules(modules)
    }

    fn load(&mut self, name: &str, at: &Location, source: &Source, folder: &Path) -> Option<FrozenModule> {
        let path = folder.join(name);
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(e) => {
                let message = format!("cannot load \"{name}\": {}", plainly(&e));
                self.context.find(Diagnostic::error(message).with_location(at));
                return None;
            }
        };
        self.context.state.borrow_mut().files_read.insert(path.clone());
        if let Some(module) = self.loaded.get(&real) {
            return Some(module.clone());
        }
        if let Some(from) = self.open.iter().position(|o| o.0 == real) {
            let ring: Vec<&str> = self.open[from..].iter().map(|o| o.1.as_str()).collect();
            let ring = format!("{} -> {}", ring.join(" -> "), self.open[from].1);
            self.context.find(
                Diagnostic::error(format!("the files load each other in a cycle: {ring}"))
                    .with_location(at)
                    .help("move what both need into a third file"),
            );
            return None;
        }
        if self.open.len() > 100 {
            self.context.find(Diagnostic::error("files are loaded more than 100 deep").with_location(at));
            return None;
        }
        let bytes = match read_regular(&real, MOST_MIB) {
            Ok(bytes) => bytes,
            Err(why) => {
                self.context
                    .find(Diagnostic::error(format!("cannot load \"{name}\": it {why}")).with_location(at));
                return None;
            }
        };
        let beside =
            Path::new(&source.name).parent().map(|p| p.join(name)).unwrap_or_else(|| PathBuf::from(name));
        let inner = Source { name: beside.to_string_lossy().into_owned(), path: Some(path), bytes };
        self.open.push((real.clone(), inner.name.clone()));
        let module = self.run(&inner, true);
        self.open.pop();
        if let Some(module) = &module {
            self.loaded.insert(real, module.clone());
        }
        module
    }
}

/// A module in whose place an error was reported: every name asked of it is poison.
fn poisoned<'s>(names: impl Iterator<Item = &'s str>) -> FrozenModule {
    let mut builder = GlobalsBuilder::new();
    for name in names {
        builder.set(name, Poison);
    }
    FrozenModule::from_globals(&builder.build()).unwrap_or_else(|_| {
        // Freezing plain values cannot fail; an empty module would at worst bring a second message.
        Module::with_temp_heap(|m| m.freeze()).unwrap_or_else(|_| unreachable!("an empty module freezes"))
    })
}

/// Everything predeclared, and poison for names that do not exist.
fn globals(unknown: &BTreeSet<String>) -> Globals {
    let mut builder = GlobalsBuilder::extended_by(&[LibraryExtension::Print]);
    for function in nodes::functions().filter(|f| !f.name.contains('.')) {
        builder.set(function.name, FunctionValue(function));
    }
    for name in nodes::NAMESPACES {
        let members = nodes::members(name).map(|(member, f)| (member, FunctionValue(f))).collect();
        builder.set(name, NamespaceValue { name, members });
    }
    for (unit, ns) in weir_plan::duration::UNITS {
        builder.set(unit, DurationValue(ns));
    }
    for (unit, bytes) in nodes::SIZES {
        builder.set(unit, bytes);
    }
    for name in unknown {
        builder.set(name, Poison);
    }
    builder.build()
}

/// An error that ended the evaluation, as a finding.
fn finding(error: &starlark::Error, file: &str) -> Diagnostic {
    let text = error.without_diagnostic().to_string();
    let text = text.trim();
    let (message, help) = match error.kind() {
        ErrorKind::StackOverflow(_) => (
            format!("endless recursion: calls are nested more than {MOST_FRAMES} deep"),
            Some("make the recursion end, or build the nodes in a `for` loop".to_owned()),
        ),
        ErrorKind::Parser(_) => {
            let line = error.span().map(|s| s.file.source_line(s.file.find_line(s.span.begin())));
            not_starlark(line.unwrap_or_default()).or_else(|| unit_alone(text)).or_else(|| power(text)).unwrap_or_else(|| {
                (format!("syntax error: {}", text.strip_prefix("Parse error: ").unwrap_or(text)), None)
            })
        }
        _ if text.contains("`/` not supported") && text.contains("`duration`") => (
            "a number cannot be divided by a duration: rates are plain numbers, per second".to_owned(),
            Some(
                "for 100 per second write `rate=100`; for a utilisation u of n servers `every = work / (n*u)`"
                    .to_owned(),
            ),
        ),
        _ if text.contains("ticks has been exceeded") => {
            (format!("the file takes more than {} million steps", MOST_STEPS / 1_000_000), None)
        }
        _ => (lower_first(text.strip_prefix("fail: ").unwrap_or(text)), None),
    };
    let mut finding = Diagnostic::error(message);
    finding.help = help;
    let last = error.call_stack().frames.iter().rev().find_map(|f| f.location.as_ref());
    match error.span().or(last) {
        Some(span) => finding.with_location(&at_of(span)),
        None => finding.in_file(file),
    }
}

/// A number followed by its unit, as in `20ms`, which the parser sees as a number and a name.
fn unit_alone(text: &str) -> Option<(String, Option<String>)> {
    let unit = text.split_once("unexpected identifier '")?.1.split('\'').next()?;
    let known =
        ["ns", "us", "ms", "s", "minutes", "hours", "KiB", "MiB", "m", "h", "min", "sec"].contains(&unit);
    known.then(|| {
        let help =
            if matches!(unit, "KiB" | "MiB") { "write `64*KiB`" } else { "write `20*ms` or `\"20ms\"`" };
        (format!("syntax error: the unit `{unit}` directly follows a number"), Some(help.to_owned()))
    })
}

/// The error and the remedy for a line that is Python but not Starlark.
fn not_starlark(line: &str) -> Option<(String, Option<String>)> {
    let line = line.trim_start();
    let first = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
    let rest = line[first.len()..].trim_start();
    let (message, help) = match first {
        "load" if rest.starts_with('=') && !rest.starts_with("==") => (
            "`load` is a keyword (it loads another file) and cannot be a name",
            "use another name, such as `my_load`",
        ),
        "import" | "from" => (
            "there is no `import` in a topology file",
            "to use a function of another file write `load(\"other.star\", \"name\")`",
        ),
        "while" => ("there is no `while` in a topology file", "write `for i in range(n):`"),
        "class" => (
            "there are no classes in a topology file",
            "write a function that returns a node: `def app(): ...`",
        ),
        _ => return None,
    };
    Some((message.to_owned(), Some(help.to_owned())))
}

/// `10**3`, which other languages have.
fn power(text: &str) -> Option<(String, Option<String>)> {
    text.contains("'**'").then(|| {
        let help = "write the number (`1000`, or `1e3` for a float), or multiply: `10*10*10`";
        ("there is no `**` (power) in a topology file".to_owned(), Some(help.to_owned()))
    })
}

/// Messages start in lower case, unless with a name.
fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), text.chars().nth(1)) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}
