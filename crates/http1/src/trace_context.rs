//! Trace Context (W3C, level 1): `traceparent` and `tracestate` are read, and pass unchanged or, where they are
//! invalid, not at all.

use crate::block::Block;
use crate::byte::elements;
use crate::name::{Name, Names};

/// The trace that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// trace-id.
    pub id: u128,
    /// Whether the caller records it (the flag `sampled`).
    pub sampled: bool,
}

const CONTEXT: Names = Names::new(&[Name::TraceParent, Name::TraceState]);

/// Members of `tracestate` (§3.3.1.1).
const MOST_MEMBERS: usize = 32;

/// The trace of a head, and those of its fields that go no further: without one valid `traceparent` neither does (§3.2,
/// §3.3).
pub(crate) fn read(block: &Block) -> (Option<Trace>, Names) {
    let mut parents = block.passing(Name::TraceParent);
    let Some(trace) = parents.next().and_then(parent).filter(|_| parents.next().is_none()) else {
        return (None, CONTEXT);
    };
    let members = || block.passing(Name::TraceState).flat_map(elements);
    let valid = members().count() <= MOST_MEMBERS && members().all(is_member) && has_distinct_keys(members);
    (Some(trace), if valid { Names::default() } else { Names::new(&[Name::TraceState]) })
}

/// Whether each key occurs once (§3.3.1.3.1); of [`MOST_MEMBERS`] at most, so comparing all pairs is cheap.
fn has_distinct_keys<'a, I: Iterator<Item = &'a [u8]>>(members: impl Fn() -> I) -> bool {
    let key = |member: &'a [u8]| member.split(|b| *b == b'=').next();
    members().enumerate().all(|(at, member)| members().take(at).all(|before| key(before) != key(member)))
}

/// `version-traceid-parentid-flags` in lower-case hexadecimal; later versions may go on behind it (§3.2.4).
fn parent(text: &[u8]) -> Option<Trace> {
    let (known, rest) = text.split_at_checked(55)?;
    let part = |from: usize, to: usize| hex(&known[from..to]);
    let dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    let (version, id, span, flags) = (part(0, 2)?, part(3, 35)?, part(36, 52)?, part(53, 55)?);
    let length = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest[0] == b'-',
    };
    (dashes && length && id != 0 && span != 0).then_some(Trace { id, sampled: flags & 1 != 0 })
}

fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |sum, b| {
        let digit = match b {
            b'0'..=b'9' => b - b'0',
            b'a'..=b'f' => b - b'a' + 10,
            _ => return None,
        };
        Some(sum << 4 | u128::from(digit))
    })
}

/// `key=value` (§3.3.1.3).
fn is_member(member: &[u8]) -> bool {
    let Some(at) = member.iter().position(|b| *b == b'=') else { return false };
    let (key, value) = (&member[..at], &member[at + 1..]);
    let plain = |b: &u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
    let mut parts = key.split(|b| *b == b'@');
    let first = parts.next().unwrap_or_default();
    let named = match (parts.next(), parts.next()) {
        (None, _) => {
            first.len() <= 256 && first.first().is_some_and(u8::is_ascii_lowercase) && first.iter().all(plain)
        }
        (Some(system), None) => {
            (1..=241).contains(&first.len())
                && first.iter().all(plain)
                && first[0].is_ascii_alphanumeric()
                && (1..=14).contains(&system.len())
                && system[0].is_ascii_lowercase()
                && system.iter().all(plain)
        }
        _ => false,
    };
    let printable = |b: &u8| matches!(b, 0x20..=0x2b | 0x2d..=0x3c | 0x3e..=0x7e);
    named && (1..=256).contains(&value.len()) && value.iter().all(printable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::request::Request;

    const ID: &str = "0af7651916cd43dd8448eb211c80319c";

    /// The context that is read from these lines, and which of the two fields is forwarded.
    fn read_of(lines: &str) -> (Option<Trace>, (bool, bool)) {
        let mut request = Request::default();
        let head = format!("GET / HTTP/1.1\r\nHost: x\r\n{lines}\r\n");
        request.parse(head.as_bytes(), &Limits::default()).expect("a head");
        let (trace, gone) = read(&request.block);
        (trace, (!gone.has(Name::TraceParent), !gone.has(Name::TraceState)))
    }

    #[test]
    fn a_parent_is_read_as_the_standard_has_it() {
        let id = u128::from_str_radix(ID, 16).expect("hexadecimal");
        for (text, want) in [
            (format!("00-{ID}-b7ad6b7169203331-01"), Some(true)),
            (format!("00-{ID}-b7ad6b7169203331-00"), Some(false)),
            (format!("00-{ID}-b7ad6b7169203331-03"), Some(true)),
            (format!("00-{ID}-b7ad6b7169203331-01-more"), None),
            (format!("cc-{ID}-b7ad6b7169203331-01"), Some(true)),
            (format!("cc-{ID}-b7ad6b7169203331-01-more"), Some(true)),
            (format!("cc-{ID}-b7ad6b7169203331-01.more"), None),
            (format!("ff-{ID}-b7ad6b7169203331-01"), None),
            (format!("00-{ID}-0000000000000000-01"), None),
            (format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)), None),
            (format!("00-{}-b7ad6b7169203331-01", ID.to_uppercase()), None),
            (format!("00-{ID}-b7ad6b7169203331-1"), None),
            (format!("00_{ID}-b7ad6b7169203331-01"), None),
            (String::new(), None),
        ] {
            let got = read_of(&format!("traceparent: {text}\r\n"));
            let trace = want.map(|sampled| Trace { id, sampled });
            assert_eq!(got, (trace, (trace.is_some(), trace.is_some())), "{text}");
        }
    }

    #[test]
    fn a_state_goes_on_with_a_valid_parent_only() {
        let parent = format!("Traceparent: 00-{ID}-b7ad6b7169203331-01\r\n");
        let long = (0..33).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
        for (state, goes_on) in [
            ("rojo=00f067aa0ba902b7, congo=t61rcWkgMzE", true),
            ("a=1,b=1,a=2", false),
            ("a=1,a@b=1", true),
            ("a=1,,b=2", true),
            ("1t@sys=x", true),
            ("", true),
            ("A=1", false),
            ("a", false),
            ("a=", false),
            ("a=b=c", false),
            ("1a=x", false),
            ("a@b@c=x", false),
            (&long, false),
        ] {
            let lines = format!("{parent}tracestate: {state}\r\n");
            assert_eq!(read_of(&lines).1, (true, goes_on), "{state}");
        }
        assert_eq!(read_of("tracestate: a=1\r\n"), (None, (false, false)));
        assert_eq!(read_of(&format!("{parent}{parent}tracestate: a=1\r\n")), (None, (false, false)));
    }
}
