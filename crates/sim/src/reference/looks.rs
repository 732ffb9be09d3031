//! Samples of the inner state, at equal distances in time: the input of a recorder's series.

use super::build::Act;
use super::recorder::Recorder;
use super::run::Reference;
use crate::code::MemberId;
use crate::record::{PoolSample, StateSample};
use weir_policy::TargetId;

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
    pub(crate) fn note_by(&mut self, recorder: Recorder) {
        self.branches.recorder = Some(Box::new(recorder));
    }

    /// The run is over: detaches the recorder.
    pub(crate) fn noted(&mut self) -> Option<Box<Recorder>> {
        if self.next_look().is_some_and(|due| due > self.now_ns) {
            self.look_at(self.now_ns);
        }
        self.branches.recorder.take()
    }

    fn look_at(&mut self, at: u64) {
        let ledger = &self.ledger;
        let passed = at.saturating_sub(ledger.last_step);
        let in_flight = ledger.area.wrapping_add(ledger.inside.wrapping_mul(passed));
        let (busy, waiting) = self.meters.iter().map(|meter| meter.until(at)).unzip();
        let stages = self.code.stages.iter().enumerate();
        let faults = stages.filter_map(|(stage, s)| match self.tables.nodes[stage].act {
            Act::Fault { fault } => Some((s, &self.tables.faults[fault as usize])),
            _ => None,
        });
        let up = faults.map(|(stage, fault)| {
            let base = self.code.blocks[stage.block as usize].base;
            let members = base..base + stage.nodes.len() as u32;
            let is_up = |member: &u32| {
                let line = self.tables.fault_lines[MemberId(*member).index_from(fault.offset)] as usize;
                self.lines[line].looks_up(&self.tables.lines[line].law, at)
            };
            (stage.site, members.filter(is_up).count() as u32)
        });
        let (up, pools) = (up.collect(), self.pools());
        let look = StateSample {
            at,
            arrived: ledger.arrived,
            ended: ledger.ended,
            in_flight,
            busy,
            waiting,
            up,
            pools,
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
}
