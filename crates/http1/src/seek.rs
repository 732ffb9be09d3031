//! Where a head ends: looked for from where the last look ended.

use crate::byte::is_token;
use crate::limits::Limits;
use crate::rule::{Id, Refusal, refuse};
use crate::scan::find;

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
    /// As long as there are no more bytes than this, new bytes that do not end a line change nothing.
    calm: usize,
    /// The cost of the search: bytes inspected, and inspections that were not quick.
    #[cfg(test)]
    cost: (usize, usize),
}

/// New bytes that are looked at quickly: what comes in larger pieces is few pieces.
const FEW: usize = 8;

impl Seek {
    /// Looks for the end of a request head in the bytes that have arrived. `Some(n)`: the head is `bytes[..n]`, blank
    /// line and skipped empty lines before it included (RFC 9112 §2.2). What can become no head is refused at once.
    pub fn request(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Refusal> {
        if self.is_calm(bytes) {
            return Ok(None);
        }
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

    /// Looks for the end of a response head, as [`Seek::request`] does; no empty line may precede it.
    pub fn response(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Refusal> {
        const BEGIN: &[u8] = b"HTTP/1.";
        if self.at >= BEGIN.len() {
            if self.is_calm(bytes) {
                return Ok(None);
            }
        } else {
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

    /// Whether nothing came but a few bytes that end no line: heads that drip must not cost much more than their reads.
    #[inline]
    fn is_calm(&mut self, bytes: &[u8]) -> bool {
        let ends_no_line = match bytes.get(self.at..) {
            Some(&[one]) => one != b'\n',
            Some(few) if few.len() <= FEW => few.iter().all(|&b| b != b'\n'),
            _ => false,
        };
        let calm = ends_no_line && bytes.len() <= self.calm;
        if calm {
            #[cfg(test)]
            {
                self.cost.0 += bytes.len() - self.at;
            }
            self.at = bytes.len();
        }
        calm
    }

    /// The end of the head. Lines are not looked at if it is there: the parser does that. If it is not, what makes it
    /// hopeless is looked for, in the order of the bytes, so that it does not matter in which pieces they came.
    fn find(&mut self, bytes: &[u8], limits: &Limits, request: bool) -> Result<Option<usize>, Refusal> {
        let most = bytes.len().min(self.start + limits.max_head);
        let begin = self.at.saturating_sub(3).max(self.start).min(most);
        if let Some(end) = blank_line(&bytes[begin..most]).map(|n| begin + n) {
            self.at = end;
            return Ok(Some(end));
        }
        #[cfg(test)]
        {
            self.cost = (self.cost.0 + most - begin, self.cost.1 + 1);
        }
        self.look(&bytes[..most], limits, request)?;
        if most == self.start + limits.max_head {
            return Err(refuse(Id::HeadTooLarge));
        }
        self.calm = if !request || self.lined {
            self.start + limits.max_head - 1
        } else if self.spaced {
            self.start + limits.longest_line().min(limits.max_head - 1)
        } else {
            0
        };
        Ok(None)
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
        if line.len() > limits.longest_line() {
            return Err(refuse(Id::TargetTooLong));
        }
        Ok(())
    }

    /// The refusal that this head would have got if it had arrived byte by byte.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes looked at, and looks that were not quick, for a head that comes in pieces of this size.
    fn cost(head: &[u8], piece: usize, request: bool) -> (usize, usize) {
        let limits = Limits::default();
        let mut seek = Seek::default();
        let mut come = 0;
        while come < head.len() {
            come = (come + piece).min(head.len());
            let found = match request {
                true => seek.request(&head[..come], &limits),
                false => seek.response(&head[..come], &limits),
            };
            assert_eq!(found, Ok((come == head.len()).then_some(come)));
        }
        seek.cost
    }

    /// A look that is not quick costs some 80 instructions, one that is 15; parsing a head at once costs three a byte.
    #[test]
    fn a_dripped_head_is_looked_at_once() {
        for size in [2_000, 8_000, 32_000] {
            let target = "t".repeat(size.min(8_000));
            let value = "v".repeat(size - 100);
            let many = format!("X-Name: {}\r\n", "v".repeat(size / 90 - 12)).repeat(90);
            for (head, request) in [
                (format!("GET /{target} HTTP/1.1\r\nHost: h\r\n\r\n"), true),
                (format!("\r\nGET / HTTP/1.1\r\nHost: h\r\nCookie: {value}\r\n\r\n"), true),
                (format!("GET / HTTP/1.1\r\nHost: h\r\n{many}\r\n"), true),
                (format!("HTTP/1.1 200 {value}\r\n\r\n"), false),
                (format!("HTTP/1.1 200 OK\r\n{many}\r\n"), false),
            ] {
                let lines = head.matches('\n').count();
                for piece in [1, 2, 7, 8, 9, 100, 1_000] {
                    let (bytes, looks) = cost(head.as_bytes(), piece, request);
                    let pieces = head.len().div_ceil(piece);
                    let most = if piece <= FEW { (lines + 40).min(pieces) } else { pieces };
                    assert!(looks <= most, "{looks} looks, {most} expected, pieces of {piece}");
                    assert!(bytes <= head.len() + 3 * looks, "{bytes} of {} bytes", head.len());
                }
            }
        }
    }
}
