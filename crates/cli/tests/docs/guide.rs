//! The guides are true: each of their files runs. The blocks of a section are one file, block by block.

use crate::shared::common::{Scratch, run};
use std::path::Path;

/// A block of a page.
enum Block {
    /// The topology file as it is after this block, with its section.
    Topology { section: String, text: String },
    /// A data file that the topologies after it read: "```csv NAME".
    Data { name: String, text: String },
}

/// The blocks of a page that are files.
fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut section, mut topology) = (Vec::new(), String::new(), String::new());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading.to_owned();
            topology.clear();
        }
        let Some(fence) = line.strip_prefix("```") else { continue };
        let text: String =
            lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        if fence == "python" || fence == "star" {
            topology.push_str(&text);
            blocks.push(Block::Topology { section: section.clone(), text: topology.clone() });
        } else if let Some(name) = fence.strip_prefix("csv ") {
            blocks.push(Block::Data { name: name.to_owned(), text });
        }
    }
    blocks
}

/// It is accepted without a warning, simulated if it asks something, and served if it listens.
fn assert_runs(path: &str, text: &str, section: &str) {
    let ran = run(&["check", path]);
    ran.succeeds();
    assert!(!ran.err.contains("warning"), "{section}: {}", ran.err);
    if text.contains("scenario(") {
        let ran = run(&["sim", path, "--quiet", "--replications", "2", "--requests", "500"]);
        assert!(ran.succeeds().contains("latency"), "{section}: {}", ran.out);
    }
    if text.contains("listen(") {
        assert!(run(&["check", "--serve", path]).succeeds().contains("can be served"), "{section}");
    }
}

/// Every file of that page runs, and there are at least so many.
fn assert_page_runs(name: &str, least: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let page = std::fs::read_to_string(path).expect("the page is there");
    let scratch = Scratch::new(&name.replace('.', "-"));
    let mut count = 0;
    for block in blocks(&page) {
        match block {
            Block::Topology { section, text } => {
                let path = scratch.file("guide.star", &text);
                assert_runs(&path, &text, &section);
                count += 1;
            }
            Block::Data { name, text } => _ = scratch.file(&name, &text),
        }
    }
    assert!(count >= least, "{name}: {count}");
}

#[test]
fn every_block_of_the_guide_runs() {
    assert_page_runs("language.md", 13);
}

#[test]
fn every_line_of_what_is_known_by_another_name_is_accepted() {
    assert_page_runs("known-as.md", 40);
}

#[test]
fn the_files_made_of_measurements_run() {
    assert_page_runs("measuring.md", 3);
}

#[test]
fn the_line_of_each_source_can_be_served() {
    assert_page_runs("discovery.md", 5);
}

/// Its files run, and `weir gate --dry-run` prints what it shows.
#[test]
fn the_page_about_deploys_is_true() {
    assert_page_runs("deploys.md", 2);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/deploys.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let (_, shown) = page.split_once("$ weir gate --dry-run ").expect("the command");
    let (words, printed) = shown.split_once('\n').expect("what it prints");
    let args: Vec<&str> = ["gate", "--dry-run"].into_iter().chain(words.split(' ')).collect();
    let (printed, _) = printed.split_once("```").expect("the end of the block");
    assert_eq!(run(&args).succeeds(), printed);
}
