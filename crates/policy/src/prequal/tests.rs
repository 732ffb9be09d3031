//! `lb.prequal` against the paper's figures and plain models.

use super::*;

const DEFAULT: Probing =
    Probing { probes: 3.0, pool: 16, age_ns: 1_000_000_000, q_rif: 0.84, remove: 1.0, delta: 1.0 };

fn lb(n: usize, how: Probing) -> Prequal {
    Prequal::new(&vec![1.0; n], how)
}

fn mean_uses(n: usize, pool: u32) -> f64 {
    let lb = lb(n, Probing { pool, ..DEFAULT });
    (0..20_000).map(|i| f64::from(lb.uses(Key::new(1).with(i)))).sum::<f64>() / 20_000.0
}

/// The notes' worked figures: 1.316 with a pool of 16 of 100, 3.57 with 48, unlimited with 4 of 6.
#[test]
fn the_reuse_budget_is_the_papers() {
    assert!((mean_uses(100, 16) - 1.316).abs() < 0.02);
    assert!((mean_uses(100, 48) - 3.571).abs() < 0.02);
    assert_eq!(lb(6, Probing { pool: 4, ..DEFAULT }).uses(Key::new(1)), u32::MAX);
}

fn keep() -> Probing {
    Probing { remove: 0.0, probes: 0.0, ..DEFAULT }
}

/// With a threshold of 5: of (RIF 10, 1 ms), (2, 50 ms) and (3, 20 ms) the third; of two hot ones the less loaded.
#[test]
fn hot_ones_are_avoided_and_the_fastest_cold_one_taken() {
    let mut three = lb(4, keep());
    (0..100).for_each(|_| three.remember(5));
    for (t, rif, ms) in [(0, 10, 1), (1, 2, 50), (2, 3, 20)] {
        three.probed(0, Key::new(1), t, rif, ms * 1_000_000);
    }
    assert_eq!(three.threshold(), 5.0);
    assert_eq!(three.clone().pick_where(Key::new(1), 0, |_| false), Some(2));
    assert_eq!(three.clone().pick_where(Key::new(1), 0, |t| t == 2), Some(1));
    let mut hot = lb(4, keep());
    (0..100).for_each(|_| hot.remember(5));
    hot.probed(0, Key::new(1), 0, 10, 1);
    hot.probed(0, Key::new(1), 1, 8, 9);
    assert_eq!(hot.pick_where(Key::new(1), 0, |_| false), Some(1));
    assert_eq!(hot.pool[1].rif, 9, "and is one fuller now");
}

#[test]
fn the_ends_of_the_quantile_are_rif_alone_and_latency_alone() {
    for (q_rif, want) in [(0.0, 1), (1.0, 0)] {
        let mut two = lb(3, Probing { q_rif, ..keep() });
        two.probed(0, Key::new(1), 0, 10, 1);
        two.probed(0, Key::new(1), 1, 2, 50);
        assert_eq!(two.pick_where(Key::new(1), 0, |_| false), Some(want));
    }
}

/// The quantile against one of a plain sorted copy.
#[test]
fn the_threshold_is_that_of_the_last_answers() {
    let mut lb = lb(3, DEFAULT);
    let mut all = Vec::new();
    for i in 0..500u64 {
        let rif = Key::new(2).with(i).below(40) as u32;
        all.push(rif);
        lb.remember(rif);
        let mut last = all[all.len().saturating_sub(REMEMBERED)..].to_vec();
        last.sort_unstable();
        let rank = (0.84 * last.len() as f64).ceil() as usize - 1;
        assert_eq!(lb.threshold(), f64::from(last[rank]));
    }
}

#[test]
fn answers_age_are_spent_and_removed() {
    let mut lb = lb(100, DEFAULT);
    for t in 0..40 {
        lb.probed(u64::from(t), Key::new(1), t, t, 1);
        assert!(lb.pooled() <= 16);
    }
    lb.probed(50, Key::new(1), 39, 0, 1);
    assert_eq!(lb.pooled(), 16, "the newest of each target only");
    lb.pick_where(Key::new(1), 50, |_| false);
    assert!((14..16).contains(&lb.pooled()), "one removed, perhaps one spent");
    lb.failed(38);
    assert!(lb.pool.iter().all(|a| a.target != 38));
    lb.pick_where(Key::new(1), 2_000_000_000, |_| false);
    assert_eq!(lb.pooled(), 0);
}

#[test]
fn probes_go_to_distinct_targets_evenly() {
    let mut lb = lb(7, Probing { probes: 2.5, ..DEFAULT });
    let (mut out, mut seen, mut sent) = (Vec::new(), [0; 7], 0);
    for i in 0..14_000 {
        lb.to_probe(Key::new(5).with(i), &mut out);
        sent += out.len();
        assert!(out.windows(2).all(|w| w[0] < w[1]) && (2..=3).contains(&out.len()));
        out.iter().for_each(|&t| seen[t as usize] += 1);
    }
    assert_eq!(sent, 35_000);
    assert!(seen.iter().all(|c| (4700..5300).contains(c)), "{seen:?}");
    lb.refresh(&[1.0, 0.0]);
    lb.to_probe(Key::new(1), &mut out);
    assert_eq!(out, [0]);
}

#[test]
fn probes_tell_the_fast_from_the_slow() {
    let mut lb = lb(4, DEFAULT);
    let busy = |t: u32| Busy { in_flight: 0, alone_ns: if t == 2 { 1 } else { 100 } };
    let picks = (0..1000u64).filter(|&i| {
        let draw = Key::new(3).with(i);
        lb.probe(i, draw, busy);
        lb.pick_where(draw, i, |_| false) == Some(2)
    });
    let picked = picks.count();
    assert!(picked > 700, "{picked}: as often as it is probed, three times in four");
}

/// Without answers it draws by weight; what left the set is not picked from old answers.
#[test]
fn without_two_answers_it_is_random() {
    let mut lb = Prequal::new(&[3.0, 1.0, 0.0], DEFAULT);
    let mut seen = [0; 3];
    for i in 0..10_000 {
        seen[lb.pick_where(Key::new(1).with(i), 0, |_| false).unwrap() as usize] += 1;
    }
    assert!((7_250..7_750).contains(&seen[0]) && seen[2] == 0, "{seen:?}");
    lb.probed(0, Key::new(1), 0, 0, 1);
    lb.probed(0, Key::new(1), 1, 0, 1);
    lb.refresh(&[0.0, 1.0, 1.0]);
    assert_eq!(lb.pooled(), 1);
    lb.probed(0, Key::new(1), 0, 0, 1);
    assert_eq!(lb.pooled(), 1, "a late answer of one that left");
    assert_eq!(lb.pick_where(Key::new(1), 0, |_| true), None);
}
