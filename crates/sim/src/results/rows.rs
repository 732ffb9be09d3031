//! The rows of a result: which stages of the code, and which of their members, each adds up.

use crate::code::{Code, SiteId, StageId};
use weir_plan::{Point, Scenario, Spec};

/// A row of the result: the stages (all members of each, or one) that it adds up.
pub(crate) struct Row {
    site: SiteId,
    /// Stage, and the index of one member in it.
    parts: Vec<(StageId, Option<u32>)>,
}

/// The rows of a compiled scenario, in order of the request's path: one per site, or one per member.
pub(crate) fn rows(code: &Code, members: bool) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for &stage in &code.order {
        let site = code.stages[stage.index()].site;
        let parts = parts(code, stage);
        if members {
            rows.extend(parts.into_iter().map(|part| Row { site, parts: vec![part] }));
        } else if let Some(row) = rows.iter_mut().find(|r| r.site == site) {
            row.parts.extend(parts);
        } else {
            rows.push(Row { site, parts });
        }
    }
    rows
}

/// The parts of a stage of which sums are kept: all its members together, or each.
fn parts(code: &Code, stage: StageId) -> Vec<(StageId, Option<u32>)> {
    let members = code.stages[stage.index()].nodes.len() as u32;
    if code.mask == 0 { vec![(stage, None)] } else { (0..members).map(|m| (stage, Some(m))).collect() }
}

/// A row for each of the stages that have members which `is_wanted` names, of those members; whether others of a stage
/// are not wanted, so that a sum over all its members would not do.
pub(crate) fn rows_of(code: &Code, is_wanted: impl Fn(u32) -> bool) -> (Vec<Row>, bool) {
    let (mut rows, mut is_partial) = (Vec::new(), false);
    for &stage in &code.order {
        let of = &code.stages[stage.index()];
        let is_one = |(_, member): &(StageId, Option<u32>)| match member {
            Some(m) => is_wanted(of.nodes[*m as usize]),
            None => of.nodes.iter().any(|id| is_wanted(*id)),
        };
        let parts: Vec<_> = parts(code, stage).into_iter().filter(is_one).collect();
        is_partial |= !parts.is_empty() && !of.nodes.iter().all(|id| is_wanted(*id));
        if !parts.is_empty() {
            rows.push(Row { site: of.site, parts });
        }
    }
    (rows, is_partial)
}

impl Row {
    /// The nodes that it adds up.
    pub fn nodes(&self, code: &Code) -> Vec<u32> {
        let of_part = |&(stage, one): &(StageId, Option<u32>)| {
            let nodes = &code.stages[stage.index()].nodes;
            match one {
                Some(m) => &nodes[m as usize..=m as usize],
                None => &nodes[..],
            }
        };
        self.parts.iter().flat_map(of_part).copied().collect()
    }

    /// Whether nothing is to be said of it: a connection that takes no time to open.
    pub fn is_silent(&self, point: &Point, code: &Code) -> bool {
        let spec = self.nodes(code).first().and_then(|id| point.spec(*id));
        matches!(spec, Some(Spec::Connection(of)) if of.is_free())
    }

    /// The slots or cores of one of its members.
    pub fn slots(&self, code: &Code) -> f64 {
        self.parts.first().map_or(0.0, |(stage, _)| code.stages[stage.index()].slots)
    }

    /// Stages, each with the index of one member where the row is for a single one.
    pub fn parts(&self) -> &[(StageId, Option<u32>)] {
        &self.parts
    }

    /// The site of the row.
    pub fn site(&self) -> SiteId {
        self.site
    }
}

/// A row of a node that the file expects something of.
pub(crate) struct ExpectedRows {
    pub name: String,
    /// Its place among the program's rows.
    pub row: usize,
    pub what: RowKind,
}

/// What a file can expect something of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// A queue.
    Waits,
    /// A server that shares its cores.
    Shares,
    /// A server or a listener, which has connections.
    Held,
}

/// The names of nodes that the file expects something of in this scenario, each once.
fn names<'p>(point: &'p Point, scenario: &Scenario) -> Vec<&'p str> {
    let of_it = point.expectations.iter().filter(|e| e.scenario == scenario.name);
    let mut names: Vec<&str> = of_it.filter_map(|e| e.node.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What a node of that name is.
fn what(point: &Point, id: u32, name: &str) -> Option<RowKind> {
    let node = point.nodes.get(id as usize).filter(|node| node.name.as_deref() == Some(name))?;
    match point.specs.get(node.spec as usize) {
        Some(Spec::Queue { .. }) => Some(RowKind::Waits),
        Some(Spec::Concurrent { .. }) => Some(RowKind::Shares),
        Some(Spec::Server { .. } | Spec::Listen(_)) => Some(RowKind::Held),
        _ => None,
    }
}

/// Whether the file expects something of some of a site's members and not of the others.
pub(crate) fn names_some_members(point: &Point, scenario: &Scenario, code: &Code) -> bool {
    let is_some = |name: &str, of: RowKind| rows_of(code, |id| what(point, id, name) == Some(of)).1;
    names(point, scenario).into_iter().any(|name| {
        is_some(name, RowKind::Waits)
            || is_some(name, RowKind::Shares)
            || code.connections.is_some() && is_some(name, RowKind::Held)
    })
}

/// Adds the rows of the nodes that the file expects something of.
pub(crate) fn add_rows(
    point: &Point,
    scenario: &Scenario,
    code: &Code,
    rows: &mut Vec<Row>,
) -> Vec<ExpectedRows> {
    let mut expected = Vec::new();
    for name in names(point, scenario) {
        for of in [RowKind::Waits, RowKind::Shares, RowKind::Held] {
            for row in rows_of(code, |id| what(point, id, name) == Some(of)).0 {
                expected.push(ExpectedRows { name: name.to_owned(), row: rows.len(), what: of });
                rows.push(row);
            }
        }
    }
    expected
}
