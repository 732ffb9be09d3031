//! How large a message's parts may be.

/// Limits of a head and of a body's trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, the blank line included; also of all trailers of a body. More is 431 (RFC 6585 §5).
    pub max_head: usize,
    /// Field lines of a head, and of trailers. More is 431 (RFC 6585 §5).
    pub max_headers: usize,
    /// Bytes of a request target. More is 414 (RFC 9110 §15.5.15).
    pub max_target: usize,
    /// Bytes of a method. More is 400.
    pub max_method: usize,
    /// Take an empty Host of HTTP/1.1 too: what a proxy makes of an HTTP/1.0 request without one.
    pub empty_host: bool,
}

impl Limits {
    /// The default of [`Limits::max_target`].
    pub const TARGET: usize = 8 * 1024;
    /// The default of [`Limits::max_method`].
    pub const METHOD: usize = 32;
    /// Bytes of chunk extensions that a whole body may carry: they are not used in practice, and each costs the reader
    /// time (CVE-2023-39326).
    pub const EXTENSIONS: usize = 16 * 1024;
    /// Empty lines before a request line that are skipped (RFC 9112 §2.2 asks for at least one).
    pub const EMPTY_LINES: usize = 4;
    /// Options over all Connection lines of a message; each is compared with every field.
    pub const OPTIONS: usize = 100;
    /// Own hops in Via from which on a request is taken to go round in a circle. More is 508 (RFC 9110 §7.6.3).
    pub const OWN_HOPS: usize = 10;

    /// Bytes of a request line with the longest method and target, its CR included.
    pub(crate) fn longest_line(&self) -> usize {
        self.max_method + self.max_target + b"  HTTP/1.1\r".len()
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_head: 32 * 1024,
            max_headers: 100,
            max_target: Limits::TARGET,
            max_method: Limits::METHOD,
            empty_host: false,
        }
    }
}
