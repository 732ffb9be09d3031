//! `weir graph`: the forms, the posts' pictures as they are kept, and boxes measured in a browser.

use crate::shared::common::{Scratch, run};
use crate::shared::figures::root;
use crate::shared::serve::browser::Browser;
use std::fs;
use std::io::Write;
use weir_testkit::assert_frozen;

#[test]
fn the_form_is_the_ending() {
    let scratch = Scratch::new("graph-forms");
    let file = scratch.file(
        "t.star",
        "apps = pool(3, lambda: queue(server(\"a\\\"pp\")))\nscenario(\"s\", lb.random(apps), traffic.poisson(rate = 1), requests = 10)\n",
    );
    let drawn = |ending: &str| {
        let out = scratch.path(&format!("out.{ending}"));
        assert_eq!(run(&["graph", &file, "-o", &out]).succeeds(), "");
        fs::read_to_string(out).expect("it was written")
    };
    let svg = drawn("svg");
    assert!(
        svg.starts_with("<svg xmlns=")
            && svg.contains(">server a&quot;pp</text>")
            && svg.contains(">× 3</text>"),
        "{svg}"
    );
    assert_eq!(run(&["graph", &file]).succeeds(), svg);
    let dot = drawn("dot");
    assert!(
        dot.starts_with("digraph \"t.star\"")
            && dot.contains("n0_0 -> n0_1;")
            && dot.contains("server a\\\"pp"),
        "{dot}"
    );
    let mermaid = drawn("mmd");
    assert!(
        mermaid.starts_with("flowchart LR\n")
            && mermaid.contains("n0_0 --> n0_1")
            && mermaid.contains("server a#quot;pp"),
        "{mermaid}"
    );
    let plan = scratch.file("plan.json", run(&["plan", &file]).succeeds());
    assert_eq!(run(&["graph", &plan]).succeeds(), svg, "a plan is drawn as its file is");
    run(&["graph", &file, "-o", &scratch.path("out.png")]).fails(2, ".mmd");
    run(&["graph", &file, "nobody"]).fails(2, "it has s");
    run(&["graph", &file, "-o", &scratch.path("none/out.svg")]).fails(3, "none/out.svg");
    run(&["graph", &scratch.file("empty.star", "x = 1\n")]).fails(2, "no node");
}

#[test]
fn each_point_of_a_sweep_has_its_picture() {
    let scratch = Scratch::new("graph-sweep");
    let file = scratch.file(
        "t.star",
        "n = param(\"n\", 2)\nscenario(\"s\", lb.random(pool(n, lambda: server(\"a\"))), traffic.poisson(rate = 1), requests = 10)\nscenario(\"t\", lb.random(pool(n, lambda: server(\"a\"))), traffic.poisson(rate = 2), requests = 10)\n",
    );
    let ran = run(&["graph", &file, "--sweep", "n=2,3"]);
    let svg = ran.succeeds();
    assert!(svg.contains(">s (n=2), t (n=2)</text>") && svg.contains(">s (n=3), t (n=3)</text>"), "{svg}");
    assert!(!run(&["graph", &file, "-p", "n=5"]).succeeds().contains("n=5"), "one picture needs no heading");
}

/// Pictures that are kept: the file, the scenario, and where. Those of Timelike's posts, each from its topology, and
/// the README's.
const KEPT: [(&str, &str, &str); 4] = [
    ("examples/timelike/post2.star", "random_10lbs_one_pool", "examples/timelike/homogeneous.svg"),
    ("examples/timelike/post2.star", "retry_random_10lbs_10pools", "examples/timelike/distinct.svg"),
    ("examples/timelike/post2.star", "faulty_min_conn", "examples/timelike/single.svg"),
    ("examples/bamboo.star", "random_ties_16", "docs/bamboo.svg"),
];

/// `UPDATE=1 cargo test -p weir --test docs -- graph::` draws them anew.
#[test]
fn the_pictures_that_are_kept_are_those_of_their_topologies() {
    for (file, scenario, path) in KEPT {
        let file = root().join(file);
        let drawn = run(&["graph", file.to_str().expect("UTF-8"), scenario]);
        assert_frozen(root().join(path), drawn.succeeds());
    }
    let kept =
        |name: &str| fs::read_to_string(root().join(format!("examples/timelike/{name}.svg"))).expect("kept");
    assert!(
        kept("homogeneous").contains("shared by 10")
            && kept("homogeneous").contains("each over the same 250")
    );
    assert!(kept("distinct").contains("each over 25 of its own") && !kept("distinct").contains("shared"));
    assert!(kept("single").contains("over 250") && !kept("single").contains("shared"));
}

