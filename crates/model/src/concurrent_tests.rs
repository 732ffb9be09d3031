//! Processor sharing against a naive model that moves every request at every step, and the figures of its law.

use super::*;
use std::collections::VecDeque;
use weir_stats::Key;

const MS: u64 = 1_000_000;

/// The obvious model: every request has its remaining work, and all of it decreases as time passes.
#[derive(Default)]
struct Naive {
    now_ns: u64,
    /// Ticket and work left in 2^-48 ns.
    inside: Vec<(u32, u128)>,
    waiting: VecDeque<(u32, u64)>,
    /// The most that were inside at once since it began.
    most: u32,
}

impl Naive {
    fn rate(&self, law: &Law) -> u128 {
        u128::from(law.work_out(self.inside.len() as u32))
    }

    fn go_on(&mut self, law: &Law, to_ns: u64) {
        let work = u128::from(to_ns - self.now_ns) * self.rate(law);
        self.inside.iter_mut().for_each(|(_, left)| *left = left.saturating_sub(work));
        self.now_ns = to_ns;
    }

    fn next_end_ns(&self, law: &Law) -> Option<u64> {
        let least = self.inside.iter().map(|(_, left)| *left).min()?;
        Some(self.now_ns + least.div_ceil(self.rate(law)) as u64)
    }

    fn enter(&mut self, law: &Law, ticket: u32, work: u64) -> Entry {
        let inside = self.inside.len() as u32;
        if inside >= law.threads {
            self.waiting.push_back((ticket, work));
            return Entry::Waits;
        }
        // A thread is made by the one with which more are inside than ever.
        let makes = inside >= self.most.max(law.min_threads);
        let work = work + if makes { law.thread_cost_ns } else { 0 };
        self.most = self.most.max(inside + 1);
        self.inside.push((ticket, u128::from(work) << DIGITS));
        Entry::Inside
    }

    fn leave(&mut self, ticket: u32) -> Option<u32> {
        self.inside.retain(|(t, _)| *t != ticket);
        let (next, work) = self.waiting.pop_front()?;
        self.inside.push((next, u128::from(work) << DIGITS));
        Some(next)
    }
}

/// Checks that the heap is a heap, and that every ticket knows its position.
fn check(server: &Concurrent, jobs: &Jobs) {
    for (at, open) in server.open.iter().enumerate() {
        assert!(at == 0 || server.open[(at - 1) / 2] < *open);
        assert_eq!(jobs.of[open.ticket as usize].at, at as u32);
    }
}

/// Random arrivals, cut-offs, tickets that give up and idle reads against the naive model, to the last bit.
#[test]
fn agrees_with_lowering_what_is_left() {
    let laws = [
        Law::new(1.0, 0.0, 0.0, None),
        Law::new(2.5, 0.0, 0.0, Some(6)),
        Law::new(4.0, 0.02, 0.0005, Some(12)),
        Law::new(1e9, 0.1, 0.01, Some(1)),
        Law::new(2.0, 0.0, 0.0, Some(8)).with_threads(Some(2), MS / 2),
    ];
    for (l, law) in laws.iter().enumerate() {
        let (mut server, mut jobs, mut naive) = (Concurrent::default(), Jobs::default(), Naive::default());
        let (mut out, mut next) = (Vec::new(), 0);
        for step in 0..20_000u64 {
            let draw = Key::new(l as u64).with(step);
            let mut now = naive.now_ns + draw.nth(1).below(2 * MS);
            let end = server.next_end_ns(law, &jobs);
            assert_eq!(end, naive.next_end_ns(law), "step {step}");
            if let Some(end) = end.filter(|end| *end <= now) {
                now = end;
            }
            naive.go_on(law, now);
            server.done(law, &mut jobs, now, &mut out);
            let mut done: Vec<u32> =
                naive.inside.iter().filter(|(_, left)| *left == 0).map(|j| j.0).collect();
            assert_eq!(end == Some(now), !done.is_empty());
            out.sort_unstable();
            done.sort_unstable();
            assert_eq!(out, done);
            for ticket in out.drain(..) {
                assert_eq!(server.leave(law, &mut jobs, now, ticket), naive.leave(ticket));
            }
            let any = |n: usize| draw.nth(2).below(n as u64) as usize;
            match draw.below(8) {
                0 if !naive.inside.is_empty() => {
                    let (ticket, _) = naive.inside[any(naive.inside.len())];
                    assert_eq!(server.leave(law, &mut jobs, now, ticket), naive.leave(ticket));
                }
                1 if !naive.waiting.is_empty() => {
                    let (ticket, _) = naive.waiting.remove(any(naive.waiting.len())).unwrap();
                    server.abandon(&mut jobs, ticket);
                }
                2..=4 if naive.inside.len() < 40 => {
                    // Whole steps make ties; some work is zero.
                    let work = draw.nth(3).below(9) * MS / 4;
                    let entry = server.enter(law, &mut jobs, now, next, work);
                    assert_eq!(entry, naive.enter(law, next, work));
                    next += 1;
                }
                5 if draw.nth(4).below(50) == 0 && naive.inside.is_empty() => {
                    server.begin_anew();
                    naive.most = 0;
                }
                _ => {}
            }
            check(&server, &jobs);
            assert_eq!(
                (server.inside() as usize, server.waiting() as usize),
                (naive.inside.len(), naive.waiting.len())
            );
        }
        assert!(next > 5_000);
    }
}

