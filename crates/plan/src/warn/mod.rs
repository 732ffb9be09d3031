//! Warnings about probable mistakes that can still be run, one function for each: nodes that no request reaches,
//! weights that no balancer reads; what concerns loads is in `warn/load.rs`, failures `warn/failing.rs`, requests
//! `warn/asked.rs`, settings that do nothing `warn/idle.rs`, what cannot happen `warn/never.rs`, times without a mean
//! `warn/moments.rs`, traces that begin late `warn/traces.rs`, users that neither think nor wait `warn/closed.rs`,
//! gates that few balancers check `warn/gates.rs`. What each means is in `warn/pages.rs`.

use crate::diagnostic::{Diagnostic, Location, Severity};
use crate::ways::down;
use crate::{Edge, Node, NodeId, Point, Spec};
use std::collections::{BTreeSet, HashSet};

pub use asked::asked;
pub use certificates::certificates;
pub use changes::changes;
pub use closed::instant_loops;
pub use load::overloaded;
pub use moments::{cut_off, heavy_tails};
pub use pages::{PAGES, WarningPage};
pub use traces::late_traces;

mod asked;
mod certificates;
mod changes;
mod closed;
mod failing;
mod gates;
mod idle;
mod load;
mod moments;
mod never;
mod pages;
mod statuses;
mod traces;

fn warning(message: String) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
}

fn placed(mut finding: Diagnostic, at: Option<&Location>) -> Diagnostic {
    if let Some(at) = at {
        finding = finding.with_location(at);
    }
    finding
}

/// A point, and the locations of its sites in the text.
struct Draft<'p> {
    point: &'p Point,
    standing: &'p [Option<Location>],
}

impl Draft<'_> {
    /// The kind of a site's nodes, and its location. The kind is empty for a part of another node.
    fn describe(&self, site: u32) -> (&str, Option<&Location>) {
        let Some(known) = self.point.sites.get(site as usize) else { return ("", None) };
        let place = self.point.places.get(known.place as usize);
        let at = self.standing.get(site as usize).and_then(Option::as_ref);
        (place.map_or("", |p| p.kind.as_str()), at)
    }
}

/// A finding and its site.
#[derive(Default)]
struct Findings(Vec<(u32, Diagnostic)>);

impl Findings {
    fn warn(&mut self, site: u32, message: String, help: impl Into<String>) {
        self.0.push((site, warning(message).help(help)));
    }

    fn hint(&mut self, site: u32, message: String, help: impl Into<String>) {
        self.0.push((site, Diagnostic { severity: Severity::Hint, ..warning(message).help(help) }));
    }
}

/// The findings about a graph that do not depend on its loads. `standing` holds the location of each site in the text.
pub fn graph(point: &Point, standing: &[Option<Location>]) -> Vec<Diagnostic> {
    let draft = &Draft { point, standing };
    let mut findings = unreached(draft);
    for look in [
        failing::lost,
        failing::attempts,
        failing::repairs,
        failing::untried,
        failing::late,
        statuses::unanswered,
        statuses::unheard,
        idle::outliers,
        idle::slow_starts,
        idle::subsets,
        gates::few_askers,
        never::short_timeouts,
        unmodelled,
        one_target,
    ] {
        let mut found = Findings::default();
        look(draft, &mut found);
        // Once per place, however many nodes and calls came through it.
        let mut sites = BTreeSet::new();
        let mut places: HashSet<Option<&Location>> = HashSet::new();
        for (site, finding) in found.0 {
            let at = draft.describe(site).1;
            if sites.insert(site) && places.insert(at) {
                findings.push(placed(finding, at));
            }
        }
    }
    findings
}

/// Servers that a simulation reaches and nothing is known of: they answer at once. A file that is only served needs no
/// model.
fn unmodelled(draft: &Draft<'_>, found: &mut Findings) {
    let mut reached = vec![false; draft.point.nodes.len()];
    for root in draft.point.scenarios.iter().filter_map(|s| usize::try_from(s.root).ok()) {
        if let Some(r) = reached.get_mut(root) {
            *r = true;
        }
    }
    let reached = down(draft.point, reached, |_, _, reached| reached, |a, b| a || b);
    for (id, node) in draft.point.nodes.iter().enumerate().filter(|(id, _)| reached[*id]) {
        if let Some(Spec::Server { addr: Some(_), model: None, .. }) = draft.point.spec(index(id)) {
            let name = node.name.as_deref().unwrap_or("server");
            found.warn(
                node.site,
                format!(
                    "the server \"{name}\" has an address but no model: in simulation it answers at once"
                ),
                "give it one, as in `model=dist.exponential(20*ms)`",
            );
        }
    }
}

