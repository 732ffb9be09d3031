//! A server that works on several requests at once and shares its cores among them (processor sharing).
//!
//! - In virtual time: the simulator passes tickets with their work, asks when the first ends, and looks again then.
//!   With m requests sharing, each progresses at rate min(1, cores/m) / (1 + contention·(m-1) + coherency·m·(m-1)):
//!   the Universal Scalability Law (Gunther 1993) per request. Beyond `threads`, requests wait in order of
//!   arrival; the work for a new connection takes no thread. A process begins with some of its threads, and a request that
//!   finds all of them busy makes one, which is work of its own; threads stay until the process begins anew.
//!   In the proxy: built-in servers do the same with real requests.
//! - Draws: nothing; the work comes with the request.
//!
//! All requests that share progress at the same rate, so one clock per server counts the work that each of them has
//! received. A request is done when that clock has advanced by its work, and a change of rate moves no request in the
//! heap of ends. The clock counts 2^-48 ns in integers: results are exact and do not depend on how often the state is
//! read.

use crate::queue::{Entry, Line, Links, NOBODY};

/// Binary digits of a nanosecond of work.
const DIGITS: u32 = 48;

/// Rates that are computed in advance.
const TABLE: u32 = 256;

/// What all servers of a site have in common.
#[derive(Clone, Debug)]
pub struct Law {
    cores: f64,
    contention: f64,
    coherency: f64,
    threads: u32,
    /// Threads that are there when the process begins.
    min_threads: u32,
    /// The work of making one, ns.
    thread_cost_ns: u64,
    /// Rate by the number of sharing requests, less one.
    table: Vec<u64>,
}

impl Law {
    /// `cores` above 0, `contention` and `coherency` not negative; `threads` at least 1, `None`: any number.
    pub fn new(cores: f64, contention: f64, coherency: f64, threads: Option<u32>) -> Law {
        let threads = threads.unwrap_or(u32::MAX).max(1);
        let (min_threads, thread_cost_ns, table) = (threads, 0, Vec::new());
        let mut law = Law { cores, contention, coherency, threads, min_threads, thread_cost_ns, table };
        law.table = (1..=threads.min(TABLE)).map(|m| law.work_out(m)).collect();
        law
    }

    /// The same with this number of threads at first (`None`: all), each further one of which costs work, ns.
    pub fn with_threads(self, min_threads: Option<u32>, thread_cost_ns: u64) -> Law {
        let min_threads = min_threads.unwrap_or(self.threads).min(self.threads);
        Law { min_threads, thread_cost_ns, ..self }
    }

    /// Whether threads are made.
    pub fn makes_threads(&self) -> bool {
        self.min_threads < self.threads
    }

    /// How many cores there are.
    pub fn cores(&self) -> f64 {
        self.cores
    }

    /// The share of a core's full speed at which each request progresses with this number inside or waiting.
    pub fn rate(&self, sharing: u32) -> f64 {
        self.rate_of(sharing.min(self.threads))
    }

    /// The same with this number at work.
    fn rate_of(&self, at_work: u32) -> f64 {
        let m = f64::from(at_work.max(1));
        let share = if m > self.cores { self.cores / m } else { 1.0 };
        share / (1.0 + self.contention * (m - 1.0) + self.coherency * m * (m - 1.0))
    }

    /// Cores at work with this number inside.
    pub fn busy_cores(&self, inside: u32) -> f64 {
        f64::from(inside).min(self.cores)
    }

    /// The rate in 2^-48. Rounded up, so that work which by the formula ends on a nanosecond does not end a whole one
    /// later; at least 1, so that any number of requests makes progress.
    fn work_out(&self, m: u32) -> u64 {
        const ONE: f64 = (1u64 << DIGITS) as f64;
        ((self.rate_of(m) * ONE).ceil() as u64).clamp(1, 1 << DIGITS)
    }

    #[inline]
    fn per_ns(&self, m: u32) -> u64 {
        match self.table.get(m.wrapping_sub(1) as usize) {
            Some(rate) => *rate,
            None => self.work_out(m),
        }
    }
}

