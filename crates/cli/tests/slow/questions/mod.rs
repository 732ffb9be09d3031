//! The posts' questions, answered: `examples/timelike/questions/README.md` says what its files show.
//!
//! The sections between `<!-- NN -->` and `<!-- end -->` are written by
//!
//!   UPDATE=1 cargo test -p weir --test slow -- questions:: --include-ignored --test-threads 1
//!
//! Each word of a verdict hangs on a figure: where the figures no longer bear any of the words, the test fails instead.
//! Every run answers the quick ones anew and holds the plans of all to those on the page; the rest takes minutes, and
//! is run by hand.

mod connections;
mod failing;
mod incident;
mod loops;
mod policies;
mod shapes;

use crate::shared::answers::Answer;
use crate::shared::common::run;
use crate::shared::figures::root;
use crate::shared::pages::{assert_shown, wrapped};
use serde_json::Value;
use std::fs;

const FOLDER: &str = "examples/timelike/questions";

fn page() -> String {
    fs::read_to_string(root().join(FOLDER).join("README.md")).expect("the page is there")
}

/// The hash of what a command of the page simulates.
fn plan(args: &[&str]) -> String {
    let path = root().join(args[0]);
    let mut plan = vec!["plan", path.to_str().expect("UTF-8")];
    let mut rest = args[1..].iter();
    while let Some(arg) = rest.next() {
        if ["-p", "--sweep"].contains(arg) {
            plan.extend([arg, rest.next().expect("a value")]);
        }
    }
    let text = run(&plan).succeeds().to_owned();
    let plan: Value = serde_json::from_str(&text).expect("a plan is JSON");
    plan["hash"].as_str().expect("a plan has a hash").to_owned()
}

fn answered(shown: &Answer) {
    let text = shown.text_with(|args| format!("# plan {}\n", plan(args)));
    assert_shown(&format!("{FOLDER}/README.md"), shown.name, &text);
}

/// These take seconds.
#[test]
fn quick_answers_are_those_of_the_figures() {
    for answer in [policies::coordination_delay, shapes::concurrent] {
        answered(&answer());
    }
}

/// These take a minute, all together.
macro_rules! answers {
    ($($name:ident from $group:ident,)*) => {
        $(#[test]
        #[ignore = "takes a minute: `cargo xtask ci` runs it as a step of its own"]
        fn $name() {
            answered(&$group::$name());
        })*
    };
}

answers! {
    random_over_random from policies,
    distance_from_knowing from policies,
    bounded_by_random from policies,
    rings_at_zero from policies,
    hold_check_or_eject from failing,
    blocks from failing,
    bursts from shapes,
    long_and_short from policies,
    unequal_cables from shapes,
    lossy_links from failing,
}

#[test]
#[ignore = "takes a minute: `cargo xtask ci` runs it as a step of its own"]
fn retries() {
    let (shown, collapse) = failing::retries();
    answered(&shown);
    assert_shown("README.md", "metastable", &wrapped(&collapse));
}

#[test]
#[ignore = "takes a minute: `cargo xtask ci` runs it as a step of its own"]
fn what_loops_know() {
    assert_shown("docs/connections.md", "loops", &loops::known());
    assert_shown("docs/connections.md", "uneven", &loops::uneven());
}

#[test]
#[ignore = "takes a minute: `cargo xtask ci` runs it as a step of its own"]
fn how_many_connections_there_will_be() {
    assert_shown("docs/connections.md", "fleet", &connections::fleet());
    assert_shown("docs/connections.md", "week", &connections::week());
}

#[test]
#[ignore = "takes minutes: `cargo xtask ci` runs it as a step of its own"]
fn a_deploy_with_a_spike_and_its_cures() {
    assert_shown("docs/deploys.md", "incident", &incident::incident());
}

/// A file, or the language, that has changed since its answer was written has another plan.
#[test]
fn the_page_is_about_these_files() {
    let page = page();
    let mut lines = page.lines().peekable();
    let mut commands = 0;
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("weir sim ") else { continue };
        let args: Vec<&str> = command.split(' ').collect();
        let said = lines.next().and_then(|line| line.strip_prefix("# plan "));
        assert_eq!(
            said,
            Some(&*plan(&args)),
            "{command}: answer it anew, as crates/cli/tests/slow/questions/mod.rs says"
        );
        commands += 1;
    }
    assert!(commands >= 13, "{commands} commands");
}

#[test]
fn files_open_with_the_question_and_how_to_run_them() {
    let page = page();
    let mut files: Vec<String> = fs::read_dir(root().join(FOLDER))
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.ends_with(".star"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 13);
    for (number, file) in (1..).zip(files) {
        assert!(file.starts_with(&format!("{number:02}-")), "{file} is not number {number}");
        let text = fs::read_to_string(root().join(FOLDER).join(&file)).expect("it is there");
        let lines: Vec<&str> = text.lines().collect();
        let question = lines[0].strip_prefix("# ").unwrap_or_default();
        assert!(question.ends_with('?'), "{file}: {question}");
        assert!(
            page.contains(&format!("\n## {number}. {question}\n\n[{file}]({file})")),
            "{file} is not on the page"
        );
        assert_eq!(lines[2], format!("#   weir sim {FOLDER}/{file}"));
        assert!(lines.iter().all(|l| l.chars().count() <= 120), "{file} has long lines");
    }
}
