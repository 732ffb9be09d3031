//! `expect(...)`: a topology as a test, `--precision`, and `window="auto"`.

use crate::shared::common::{Scratch, run};
use serde_json::Value;

const QUEUE: &str = r#"
load_ = param("load_", 0.5)
q = queue(delay(dist.exponential(10*ms), server()), name="desk")
scenario("mm1", q, traffic.poisson(rate=100*load_), requests=20000)
"#;

#[track_caller]
fn expectations(out: &str) -> Vec<(String, Option<bool>)> {
    let document: Value = serde_json::from_str(out).expect("one JSON document");
    let all = document["expectations"].as_array().expect("expectations");
    all.iter().map(|e| (e["expect"].as_str().unwrap().to_owned(), e["holds"].as_bool())).collect()
}

/// M/M/1 at a half: the mean is 20 ms, half of the server is busy, requests wait 10 ms.
#[test]
fn what_holds_what_fails_and_what_cannot_be_decided() {
    let scratch = Scratch::new("expect");
    let source = format!(
        "{QUEUE}expect(\"mm1\", mean=[\"<25ms\", \"> 15 ms\", \"<=10ms\"], success=\">=99.9%\", p999=\"<1s\", errors={{\"timeout\": \"<=0.001\"}})\n\
         expect(\"mm1\", node=\"desk\", utilisation=\"<0.6\", wait_ms=[\">8ms\", \"<12\"])\n"
    );
    let file = scratch.file("a.star", source);
    let json = run(&["sim", &file, "--output", "json", "-q"]);
    assert_eq!(json.code, Some(1), "{}", json.err);
    let got = expectations(&json.out);
    let want = [
        ("mean<25ms", Some(true)),
        ("mean>15ms", Some(true)),
        ("mean<=10ms", Some(false)),
        ("p999<1s", Some(true)),
        ("success>=99.9%", Some(true)),
        ("errors.timeout<=0.001", Some(true)),
        ("utilisation<0.6 at desk", Some(true)),
        ("wait_ms>8ms at desk", Some(true)),
        ("wait_ms<12 at desk", Some(true)),
    ];
    assert_eq!(got, want.map(|(e, h)| (e.to_owned(), h)));
    assert!(json.err.contains("mm1: mean<=10ms fails"), "{}", json.err);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    let (node, all) = (&document["scenarios"][0]["nodes"][0], &document["expectations"]);
    assert_eq!(node["utilisation"], all[6]["value"]);
    assert_eq!((node["wait_ms"].clone(), &all[7]["scenario"]), (all[7]["value"].clone(), &"mm1".into()));
    let members = run(&["sim", &file, "--output", "json", "-q", "--nodes", "all"]);
    assert_eq!(expectations(&members.out), got, "whichever nodes are listed");
    let text = run(&["sim", &file, "-q"]);
    assert_eq!(text.code, Some(1));
    assert!(text.out.contains("mean<=10ms") && text.out.contains("fails"), "{}", text.out);
}

#[test]
fn expectations_about_connections_need_connections() {
    let scratch = Scratch::new("expect-connections");
    let source = format!("{QUEUE}expect(\"mm1\", connections=\"<4000\", opened_per_s=\"<10\")\n");
    let file = scratch.file("a.star", source);
    let none = run(&["sim", &file, "-q", "--requests", "20000"]);
    assert_eq!(none.code, Some(1));
    let why =
        "connections<4000 cannot be decided: nothing can be said: connections needs `connect=` at a server";
    assert!(none.err.contains(why), "{}", none.err);
    assert!(
        !run(&["sim", &file, "-q", "--requests", "20000", "--connections"]).err.contains("cannot be decided")
    );
}

#[test]
fn one_replication_decides_nothing_and_all_that_hold_are_no_error() {
    let scratch = Scratch::new("expect-undecided");
    let file = scratch.file("a.star", format!("{QUEUE}expect(\"mm1\", mean=\"<25ms\")\n"));
    run(&["sim", &file, "-q"]).succeeds();
    let one = run(&["sim", &file, "-q", "--replications", "1"]);
    assert_eq!(one.code, Some(1));
    assert!(one.err.contains("mm1: mean<25ms cannot be decided"), "{}", one.err);
    let swept = run(&["sim", &file, "-q", "--sweep", "load_=0.5,0.8", "--output", "json"]);
    assert_eq!(swept.code, Some(1));
    assert_eq!(expectations(&swept.out).iter().map(|e| e.1).collect::<Vec<_>>(), [Some(true), Some(false)]);
    assert!(swept.err.contains("mm1 (load_=0.8)") && !swept.err.contains("load_=0.5"), "{}", swept.err);
}

#[test]
fn a_ci_is_told_in_its_own_words() {
    let scratch = Scratch::new("expect-ci");
    let file = scratch.file("a.star", format!("{QUEUE}expect(\"mm1\", mean=[\"<25ms\", \"<10ms\"])\n"));
    let xml = scratch.path("tests.xml");
    let ran = run(&["sim", &file, "-q", "--junit", &xml, "--github"]);
    assert_eq!(ran.code, Some(1));
    let line = ran.err.lines().find(|l| l.starts_with("::error")).expect("an annotation");
    assert!(
        line.starts_with(&format!("::error file={file},line=5,col=1,title=mean<10ms fails::mm1: mean<10ms")),
        "{line}"
    );
    let xml = std::fs::read_to_string(&xml).unwrap();
    assert!(xml.contains("<testsuite name=\"a.star\" tests=\"2\" failures=\"1\""), "{xml}");
    assert!(
        xml.contains("name=\"mean&lt;25ms\"") && xml.matches("<failure message=\"fails: ").count() == 1,
        "{xml}"
    );
}

