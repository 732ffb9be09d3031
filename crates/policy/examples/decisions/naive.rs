//! Each policy as one would write it at first: a scan over all targets, or over whatever else there is to scan.

use super::Decide;
use weir_policy::config::{Balance, LeastConnArgs, P2cArgs, PeakEwmaArgs, RingHashArgs, Ties, ZuulArgs};
use weir_policy::key;
use weir_policy::{TargetId, Ticket};
use weir_stats::Key;

pub struct Naive {
    balance: Balance,
    weights: Vec<f64>,
    sum: f64,
    in_flight: Vec<u32>,
    /// Of round robin: nginx's current values. Of least work: what is left.
    current: Vec<f64>,
    /// Of peak EWMA: cost and stamp. Of Zuul's: the share of failures and stamp.
    costs: Vec<(f64, u64)>,
    /// Of the ring: hash and target, in no order.
    points: Vec<(u32, u32)>,
    next: usize,
    total: u64,
}

impl Naive {
    /// `None` where a naive version decides in the same way: a table (Maglev), a small pool (Prequal).
    pub fn new(balance: &Balance, weights: &[f64], names: &[String]) -> Option<Naive> {
        if matches!(balance, Balance::Maglev(_) | Balance::Prequal(_)) {
            return None;
        }
        let n = weights.len();
        let each =
            |i: usize| (0..160).map(move |k: u32| (key::crc32_update(!0, names[i].as_bytes()), k, i as u32));
        let point = |(r, k, i): (u32, u32, u32)| (!key::crc32_update(r, &k.to_le_bytes()), i);
        let ring = matches!(balance, Balance::RingHash(_));
        Some(Naive {
            balance: balance.clone(),
            weights: weights.to_vec(),
            sum: weights.iter().sum(),
            in_flight: vec![0; n],
            current: vec![0.0; n],
            costs: vec![(if matches!(balance, Balance::Zuul(_)) { 0.0 } else { 30e6 }, 0); n],
            points: if ring { (0..n).flat_map(each).map(point).collect() } else { Vec::new() },
            next: 0,
            total: 0,
        })
    }

    fn load(&self, t: usize, bias: f64) -> f64 {
        let n = f64::from(self.in_flight[t]);
        (if bias == 1.0 { n } else { weir_stats::math::pow(n, bias) }) / self.weights[t]
    }

    fn cost(&self, t: usize, now_ns: u64, decay_ns: u64) -> f64 {
        let (cost, stamp) = self.costs[t];
        cost * weir_stats::math::exp(-((now_ns - stamp) as f64) / decay_ns as f64)
            * f64::from(self.in_flight[t] + 1)
            / self.weights[t]
    }

    /// Zuul's, without loads.
    fn score(&self, t: usize, other: usize, now_ns: u64, decay_ns: u64) -> f64 {
        let (failures, stamp) = self.costs[t];
        let left = (1.0 - (now_ns - stamp) as f64 / decay_ns as f64).max(0.0);
        let (own, others) = (self.load(t, 1.0), self.load(other, 1.0));
        4.0 * failures * left + own / (own + others + 1.0)
    }

    /// The least by a scan; ties by weight, each later one with the share of its weight in those so far.
    fn least(&self, draw: Key, load: impl Fn(usize) -> f64, ties: Ties) -> usize {
        let (mut best, mut least, mut equals, mut sum) = (0, f64::INFINITY, 0, 0.0);
        for at in 0..self.weights.len() {
            let t = if ties == Ties::Rotate { (at + self.next) % self.weights.len() } else { at };
            let load = load(t);
            if load < least {
                (best, least, equals, sum) = (t, load, 1, self.weights[t]);
            } else if load == least && ties == Ties::Random {
                equals += 1;
                sum += self.weights[t];
                if draw.nth(equals).unit() * sum < self.weights[t] {
                    best = t;
                }
            }
        }
        best
    }

    fn two(&self, draw: Key) -> (usize, usize) {
        let n = self.weights.len() as u64;
        let (i, j) = (draw.below(n), draw.nth(1).below(n - 1));
        (i as usize, (j + u64::from(j >= i)) as usize)
    }

