//! A plan's pictures: one for each scenario, and one for listeners that no scenario leads to; those that look alike are
//! one.

use super::{Drawing, svg, text};
use crate::entry;
use crate::table::escaped;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use weir_plan::Plan;
use weir_plan::{Edge, NodeId, Point, Spec, listeners};

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// SVG, on its own.
    Svg,
    /// Graphviz.
    Dot,
    /// Mermaid.
    Mermaid,
}

/// A picture, and what it shows.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The scenarios, or the listeners.
    pub shows: Vec<String>,
    pub(super) drawing: Drawing,
}

impl Picture {
    /// What it shows, in a line.
    pub fn heading(&self) -> String {
        entry::listed(&self.shows)
    }

    /// The picture as SVG for a page, in the colours of that page.
    pub fn svg(&self) -> String {
        svg::svg(&self.drawing, &|_| None)
    }
}

/// The pictures of a plan. `scenarios`: only those; all if empty.
pub fn pictures(plan: &Plan, scenarios: &[String]) -> Vec<Picture> {
    let swept = entry::differing(plan.points.iter().map(|point| &point.params[..]));
    let mut all: Vec<(String, Picture)> = Vec::new();
    for point in &plan.points {
        let at = entry::point(&point.params, &swept);
        for (name, roots) in subjects(point, scenarios) {
            let name = if at.is_empty() { name } else { format!("{name} ({at})") };
            let drawing = Drawing::picture(point, &roots);
            let looks = looks(&drawing);
            match all.iter_mut().find(|(known, _)| *known == looks) {
                Some((_, picture)) => picture.shows.push(name),
                None => all.push((looks, Picture { shows: vec![name], drawing })),
            }
        }
    }
    all.into_iter().map(|(_, picture)| picture).collect()
}

/// The visible part of a drawing: without the places in the file.
fn looks(drawing: &Drawing) -> String {
    let mut untitled = drawing.clone();
    untitled.boxes.iter_mut().for_each(|placed| placed.of.title.clear());
    svg::content(&untitled, &|_| None)
}

/// What there is to draw of a point, with the nodes where it begins.
fn subjects(point: &Point, scenarios: &[String]) -> Vec<(String, Vec<NodeId>)> {
    let wanted = |name: &String| scenarios.is_empty() || scenarios.contains(name);
    let mut all: Vec<(String, Vec<NodeId>)> = Vec::new();
    let mut seen = vec![false; point.nodes.len()];
    for scenario in point.scenarios.iter().filter(|s| wanted(&s.name)) {
        reach(point, scenario.root, &mut seen);
        all.push((scenario.name.clone(), vec![scenario.root]));
    }
    if !scenarios.is_empty() {
        return all;
    }
    let left: Vec<NodeId> = listeners(point).into_iter().filter(|id| !seen[*id as usize]).collect();
    let name = |id: &NodeId| weir_plan::label(point, *id);
    if !left.is_empty() {
        all.push((entry::listed(&left.iter().map(name).collect::<Vec<_>>()), left));
    } else if all.is_empty() && !point.nodes.is_empty() {
        // Neither can be run: what nothing leads to is where it begins.
        let led_to: BTreeSet<NodeId> =
            (0..point.nodes.len() as NodeId).flat_map(|id| next(point, id)).collect();
        let roots = (0..point.nodes.len() as NodeId).filter(|id| !led_to.contains(id)).collect();
        all.push(("all nodes".to_owned(), roots));
    }
    all
}

/// Marks all that a node leads to.
fn reach(point: &Point, root: NodeId, seen: &mut [bool]) {
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut seen[id as usize], true) {
            open.extend(next(point, id));
        }
    }
}

fn next(point: &Point, id: NodeId) -> Vec<NodeId> {
    let node = &point.nodes[id as usize];
    let mut all = match node.to {
        Edge::None => Vec::new(),
        Edge::Node(next) => vec![next],
        Edge::List(list) => point.lists[list as usize].clone(),
    };
    all.extend(point.specs.get(node.spec as usize).and_then(Spec::aside));
    all
}

/// Writes pictures as one file.
///
/// # Errors
/// An error of `out`.
pub fn write(pictures: &[Picture], file: &str, form: Form, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(
        match form {
            Form::Svg => on_its_own(pictures, file),
            Form::Dot => text::dot(pictures, file),
            Form::Mermaid => text::mermaid(pictures),
        }
        .as_bytes(),
    )
}

/// The colours where there is no page around it.
const COLOURS: &str = "\
svg { --line: #8c959f; --soft: #f6f8fa; --text: #1f2328; --ground: #fff; color: var(--text); }
@media (prefers-color-scheme: dark) { svg { --line: #6e7681; --soft: #21262d; --text: #e6edf3; --ground: #0d1117; } }
.graph .ground { fill: var(--ground); stroke: none; }
.heading { font-size: 14px; font-weight: 600; }
";
/// A heading's height, and between two pictures, px.
const HEADING: f64 = 30.0;
const APART: f64 = 22.0;
/// A heading's letters at most: it is as wide as they are.
const LETTERS: usize = 90;

fn on_its_own(pictures: &[Picture], file: &str) -> String {
    let (mut y, mut width, mut body) = (0.0, 0.0f64, String::new());
    let headed = pictures.len() > 1;
    for (at, picture) in pictures.iter().enumerate() {
        y += if at > 0 { APART } else { 0.0 };
        if headed {
            let heading: String = picture.heading().chars().take(LETTERS).collect();
            width = width.max(heading.chars().count() as f64 * 8.6 + 12.0);
            let _ = writeln!(
                body,
                "<text class=\"heading\" x=\"6\" y=\"{:.1}\">{}</text>",
                y + 18.0,
                escaped(&heading)
            );
            y += HEADING;
        }
        let content = svg::content(&picture.drawing, &|_| None);
        let _ = writeln!(body, "<g transform=\"translate(0 {y:.1})\">\n{content}</g>");
        y += picture.drawing.height.ceil();
        width = width.max(picture.drawing.width.ceil());
    }
    let (width, height, file) = (width.ceil(), y.ceil(), escaped(file));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"graph\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"The topology of {file}\">\n<style>\n{}{COLOURS}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n{body}</svg>\n",
        svg::STYLE
    )
}
