//! Identifiers of requests (`http(request_id=...)`): a field that trusted peers set, or 128 random bits; it is sent
//! to the origin and back to the client. Also: which requests have their history written (`http(trace=...)`).

use super::Exchange;
use weir_http1::{Checked, Edits, Request};
use weir_net::io::Core;

/// The longest identifier that is taken from a peer, bytes.
const LONGEST: usize = 128;

/// The identifier of a request: a legible one from a trusted peer, otherwise a new one.
pub(super) fn id(core: &Core, request: &Request, checked: &Checked, field: &str) -> Box<str> {
    let is_name =
        |value: &&[u8]| (1..=LONGEST).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic);
    let given = if checked.trusted { request.field(field).filter(is_name) } else { None };
    match given.and_then(|value| std::str::from_utf8(value).ok()) {
        Some(given) => given.into(),
        None => format!("{:016x}{:016x}", core.draw().bits(), core.draw().bits()).into(),
    }
}

/// Whether the history of a request is written: by chance with this share, or because its caller's trace is recorded.
pub(super) fn is_traced(core: &Core, share: f64, checked: &Checked) -> bool {
    checked.trace.is_some_and(|trace| trace.sampled) || core.draw().unit() < share
}

impl Exchange {
    /// The field of the identifier, and the identifier.
    fn named(&self) -> Option<(&str, &str)> {
        Some((self.listener().http.request_id.as_deref()?, self.id.as_deref()?))
    }

    /// Sets the identifier in a message, in place of any other.
    pub(super) fn name(&self, edits: &mut Edits) {
        if let Some((field, id)) = self.named() {
            edits.set.retain(|(name, _)| !name.eq_ignore_ascii_case(field.as_bytes()));
            edits.set.push((field.as_bytes().to_vec(), id.as_bytes().to_vec()));
        }
    }

    /// The fields of a local answer, with the identifier.
    pub(super) fn with_name<'a>(
        &'a self,
        fields: &[(&'a str, &'a [u8])],
    ) -> Option<Vec<(&'a str, &'a [u8])>> {
        let (field, id) = self.named()?;
        let others = fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(field));
        Some(others.copied().chain([(field, id.as_bytes())]).collect())
    }
}
