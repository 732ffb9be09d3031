//! Least connections against a scan of all targets.

use super::*;

/// The obvious model: scan all, keep the least.
fn naive(weights: &[f64], counts: &[u32], exclude: &[TargetId]) -> Vec<TargetId> {
    let load = |i: usize| f64::from(counts[i] + 1) / weights[i];
    let open = |i: &usize| weights[*i] > 0.0 && !exclude.contains(&TargetId(*i as u32));
    let best = (0..counts.len()).filter(open).map(load).min_by(f64::total_cmp);
    (0..counts.len()).filter(open).filter(|&i| Some(load(i)) == best).map(|i| TargetId(i as u32)).collect()
}

#[test]
fn agrees_with_a_scan_for_all_ties_and_weights() {
    for weights in [vec![1.0; 7], vec![2.0, 1.0, 0.0, 3.0, 2.0, 1.0], vec![0.5; 3], vec![1.0, 4.0]] {
        for ties in [Ties::Random, Ties::First, Ties::Rotate] {
            let mut lb = LeastConn::new(&weights, ties, 0, Key::new(3));
            let mut counts = vec![0u32; weights.len()];
            for step in 0..3000u64 {
                let draw = Key::new(8).with(step);
                let i = draw.nth(70).below(counts.len() as u64) as usize;
                if counts[i] > 0 && draw.nth(71).unit() < 0.6 {
                    counts[i] -= 1;
                    lb.release(TargetId(i as u32));
                    continue;
                }
                let exclude: Vec<TargetId> =
                    if draw.nth(72).unit() < 0.3 { vec![TargetId(i as u32)] } else { vec![] };
                let allowed = naive(&weights, &counts, &exclude);
                let allowed = if allowed.is_empty() { naive(&weights, &counts, &[]) } else { allowed };
                let cursor = lb.cursor;
                let got = lb.pick(draw, &exclude).unwrap();
                assert!(allowed.contains(&got), "{got} not of {allowed:?}");
                match ties {
                    Ties::First => assert_eq!(got, allowed[0]),
                    Ties::Rotate => {
                        let next = allowed.iter().copied().find(|&t| t.0 >= cursor).unwrap_or(allowed[0]);
                        assert_eq!(got, next);
                    }
                    Ties::Random => {}
                }
                counts[got.index()] += 1;
                assert!((0..counts.len()).all(|t| lb.in_flight(TargetId(t as u32)) == counts[t]));
            }
        }
    }
}

/// Relabelling targets changes nothing in distribution: on an idle system each of n gets 1/n.
#[test]
fn random_ties_are_uniform_over_idle_targets() {
    let mut seen = [0u32; 9];
    for i in 0..90_000 {
        let mut lb =
            LeastConn::new(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], Ties::Random, 0, Key::new(0));
        seen[lb.pick(Key::new(1).with(i), &[]).unwrap().index()] += 1;
    }
    let chi: f64 = seen.iter().map(|&c| (f64::from(c) - 1e4) * (f64::from(c) - 1e4) / 1e4).sum();
    assert!(chi < 8.0 + 5.0 * 4.0, "{chi}");
}

/// Health that removes targets and returns them leaves one level of counts, as it was.
#[test]
fn coming_and_going_divides_nobody() {
    for ties in [Ties::Random, Ties::First, Ties::Rotate] {
        let mut lb = LeastConn::new(&[2.0; 9], ties, 0, Key::new(1));
        for step in 0..500u64 {
            let draw = Key::new(8).with(step);
            let weights: Vec<f64> = (0..9).map(|t| 2.0 * (draw.nth(t).below(3) as f64).min(1.0)).collect();
            let counts: Vec<u32> = (0..9).map(|t| lb.in_flight(TargetId(t))).collect();
            lb.refresh(&weights);
            assert!(lb.classes.is_empty() && lb.position.is_empty());
            assert_eq!((0..9).map(|t| lb.in_flight(TargetId(t))).collect::<Vec<_>>(), counts);
            let best = naive(&weights, &counts, &[]);
            assert!(lb.pick(draw, &[]).is_none_or(|t| best.contains(&t)));
            if let Some(t) = TargetId::all(9).find(|t| counts[t.index()] > 2) {
                lb.release(t);
            }
        }
    }
}

#[test]
fn without_targets_nothing_is_picked() {
    assert_eq!(LeastConn::new(&[], Ties::Random, 0, Key::new(0)).pick(Key::new(1), &[]), None);
    assert_eq!(LeastConn::new(&[0.0], Ties::First, 0, Key::new(0)).pick(Key::new(1), &[]), None);
}
