//! The drawing as SVG, in pixels: a label is at least 11 high everywhere. Its container may scroll.

use super::fold::Boxed;
use super::{BETWEEN, BOX, Drawing, LINE, Note, PlacedBox, STACK, Way};
use crate::table::escaped;
use std::fmt::Write as _;
use weir_plan::NodeId;

/// Colours come from the page: `--line`, `--soft`, `--good`, `--warn`, `--bad`.
pub(super) const STYLE: &str = "\
.graph { display: block; font: 12px system-ui, sans-serif; } .graph text { fill: currentColor; }
.graph .name { font-weight: 600; } .graph .kind, .graph .note { font-size: 11px; } .graph .kind { opacity: .75; }
.graph .card { opacity: 1; stroke: var(--line); }
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

/// How wide and high a box is. Of a font that is not known yet: as its wider letters are.
pub(super) fn size(of: &Boxed, has_note: bool) -> (f64, f64) {
    let chars = |text: &str| text.chars().count().min(MOST) as f64;
    let name = chars(&of.name) * 7.8;
    let note = if has_note { NOTE as f64 * 7.0 } else { 0.0 };
    let (width, height) = match &of.lines {
        None => (name.max(chars(&of.kind) * 7.0), BOX + if has_note { LINE } else { 0.0 }),
        Some(lines) => {
            let widest = lines.iter().map(|line| chars(line) * 7.0).fold(name, f64::max);
            let rows = lines.len() + usize::from(!of.name.is_empty());
            (widest, 12.0 + rows as f64 * LINE)
        }
    };
    (width.max(note) + 2.0 * PADDING, height)
}

/// The drawing in an element of its own.
pub(super) fn svg(drawing: &Drawing, note: &dyn Fn(&[NodeId]) -> Option<Note>) -> String {
    let (width, height) = (drawing.width.ceil(), drawing.height.ceil());
    let begin = format!(
        "<svg class=\"graph\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"The topology\">\n"
    );
    begin + &content(drawing, note) + "</svg>\n"
}

/// The content of the element.
pub(super) fn content(drawing: &Drawing, note: &dyn Fn(&[NodeId]) -> Option<Note>) -> String {
    let mut text = String::new();
    drawing.edges.iter().for_each(|way| edge(&mut text, way));
    for of in &drawing.boxes {
        boxed(&mut text, of, note(&of.of.nodes));
    }
    text
}

fn edge(text: &mut String, way: &Way) {
    let Some((x, y)) = way.points.first() else { return };
    let class = if way.aside { " class=\"aside\"" } else { "" };
    if let ([from, to], false) = (&way.points[..], way.lanes.is_empty()) {
        return bundle(text, class, *from, *to, &way.lanes);
    }
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

/// The lines of an edge between many nodes and many.
fn bundle(text: &mut String, class: &str, from: (f64, f64), to: (f64, f64), lanes: &[(f64, f64)]) {
    let _ = write!(text, "<path{class} d=\"");
    let half = (to.0 - from.0) / 2.0;
    for (begins, ends) in lanes {
        let (a, b) = (from.1 + begins, to.1 + ends);
        let _ = write!(
            text,
            "M{:.1} {a:.1}C{:.1} {a:.1} {:.1} {b:.1} {:.1} {b:.1}",
            from.0,
            from.0 + half,
            to.0 - half,
            to.0
        );
    }
    text.push_str("\"/>\n");
}

/// The visible parts of the cards behind the first one of a stack.
fn stack(text: &mut String, of: &PlacedBox) {
    let PlacedBox { x, y, width, height, .. } = of;
    for out in [STACK / 2.0, STACK] {
        let _ = write!(
            text,
            "<path class=\"card\" d=\"M{:.1} {:.1}V{:.1}H{:.1}V{:.1}H{:.1}\"/>",
            x + out,
            y - out + STACK / 2.0,
            y - out,
            x + width + out,
            y + height - out,
            x + width + out - STACK / 2.0
        );
    }
}

fn boxed(text: &mut String, of: &PlacedBox, note: Option<Note>) {
    let note = note.unwrap_or_default();
    let class = if note.class.is_empty() { String::new() } else { format!(" class=\"is-{}\"", note.class) };
    let PlacedBox { x, y, width, height, .. } = of;
    let _ = writeln!(
        text,
        "<g{class}><title>{}</title><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\"/>",
        escaped(&of.of.title)
    );
    if of.of.lines.is_some() && of.of.nodes.len() > 1 {
        stack(text, of);
    }
    let mut at = y + 18.0;
    let mut line = |class: &str, words: &str| {
        if !words.is_empty() {
            let _ = writeln!(
                text,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{at:.1}\">{}</text>",
                x + PADDING,
                escaped(&shortened(words, MOST))
            );
            at += LINE;
        }
    };
    line("name", &of.of.name);
    line("kind", &of.of.kind);
    of.of.lines.iter().flatten().for_each(|words| line("kind", words));
    let room = ((width - 2.0 * PADDING) / 7.0) as usize;
    line("note", &shortened(&note.words, room));
    text.push_str("</g>\n");
}

/// Shortens a text to `n` characters.
fn shortened(words: &str, most: usize) -> String {
    if words.chars().count() <= most {
        return words.to_owned();
    }
    words.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
