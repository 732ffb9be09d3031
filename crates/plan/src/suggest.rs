//! "Did you mean": the nearest of the names that exist.

use strsim::osa_distance;

/// The name nearest to `word` by edits (swaps of neighbours count one), if one is near enough to be meant.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let most = match length {
        0..=3 => 1,
        4..=6 => 2,
        _ => 3,
    };
    names
        .into_iter()
        // The distance costs the product of both lengths, and is never less than their difference.
        .filter(|n| *n != word && n.chars().count().abs_diff(length) <= most)
        .map(|n| (osa_distance(word, n), n))
        .filter(|(d, n)| *d <= most && *d < n.chars().count().max(2))
        .min()
        .map(|(_, n)| n)
}

/// `did you mean `x`?`, if a name is near enough.
pub fn did_you_mean<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, names).map(|n| format!("did you mean `{n}`?"))
}

/// Names in words: `a, b or c`.
pub fn either<S: AsRef<str>>(names: &[S]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [most @ .., last] => {
            let most: Vec<&str> = most.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", most.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_slip_of_a_finger() {
        let names = ["server", "queue", "retry", "lb"];
        assert_eq!(nearest("servr", names), Some("server"));
        assert_eq!(nearest("qeuue", names), Some("queue"));
        assert_eq!(nearest("banana", names), None);
        assert_eq!(either(&["a", "b", "c"]), "a, b or c");
    }
}