/// Three equal works on one core end together after three times as long, to the nanosecond, for any number of reads.
#[test]
fn equal_works_share_equally() {
    for looks in [0, 1, 977] {
        let law = Law::new(1.0, 0.0, 0.0, None);
        let (mut server, mut jobs, mut out) = (Concurrent::default(), Jobs::default(), Vec::new());
        for ticket in 0..3 {
            assert_eq!(server.enter(&law, &mut jobs, 5, ticket, 100 * MS), Entry::Inside);
        }
        for look in 0..looks {
            server.done(&law, &mut jobs, 5 + look * 301_117, &mut out);
            assert!(out.is_empty());
        }
        assert_eq!(server.next_end_ns(&law, &jobs), Some(5 + 300 * MS));
        server.done(&law, &mut jobs, 5 + 300 * MS, &mut out);
        server.done(&law, &mut jobs, 5 + 300 * MS, &mut out);
        assert_eq!(out, [0, 1, 2], "each once");
        assert_eq!((server.inside(), server.next_end_ns(&law, &jobs)), (3, None), "until they leave");
    }
}

/// Throughput of a server kept full, per second, with works of 1/lambda.
fn throughput(law: &Law, n: u32, lambda: f64) -> f64 {
    let (mut server, mut jobs, mut out) = (Concurrent::default(), Jobs::default(), Vec::new());
    let (mut now, mut served) = (0, 0u64);
    let work = |ticket: u32, k: u64| {
        let u = Key::new(7).with(u64::from(ticket)).with(k).unit();
        (1e9 / lambda * (0.5 + u)) as u64
    };
    for ticket in 0..n {
        server.enter(law, &mut jobs, now, ticket, work(ticket, 0));
    }
    while served < 60_000 {
        now = server.next_end_ns(law, &jobs).unwrap();
        server.done(law, &mut jobs, now, &mut out);
        for ticket in out.drain(..) {
            served += 1;
            server.leave(law, &mut jobs, now, ticket);
            server.enter(law, &mut jobs, now, ticket, work(ticket, served));
        }
    }
    served as f64 / (now as f64 / 1e9)
}

/// The Universal Scalability Law's figures (`docs/spec/background.md#universal-scalability-law`).
#[test]
fn a_full_server_follows_the_scalability_law() {
    let law = Law::new(1e6, 0.02, 0.0005, None);
    for (n, want) in [(1, 100.0), (8, 684.9), (16, 1126.8), (32, 1512.3), (44, 1568.0), (128, 1097.0)] {
        let formula = f64::from(n) * law.rate(n) * 100.0;
        assert!((formula / want - 1.0).abs() < 3e-4, "{n}: {formula}");
        let got = throughput(&law, n, 100.0);
        assert!((got / want - 1.0).abs() < 0.01, "{n}: {got}");
    }
    // The peak at sqrt((1 - sigma)/kappa) = 44.3.
    let x = |n: u32| f64::from(n) * law.rate(n);
    assert!((1..=300).all(|n| x(n) <= x(44)));
}

/// Cores are shared, never exceeded; more threads than cores give nothing without contention, and less with it.
#[test]
fn cores_and_threads() {
    let law = Law::new(4.0, 0.0, 0.0, Some(16));
    assert_eq!(
        [law.rate(1), law.rate(4), law.rate(8), law.rate(16), law.rate(99)],
        [1.0, 1.0, 0.5, 0.25, 0.25]
    );
    assert_eq!([0, 3, 4, 9, 99].map(|n| law.busy_cores(n)), [0.0, 3.0, 4.0, 4.0, 4.0]);
    assert_eq!(Law::new(0.5, 0.0, 0.0, None).rate(1), 0.5);
    for n in [4, 16, 40] {
        assert!((throughput(&law, n, 100.0) / 400.0 - 1.0).abs() < 0.01);
    }
    // Beyond the table of rates the same formula holds.
    let wide = Law::new(3.0, 0.01, 0.0, None);
    for m in [TABLE - 1, TABLE, TABLE + 1, 100_000] {
        assert_eq!(wide.per_ns(m), wide.work_out(m));
    }
}

