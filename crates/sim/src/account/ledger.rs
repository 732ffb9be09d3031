//! The sums of a replication that accumulate while it runs, and that its self-checks compare.

use crate::account::aside::SideBooks;
use crate::account::entries::Entries;
use crate::code::changes::{Attendance, ChangeDelays};
use crate::code::{Code, MemberId, StageId};
use crate::state::connections::ConnectionTotals;
use crate::state::members::Member;
use crate::state::meter::Gauge;
use crate::state::meter::Snapshot;
use weir_policy::{Kind, Outcome};
use weir_stats::Histogram;
use weir_workload::parts::Slices;

/// The fewest ends that are kept before those that have passed are counted.
const FEW: usize = 1 << 12;

/// How many requests have ended before an instant. A request may end ahead of the clock, so its end is kept until the
/// clock has come there.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// Those that have passed: all, and successes within the deadline.
    passed: [u64; 2],
    /// Instants of others, doubled; odd: a success within the deadline.
    later: Vec<u64>,
    /// How many of these are kept before they are looked through again.
    room: usize,
    /// The counts at the window's first and last arrival.
    marks: [[u64; 2]; 2],
}

impl Default for Ends {
    fn default() -> Ends {
        Ends { passed: [0; 2], later: Vec::new(), room: FEW, marks: [[0; 2]; 2] }
    }
}

impl Ends {
    /// A request ends at `time`; the clock is at `now_ns`.
    #[inline(always)]
    pub fn add(&mut self, time: u64, is_good: bool, now_ns: u64) {
        self.later.push(time << 1 | u64::from(is_good));
        if self.later.len() >= self.room {
            self.pass(now_ns);
            self.room = FEW.max(2 * self.later.len());
        }
    }

    /// Counts those before `at`.
    #[cold]
    fn pass(&mut self, at: u64) {
        let [all, good] = &mut self.passed;
        self.later.retain(|end| {
            let is_later = end >> 1 >= at;
            *all += u64::from(!is_later);
            *good += u64::from(!is_later) & end;
            is_later
        });
    }

    /// One of the window's two instants is `at`, and all ends before it have been added.
    pub fn mark(&mut self, which: usize, at: u64) {
        self.pass(at);
        self.marks[which] = self.passed;
    }

    /// The ends between the two instants: all, and successes within the deadline.
    pub fn between(&self) -> [u64; 2] {
        let [[all, good], [last_all, last_good]] = self.marks;
        [last_all.saturating_sub(all), last_good.saturating_sub(good)]
    }
}

/// Number of kinds of error.
pub(crate) const KINDS: usize = Kind::ALL.len();

/// The sums of one replication.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// Latencies of selected requests that succeeded, and of those that failed.
    pub ok: Histogram,
    pub failed: Histogram,
    pub errors: [u64; KINDS],
    /// Ends of requests by their instants.
    pub ends: Ends,
    /// Attempts of selected requests beyond their first.
    pub extra_attempts: u64,
    /// First and last end of a selected request.
    pub first_end: u64,
    pub last_end: u64,
    /// Events taken from the pending set.
    pub events: u64,
    /// Arrivals and ends, all requests.
    pub arrived: u64,
    pub ended: u64,
    /// Sum of all latencies; like all that follow it wraps, since checks compare sums and their differences are
    /// small.
    pub latency_sum: u64,
    /// Sum of the time that ran ahead of the clock: before the first step in turn, and after the last.
    pub ahead: u64,
    /// Requests between their first and last step, integrated over time: Little's law's other side.
    pub area: u64,
    pub inside: u64,
    pub last_step: u64,
    /// When a request last began to wait for others, or for nothing: unanswered requests count until then.
    pub last_stop: u64,
    /// When the last request to start made its first step in turn.
    pub last_start: u64,
    /// The most requests in flight at once, and when the last of them ended.
    pub most_at_once: u64,
    pub over: u64,
    /// An event came before the one that ran previously.
    pub time_went_back: bool,
    /// Latency sums and counts of the two halves of the window, by arrival.
    pub halves: [(u128, u64); 2],
    /// By part: time of selected requests that is part of their latency.
    pub parts: Vec<u64>,
    /// By part: their time that is not (other branches, and requests that go on unwanted); empty where there is none.
    pub spent: Vec<u64>,
    /// By gauge: time at the nodes inside of it after the slot was given back (requests that go on unwanted); empty
    /// where there is none.
    pub behind: Vec<u64>,
    /// When members of fleets were there.
    pub attendance: Attendance,
    /// The changes that took longer than they say.
    pub delays: ChangeDelays,
    /// Connections to servers, where they are simulated.
    pub connections: Option<Box<ConnectionTotals>>,
    /// How often nodes failed.
    pub outages: u64,
    /// How often balancers ejected a target.
    pub ejections: u64,
    /// Attempts of selected requests that were made only because requests are taken as GET.
    pub as_get: u64,
    pub gauges: Vec<Gauge>,
    /// Entries of selected requests: by member of a block, filled in at the end, or as [`Stage::entries`] says.
    pub entries: Vec<u64>,
    /// By refusing member: selected requests refused.
    pub refusals: Vec<u64>,
    /// By member where requests can be cut off on their way in: selected requests that were.
    pub cuts: Vec<u64>,
    /// By retrying member: attempts of selected requests beyond the first.
    pub repeats: Vec<u64>,
    /// By part, then kind.
    pub stage_errors: Vec<u64>,
    /// What few runs count beside all this.
    pub aside: Option<Box<SideBooks>>,
    /// Integrals at the window's first and last arrival, and when these were.
    pub marks: [Snapshot; 2],
    pub marked_ns: [u64; 2],
    /// Whether the window turned out to have ended with the last step of requests that are lost, while health checks went on: integrals
    /// up to then are not known.
    pub is_marked_late: bool,
}

