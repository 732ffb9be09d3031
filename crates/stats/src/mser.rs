//! Where a run has settled: MSER-5 (White 1997, "An effective truncation heuristic for bias reduction in simulation
//! output"; with batches of five: White, Cobb and Spratt 2000).
//!
//! Of all beginnings that could be cut it takes the one after which the mean of the rest is known best: the least sum
//! of squares around that mean over the square of the rest's length.

/// The last batches are too few to judge by: some that happen to be alike would always win.
const LAST: usize = 5;

/// How many batches to cut at the beginning, from the means of all; `None`: the best rest is less than half of them,
/// so the run is too short to have settled (or never does).
pub fn truncation(batches: &[f64]) -> Option<usize> {
    let n = batches.len();
    if n < 4 * LAST {
        return None;
    }
    // Around the mean of all, so that no digits are lost.
    let centre = batches.iter().sum::<f64>() / n as f64;
    let (mut sum, mut squares) = (0.0, 0.0);
    let (mut best, mut least) = (0, f64::INFINITY);
    for (d, batch) in batches.iter().enumerate().rev() {
        let off = batch - centre;
        sum += off;
        squares += off * off;
        let rest = (n - d) as f64;
        let error = (squares - sum * sum / rest).max(0.0) / (rest * rest);
        // Of equally good cuts the earliest.
        if n - d > LAST && error <= least {
            (best, least) = (d, error);
        }
    }
    (best <= n / 2).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use crate::math::{exp, normal_quantile};

    fn noise(seed: u64, n: usize) -> Vec<f64> {
        (0..n as u64).map(|i| normal_quantile(Key::new(seed).nth(i).unit())).collect()
    }

    #[test]
    fn nothing_is_left_out_of_what_has_no_beginning() {
        let left_out: usize = (0..50).map(|seed| truncation(&noise(seed, 400)).unwrap_or(400)).sum();
        assert!(left_out / 50 < 40, "{left_out}");
        assert_eq!(truncation(&[3.0; 100]), Some(0));
    }

    /// A beginning of forty batches, ten deviations away, is cut to within a few.
    #[test]
    fn a_beginning_is_found() {
        for seed in 0..50 {
            let mut batches = noise(seed, 400);
            batches[..40].iter_mut().for_each(|b| *b -= 10.0);
            let left_out = truncation(&batches).unwrap();
            assert!((40..80).contains(&left_out), "{seed}: {left_out}");
        }
    }

    /// A beginning that fades is cut until it is lost in the noise.
    #[test]
    fn a_fading_one_is_found() {
        let left_out: Vec<usize> = (0..50)
            .map(|seed| {
                let faded = |(i, b): (usize, f64)| b + 20.0 * exp(-(i as f64) / 20.0);
                truncation(&noise(seed, 400).into_iter().enumerate().map(faded).collect::<Vec<_>>()).unwrap()
            })
            .collect();
        assert!(left_out.iter().all(|d| (20..150).contains(d)), "{left_out:?}");
    }

    #[test]
    fn what_goes_on_rising_has_not_settled() {
        let rising: Vec<f64> = noise(1, 400).iter().enumerate().map(|(i, b)| b + i as f64).collect();
        assert_eq!(truncation(&rising), None);
        assert_eq!(truncation(&[1.0; 10]), None, "too few to say");
    }
}
