//! Random steps of a connection from a seed, as `entry` reads them.

use crate::naive::{Code, integer};
use std::sync::LazyLock;
use weir_testkit::Random;

static CODE: LazyLock<Code> = LazyLock::new(Code::new);

/// Limits and blocks, mostly lawful.
pub fn blocks(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..random.below(12) {
        if random.percent(10) {
            out.extend_from_slice(&[0, random.below(256) as u8]);
            continue;
        }
        let block = block(random);
        if (1..256).contains(&block.len()) {
            out.push(block.len() as u8);
            out.extend_from_slice(&block);
        }
    }
    out
}

fn block(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    if random.percent(15) {
        let size = mostly(random, 80, 4097, 200);
        integer(size, 0x20, 5, &mut out);
    }
    for _ in 0..random.below(8) {
        let index = 1 + mostly(random, 90, 68, 300);
        match random.below(8) {
            0 | 1 => integer(index, 0x80, 7, &mut out),
            kind => {
                let (pattern, prefix) = if kind < 6 { (0x40, 6) } else { (0x10 * (kind as u8 - 6), 4) };
                let is_named = random.percent(40);
                integer(if is_named { 0 } else { index }, pattern, prefix, &mut out);
                if is_named {
                    string(random, &mut out);
                }
                string(random, &mut out);
            }
        }
    }
    if random.percent(2) {
        integer(100, 0x20, 5, &mut out);
    }
    out
}

fn string(random: &mut Random, out: &mut Vec<u8>) {
    let length = mostly(random, 90, 24, 120);
    let is_text = random.percent(80);
    let byte = |_| if is_text { b'a' + random.below(26) as u8 } else { random.bits() as u8 };
    let string: Vec<u8> = (0..length).map(byte).collect();
    let coded = match random.below(50) {
        0..25 => None,
        25 => Some(CODE.encode_with_end(&string)),
        26 => Some([CODE.encode(&string), vec![0xff]].concat()),
        _ => Some(CODE.encode(&string)),
    };
    let bytes = coded.as_ref().unwrap_or(&string);
    integer(bytes.len(), if coded.is_some() { 0x80 } else { 0 }, 7, out);
    out.extend_from_slice(bytes);
}

/// A policy, and limits and blocks of fields.
pub fn fields(random: &mut Random) -> Vec<u8> {
    let mut out = vec![random.below(3) as u8];
    // Few fields repeat often, many seldom.
    let choices = 2 + random.below(60);
    let pool: Vec<[u8; 2]> = (0..choices).map(|_| (random.bits() as u16).to_le_bytes()).collect();
    for _ in 0..random.below(16) {
        if random.percent(12) {
            out.extend_from_slice(&[0, mostly(random, 50, 256, 12) as u8]);
            continue;
        }
        let count = 1 + random.below(12);
        out.push(2 * count as u8);
        for _ in 0..count {
            out.extend_from_slice(&pool[random.below(pool.len())]);
        }
    }
    out
}

/// A number below `most` in `percent` of a hundred cases, and else below `other`.
fn mostly(random: &mut Random, percent: usize, most: usize, other: usize) -> usize {
    let end = if random.percent(percent) { most } else { other };
    random.below(end)
}
