//! The scores and the draws of `lb.zuul`, by hand and by properties.

use super::*;

const S: u64 = 1_000_000_000;
const DECAY: u64 = 30 * S;
const A: TargetId = TargetId(0);
const B: TargetId = TargetId(1);
const C: TargetId = TargetId(2);

fn lb(weights: &[f64]) -> Zuul {
    Zuul::new(weights, DECAY, None)
}

/// As many requests at a target as given, from now on.
fn busy(lb: &mut Zuul, target: TargetId, requests: u32) {
    (0..requests).for_each(|_| lb.take(target));
}

/// Each was heard from once, well.
fn known(weights: &[f64]) -> Zuul {
    let mut lb = lb(weights);
    for target in TargetId::all(weights.len() as u32) {
        end(&mut lb, target, 0, None);
    }
    lb
}

/// A request that ends at once.
fn end(lb: &mut Zuul, target: TargetId, now_ns: u64, outcome: Outcome) {
    lb.take(target);
    lb.done(target, now_ns, outcome);
}

fn picked(lb: &mut Zuul, draw: u64, now_ns: u64) -> TargetId {
    let target = lb.pick_where(Key::new(7).with(draw), now_ns, |_| false).expect("a target");
    lb.release(target);
    target
}

/// The targets that are picked at all, over many draws.
fn picks(lb: &mut Zuul, now_ns: u64) -> Vec<TargetId> {
    let mut all: Vec<TargetId> = (0..300).map(|draw| picked(lb, draw, now_ns)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn scores_by_hand() {
    let mut lb = known(&[1.0, 1.0, 4.0]);
    assert_eq!(lb.scores(A, B, 0), (0.0, 0.0));
    // Requests in flight: 2/(2 + 1 + 1) and 1/(2 + 1 + 1).
    busy(&mut lb, A, 2);
    busy(&mut lb, B, 1);
    assert_eq!(lb.scores(A, B, 0), (0.5, 0.25));
    // By weight: 4/4 = 1 of 2 + 1 + 1.
    busy(&mut lb, C, 4);
    assert_eq!(lb.scores(A, C, 0), (0.5, 0.25));
    // A load adds itself, a failure an eighth of four.
    lb.loaded(A, 0, 0.25);
    lb.done(B, 0, Some(Kind::Status5xx));
    // B is idle now: 0 + 0.25 + 2/3 against 4/8.
    let (a, b) = lb.scores(A, B, 0);
    assert!((a - (0.25 + 2.0 / 3.0)).abs() < 1e-15 && b == 0.5, "{a} {b}");
    // A second failure: 1/8 + (1 − 1/8)/8 = 15/64, and four times that.
    end(&mut lb, B, 0, Some(Kind::Refused));
    assert_eq!(lb.scores(A, B, 0).1, 0.9375);
    // A success takes an eighth away.
    end(&mut lb, B, 0, None);
    assert_eq!(lb.scores(A, B, 0).1, 0.9375 * 0.875);
}

#[test]
fn failures_are_what_eject_counts() {
    for kind in Kind::ALL {
        let mut lb = known(&[1.0]);
        end(&mut lb, A, 0, Some(Kind::Reset));
        end(&mut lb, A, 0, Some(kind));
        let want = match kind {
            Kind::Cancelled => 1.0 / 8.0,
            _ if is_failure(kind) => 15.0 / 64.0,
            _ => 7.0 / 64.0,
        };
        assert_eq!(lb.failures_and_load(A, 0).0, want, "{kind:?}");
    }
    // A time limit around the balancer strikes: no answer, yet a failure.
    let mut lb = known(&[1.0]);
    lb.take(A);
    Policy::timed_out(&mut lb, 0, A, 5);
    assert_eq!((lb.failures_and_load(A, 0).0, lb.in_flight(A)), (0.125, 0));
}

/// In a straight line to nothing, since the target was last heard from; then it is as good as one without a history.
#[test]
fn what_is_known_decays() {
    let mut lb = known(&[1.0, 1.0]);
    for _ in 0..100 {
        end(&mut lb, A, S, Some(Kind::Status5xx));
    }
    lb.loaded(A, S, 0.8);
    let (failures, load) = lb.failures_and_load(A, S);
    assert!(failures > 0.999 && (load - 0.8).abs() < 1e-7);
    for (after, left) in [(0, 1.0), (6 * S, 0.8), (15 * S, 0.5), (24 * S, 0.2), (30 * S, 0.0), (90 * S, 0.0)]
    {
        let now = lb.failures_and_load(A, S + after);
        assert!((now.0 - failures * left).abs() < 1e-12 && (now.1 - load * left).abs() < 1e-12, "{after}");
    }
    assert_eq!(picks(&mut lb, 2 * S), [B]);
    assert_eq!(picks(&mut lb, 31 * S), [A, B], "tried again");
    // An end changes what is left, and what is left lasts from then on.
    end(&mut lb, A, 16 * S, None);
    let (after, load_after) = lb.failures_and_load(A, 16 * S);
    assert!((after - failures / 2.0 * 0.875).abs() < 1e-12 && (load_after - load / 2.0).abs() < 1e-12);
    assert!((lb.failures_and_load(A, 31 * S).1 - load / 4.0).abs() < 1e-12);
    // What was read last does not decay.
    assert_eq!((lb.reported(A), lb.reported(B)), (Some(0.8), None));
}

#[test]
fn loads_are_shares() {
    let mut lb = known(&[1.0]);
    lb.loaded(A, 0, f32::NAN);
    assert_eq!((lb.reported(A), lb.failures_and_load(A, 0).1), (None, 0.0));
    for (reported, read) in [(0.25, 0.25), (7.0, 1.0), (-1.0, 0.0)] {
        lb.loaded(A, 0, reported);
        assert_eq!((lb.reported(A), lb.failures_and_load(A, 0).1), (Some(read), f64::from(read)));
    }
    lb.loaded(TargetId(9), 0, 0.5);
}

/// Of equal scores the first drawn is taken, so each of many equal targets is.
#[test]
fn ties_take_the_first_drawn() {
    let mut lb = known(&[1.0; 5]);
    let mut seen = [0; 5];
    for draw in 0..20_000 {
        let key = Key::new(7).with(draw);
        let target = picked(&mut lb, draw, 0);
        assert_eq!(target.index() as u64, key.nth(0).below(5));
        seen[target.index()] += 1;
    }
    assert!(seen.iter().all(|n| (3_800..4_200).contains(n)), "{seen:?}");
}

/// Two distinct targets, uniformly: the i-th best of five is the better of two with probability (5 − i)/10.
#[test]
fn two_distinct_targets_are_drawn_uniformly() {
    // Weights matter to requests in flight alone.
    let mut lb = known(&[1.0, 9.0, 1.0, 5.0, 1.0]);
    for target in TargetId::all(5) {
        lb.loaded(target, 0, 0.1 * target.0 as f32);
    }
    let mut seen = [0.0f64; 5];
    (0..40_000).for_each(|draw| seen[picked(&mut lb, draw, 0).index()] += 1.0 / 40_000.0);
    for (got, want) in seen.iter().zip([0.4, 0.3, 0.2, 0.1, 0.0]) {
        assert!((got - want).abs() < 0.013, "{seen:?}");
    }
}

/// A target that was not heard from gets one request at a time, as long as another is left.
#[test]
fn probation() {
    let mut lb = known(&[1.0; 4]);
    lb.refresh(&[1.0; 5]);
    let new = TargetId(4);
    (0..4).for_each(|target| lb.loaded(TargetId(target), 0, 0.9));
    let mut first = 0;
    while lb.pick_where(Key::new(3).with(first), 0, |_| false) != Some(new) {
        first += 1;
    }
    for draw in 0..2_000 {
        assert_ne!(picked(&mut lb, draw, 0), new);
    }
    // A cancelled request says nothing of it.
    lb.done(new, 0, Some(Kind::Cancelled));
    assert!(picks(&mut lb, 0).contains(&new));
    busy(&mut lb, new, 1);
    assert!(!picks(&mut lb, 0).contains(&new));
    lb.done(new, 0, None);
    busy(&mut lb, new, 3);
    assert!(picks(&mut lb, 0).contains(&new), "heard from");
    // Another one at its index is not known.
    lb.forget(new);
    assert!(!picks(&mut lb, 0).contains(&new) && lb.in_flight(new) == 3);
    // No other is left.
    let target = lb.pick_where(Key::new(1), 0, |target| target != new);
    assert_eq!((target, lb.in_flight(new)), (Some(new), 4));
}

/// A burst to targets of which none is known: one each, and then as the counts say.
#[test]
fn a_cold_start_spreads() {
    let mut lb = lb(&[1.0; 40]);
    for draw in 0..40 {
        assert!(lb.pick_where(Key::new(5).with(draw), 0, |_| false).is_some());
    }
    assert!(TargetId::all(40).all(|target| lb.in_flight(target) == 1));
    assert!(lb.pick_where(Key::new(5).with(41), 0, |_| false).is_some());
}

#[test]
fn targets_above_the_limit_are_passed_over() {
    let mut lb = Zuul::new(&[1.0; 3], DECAY, Some(0.5));
    for target in [A, B, C] {
        end(&mut lb, target, 0, None);
    }
    lb.loaded(A, 0, 0.6);
    lb.loaded(B, 0, 0.5);
    lb.loaded(C, 0, 0.5);
    busy(&mut lb, B, 50);
    busy(&mut lb, C, 50);
    assert_eq!(picks(&mut lb, 0), [B, C], "0.5 is not above 0.5");
    // After 6 s 0.6 has become 0.48.
    assert!(picks(&mut lb, 6 * S).contains(&A));
    // All are above it: the limit yields.
    lb.loaded(B, 0, 0.9);
    lb.loaded(C, 0, 1.0);
    assert_eq!(picks(&mut lb, 0), [A, B], "by score");
}

/// What is barred is never picked, even if all others are passed over.
#[test]
fn never_picks_what_may_not_be_picked() {
    let mut passed_over = 0;
    for case in 0..4_000u64 {
        let draw = Key::new(11).with(case);
        let n = 1 + draw.below(7) as usize;
        let weights: Vec<f64> = (0..n).map(|i| draw.nth(10 + i as u64).below(3) as f64 * 0.5).collect();
        let mut lb = Zuul::new(&weights, DECAY, (case % 2 == 0).then_some(0.5));
        for target in TargetId::all(n as u32) {
            let key = draw.nth(50).with(u64::from(target.0));
            if key.below(3) > 0 {
                end(&mut lb, target, S, (key.nth(1).below(2) == 0).then_some(Kind::Reset));
                lb.loaded(target, S, key.nth(2).unit() as f32);
            }
            busy(&mut lb, target, key.nth(3).below(3) as u32);
        }
        let barred = |target: TargetId| draw.nth(80 + u64::from(target.0)).below(3) == 0;
        let may = |target: &TargetId| weights[target.index()] > 0.0 && !barred(*target);
        let allowed: Vec<TargetId> = TargetId::all(n as u32).filter(may).collect();
        let now = S + draw.nth(99).below(40) * S;
        let mut preferred = allowed.clone();
        preferred.retain(|&target| !lb.is_passed_over(target, now));
        match lb.pick_where(draw, now, barred) {
            None => assert!(allowed.is_empty(), "case {case}"),
            Some(target) => {
                let from = if preferred.is_empty() { &allowed } else { &preferred };
                assert!(from.contains(&target), "case {case}: {target:?} of {from:?}");
                passed_over += u32::from(preferred.len() < allowed.len());
            }
        }
    }
    assert!(passed_over > 500, "{passed_over}");
}

/// Counts of all loops are compared, also for probation, and its own are kept.
#[test]
fn shared_counts_are_compared() {
    let counts = SharedCounts::default().with_room(3);
    let mut lb = known(&[1.0; 2]);
    counts.add(A, 3);
    lb.compare_counts(Some(counts.clone()));
    assert_eq!(lb.scores(A, B, 0), (0.75, 0.0));
    assert_eq!(picks(&mut lb, 0), [B]);
    lb.refresh(&[1.0; 3]);
    counts.add(B, 9);
    counts.add(C, 1);
    assert_eq!(picks(&mut lb, 0), [A], "C was not heard from, and another loop is there");
    lb.compare_counts(None);
    lb.set_count(C, 0);
    assert!(picks(&mut lb, 0).contains(&C));
    assert_eq!(lb.total_in_flight(), 0);
}

/// What was learnt goes over to a balancer with other arguments, and counts do not.
#[test]
fn learning_keeps_counts() {
    let mut old = known(&[1.0; 2]);
    end(&mut old, A, S, Some(Kind::Reset));
    old.loaded(B, S, 0.5);
    busy(&mut old, A, 5);
    let mut new = Zuul::new(&[1.0; 2], 10 * S, None);
    busy(&mut new, B, 1);
    new.learn_from(&old);
    assert_eq!((new.in_flight(A), new.in_flight(B)), (0, 1));
    assert_eq!(new.failures_and_load(A, 6 * S), (0.125 * 0.5, 0.0));
    assert_eq!(new.failures_and_load(B, S), (0.0, 0.5));
}
