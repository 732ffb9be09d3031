//! `weir compare`: what it says of two designs, how much pairs are worth, and how often it is wrong.

use crate::shared::common::{Scratch, run};
use serde_json::Value;

/// Random balancing over servers whose work takes 20 ms and an exponential time.
const DESIGNS: &str = r#"
work = param("work", 20*ms)
def dyno():
    return queue(delay(work, delay(dist.exponential(20*ms), server())))
scenario("random", lb.random(pool(40, dyno)), traffic.poisson(every=2*ms), requests=4000)
scenario("p2c", lb.p2c(pool(40, dyno)), traffic.poisson(every=2*ms), requests=4000)
"#;

#[track_caller]
fn compared(args: &[&str]) -> Value {
    let args: Vec<&str> =
        ["compare"].into_iter().chain(args.iter().copied()).chain(["--output", "json"]).collect();
    let document: Value = serde_json::from_str(run(&args).succeeds()).expect("one JSON document");
    assert_eq!(document["schema"], "weir.compare/1");
    document
}

#[track_caller]
fn statistic<'a>(pair: &'a Value, name: &str) -> &'a Value {
    let all = pair["statistics"].as_array().expect("a list");
    all.iter().find(|s| s["name"] == name).unwrap_or_else(|| panic!("no {name}: {pair}"))
}

fn half(e: &Value) -> f64 {
    (e["high"].as_f64().expect("a bound") - e["low"].as_f64().expect("a bound")) / 2.0
}

fn saved(scratch: &Scratch, name: &str, args: &[&str]) -> String {
    let path = scratch.path(name);
    let args: Vec<&str> =
        ["sim"].into_iter().chain(args.iter().copied()).chain(["--save", &path, "-q"]).collect();
    run(&args).succeeds();
    path
}

