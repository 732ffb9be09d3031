//! Bytes that a reader must survive: a corpus, and the shortest part of a message that still fails.

use std::panic::{RefUnwindSafe, catch_unwind, resume_unwind};

/// The messages of a file, a line of hexadecimal digits each.
///
/// # Panics
/// If a line has something else.
pub fn corpus(text: &str) -> Vec<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let line = |line: &str| line.as_bytes().chunks(2).map(|pair| byte(pair).expect("digits")).collect();
    text.lines().map(line).collect()
}

/// Runs a test on these bytes. If it panics, the bytes are shortened as long as it still does; then what is left is
/// written to standard error, and the last panic goes on.
///
/// # Panics
/// If the test does.
pub fn check_bytes(name: &str, bytes: &[u8], test: impl Fn(&[u8]) + RefUnwindSafe) {
    let Err(first) = catch_unwind(|| test(bytes)) else { return };
    let (mut shortest, mut panic) = (bytes.to_vec(), first);
    let mut length = shortest.len().div_ceil(2);
    while length > 0 {
        let mut start = 0;
        while start < shortest.len() {
            let mut shorter = shortest.clone();
            shorter.drain(start..(start + length).min(shortest.len()));
            match catch_unwind(|| test(&shorter)) {
                Err(again) => (shortest, panic) = (shorter, again),
                Ok(()) => start += length,
            }
        }
        length /= 2;
    }
    eprintln!("{name}: of {} bytes these fail as well: \"{}\"", bytes.len(), shortest.escape_ascii());
    resume_unwind(panic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_shortened() {
        let test = |bytes: &[u8]| {
            assert!(!(bytes.contains(&b'x') && bytes.contains(&b'y')), "{}", bytes.escape_ascii());
        };
        check_bytes("fine", b"aaxaa", test);
        let panic =
            catch_unwind(|| check_bytes("wrong", b"aayaaaaxaaaaaaaaaaaa", test)).expect_err("a panic");
        assert_eq!(*panic.downcast::<String>().expect("a message"), "yx");
    }

    #[test]
    fn a_corpus_is_read_from_digits() {
        assert_eq!(corpus("00ff\n0a\n"), [vec![0, 255], vec![10]]);
    }
}
