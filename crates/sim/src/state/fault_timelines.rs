//! The state of the timelines of faulty nodes.

use crate::code::Code;
use crate::code::fault_timelines::LineSite;
use weir_model::faulty::Faulty;
use weir_model::pause::ProcessClock;
use weir_stats::Key;

/// The timelines of a replication.
pub(crate) struct Lines {
    pub state: Vec<Faulty>,
    /// The clocks of processes that pause.
    pub clocks: Vec<ProcessClock>,
    /// How often each flipped since the last request ended, and which did: failures after the last answer affect no
    /// request and do not count.
    pub since: Vec<u64>,
    pub which: Vec<u32>,
    /// The end of the last request among those whose end is known.
    pub ends: u64,
}

impl Lines {
    pub fn new(code: &Code, key: Key) -> Lines {
        let state = code.lines.start(code, key);
        let clocks = code.lines.clocks(code, key);
        Lines { clocks, since: vec![0; state.len()], which: Vec::new(), ends: 0, state }
    }

    /// A timeline has flipped.
    pub fn flip(&mut self, line: u32, flips: u64, now_ns: u64) {
        if now_ns >= self.ends {
            if self.since[line as usize] == 0 {
                self.which.push(line);
            }
            self.since[line as usize] += flips;
        }
    }

    /// A request ends at `time`, which nothing can prevent any more.
    #[inline]
    pub fn request_ends(&mut self, time: u64) {
        self.ends = self.ends.max(time);
        while let Some(line) = self.which.pop() {
            self.since[line as usize] = 0;
        }
    }

    /// How often nodes failed until the last request ended.
    pub fn outages(&mut self, sites: &[LineSite]) -> u64 {
        for (state, site) in self.state.iter_mut().zip(sites).filter(|(_, site)| site.eager) {
            while state.next_flip_ns() < self.ends {
                state.flip_due(&site.law);
            }
        }
        self.state.iter().zip(&self.since).map(|(line, since)| (line.flips() - since).div_ceil(2)).sum()
    }
}