/// What expects nothing has the plan and the result that it always had; what does keeps it in its plan.
#[test]
fn a_plan_carries_expectations_and_is_the_same_without() {
    let scratch = Scratch::new("expect-plan");
    let plain = scratch.file("a.star", QUEUE);
    let plan: Value = serde_json::from_str(run(&["plan", &plain]).succeeds()).unwrap();
    assert!(plan["points"][0].get("expectations").is_none());
    let document = run(&["sim", &plain, "-q", "--output", "json", "--requests", "100"]);
    assert!(!document.succeeds().contains("expectations"));
    let file = scratch.file("b.star", format!("{QUEUE}expect(\"mm1\", mean=\"<10ms\")\n"));
    let source = run(&["plan", &file]).succeeds().to_owned();
    let expecting: Value = serde_json::from_str(&source).unwrap();
    assert_ne!(expecting["hash"], plan["hash"]);
    let planned = scratch.file("b.json", &source);
    let args = |file: &str| run(&["sim", file, "-q", "--output", "json", "--requests", "2000"]);
    assert_eq!((args(&planned).code, args(&planned).out), (Some(1), args(&file).out));
    let moved = scratch.file("c.star", format!("{QUEUE}\n\nexpect(\"mm1\", mean=\" < 10 ms\")\n"));
    let moved: Value = serde_json::from_str(run(&["plan", &moved]).succeeds()).unwrap();
    assert_eq!(moved["hash"], expecting["hash"], "lines and blanks mean nothing");
    let broken = source.replace("\"scenario\":\"mm1\"", "\"scenario\":\"mm2\"");
    run(&["sim", &scratch.file("d.json", broken)]).fails(2, "expectations[0]");
}

#[test]
fn replications_are_added_until_figures_are_known_well_enough() {
    let scratch = Scratch::new("precision");
    let file = scratch.file("a.star", QUEUE);
    let args = ["sim", &file, "-q", "--output", "json", "--requests", "4000", "--precision", "mean=2%"];
    let ran = run(&args);
    let document: Value = serde_json::from_str(ran.succeeds()).unwrap();
    let replications = document["replications"].as_u64().unwrap();
    assert!(replications > 10, "{replications}");
    let mean = &document["scenarios"][0]["latency_ms"]["all"]["mean"];
    let part = |key: &str| mean[key].as_f64().unwrap();
    assert!((part("high") - part("low")) / 2.0 <= 0.02 * part("value"), "{mean}");
    let fixed = replications.to_string();
    let same = run(&["sim", &file, "-q", "--output", "json", "--requests", "4000", "--replications", &fixed]);
    assert_eq!(same.succeeds(), ran.out, "as if they had been asked for");
    for threads in ["1", "3"] {
        let args: Vec<&str> = args.into_iter().chain(["--threads", threads]).collect();
        assert_eq!(run(&args).succeeds(), ran.out);
    }
    let short: Vec<&str> = args.into_iter().chain(["--max-replications", "12"]).collect();
    let short = run(&short);
    assert_eq!(short.code, Some(1));
    assert!(
        short.err.contains("mm1: mean is known to") && short.err.contains("after 12 replications"),
        "{}",
        short.err
    );
    assert!(short.out.contains("\"replications\": 12"));
    let never =
        run(&["sim", &file, "-q", "--output", "json", "--requests", "4000", "--precision", "p999=5%"]);
    assert_eq!(never.code, Some(1));
    assert!(
        never.err.contains("p999 cannot be estimated at all") && never.out.contains("\"replications\": 10"),
        "{}",
        never.err
    );
    run(&["sim", &file, "--precision", "p98=1%"]).fails(2, "no figure `p98`");
    run(&["sim", &file, "--precision", "1"]).fails(2, "percentage");
    run(&["sim", &file, "--max-replications", "7"]).fails(2, "--precision");
}

/// A queue that begins empty at a load of 0.9: the middle half of a short run differs from what comes after the
/// warm-up.
#[test]
fn a_run_is_looked_at_from_where_it_has_settled() {
    let scratch = Scratch::new("auto");
    let source = |window: &str, load: &str| {
        format!(
            "q = queue(delay(dist.exponential(10*ms), server()))\n\
             scenario(\"q\", q, traffic.poisson(rate={load}), requests=20000, window=\"{window}\")\n"
        )
    };
    let sim = |name: &str, source: String| {
        let file = scratch.file(name, source);
        let ran = run(&["sim", &file, "-q", "--output", "json"]);
        let document: Value = serde_json::from_str(ran.succeeds()).unwrap();
        document["scenarios"][0].clone()
    };
    let auto = sim("a.star", source("auto", "50"));
    let selected = auto["requests"]["selected"].as_u64().unwrap();
    assert!((150_000..=200_000).contains(&selected), "little is left out of what settles soon: {selected}");
    let mean = auto["latency_ms"]["all"]["mean"]["value"].as_f64().unwrap();
    assert!((mean - 20.0).abs() < 1.0, "{mean}");
    assert!(auto["warnings"].as_array().unwrap().is_empty(), "{}", auto["warnings"]);
    let never = sim("b.star", source("auto", "130"));
    let warnings = never["warnings"].to_string();
    assert!(warnings.contains("not settled"), "{warnings}");
    assert_eq!(never["requests"]["selected"], 100_000, "the second half");
    let closed = sim(
        "c.star",
        "scenario(\"q\", queue(delay(dist.exponential(10*ms), server())), \
         traffic.closed(users=5, think=dist.exponential(50*ms)), duration=60*s, window=\"auto\")\n"
            .to_owned(),
    );
    let (selected, total) = (&closed["requests"]["selected"], &closed["requests"]["total"]);
    assert!(selected.as_u64().unwrap() * 2 > total.as_u64().unwrap(), "{selected} of {total}");
}
