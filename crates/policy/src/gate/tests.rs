//! The article's log line by line, values that Guava and another implementation gave, and what must hold for any askers.

use super::*;

const S: u64 = NS_PER_S;

fn ramp(flap: Flap) -> GateArgs {
    GateArgs { ramp_ns: Some(60 * S), flap, work: None }
}

fn asker(flap: Flap, id: &str, number: u32, text: &str) -> Asker {
    Asker { number, place: Place::new(flap, id, text) }
}

/// Ten thousand addresses of a private network.
fn addresses() -> Vec<String> {
    (0..10_000).map(|n| format!("10.0.{}.{}", n >> 8, n & 255)).collect()
}

/// The log in the article, from its first line on: address, hash, percent in single precision, verdict, seconds.
#[test]
fn the_log_of_the_article() {
    let mut gate = Gate::new(ramp(Flap::Article));
    for (text, hash, percent, is_healthy, at_s) in [
        ("172.26.51.36", 234_237_154, "0.0", false, 0),
        ("172.26.51.107", 652_717_793, "0.0", false, 0),
        ("172.26.51.136", 22_700_163, "15.000001", false, 9),
        ("172.26.51.254", 394_429_823, "23.333334", true, 14),
        ("172.26.51.107", 652_717_793, "98.333336", true, 59),
    ] {
        let now_ns = (100 + at_s) * S + 999_999_999;
        let asker = asker(Flap::Article, "", 0, text);
        assert_eq!(asker.place.hash, hash, "{text}");
        let answer = gate.answer(now_ns, asker, true, &[]);
        assert_eq!(answer, if is_healthy { Answer::Healthy } else { Answer::Ramp }, "{text} at {at_s}");
        assert_eq!(format!("{:?}", gate.enabled_percent(now_ns)), percent);
    }
}

/// Guava 33.8.0's buckets, and the whole seconds from which an address is let in.
#[test]
fn buckets_of_the_article() {
    for (text, bucket, from_s) in [
        ("127.0.0.1", 14, 9),
        ("127.0.0.2", 12, 8),
        ("127.0.0.3", 5, 3),
        ("127.0.0.4", 52, 32),
        ("127.0.0.5", 61, 37),
        ("10.0.7.3", 0, 0),
        ("172.26.51.36", 54, 33),
        ("172.26.51.107", 93, 56),
        ("172.26.51.136", 63, 38),
        ("172.26.51.254", 23, 14),
    ] {
        let place = Place::new(Flap::Article, "any", text);
        assert_eq!(place.share, f64::from(bucket) / 100.0, "{text}");
        assert_eq!(place.from_ns(&ramp(Flap::Article)), from_s * S, "{text}");
    }
}

/// −2³¹ has no magnitude in 32 bits: Java leaves it negative, so that it is always let in.
#[test]
fn the_least_hash_is_always_let_in() {
    let place = Place::of_article(0x8000_0000);
    assert_eq!((place.hash, place.share), (-2_147_483_648, -0.48));
    assert!(place.share_is_in(&ramp(Flap::Article), 0));
    assert_eq!(place.from_ns(&ramp(Flap::Article)), 0);
}

/// Places that another implementation of the same rule gave.
#[test]
fn places_of_an_even_ramp() {
    for (text, share) in
        [("127.0.0.1", 0.350767), ("127.0.0.2", 0.516162), ("10.0.0.1", 0.864051), ("2001:db8::1", 0.554271)]
    {
        let place = Place::new(Flap::Even, "a", text);
        assert!((place.share - share).abs() < 5e-7, "{text}: {}", place.share);
    }
}

