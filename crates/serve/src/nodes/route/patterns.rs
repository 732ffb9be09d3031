//! Patterns that match a text exactly, or any text that begins with them, in a radix tree: a look-up passes each byte
//! of the text once, however many patterns there are, and allocates nothing.

/// Patterns, each with a value.
pub(super) struct PatternTree<T> {
    /// The first is the root.
    nodes: Vec<TreeNode<T>>,
}

struct TreeNode<T> {
    /// What leads here from the node above.
    label: Box<[u8]>,
    /// The first byte of the label of each node below, and the node; ordered by the byte.
    below: Vec<(u8, usize)>,
    /// Of the pattern that ends here and matches exactly.
    exact: Option<T>,
    /// Of the pattern that ends here and matches whatever follows.
    open: Option<T>,
}

impl<T> TreeNode<T> {
    fn new(label: &[u8]) -> TreeNode<T> {
        TreeNode { label: label.into(), below: Vec::new(), exact: None, open: None }
    }
}

impl<T> PatternTree<T> {
    /// Without patterns.
    pub fn new() -> PatternTree<T> {
        PatternTree { nodes: vec![TreeNode::new(b"")] }
    }

    /// Adds a pattern, which was not there before.
    pub fn insert(&mut self, text: &[u8], is_open: bool, value: T) {
        let (mut node, mut rest) = (0, text);
        while let Some(first) = rest.first() {
            match self.nodes[node].below.binary_search_by_key(first, |(byte, _)| *byte) {
                Ok(at) => {
                    node = self.nodes[node].below[at].1;
                    let same = self.nodes[node].label.iter().zip(rest).take_while(|(a, b)| a == b).count();
                    self.split(node, same);
                    rest = &rest[same..];
                }
                Err(at) => {
                    let new = self.nodes.len();
                    self.nodes.push(TreeNode::new(rest));
                    self.nodes[node].below.insert(at, (*first, new));
                    (node, rest) = (new, b"");
                }
            }
        }
        let node = &mut self.nodes[node];
        *(if is_open { &mut node.open } else { &mut node.exact }) = Some(value);
    }

    /// Lets a node end behind the first `length` bytes of its label, and puts the rest of it below.
    fn split(&mut self, node: usize, length: usize) {
        let lower = self.nodes.len();
        let upper = &mut self.nodes[node];
        let (kept, rest) = upper.label.split_at(length);
        let Some(first) = rest.first() else { return };
        let mut between = TreeNode::new(kept);
        between.below.push((*first, lower));
        let label = rest.into();
        let whole = std::mem::replace(upper, between);
        self.nodes.push(TreeNode { label, ..whole });
    }

    /// Visits the values of all patterns that match a text. The text comes byte by byte, each with whether an open
    /// pattern may end behind it; `at_start`: whether one may be empty.
    pub fn visit<'t>(
        &'t self,
        at_start: bool,
        text: impl Iterator<Item = (u8, bool)>,
        mut visit: impl FnMut(&'t T),
    ) {
        let (mut node, mut label): (&TreeNode<T>, &[u8]) = (&self.nodes[0], b"");
        if at_start {
            node.open.iter().for_each(&mut visit);
        }
        for (byte, may_end) in text {
            match label.split_first() {
                Some((first, rest)) if *first == byte => label = rest,
                Some(_) => return,
                None => {
                    let Ok(at) = node.below.binary_search_by_key(&byte, |(byte, _)| *byte) else { return };
                    node = &self.nodes[node.below[at].1];
                    label = &node.label[1..];
                }
            }
            if label.is_empty() && may_end {
                node.open.iter().for_each(&mut visit);
            }
        }
        if label.is_empty() {
            node.exact.iter().for_each(&mut visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testkit::Random;

    #[test]
    fn all_patterns_that_match_are_visited_once_the_shortest_first() {
        let mut random = Random::new(43);
        let text = |random: &mut Random| -> Vec<u8> {
            (0..random.below(7)).map(|_| b"ab"[random.below(2)]).collect()
        };
        for _ in 0..2000 {
            let mut patterns: Vec<(Vec<u8>, bool)> =
                (0..random.below(30)).map(|_| (text(&mut random), random.percent(50))).collect();
            patterns.sort();
            patterns.dedup();
            let mut tree = PatternTree::new();
            let from = random.below(patterns.len());
            patterns.rotate_left(from);
            for pattern in &patterns {
                tree.insert(&pattern.0, pattern.1, pattern.clone());
            }
            let text = text(&mut random);
            let ends: Vec<bool> = (0..=text.len()).map(|_| random.percent(80)).collect();
            let mut want: Vec<_> = patterns
                .iter()
                .filter(|(pattern, is_open)| match is_open {
                    true => text.starts_with(pattern) && ends[pattern.len()],
                    false => text == *pattern,
                })
                .cloned()
                .collect();
            want.sort_by_key(|(pattern, is_open)| (pattern.len(), !is_open));
            let mut got = Vec::new();
            let bytes = text.iter().copied().zip(ends[1..].iter().copied());
            tree.visit(ends[0], bytes, |pattern| got.push(pattern.clone()));
            assert_eq!(got, want, "{patterns:?} and {text:?}, {ends:?}");
        }
    }

    /// A chain of patterns as long as it may be neither recurses nor keeps a text more than once.
    #[test]
    fn nested_patterns_keep_each_byte_once() {
        let text = vec![b'a'; 8000];
        let mut tree = PatternTree::new();
        for length in (0..=text.len()).rev() {
            tree.insert(&text[..length], true, length);
        }
        let labels: usize = tree.nodes.iter().map(|node| node.label.len()).sum();
        assert_eq!((tree.nodes.len(), labels), (text.len() + 1, text.len()));
        let mut visited = 0;
        tree.visit(true, text.iter().map(|byte| (*byte, true)), |_| visited += 1);
        assert_eq!(visited, text.len() + 1);
    }
}
