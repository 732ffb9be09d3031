//! The reason phrases of statuses, as they are registered.

/// Each status that has a phrase (RFC 9110 §15, IANA), in ascending order: a binary search finds it.
static PHRASES: [(u16, &str); 59] = [
    (100, "Continue"),
    (101, "Switching Protocols"),
    (102, "Processing"),
    (103, "Early Hints"),
    (200, "OK"),
    (201, "Created"),
    (202, "Accepted"),
    (203, "Non-Authoritative Information"),
    (204, "No Content"),
    (205, "Reset Content"),
    (206, "Partial Content"),
    (300, "Multiple Choices"),
    (301, "Moved Permanently"),
    (302, "Found"),
    (303, "See Other"),
    (304, "Not Modified"),
    (305, "Use Proxy"),
    (307, "Temporary Redirect"),
    (308, "Permanent Redirect"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (402, "Payment Required"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (406, "Not Acceptable"),
    (407, "Proxy Authentication Required"),
    (408, "Request Timeout"),
    (409, "Conflict"),
    (410, "Gone"),
    (411, "Length Required"),
    (412, "Precondition Failed"),
    (413, "Content Too Large"),
    (414, "URI Too Long"),
    (415, "Unsupported Media Type"),
    (416, "Range Not Satisfiable"),
    (417, "Expectation Failed"),
    (418, "I'm a teapot"),
    (421, "Misdirected Request"),
    (422, "Unprocessable Content"),
    (423, "Locked"),
    (424, "Failed Dependency"),
    (425, "Too Early"),
    (426, "Upgrade Required"),
    (428, "Precondition Required"),
    (429, "Too Many Requests"),
    (431, "Request Header Fields Too Large"),
    (451, "Unavailable For Legal Reasons"),
    (499, "Client Closed Request"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
    (502, "Bad Gateway"),
    (503, "Service Unavailable"),
    (504, "Gateway Timeout"),
    (505, "HTTP Version Not Supported"),
    (506, "Variant Also Negotiates"),
    (507, "Insufficient Storage"),
    (508, "Loop Detected"),
    (511, "Network Authentication Required"),
];

/// The phrase of a status as registered (RFC 9110 §15, IANA); empty if there is none.
pub fn reason(status: u16) -> &'static str {
    PHRASES.binary_search_by_key(&status, |(known, _)| *known).map_or("", |at| PHRASES[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_phrase_or_none() {
        assert!(PHRASES.windows(2).all(|pair| pair[0].0 < pair[1].0), "in ascending order");
        for status in 0..=u16::MAX {
            let registered = PHRASES.iter().find(|(known, _)| *known == status);
            assert_eq!(reason(status), registered.map_or("", |(_, phrase)| phrase), "{status}");
        }
    }
}