    fn one_by_weight(&self, draw: Key) -> usize {
        let mut left = draw.unit() * self.sum;
        let at = self.weights.iter().position(|w| {
            left -= w;
            left < 0.0
        });
        at.unwrap_or(0)
    }

    /// One after another: the second draw is repeated until it meets another target.
    fn two_by_weight(&self, draw: Key) -> (usize, usize) {
        let first = self.one_by_weight(draw);
        let others = (1..).map(|i| self.one_by_weight(draw.nth(i)));
        (first, others.into_iter().find(|t| *t != first).unwrap_or(first))
    }

    fn choose(&mut self, draw: Key, now_ns: u64) -> usize {
        match self.balance {
            Balance::Random => self.one_by_weight(draw),
            Balance::RoundRobin(_) => {
                let mut best = 0;
                for t in 0..self.weights.len() {
                    self.current[t] += self.weights[t];
                    if self.current[t] > self.current[best] {
                        best = t;
                    }
                }
                self.current[best] -= self.sum;
                best
            }
            Balance::LeastConn(LeastConnArgs { ties, .. }) => self.least(draw, |t| self.load(t, 1.0), ties),
            Balance::P2c(P2cArgs { bias, .. }) => {
                let (a, b) = self.two_by_weight(draw);
                if self.load(b, bias) < self.load(a, bias) { b } else { a }
            }
            Balance::PeakEwma(PeakEwmaArgs { decay_ns, .. }) => {
                let (a, b) = self.two(draw);
                if self.cost(b, now_ns, decay_ns) < self.cost(a, now_ns, decay_ns) { b } else { a }
            }
            Balance::Zuul(ZuulArgs { decay_ns, .. }) => {
                let (a, b) = self.two(draw);
                if self.score(b, a, now_ns, decay_ns) < self.score(a, b, now_ns, decay_ns) { b } else { a }
            }
            Balance::RingHash(RingHashArgs { bound }) => self.walk(draw.bits() as u32, bound),
            Balance::LeastWork => self.least(draw, |t| self.current[t], Ties::Random),
            Balance::First | Balance::Maglev(_) | Balance::Prequal(_) => 0,
        }
    }

    /// The nearest point after a hash whose target has room.
    fn walk(&self, hash: u32, bound: Option<f64>) -> usize {
        let most = bound.map_or(f64::INFINITY, |b| b * (self.total + 1) as f64 / self.sum);
        let room = |t: u32| f64::from(self.in_flight[t as usize]) < most * self.weights[t as usize];
        let near = self.points.iter().filter(|p| room(p.1)).min_by_key(|p| p.0.wrapping_sub(hash));
        near.map_or(0, |p| p.1 as usize)
    }
}

impl Decide for Naive {
    fn pick(&mut self, draw: Key, now_ns: u64) -> Ticket {
        let target = self.choose(draw, now_ns);
        self.in_flight[target] += 1;
        self.total += 1;
        self.next = (target + 1) % self.weights.len();
        Ticket { target: TargetId(target as u32), probe: false, met: 0, at_ns: now_ns }
    }

    fn done(&mut self, now_ns: u64, ticket: Ticket) {
        self.in_flight[ticket.target.index()] -= 1;
        self.total -= 1;
        if let Balance::PeakEwma(PeakEwmaArgs { decay_ns, .. }) = self.balance {
            let ((cost, stamp), rtt) = (self.costs[ticket.target.index()], (now_ns - ticket.at_ns) as f64);
            let past = weir_stats::math::exp(-((now_ns - stamp) as f64) / decay_ns as f64);
            let cost = if rtt > cost { rtt } else { cost * past + rtt * (1.0 - past) };
            self.costs[ticket.target.index()] = (cost, now_ns);
        }
        if let Balance::Zuul(ZuulArgs { decay_ns, .. }) = self.balance {
            let (failures, stamp) = self.costs[ticket.target.index()];
            let left = (1.0 - (now_ns - stamp) as f64 / decay_ns as f64).max(0.0);
            self.costs[ticket.target.index()] = (failures * left * 0.875, now_ns);
        }
    }
}