/// No asker at the beginning, all at the end, a share that grows with time, and one that was let in stays.
#[test]
fn an_even_ramp_lets_a_growing_share_in() {
    let args = ramp(Flap::Even);
    for id in ["a", "b", "17"] {
        let places: Vec<Place> = addresses().iter().map(|text| Place::new(Flap::Even, id, text)).collect();
        let mut before = 0;
        for s in 0..=60 {
            let is_in = |place: &&Place| place.share_is_in(&args, s * S);
            let inside = places.iter().filter(is_in).count();
            let stay = |place: &&Place| place.from_ns(&args) < s.saturating_sub(1) * S && !is_in(place);
            assert!(places.iter().find(stay).is_none() && inside >= before, "at {s} s");
            let wanted = s as f64 / 60.0 * 10_000.0;
            assert!((inside as f64 - wanted).abs() <= 150.0, "{id}: {inside} at {s} s");
            before = inside;
        }
        assert!(!places.iter().any(|place| place.share_is_in(&args, 0)), "none at 0");
        assert_eq!(before, 10_000, "all at the end");
    }
}

/// The orders in which two processes let askers in say nothing of each other.
#[test]
fn two_processes_have_orders_of_their_own() {
    let ranks = |id: &str| {
        let mut all: Vec<(f64, usize)> = addresses()
            .iter()
            .enumerate()
            .map(|(at, text)| (Place::new(Flap::Even, id, text).share, at))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut ranks = vec![0.0; all.len()];
        all.iter().enumerate().for_each(|(rank, (_, at))| ranks[*at] = rank as f64);
        ranks
    };
    let (a, b) = (ranks("a"), ranks("b"));
    let n = a.len() as f64;
    let squares: f64 = a.iter().zip(&b).map(|(a, b)| (a - b) * (a - b)).sum();
    let correlation = 1.0 - 6.0 * squares / (n * (n * n - 1.0));
    assert!(correlation.abs() < 0.05, "{correlation}");
}

/// The clock of `article` begins with a question, that of `even` with readiness; a restart stops both.
#[test]
fn when_the_clock_begins() {
    for (flap, begins_ns) in [(Flap::Article, 5 * S), (Flap::Even, 20 * S)] {
        let mut gate = Gate::new(ramp(flap));
        let asker = asker(flap, "a", 1, "10.0.0.1");
        assert_eq!(gate.answer(5 * S, asker, false, &[]), Answer::Unready);
        gate.answer(20 * S, asker, true, &[]);
        gate.answer(30 * S, asker, false, &[]);
        assert_eq!(gate.elapsed_ns(50 * S), Some(50 * S - begins_ns));
        gate.restart();
        assert_eq!((gate.elapsed_ns(60 * S), gate.enabled_percent(60 * S)), (None, 0.0));
    }
}

/// One that ran before the gate lets all in.
#[test]
fn a_process_that_runs_already_has_no_ramp() {
    for flap in [Flap::Even, Flap::Article] {
        let mut gate = Gate::open(ramp(flap), 0);
        assert_eq!(gate.answer(0, asker(flap, "a", 1, "10.0.0.1"), true, &[]), Answer::Healthy);
        assert_eq!(gate.enabled_percent(0), 100.0);
    }
}

fn by_work(is_relative: bool) -> Gate {
    let work =
        Work { min_requests: 10, is_relative, grace_ns: 60 * S, hold_ns: 30 * S, max_hold_ns: 100 * S };
    Gate::new(GateArgs { ramp_ns: None, flap: Flap::Even, work: Some(work) })
}

