//! Counts of a running load.

use super::job::{Ending, Job};
use super::parts::Parts;
use crate::outcome::{Lag, Requests, Row};
use weir_policy::Kind;
use weir_stats::Histogram;

/// The last second, for a display.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// Since the run began, s.
    pub at_s: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests waiting for their answers now.
    pub in_flight: u64,
    /// Quantiles 0.5 and 0.99 of the latencies of those that ended, ns.
    pub quantiles_ns: [Option<f64>; 2],
}

/// Counts and histograms.
#[derive(Default)]
pub(crate) struct Tally {
    pub requests: Requests,
    pub all: Histogram,
    pub ok: Histogram,
    lag: Histogram,
    arrivals: Option<Arrivals>,
    /// The parts of a run with results over time.
    pub parts: Option<Parts>,
    pub rows: Option<Vec<Row>>,
    /// Requests that were sent again since their connection was closed when they arrived.
    pub again: u64,
    /// Requests that waited for a free connection.
    pub waited: u64,
    /// Answers that reject the request (4xx), and the status of the first.
    refused: u64,
    first_refused: Option<u16>,
    /// Why the first failed connection failed.
    pub no_connection: Option<String>,
    /// Why this machine could not connect, if that was not the server's fault.
    pub exhausted: Option<String>,
    since: LastSecond,
}

/// Arrivals that count, whether or not their requests have ended.
#[derive(Clone, Copy)]
struct Arrivals {
    number: u64,
    first_ns: u64,
    last_ns: u64,
}

/// What happened since the last report.
#[derive(Default)]
struct LastSecond {
    sent: u64,
    failed: u64,
    latencies: Histogram,
}

impl Tally {
    /// Empty; `rows`: whether each request is kept.
    pub fn new(rows: bool, parts: Option<Parts>) -> Tally {
        Tally { rows: rows.then(Vec::new), parts, ..Tally::default() }
    }

    /// Counts an arrival.
    pub fn arrives(&mut self, job: &Job) {
        self.requests.total += 1;
        self.since.sent += 1;
        if let Some(parts) = &mut self.parts {
            parts.arrive(job.intended_ns);
        }
        if job.selected {
            let now = job.intended_ns;
            let before = self.arrivals.unwrap_or(Arrivals { number: 0, first_ns: now, last_ns: now });
            self.arrivals = Some(Arrivals { number: before.number + 1, last_ns: now, ..before });
        }
    }

    /// Counts the end of a request.
    pub fn ends(&mut self, job: &Job, went: &Ending, ended_ns: u64) {
        let latency = ended_ns.saturating_sub(job.intended_ns);
        let error = went.as_ref().err().copied().or_else(|| {
            let status = went.as_ref().copied().unwrap_or_default();
            (status >= 500).then_some(Kind::Status5xx)
        });
        if let Ok(status @ 400..500) = *went {
            self.refused += 1;
            self.first_refused.get_or_insert(status);
        }
        self.since.failed += u64::from(error.is_some());
        self.since.latencies.record(latency);
        if let Some(parts) = &mut self.parts {
            parts.end(job, latency, error);
        }
        if job.selected {
            self.requests.selected += 1;
            self.all.record(latency);
            if let Some(lag) = job.lag_ns {
                self.lag.record(lag);
            }
            match error {
                None => {
                    self.requests.ok += 1;
                    self.ok.record(latency);
                }
                Some(kind) => *self.requests.errors.entry(kind).or_default() += 1,
            }
        }
        if let Some(rows) = &mut self.rows {
            rows.push(Row {
                request: job.request.ordinal,
                intended_ns: job.intended_ns,
                sent_ns: job.sent_ns,
                ended_ns,
                status: went.as_ref().copied().unwrap_or_default(),
                error,
                selected: job.selected,
            });
        }
    }

    /// The last second; the next one begins.
    pub fn second(&mut self, at_s: u64, in_flight: u64) -> Second {
        let LastSecond { sent, failed, latencies } = std::mem::take(&mut self.since);
        let quantiles_ns = [0.5, 0.99].map(|q| latencies.quantile(q));
        Second { at_s, sent, failed, in_flight, quantiles_ns }
    }

    /// The lateness of requests.
    pub fn lag(&self) -> Lag {
        Lag { p50_ns: self.lag.of_all(0.5), p99_ns: self.lag.of_all(0.99), max_ns: self.lag.max() }
    }

