//! Where a head ends: looked for from where the last look ended.

use crate::byte::is_token;
use crate::limits::Limits;
use crate::rule::{Id, Refusal, refuse};

/// Where the end of a head was looked for last.
#[derive(Default, Debug, Clone)]
pub struct Seek {
    /// Bytes looked at.
    at: usize,
    /// Where the first line begins: behind empty lines.
    start: usize,
    /// The first line has its end.
    lined: bool,
    /// The method has its end.
    spaced: bool,
}

impl Seek {
    /// Looks for the end of a request head in all that has come of it. `Some(n)`: the head is `bytes[..n]`, blank line
    /// and skipped empty lines before it included (RFC 9112 §2.2). What can become no head is refused at once.
    pub fn request(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Refusal> {
        if self.at <= self.start {
            while bytes[self.start.min(bytes.len())..].starts_with(b"\r\n") {
                self.start += 2;
                if self.start > 2 * Limits::EMPTY_LINES {
                    return Err(refuse(Id::EmptyLines));
                }
            }
            match bytes.get(self.start) {
                None | Some(b'\r') => return Ok(None),
                Some(b'\n') => return Err(refuse(Id::BareLf)),
                Some(&b) if !is_token(b) => return Err(refuse(Id::MethodInvalid)),
                Some(_) => self.at = self.start,
            }
        }
        match self.find(bytes, limits)? {
            Some(end) => Ok(Some(end)),
            None => self.early(bytes, limits),
        }
    }

    /// Looks for the end of a response head, as [`Seek::request`] does; no empty line may stand before it.
    pub fn response(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Refusal> {
        const BEGIN: &[u8] = b"HTTP/1.";
        if self.at < BEGIN.len() {
            let n = bytes.len().min(BEGIN.len());
            if bytes[..n] != BEGIN[..n] {
                return Err(refuse(Id::StatusLine));
            }
        }
        self.find(bytes, limits).map_err(Refusal::in_response)
    }

    /// Begins anew, for the next head.
    pub fn reset(&mut self) {
        *self = Seek::default();
    }

    /// The end of the head. Lines are not looked at if it is there: the parser does that. If it is not, every LF on the
    /// way must follow a CR, or it would never come.
    fn find(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Refusal> {
        let begin = self.at.saturating_sub(3).max(self.start).min(bytes.len());
        if let Some(end) = blank_line(&bytes[begin..]).map(|n| begin + n) {
            self.at = end;
            if end - self.start > limits.max_head {
                return Err(refuse(Id::HeadTooLarge));
            }
            return Ok(Some(end));
        }
        let mut at = self.at;
        while let Some(lf) = bytes.get(at..).and_then(|b| b.iter().position(|&b| b == b'\n')).map(|i| at + i)
        {
            if lf == 0 || bytes[lf - 1] != b'\r' {
                return Err(refuse(Id::BareLf));
            }
            self.lined = true;
            at = lf + 1;
        }
        self.at = bytes.len();
        if bytes.len() - self.start.min(bytes.len()) >= limits.max_head && self.lined {
            return Err(refuse(Id::HeadTooLarge));
        }
        Ok(None)
    }

    /// What an unfinished request head shows already.
    fn early(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Refusal> {
        let head = bytes.get(self.start..).unwrap_or_default();
        if !self.spaced {
            let most = head.len().min(limits.max_method + 1);
            self.spaced = head[..most].contains(&b' ');
            if !self.spaced && most > limits.max_method {
                return Err(refuse(Id::MethodTooLong));
            }
        }
        if !self.lined && head.len() > limits.max_target + limits.max_method + b"  HTTP/1.1\r\n".len() {
            return Err(refuse(Id::TargetTooLong));
        }
        Ok(None)
    }
}

/// The end of the first LF CR LF. Blocks are asked first whether one begins in them, without branches, so that the
/// compiler compares many bytes at once.
fn blank_line(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 32;
    let mut from = 0;
    while let Some(block) = bytes.get(from..from + BLOCK + 2) {
        let (first, third) = (&block[..BLOCK], &block[2..]);
        let any = first.iter().zip(third).fold(false, |any, (a, b)| any | ((*a == b'\n') & (*b == b'\n')));
        if any && let Some(end) = exact(block) {
            return Some(from + end);
        }
        from += BLOCK;
    }
    exact(&bytes[from..]).map(|end| from + end)
}

fn exact(bytes: &[u8]) -> Option<usize> {
    bytes.windows(3).position(|w| w == b"\n\r\n").map(|i| i + 3)
}
