//! Stickiness: a client returns to the target that answered it, by a cookie; simulated, clients keep cookies by key.
//!
//! The cookie holds a keyed hash of the target's name: it does not reveal the name, cannot be forged without the
//! secret, and means the same target on every loop and after a restart with the same secret. If the target is
//! removed, not eligible, full or excluded the policy picks, and the client gets the cookie of the new target.
//! Source: HAProxy `cookie insert`, nginx `sticky cookie`. In the language: `sticky="cookie name"` of a balancer.

use crate::TargetId;
use crate::key::{self, distinct};
use crate::outcome::{Kind, Outcome};
use siphasher::sip::SipHasher24;
use std::collections::{BTreeMap, VecDeque};

/// Letters of a cookie's value.
const LENGTH: usize = 16;

/// The targets of one balancer by the values of their cookies.
#[derive(Clone, Debug, Default)]
pub struct Cookies {
    secret: [u64; 2],
    numbers: Vec<Option<u64>>,
    /// (number, target) in order of number.
    sorted: Vec<(u64, TargetId)>,
}

impl Cookies {
    /// No targets yet; 128 secret bits.
    pub fn new(secret: [u64; 2]) -> Cookies {
        Cookies { secret, ..Cookies::default() }
    }

    /// The cookies of these targets, in order, distinguished as hashes distinguish them.
    pub fn with_targets(secret: [u64; 2], names: &[impl AsRef<str>]) -> Cookies {
        let all: Vec<_> = (0..).map(TargetId).zip(names).collect();
        Cookies::from_targets(secret, &all)
    }

    /// The cookies of these targets, the first of which keeps a name that several have.
    pub fn from_targets(secret: [u64; 2], targets: &[(TargetId, impl AsRef<str>)]) -> Cookies {
        let mut cookies = Cookies::new(secret);
        let names: Vec<&str> = targets.iter().map(|(_, name)| name.as_ref()).collect();
        for ((target, _), name) in targets.iter().zip(distinct(&names)) {
            cookies.number_of(*target, Some(&name));
        }
        let known = (0..).map(TargetId).zip(&cookies.numbers);
        cookies.sorted = known.filter_map(|(target, number)| Some(((*number)?, target))).collect();
        cookies.sorted.sort_unstable();
        cookies
    }

    /// Gives a target its number, which is returned.
    fn number_of(&mut self, target: TargetId, name: Option<&str>) -> Option<u64> {
        let i = target.index();
        if i >= self.numbers.len() {
            self.numbers.resize(i + 1, None);
        }
        self.numbers[i] = name.map(|name| siphash(self.secret, name.as_bytes()));
        self.numbers[i]
    }

    /// Sets a target's name; `None`: it is removed. Not for the path of a request.
    pub fn set(&mut self, target: TargetId, name: Option<&str>) {
        self.sorted.retain(|e| e.1 != target);
        if let Some(number) = self.number_of(target, name) {
            let at = self.sorted.partition_point(|e| *e < (number, target));
            self.sorted.insert(at, (number, target));
        }
    }

    /// The cookie of this target, as a number.
    pub fn number(&self, target: TargetId) -> Option<u64> {
        self.numbers.get(target.index()).copied().flatten()
    }

    /// The value for a client of this target: the number in sixteen letters.
    pub fn value(&self, target: TargetId) -> Option<String> {
        self.number(target).map(|number| format!("{number:0width$x}", width = LENGTH))
    }

    /// The target of a number.
    pub fn named(&self, number: u64) -> Option<TargetId> {
        let at = self.sorted.partition_point(|e| e.0 < number);
        self.sorted.get(at).filter(|e| e.0 == number).map(|e| e.1)
    }

    /// The target of a value.
    pub fn target(&self, value: &[u8]) -> Option<TargetId> {
        let is_ours = |letter: &u8| matches!(letter, b'0'..=b'9' | b'a'..=b'f');
        let text = std::str::from_utf8(value)
            .ok()
            .filter(|v| v.len() == LENGTH && v.bytes().all(|b| is_ours(&b)))?;
        self.named(u64::from_str_radix(text, 16).ok()?)
    }
}

/// SipHash-2-4 (Aumasson, Bernstein 2012): clients keep these bits.
fn siphash(secret: [u64; 2], bytes: &[u8]) -> u64 {
    SipHasher24::new_with_keys(secret[0], secret[1]).hash(bytes)
}

/// The cookies that clients keep, simulated: values by client and cookie. Bounded: the oldest entry is forgotten
/// first.
#[derive(Clone, Debug)]
pub struct Jar {
    capacity: usize,
    /// Client and cookie to number.
    numbers: BTreeMap<(u64, u64), u64>,
    /// The same keys, in the order in which they were first set.
    order: VecDeque<(u64, u64)>,
}

