//! What a request may run ahead of time after its arrival: waits that are the same on every path, and entries to
//! queues that no other request can reach in between.

use crate::code::MemberId;
use crate::code::{Code, ColdOp, Op};
use std::collections::HashMap;

/// Deepest nesting of choices that is followed.
const DEEPEST: usize = 64;

/// Fills in [`Code::prefix_ns`] and [`crate::code::QueueSite::ahead`].
pub(crate) fn find(code: &mut Code) {
    if code.patience_ns.is_none() {
        code.prefix_ns = constant_prefix(code, code.start.pc, 0, &mut HashMap::new()).unwrap_or(0);
    }
    let mut entries =
        Entries { code, seen: HashMap::new(), barred: vec![false; code.steps.len()], after: HashMap::new() };
    entries.follow(code.start.pc, -i128::from(code.prefix_ns), 0);
    let found: Vec<bool> = (0..code.queues.len() as u32).map(|q| entries.may_run_ahead(q)).collect();
    for (site, ahead) in code.queues.iter_mut().zip(found) {
        site.ahead = ahead;
    }
}

/// Where the code behind a balancer begins, each once.
fn starts(code: &Code, lb: u32) -> Vec<u32> {
    let mut lists: Vec<u32> = code.instances.iter().filter(|i| i.lb == lb).map(|i| i.list).collect();
    lists.sort_unstable();
    lists.dedup();
    let mut starts: Vec<u32> = lists.iter().flat_map(|l| code.lists[*l as usize].starts(code)).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Whether some list of a balancer is empty.
fn may_be_empty(code: &Code, lb: u32) -> bool {
    let none = |list: u32| !code.weights[list as usize].iter().any(|w| *w > 0.0);
    code.instances.iter().any(|i| i.lb == lb && none(i.list))
}

/// The wait before the first step that must happen in its turn, if it is the same on every path.
fn constant_prefix(code: &Code, pc: u32, depth: usize, known: &mut HashMap<u32, Option<u64>>) -> Option<u64> {
    if let Some(known) = known.get(&pc) {
        return *known;
    }
    let mut total = 0u64;
    let mut at = pc as usize;
    let result = loop {
        total = total.saturating_add(code.steps[at].wait_ns);
        match code.steps[at].op {
            Op::EnterRetry { retry } if code.retries[retry as usize].budget.is_some() => break Some(total),
            Op::EnterRetry { .. } | Op::BeginAttempt { .. } => {}
            Op::PickTarget { lb } if !code.lbs[lb as usize].ordered && depth < DEEPEST => {
                if may_be_empty(code, lb) {
                    break None;
                }
                let starts = starts(code, lb);
                let mut all = starts.iter().map(|&pc| constant_prefix(code, pc, depth + 1, known));
                let first = all.next().flatten();
                let same = all.all(|x| x == first);
                break if same { first.map(|x| total.saturating_add(x)) } else { None };
            }
            Op::EnterQueue { .. } | Op::Fault { .. } | Op::PickTarget { .. } | Op::EnterLimit { .. } => {
                break Some(total);
            }
            _ => break None,
        }
        at += 1;
    };
    known.insert(pc, result);
    result
}

/// Finds queues that every request enters at most once, a constant time after the event of its arrival: then the
/// order of entries is the order of arrivals, and a request that finds such a queue idle, with no other on the way to
/// it, may enter ahead of time.
struct Entries<'a> {
    code: &'a Code,
    /// Time since the arrival's event at each step that has been followed from it.
    seen: HashMap<u32, i128>,
    /// Steps after which no queue may be entered ahead.
    barred: Vec<bool>,
    /// When a queue is entered; `None`: at different times.
    after: HashMap<u32, Option<i128>>,
}

impl Entries<'_> {
    fn may_run_ahead(&self, queue: u32) -> bool {
        let site = &self.code.queues[queue as usize];
        let alone = site.limits.concurrency == 1 && !site.can_be_cut && site.timeout_ns.is_none();
        alone && matches!(self.after.get(&queue), Some(Some(ns)) if *ns > 0)
    }

    fn follow(&mut self, pc: u32, since: i128, depth: usize) {
        if let Some(before) = self.seen.insert(pc, since) {
            if before != since {
                self.bar(pc);
            }
            return;
        }
        if depth > DEEPEST {
            return self.bar(pc);
        }
        let (mut at, mut since) = (pc as usize, since);
        loop {
            let step = self.code.steps[at];
            since += i128::from(step.wait_ns);
            match step.op {
                Op::PickTarget { lb } => {
                    // A choice at a later time than the arrival is an event of its own.
                    let in_one_go = !self.code.lbs[lb as usize].ordered || since == 0;
                    for start in starts(self.code, lb) {
                        if in_one_go { self.follow(start, since, depth + 1) } else { self.bar(start) }
                    }
                    return;
                }
                Op::Call { call } => {
                    let site = self.code.calls[call as usize];
                    let block = self.code.blocks.iter().find(|b| b.calls == Some(call));
                    let members = block.map_or(0..0, |b| b.base..b.base + b.members);
                    let mut starts: Vec<u32> = members
                        .map(|m| self.code.call_targets[m.wrapping_add(site.offset) as usize].pc)
                        .collect();
                    starts.sort_unstable();
                    starts.dedup();
                    starts.into_iter().for_each(|start| self.follow(start, since, depth + 1));
                    return;
                }
                Op::EnterQueue { queue } => {
                    let after = self.after.entry(queue).or_insert(Some(since));
                    if *after != Some(since) {
                        *after = None;
                    }
                    return self.bar(at as u32 + 1);
                }
                Op::Fault { .. } if since == 0 => at += 1,
                _ => return self.bar(at as u32),
            }
        }
    }

    /// Bars all queues that can be reached from a step from being entered ahead.
    fn bar(&mut self, pc: u32) {
        let mut stack = vec![pc];
        while let Some(pc) = stack.pop() {
            for at in pc as usize..self.code.steps.len() {
                if std::mem::replace(&mut self.barred[at], true) {
                    break;
                }
                match self.code.steps[at].op {
                    Op::EnterQueue { queue } => {
                        self.after.insert(queue, None);
                    }
                    Op::PickTarget { lb } => stack.extend(starts(self.code, lb)),
                    Op::Cold(ColdOp::AskGuard { lb }) => {
                        stack.extend(starts(self.code, lb));
                        stack.extend(self.code.guards.spares.iter().map(|t| t.pc));
                    }
                    Op::Cold(ColdOp::EnterSequence { group }) | Op::Cold(ColdOp::BeginBranches { group }) => {
                        let site = self.code.groups.sites[group as usize];
                        let block = &self.code.blocks[self.code.stages[site.stage.index()].block as usize];
                        let lists = (block.base..block.base + block.members)
                            .map(|member| self.code.groups.lists[MemberId(member).index_from(site.offset)]);
                        stack.extend(lists.flat_map(|list| self.code.lists[list as usize].starts(self.code)));
                    }
                    Op::Cold(ColdOp::Choose { .. }) => {
                        let lists = self.code.kinds.nodes.iter().map(|node| self.code.lists[node.0 as usize]);
                        stack.extend(lists.flat_map(|list| list.starts(self.code)));
                    }
                    Op::Call { .. } => stack.extend(self.code.call_targets.iter().map(|t| t.pc)),
                    Op::Return | Op::End => break,
                    _ => {}
                }
            }
        }
    }
}
