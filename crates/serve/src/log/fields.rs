//! `log_fields`: fields of the request and of the answer in each JSON line.

use super::format::escape;
use smallvec::SmallVec;
use weir_http1::{Edits, Request, Response};
use weir_plan::log_field::LogField;

/// The longest part of a value that a line has, bytes.
pub(super) const MOST_BYTES: usize = 1024;

/// The fields of a listener's lines.
#[derive(Debug, Default)]
pub(crate) struct LogFields {
    all: Vec<Field>,
    has_response: bool,
}

#[derive(Debug)]
struct Field {
    /// The name in the line, as the file writes it.
    key: String,
    /// The field, in lower case.
    name: String,
    is_response: bool,
}

/// A value, cut.
type Value = SmallVec<[u8; 64]>;

/// The values of an answer's fields, in the order of the fields; empty before its head.
pub(crate) type ResponseValues = Vec<Option<Value>>;

impl LogFields {
    /// The fields of these entries of the file.
    pub fn new(entries: &[String]) -> LogFields {
        let field = |key: &String| {
            let (name, is_response) = match LogField::parse(key)? {
                LogField::Request(name) => (name, false),
                LogField::Response(name) => (name, true),
            };
            Some(Field { key: key.clone(), name: name.to_ascii_lowercase(), is_response })
        };
        let all: Vec<Field> = entries.iter().filter_map(field).collect();
        let has_response = all.iter().any(|field| field.is_response);
        LogFields { all, has_response }
    }

    /// The names of the answer's fields.
    fn of_response(&self) -> impl Iterator<Item = &str> {
        let fields = if self.has_response { &self.all[..] } else { &[] };
        fields.iter().filter(|field| field.is_response).map(|field| field.name.as_str())
    }

    /// The values of an origin's answer, as the client gets them.
    pub fn read_response(&self, response: &Response, edits: &Edits) -> ResponseValues {
        let value = |name: &str| {
            let is_it = |(n, _): &(&[u8], &[u8])| n.eq_ignore_ascii_case(name.as_bytes());
            let set = edits.set.iter().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes()));
            match set {
                Some((_, value)) => join([&value[..]]),
                None if edits.remove.iter().any(|n| n.eq_ignore_ascii_case(name.as_bytes())) => None,
                None if response.names(name.as_bytes()) => None,
                None => join(response.fields().filter(is_it).map(|(_, value)| value)),
            }
        };
        self.of_response().map(value).collect()
    }

    /// The values of an answer of weir's own that has these fields.
    pub fn read_own(&self, fields: &[(&str, &[u8])]) -> ResponseValues {
        let value = |name: &str| {
            join(fields.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| *value))
        };
        self.of_response().map(value).collect()
    }

    /// Writes the fields; `null` where there is none.
    pub(super) fn write(&self, text: &mut String, request: Option<&Request>, values: &[Option<Value>]) {
        let mut values = values.iter();
        for Field { key, name, is_response } in &self.all {
            text.push_str(",\"");
            escape(text, key.as_bytes());
            text.push_str("\":");
            if *is_response {
                write_value(text, values.next().and_then(Option::as_deref));
            } else {
                let value = request.and_then(|request| join(request.values(name)));
                write_value(text, value.as_deref());
            }
        }
    }
}

/// Writes a string that is cut, or `null`.
pub(super) fn write_value(text: &mut String, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            text.push('"');
            escape(text, &value[..value.len().min(MOST_BYTES)]);
            text.push('"');
        }
        None => text.push_str("null"),
    }
}

/// The values of several lines in one; `None`: there is no line.
fn join<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Option<Value> {
    let mut joined: Option<Value> = None;
    for value in values {
        match &mut joined {
            None => joined = Some(Value::from_slice(&value[..value.len().min(MOST_BYTES)])),
            Some(joined) => {
                let room = MOST_BYTES - joined.len();
                joined.extend(b", ".iter().chain(value).take(room).copied());
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_joined_and_cut() {
        assert_eq!(join([]), None);
        assert_eq!(join([&b"a"[..], b"b"]).as_deref(), Some(&b"a, b"[..]));
        let long = [b'x'; 3000];
        assert_eq!(join([&long[..], b"b"]).map(|v| v.len()), Some(MOST_BYTES));
        assert_eq!(join([&b"b"[..], &long]).map(|v| v.len()), Some(MOST_BYTES));
    }

    #[test]
    fn fields_stand_in_the_order_of_the_file() {
        let entries = ["response:X-B", "header:X-Tenant", "header:none"].map(str::to_owned);
        let fields = LogFields::new(&entries);
        let mut request = Request::default();
        let head = b"GET / HTTP/1.1\r\nHost: h\r\nx-tenant: a\"b\r\n\r\n";
        request.parse(head, &weir_http1::Limits::default()).expect("a head");
        let mut text = String::new();
        let values = fields.read_own(&[("x-b", b"1"), ("x-c", b"2")]);
        fields.write(&mut text, Some(&request), &values);
        assert_eq!(text, ",\"response:X-B\":\"1\",\"header:X-Tenant\":\"a\\u0022b\",\"header:none\":null");
        text.clear();
        fields.write(&mut text, None, &[]);
        assert_eq!(text, ",\"response:X-B\":null,\"header:X-Tenant\":null,\"header:none\":null");
    }
}
