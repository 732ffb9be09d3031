//! Samples of the inner state, at equal distances in time, and the timelines of what fails: the input of a recorder's
//! series.

use super::build::{Act, FaultSite, Node};
use super::recorder::Recorder;
use super::run::Reference;
use crate::code::{MemberId, Stage};
use crate::record::{
    ConnectionSample, FleetSample, MOST_CHANGES, Mark, OutageSite, PoolSample, StateSample, SubsetSample,
    change_marks, marks,
};
use weir_model::connections::Count;
use weir_model::faulty::Faulty;
use weir_plan::Point;
use weir_policy::{SubsetSizes, TargetId};

/// The timeline of a member, and when the member is there, ns.
struct FaultLine {
    line: usize,
    from_ns: u64,
    to_ns: u64,
}

impl Reference<'_> {
    /// Takes the samples of all instants before the next event.
    pub(super) fn look_until(&mut self, at: u64) {
        while let Some(due) = self.next_look().filter(|due| *due < at) {
            self.look_at(due);
        }
    }

    fn next_look(&self) -> Option<u64> {
        Some(self.branches.recorder.as_ref()?.tracks.series.as_ref()?.next())
    }

    /// Attaches a recorder.
    pub(crate) fn note_by(&mut self, mut recorder: Recorder) {
        if recorder.tracks.series.is_some() {
            recorder.lines.clone_from(&self.lines);
        }
        self.branches.recorder = Some(Box::new(recorder));
    }

    /// The run is over: detaches the recorder.
    pub(crate) fn noted(&mut self, point: &Point) -> Option<Box<Recorder>> {
        if self.next_look().is_some() {
            self.look_at(self.now_ns);
        }
        let mut recorder = self.branches.recorder.take()?;
        if let Some(series) = &mut recorder.tracks.series {
            series.round_off();
            series.marks = self.outages(point, &recorder.lines);
        }
        Some(recorder)
    }

    /// The nodes that fail, with their stages.
    fn faults(&self) -> impl Iterator<Item = (&Stage, &FaultSite)> {
        self.code.stages.iter().zip(&self.tables.nodes).filter_map(|(stage, node)| match node.act {
            Act::Fault { fault } => Some((stage, &self.tables.faults[fault as usize])),
            _ => None,
        })
    }

    /// The timeline of each member that ever is.
    fn lines_of(&self, stage: &Stage, fault: &FaultSite) -> impl Iterator<Item = FaultLine> {
        let base = self.code.blocks[stage.block as usize].base;
        let (changes, attendance) = (self.code.changes.as_deref(), &self.changes.attendance);
        (base..).zip(&stage.nodes).filter_map(move |(member, node)| {
            let whole = Some((0, u64::MAX));
            let (from_ns, to_ns) = changes.map_or(whole, |tables| attendance.presence(tables, *node))?;
            let line = self.tables.fault_lines[MemberId(member).index_from(fault.offset)] as usize;
            Some(FaultLine { line, from_ns, to_ns })
        })
    }

    /// When nodes were down until now, by their timelines as they were at the start. A clock that only requests move on
    /// has no instants of its own.
    fn outages(&self, point: &Point, start: &[Faulty]) -> Vec<Mark> {
        let mut sites = Vec::new();
        let mut spans = Vec::new();
        for (stage, fault) in self.faults() {
            sites.push(OutageSite {
                place: point.sites[stage.site.index()].label.clone(),
                what: fault.mode.word(),
                count: stage.nodes.len() as u64,
            });
            for FaultLine { line, from_ns, to_ns } in self.lines_of(stage, fault) {
                let law = &self.tables.lines[line].law;
                let Some(start) = start.get(line).filter(|_| !law.is_lazy()) else { continue };
                // That of a newcomer begins as it joins.
                let lasts_ns = self.now_ns.min(to_ns).saturating_sub(from_ns);
                let times = start.times_down(law, lasts_ns, MOST_CHANGES);
                let times = times.into_iter().flatten();
                spans.extend(times.map(|(from, to)| (sites.len() - 1, from_ns + from, from_ns + to)));
            }
        }
        let mut all = marks(&sites, spans.into_iter());
        all.extend(self.code.changes.iter().flat_map(|changes| change_marks(changes, self.now_ns)));
        all.sort_by_key(|mark| (mark.from_ns, mark.to_ns));
        all
    }

    fn look_at(&mut self, at: u64) {
        let counts = self.connections.as_deref_mut().map(|of| of.pools.counts(at).groups);
        // The first group has all connections.
        let sample = |of: &Count| ConnectionSample { open_ns: of.open_ns, opened: of.opened };
        let connections = counts.iter().flatten().skip(1).map(sample).collect();
        let ledger = &self.ledger;
        let passed = at.saturating_sub(ledger.last_step);
        let in_flight = ledger.area.wrapping_add(ledger.inside.wrapping_mul(passed));
        let (busy, waiting) = self.meters.iter().map(|meter| meter.until(at)).unzip();
        let is_up = |of: &FaultLine| {
            let is_there = of.from_ns <= at && at < of.to_ns;
            is_there && self.lines[of.line].looks_up(&self.tables.lines[of.line].law, at)
        };
        let up = self
            .faults()
            .map(|(stage, fault)| (stage.site, self.lines_of(stage, fault).filter(is_up).count() as u32));
        let (up, pools) = (up.collect(), self.pools());
        let fleets = self.changes.each_fleet();
        let fleets = fleets.map(|(members, unlisted, sent)| FleetSample { members, unlisted, sent });
        let look = StateSample {
            at,
            arrived: ledger.arrived,
            ended: ledger.ended,
            in_flight,
            busy,
            waiting,
            up,
            pools,
            fleets: fleets.collect(),
            connections,
            subsets: self.subsets(),
        };
        if let Some(recorder) = &mut self.branches.recorder
            && let Some(series) = &mut recorder.tracks.series
        {
            series.take_in(look);
        }
    }

    /// The health of the balancers' targets, by site.
    fn pools(&self) -> Vec<PoolSample> {
        let mut pools = Vec::new();
        for (stage, node) in self.tables.nodes.iter().enumerate() {
            let Act::Balance { lb } = node.act else { continue };
            if !self.tables.lbs[lb as usize].watches {
                continue;
            }
            let mut pool = PoolSample { site: self.code.stages[stage].site, ..PoolSample::default() };
            for health in self.balancers.iter().filter(|b| b.lb == lb).map(|b| b.upstream.health()) {
                pool.targets += health.len();
                let standings = || TargetId::all(health.len()).map(|target| health.standing(target));
                pool.down += standings().filter(|s| *s == "down").count() as u32;
                pool.ejected += standings().filter(|s| matches!(*s, "ejected" | "probation")).count() as u32;
            }
            pools.push(pool);
        }
        pools
    }

    /// The subsets of the first balancer of each site that has them.
    fn subsets(&self) -> Vec<SubsetSample> {
        let sample = |(stage, node): (usize, &Node)| {
            let Act::Balance { lb } = node.act else { return None };
            let first = &self.balancers.iter().find(|balancer| balancer.lb == lb)?.upstream;
            let SubsetSizes { count, least, most } = first.subsets()?.sizes();
            let site = self.code.stages[stage].site;
            Some(SubsetSample { site, count, least, most, targets: first.health().count().0 })
        };
        self.tables.nodes.iter().enumerate().filter_map(sample).collect()
    }
}
