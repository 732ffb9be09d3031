//! What others have published: each file of `examples/papers` expects the published figures, and meets them with a
//! tenth of its requests.

use crate::shared::common::run;
use crate::shared::figures::root;
use std::fs;

const FOLDER: &str = "examples/papers";

/// The files' names, in order.
fn files() -> Vec<String> {
    let mut files: Vec<String> = fs::read_dir(root().join(FOLDER))
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".star"))
        .collect();
    files.sort();
    files
}

fn text(file: &str) -> String {
    fs::read_to_string(root().join(FOLDER).join(file)).expect("it is there")
}

/// The default of the file's parameter `requests`.
fn requests(text: &str) -> u64 {
    let after = text.split("param(\"requests\", ").nth(1).expect("each file has its number of requests");
    after.split(')').next().expect("it is closed").parse().expect("a whole number")
}

#[test]
fn published_figures_hold_with_a_tenth_of_the_requests() {
    let mut wrong = Vec::new();
    for file in files() {
        let path = root().join(FOLDER).join(&file);
        let tenth = format!("requests={}", requests(&text(&file)) / 10);
        let ran = run(&["sim", path.to_str().expect("UTF-8"), "-p", &tenth, "--quiet"]);
        if ran.code != Some(0) {
            wrong.push(format!("{file}: exit code {:?}\n{}{}", ran.code, ran.out, ran.err));
        }
        let expected = ran.out.lines().filter(|line| line.contains("  holds  ")).count();
        assert!(expected >= 2, "{file} expects nothing:\n{}", ran.out);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_file_has_its_question_and_its_row() {
    let page = text("README.md");
    let files = files();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| [")).collect();
    assert_eq!(rows.len(), files.len(), "one row per file");
    for file in files {
        let text = text(&file);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("# ") && lines[0].ends_with('?'), "{file}: {}", lines[0]);
        assert!(
            text.contains(&format!("\n#   weir sim {FOLDER}/{file}\n")),
            "{file} does not say how to run it"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= 120), "{file} has long lines");
        let row = rows.iter().find(|row| row.starts_with(&format!("| [{file}]({file}) |")));
        let row = row.unwrap_or_else(|| panic!("{file} has no row in the README"));
        assert!(row.contains(&format!("`weir sim {FOLDER}/{file}`")), "{row}");
    }
}
