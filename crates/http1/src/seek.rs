//! Where a head ends: looked for from where the last look ended.

use crate::byte::is_token;
use crate::limits::Limits;
use crate::rule::{Id, Refusal, refuse};
use crate::split::find;

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
        self.find(bytes, limits, true)
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
        self.find(bytes, limits, false).map_err(Refusal::in_response)
    }

    /// Whether nothing was looked at yet: then [`crate::Request::take`] and [`crate::Response::take`] are worth a try.
    pub fn is_fresh(&self) -> bool {
        self.at == 0 && self.start == 0
    }

    /// Begins anew, for the next head.
    pub fn reset(&mut self) {
        *self = Seek::default();
    }

    /// The end of the head. Lines are not looked at if it is there: the parser does that. If it is not, what makes it
    /// hopeless is looked for, in the order of the bytes, so that it does not matter in which pieces they came.
    fn find(&mut self, bytes: &[u8], limits: &Limits, request: bool) -> Result<Option<usize>, Refusal> {
        let most = bytes.len().min(self.start + limits.max_head);
        // A few bytes that end no line change nothing: heads that drip must not cost more than their reads.
        if self.lined
            && let Some(new @ [_, ..]) = bytes.get(self.at..)
            && most == bytes.len()
            && new.len() <= 8
            && new.iter().all(|&b| b != b'\n')
            && most < self.start + limits.max_head
        {
            self.at = most;
            return Ok(None);
        }
        let begin = self.at.saturating_sub(3).max(self.start).min(most);
        if let Some(end) = blank_line(&bytes[begin..most]).map(|n| begin + n) {
            self.at = end;
            return Ok(Some(end));
        }
        self.look(&bytes[..most], limits, request)?;
        if most == self.start + limits.max_head { Err(refuse(Id::HeadTooLarge)) } else { Ok(None) }
    }

    /// Looks at the bytes that are new for what no later byte can mend: a bare LF, a method or target that is too long.
    fn look(&mut self, bytes: &[u8], limits: &Limits, request: bool) -> Result<(), Refusal> {
        loop {
            let lf =
                bytes.get(self.at..).and_then(|b| b.iter().position(|&b| b == b'\n')).map(|i| self.at + i);
            if request && !self.lined {
                self.first_line(&bytes[self.start.min(bytes.len())..lf.unwrap_or(bytes.len())], limits)?;
            }
            let Some(lf) = lf else { break };
            if lf == 0 || bytes[lf - 1] != b'\r' {
                return Err(refuse(Id::BareLf));
            }
            self.lined = true;
            self.at = lf + 1;
        }
        self.at = bytes.len();
        Ok(())
    }

    /// The request line as far as it has come.
    fn first_line(&mut self, line: &[u8], limits: &Limits) -> Result<(), Refusal> {
        if !self.spaced {
            let most = line.len().min(limits.max_method + 1);
            self.spaced = line[..most].contains(&b' ');
            if !self.spaced && most > limits.max_method {
                return Err(refuse(Id::MethodTooLong));
            }
        }
        if line.len() > limits.max_target + limits.max_method + b"  HTTP/1.1\r".len() {
            return Err(refuse(Id::TargetTooLong));
        }
        Ok(())
    }

    /// What would have been refused of this head, had it come byte by byte.
    pub(crate) fn early_fault(head: &[u8], limits: &Limits, request: bool) -> Option<Refusal> {
        Seek::default().look(head, limits, request).err()
    }
}

/// The end of the first LF CR LF.
fn blank_line(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        from += find(&bytes[from..], b'\n')? + 1;
        if bytes[from..].starts_with(b"\r\n") {
            return Some(from + 2);
        }
    }
}
