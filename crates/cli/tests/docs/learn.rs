//! What a newcomer types first: `weir`, `weir help`, `weir new`, completions, man pages, `print` and `check --serve`.

use crate::shared::common::{Scratch, run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn weir_alone_says_what_to_try_first() {
    let ran = run::<&str>(&[]);
    ran.fails(2, "weir new");
    assert!(ran.err.contains("weir help") && ran.err.contains("Usage: weir"), "{}", ran.err);
}

#[test]
fn help_fits_a_terminal() {
    let overview = run(&["help"]);
    let mut pages = vec![overview.succeeds().to_owned()];
    for f in weir_topology::manual::functions() {
        assert!(pages[0].contains(&format!("  {} ", f.name)), "{} is not listed", f.name);
        pages.push(run(&["help", f.name]).succeeds().to_owned());
    }
    for name in ["max_in_flight", "overloaded", "p99", "--seed", "lb", "name", "ms"] {
        pages.push(run(&["help", name]).succeeds().to_owned());
    }
    for page in pages {
        let wide: Vec<&str> = page.lines().filter(|l| l.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }
}

#[test]
fn help_finds_what_is_asked_for() {
    for (name, says) in [
        ("lb.p2c", "power of two choices"),
        ("p2c", "power of two choices"),
        ("queue()", "order of arrival"),
        ("overloaded", "kind of error"),
        ("max_in_flight", "lb.least_conn"),
        ("backoff=", "retry"),
        ("goodput_per_s", "deadline"),
        ("sim", "--replications"),
        ("--sweep", "weir plan"),
        ("lb", "lb.maglev"),
        ("ms", "1.5*s"),
        ("timeout", "A kind of error".to_lowercase().as_str()),
        ("expect", "A requirement on a scenario"),
    ] {
        let ran = run(&["help", name]);
        assert!(ran.succeeds().contains(says), "{name}: {}", ran.out);
    }
}

#[test]
fn an_unknown_name_proposes_near_ones() {
    run(&["help", "least_con"]).fails(2, "did you mean `lb.least_conn`");
    run(&["help", "overlaoded"]).fails(2, "did you mean `overloaded`");
    run(&["help", "hash"]).fails(2, "`lb.ring_hash`");
    run(&["help", "xyzzy-plugh"]).fails(2, "`weir help` lists");
}

fn topologies(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.path().is_dir() {
            topologies(&entry.path(), found);
        } else if entry.path().extension().is_some_and(|e| e == "star") {
            found.push(entry.path());
        }
    }
}

/// All that ship are in the program, byte for byte, and what they need comes with them.
#[test]
fn every_example_can_be_written_and_checked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files = Vec::new();
    topologies(&root, &mut files);
    let list = run(&["new"]).succeeds().to_owned();
    let names: BTreeSet<&str> = list
        .lines()
        .filter_map(|l| l.strip_prefix("  ")?.split(' ').next())
        .filter(|n| !n.is_empty())
        .collect();
    for file in files {
        let name = file.strip_prefix(&root).expect("below").with_extension("");
        let name = name.to_str().expect("UTF-8");
        // What others load is written beside them.
        if name == "timelike/dynos" {
            continue;
        }
        assert!(names.contains(name), "`weir new` does not list {name}:\n{list}");
        let text = std::fs::read_to_string(&file).expect("readable");
        assert_eq!(run(&["new", name]).succeeds(), text, "{name}");
        let scratch = Scratch::new(&format!("new-{}", name.replace('/', "-")));
        let path = scratch.path("mine.star");
        run(&["new", name, "-o", &path]).succeeds();
        let written = std::fs::read_to_string(&path).expect("written");
        let shipped = format!("examples/{name}.star");
        assert!(!written.contains(&shipped), "{name} tells to run {shipped}, which is not there");
        let ran = run(&["check", &path]);
        ran.succeeds();
        assert!(!ran.err.contains("cannot"), "{name}: {}", ran.err);
    }
}

