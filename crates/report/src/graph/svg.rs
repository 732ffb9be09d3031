//! The drawing as SVG, in pixels: a label is 11 of them high at least, wherever it stands. What holds it may scroll.

use super::{BETWEEN, Drawing, Note, Placed, Way};
use crate::table::escaped;
use std::fmt::Write as _;
use weir_topology::plan::NodeId;

/// Colours come from the page: `--line`, `--soft`, `--good`, `--warn`, `--bad`.
pub(super) const STYLE: &str = "\
.graph { display: block; font: 12px system-ui, sans-serif; } .graph text { fill: currentColor; }
.graph .name { font-weight: 600; } .graph .kind, .graph .note { font-size: 11px; } .graph .kind { opacity: .75; }
.graph rect { fill: var(--soft); stroke: var(--line); } .graph path { fill: none; stroke: currentColor; opacity: .35; }
.graph .aside { stroke-dasharray: 4 3; } .graph .is-good rect { stroke: var(--good); } .graph .is-good .note { fill: var(--good); }
.graph .is-warn rect { stroke: var(--warn); stroke-width: 2; } .graph .is-warn .note { fill: var(--warn); font-weight: 600; }
.graph .is-bad rect { stroke: var(--bad); stroke-width: 2; } .graph .is-bad .note { fill: var(--bad); font-weight: 600; }
";

/// Characters of a line at most.
const MOST: usize = 32;
/// Characters of a note for which there is room in any box that may have one.
const NOTE: usize = 19;

/// Left and right of the words, px.
const PADDING: f64 = 10.0;

/// How wide a box with these lines is. Of a font that is not known yet: as its wider letters are.
pub(super) fn text_width(name: &str, kind: &str, has_note: bool) -> f64 {
    let chars = |text: &str| text.chars().count().min(MOST) as f64;
    (chars(name) * 7.8).max(chars(kind) * 7.0).max(if has_note { NOTE as f64 * 7.0 } else { 0.0 })
        + 2.0 * PADDING
}

pub(super) fn svg(drawing: &Drawing, note: &dyn Fn(&[NodeId]) -> Option<Note>) -> String {
    let (width, height) = (drawing.width.ceil(), drawing.height.ceil());
    let mut text = format!(
        "<svg class=\"graph\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"The topology\">\n"
    );
    drawing.edges.iter().for_each(|way| edge(&mut text, way));
    for of in &drawing.boxes {
        boxed(&mut text, of, note(&of.of.nodes));
    }
    text + "</svg>\n"
}

fn edge(text: &mut String, way: &Way) {
    let Some((x, y)) = way.points.first() else { return };
    let class = if way.aside { " class=\"aside\"" } else { "" };
    let _ = write!(text, "<path{class} d=\"M{x:.1} {y:.1}");
    let (mut from, mut bends) = ((*x, *y), true);
    for (x, y) in &way.points[1..] {
        // Between layers it bends, within one it goes straight.
        if bends {
            let half = (BETWEEN / 2.0).max((x - from.0) / 2.0);
            let _ = write!(text, "C{:.1} {:.1} {:.1} {y:.1} {x:.1} {y:.1}", from.0 + half, from.1, x - half);
        } else {
            let _ = write!(text, "H{x:.1}");
        }
        (from, bends) = ((*x, *y), !bends);
    }
    text.push_str("\"/>\n");
}

fn boxed(text: &mut String, of: &Placed, note: Option<Note>) {
    let note = note.unwrap_or_default();
    let class = if note.class.is_empty() { String::new() } else { format!(" class=\"is-{}\"", note.class) };
    let Placed { x, y, width, height, .. } = of;
    let _ = writeln!(
        text,
        "<g{class}><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\"/>",
        escaped(&of.of.title)
    );
    let mut at = y + 18.0;
    let mut line = |class: &str, words: &str| {
        if !words.is_empty() {
            let _ = writeln!(
                text,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{at:.1}\">{}</text>",
                x + PADDING,
                escaped(&shortened(words, MOST))
            );
            at += 15.0;
        }
    };
    line("name", &of.of.name);
    line("kind", &of.of.kind);
    let room = ((width - 2.0 * PADDING) / 7.0) as usize;
    line("note", &shortened(&note.words, room));
    text.push_str("</g>\n");
}

/// At most so many characters.
fn shortened(words: &str, most: usize) -> String {
    if words.chars().count() <= most {
        return words.to_owned();
    }
    words.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