impl Ledger {
    pub fn new(code: &Code) -> Ledger {
        Ledger {
            ok: Histogram::new(),
            failed: Histogram::new(),
            errors: [0; KINDS],
            ends: Ends::default(),
            extra_attempts: 0,
            first_end: u64::MAX,
            last_end: 0,
            events: 0,
            arrived: 0,
            ended: 0,
            latency_sum: 0,
            ahead: 0,
            area: 0,
            inside: 0,
            last_step: 0,
            last_stop: 0,
            last_start: 0,
            most_at_once: u64::MAX,
            over: u64::MAX,
            time_went_back: false,
            halves: [(0, 0); 2],
            parts: vec![0; code.part_count as usize],
            spent: vec![0; if code.charges { code.part_count as usize } else { 0 }],
            behind: vec![0; if code.charges { code.gauge_count as usize } else { 0 }],
            attendance: Attendance::default(),
            delays: ChangeDelays::default(),
            connections: None,
            outages: 0,
            ejections: 0,
            as_get: 0,
            gauges: vec![Gauge::default(); code.gauge_count as usize],
            entries: Vec::new(),
            refusals: vec![0; code.refusal_count as usize],
            cuts: vec![0; code.cut_count as usize],
            repeats: vec![0; code.repeat_count as usize],
            stage_errors: Vec::new(),
            aside: code.every_ns.map(|every_ns| {
                Box::new(SideBooks { slices: Some(Slices::new(every_ns)), ..SideBooks::default() })
            }),
            marks: [Snapshot::default(), Snapshot::default()],
            marked_ns: [0; 2],
            is_marked_late: false,
        }
    }

    /// A request's first step in turn, or else its last, happens now.
    #[inline]
    pub fn step(&mut self, now_ns: u64, starts: bool) {
        self.area = self.area.wrapping_add(self.inside.wrapping_mul(now_ns.wrapping_sub(self.last_step)));
        self.last_step = now_ns;
        if starts {
            self.last_start = now_ns;
            self.inside = self.inside.wrapping_add(1);
        } else {
            self.inside = self.inside.wrapping_sub(1);
        }
    }

    /// The run is over: `most_at_once` were in flight at once at most.
    pub fn end(&mut self, most_at_once: usize, now_ns: u64) {
        (self.most_at_once, self.over) = (most_at_once as u64, now_ns);
    }

    /// Whether sums of times over a part of the run are exact: they wrap at 2^64 ns, 584 years.
    pub fn is_exact_over(&self, ns: u64) -> bool {
        self.most_at_once.checked_mul(ns).is_some()
    }

    /// Selected requests, once all have ended.
    pub fn selected(&self) -> u64 {
        self.ok.count() + self.failed.count() + self.errors[Kind::Lost as usize]
    }

    /// A selected request ends at `time`.
    #[inline(always)]
    pub fn record(&mut self, latency: u64, outcome: Outcome, time: u64, second_half: bool) {
        match outcome {
            None => self.ok.record(latency),
            Some(kind) => {
                self.failed.record(latency);
                self.errors[kind as usize] += 1;
            }
        }
        self.first_end = self.first_end.min(time);
        self.last_end = self.last_end.max(time);
        let half = &mut self.halves[usize::from(second_half)];
        half.0 += u128::from(latency);
        half.1 += 1;
    }

    /// An error passes a stage on its way out.
    #[cold]
    pub fn error_at(&mut self, part: usize, kind: Kind) {
        if self.stage_errors.is_empty() {
            self.stage_errors = vec![0; self.parts.len() * KINDS];
        }
        self.stage_errors[part * KINDS + kind as usize] += 1;
    }

    /// Adds constant waits to the parts: once per entry, so it need not be done while the clock runs.
    pub fn add_constant_waits(&mut self, code: &Code) {
        if code.stages.iter().all(|s| s.wait_ns == 0) {
            return;
        }
        let entries = Entries::new(code, self);
        for (number, stage) in (0..).zip(&code.stages).filter(|(_, s)| s.wait_ns > 0) {
            let base = code.blocks[stage.block as usize].base;
            for index in 0..stage.nodes.len() as u32 {
                let ns = entries.get(StageId(number), index).wrapping_mul(stage.wait_ns);
                let part = &mut self.parts[code.row(stage.part, MemberId(base + index))];
                *part = part.wrapping_add(ns);
            }
        }
    }

    /// The integrals of all queues at `now`.
    pub fn snapshot(&mut self, code: &Code, members: &[Member], now_ns: u64) -> Snapshot {
        let mut s = Snapshot {
            busy: self.gauges.iter().map(|g| g.busy).collect(),
            waiting: self.gauges.iter().map(|g| g.waiting).collect(),
            most: self.gauges.iter().map(|g| g.most).collect(),
        };
        for g in &mut self.gauges {
            g.most = 0;
        }
        for site in &code.queues {
            for member in (site.base..site.base + site.members).map(MemberId) {
                let Member { queue, since, .. } = &members[member.index_from(site.offset)];
                let gauge = code.row(site.gauge, member);
                // A request that entered ahead of time is not inside yet.
                let until = if site.ahead { now_ns.max(*since) } else { now_ns };
                s.busy[gauge] = s.busy[gauge].wrapping_add(u64::from(queue.inside()).wrapping_mul(until));
                s.waiting[gauge] =
                    s.waiting[gauge].wrapping_add(u64::from(queue.waiting()).wrapping_mul(now_ns));
                self.gauges[gauge].most = self.gauges[gauge].most.max(queue.waiting());
            }
        }
        s
    }
}
