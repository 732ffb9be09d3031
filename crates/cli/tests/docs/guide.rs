//! The guide, `docs/language.md`, is true: each of its files runs. The blocks of a section are one file, block by block.

use crate::shared::common::{Scratch, run};
use std::path::Path;

/// The file as it is after each block, with its section.
fn files(page: &str) -> Vec<(String, String)> {
    let (mut files, mut section, mut file) = (Vec::new(), String::new(), String::new());
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```python" | "```star" => inside = true,
            "```" if inside => {
                inside = false;
                files.push((section.clone(), file.clone()));
            }
            _ if inside => {
                file.push_str(line);
                file.push('\n');
            }
            _ => {
                if let Some(heading) = line.strip_prefix("## ") {
                    section = heading.to_owned();
                    file.clear();
                }
            }
        }
    }
    files
}

#[test]
fn every_block_of_the_guide_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/language.md");
    let page = std::fs::read_to_string(path).expect("the guide is there");
    let scratch = Scratch::new("guide");
    let all = files(&page);
    assert!(all.len() > 8, "{}", all.len());
    for (section, file) in all {
        let path = scratch.file("guide.star", &file);
        let ran = run(&["check", &path]);
        ran.succeeds();
        assert!(!ran.err.contains("warning"), "{section}: {}", ran.err);
        if file.contains("scenario(") {
            let ran = run(&["sim", &path, "--quiet", "--replications", "2", "--requests", "500"]);
            assert!(ran.succeeds().contains("latency"), "{section}: {}", ran.out);
        }
        if file.contains("listen(") {
            assert!(run(&["check", "--serve", &path]).succeeds().contains("can be served"), "{section}");
        }
    }
}