/// Balancers all of whose targets are one node: `pool(n, f)` whose f returns a node that is made outside of it.
fn one_target(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    for (id, node) in point.nodes.iter().enumerate() {
        let (Some(Spec::Lb(_)), Edge::List(list)) = (point.spec(index(id)), node.to) else { continue };
        let Some([first, others @ ..]) = point.lists.get(list as usize).map(Vec::as_slice) else {
            continue;
        };
        if !others.is_empty() && others.iter().all(|other| other == first) {
            found.warn(
                node.site,
                format!("all {} targets of this balancer are the same node", others.len() + 1),
                "make a node in the function that `pool` calls, as in `pool(3, lambda: server())`",
            );
        }
    }
}

/// Where requests come in: at scenarios and listeners.
fn roots(draft: &Draft<'_>) -> impl Iterator<Item = NodeId> {
    let listens = |(id, node): (NodeId, &Node)| {
        let spec = draft.point.specs.get(node.spec as usize);
        matches!(spec, Some(Spec::Listen(_))).then_some(id)
    };
    let listeners = (0..).zip(&draft.point.nodes).filter_map(listens);
    draft.point.scenarios.iter().map(|s| s.root).chain(listeners)
}

/// A warning for each site whose nodes no scenario (and no listener) reaches, and for each weight that is no target of
/// a balancer.
/// A file without scenarios is unfinished, and gets no such warning.
fn unreached(draft: &Draft<'_>) -> Vec<Diagnostic> {
    if draft.point.scenarios.is_empty() {
        return Vec::new();
    }
    let nodes = &draft.point.nodes;
    let mut reached = vec![false; nodes.len()];
    for root in roots(draft) {
        if let Some(r) = reached.get_mut(root as usize) {
            *r = true;
        }
    }
    let reached = down(draft.point, reached, |_, _, reached| reached, |a, b| a || b);
    let misplaced = misplaced(draft);
    let sites = nodes.iter().map(|n| n.site as usize).max().map_or(0, |m| m + 1);
    let mut of_site = vec![(0usize, 0usize, false); sites];
    for (id, node) in nodes.iter().enumerate() {
        let (all, idle, wrong) = &mut of_site[node.site as usize];
        *all += 1;
        *idle += usize::from(!reached[id]);
        *wrong |= misplaced[id];
    }
    let mut found = Vec::new();
    for (site, (all, idle, wrong)) in of_site.into_iter().enumerate() {
        let (kind, at) = draft.describe(index(site));
        if wrong {
            let finding =
                warning("this `weight` has no effect: it is not a direct target of a balancer".to_owned());
            found.push(placed(finding.help("put it directly into the list of targets"), at));
        }
        if idle > 0 && !kind.is_empty() {
            let message = match (all, idle) {
                (1, _) => format!("no scenario reaches this `{kind}`"),
                (all, idle) if all == idle => format!("no scenario reaches these {all} nodes (`{kind}`)"),
                (all, idle) => format!("no scenario reaches {idle} of these {all} nodes (`{kind}`)"),
            };
            found.push(placed(warning(message), at));
        }
    }
    found
}

/// Whether each node is a weight that something else than a balancer leads to (and that a scenario reaches, if only
/// through it).
fn misplaced(draft: &Draft<'_>) -> Vec<bool> {
    let point = draft.point;
    let balancer = |spec: &Spec| matches!(spec, Spec::Lb(_));
    let mut start = vec![Parents::default(); point.nodes.len()];
    for root in roots(draft) {
        if let Some(root) = start.get_mut(root as usize) {
            *root = Parents { reached: true, other: true };
        }
    }
    let pass = |_, spec: &Spec, above: Parents| Parents {
        reached: above.reached,
        other: above.reached && !balancer(spec),
    };
    let join =
        |a: Parents, b: Parents| Parents { reached: a.reached || b.reached, other: a.other || b.other };
    let mut at = down(point, start, pass, join);
    // The fallback of a balancer is not one of its targets either.
    for (id, spec) in (0..at.len()).filter_map(|id| Some((id, point.spec(index(id))?))).collect::<Vec<_>>() {
        if let Some(aside) = spec.aside().filter(|_| at[id].reached) {
            at[aside as usize].other = true;
        }
    }
    (0..at.len())
        .map(|id| at[id].other && matches!(point.spec(index(id)), Some(Spec::Weight { .. })))
        .collect()
}

/// The nodes that lead to a node.
#[derive(Clone, Copy, Default, PartialEq)]
struct Parents {
    /// A scenario, in the end.
    reached: bool,
    /// Something else than a balancer.
    other: bool,
}

fn index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
