//! The targets that may be picked, in order, where all of them have one weight: kept by single changes.

use crate::TargetId;

/// Puts in and takes out what has changed of targets whose weights are equal. Returns whether they still are; otherwise
/// nothing has changed.
pub(super) fn change_few(open: &mut Vec<TargetId>, weights: &[f64], changed: &[TargetId]) -> bool {
    // One of them that has not changed, so that its weight is theirs.
    let Some(known) = open.iter().find(|target| !changed.contains(target)) else { return false };
    let all = weights[known.index()];
    let is_open = |target: &TargetId| weights[target.index()] > 0.0;
    if changed.iter().any(|target| is_open(target) && weights[target.index()] != all) {
        return false;
    }
    for target in changed {
        match (open.binary_search(target), is_open(target)) {
            (Err(at), true) => open.insert(at, *target),
            (Ok(at), false) => _ = open.remove(at),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_weights_are_followed() {
        let mut open = vec![TargetId(0), TargetId(2), TargetId(3)];
        let weights = [2.0, 2.0, 0.0, 2.0, 1.0];
        assert!(change_few(&mut open, &weights, &[TargetId(1), TargetId(2)]));
        assert_eq!(open, [TargetId(0), TargetId(1), TargetId(3)]);
        assert!(!change_few(&mut open, &weights, &[TargetId(4)]));
        assert!(!change_few(&mut vec![TargetId(4)], &weights, &[TargetId(4)]), "no other is known");
        assert_eq!(open.len(), 3);
    }
}
