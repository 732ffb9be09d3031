//! A call of a function of the language: its arguments by name, findings at its place, nodes made at its site.

use crate::language::context::{Context, here, innermost};
use crate::language::function::{Arg, Function, Need};
use crate::language::value::{NodeValue, Poison, stop};
use crate::places::NamePosition;
use crate::places::load_argument::argument_name;
use starlark::codemap::FileSpan;
use starlark::eval::{Arguments, Evaluator};
use starlark::values::{Heap, Value, ValueLike};
use weir_plan::diagnostic::{Diagnostic, Location, Severity};
use weir_plan::ranges::MOST_NODES;
use weir_plan::suggest;
use weir_plan::{Edge, NodeId, Spec};

mod arguments;
mod words;

pub(crate) use arguments::{describe, list};

/// The result of a function: a value, nothing (after a finding), or an error that ends the evaluation.
pub(crate) type Outcome<'v> = starlark::Result<Option<Value<'v>>>;

/// No function has more arguments than this.
pub(crate) const MOST_ARGUMENTS: usize = 32;

/// A call in progress.
pub(crate) struct Call<'v, 'a, 'e, 'c> {
    /// The function.
    pub(crate) function: &'static Function,
    /// The evaluation's state.
    pub(crate) context: &'a Context,
    /// The evaluator.
    pub(crate) eval: &'c mut Evaluator<'v, 'a, 'e>,
    values: [Option<Value<'v>>; MOST_ARGUMENTS],
    failed: bool,
    site: Option<u32>,
}

impl<'v, 'a, 'e, 'c> Call<'v, 'a, 'e, 'c> {
    /// Runs a function of the registry: binds the arguments, makes the value, and returns poison where that failed.
    pub(crate) fn run(
        function: &'static Function,
        args: &Arguments<'v, '_>,
        eval: &'c mut Evaluator<'v, 'a, 'e>,
    ) -> starlark::Result<Value<'v>> {
        let context = Context::get(eval)?;
        let _interrupted = context.own_time.interrupt();
        let mut call =
            Call { function, context, eval, values: [None; MOST_ARGUMENTS], failed: false, site: None };
        call.bind(args)?;
        // A wrong value among the arguments has been reported where it was made.
        let heap = call.heap();
        let made = (function.make)(&mut call)?;
        match made {
            Some(value) if !call.failed => Ok(value),
            _ => Ok(heap.alloc(Poison)),
        }
    }