#[test]
fn two_scenarios_of_one_traffic_are_compared_in_pairs() {
    let scratch = Scratch::new("compare-scenarios");
    let file = scratch.file("a.star", DESIGNS);
    let document = compared(&[&file, "--scenarios", "random,p2c", "-q"]);
    let pair = &document["pairs"][0];
    assert_eq!((&pair["a"]["scenario"], &pair["b"]["scenario"]), (&"random".into(), &"p2c".into()));
    assert_eq!((&pair["a"]["file"], &pair["a"]["params"]["work"]), (&"a.star".into(), &"20ms".into()));
    assert_eq!(pair["paired"], true);
    let mean = statistic(pair, "mean");
    assert_eq!(mean["verdict"], "less", "{mean}");
    let (a, b, d) = (&mean["a"]["value"], &mean["b"]["value"], &mean["difference"]["value"]);
    let (a, b, d) = (a.as_f64().unwrap(), b.as_f64().unwrap(), d.as_f64().unwrap());
    assert!((d - (b - a)).abs() < 1e-9 && (mean["relative"]["value"].as_f64().unwrap() - d / a).abs() < 1e-9);
    assert_eq!(statistic(pair, "success")["verdict"], "no significant difference");
    assert!(
        pair["statistics"]
            .as_array()
            .unwrap()
            .iter()
            .all(|s| !s["name"].as_str().unwrap().starts_with("ok_"))
    );
    let text = run(&["compare", &file, "--scenarios", "random,p2c", "-q"]);
    let text = text.succeeds();
    assert!(text.contains("random -> p2c") && text.contains("paired: both have the same requests"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
}

/// The posts' servers: 20 ms and an exponential 100 ms, 250 of them.
const POSTS: &str = r#"
work = param("work", 20*ms)
def dyno():
    return queue(delay(work, delay(dist.exponential(100*ms), server())))
scenario("random", lb.random(pool(250, dyno)), traffic.poisson(every=1*ms), requests=20000)
"#;

/// Service of 20 ms or 19 ms behind a random balancer: by pairs the mean's difference is known at least fifty times
/// better.
#[test]
fn pairs_are_worth_fifty_times_the_deviation() {
    let scratch = Scratch::new("compare-crn");
    let file = scratch.file("a.star", POSTS);
    let at = |name: &str, seed: &str, work: &str| {
        saved(&scratch, name, &[&file, "random", "--replications", "20", "--seed", seed, "-p", work])
    };
    let (slow, fast) = (at("slow.json", "1", "work=20ms"), at("fast.json", "1", "work=19ms"));
    let other = at("other.json", "2", "work=19ms");
    let (same, independent) = (compared(&[&slow, &fast]), compared(&[&slow, &other]));
    let (same, independent) = (&same["pairs"][0], &independent["pairs"][0]);
    assert_eq!((&same["paired"], &independent["paired"]), (&Value::Bool(true), &Value::Bool(false)));
    let difference = |pair| half(&statistic(pair, "mean")["difference"]);
    let (paired, welch) = (difference(same), difference(independent));
    assert!(paired * 50.0 < welch, "±{paired} against ±{welch}");
    let mean = statistic(same, "mean");
    assert_eq!(mean["verdict"], "less");
    assert!((mean["difference"]["value"].as_f64().unwrap() + 2.5).abs() < 1.5, "{mean}");
}

/// Comparisons of a design with itself, by pairs of seeds: hardly more than one in twenty names any difference.
#[test]
fn a_design_hardly_ever_differs_from_itself() {
    let source = "scenario(\"q\", retry(2, queue(delay(dist.exponential(6*ms), flaky(0.1, server())), capacity=20)), \
                  traffic.poisson(every=10*ms), requests=2400)\n";
    let plan = weir_topology::evaluate(&weir_topology::Request {
        name: "q.star".to_owned(),
        source: source.as_bytes().to_vec(),
        ..weir_topology::Request::default()
    });
    let plan = plan.expect("it evaluates").plan;
    let results = |seed: u64| {
        let options = weir_sim::Options {
            seed,
            first: 0,
            replications: 10,
            settled_over: None,
            stretch: 1,
            requests: None,
            threads: 1,
            members: false,
            connections: false,
            scenarios: Vec::new(),
        };
        let wants = weir_sim::Extras { each: true, precision: None };
        let stop = std::sync::atomic::AtomicBool::new(false);
        let results = weir_sim::run_with_extras(&plan, &options, &wants, &|_, _| {}, &stop).expect("it runs");
        weir_report::SavedResult::new(&results).expect("it is a result")
    };
    const COMPARISONS: u64 = 300;
    let mut wrong = 0;
    for i in 0..COMPARISONS {
        let (a, b) = (results(2 * i + 1), results(2 * i + 2));
        let pairing = weir_report::Pairing { a: (&a, &a.designs[0]), b: (&b, &b.designs[0]), paired: false };
        // By pairs as well: seeds that differ make pairs independent, which is a harder case for them than any.
        wrong += usize::from(weir_report::Comparison::new(&[pairing]).differing() > 0);
        let pairing = weir_report::Pairing { paired: true, ..pairing };
        wrong += usize::from(weir_report::Comparison::new(&[pairing]).differing() > 0);
    }
    assert!(wrong * 100 <= 6 * 2 * COMPARISONS as usize, "{wrong} of {}", 2 * COMPARISONS);
}

#[test]
fn files_and_results_are_compared_alike() {
    let scratch = Scratch::new("compare-files");
    let (a, b) = (
        scratch.file("a.star", DESIGNS),
        scratch
            .file("b.star", DESIGNS.replace("20*ms)\ndef", "19*ms)\ndef").replace("lb.p2c", "lb.least_conn")),
    );
    let of_files = compared(&[&a, &b, "-q", "--replications", "5", "--requests", "1000"]);
    let save =
        |file: &str, name: &str| saved(&scratch, name, &[file, "--replications", "5", "--requests", "1000"]);
    let of_results = compared(&[&save(&a, "a.json"), &save(&b, "b.json")]);
    assert_eq!(of_files, of_results);
    let pairs = of_files["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    assert!(
        pairs.iter().all(|p| p["paired"] == true && p["a"]["file"] == "a.star" && p["b"]["file"] == "b.star")
    );
}

#[test]
fn other_requests_are_compared_by_welch() {
    let scratch = Scratch::new("compare-welch");
    let source = format!(
        "{DESIGNS}scenario(\"busy\", lb.random(pool(40, dyno)), traffic.poisson(every=1*ms), requests=4000)\n"
    );
    let file = scratch.file("a.star", source);
    let document = compared(&[&file, "--scenarios", "random,p2c,busy", "-q", "--replications", "4"]);
    let paired: Vec<&Value> = document["pairs"].as_array().unwrap().iter().map(|p| &p["paired"]).collect();
    assert_eq!(paired, [&Value::Bool(true), &Value::Bool(false)]);
    let text = run(&["compare", &file, "--scenarios", "random,busy", "-q"]);
    assert!(text.succeeds().contains("Welch"), "{}", text.out);
}

#[test]
fn what_cannot_be_compared_is_said() {
    let scratch = Scratch::new("compare-wrong");
    let file = scratch.file("a.star", DESIGNS);
    run(&["compare", &file]).fails(2, "--scenarios");
    run(&["compare", &file, "--scenarios", "random"]).fails(2, "name two");
    run(&["compare", &file, "--scenarios", "random,least", "-q"])
        .fails(2, "no scenario `least`; it has random, p2c");
    run(&["compare", &file, "random"]).fails(2, "--scenarios x,random");
    run(&["compare", &file, "random", "p2c"]).fails(2, "--scenarios random,p2c");
    run(&["compare", &file, &scratch.path("none.json")]).fails(2, "none.json");
    let old = scratch.path("old.json");
    let json = run(&["sim", &file, "--output", "json", "--replications", "2", "--requests", "500", "-q"]);
    std::fs::write(&old, json.succeeds()).unwrap();
    run(&["compare", &old, &old]).fails(2, "--each");
    let each =
        run(&["sim", &file, "--output", "json", "--each", "--replications", "2", "--requests", "500", "-q"]);
    std::fs::write(&old, each.succeeds()).unwrap();
    compared(&[&old, &old]);
    run(&["compare", &old, &old, "-p", "work=3ms"]).fails(2, "cannot be changed");
    let one = scratch.file(
        "c.star",
        "scenario(\"x\", server(), traffic.poisson(rate=9), requests=100)\n\
                                      scenario(\"y\", server(), traffic.poisson(rate=9), requests=100)\n",
    );
    run(&["compare", &file, &one, "-q"]).fails(2, "no scenario in common");
}

/// The values by replication are in what is saved, and in results that are asked for them; nothing else changes.
#[test]
fn values_by_replication_are_kept_where_they_are_asked_for() {
    let scratch = Scratch::new("compare-each");
    let file = scratch.file("a.star", DESIGNS);
    let args =
        ["sim", &file, "random", "--replications", "3", "--requests", "2000", "-q", "--output", "json"];
    let plain = run(&args).succeeds().to_owned();
    let path = scratch.path("saved.json");
    let with_save: Vec<&str> = args.into_iter().chain(["--save", &path]).collect();
    assert_eq!(run(&with_save).succeeds(), plain, "--save changes nothing of what is printed");
    let with_each: Vec<&str> = args.into_iter().chain(["--each"]).collect();
    let each = run(&with_each).succeeds().to_owned();
    assert_eq!(each, std::fs::read_to_string(&path).unwrap());
    let (mut plain, mut each): (Value, Value) =
        (serde_json::from_str(&plain).unwrap(), serde_json::from_str(&each).unwrap());
    let mean = &each["scenarios"][0]["latency_ms"]["all"]["mean"];
    let values: Vec<f64> = mean["each"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    assert_eq!((values.len(), Some(values.iter().sum::<f64>() / 3.0)), (3, mean["value"].as_f64()));
    assert_eq!(
        each["scenarios"][0]["latency_ms"]["all"]["p999"]["each"],
        Value::Array(Vec::new()),
        "nothing can be said"
    );
    assert_eq!(strip(&mut each), 0);
    assert_eq!(strip(&mut plain), 0);
    assert_eq!(plain, each);
}

/// Takes the values by replication out of every estimate; how many estimates lack them though others have them.
fn strip(value: &mut Value) -> usize {
    fn walk(value: &mut Value, with: &mut usize, without: &mut usize) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|v| walk(v, with, without)),
            Value::Object(map) => {
                if map.contains_key("low") {
                    *(if map.remove("each").is_some() { &mut *with } else { &mut *without }) += 1;
                }
                map.values_mut().for_each(|v| walk(v, &mut *with, &mut *without));
            }
            _ => {}
        }
    }
    let (mut with, mut without) = (0, 0);
    walk(value, &mut with, &mut without);
    if with == 0 { 0 } else { without }
}

