//! Frames made up and mutated, in pieces of all sizes: the account is what a reader of whole frames adds up.

use super::*;
use weir_testkit::{Random, corpus};

/// Heads of the frames that have come whole: kind, flags, length.
fn heads(mut bytes: &[u8]) -> Vec<(u8, u8, usize)> {
    let mut heads = Vec::new();
    while let [a, b, c, kind, flags, _, _, _, _, rest @ ..] = bytes {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        heads.push((*kind, *flags, length));
        bytes = rest.get(length..).unwrap_or_default();
    }
    heads
}

/// The score by the rules as they are written above.
fn score(bytes: &[u8]) -> i32 {
    let mut score = 0i32;
    for (kind, flags, length) in heads(bytes) {
        let units = i32::try_from(length / 1024).expect("24 bits");
        match (kind, length) {
            _ if score >= MOST as i32 => break,
            (0, 0) if flags & 1 == 0 => score += 1,
            (0, 0) | (8, _) => {}
            (0, _) => score = (score - 1).max(0),
            (1 | 9, _) => score += 1 + units,
            _ => score += 1,
        }
    }
    score
}

/// However the bytes are cut.
fn assert_counted(bytes: &[u8]) {
    let account = |cut: usize| {
        let mut frames = Frames::of_client(0);
        bytes.chunks(cut).for_each(|piece| frames.count_received(piece, 0));
        (frames.score, frames.is_over())
    };
    let expected = score(bytes);
    for cut in [1, 2, 3, 7, 8, 9, 10, 64, 1000, bytes.len().max(1)] {
        let (score, is_over) = account(cut);
        // What comes behind the end is not counted any more, or is: it makes no difference.
        let most = MOST as i32;
        assert_eq!((score.min(most), is_over), (expected.min(most), expected >= most), "{bytes:?} by {cut}");
    }
}

fn frame(random: &mut Random, bytes: &mut Vec<u8>) {
    let length = match random.below(10) {
        0..4 => 0,
        4..8 => random.below(20),
        8 => random.below(300),
        _ => 1000 + random.below(3000),
    };
    bytes.extend(&(length as u32).to_be_bytes()[1..]);
    bytes.extend([random.below(12) as u8, random.below(3) as u8, 0, 0, 0, random.below(9) as u8]);
    bytes.resize(bytes.len() + length, random.bits() as u8);
}

#[test]
fn anything_may_come() {
    for (i, bytes) in corpus(include_str!("../../tests/corpus/frames.hex")).into_iter().enumerate() {
        assert_counted(&bytes);
        for seed in 0..300 {
            let mut mutated = bytes.clone();
            Random::new(seed << 20 | i as u64).mutate(&mut mutated, 4);
            assert_counted(&mutated);
        }
    }
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut bytes = Vec::new();
        (0..1 + random.below(40)).for_each(|_| frame(&mut random, &mut bytes));
        assert_counted(&bytes);
        random.mutate(&mut bytes, 4);
        assert_counted(&bytes);
    }
    // Some come to the end.
    let mut random = Random::new(1);
    let mut bytes = Vec::new();
    while score(&bytes) < MOST as i32 {
        frame(&mut random, &mut bytes);
    }
    assert_counted(&bytes);
}