    /// Calls a function of the file.
    pub(crate) fn call_back(&mut self, f: Value<'v>, args: &[Value<'v>]) -> starlark::Result<Value<'v>> {
        let context = self.context;
        let _runs = context.own_time.run();
        self.eval.eval_function(f, args, &[])
    }

    /// The heap of the evaluation.
    pub(crate) fn heap(&self) -> Heap<'v> {
        self.eval.heap()
    }

    /// The function's name.
    pub(crate) fn name(&self) -> &'static str {
        self.function.name
    }

    /// Whether something was wrong so far.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// Makes the result poison without a finding (there was one elsewhere).
    pub(crate) fn poison(&mut self) {
        self.failed = true;
    }

    /// Records an error at this call.
    pub(crate) fn wrong(&mut self, message: impl Into<String>) {
        self.find(Diagnostic::error(message));
    }

    /// Records an error at this call, with a remedy.
    pub(crate) fn wrong_but(&mut self, message: impl Into<String>, help: impl Into<String>) {
        self.find(Diagnostic::error(message).help(help));
    }

    /// Records a warning at this call.
    pub(crate) fn warn(&mut self, message: impl Into<String>, help: impl Into<String>) {
        let mut finding = Diagnostic::error(message).help(help);
        finding.severity = Severity::Warning;
        self.find(finding);
    }

    fn find(&mut self, mut finding: Diagnostic) {
        if let Some(at) = here(self.eval) {
            finding = finding.with_location(&at);
        }
        self.failed |= finding.severity == Severity::Error;
        self.context.find(finding);
    }

    /// The call's location.
    pub(crate) fn span(&self) -> Option<FileSpan> {
        innermost(self.eval)
    }

    /// Where the call is.
    pub(crate) fn location(&self) -> Option<Location> {
        let span = self.span()?;
        Some(self.context.state.borrow_mut().graph.locator.locate(&span))
    }

    /// The variable that the call's value is bound to; else the function, with its number there.
    pub(crate) fn bound_name(&self) -> String {
        let state = self.context.state.borrow();
        let span = self.span();
        let found = span.as_ref().and_then(|span| {
            let file = state.files.get(span.file.id())?;
            file.calls.get(span.span.begin().get(), span.span.end().get())
        });
        match found.map(|call| (&call.bound, call.number)) {
            Some((Some(bound), _)) if bound.how != NamePosition::Argument => bound.name.to_string(),
            Some((_, number)) if number > 1 => format!("fleet#{number}"),
            _ => "fleet".to_owned(),
        }
    }

    /// The site of the call (or of a part of it).
    pub(crate) fn site(&mut self, kind: &'static str, part: &'static str) -> u32 {
        if part.is_empty()
            && let Some(site) = self.site
        {
            return site;
        }
        let stack: Vec<FileSpan> =
            self.eval.call_stack().into_frames().into_iter().filter_map(|f| f.location).collect();
        let mut state = self.context.state.borrow_mut();
        let state = &mut *state;
        let site = state.graph.site(kind, part, &stack, &state.files);
        if part.is_empty() {
            self.site = Some(site);
        }
        site
    }

    /// Adds the node that this call makes; its name is the argument `name`.
    pub(crate) fn node(&mut self, spec: Spec, to: Edge) -> Outcome<'v> {
        let name = self.name_or_none();
        self.named_node(spec, to, name)
    }

    /// Adds the node that this call makes, with that name.
    pub(crate) fn named_node(&mut self, spec: Spec, to: Edge, name: Option<String>) -> Outcome<'v> {
        if self.failed {
            return Ok(None);
        }
        let site = self.site(self.function.name, "");
        let id = self.add(site, spec, to, name)?;
        // Poison where it leads to what it may not lead to.
        Ok(Some(self.heap().alloc(NodeValue(id))))
    }

    /// Adds a node at a site.
    pub(crate) fn add(
        &mut self,
        site: u32,
        spec: Spec,
        to: Edge,
        name: Option<String>,
    ) -> starlark::Result<NodeId> {
        if self.context.state.borrow().models_a_listener(&spec) {
            self.wrong_but(
                "the model of this server leads to a `listen`: a model is what one server does itself, and a listener takes \
                 requests from outside",
                "give the model the node that the listener leads to, or make the listener a target in the \
                    server's place",
            );
        }
        let id = self.context.state.borrow_mut().graph.add(site, spec, to, name);
        id.ok_or_else(|| stop(format!("this file makes more than {MOST_NODES} nodes, which is the limit")))
    }

    /// Which call to look up: the arguments of the function, then those of its family.
    fn args(&self) -> impl Iterator<Item = &'static Arg> + use<> {
        self.function.args.iter().chain(self.function.more.iter())
    }

    fn bind(&mut self, args: &Arguments<'v, '_>) -> starlark::Result<()> {
        let function = self.function;
        let positional: Vec<Value<'v>> = args.positions(self.heap())?.take(MOST_ARGUMENTS).collect();
        let most = function.args.len();
        if positional.len() > most {
            let takes = match most {
                0 => "no argument".to_owned(),
                1 => "at most 1 argument".to_owned(),
                _ => format!("at most {most} arguments"),
            };
            self.wrong_but(
                format!("`{}` takes {takes}, not {}", function.name, args.len()?),
                self.signature(),
            );
        }
        for (slot, value) in self.values.iter_mut().zip(positional.into_iter().take(most)) {
            *slot = Some(value);
        }
        for (name, value) in args.names_map()?.iter() {
            self.bind_named(argument_name(name.as_str()), *value);
        }
        for (i, arg) in self.args().enumerate() {
            match (&arg.need, self.values.get(i).copied().flatten()) {
                (Need::Required, None) => {
                    self.wrong_but(
                        format!("`{}` is missing its argument `{}`", function.name, arg.name),
                        self.signature(),
                    );
                }
                (_, Some(value)) if value.downcast_ref::<Poison>().is_some() => self.failed = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn bind_named(&mut self, name: &str, value: Value<'v>) {
        let function = self.function;
        let Some(i) = self.args().position(|a| a.name == name) else {
            let known = |wanted: &str| self.args().any(|a| a.name == wanted);
            let meant = words::meant(name).find(|w| known(w)).map(|w| format!("did you mean `{w}`?"));
            let help = meant
                .or_else(|| suggest::did_you_mean(name, self.args().map(|a| a.name)))
                .unwrap_or_else(|| self.signature());
            return self.wrong_but(format!("`{}` has no argument `{name}`", function.name), help);
        };
        if let Some(slot) = self.values.get_mut(i) {
            if slot.is_some() {
                return self.wrong(format!("the argument `{name}` of `{}` is given twice", function.name));
            }
            *slot = Some(value);
        }
    }

    /// `write retry(attempts, node, on=, ...)`.
    fn signature(&self) -> String {
        let mut parts = Vec::new();
        for arg in self.args() {
            match arg.need {
                Need::Required => parts.push(arg.name.to_owned()),
                Need::Optional(_) | Need::Depends(_) => parts.push(format!("{}=", arg.name)),
            }
        }
        format!("write `{}({})`", self.function.name, parts.join(", "))
    }
}
