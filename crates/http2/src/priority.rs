//! How urgent an answer is (RFC 9218 §4). RFC 7540's priorities are ignored.

/// The urgency and the way of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub urgency: u8,
    /// Whether parts are of use before the whole has come.
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Priority {
        Priority { urgency: 3, is_incremental: false }
    }
}

impl Priority {
    /// Reads the value of a `priority` field or of PRIORITY_UPDATE: a dictionary of structured fields (RFC 8941 §3.2), of
    /// which `u` and `i` count. What is not understood has no effect; the last of two of a kind counts.
    pub fn parse(value: &[u8]) -> Priority {
        Priority::default().changed_by(value)
    }

    /// The same with what the value of a `priority` field says.
    pub fn changed_by(self, value: &[u8]) -> Priority {
        let mut priority = self;
        for member in Members(value) {
            match member.split_first_chunk() {
                Some((b"u=", number)) => {
                    if let [digit @ b'0'..=b'7'] = strip_parameters(number) {
                        priority.urgency = digit - b'0';
                    }
                }
                Some((b"i=", value)) => match strip_parameters(value) {
                    b"?1" => priority.is_incremental = true,
                    b"?0" => priority.is_incremental = false,
                    _ => {}
                },
                _ if strip_parameters(member) == b"i" => priority.is_incremental = true,
                _ => {}
            }
        }
        priority
    }
}

/// The members of a dictionary; commas in strings do not divide.
struct Members<'a>(&'a [u8]);

impl<'a> Iterator for Members<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let (mut is_string, mut is_escaped) = (false, false);
        let end = self.0.iter().position(|&byte| {
            let divides = byte == b',' && !is_string;
            if byte == b'"' && !is_escaped {
                is_string = !is_string;
            }
            is_escaped = is_string && byte == b'\\' && !is_escaped;
            divides
        });
        let (member, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        Some(member.trim_ascii())
    }
}

fn strip_parameters(value: &[u8]) -> &[u8] {
    value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries() {
        for (value, urgency, is_incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i,u=1", 1, true),
            ("i=?0", 3, false),
            ("i=?1;x=2", 3, true),
            ("u=8", 3, false),
            ("u=-1", 3, false),
            ("u=1.5", 3, false),
            ("u=12", 3, false),
            ("u=2;a=\"b\", i;q", 2, true),
            ("U=1", 3, false),
            ("u=1, u=5", 5, false),
            ("x=\"u=1, i\", u=4", 4, false),
            ("x=\"\\\", u=0\", i", 3, true),
            (" u=6 ,\ti ", 6, true),
            ("u", 3, false),
            ("i=1", 3, false),
            (",,,", 3, false),
        ] {
            assert_eq!(Priority::parse(value.as_bytes()), Priority { urgency, is_incremental }, "{value}");
        }
    }

    #[test]
    fn what_is_not_said_stays() {
        let asked = Priority { urgency: 5, is_incremental: true };
        for (value, urgency, is_incremental) in
            [("", 5, true), ("u=1", 1, true), ("i=?0", 5, false), ("u=9, x", 5, true)]
        {
            assert_eq!(asked.changed_by(value.as_bytes()), Priority { urgency, is_incremental }, "{value}");
        }
    }
}
