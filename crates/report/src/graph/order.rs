//! The order within each layer: by the barycenter of the neighbours, forth and back, so that few edges cross. An edge
//! that passes layers has a waypoint in each.

use super::layers::Layered;

/// The contents of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A box.
    Box(usize),
    /// An edge passes.
    Passes(usize),
}

/// The layers with their contents.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    pub items: Vec<Item>,
    pub layer: Vec<usize>,
    /// By layer: items from top to bottom.
    pub rows: Vec<Vec<usize>>,
    /// By item: those before it and behind it.
    pub before: Vec<Vec<usize>>,
    pub behind: Vec<Vec<usize>>,
    /// By edge: its items from end to end.
    pub ways: Vec<Vec<usize>>,
}

/// Waypoints at most; beyond, long edges go straight.
const WAYPOINTS: usize = 20_000;
/// The number of passes forth and back.
const SWEEPS: usize = 8;

/// The order of what was layered.
pub(super) fn ordered(layered: &Layered) -> Ordered {
    let mut all = items(layered);
    let mut best = (crossings(&all), all.rows.clone());
    for sweep in 0..SWEEPS {
        let forth = sweep % 2 == 0;
        let count = all.rows.len();
        for step in 1..count {
            let layer = if forth { step } else { count - 1 - step };
            by_barycenter(&mut all, layer, forth);
        }
        let now = crossings(&all);
        if now < best.0 {
            best = (now, all.rows.clone());
        }
    }
    all.rows = best.1;
    all
}

fn items(layered: &Layered) -> Ordered {
    let count = layered.boxes.len();
    let mut items: Vec<Item> = (0..count).map(Item::Box).collect();
    let mut layer = layered.layer.clone();
    let between = |(from, to, _): &(usize, usize, bool)| layered.layer[*to] - layered.layer[*from] - 1;
    let passes = layered.edges.iter().map(between).sum::<usize>() <= WAYPOINTS;
    let mut ways = Vec::with_capacity(layered.edges.len());
    for (number, (from, to, _)) in layered.edges.iter().enumerate() {
        let mut way = vec![*from];
        for at in layered.layer[*from] + 1..if passes { layered.layer[*to] } else { 0 } {
            way.push(items.len());
            items.push(Item::Passes(number));
            layer.push(at);
        }
        way.push(*to);
        ways.push(way);
    }
    let (mut before, mut behind) = (vec![Vec::new(); items.len()], vec![Vec::new(); items.len()]);
    for way in &ways {
        for step in way.windows(2) {
            behind[step[0]].push(step[1]);
            before[step[1]].push(step[0]);
        }
    }
    let mut rows = vec![Vec::new(); layer.iter().max().map_or(0, |last| last + 1)];
    layer.iter().enumerate().for_each(|(item, layer)| rows[*layer].push(item));
    Ordered { items, layer, rows, before, behind, ways }
}

/// Orders a layer by the positions of neighbours in the layers before it, or behind it.
fn by_barycenter(all: &mut Ordered, layer: usize, forth: bool) {
    let at = places(all);
    let neighbours = if forth { &all.before } else { &all.behind };
    let barycenter = |item: usize| match neighbours[item].len() {
        0 => at[item],
        n => neighbours[item].iter().map(|other| at[*other]).sum::<f64>() / n as f64,
    };
    let mut row: Vec<(f64, usize)> = all.rows[layer].iter().map(|item| (barycenter(*item), *item)).collect();
    // Stable: of equals each stays where it was.
    row.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.rows[layer] = row.into_iter().map(|(_, item)| item).collect();
}

/// The position of each item in its layer, from 0 to 1.
fn places(all: &Ordered) -> Vec<f64> {
    let mut at = vec![0.0; all.items.len()];
    for row in &all.rows {
        for (place, item) in row.iter().enumerate() {
            at[*item] = (place as f64 + 0.5) / row.len() as f64;
        }
    }
    at
}

/// How many steps cross, layer by layer: pairs in the wrong order, counted by a tree of sums.
pub(super) fn crossings(all: &Ordered) -> u64 {
    let mut place = vec![0; all.items.len()];
    for row in &all.rows {
        row.iter().enumerate().for_each(|(at, item)| place[*item] = at);
    }
    let mut crossings = 0;
    for row in &all.rows {
        let mut steps: Vec<(usize, usize)> = row
            .iter()
            .flat_map(|item| all.behind[*item].iter().map(|to| (place[*item], place[*to])))
            .collect();
        steps.sort_unstable();
        let most = steps.iter().map(|(_, to)| to + 1).max().unwrap_or(0);
        let mut tree = vec![0u64; most + 1];
        for (seen, (_, to)) in (0u64..).zip(&steps) {
            let (mut not_above, mut at) = (0, to + 1);
            while at > 0 {
                not_above += tree[at];
                at &= at - 1;
            }
            crossings += seen - not_above;
            let mut at = to + 1;
            while at <= most {
                tree[at] += 1;
                at += at & at.wrapping_neg();
            }
        }
    }
    crossings
}
