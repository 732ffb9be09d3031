//! Stickiness: a client returns to the target that answered it, by a cookie or, simulated, by its key.
//!
//! The cookie holds a keyed hash of the target's name: it says nothing of the name, cannot be made up without the secret,
//! and means the same target on every loop and after a restart with the same secret. Where the target is gone, not
//! eligible, full or excluded the policy picks, and the client is given the new one. Source: HAProxy `cookie insert`, nginx
//! `sticky cookie`. In the language: `sticky="cookie name"` of a balancer.

/// Letters of a cookie's value.
const LENGTH: usize = 16;

/// The targets of one balancer by the values of their cookies.
#[derive(Clone, Debug, Default)]
pub struct Cookies {
    secret: [u64; 2],
    values: Vec<[u8; LENGTH]>,
    /// (value, target) in order of value.
    sorted: Vec<([u8; LENGTH], u32)>,
}

impl Cookies {
    /// No targets yet; 128 secret bits.
    pub fn new(secret: [u64; 2]) -> Cookies {
        Cookies { secret, ..Cookies::default() }
    }

    /// A target's name; `None`: it is gone. Not for the path of a request.
    pub fn set(&mut self, target: u32, name: Option<&str>) {
        let i = target as usize;
        if i >= self.values.len() {
            self.values.resize(i + 1, [0; LENGTH]);
        }
        self.sorted.retain(|e| e.1 != target);
        self.values[i] = [0; LENGTH];
        if let Some(name) = name {
            self.values[i] = hex(siphash(self.secret, name.as_bytes()));
            let entry = (self.values[i], target);
            let at = self.sorted.partition_point(|e| *e < entry);
            self.sorted.insert(at, entry);
        }
    }

    /// The value that a client of this target is given.
    pub fn value(&self, target: u32) -> Option<&str> {
        let value = self.values.get(target as usize).filter(|v| v[0] != 0)?;
        std::str::from_utf8(value).ok()
    }

    /// The target that a value names.
    pub fn target(&self, value: &[u8]) -> Option<u32> {
        let at = self.sorted.binary_search_by(|e| e.0.as_slice().cmp(value)).ok()?;
        Some(self.sorted[at].1)
    }
}

fn hex(hash: u64) -> [u8; LENGTH] {
    std::array::from_fn(|i| b"0123456789abcdef"[(hash >> (60 - 4 * i) & 15) as usize])
}

/// SipHash-2-4 (Aumasson, Bernstein 2012).
pub fn siphash(secret: [u64; 2], bytes: &[u8]) -> u64 {
    let mut v = [
        secret[0] ^ 0x736f_6d65_7073_6575,
        secret[1] ^ 0x646f_7261_6e64_6f6d,
        secret[0] ^ 0x6c79_6765_6e65_7261,
        secret[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut chunks = bytes.chunks_exact(8);
    let absorb = |v: &mut [u64; 4], word: u64| {
        v[3] ^= word;
        round(v);
        round(v);
        v[0] ^= word;
    };
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        absorb(&mut v, u64::from_le_bytes(word));
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    last[7] = bytes.len() as u8;
    absorb(&mut v, u64::from_le_bytes(last));
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

/// Which target last answered each key, where there are no cookies (simulated). Bounded: the key that was set longest ago
/// is forgotten first.
#[derive(Clone, Debug)]
pub struct Memory {
    capacity: usize,
    /// Key to (target, turn).
    targets: std::collections::BTreeMap<u64, (u32, u64)>,
    /// Turn to key.
    turns: std::collections::VecDeque<(u64, u64)>,
    turn: u64,
}

impl Memory {
    /// Remembers at most so many keys.
    pub fn new(capacity: usize) -> Memory {
        Memory { capacity: capacity.max(1), targets: Default::default(), turns: Default::default(), turn: 0 }
    }

    /// The target that a key should return to.
    pub fn target(&self, key: u64) -> Option<u32> {
        self.targets.get(&key).map(|t| t.0)
    }

    /// A target has answered a key.
    pub fn answered(&mut self, key: u64, target: u32) {
        if let Some(known) = self.targets.get_mut(&key) {
            known.0 = target;
            return;
        }
        if self.targets.len() >= self.capacity {
            while let Some((turn, oldest)) = self.turns.pop_front() {
                if self.targets.get(&oldest).is_some_and(|t| t.1 == turn) {
                    self.targets.remove(&oldest);
                    break;
                }
            }
        }
        self.turn += 1;
        self.targets.insert(key, (target, self.turn));
        self.turns.push_back((self.turn, key));
    }

    /// A target is gone: its keys are free.
    pub fn forget(&mut self, target: u32) {
        self.targets.retain(|_, t| t.0 != target);
        let targets = &self.targets;
        self.turns.retain(|(turn, key)| targets.get(key).is_some_and(|t| t.1 == *turn));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation's vectors: key 00..0f, input 00..(n-1).
    #[test]
    fn siphash_is_the_published_one() {
        let secret = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let input: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(secret, &[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(siphash(secret, &input), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn a_cookie_names_a_target_until_it_is_gone() {
        let mut cookies = Cookies::new([1, 2]);
        for (t, name) in ["a:80", "b:80", "c:80"].into_iter().enumerate() {
            cookies.set(t as u32, Some(name));
        }
        for t in 0..3 {
            let value = cookies.value(t).unwrap().to_owned();
            assert!(value.len() == 16 && !value.contains(':'));
            assert_eq!(cookies.target(value.as_bytes()), Some(t));
        }
        let b = cookies.value(1).unwrap().to_owned();
        cookies.set(1, None);
        assert_eq!((cookies.value(1), cookies.target(b.as_bytes())), (None, None));
        cookies.set(7, Some("b:80"));
        assert_eq!(cookies.target(b.as_bytes()), Some(7), "the name counts, not the index");
        assert_eq!(
            (cookies.target(b""), cookies.target(&[0; 16]), cookies.target(b"xyz")),
            (None, None, None)
        );
        let mut other = Cookies::new([1, 3]);
        other.set(0, Some("b:80"));
        assert_eq!(other.target(b.as_bytes()), None, "another secret");
    }

    #[test]
    fn keys_return_and_memory_is_bounded() {
        let mut memory = Memory::new(3);
        (0..5).for_each(|k| memory.answered(k, k as u32));
        memory.answered(4, 9);
        assert_eq!([0, 1, 2, 3, 4].map(|k| memory.target(k)), [None, None, Some(2), Some(3), Some(9)]);
        memory.forget(3);
        memory.answered(8, 1);
        assert_eq!([2, 3, 4, 8].map(|k| memory.target(k)), [Some(2), None, Some(9), Some(1)]);
        for k in 0..1000 {
            memory.answered(k, 0);
            memory.forget(0);
        }
        assert!(memory.turns.len() <= 3);
    }
}
