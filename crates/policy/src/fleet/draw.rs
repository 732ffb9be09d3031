//! Members that are drawn: which leave, which a registry forgets.

use weir_stats::Key;

/// `k` of these, or all if there are fewer, drawn without return: each set of `k` with the same chance.
pub fn draw<T>(mut all: Vec<T>, k: usize, key: Key) -> Vec<T> {
    let k = k.min(all.len());
    for at in 0..k {
        let other = at + key.nth(at as u64).below((all.len() - at) as u64) as usize;
        all.swap(at, other);
    }
    all.truncate(k);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_is_drawn_as_often() {
        let mut counts = [0u32; 5];
        for seed in 0..10_000 {
            let mut drawn = draw((0..5usize).collect(), 2, Key::new(seed));
            drawn.iter().for_each(|member| counts[*member] += 1);
            drawn.dedup();
            assert_eq!(drawn.len(), 2);
        }
        assert!(counts.iter().all(|n| n.abs_diff(4_000) < 250), "{counts:?}");
        assert_eq!(draw(vec![7, 8], 9, Key::new(1)).len(), 2);
    }
}
