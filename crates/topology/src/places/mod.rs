//! The locations of calls in the text: the `def` around each, its callee as written, and its number among its like.
//!
//! A place must survive comments and other functions, so calls are numbered per `def` and callee, in the order of the
//! text, whether they are ever evaluated or not.

pub(crate) mod load_argument;
mod locator;

pub(crate) use locator::Locator;

use starlark::codemap::FileSpan;
use starlark::syntax::AstModule;
use starlark_syntax::syntax::ast::{
    AssignTargetP, AstExpr, AstLiteral, AstNoPayload, AstStmt, CallArgsP, ExprP, StmtP,
};
use starlark_syntax::syntax::uniplate::Visit;
use std::collections::HashMap;
use std::rc::Rc;
use weir_plan::diagnostic::Location;

/// The calls of a file by their spans (byte offsets).
#[derive(Default)]
pub(crate) struct Calls {
    by_span: HashMap<(u32, u32), CallSite>,
}

/// A call in the text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallSite {
    /// The top-level `def` around it, or `<file>`.
    pub(crate) def: Rc<str>,
    /// The callee as written.
    pub(crate) callee: String,
    /// Its number among calls of that callee in that `def`, from 1.
    pub(crate) number: u32,
    /// Its name in the text, if it has one.
    pub(crate) bound: Option<Bound>,
}

/// The name that a call's value gets: the variable it is assigned to, or the scenario that it is written in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    pub(crate) name: Rc<str>,
    pub(crate) how: NamePosition,
}

/// How a call belongs to a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NamePosition {
    /// It is the whole value of the variable.
    Whole,
    /// It is an argument of the scenario.
    Argument,
    /// It is nested inside another expression.
    Inside,
}

impl Calls {
    /// The call of that span.
    pub(crate) fn get(&self, begin: u32, end: u32) -> Option<&CallSite> {
        self.by_span.get(&(begin, end))
    }

    /// All calls of a parsed file.
    pub(crate) fn new(ast: &AstModule) -> Calls {
        let mut found: Vec<CallFound> = Vec::new();
        statement(ast.statement(), &Rc::from("<file>"), false, &mut found);
        // The end of the callee is where the parenthesis opens: the order in which a reader meets the calls.
        found.sort_by_key(|f| f.callee_end);
        let mut numbers: HashMap<(Rc<str>, String), u32> = HashMap::new();
        let mut by_span = HashMap::new();
        for f in found {
            let number = numbers.entry((f.def.clone(), f.callee.clone())).or_insert(0);
            *number += 1;
            let CallFound { def, callee, bound, .. } = f;
            by_span.insert(f.span, CallSite { def, callee, number: *number, bound });
        }
        Calls { by_span }
    }
}

struct CallFound {
    span: (u32, u32),
    callee_end: u32,
    callee: String,
    def: Rc<str>,
    bound: Option<Bound>,
}

fn statement(stmt: &AstStmt, def: &Rc<str>, inside: bool, found: &mut Vec<CallFound>) {
    let named: Rc<str>;
    let (def, inside) = match &stmt.node {
        StmtP::Def(d) if !inside => {
            named = Rc::from(d.name.node.ident.as_str());
            (&named, true)
        }
        _ => (def, inside),
    };
    let variable = match &stmt.node {
        StmtP::Assign(assign) => match &assign.lhs.node {
            AssignTargetP::Identifier(name) => {
                Some(Bound { name: name.node.ident.as_str().into(), how: NamePosition::Whole })
            }
            _ => None,
        },
        _ => None,
    };
    stmt.node.visit_children(|child| match child {
        Visit::Stmt(s) => statement(s, def, inside, found),
        Visit::Expr(e) => expression(e, def, variable.as_ref(), found),
    });
}

fn expression(expr: &AstExpr, def: &Rc<str>, bound: Option<&Bound>, found: &mut Vec<CallFound>) {
    let mut within = bound.map(|b| Bound { how: NamePosition::Inside, ..b.clone() });
    if let ExprP::Call(callee, args) = &expr.node {
        if let Some(name) = scenario(callee, args) {
            within = Some(Bound { name, how: NamePosition::Argument });
        }
        found.push(CallFound {
            span: (expr.span.begin().get(), expr.span.end().get()),
            callee_end: callee.span.end().get(),
            callee: dotted(callee).map_or_else(|| callee.node.to_string(), as_pool),
            def: def.clone(),
            bound: bound.cloned(),
        });
    }
    expr.node.visit_expr(|e| expression(e, def, within.as_ref(), found));
}

/// A fleet has the places that a pool would have there: draws and names of its members are those of the pool's.
fn as_pool(callee: String) -> String {
    if callee == "fleet" || callee.starts_with("find.") { "pool".to_owned() } else { callee }
}

/// The name of a `scenario("name", ...)`.
fn scenario(callee: &AstExpr, args: &CallArgsP<AstNoPayload>) -> Option<Rc<str>> {
    let first = args.args.first().filter(|_| dotted(callee).as_deref() == Some("scenario"))?;
    match &first.expr().node {
        ExprP::Literal(AstLiteral::String(name)) => Some(name.node.as_str().into()),
        _ => None,
    }
}

/// `lb.least_conn`, if it is names and dots.
pub(crate) fn dotted(expr: &AstExpr) -> Option<String> {
    match &expr.node {
        ExprP::Identifier(name) => Some(name.node.ident.clone()),
        ExprP::Dot(of, member) => Some(format!("{}.{}", dotted(of)?, member.node)),
        _ => None,
    }
}

/// A span as a place with its line of source. For the many calls of a file there is a [`Locator`].
pub(crate) fn at_of(span: &FileSpan) -> Location {
    Locator::default().locate(span)
}

/// Lines and columns are below 2^32: a source is.
pub(crate) fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use starlark::syntax::Dialect;

    fn places(source: &str) -> Vec<String> {
        let ast = AstModule::parse("t", source.to_owned(), &Dialect::Extended).expect("parses");
        let mut calls: Vec<_> = Calls::new(&ast).by_span.into_iter().collect();
        calls.sort_by_key(|(span, _)| (span.0, std::cmp::Reverse(span.1)));
        calls.into_iter().map(|(_, c)| format!("{}/{}#{}", c.def, c.callee, c.number)).collect()
    }

    #[test]
    fn calls_are_numbered_in_the_text_per_def_and_callee() {
        let source = "a = f(f(1), lb.x())\ndef g():\n  def h():\n    return f(2)\n  k = lambda: f(3)\n  return f(4)\nb = f(5)\n";
        assert_eq!(
            places(source),
            ["<file>/f#1", "<file>/f#2", "<file>/lb.x#1", "g/f#1", "g/f#2", "g/f#3", "<file>/f#3"]
        );
    }

    #[test]
    fn chained_calls_are_told_apart() {
        assert_eq!(places("a = f()()\n"), ["<file>/f()#1", "<file>/f#1"]);
    }
}
