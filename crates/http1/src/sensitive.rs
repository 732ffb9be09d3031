//! Fields that came by HTTP/2 as never to be indexed: no table of any later connection may have them (RFC 7541 §6.2.3,
//! §7.1.3). The marks stay with the lines of a message, and are asked for by name where it is written again: fields of
//! one name are marked together.

use crate::block::Block;

/// The marked names of a message.
#[derive(Clone, Copy, Debug, Default)]
pub struct SensitiveNames<'a> {
    /// `None`: no line is marked.
    block: Option<&'a Block>,
    method: bool,
    target: bool,
}

impl<'a> SensitiveNames<'a> {
    pub(crate) fn of_lines(block: &'a Block) -> SensitiveNames<'a> {
        let is_any = block.lines.iter().any(|line| line.is_sensitive);
        SensitiveNames { block: is_any.then_some(block), method: false, target: false }
    }

    /// Marks the method and the target of a request as well.
    pub(crate) fn with_line(self, method: bool, target: bool) -> SensitiveNames<'a> {
        SensitiveNames { method, target, ..self }
    }

    /// Whether fields of this name, in any case, are marked. The request line has the names of HTTP/2's pseudo-fields.
    pub fn has(&self, name: &[u8]) -> bool {
        match name {
            b":method" => self.method,
            b":path" => self.target,
            b":authority" => self.has_line(b"host"),
            _ => self.block.is_some() && (self.has_line(name) || self.is_copy_of_host(name)),
        }
    }

    /// Weir repeats Host in a field of its own.
    fn is_copy_of_host(&self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(b"x-forwarded-host") && self.has_line(b"host")
    }

    fn has_line(&self, name: &[u8]) -> bool {
        self.block.is_some_and(|block| {
            let mut marked = block.lines.iter().filter(|line| line.is_sensitive);
            marked.any(|line| block.name(line).eq_ignore_ascii_case(name))
        })
    }
}

impl Block {
    /// Marks the lines with these names.
    pub(crate) fn mark_sensitive(&mut self, is_sensitive: impl Fn(&[u8]) -> bool) {
        let Block { bytes, lines, .. } = self;
        for line in lines {
            let name = bytes.get(line.name as usize..line.colon as usize).unwrap_or_default();
            line.is_sensitive = is_sensitive(name);
        }
    }
}