impl Jar {
    /// Keeps at most `most` entries.
    pub fn new(capacity: usize) -> Jar {
        Jar { capacity: capacity.max(1), numbers: BTreeMap::new(), order: VecDeque::new() }
    }

    /// The value of a client's cookie.
    pub fn number(&self, client: u64, cookie: u64) -> Option<u64> {
        self.numbers.get(&(client, cookie)).copied()
    }

    /// Stores a client's cookie.
    pub fn keep(&mut self, client: u64, cookie: u64, number: u64) {
        if self.numbers.insert((client, cookie), number).is_some() {
            return;
        }
        self.order.push_back((client, cookie));
        if self.order.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
        }
    }
}

/// A balancer's cookies, simulated.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The hash of the cookie's name.
    cookie: u64,
    cookies: Cookies,
}

impl Simulated {
    /// The cookies of this name of a balancer with these targets; `key_file`: the secret of their values, by default
    /// the name. Balancers with both alike share them, as they do when served.
    pub fn new(name: &str, key_file: Option<&str>, targets: &[impl AsRef<str>]) -> Simulated {
        let cookie = key::hash(name.as_bytes());
        let secret = [cookie, key_file.map_or(0, |file| key::hash(file.as_bytes()))];
        Simulated { cookie, cookies: Cookies::with_targets(secret, targets) }
    }

    /// Sets a target's name; `None`: it is removed.
    pub fn set(&mut self, target: TargetId, name: Option<&str>) {
        self.cookies.set(target, name);
    }

    /// The target to which a client returns.
    pub fn target(&self, jar: &Jar, client: u64) -> Option<TargetId> {
        self.cookies.named(jar.number(client, self.cookie)?)
    }

    /// Notes that a target has answered a client, even with an error: every answer sets the cookie.
    pub fn answered(&self, jar: &mut Jar, client: u64, target: TargetId, outcome: Outcome) {
        let is_answer = outcome.is_none_or(|kind| kind == Kind::Status5xx);
        if let Some(number) = self.cookies.number(target).filter(|_| is_answer) {
            jar.keep(client, self.cookie, number);
        }
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
            cookies.set(TargetId(t as u32), Some(name));
        }
        for t in 0..3 {
            let value = cookies.value(TargetId(t)).unwrap();
            assert!(value.len() == 16 && !value.contains(':'));
            assert_eq!(cookies.target(value.as_bytes()), Some(TargetId(t)));
        }
        let b = cookies.value(TargetId(1)).unwrap();
        cookies.set(TargetId(1), None);
        assert_eq!((cookies.value(TargetId(1)), cookies.target(b.as_bytes())), (None, None));
        cookies.set(TargetId(7), Some("b:80"));
        assert_eq!(cookies.target(b.as_bytes()), Some(TargetId(7)), "the name counts, not the index");
        assert_eq!(
            (cookies.target(b""), cookies.target(&[0; 16]), cookies.target(b"xyz")),
            (None, None, None)
        );
        let mut other = Cookies::new([1, 3]);
        other.set(TargetId(0), Some("b:80"));
        assert_eq!(other.target(b.as_bytes()), None, "another secret");
    }

    #[test]
    fn a_jar_is_bounded_and_balancers_of_one_cookie_share_it() {
        let (mut jar, targets) = (Jar::new(3), ["a", "b", "a"]);
        let one = Simulated::new("srv", None, &targets);
        let other = Simulated::new("srv", None, &["b", "a"]);
        let [named, keyed] =
            [("id", None), ("srv", Some("key"))].map(|(n, k)| Simulated::new(n, k, &targets));
        one.answered(&mut jar, 7, TargetId(1), None);
        assert_eq!(
            (one.target(&jar, 7), other.target(&jar, 7)),
            (Some(TargetId(1)), Some(TargetId(0))),
            "by name"
        );
        assert_eq!((named.target(&jar, 7), keyed.target(&jar, 7), one.target(&jar, 8)), (None, None, None));
        one.answered(&mut jar, 7, TargetId(2), Some(Kind::Reset));
        assert_eq!(one.target(&jar, 7), Some(TargetId(1)), "no answer, no cookie");
        one.answered(&mut jar, 7, TargetId(2), Some(Kind::Status5xx));
        assert_eq!(
            (one.target(&jar, 7), other.target(&jar, 7)),
            (Some(TargetId(2)), None),
            "the second `a` is there only"
        );
        (10..13).for_each(|client| one.answered(&mut jar, client, TargetId(0), None));
        assert_eq!((one.target(&jar, 7), one.target(&jar, 10)), (None, Some(TargetId(0))));
        assert_eq!((jar.numbers.len(), jar.order.len()), (3, 3));
    }
}