#[test]
fn nothing_is_overwritten() {
    let scratch = Scratch::new("overwrite");
    let path = scratch.file("mine.star", "precious");
    run(&["new", "bamboo", "-o", &path]).fails(3, "already exists");
    assert_eq!(std::fs::read_to_string(&path).expect("readable"), "precious");
    // What an example needs beside it is not overwritten either, and then nothing is written.
    scratch.file("dynos.star", "precious");
    run(&["new", "timelike/post1", "-o", &scratch.path("post1.star")]).fails(3, "dynos.star");
    assert_eq!(scratch.names(), ["dynos.star", "mine.star"]);
    run(&["new", "bambo"]).fails(2, "did you mean `bamboo`");
    run(&["new", "-o", &scratch.path("x.star")]).fails(2, "which example");
    run(&["new", "bamboo", "-o", &scratch.path("no/such/folder.star")]).fails(3, "folder.star");
}

#[test]
fn completions_and_man_pages_come_from_the_same_definition() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&["completions", shell]);
        assert!(ran.succeeds().contains("replications"), "{shell}");
    }
    run(&["completions", "tcsh"]).fails(2, "tcsh");
    let scratch = Scratch::new("man");
    let dir = scratch.path("man1");
    run(&["man", &dir]).succeeds();
    let page = |name: &str| std::fs::read_to_string(Path::new(&dir).join(name)).unwrap_or_default();
    assert!(page("weir.1").contains("load") && page("weir-sim.1").contains("replications"));
    run(&["man", "/dev/null/man"]).fails(3, "/dev/null/man");
}

#[test]
fn what_a_file_prints_is_shown_by_check_alone() {
    let scratch = Scratch::new("print");
    let file = scratch.file(
        "p.star",
        "n = 3\nprint(\"servers\", n, 5*ms)\napp = server()\nscenario(\"a\", app, traffic.poisson(rate=10), requests=100)\n",
    );
    let ran = run(&["check", &file]);
    ran.succeeds();
    assert!(ran.err.contains("p.star: servers 3 5ms"), "{}", ran.err);
    let ran = run(&["sim", &file, "--replications", "2"]);
    ran.succeeds();
    assert!(!ran.err.contains("servers 3"), "{}", ran.err);
    // Beside errors it may say why; a thousand lines are no reason to lose one.
    let file =
        scratch.file("q.star", "for i in range(5000):\n    print(\"line\", i)\nx = delay(5, server())\n");
    let ran = run(&["check", &file]);
    ran.fails(2, "must be a duration");
    assert!(ran.err.contains("line 999") && !ran.err.contains("line 1000"));
}

#[test]
fn check_says_that_a_file_can_be_served() {
    let scratch = Scratch::new("can-be-served");
    let file = scratch.file("s.star", "web = listen(\"127.0.0.1:8080\", server(\"app\"), name=\"web\")\n");
    let ran = run(&["check", "--serve", &file]);
    assert!(
        ran.succeeds().contains("can be served") && ran.out.contains("web 127.0.0.1:8080"),
        "{}",
        ran.out
    );
    assert!(!run(&["check", &file]).succeeds().contains("served"));
}

/// Errors that come at once make the latency of all requests look better, so that of successes is shown beside it.
#[test]
fn the_summary_shows_the_latency_of_successes_where_something_failed() {
    let scratch = Scratch::new("successes");
    let text = |p: f64| {
        format!(
            "def run(name, app):\n    scenario(name, app, traffic.poisson(rate=50), requests=2000)\n\n\
             app = delay(20*ms, server())\nrun(\"a\", flaky({p}, app))\nrun(\"b\", app)\n"
        )
    };
    let some = scratch.file("some.star", text(0.3));
    assert!(run(&["sim", &some, "--quiet"]).succeeds().contains("ok_p99"));
    let none = scratch.file("none.star", text(0.0));
    assert!(!run(&["sim", &none, "--quiet"]).succeeds().contains("ok_p99"));
}

/// Times up and down are drawn from the distribution that is given: fixed ones make a clock.
#[test]
fn faults_take_distributions() {
    let scratch = Scratch::new("fault-times");
    let file = scratch.file(
        "f.star",
        "app = faulty(dist.fixed(9*s), dist.fixed(1*s), server())\n\
         scenario(\"a\", app, traffic.constant(every=100*ms), requests=1000, window=\"all\")\n",
    );
    let ran = run(&["sim", &file, "--quiet", "--output", "json", "--replications", "3"]);
    let json: serde_json::Value = serde_json::from_str(ran.succeeds()).expect("JSON");
    let requests = &json["scenarios"][0]["requests"];
    // Of a hundred seconds ten, in every replication alike.
    assert_eq!(requests["failed"], 3 * 100, "{requests}");
}
