//! Pictures for programs that lay them out themselves: Graphviz and Mermaid.

use super::Picture;
use super::fold::Boxed;
use std::fmt::Write as _;

/// Graphviz's language.
pub(super) fn dot(pictures: &[Picture], file: &str) -> String {
    let mut text = format!(
        "digraph \"{}\" {{\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n",
        quoted(file)
    );
    for (number, picture) in pictures.iter().enumerate() {
        if pictures.len() > 1 {
            let heading = quoted(&picture.heading());
            let _ = writeln!(text, "  subgraph \"cluster_{number}\" {{\n  label=\"{heading}\";");
        }
        for (at, placed) in picture.drawing.boxes.iter().enumerate() {
            let lines: Vec<String> = lines(&placed.of).map(|line| quoted(line)).collect();
            let cards = if placed.of.nodes.len() > 1 { ", peripheries=2" } else { "" };
            let _ = writeln!(text, "  n{number}_{at} [label=\"{}\"{cards}];", lines.join("\\n"));
        }
        for way in &picture.drawing.edges {
            let aside = if way.aside { " [style=dashed]" } else { "" };
            let _ = writeln!(text, "  n{number}_{} -> n{number}_{}{aside};", way.from, way.to);
        }
        if pictures.len() > 1 {
            text.push_str("  }\n");
        }
    }
    text + "}\n"
}

/// Mermaid's language.
pub(super) fn mermaid(pictures: &[Picture]) -> String {
    let mut text = "flowchart LR\n".to_owned();
    for (number, picture) in pictures.iter().enumerate() {
        if pictures.len() > 1 {
            let _ = writeln!(text, "  subgraph p{number}[\"{}\"]", entity(&picture.heading()));
        }
        for (at, placed) in picture.drawing.boxes.iter().enumerate() {
            let lines: Vec<String> = lines(&placed.of).map(|line| entity(line)).collect();
            let (begin, end) = if placed.of.nodes.len() > 1 { ("[[", "]]") } else { ("[", "]") };
            let _ = writeln!(text, "  n{number}_{at}{begin}\"{}\"{end}", lines.join("<br>"));
        }
        for way in &picture.drawing.edges {
            let arrow = if way.aside { "-.->" } else { "-->" };
            let _ = writeln!(text, "  n{number}_{} {arrow} n{number}_{}", way.from, way.to);
        }
        if pictures.len() > 1 {
            text.push_str("  end\n");
        }
    }
    text
}

fn lines(of: &Boxed) -> impl Iterator<Item = &String> {
    std::iter::once(&of.name).chain(of.lines.iter().flatten()).filter(|line| !line.is_empty())
}

/// Within Graphviz's quotes.
fn quoted(words: &str) -> String {
    words.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Within Mermaid's quotes, where entities have names without an ampersand.
fn entity(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '#' => text.push_str("#35;"),
            '"' => text.push_str("#quot;"),
            '<' => text.push_str("#lt;"),
            '>' => text.push_str("#gt;"),
            '&' => text.push_str("#amp;"),
            c => text.push(c),
        }
    }
    text
}
