//! The documentation is true: outputs, topologies, figures of the picture, links and lists are those of the program.
//!
//! A block that begins with `$ weir ...` or `$ cargo run --release -- ...` shows what that prints, to the byte; a block
//! of Starlark is an example without its comments. `UPDATE=1 cargo test -p weir --test docs -- readme::` writes the
//! outputs anew.

use crate::shared::common::{Execution, Scratch, run, weir};
use crate::shared::figures::{figure, named, root, scenarios};
use std::fs;
use std::ops::Range;
use std::path::Path;
use weir_testkit::assert_frozen;

const PAGES: [&str; 2] = ["README.md", "examples/timelike/README.md"];

/// The text between two fences, its language, and its position in the page.
struct Block<'a> {
    language: &'a str,
    text: &'a str,
    at: Range<usize>,
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, &str)> = None;
    let mut at = 0;
    for line in page.split_inclusive('\n') {
        if let Some(language) = line.strip_prefix("```") {
            open = match open {
                None => Some((at + line.len(), language.trim())),
                Some((start, language)) => {
                    found.push(Block { language, text: &page[start..at], at: start..at });
                    None
                }
            };
        }
        at += line.len();
    }
    assert!(open.is_none(), "a fence is not closed");
    found
}

/// The arguments of the command that a block shows.
fn command(block: &Block<'_>) -> Option<Vec<String>> {
    let line = block.text.lines().next()?;
    let line = line.strip_prefix("$ weir ").or_else(|| line.strip_prefix("$ cargo run --release -- "))?;
    Some(line.split_whitespace().map(str::to_owned).collect())
}

/// What the command prints in the folder of the workspace.
fn prints(args: &[String]) -> String {
    let output = weir().args(args).current_dir(root()).output().expect("the binary starts");
    let ran = Execution {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    };
    assert!(matches!(ran.code, Some(0 | 2)), "{args:?}: {}", ran.err);
    if ran.code == Some(0) { ran.out } else { ran.err }
}

#[test]
fn outputs_are_what_the_program_prints() {
    for path in PAGES {
        let page = read(path);
        let (mut now, mut shown) = (page.clone(), 0);
        for block in blocks(&page).into_iter().rev() {
            let Some(args) = command(&block) else { continue };
            let first = block.text.lines().next().unwrap_or_default();
            let body: Vec<String> =
                prints(&args).trim_end().lines().map(|l| l.trim_end().to_owned()).collect();
            now.replace_range(block.at, &format!("{first}\n{}\n", body.join("\n")));
            shown += 1;
        }
        assert!(shown > 0, "{path} shows no output");
        assert_frozen(root().join(path), &now);
    }
}

#[test]
fn topologies_are_those_of_the_examples() {
    let code = |text: &str| -> Vec<String> {
        let without = |line: &str| line.split('#').next().unwrap_or_default().trim_end().to_owned();
        text.lines().map(without).filter(|l| !l.is_empty()).collect()
    };
    let example = code(&read("examples/bamboo.star"));
    let page = read("README.md");
    let starlark: Vec<_> = blocks(&page).into_iter().filter(|b| b.language == "python").collect();
    assert_eq!(starlark.len(), 1, "the README shows one topology");
    assert_eq!(code(starlark[0].text), example);
    // The story shows single lines.
    let story = read("examples/timelike/README.md");
    let shared = code(&read("examples/timelike/dynos.star"));
    for block in blocks(&story).iter().filter(|b| b.language == "python") {
        for line in code(block.text) {
            assert!(shared.contains(&line), "`{line}` is not in dynos.star");
        }
    }
}

