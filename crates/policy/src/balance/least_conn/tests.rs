//! Least connections against a scan of all targets.

use super::*;

/// The obvious model: scan all, keep the least.
fn naive(weights: &[f64], counts: &[u32], exclude: &[TargetId]) -> Vec<TargetId> {
    let load = |i: usize| f64::from(counts[i]) / weights[i];
    let open = |i: &usize| weights[*i] > 0.0 && !exclude.contains(&TargetId(*i as u32));
    let best = (0..counts.len()).filter(open).map(load).min_by(f64::total_cmp);
    (0..counts.len()).filter(open).filter(|&i| Some(load(i)) == best).map(|i| TargetId(i as u32)).collect()
}

/// nginx's rotation, by the obvious loop.
struct Turns {
    weights: Vec<f64>,
    values: Vec<f64>,
}

impl Turns {
    fn new(weights: &[f64], cursor: u32) -> Turns {
        let n = weights.len();
        let part = |i: usize| (n - (i + n - cursor as usize) % n) as f64 / n as f64;
        Turns { weights: weights.to_vec(), values: (0..n).map(|i| weights[i] * part(i)).collect() }
    }

    /// Whether some weights differ.
    fn are_needed(&self) -> bool {
        self.weights.iter().any(|w| *w > 0.0 && *w != self.weights[0])
    }

    fn step(&mut self, among: &[TargetId]) -> TargetId {
        for t in among {
            self.values[t.index()] += self.weights[t.index()];
        }
        let most = among.iter().map(|t| self.values[t.index()]).fold(f64::NEG_INFINITY, f64::max);
        let chosen = among.iter().copied().find(|t| self.values[t.index()] == most).unwrap();
        self.values[chosen.index()] -= among.iter().map(|t| self.weights[t.index()]).sum::<f64>();
        chosen
    }
}

#[test]
fn agrees_with_a_scan_for_all_ties_and_weights() {
    for weights in [vec![1.0; 7], vec![2.0, 1.0, 0.0, 3.0, 2.0, 1.0], vec![0.5; 3], vec![1.0, 4.0]] {
        for ties in [Ties::Random, Ties::First, Ties::Rotate] {
            let mut lb = LeastConn::new(&weights, ties, 0, Key::new(3));
            let mut counts = vec![0u32; weights.len()];
            let mut turns = Turns::new(&weights, lb.cursor);
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
                    Ties::Rotate if turns.are_needed() => assert_eq!(got, turns.step(&allowed)),
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

/// Idle targets of the weights 2, 1 and 5 get these shares: drawn, or exactly in each round of the rotation.
#[test]
fn idle_targets_get_the_shares_of_their_weights() {
    let weights = [2.0, 1.0, 0.0, 5.0];
    let shares = |ties, exclude: &[TargetId]| {
        let (mut lb, mut seen) = (LeastConn::new(&weights, ties, 0, Key::new(3)), [0; 4]);
        for i in 0..24_000 {
            let t = lb.pick(Key::new(1).with(i), exclude).unwrap();
            seen[t.index()] += 1;
            lb.release(t);
        }
        seen
    };
    let near = |got: [i32; 4], want: [i32; 4]| {
        assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 300), "{got:?} {want:?}");
    };
    near(shares(Ties::Random, &[]), [6000, 3000, 0, 15_000]);
    near(shares(Ties::Random, &[TargetId(3)]), [16_000, 8000, 0, 0]);
    assert_eq!(shares(Ties::Rotate, &[]), [6000, 3000, 0, 15_000]);
    assert_eq!(shares(Ties::Rotate, &[TargetId(3)]), [16_000, 8000, 0, 0]);
    assert_eq!(shares(Ties::First, &[]), [24_000, 0, 0, 0]);
}

/// The rotation goes on over barred targets, which gain no turns meanwhile, and over changes of weights.
#[test]
fn the_rotation_survives_changes() {
    let mut lb = LeastConn::new(&[1e6, 1.0, 1.0], Ties::Rotate, 0, Key::new(3));
    let mut seen = |weights: &[f64], barred: Option<u32>, picks: u64| {
        lb.refresh(weights);
        let mut seen = vec![0; weights.len()];
        for i in 0..picks {
            let t = lb.pick_where(Key::new(i), |t| Some(t.0) == barred).unwrap();
            seen[t.index()] += 1;
            lb.release(t);
        }
        seen
    };
    seen(&[1e6, 1.0, 1.0], None, 1000);
    let after = seen(&[2.0, 1.0, 1.0], None, 400);
    assert!((after[0] - 200i32).abs() <= 8, "{after:?}");
    assert_eq!(seen(&[2.0, 1.0, 1.0], Some(0), 1000), [0, 500, 500]);
    let after = seen(&[2.0, 1.0, 1.0], None, 400);
    assert!((after[0] - 200i32).abs() <= 2, "{after:?}");
    let grown = seen(&[2.0, 1.0, 1.0, 4.0], None, 800);
    assert!((grown[3] - 400i32).abs() <= 4, "{grown:?}");
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
