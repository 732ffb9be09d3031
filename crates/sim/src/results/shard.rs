//! A shard of a run: every n-th replication, kept so that all shards together give the result of one run, byte for
//! byte.
//!
//! Replications share nothing, histograms add up in any order, and values are listed in the order of replications: so
//! a shard holds the sums of each of its replications and the histograms of all of them, beside the plan and the
//! options.

use crate::results::gather::{JobReplications, Run, Sink};
use crate::results::job::jobs;
use crate::results::latency::Pooled;
use crate::results::over_time::PooledSlices;
use crate::results::result::{Results, ScenarioResult};
use crate::results::run::{Error, Options, finish, results_of};
use crate::results::summary::Replication;
use crate::results::threads::Observer;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;

const SCHEMA: &str = "weir.part/1";

/// Which shard of a run: the k-th (from 1) of n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 1 to `n`.
    pub k: u32,
    /// How many shards there are.
    pub n: u32,
}

impl Shard {
    /// The numbers of its replications out of `replications`.
    fn numbers(self, replications: u32) -> Vec<u32> {
        (self.k - 1..replications).step_by(self.n as usize).collect()
    }
}

/// The options of the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RunOptions {
    seed: u64,
    replications: u32,
    requests: Option<u64>,
    members: bool,
    #[serde(default)]
    connections: bool,
    scenarios: Vec<String>,
}

/// A shard of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShardRun {
    schema: String,
    version: String,
    shard: Shard,
    asked: RunOptions,
    /// As [`Plan::to_json`] writes it.
    plan: String,
    /// In the order of the result's scenarios.
    jobs: Vec<ShardJob>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShardJob {
    latencies: Pooled,
    runs: Vec<Replication>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slices: Option<PooledSlices>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overload: Option<String>,
}

/// Why shards do not make up one run.
#[derive(Clone, Debug, PartialEq)]
pub enum NotWhole {
    /// A shard is missing, doubled, or of another run; or a file is not a shard: a sentence.
    Shards(String),
    /// They do, but a self-check fails, or the plan cannot be simulated.
    Run(Error),
}

impl fmt::Display for NotWhole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotWhole::Shards(why) => f.write_str(why),
            NotWhole::Run(error) => write!(f, "{error:?}"),
        }
    }
}

/// Runs a shard; `None`: it was stopped.
///
/// # Errors
/// As [`crate::run`].
pub fn run_shard(
    plan: &Plan,
    options: &Options,
    shard: Shard,
    observer: Observer<'_>,
) -> Result<Option<ShardRun>, Error> {
    let run = Run { jobs: jobs(plan, options)?, options, observer, fast: true };
    let numbers = shard.numbers(options.replications);
    let mut gathered: Vec<Option<JobReplications>> = run.jobs.iter().map(|_| None).collect();
    if numbers.is_empty() {
        gathered.iter_mut().for_each(|job| *job = Some(JobReplications::default()));
    }
    let mut part = Part { run: &run, replications: numbers.len() as u32, jobs: gathered };
    run.replicate(&numbers, &mut part)?;
    let Some(gathered) = part.jobs.into_iter().collect::<Option<Vec<JobReplications>>>() else {
        return Ok(None);
    };
    let jobs = gathered.into_iter().map(|g| ShardJob {
        latencies: g.pooled,
        runs: g.runs,
        slices: g.slices,
        overload: g.overload,
    });
    Ok(Some(ShardRun {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        shard,
        asked: RunOptions {
            seed: options.seed,
            replications: options.replications,
            requests: options.requests,
            members: options.members,
            connections: options.connections,
            scenarios: options.scenarios.clone(),
        },
        plan: String::from_utf8_lossy(&plan.to_json()).into_owned(),
        jobs: jobs.collect(),
    }))
}

/// The jobs of a shard that are whole so far. One that is not cannot be merged, so it is dropped.
struct Part<'a> {
    run: &'a Run<'a>,
    replications: u32,
    jobs: Vec<Option<JobReplications>>,
}

impl Sink for Part<'_> {
    fn take(&mut self, job: usize, all: JobReplications) -> Result<(), Error> {
        let broken: Vec<String> = all.runs.iter().flat_map(|r| r.violations.clone()).collect();
        self.jobs[job] = all.fewer_than(self.replications).is_none().then_some(all);
        if broken.is_empty() { Ok(()) } else { Err(Error::SelfCheck(broken)) }
    }

    fn tell_overdue(&mut self) {
        (self.run.observer.overdue)(None);
    }
}

impl ShardRun {
    /// The shard as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        // Writing to memory does not fail, and a shard holds nothing that JSON lacks.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Reads a shard.
    ///
    /// # Errors
    /// A file that is not a shard, or was made by another version, whose draws may differ.
    pub fn from_json(bytes: &[u8]) -> Result<ShardRun, NotWhole> {
        let no_part = |why: String| NotWhole::Shards(format!("it was not written by `--shard`: {why}"));
        let part: ShardRun = serde_json::from_slice(bytes).map_err(|e| no_part(e.to_string()))?;
        let Shard { k, n } = part.shard;
        if part.schema != SCHEMA || k == 0 || k > n {
            return Err(no_part(format!("schema {}, shard {k} of {n}", part.schema)));
        }
        if part.version != env!("CARGO_PKG_VERSION") {
            let own = env!("CARGO_PKG_VERSION");
            return Err(NotWhole::Shards(format!(
                "it was written by weir {}, but this is weir {own}",
                part.version
            )));
        }
        Ok(part)
    }

