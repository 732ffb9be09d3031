//! Wrong parameters, sweeps and scenarios: the command line is right in form, and does not fit the file.

use crate::shared::common::{Scratch, run};

const GOOD: &str = "\
size = param(\"size\", 3)
wait = param(\"wait\", 5 * ms)
fair = param(\"fair\", True)
scenario(\"main\", cable(wait, lb.random(pool(size, lambda: server()))), traffic.poisson(every = 1 * ms), requests = 1000)
";

#[test]
fn each_fails_with_its_reason() {
    let scratch = Scratch::new("wrong-lines");
    let good = scratch.file("good.star", GOOD);
    for (args, says) in [
        (&["-p", "sizes=4"][..], "sizes"),
        (&["-p", "size=many"], "many"),
        (&["-p", "size=2.5"], "2.5"),
        (&["-p", "size="], "size"),
        (&["-p", "size=0"], "pool"),
        (&["-p", "wait=5"], "wait"),
        (&["-p", "fair=maybe"], "fair"),
        (&["--sweep", "sizes=1,2"], "sizes"),
        (&["--sweep", "size=1,two"], "two"),
        (&["nain"], "nain"),
        (&["main", "nain"], "main"),
    ] {
        let args: Vec<&str> = ["sim", &good].into_iter().chain(args.iter().copied()).collect();
        run(&args).fails(2, says);
    }
}

#[test]
fn parameters_reach_the_file() {
    let scratch = Scratch::new("right-lines");
    let good = scratch.file("good.star", GOOD);
    let ran = run(&[
        "sim",
        &good,
        "-p",
        "wait=1.5ms",
        "-p",
        "fair=false",
        "--sweep",
        "size=1,2",
        "--output",
        "json",
    ]);
    let out = ran.succeeds();
    for point in [1, 2] {
        let params = format!("\"params\": {{\"size\": {point}, \"wait\": \"1.5ms\", \"fair\": false}}");
        assert!(out.contains(&params), "{params} is not in {out}");
    }
}

#[test]
fn a_file_without_a_scenario_can_be_checked_but_not_simulated() {
    let scratch = Scratch::new("no-scenario");
    for (name, text) in [("empty.star", ""), ("none.star", "node = server(\"a\")\n")] {
        let file = scratch.file(name, text);
        run(&["sim", &file]).fails(2, "scenario");
        run(&["plan", &file]).succeeds();
    }
}

#[test]
fn all_members_of_a_site_are_listed_on_demand() {
    let scratch = Scratch::new("members");
    let good = scratch.file("good.star", GOOD);
    let entries = |nodes: &str| {
        let ran = run(&["sim", &good, "--nodes", nodes, "--output", "json", "--replications", "2"]);
        ran.succeeds().matches("\"kind\": \"server\"").count()
    };
    assert_eq!((entries("sites"), entries("all")), (1, 3));
}
