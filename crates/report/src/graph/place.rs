//! The position of each box: layers as wide as their widest box; heights follow the neighbours, as far as nothing
//! overlaps.

use super::fold::Boxed;
use super::layers::Layered;
use super::order::{Item, Ordered};
use super::svg::size;
use super::{Drawing, GAP, MARGIN, PASSING, PlacedBox, STACK, Way};

/// The number of passes over the heights, forth and back.
const SWEEPS: usize = 6;

/// The drawing. `between`: two layers, px.
pub(super) fn placed(
    layered: Layered,
    laid: Ordered,
    between: f64,
    has_note: impl Fn(&Boxed) -> bool,
) -> Drawing {
    let height = |item: &Item| match item {
        Item::Box(number) => size(&layered.boxes[*number], has_note(&layered.boxes[*number])).1,
        Item::Passes(_) => PASSING,
    };
    let sizes: Vec<f64> = laid.items.iter().map(height).collect();
    // The cards of a stack extend above it.
    let stacked = layered.boxes.iter().any(|of| of.lines.is_some() && of.nodes.len() > 1);
    let stack = if stacked { STACK } else { 0.0 };
    let middle = heights(&laid, &sizes);
    let top = middle.iter().zip(&sizes).map(|(y, size)| y - size / 2.0).fold(f64::MAX, f64::min);
    let bottom = middle.iter().zip(&sizes).map(|(y, size)| y + size / 2.0).fold(0.0, f64::max);
    let widths: Vec<f64> = laid.rows.iter().map(|row| width(row, &laid, &layered.boxes, &has_note)).collect();
    let mut left = vec![MARGIN; widths.len() + 1];
    for (layer, width) in widths.iter().enumerate() {
        left[layer + 1] = left[layer] + width + between;
    }
    let y = |item: usize| middle[item] - top + MARGIN + stack;
    let edges = laid.ways.iter().zip(&layered.edges).map(|(way, (.., aside))| {
        let points = way.iter().enumerate().flat_map(|(at, item)| {
            let (layer, y) = (laid.layer[*item], y(*item));
            let (x, end) = (left[layer], left[layer] + widths[layer]);
            // It leaves a box on its right, comes to one on its left, and passes others on both.
            let points = [(x, y), (end, y)];
            let (from, to) = (usize::from(at == 0), if at + 1 == way.len() { 1 } else { 2 });
            points[from..to].to_vec()
        });
        let (from, to) = (way.first().copied().unwrap_or(0), way.last().copied().unwrap_or(0));
        Way { from, to, points: points.collect(), aside: *aside, lanes: Vec::new() }
    });
    let edges = edges.collect();
    let sizes = &sizes;
    let boxes = layered.boxes.into_iter().enumerate().map(|(number, of)| PlacedBox {
        x: left[laid.layer[number]],
        y: y(number) - sizes[number] / 2.0,
        width: widths[laid.layer[number]],
        height: sizes[number],
        of,
    });
    Drawing {
        boxes: boxes.collect(),
        edges,
        width: left.last().map_or(0.0, |end| end - between) + MARGIN + stack,
        height: (bottom - top).max(0.0) + 2.0 * MARGIN + stack,
    }
}

fn width(row: &[usize], laid: &Ordered, boxes: &[Boxed], has_note: &impl Fn(&Boxed) -> bool) -> f64 {
    let of =
        row.iter().filter_map(|item| if let Item::Box(n) = laid.items[*item] { boxes.get(n) } else { None });
    of.map(|of| size(of, has_note(of)).0).fold(80.0, f64::max)
}

/// The middle of each item.
fn heights(laid: &Ordered, sizes: &[f64]) -> Vec<f64> {
    let mut middle = vec![0.0; laid.items.len()];
    for row in &laid.rows {
        let wanted = vec![0.0; row.len()];
        stack(row, &wanted, sizes, &mut middle);
    }
    for sweep in 0..SWEEPS {
        let forth = sweep % 2 == 0;
        let neighbours = if forth { &laid.before } else { &laid.behind };
        let count = laid.rows.len();
        for step in 1..count {
            let row = &laid.rows[if forth { step } else { count - 1 - step }];
            let wanted = |item: &usize| match neighbours[*item].len() {
                0 => middle[*item],
                n => neighbours[*item].iter().map(|other| middle[*other]).sum::<f64>() / n as f64,
            };
            let wanted: Vec<f64> = row.iter().map(wanted).collect();
            stack(row, &wanted, sizes, &mut middle);
        }
    }
    middle
}

/// Puts the items of a layer as near to where they are wanted as their order and sizes allow, by least squares:
/// neighbours that would overlap become a block, which is placed at the mean of the positions its members want (pool
/// adjacent violators).
fn stack(row: &[usize], wanted: &[f64], sizes: &[f64], middle: &mut [f64]) {
    // The distance of each below the first if all touched.
    let mut below = Vec::with_capacity(row.len());
    let mut at = 0.0;
    for (n, item) in row.iter().enumerate() {
        if n > 0 {
            at += (sizes[row[n - 1]] + sizes[*item]) / 2.0 + GAP;
        }
        below.push(at);
    }
    // (members, sum of where the first would be wanted)
    let mut blocks: Vec<(usize, f64)> = Vec::new();
    for (n, wanted) in wanted.iter().enumerate() {
        let mut block = (1, wanted - below[n]);
        while let Some((count, sum)) = blocks.last().copied()
            && sum / count as f64 > block.1 / block.0 as f64
        {
            blocks.pop();
            block = (block.0 + count, block.1 + sum);
        }
        blocks.push(block);
    }
    let mut n = 0;
    for (count, sum) in blocks {
        for _ in 0..count {
            middle[row[n]] = sum / count as f64 + below[n];
            n += 1;
        }
    }
}