    /// Requests per second between the first and the last that count.
    pub fn rate_per_s(&self) -> Option<f64> {
        let Arrivals { number, first_ns, last_ns } = self.arrivals?;
        (last_ns > first_ns).then(|| (number - 1) as f64 * 1e9 / (last_ns - first_ns) as f64)
    }

    /// Why the figures are invalid, if they are: the generator was late by more than 5 ms, or by more than a tenth of
    /// what it measures; or the machine ran out of ports or descriptors to connect with.
    pub fn void(&self) -> Option<String> {
        if let Some(why) = &self.exhausted {
            return Some(format!(
                "this machine could not open more connections ({why}); see --connections and `ulimit -n`"
            ));
        }
        let (lag, p50) = (self.lag.of_all(0.99)?, self.all.of_all(0.5)?);
        let ms = |ns: f64| ns / 1e6;
        if lag > 5e6 {
            Some(format!("one request of a hundred was sent more than {:.1} ms late", ms(lag)))
        } else if lag > 2e5 && lag > p50 / 10.0 {
            Some(format!(
                "one request of a hundred was sent more than {:.2} ms late, which is more than a tenth of the median latency ({:.2} ms)",
                ms(lag),
                ms(p50)
            ))
        } else {
            None
        }
    }

    /// Notes for reading the figures. `to_url`: for a load sent to a URL, not for a verification.
    pub fn warnings(&self, to_url: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.waited > 0 {
            warnings.push(format!(
                "{} requests waited for a free connection (--connections); that is part of their latency",
                self.waited
            ));
        }
        if self.again > 0 {
            let n = self.again;
            warnings.push(format!(
                "{n} requests were sent again: the server closed their connection as they arrived"
            ));
        }
        if let Some(status) = self.first_refused.filter(|_| to_url && self.refused * 2 > self.requests.total)
        {
            warnings.push(format!(
                "{} of {} requests were answered with 4xx, the first with {status}, and count as answered; \
                    is the URL right?",
                self.refused, self.requests.total
            ));
        }
        if let Some(why) = &self.no_connection {
            warnings.push(format!("the first connection that failed: {why}"));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::job::request_due;
    use weir_workload::Request;

    fn job(ordinal: u64, intended_ns: u64, selected: bool) -> Job {
        let job = request_due(intended_ns);
        Job { request: Request { ordinal, ..job.request }, selected, ..job }
    }

    /// A run may be interrupted before any of its requests has ended.
    #[test]
    fn the_rate_is_of_arrivals_not_of_ends() {
        let mut tally = Tally::new(false, None);
        assert_eq!(tally.rate_per_s(), None);
        tally.arrives(&job(0, 0, false));
        tally.arrives(&job(1, 1_000_000_000, true));
        assert_eq!(tally.rate_per_s(), None);
        tally.arrives(&job(2, 1_500_000_000, true));
        tally.arrives(&job(3, 2_000_000_000, true));
        assert_eq!((tally.requests.selected, tally.rate_per_s()), (0, Some(2.0)));
        tally.ends(&job(1, 1_000_000_000, true), &Ok(200), 3_000_000_000);
        assert_eq!((tally.requests.selected, tally.rate_per_s()), (1, Some(2.0)));
    }

    /// An https server takes plain http for a bad request: that is an answer, and hardly what the user meant.
    #[test]
    fn many_answers_of_4xx_are_told() {
        let mut tally = Tally::new(false, None);
        for n in 0..10 {
            tally.arrives(&job(n, 0, true));
            tally.ends(&job(n, 0, true), &Ok(if n < 5 { 200 } else { 400 }), 5);
        }
        assert_eq!(tally.warnings(true), Vec::<String>::new());
        tally.arrives(&job(10, 0, true));
        tally.ends(&job(10, 0, true), &Ok(404), 5);
        assert_eq!(tally.warnings(false), Vec::<String>::new());
        let [told] = &tally.warnings(true)[..] else { panic!("one warning") };
        assert!(told.starts_with("6 of 11 requests were answered with 4xx, the first with 400"), "{told}");
        assert_eq!(tally.requests.ok, 11);
    }

    #[test]
    fn a_second_is_told_once() {
        let mut tally = Tally::new(false, None);
        for n in 0..30 {
            tally.arrives(&job(n, 0, true));
            tally.ends(&job(n, 0, true), &Err(Kind::Reset), 5);
        }
        let told = tally.second(1, 0);
        assert_eq!((told.sent, told.failed, told.quantiles_ns[0]), (30, 30, Some(5.0)));
        let told = tally.second(2, 0);
        assert_eq!((told.sent, told.failed, told.quantiles_ns), (0, 0, [None; 2]));
    }
}
