//! Changes of a message on its way.

/// Changes on the way (`rewrite`), in the order they apply. Framing fields and Connection cannot be changed.
#[derive(Default, Debug, Clone, PartialEq, Eq)]
pub struct Edits {
    /// The whole new path and query of a request.
    pub target: Option<Vec<u8>>,
    /// Fields that replace all of their name, including weir's own (`X-Forwarded-Host`) and Host included.
    pub set: Vec<(Vec<u8>, Vec<u8>)>,
    /// Names of fields that do not go on.
    pub remove: Vec<Vec<u8>>,
}

impl Edits {
    /// Whether fields of this name are taken out, be it to be replaced.
    pub(crate) fn drops(&self, name: &[u8]) -> bool {
        self.set.iter().any(|(n, _)| n.eq_ignore_ascii_case(name))
            || self.remove.iter().any(|n| n.eq_ignore_ascii_case(name))
    }

    /// Whether any field changes.
    pub(crate) fn any(&self) -> bool {
        !self.set.is_empty() || !self.remove.is_empty()
    }

    /// The value that replaces this field.
    pub(crate) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.set.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| &v[..])
    }
}
