//! "Did you mean": the nearest of the names that exist.

/// The name nearest to `word` by edits (swaps of neighbours count one), if one is near enough to be meant.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = match word.chars().count() {
        0..=3 => 1,
        4..=6 => 2,
        _ => 3,
    };
    names
        .into_iter()
        .filter(|n| *n != word)
        .map(|n| (distance(word, n), n))
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

/// Damerau–Levenshtein, optimal string alignment.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut d = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                d = d.min(before[j - 2] + 1);
            }
            row.push(d);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
