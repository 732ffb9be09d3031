//! The state of an evaluation: findings, the graph, scenarios, parameters. The evaluator carries a reference.

use crate::language::data::Trace;
use crate::language::graph::Graph;
use crate::params::Params;
use crate::places::{Calls, at_of};
use starlark::codemap::{CodeMapId, FileSpan};
use starlark::eval::Evaluator;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use weir_plan::address::Address;
use weir_plan::diagnostic::{Diagnostic, Location, Severity};
use weir_plan::{DataFile, Edge, Expectation, Faulty, Scenario, Spec};

/// Findings beyond this many are not kept.
const MOST_FINDINGS: usize = 100;

/// Nor lines that a file prints.
const MOST_PRINTED: usize = 1000;

pub(crate) use crate::language::value::Context;

/// The state of one evaluation.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) findings: Findings,
    pub(crate) graph: Graph,
    pub(crate) scenarios: Vec<Scenario>,
    /// The index of each scenario by its name.
    pub(crate) named_scenarios: HashMap<String, usize>,
    pub(crate) expectations: Vec<LocatedExpectation>,
    pub(crate) params: Params,
    pub(crate) files: Files,
    /// Hash of each data file, by its path as written.
    pub(crate) data_files: Vec<DataFile>,
    /// The files that were read: those that are loaded, and those of data.
    pub(crate) files_read: BTreeSet<PathBuf>,
    /// Durations already read, ns.
    pub(crate) durations: BTreeMap<PathBuf, Arc<[u64]>>,
    /// Traces already read.
    pub(crate) traces: BTreeMap<PathBuf, Trace>,
    /// Nodes that are the model of a server: (node, `file:line:column` of that server).
    pub(crate) models: HashMap<u32, String>,
    /// The first node of each name in `together`.
    pub(crate) together: HashMap<String, Shared>,
    /// The names and addresses that the listeners have taken.
    pub(crate) listening: Listening,
    /// The places of changes and fleets, by their `file:line:column`.
    pub(crate) located: HashMap<String, Location>,
    /// How many blocks there are.
    blocks: u32,
}

/// An expectation with its place.
pub(crate) struct LocatedExpectation {
    pub(crate) expectation: Expectation,
    pub(crate) at: Option<Location>,
}

/// Names and addresses that must be unique among listeners: where each was first taken (`file:line:column`).
#[derive(Default)]
pub(crate) struct Listening {
    pub(crate) addresses: HashMap<Address, String>,
    pub(crate) names: HashMap<String, String>,
    /// How many have no name of their own.
    pub(crate) unnamed: u32,
}

/// A timeline that nodes share: as the first of them has it.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) law: Faulty,
    /// `file:line:column`.
    pub(crate) at: String,
}

impl State {
    /// Whether this is a server whose model leads to a listener.
    pub(crate) fn models_a_listener(&self, spec: &Spec) -> bool {
        let Spec::Server { model: Some(model), .. } = spec else { return false };
        // Most files have no listener.
        if self.listening.names.is_empty() {
            return false;
        }
        let (mut stack, mut seen, mut lists) = (vec![*model], HashSet::new(), HashSet::new());
        while let Some(id) = stack.pop() {
            let (true, Some(spec)) = (seen.insert(id), self.graph.spec(id)) else { continue };
            if matches!(spec, Spec::Listen(_)) {
                return true;
            }
            stack.extend(spec.aside());
            match self.graph.node(id).map_or(Edge::None, |node| node.to) {
                Edge::None => {}
                Edge::Node(next) => stack.push(next),
                Edge::List(list) if lists.insert(list) => {
                    stack.extend(self.graph.lists().get(list as usize).into_iter().flatten());
                }
                Edge::List(_) => {}
            }
        }
        false
    }

    /// The number of a new block, counted as they are evaluated.
    pub(crate) fn next_block(&mut self) -> u32 {
        // There are fewer blocks than nodes.
        let number = self.blocks;
        self.blocks = number.saturating_add(1);
        number
    }
}

/// The files of an evaluation.
#[derive(Default)]
pub(crate) struct Files {
    by_codemap: HashMap<CodeMapId, File>,
}

/// A topology file: its number, and the locations of its calls.
pub(crate) struct File {
    /// 0: the topology file; loaded ones in order of their first `load`.
    pub(crate) number: u32,
    /// The last part of its name, for labels.
    pub(crate) label: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// Its calls by span.
    pub(crate) calls: Calls,
}

impl Files {
    /// Registers a parsed file.
    pub(crate) fn add(&mut self, codemap: CodeMapId, file: File) {
        self.by_codemap.insert(codemap, file);
    }

    /// The file of a span.
    pub(crate) fn get(&self, codemap: CodeMapId) -> Option<&File> {
        self.by_codemap.get(&codemap)
    }
}

/// Errors and warnings, each once.
#[derive(Default)]
pub(crate) struct Findings {
    list: Vec<Diagnostic>,
    seen: HashSet<Diagnostic>,
    errors: usize,
    printed: usize,
}

impl Findings {
    /// Keeps a finding that is not there yet.
    pub(crate) fn add(&mut self, finding: Diagnostic) {
        if finding.severity == Severity::Error {
            self.errors += 1;
        }
        if finding.severity == Severity::Printed {
            self.printed += 1;
            if self.printed <= MOST_PRINTED {
                self.list.push(finding);
            }
        } else if self.list.len() - self.printed.min(MOST_PRINTED) < MOST_FINDINGS
            && self.seen.insert(finding.clone())
        {
            self.list.push(finding);
        }
    }

    /// Whether any of them is an error.
    pub(crate) fn failed(&self) -> bool {
        self.errors > 0
    }

    /// All, in the order of the files and lines where that is known.
    pub(crate) fn into_sorted(mut self) -> Vec<Diagnostic> {
        // The topology file comes first by being found first; a stable sort keeps findings of a line in order.
        let mut order: Vec<Option<String>> = Vec::new();
        for f in &self.list {
            if !order.contains(&f.file) {
                order.push(f.file.clone());
            }
        }
        self.list.sort_by_key(|f| (order.iter().position(|o| *o == f.file), f.line, f.column));
        self.list
    }
}

impl Context {
    /// The context of an evaluation.
    pub(crate) fn get<'a>(eval: &Evaluator<'_, 'a, '_>) -> starlark::Result<&'a Context> {
        eval.extra
            .and_then(|e| e.downcast_ref::<Context>())
            .ok_or_else(|| crate::language::value::stop("weir's context is missing (a bug in weir)"))
    }

    /// Keeps a finding.
    pub(crate) fn find(&self, finding: Diagnostic) {
        self.state.borrow_mut().findings.add(finding);
    }
}

/// Where a native function was called from: the innermost call in a file.
pub(crate) fn innermost(eval: &Evaluator<'_, '_, '_>) -> Option<FileSpan> {
    (0..eval.call_stack_count()).find_map(|n| eval.call_stack_nth_location(n))
}

/// The same as a place with its line of source.
pub(crate) fn here(eval: &Evaluator<'_, '_, '_>) -> Option<Location> {
    innermost(eval).map(|span| at_of(&span))
}
