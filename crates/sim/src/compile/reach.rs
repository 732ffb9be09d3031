//! Reachability in a plan: which nodes a limit can cut off, which errors can return to a balancer.

use crate::compile::blocks::{Layout, inside, spare};
use weir_plan::{Edge, Mode, Spec};
use weir_policy::config::{Balance, Exclude};

impl Layout<'_> {
    /// The nodes where a request can be cut off: behind a limit, in a process that can crash, as one of several
    /// branches, and everywhere if its client can leave. Also those where it may have been before it is lost.
    pub fn find_cuttable(&self, everywhere: bool) -> Vec<bool> {
        let mut cut = self.behind(everywhere, |spec| match spec {
            Spec::Timeout { time_ns } => time_ns.is_some(),
            Spec::Faulty(fault) => fault.mode == Mode::Crash,
            Spec::Fanout { .. } | Spec::Hedge(_) => true,
            _ => false,
        });
        // Health checks cross some nodes of a request's path, so its waits are separate there.
        let checked = self.checked();
        cut.iter_mut().zip(&checked).for_each(|(cut, checked)| *cut |= checked);
        let leads = self.leads_to(loses);
        // An attempt may be lost after another has been elsewhere, and an answer on its way back.
        let point = self.point;
        let again = |id: usize| {
            let spec = &point.specs[point.nodes[id].spec as usize];
            matches!(spec, Spec::Retry(_) | Spec::Sequence)
                || matches!(spec, Spec::Cable { .. }) && loses(spec)
        };
        let again = self.behind_nodes(false, |id| leads[id] && again(id));
        cut.iter_mut().zip(leads.iter().zip(again)).for_each(|(cut, (leads, again))| *cut |= leads | again);
        cut
    }

    /// # Errors
    /// A node that requests can reach but that cannot be simulated.
    pub fn refuse_unbuilt(&self) -> Result<(), String> {
        let known = self.known_work();
        let such = |spec: &Spec| {
            matches!(spec, Spec::Route { .. } | Spec::Split { .. } | Spec::Fanout { .. } | Spec::Hedge(_))
                || matches!(spec, Spec::Faulty(fault) if fault.mode == Mode::Pause)
        };
        let Some((id, spec)) = self.reached().find(|(id, spec)| known[*id as usize] && such(spec)) else {
            return Ok(());
        };
        let site = &self.point.sites[self.point.nodes[id as usize].site as usize];
        let (kind, at) = (spec.kind(), &site.span);
        Err(format!("`lb.least_work` with a `{kind}` behind its targets is not built yet (`{kind}` at {at})"))
    }

    /// The nodes whose work some balancer uses.
    pub fn known_work(&self) -> Vec<bool> {
        self.behind(false, |spec| matches!(spec, Spec::Lb(lb) if lb.balance == Balance::LeastWork))
    }

    /// The nodes that health checks may reach, or probes that cost work.
    pub fn checked(&self) -> Vec<bool> {
        self.behind(false, |spec| matches!(spec, Spec::Lb(lb) if lb.health.is_some() || lb.probe_cost_ns > 0))
    }

    /// Whether requests can be lost.
    pub fn loses(&self) -> bool {
        self.reached().any(|(_, spec)| loses(spec))
    }

    /// The nodes behind those with the property `such`, or all.
    pub fn behind(&self, all: bool, such: impl Fn(&Spec) -> bool) -> Vec<bool> {
        self.behind_nodes(all, |id| such(&self.point.specs[self.point.nodes[id].spec as usize]))
    }

    fn behind_nodes(&self, all: bool, such: impl Fn(usize) -> bool) -> Vec<bool> {
        let point = self.point;
        let mut behind = vec![false; point.nodes.len()];
        let mut list_behind = vec![false; point.lists.len()];
        behind[self.root as usize] = all;
        // Nodes come after all that they lead to.
        for id in (0..point.nodes.len()).rev() {
            if !self.reachable[id] || !(behind[id] || such(id)) {
                continue;
            }
            if let Some(spare) = spare(point, id as u32) {
                behind[spare as usize] = true;
            }
            match inside(point, id as u32) {
                Edge::None => {}
                Edge::Node(child) => behind[child as usize] = true,
                Edge::List(l) => {
                    if !std::mem::replace(&mut list_behind[l as usize], true) {
                        point.lists[l as usize].iter().for_each(|&t| behind[t as usize] = true);
                    }
                }
            }
        }
        behind
    }

    /// The nodes that lead to those with the property `such`, and those themselves.
    pub fn leads_to(&self, such: impl Fn(&Spec) -> bool) -> Vec<bool> {
        let point = self.point;
        let mut leads = vec![false; point.nodes.len()];
        let mut of_list: Vec<Option<bool>> = vec![None; point.lists.len()];
        for id in (0..point.nodes.len()).filter(|&id| self.reachable[id]) {
            let beyond = match inside(point, id as u32) {
                Edge::None => false,
                Edge::Node(child) => leads[child as usize],
                Edge::List(l) => *of_list[l as usize]
                    .get_or_insert_with(|| point.lists[l as usize].iter().any(|&t| leads[t as usize])),
            };
            let aside = spare(point, id as u32).is_some_and(|spare| leads[spare as usize]);
            leads[id] = beyond || aside || such(&point.specs[point.nodes[id].spec as usize]);
        }
        leads
    }
}

/// Whether a node can lose requests for good.
fn loses(spec: &Spec) -> bool {
    match spec {
        Spec::Cable { loss, resend_ns, .. } => loses_for_good(*loss, *resend_ns),
        Spec::Faulty(fault) => fault.mode == Mode::Blackhole,
        _ => false,
    }
}

/// Whether messages that a cable loses are never sent again, or in vain.
pub(crate) fn loses_for_good(loss: f64, resend_ns: Option<u64>) -> bool {
    loss >= 1.0 || loss > 0.0 && resend_ns.is_none()
}

impl Layout<'_> {
    /// Whether one request can be in several places at once.
    pub fn has_branches(&self) -> bool {
        self.reached().any(|(_, spec)| matches!(spec, Spec::Fanout { .. } | Spec::Hedge(_)))
    }

    /// The balancers' nodes that exclude what other branches of a request have picked.
    pub fn open_elsewhere(&self) -> Vec<bool> {
        let excludes = |spec: &Spec| matches!(spec, Spec::Retry(retry) if retry.exclude != Exclude::None);
        let fans = self.reached().any(|(_, spec)| excludes(spec));
        self.behind(false, |spec| match spec {
            Spec::Hedge(_) => true,
            Spec::Fanout { .. } => fans,
            _ => false,
        })
    }
}