/// Boxes as the browser has them: none on another, every label in its box and not too small.
const WELL: &str = "(() => {
    const wrong = [], boxes = [...document.querySelectorAll('g > rect')];
    const at = boxes.map((box) => box.getBoundingClientRect());
    const by = at.map((_, i) => i).sort((a, b) => at[a].left - at[b].left);
    by.forEach((i, n) => {
        for (const j of by.slice(n + 1)) {
            if (at[j].left >= at[i].right) break;
            if (at[i].top < at[j].bottom && at[j].top < at[i].bottom) wrong.push('boxes ' + i + ' and ' + j);
        }
    });
    boxes.forEach((box, i) => {
        for (const text of box.parentNode.querySelectorAll('text')) {
            const words = text.getBoundingClientRect();
            if (words.left < at[i].left || words.right > at[i].right || words.top < at[i].top || words.bottom > at[i].bottom)
                wrong.push(text.textContent + ' leaves its box');
        }
    });
    for (const text of document.querySelectorAll('text'))
        if (parseFloat(getComputedStyle(text).fontSize) < 10) wrong.push(text.textContent + ' is small');
    const whole = document.documentElement.getBoundingClientRect();
    if (at.some((box) => box.left < whole.left || box.right > whole.right || box.bottom > whole.bottom)) wrong.push('outside');
    return [boxes.length, wrong.slice(0, 5).join('; ')];
})()";

#[test]
fn a_browser_finds_boxes_apart_and_labels_inside() {
    let scratch = Scratch::new("graph-browser");
    let Some(mut browser) = Browser::watching() else {
        let _ = writeln!(std::io::stderr(), "skipped: there is no Chromium here");
        return;
    };
    let pool = |n: u32| {
        format!(
            "listen(\":80\", lb.p2c(pool({n}, lambda: queue(server(\"application-server\"))), name = \"applications\"), name = \"web\")"
        )
    };
    let places: String = (0..10_000)
        .map(|i| format!("server(\"application-{i}\", addr = \"10.1.{}.{}:80\"),\n", i / 250, i % 250))
        .collect();
    // Layers whose boxes cannot be one, since each leads elsewhere.
    let mesh: String = (0..40).map(|i| format!("r{i} = retry(2, lb.random([x for n, x in enumerate(apps) if (n + {i}) % {} == 0], name = \"lb-{i}\"))\n", i % 5 + 2)).collect();
    let own: String = (0..30)
        .map(|i| format!("    server(\"app-with-a-long-name-{i}\", addr = \"10.0.0.{i}:8080\"),\n"))
        .collect();
    let routers: Vec<String> = (0..40).map(|i| format!("r{i}")).collect();
    let mesh = format!(
        "apps = [\n{own}]\n{mesh}listen(\":80\", lb.random([{}]), name = \"web\")\n",
        routers.join(", ")
    );
    for (name, source) in [
        ("3", pool(3)),
        ("250", pool(250)),
        ("10000", pool(10_000)),
        ("places", format!("listen(\":80\", lb.random([{places}]), name = \"web\")")),
        ("mesh", mesh),
        ("policies", fs::read_to_string(root().join("examples/policies.star")).expect("readable")),
        ("post2", String::new()),
    ] {
        let file = match name {
            "post2" => root().join("examples/timelike/post2.star").to_str().expect("UTF-8").to_owned(),
            _ => scratch.file(&format!("{name}.star"), source),
        };
        let svg = scratch.path(&format!("{name}.svg"));
        run(&["graph", &file, "-o", &svg, "--quiet"]).succeeds();
        browser.go(&format!("file://{svg}"));
        let found = browser.value(WELL);
        assert_eq!(found[1], "", "{name}");
        assert!(found[0].as_u64() >= Some(2), "{name}: {found}");
        assert_eq!(browser.complaints(), [""; 0]);
    }
}