    /// Whether it lists every member of a site.
    pub fn lists_members(&self) -> bool {
        self.asked.members
    }

    /// How many replications it has.
    pub fn replications(&self) -> usize {
        self.shard.numbers(self.asked.replications).len()
    }
}

/// Merges all shards of a run into its result.
///
/// # Errors
/// Shards that are missing, doubled, or of another run.
pub fn merge(parts: Vec<ShardRun>, each: bool) -> Result<Results, NotWhole> {
    let parts = in_order(parts)?;
    let Some(first) = parts.first() else { return Err(NotWhole::Shards("there is no shard".to_owned())) };
    let asked = first.asked.clone();
    let plan = Plan::from_json(first.plan.as_bytes()).map_err(|e| NotWhole::Shards(e.to_string()))?;
    let options = Options {
        seed: asked.seed,
        first: 0,
        replications: asked.replications,
        settled_over: None,
        stretch: 1,
        requests: asked.requests,
        threads: 1,
        members: asked.members,
        connections: asked.connections,
        scenarios: asked.scenarios,
    };
    let (stop, silent) = (AtomicBool::new(false), |_: u64, _: u64| {});
    let jobs = jobs(&plan, &options).map_err(NotWhole::Run)?;
    let run = Run { jobs, options: &options, observer: Observer::new(&silent, &stop), fast: true };
    let mut jobs_of: Vec<std::vec::IntoIter<ShardJob>> =
        parts.into_iter().map(|p| p.jobs.into_iter()).collect();
    let (mut results, mut events) = (Vec::<Option<ScenarioResult>>::new(), 0);
    for job in &run.jobs {
        let of_parts: Option<Vec<ShardJob>> = jobs_of.iter_mut().map(Iterator::next).collect();
        let of_parts = of_parts.ok_or_else(|| NotWhole::Shards("a shard lacks scenarios".to_owned()))?;
        let all = together(of_parts, options.replications)?;
        events += all.runs.iter().map(|r| r.events).sum::<u64>();
        results.push(Some(finish(job, &run, each, &all).map_err(NotWhole::Run)?));
    }
    Ok(results_of(&plan, &options, options.replications, results, events, Vec::new()))
}

/// The replications of a job in order: the i-th comes from shard i mod n.
fn together(parts: Vec<ShardJob>, replications: u32) -> Result<JobReplications, NotWhole> {
    if let Some(why) = parts.iter().find_map(|part| part.overload.clone()) {
        return Ok(JobReplications { overload: Some(why), ..JobReplications::default() });
    }
    let (mut pooled, mut slices) = (Pooled::default(), None);
    let mut runs = Vec::with_capacity(parts.len());
    for part in parts {
        pooled.join(part.latencies);
        part.slices.into_iter().for_each(|of| of.join_to(&mut slices));
        runs.push(part.runs.into_iter());
    }
    let n = runs.len();
    let all: Option<Vec<Replication>> = (0..replications as usize).map(|i| runs[i % n].next()).collect();
    match all {
        Some(all) if runs.iter().all(|left| left.len() == 0) => {
            Ok(JobReplications { runs: all, pooled, slices, overload: None })
        }
        _ => Err(NotWhole::Shards("a shard does not have the replications that it should have".to_owned())),
    }
}

/// The shards by their number, each once.
fn in_order(mut parts: Vec<ShardRun>) -> Result<Vec<ShardRun>, NotWhole> {
    parts.sort_by_key(|p| p.shard.k);
    let Some(first) = parts.first() else { return Ok(parts) };
    let n = first.shard.n;
    if let Some(other) =
        parts.iter().find(|p| p.shard.n != n || p.asked != first.asked || p.plan != first.plan)
    {
        let what = if other.plan != first.plan { "another topology" } else { "another run" };
        let (k, of) = (other.shard.k, other.shard.n);
        return Err(NotWhole::Shards(format!(
            "shard {k} of {of} is from {what} than shard {} of {n}: seed, replications, options and file must be the same",
            first.shard.k
        )));
    }
    if let Some(twice) = parts.windows(2).find(|w| w[0].shard.k == w[1].shard.k) {
        return Err(NotWhole::Shards(format!("shard {} of {n} is given twice", twice[0].shard.k)));
    }
    let missing: Vec<String> =
        (1..=n).filter(|k| parts.iter().all(|p| p.shard.k != *k)).take(10).map(|k| k.to_string()).collect();
    if missing.is_empty() {
        return Ok(parts);
    }
    Err(NotWhole::Shards(format!("of {n} shards these are missing: {}", missing.join(", "))))
}