/// The position of each ticket; shared by all servers of a world. A ticket is at one of them at a time.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    links: Links,
    of: Vec<Job>,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    /// Position in the heap of its server; `NOBODY` if it waits or is done.
    at: u32,
    /// The work given on arrival; 0 once it is done.
    work_ns: u64,
    /// Whether it takes no thread.
    is_threadless: bool,
}

const NO_JOB: Job = Job { at: NOBODY, work_ns: 0, is_threadless: false };

impl Jobs {
    fn add(&mut self, ticket: u32, job: Job) {
        if ticket as usize >= self.of.len() {
            self.of.resize(ticket as usize + 1, NO_JOB);
        }
        self.of[ticket as usize] = job;
    }
}

/// A ticket that is being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    /// The reading of the server's clock when it is done.
    end: u128,
    ticket: u32,
}

/// The state of one server.
#[derive(Clone, Debug, Default)]
pub struct Concurrent {
    /// Work that each ticket inside has received, in 2^-48 ns, as of `at_ns`.
    clock: u128,
    at_ns: u64,
    /// A binary heap; the first to end is on top.
    open: Vec<Open>,
    /// Done, but still inside.
    done: u32,
    /// Of those inside, how many take no thread.
    threadless: u32,
    /// Threads that were made since the process began.
    made: u32,
    line: Line,
}

impl Concurrent {
    /// The number inside: worked on, or done and not gone yet.
    #[inline]
    pub fn inside(&self) -> u32 {
        self.open.len() as u32 + self.done
    }