#[test]
fn without_requests_all_are_turned_away_longer_each_time() {
    let mut gate = by_work(false);
    let [one, two] = [1, 2].map(|n| asker(Flap::Even, "a", n, &format!("10.0.0.{n}")));
    let mut ask = |at_s: u64, asker: Asker, requests: u64| {
        gate.enter_many(requests);
        gate.answer(at_s * S, asker, true, &[])
    };
    assert_eq!(ask(0, one, 0), Answer::Healthy, "its first");
    assert_eq!(ask(50, one, 0), Answer::Healthy, "within grace");
    assert_eq!(ask(70, two, 0), Answer::Healthy, "another's first");
    assert_eq!(ask(70, one, 10), Answer::Healthy, "enough");
    assert_eq!(ask(80, one, 9), Answer::Idle { had: 9 });
    for (at_s, asker) in [(80, two), (90, one), (109, two)] {
        assert_eq!(ask(at_s, asker, 1_000), Answer::Held);
    }
    assert_eq!(ask(110, one, 0), Answer::Healthy, "the first after the hold");
    assert_eq!(ask(115, one, 0), Answer::Idle { had: 0 }, "the second in a row");
    assert_eq!(ask(174, one, 0), Answer::Held, "60 s");
    assert_eq!(ask(175, one, 0), Answer::Healthy);
    assert_eq!(ask(180, one, 0), Answer::Idle { had: 0 });
    assert_eq!(ask(279, two, 0), Answer::Held, "100 s at most");
    assert_eq!(ask(280, two, 0), Answer::Healthy);
    assert_eq!(ask(281, two, 10), Answer::Healthy, "the row ends");
    assert_eq!(ask(282, two, 0), Answer::Idle { had: 0 });
    assert_eq!(ask(311, two, 0), Answer::Held);
    assert_eq!(ask(312, two, 0), Answer::Healthy, "30 s again");
}

#[test]
fn an_idle_service_is_not_a_partitioned_one() {
    let mut gate = by_work(true);
    let asker = asker(Flap::Even, "a", 1, "10.0.0.1");
    let mut ask = |at_s: u64, counts: &[(u32, u64)]| {
        let others: Vec<_> =
            counts.iter().map(|(number, entered)| OtherGate { number: *number, entered: *entered }).collect();
        gate.answer(at_s * S, asker, true, &others)
    };
    ask(0, &[(7, 1_000), (3, 5_000)]);
    assert_eq!(ask(100, &[(7, 1_000), (3, 5_000)]), Answer::Healthy, "all are idle");
    assert_eq!(ask(110, &[(3, 5_039), (7, 1_040)]), Answer::Healthy, "39.5 on average");
    assert_eq!(ask(120, &[]), Answer::Healthy, "no other");
    assert_eq!(ask(130, &[(3, 30), (7, 5_000_000)]), Answer::Healthy, "neither was there before");
    assert_eq!(ask(140, &[(3, 10), (7, 5_000_039)]), Answer::Healthy, "one has begun anew, the other had 39");
    assert_eq!(ask(150, &[(3, 10), (7, 5_000_079)]), Answer::Healthy, "20 on average");
    assert_eq!(ask(160, &[(3, 60), (7, 5_000_119)]), Answer::Idle { had: 0 }, "45 on average");
}

/// IPv6 has one form, and an IPv4 address that came over an IPv6 socket is the IPv4 address.
#[test]
fn the_text_of_an_address() {
    for (address, text) in [
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:0DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("10.1.2.3", "10.1.2.3"),
        ("::1", "::1"),
    ] {
        assert_eq!(asker_text(address.parse().unwrap()), text);
    }
}

/// A process that is not healthy itself is not judged by its work, nor is one whose clock has not begun.
#[test]
fn a_process_that_boots_is_not_judged() {
    let work = Work {
        min_requests: 10,
        is_relative: false,
        grace_ns: 60 * S,
        hold_ns: 30 * S,
        max_hold_ns: 100 * S,
    };
    let mut gate = Gate::new(GateArgs { work: Some(work), ..ramp(Flap::Even) });
    let asker = asker(Flap::Even, "a", 1, "10.0.0.1");
    for at_s in (0..=95).step_by(5) {
        assert_eq!(gate.answer(at_s * S, asker, false, &[]), Answer::Unready);
    }
    assert_eq!(gate.answer(100 * S, asker, true, &[]), Answer::Ramp, "the clock begins");
    assert_eq!(gate.answer(155 * S, asker, true, &[]), Answer::Healthy, "within grace");
    assert_eq!(gate.answer(160 * S, asker, false, &[]), Answer::Unready);
    assert_eq!(gate.answer(165 * S, asker, true, &[]), Answer::Healthy, "its first after that");
    assert_eq!(gate.answer(170 * S, asker, true, &[]), Answer::Idle { had: 0 });
}
