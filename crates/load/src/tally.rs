//! What is counted while a load runs.

use crate::generator::{Job, Went};
use crate::outcome::{Lag, Requests, Row};
use weir_policy::Kind;
use weir_stats::Histogram;

/// The last second, for whoever watches.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// Since the run began, s.
    pub at_s: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that wait for their answers now.
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
    /// Arrivals that count: the first and the last, ns.
    pub between: Option<(u64, u64)>,
    pub rows: Option<Vec<Row>>,
    /// Requests that were sent again, their connection having been closed when they came.
    pub again: u64,
    /// Requests that waited for a free connection.
    pub waited: u64,
    /// Why the first connection that failed did so.
    pub no_connection: Option<String>,
    second: (u64, u64, Histogram),
}

impl Tally {
    /// Nothing yet; `rows`: whether each request is kept.
    pub fn new(rows: bool) -> Tally {
        Tally { rows: rows.then(Vec::new), ..Tally::default() }
    }

    /// A request arrives.
    pub fn arrives(&mut self, job: &Job) {
        self.requests.total += 1;
        self.second.0 += 1;
        if job.selected {
            let first = self.between.map_or(job.intended_ns, |(first, _)| first);
            self.between = Some((first, job.intended_ns));
        }
    }

    /// A request has ended.
    pub fn ends(&mut self, job: &Job, went: &Went, ended_ns: u64) {
        let latency = ended_ns.saturating_sub(job.intended_ns);
        let error = went.as_ref().err().copied().or_else(|| {
            let status = went.as_ref().copied().unwrap_or_default();
            (status >= 500).then_some(Kind::Status5xx)
        });
        self.second.1 += u64::from(error.is_some());
        self.second.2.record(latency);
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

    /// What the last second brought; the next one begins.
    pub fn second(&mut self, at_s: u64, in_flight: u64) -> Second {
        let (sent, failed, latencies) = std::mem::take(&mut self.second);
        let quantiles_ns = [0.5, 0.99].map(|q| latencies.quantile(q));
        Second { at_s, sent, failed, in_flight, quantiles_ns }
    }

    /// How late requests were sent.
    pub fn lag(&self) -> Lag {
        Lag { p50_ns: self.lag.quantile(0.5), p99_ns: self.lag.quantile(0.99), max_ns: self.lag.max() }
    }

    /// Requests per second between the first and the last that count.
    pub fn rate_per_s(&self) -> Option<f64> {
        let (first, last) = self.between?;
        (last > first).then(|| (self.requests.selected - 1) as f64 * 1e9 / (last - first) as f64)
    }

    /// Why the figures mean nothing, if they do: the generator was late by more than 5 ms, or by more than a tenth of what it
    /// measures.
    pub fn void(&self) -> Option<String> {
        let (lag, p50) = (self.lag.quantile(0.99)?, self.all.quantile(0.5)?);
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

    /// What to know when reading the figures.
    pub fn warnings(&self) -> Vec<String> {
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
                "{n} requests were sent again: the server closed their connection as they came"
            ));
        }
        if let Some(why) = &self.no_connection {
            warnings.push(format!("the first connection that failed: {why}"));
        }
        warnings
    }
}