/// Saved results are paired by what their requests were, and nothing else.
#[test]
fn saved_results_say_whether_their_requests_are_the_same() {
    let scratch = Scratch::new("compare-saved");
    let save = |name: &str, traffic: &str, more: &[&str]| {
        let source = format!("scenario(\"x\", queue(delay(10*ms, server())), {traffic})\n");
        let (file, saved) =
            (scratch.file(&format!("{name}.star"), source), scratch.path(&format!("{name}.json")));
        let args: Vec<&str> =
            ["sim", &file, "-q", "--save", &saved].into_iter().chain(more.iter().copied()).collect();
        run(&args).succeeds();
        saved
    };
    let poisson = "traffic.poisson(rate=50), requests=4000";
    let a = save("a", poisson, &[]);
    let same = save("same", poisson, &[]);
    for (other, paired) in [
        (same, true),
        (save("longer", "traffic.poisson(rate=50), requests=4001", &[]), false),
        (save("constant", "traffic.constant(rate=50), requests=4000", &[]), false),
        (save("fewer", poisson, &["--requests", "2000"]), false),
        (save("seed", poisson, &["--seed", "2"]), false),
        (save("replications", poisson, &["--replications", "9"]), false),
    ] {
        let out = run(&["compare", &a, &other, "-q"]).succeeds().to_owned();
        assert_eq!(out.contains("both have the same requests"), paired, "{other}: {out}");
    }
    for option in [["--seed", "2"], ["--replications", "5"], ["--threads", "1"], ["--requests", "5"]] {
        run(&["compare", &a, &a, option[0], option[1]]).fails(2, &format!("{} does nothing here", option[0]));
    }
    let one = save("one", poisson, &["--replications", "1"]);
    let out = run(&["compare", &one, &one, "-q"]).succeeds().to_owned();
    assert!(out.contains("cannot be told: a difference has an interval only with two replications"), "{out}");
}

/// The warnings of both runs come before any verdict.
#[test]
fn warnings_of_the_runs_come_first() {
    let scratch = Scratch::new("compare-warnings");
    let file = scratch.file(
        "f.star",
        "def app(): return queue(delay(dist.exponential(10*ms), server()))\n\
         scenario(\"x\", app(), traffic.poisson(rate=101), requests=4000)\n\
         scenario(\"y\", app(), traffic.poisson(rate=103), requests=4000)\n",
    );
    let saved = scratch.path("r.json");
    run(&["sim", &file, "-q", "--save", &saved]).succeeds();
    let out = run(&["compare", &saved, "--scenarios", "x,y", "-q"]).succeeds().to_owned();
    let (warning, verdict) = (out.find("warning: "), out.find("verdict"));
    assert!(warning.is_some() && warning < verdict, "{out}");
}