    /// The number waiting for a thread.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.line.len()
    }

    /// The process has begun anew: it has its first threads.
    pub fn begin_anew(&mut self) {
        self.made = 0;
    }

    /// Adds a ticket with its work. Times must not go back.
    pub fn enter(&mut self, law: &Law, jobs: &mut Jobs, now_ns: u64, ticket: u32, mut work_ns: u64) -> Entry {
        let at_work = self.inside() - self.threadless;
        if at_work >= law.threads {
            jobs.add(ticket, Job { work_ns, ..NO_JOB });
            self.line.join(&mut jobs.links, ticket);
            return Entry::Waits;
        }
        if at_work >= law.min_threads.saturating_add(self.made) {
            self.made += 1;
            work_ns = work_ns.saturating_add(law.thread_cost_ns);
        }
        jobs.add(ticket, Job { work_ns, ..NO_JOB });
        self.advance(law, now_ns);
        self.begin(jobs, ticket);
        Entry::Inside
    }

    /// Adds a ticket that shares the cores at once and takes no thread, as the work for a new connection does.
    pub fn enter_without_thread(
        &mut self,
        law: &Law,
        jobs: &mut Jobs,
        now_ns: u64,
        ticket: u32,
        work_ns: u64,
    ) {
        jobs.add(ticket, Job { work_ns, is_threadless: true, ..NO_JOB });
        self.advance(law, now_ns);
        self.threadless += 1;
        self.begin(jobs, ticket);
    }

    /// When the first ticket inside ends if nothing changes until then; those named by [`Concurrent::done`] are done
    /// already.
    #[inline]
    pub fn next_end_ns(&self, law: &Law, jobs: &Jobs) -> Option<u64> {
        // Positions by ticket are updated with the heap.
        debug_assert!(self.open.first().is_none_or(|first| jobs.of[first.ticket as usize].at == 0));
        let left = self.open.first()?.end.saturating_sub(self.clock);
        let ns = left.div_ceil(u128::from(law.per_ns(self.inside())));
        Some(self.at_ns.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX)))
    }

    /// Work that a ticket still needs, ns: all of it while it waits, none when it is done.
    pub fn left_ns(&self, law: &Law, jobs: &Jobs, now_ns: u64, ticket: u32) -> u64 {
        let job = jobs.of[ticket as usize];
        if job.at == NOBODY {
            return job.work_ns;
        }
        let elapsed = now_ns.saturating_sub(self.at_ns);
        let clock = self.clock + u128::from(elapsed) * u128::from(law.per_ns(self.inside()));
        (self.open[job.at as usize].end.saturating_sub(clock) >> DIGITS) as u64
    }

    /// Adds the tickets whose work is done by now to `out`, each once, in order of their ends. They stay inside until
    /// they leave, at this same instant.
    pub fn done(&mut self, law: &Law, jobs: &mut Jobs, now_ns: u64, out: &mut Vec<u32>) {
        self.advance(law, now_ns);
        while let Some(first) = self.open.first().filter(|first| first.end <= self.clock) {
            let ticket = first.ticket;
            self.take_out(jobs, 0);
            jobs.of[ticket as usize].work_ns = 0;
            self.done += 1;
            out.push(ticket);
        }
    }

    /// Removes a ticket from inside, done or cut off. Returns the waiting ticket that takes its thread, if any, whose
    /// work begins.
    pub fn leave(&mut self, law: &Law, jobs: &mut Jobs, now_ns: u64, ticket: u32) -> Option<u32> {
        self.advance(law, now_ns);
        match jobs.of[ticket as usize].at {
            NOBODY => {
                assert!(self.done > 0, "one leaves that is not inside");
                self.done -= 1;
            }
            at => {
                assert_eq!(self.open[at as usize].ticket, ticket, "one leaves that is not here");
                self.take_out(jobs, at as usize);
            }
        }
        if jobs.of[ticket as usize].is_threadless {
            self.threadless -= 1;
            return None;
        }
        let next = self.line.first(&mut jobs.links)?;
        self.begin(jobs, next);
        Some(next)
    }

    /// A waiting ticket gives up.
    pub fn abandon(&mut self, jobs: &mut Jobs, ticket: u32) {
        self.line.take_out(&mut jobs.links, ticket);
    }

    /// Advances the clock to now. No overflow: 64 bits of time at no more than 2^48 each, and 64 + 48 bits of work on
    /// top.
    #[inline]
    fn advance(&mut self, law: &Law, now_ns: u64) {
        debug_assert!(now_ns >= self.at_ns, "time goes back");
        let elapsed = now_ns.saturating_sub(self.at_ns);
        if elapsed > 0 && self.inside() > 0 {
            self.clock += u128::from(elapsed) * u128::from(law.per_ns(self.inside()));
        }
        self.at_ns = now_ns.max(self.at_ns);
    }

    fn begin(&mut self, jobs: &mut Jobs, ticket: u32) {
        let end = self.clock + (u128::from(jobs.of[ticket as usize].work_ns) << DIGITS);
        let open = Open { end, ticket };
        self.open.push(open);
        self.rise(jobs, self.open.len() - 1, open);
    }

    fn take_out(&mut self, jobs: &mut Jobs, at: usize) {
        jobs.of[self.open[at].ticket as usize].at = NOBODY;
        let Some(last) = self.open.pop() else { return };
        if at == self.open.len() {
            return;
        }
        // The last one takes the free position, and moves up or down from there.
        if at > 0 && last < self.open[(at - 1) / 2] {
            self.rise(jobs, at, last);
        } else {
            self.sink(jobs, at, last);
        }
    }

    #[inline]
    fn put(&mut self, jobs: &mut Jobs, at: usize, open: Open) {
        jobs.of[open.ticket as usize].at = at as u32;
        self.open[at] = open;
    }

    fn rise(&mut self, jobs: &mut Jobs, mut at: usize, open: Open) {
        while at > 0 {
            let parent = (at - 1) / 2;
            let above = self.open[parent];
            if above < open {
                break;
            }
            self.put(jobs, at, above);
            at = parent;
        }
        self.put(jobs, at, open);
    }

    fn sink(&mut self, jobs: &mut Jobs, mut at: usize, open: Open) {
        loop {
            let left = 2 * at + 1;
            let Some(mut child) = self.open.get(left).copied() else { break };
            let mut to = left;
            if let Some(right) = self.open.get(left + 1).filter(|right| **right < child) {
                (child, to) = (*right, left + 1);
            }
            if open < child {
                break;
            }
            self.put(jobs, at, child);
            at = to;
        }
        self.put(jobs, at, open);
    }
}

#[cfg(test)]
#[path = "concurrent_tests.rs"]
mod tests;