/// The greatest works, times and numbers neither overflow nor stop the clock.
#[test]
fn extremes_saturate() {
    let law = Law::new(1e-300, 1e300, 1e300, None);
    let (mut server, mut jobs, mut out) = (Concurrent::default(), Jobs::default(), Vec::new());
    for ticket in 0..1000 {
        server.enter(&law, &mut jobs, 0, ticket, u64::MAX);
    }
    assert_eq!(law.per_ns(1000), 1);
    assert_eq!(server.next_end_ns(&law, &jobs), Some(u64::MAX));
    server.done(&law, &mut jobs, u64::MAX, &mut out);
    assert!(out.is_empty() && server.clock == u128::from(u64::MAX));

    let fast = Law::new(f64::INFINITY, 0.0, 0.0, Some(0));
    let mut server = Concurrent::default();
    assert_eq!(server.enter(&fast, &mut jobs, 7, 0, 0), Entry::Inside);
    assert_eq!(server.next_end_ns(&fast, &jobs), Some(7));
    assert_eq!(server.enter(&fast, &mut jobs, 7, 1, u64::MAX), Entry::Waits, "no threads means one");
    assert_eq!(server.leave(&fast, &mut jobs, 7, 0), Some(1));
    assert_eq!(server.next_end_ns(&fast, &jobs), Some(u64::MAX));
    assert_eq!(Law::new(f64::NAN, 0.0, 0.0, None).per_ns(3), 1 << DIGITS);
}

/// A hundred thousand at once: entering and cutting off in any order takes logarithmic time at most.
#[test]
fn a_great_crowd_is_cut_off_in_any_order() {
    let law = Law::new(8.0, 0.0, 0.0, None);
    let (mut server, mut jobs, mut out) = (Concurrent::default(), Jobs::default(), Vec::new());
    let n = 100_000u32;
    for ticket in 0..n {
        let work = Key::new(1).with(u64::from(ticket)).below(1000 * MS);
        server.enter(&law, &mut jobs, u64::from(ticket), ticket, work);
    }
    // Tickets at even positions of a shuffled order are cut off; the rest end in the order of their ends.
    for ticket in (0..n).map(|i| (u64::from(i) * 7919 % u64::from(n)) as u32).filter(|t| t % 2 == 0) {
        assert_eq!(server.leave(&law, &mut jobs, u64::from(n), ticket), None);
        if ticket % 1000 == 0 {
            check(&server, &jobs);
        }
    }
    let mut last = 0;
    while let Some(now) = server.next_end_ns(&law, &jobs) {
        assert!(now >= last);
        last = now;
        server.done(&law, &mut jobs, now, &mut out);
        let from = out.len() - server.done as usize;
        for ticket in &out[from..] {
            server.leave(&law, &mut jobs, now, *ticket);
        }
    }
    assert_eq!((out.len() as u32, server.inside()), (n / 2, 0));
    assert!(out.iter().all(|t| t % 2 == 1));
}

/// One thread and two cores: a connection's work shares the cores with the request that has the thread, and admits no other.
#[test]
fn work_without_a_thread_shares_the_cores_only() {
    let (law, mut jobs, mut server) =
        (Law::new(2.0, 0.0, 0.0, Some(1)), Jobs::default(), Concurrent::default());
    assert_eq!(server.enter(&law, &mut jobs, 0, 0, 100), Entry::Inside);
    server.enter_without_thread(&law, &mut jobs, 0, 1, 100);
    server.enter_without_thread(&law, &mut jobs, 0, 2, 60);
    server.enter_without_thread(&law, &mut jobs, 0, 3, 100);
    assert_eq!(server.enter(&law, &mut jobs, 0, 4, 50), Entry::Waits);
    assert_eq!((server.inside(), server.waiting(), law.busy_cores(server.inside())), (4, 1, 2.0));
    // Four share two cores.
    assert_eq!(server.next_end_ns(&law, &jobs), Some(120));
    let mut done = Vec::new();
    server.done(&law, &mut jobs, 120, &mut done);
    assert_eq!(done, [2]);
    assert_eq!(server.leave(&law, &mut jobs, 120, 2), None, "it had no thread");
    // One of them is cut off, and the request that waits gets the thread of the one that leaves.
    assert_eq!(server.leave(&law, &mut jobs, 120, 3), None);
    assert_eq!(server.next_end_ns(&law, &jobs), Some(160));
    done.clear();
    server.done(&law, &mut jobs, 160, &mut done);
    assert_eq!(done, [0, 1]);
    assert_eq!(server.leave(&law, &mut jobs, 160, 0), Some(4));
    assert_eq!(server.leave(&law, &mut jobs, 160, 1), None);
    assert_eq!((server.inside(), server.waiting()), (1, 0));
}
