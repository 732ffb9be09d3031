//! A place drawn by weight in constant time (Vose, "A linear algorithm for generating random numbers with a given
//! distribution", 1991).

use weir_stats::Key;

/// The table: (probability of staying, the other place) for each place; empty where weights are equal.
#[derive(Clone, Debug, Default)]
pub(super) struct Alias(Vec<(f64, u32)>);

impl Alias {
    /// The table of these weights, all above 0. O(n).
    pub fn new(weights: &[f64]) -> Alias {
        let equal = weights.windows(2).all(|w| w[0] == w[1]);
        Alias(if equal { Vec::new() } else { alias_table(weights) })
    }

    /// Whether the weights differ.
    pub fn is_needed(&self) -> bool {
        !self.0.is_empty()
    }

    /// One of `n` places, the number of weights; 0 if there are none.
    #[inline]
    pub fn draw(&self, draw: Key, n: usize) -> usize {
        let i = draw.below(n as u64) as usize;
        match self.0.get(i) {
            Some(&(stay, other)) if draw.nth(1).unit() >= stay => other as usize,
            _ => i,
        }
    }
}

fn alias_table(weights: &[f64]) -> Vec<(f64, u32)> {
    let n = weights.len();
    let total: f64 = weights.iter().sum();
    let mut scaled: Vec<f64> = weights.iter().map(|w| w / total * n as f64).collect();
    let mut table: Vec<(f64, u32)> = (0..n as u32).map(|i| (1.0, i)).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| scaled[i] < 1.0);
    while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
        small.pop();
        table[s] = (scaled[s], l as u32);
        scaled[l] -= 1.0 - scaled[s];
        if scaled[l] < 1.0 {
            large.pop();
            small.push(l);
        }
    }
    table
}
