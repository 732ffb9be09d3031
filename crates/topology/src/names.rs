//! The pass over a file's names before it runs: unknown ones, unknown members of a namespace, predeclared ones bound
//! anew.

use crate::nodes;
use crate::places::at_of;
use starlark::analysis::AstModuleLint;
use starlark::syntax::AstModule;
use starlark_syntax::codemap::Span;
use starlark_syntax::syntax::ast::{
    AssignTargetP, AstAssignTarget, AstExpr, AstParameter, AstStmt, ClauseP, ExprP, StmtP,
};
use starlark_syntax::syntax::uniplate::Visit;
use std::collections::{BTreeSet, HashSet};
use weir_plan::diagnostic::Diagnostic;
use weir_plan::suggest;

/// The result of the pass.
pub(crate) struct Names {
    /// Errors.
    pub(crate) findings: Vec<Diagnostic>,
    /// Names that do not exist; predeclared as poison, the evaluation reports what else is wrong.
    pub(crate) unknown: BTreeSet<String>,
    /// Whether a predeclared name is bound anew.
    pub(crate) shadowed: bool,
}

/// Checks the names of a parsed file. `builtins` are Starlark's own.
pub(crate) fn check(ast: &AstModule, builtins: &[String]) -> Names {
    let mut pass = Pass { ast, findings: Vec::new(), bound: BTreeSet::new(), shadowed: false };
    pass.statement(ast.statement());
    let Pass { mut findings, bound, shadowed, .. } = pass;
    let globals: HashSet<String> =
        builtins.iter().cloned().chain(nodes::predeclared().map(str::to_owned)).collect();
    let mut unknown = BTreeSet::new();
    for lint in ast.lint(Some(&globals)) {
        if lint.short_name != "using-undefined" {
            continue;
        }
        let name = lint.location.source_span().to_owned();
        let mut known: Vec<&str> = bound.iter().chain(builtins).map(String::as_str).collect();
        for name in nodes::predeclared() {
            known.push(name);
        }
        let mut finding =
            Diagnostic::error(format!("nothing is called `{name}`")).with_location(&at_of(&lint.location));
        finding.help = nodes::home_of(&name)
            .map(|full| format!("did you mean `{full}`?"))
            .or_else(|| suggest::did_you_mean(&name, known));
        findings.push(finding);
        unknown.insert(name);
    }
    Names { findings, unknown, shadowed }
}

struct Pass<'a> {
    ast: &'a AstModule,
    findings: Vec<Diagnostic>,
    bound: BTreeSet<String>,
    shadowed: bool,
}

impl Pass<'_> {
    fn bind(&mut self, name: &str, span: Span) {
        self.bound.insert(name.to_owned());
        if nodes::predeclared().any(|p| p == name) {
            self.shadowed = true;
            let what = if nodes::UNITS.contains(&name) { "a unit" } else { "weir's own name" };
            let other = format!("my_{name}");
            self.findings.push(
                Diagnostic::error(format!("`{name}` is {what} and cannot be redefined"))
                    .with_location(&at_of(&self.ast.file_span(span)))
                    .help(format!("use another name, such as `{other}`")),
            );
        }
    }

    fn statement(&mut self, stmt: &AstStmt) {
        match &stmt.node {
            StmtP::Def(def) => {
                self.bind(&def.name.node.ident, def.name.span);
                self.parameters(&def.params);
            }
            StmtP::Assign(assign) => self.target(&assign.lhs),
            StmtP::AssignModify(target, ..) => self.target(target),
            StmtP::For(over) => self.target(&over.var),
            StmtP::Load(load) => {
                for arg in &load.args {
                    self.bind(&arg.local.node.ident, arg.local.span);
                }
            }
            _ => {}
        }
        stmt.node.visit_children(|child| match child {
            Visit::Stmt(s) => self.statement(s),
            Visit::Expr(e) => self.expression(e),
        });
    }

    fn parameters(&mut self, parameters: &[AstParameter]) {
        for ident in parameters.iter().filter_map(|p| p.node.ident()) {
            self.bind(&ident.node.ident, ident.span);
        }
    }

    fn target(&mut self, target: &AstAssignTarget) {
        match &target.node {
            AssignTargetP::Identifier(name) => self.bind(&name.node.ident, name.span),
            AssignTargetP::Tuple(several) => several.iter().for_each(|t| self.target(t)),
            AssignTargetP::Index(_) | AssignTargetP::Dot(..) => {}
        }
    }

    fn expression(&mut self, expr: &AstExpr) {
        match &expr.node {
            ExprP::Lambda(lambda) => self.parameters(&lambda.params),
            ExprP::ListComprehension(_, first, rest) | ExprP::DictComprehension(_, first, rest) => {
                self.target(&first.var);
                for clause in rest {
                    if let ClauseP::For(clause) = clause {
                        self.target(&clause.var);
                    }
                }
            }
            ExprP::Dot(of, member) => {
                if let ExprP::Identifier(space) = &of.node {
                    self.member(&space.node.ident, &member.node, member.span);
                }
            }
            _ => {}
        }
        expr.node.visit_expr(|e| self.expression(e));
    }

    fn member(&mut self, space: &str, member: &str, span: Span) {
        if !nodes::is_namespace(space) || nodes::find(&format!("{space}.{member}")).is_some() {
            return;
        }
        let names: Vec<&str> = nodes::members(space).map(|(name, _)| name).collect();
        let full = names.iter().map(|n| format!("{space}.{n}")).collect::<Vec<_>>();
        let help = suggest::nearest(member, names).map(|n| format!("did you mean `{space}.{n}`?"));
        self.findings.push(
            Diagnostic::error(format!("`{space}` has no member `{member}`"))
                .with_location(&at_of(&self.ast.file_span(span)))
                .help(help.unwrap_or_else(|| {
                    format!("there are {}", suggest::either(&full).replace(" or ", " and "))
                })),
        );
    }
}