#[test]
fn the_picture_shows_the_figures_of_the_program() {
    let picture = read("docs/p99.svg");
    let attribute = |text: &str, name: &str| {
        let (_, rest) = text.split_once(&format!("{name}=\"")).expect("it has the attribute");
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    let path = root().join("examples/bamboo.star");
    let got = scenarios(&[path.to_str().expect("UTF-8")]);
    let points: Vec<&str> = picture.split('<').filter(|tag| tag.contains("data-scenario")).collect();
    assert_eq!(points.len(), got.len(), "a point for each scenario");
    for point in points {
        let name = attribute(point, "data-scenario");
        let now = format!("{:.1}", figure(named(&got, &name), "p99").value);
        assert_eq!(
            attribute(point, "data-p99-ms"),
            now,
            "{name}: draw docs/p99.svg anew, as docs/p99.py says"
        );
    }
}

#[test]
fn the_picture_of_a_report_is_of_the_page() {
    let scratch = Scratch::new("readme-page");
    let html = scratch.path("bamboo.html");
    let path = root().join("examples/bamboo.star");
    run(&["sim", path.to_str().expect("UTF-8"), "--html", &html, "--quiet"]).succeeds();
    let drawn = |text: &str| -> Vec<String> {
        let lines =
            text.lines().filter(|line| line.starts_with("<g class=\"s ") || line.starts_with("<line "));
        lines.map(str::to_owned).collect()
    };
    let page = fs::read_to_string(html).expect("it was written");
    let (_, chart) = page.split_once("<div class=\"chosen\">").expect("it has curves");
    let (chart, _) = chart.split_once("</figure>").expect("it ends");
    let picture = drawn(&read("docs/report.svg"));
    assert!(picture.len() > 15, "{picture:?}");
    assert!(picture == drawn(chart), "cut docs/report.svg out anew, as docs/report.py says");
}

#[test]
fn links_lead_somewhere() {
    let elsewhere = [
        "README.md",
        "examples/README.md",
        "examples/timelike/README.md",
        "examples/papers/README.md",
        "bench/README.md",
    ];
    let docs = std::fs::read_dir(root().join("docs")).expect("the folder of pages");
    let docs = docs.map(|entry| format!("docs/{}", entry.expect("a file").file_name().display()));
    for path in elsewhere.map(str::to_owned).into_iter().chain(docs.filter(|path| path.ends_with(".md"))) {
        let page = read(&path);
        let folder = root().join(&path).parent().map(Path::to_path_buf).expect("it is in a folder");
        let targets = page.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for target in targets.filter(|t| !t.is_empty() && !t.starts_with("https://")) {
            assert!(folder.join(target).exists(), "{path} links to {target}");
        }
    }
}

#[test]
fn the_story_of_the_ties_holds() {
    let bamboo = root().join("examples/bamboo.star");
    let got =
        scenarios(&[bamboo.to_str().expect("UTF-8"), "first_index_16", "random_ties_16", "random_router"]);
    let seconds = |name: &str| (figure(named(&got, name), "p99").value / 100.0).round() / 10.0;
    // What the README says of its picture.
    assert_eq!(["first_index_16", "random_ties_16", "random_router"].map(seconds), [2.9, 0.8, 0.9]);

    let ties = root().join("examples/timelike/ties.star");
    let got = scenarios(&[ties.to_str().expect("UTF-8")]);
    let of = |name: &str, stat: &str| figure(named(&got, name), stat).value;
    let p99 = |name: &str| of(name, "p99");
    // 1. Linear with the first, and past the random router between two and four; bounded by it with random ties.
    let step = |from: &str, to: &str, by: f64| (p99(to) - p99(from)) / by;
    let (early, late) =
        (step("routers_4_first", "routers_8_first", 4.0), step("routers_8_first", "routers_16_first", 8.0));
    assert!((late / early - 1.0).abs() < 0.15, "{early} and {late} ms per router");
    assert!(p99("routers_2_first") < p99("random_router") && p99("random_router") < p99("routers_4_first"));
    assert!(p99("routers_16_random") < p99("random_router"));
    // 2. A dead target looks idle; held errors turn the order round.
    assert!(of("faulty_first", "success") < 2.0 / 3.0 && of("faulty_random", "success") > 0.9);
    assert!(of("held_first", "success") > of("held_random", "success"));
    // 3. Nine times, or a fifth.
    assert!(of("one_pool_first", "p50") > 9.0 * of("ten_pools_first", "p50"));
    let gain = 1.0 - of("ten_pools_random", "p50") / of("one_pool_random", "p50");
    assert!((0.17..0.25).contains(&gain), "{gain}");
}

/// The words in backticks between two headings.
fn names(page: &str, heading: &str) -> Vec<String> {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).expect("there is that heading");
    let section = rest.split("\n## ").next().unwrap_or_default();
    section.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// How `weir check` answers a use of that function without arguments.
fn answer(scratch: &Scratch, function: &str) -> Execution {
    run(&["check", &scratch.file("use.star", format!("x = {function}()\n"))])
}

#[test]
fn what_is_built_and_what_is_not_is_as_the_readme_says() {
    let page = read("README.md");
    let scratch = Scratch::new("readme");
    for name in names(&page, "Built today").iter().filter(|n| *n != "dist.") {
        match name.strip_prefix("weir ") {
            Some(command) => _ = run(&[command, "--help"]).succeeds(),
            None => assert!(!answer(&scratch, name).err.contains("not built yet"), "{name}"),
        }
    }
    for name in names(&page, "Not built yet") {
        match name.strip_prefix("weir ") {
            Some(command) => run(&[command, "a.star"]).fails(2, "not built yet"),
            None if name.starts_with("--") => run(&["sim", "a.star", &name, "1"]).fails(2, "not built yet"),
            None => match name.strip_suffix('=') {
                Some(_) => {
                    let file = scratch.file("use.star", format!("x = server({name}1)\n"));
                    run(&["check", &file]).fails(2, "not built yet");
                }
                None => answer(&scratch, &name).fails(2, "not built yet"),
            },
        }
    }
}

#[test]
fn the_numbers_of_tests_are_true() {
    let page: Vec<String> = read("README.md").split_whitespace().map(str::to_owned).collect();
    let page = page.join(" ");
    let published = include_str!("../data/oracles.json").matches("\"scenario\":").count();
    assert!(page.contains(&format!("independent simulation of {published} published systems")));
    let forms = include_str!("../slow/theory.rs");
    assert!(forms.contains("every scenario of the file is judged"));
    let path = root().join("crates/cli/tests/data/closed_forms.star");
    let checked = run(&["check", path.to_str().expect("UTF-8")]);
    let exact: u32 = checked
        .succeeds()
        .split(": ")
        .nth(1)
        .and_then(|s| s.split(' ').next()?.parse().ok())
        .expect("a number");
    assert!(
        page.contains(&format!("closed forms of queueing theory for {exact} more")),
        "{exact} closed forms"
    );
}
