//! The options of Connection, over all its lines (RFC 9110 §7.6.1).

use crate::block::Block;
use crate::byte::elements;
use crate::limits::Limits;
use crate::name::{Name, PROTECTED, classify};
use crate::rule::{Id, Refusal, refuse};

/// The options that weir knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) upgrade: bool,
}

/// Reads all Connection lines and marks the fields that they name, but none that weir frames or routes by.
pub(crate) fn options(block: &mut Block) -> Result<Options, Refusal> {
    let mut options = Options::default();
    if !block.seen.has(Name::Connection) {
        return Ok(options);
    }
    let Block { bytes, lines, .. } = block;
    let mut count = 0;
    for i in 0..lines.len() {
        if lines[i].known != Name::Connection {
            continue;
        }
        let value = bytes.get(lines[i].value as usize..lines[i].value_end as usize).unwrap_or_default();
        // Nearly all there are.
        match value {
            b"keep-alive" | b"Keep-Alive" => {
                options.keep_alive = true;
                continue;
            }
            b"close" => {
                options.close = true;
                continue;
            }
            _ => {}
        }
        for option in elements(value) {
            count += 1;
            if count > Limits::OPTIONS {
                return Err(refuse(Id::ConnectionOptions));
            }
            if option.eq_ignore_ascii_case(b"close") {
                options.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                options.keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                options.upgrade = true;
            } else if !PROTECTED.has(classify(option).0) {
                for line in lines.iter_mut() {
                    let name = bytes.get(line.name as usize..line.colon as usize).unwrap_or_default();
                    line.ends_here |= name.eq_ignore_ascii_case(option);
                }
            }
        }
    }
    Ok(options)
}
