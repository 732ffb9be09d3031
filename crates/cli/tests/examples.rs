//! The examples say what they show: the tables and verdicts of `examples/README.md` come from their figures.
//!
//! What stands between `<!-- NAME -->` and `<!-- end -->` is written by `UPDATE=1 cargo test -p weir --test examples`. Each
//! word of a verdict hangs on a figure; where the figures no longer support any of the words, the test fails instead.

mod common;
mod figures;
mod pages;
use figures::{figure, named, root, scenarios};
use pages::{lower, shown, stands, table, wrapped};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

/// The part of the page about one file: its commands, a table, a verdict.
struct Shown {
    name: &'static str,
    commands: Vec<Vec<&'static str>>,
    table: String,
    verdict: String,
}

impl Shown {
    fn text(&self) -> String {
        let verdict = wrapped(&format!("**Verdict:** {}", self.verdict));
        let commands: Vec<String> =
            self.commands.iter().map(|c| format!("weir sim {}\n", c.join(" "))).collect();
        format!("```\n{}```\n\n{}\n{verdict}", commands.concat(), self.table)
    }
}

fn run_of(args: &[&str]) -> Vec<Value> {
    let path = root().join(args[0]);
    let mut all = vec![path.to_str().expect("UTF-8")];
    all.extend(&args[1..]);
    scenarios(&all)
}

fn ms(scenario: &Value, stat: &str) -> String {
    shown(figure(scenario, stat))
}

/// Rounded down, so that 100 % is said of all or nothing.
fn percent(share: f64) -> String {
    let hundredths = (share * 1e4 + 1e-6).floor() / 100.0;
    if hundredths.fract() == 0.0 { format!("{hundredths} %") } else { format!("{hundredths:.2} %") }
}

fn success(scenario: &Value) -> f64 {
    figure(scenario, "success").value
}

fn name(scenario: &Value) -> &str {
    scenario["name"].as_str().expect("a name")
}

/// "a, b and c".
fn list(of: &[String]) -> String {
    match of {
        [] => panic!("a verdict names nothing"),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn names(of: &[&Value]) -> String {
    list(&of.iter().map(|s| format!("`{}`", name(s))).collect::<Vec<_>>())
}

fn metastable() -> Shown {
    // Requests per second before and after, and how many have come when the burst ends: a second's, and ten seconds'.
    const RATE: f64 = 600.0;
    const BY_THEN: f64 = 11.0 * RATE;
    let args = vec!["examples/metastable.star"];
    let got = run_of(&args);
    let back = |s: &Value| match success(s) {
        share if share >= 0.99 => true,
        share if share <= 0.01 => false,
        share => panic!("{} neither recovers nor does not: {share}", name(s)),
    };
    let healthy = named(&got, "no_burst");
    assert!(back(healthy), "the system is healthy without the burst");
    let (recover, stuck): (Vec<&Value>, Vec<&Value>) =
        got.iter().filter(|s| name(s) != "no_burst").partition(|s| back(s));
    let (unchanged, others): (Vec<&Value>, Vec<&Value>) = stuck.iter().partition(|s| name(s) == "as_it_is");
    let [unchanged] = unchanged[..] else { panic!("the system recovers as it is") };

    // The burst itself: what has failed once all requests count.
    let mut whole = vec![args[0], "-p", "window=all"];
    whole.extend(recover.iter().map(|s| name(s)));
    let whole = run_of(&whole);
    let cost = |s: &Value| {
        let failed = named(&whole, name(s))["requests"]["failed"].as_f64().expect("a number");
        format!("{:.1}", failed / 10.0 / RATE)
    };
    let costs: Vec<String> = recover.iter().map(|s| cost(s)).collect();
    let rows = got.iter().map(|s| {
        let state = if back(s) { "yes" } else { "**no**" };
        let lost = if recover.iter().any(|r| name(r) == name(s)) { cost(s) } else { "–".to_owned() };
        let attempts = format!("{:.2}", figure(s, "attempts_per_request").value);
        [
            format!("`{}`", name(s)),
            state.to_owned(),
            percent(success(s)),
            attempts,
            ms(s, "p50"),
            ms(s, "p99"),
            lost,
        ]
    });
    let heading =
        ["scenario", "healthy", "success", "attempts per request", "p50 ms", "p99 ms", "lost, s of requests"];
    // The window is the middle half of all that come.
    let total = unchanged["requests"]["total"].as_f64().expect("a number") / 10.0;
    let after = |quarters: f64| ((total * quarters / 4.0 - BY_THEN) / RATE).floor();
    let verdict = format!(
        "after the burst the system does not recover: of the requests that come {} to {} s later {} are answered in time, \
         without the burst {}; {} settings bring it back, {} (the burst then costs {} seconds' requests), and {} do not.",
        after(1.0),
        after(3.0),
        percent(success(unchanged)),
        percent(success(healthy)),
        ["no", "one", "two", "three", "four", "five"][recover.len()],
        names(&recover),
        list(&costs),
        names(&others),
    );
    Shown { name: "metastable", commands: vec![args], table: table(heading, rows.collect()), verdict }
}

fn blocks() -> Shown {
    let all = vec!["examples/blocks.star", "--sweep", "utilisation=0.5,0.8"];
    let longer = ["all_racks_die", "own_racks_die", "-p", "utilisation=0.9", "-p", "requests=400000"];
    let longer = [&["examples/blocks.star"], &longer[..]].concat();
    let got = [run_of(&all), run_of(&longer)].concat();
    let mut loads: Vec<f64> =
        got.iter().map(|s| s["params"]["utilisation"].as_f64().expect("a number")).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let of = |load: f64, routing: &str, dies: &str| {
        let wanted = format!("{routing}_{dies}");
        got.iter().find(|s| name(s) == wanted && s["params"]["utilisation"] == load)
    };
    let mut rows = Vec::new();
    for load in &loads {
        for (dies, says) in [("healthy", "nobody"), ("routers_die", "routers"), ("racks_die", "whole racks")]
        {
            let (Some(all), Some(own)) = (of(*load, "all", dies), of(*load, "own", dies)) else { continue };
            let both = |stat: &str| format!("{} / {}", ms(all, stat), ms(own, stat));
            let successes = format!("{} / {}", percent(success(all)), percent(success(own)));
            rows.push([percent(*load), says.to_owned(), successes, both("p50"), both("p95"), both("p99")]);
        }
    }
    let heading = [
        "busy",
        "who dies",
        "success, all / own",
        "p50 ms, all / own",
        "p95 ms, all / own",
        "p99 ms, all / own",
    ];
    // Better is said where all three are certainly lower.
    let (mut better, mut worse, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for load in &loads {
        let racks = |routing| of(*load, routing, "racks_die").expect("each load has them");
        let (all, own) = (racks("all"), racks("own"));
        let each = ["p50", "p95", "p99"].map(|stat| lower(figure(own, stat), figure(all, stat)));
        let says = format!("{} (p99 {} against {} ms)", percent(*load), ms(own, "p99"), ms(all, "p99"));
        match each {
            [Some(true), Some(true), Some(true)] => better.push(says),
            [_, _, Some(false)] => worse.push(says),
            _ => open.push(says),
        }
    }
    let mut verdict = format!(
        "when routers die with their whole rack, one pool per router is still faster than routing globally with servers busy {}",
        list(&better)
    );
    for (loads, says) in [(worse, "it is slower at"), (open, "there is no telling them apart at")] {
        if !loads.is_empty() {
            write!(verdict, "; {says} {}", list(&loads)).expect("a string takes all");
        }
    }
    verdict.push('.');
    Shown { name: "blocks", commands: vec![all, longer], table: table(heading, rows), verdict }
}

fn concurrent() -> Shown {
    let args = vec!["examples/concurrent.star"];
    let got = run_of(&args);
    let kinds = [
        ("queue", "queues"),
        ("core", "one shared core"),
        ("cores", "four cores"),
        ("contended", "four cores in contention"),
    ];
    let (mut pays, mut hardly, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, says) in kinds {
        let p99 = |routing: &str| figure(named(&got, &format!("{kind}_{routing}")), "p99");
        let (random, shared, own) = (p99("random"), p99("one_pool"), p99("ten_pools"));
        let gain = 1.0 - own.value / shared.value;
        let both = format!("{says} ({:.0} %)", gain * 100.0);
        assert!(lower(own, shared) == Some(true), "{kind}: ten pools are not certainly better: {gain}");
        if gain >= 0.1 { &mut pays } else { &mut hardly }.push(both);
        let p50 = |routing: &str| ms(named(&got, &format!("{kind}_{routing}")), "p50");
        let medians = format!("{} / {} / {}", p50("random"), p50("one_pool"), p50("ten_pools"));
        let gain = format!("{:.0} %", gain * 100.0);
        rows.push([says.to_owned(), medians, shown(random), shown(shared), shown(own), gain]);
    }
    let heading = [
        "servers",
        "p50 ms, in this order",
        "p99 ms, random",
        "ten routers, one pool",
        "ten routers, ten pools",
        "gain",
    ];
    let verdict = format!(
        "one pool per router lowers p99 by a tenth or more over {}, and hardly over {}: what makes the architecture needless \
         is cores to spare, and not that a server takes many requests at once.",
        list(&pays),
        list(&hardly),
    );
    // The last clause is about these.
    assert!(pays.len() == 3 && hardly[0].starts_with("four cores ("), "{pays:?} {hardly:?}");
    Shown { name: "concurrent", commands: vec![args], table: table(heading, rows), verdict }
}

fn lossy() -> Shown {
    let args = vec!["examples/lossy.star"];
    let got = run_of(&args);
    let busy = |s: &Value| {
        let queue = s["nodes"].as_array().expect("a list").iter().find(|n| n["kind"] == "queue");
        queue.expect("there are queues")["utilisation"]["value"].as_f64().expect("a number")
    };
    let p99 = |name: &str| figure(named(&got, name), "p99");
    let rows = got.iter().map(|s| {
        let attempts = format!("{:.2}", figure(s, "attempts_per_request").value);
        let busy = format!("{:.1} %", busy(s) * 100.0);
        [format!("`{}`", name(s)), percent(success(s)), ms(s, "p50"), ms(s, "p99"), attempts, busy]
    });
    let heading = ["scenario", "success", "p50 ms", "p99 ms", "attempts per request", "servers busy"];
    // What helps is certainly faster than sending again, and fails less than one in a thousand.
    let (mut helps, mut fails) = (Vec::new(), Vec::new());
    for s in got.iter().filter(|s| !["no_loss", "resend"].contains(&name(s))) {
        let failed = 1.0 - success(s);
        if failed > 1e-3 {
            fails.push(format!("`{}` ({:.1} %)", name(s), failed * 100.0));
        } else if lower(figure(s, "p99"), p99("resend")) == Some(true) {
            helps.push(format!(
                "`{}` makes {:.0} ms of it with servers {:.1} % busy",
                name(s),
                figure(s, "p99").value,
                busy(s) * 100.0
            ));
        }
    }
    let verdict = format!(
        "where what is lost is sent again, p99 rises from {:.0} to {:.0} ms, and servers are {:.1} % busy; {}; too many requests fail with {}.",
        p99("no_loss").value,
        p99("resend").value,
        busy(named(&got, "resend")) * 100.0,
        list(&helps),
        list(&fails),
    );
    Shown { name: "lossy", commands: vec![args], table: table(heading, rows.collect()), verdict }
}

/// Of all requests at the first target of the file's balancers, how many: the site of that kind and place.
fn share_at(s: &Value, kind: &str) -> f64 {
    let nodes = s["nodes"].as_array().expect("a list");
    let at = nodes.iter().find(|n| n["kind"] == kind).unwrap_or_else(|| panic!("{} has no {kind}", name(s)));
    at["requests"].as_f64().expect("a number") / s["requests"]["selected"].as_f64().expect("a number")
}

fn lying() -> Shown {
    let args = vec!["examples/lying.star"];
    let got = run_of(&args);
    let of = |liar: &str, how: &str| named(&got, &format!("{liar}_{how}")).clone();
    let rows = ["unchecked", "active", "eject", "outlier"].map(|how| {
        let (dead, ill) = (of("dead", how), of("ill", how));
        [
            format!("`{how}`"),
            percent(success(&dead)),
            percent(share_at(&dead, "faulty")),
            percent(success(&ill)),
            percent(share_at(&ill, "flaky")),
        ]
    });
    let heading = ["health", "success, `dead`", "requests it got", "success, `ill`", "requests it got"];
    for liar in ["dead", "ill"] {
        let (without, active) = (success(&of(liar, "unchecked")), success(&of(liar, "active")));
        assert!((without - active).abs() < 1e-9, "active checks change something: {without} and {active}");
    }
    // All but a tenth of what failed is saved, or hardly anything is.
    let failed = |liar, how| 1.0 - success(&of(liar, how));
    let saved = |liar, how| 1.0 - failed(liar, how) / failed(liar, "unchecked");
    assert!(saved("dead", "eject") > 0.9 && saved("dead", "outlier") > 0.9);
    assert!(saved("ill", "eject") < 0.25 && saved("ill", "outlier") > 0.6);
    let verdict = format!(
        "active checks save nobody from a liar, {} and {} succeed with them and without; consecutive failures find the one \
         that is dead ({}) and hardly the one that is ill ({}), which `outlier()` does, by comparing it with the others ({}).",
        percent(success(&of("dead", "active"))),
        percent(success(&of("ill", "active"))),
        percent(success(&of("dead", "eject"))),
        percent(success(&of("ill", "eject"))),
        percent(success(&of("ill", "outlier"))),
    );
    Shown { name: "lying", commands: vec![args], table: table(heading, rows.to_vec()), verdict }
}

fn spare() -> Shown {
    let args = vec!["examples/spare.star"];
    let got = run_of(&args);
    let failed = |s: &str| 1.0 - success(named(&got, s));
    let rows = got.iter().map(|s| {
        let nodes = s["nodes"].as_array().expect("a list");
        let spare = nodes.iter().find(|n| n["kind"] == "server" && n["name"] == "spare");
        let to = spare.map_or(0.0, |n| n["requests"].as_f64().expect("a number"));
        let to = to / s["requests"]["selected"].as_f64().expect("a number");
        [format!("`{}`", name(s)), percent(success(s)), ms(s, "p50"), ms(s, "p99"), percent(to)]
    });
    let heading = ["scenario", "success", "p50 ms", "p99 ms", "at the spare"];
    assert!(failed("first") < 1e-3, "the second pool fails: {}", failed("first"));
    assert!(failed("on_empty") < 0.7 * failed("without") && failed("on_empty") > 0.01);
    let at_spare = |s: &str| {
        let got = named(&got, s);
        let nodes = got["nodes"].as_array().expect("a list");
        let spare = nodes.iter().find(|n| n["kind"] == "server" && n["name"] == "spare").expect("it has one");
        spare["requests"].as_f64().expect("a number")
            / got["requests"]["selected"].as_f64().expect("a number")
    };
    assert!(at_spare("as_a_peer") > 1.5 * at_spare("first"));
    let verdict = format!(
        "without the spare {} succeed; where `on_empty` falls back to it, it takes over once checks have noticed ({}); as \
         the second target of `lb.first` it also gets the second try of those who come before that ({}), and with {} of the \
         requests far fewer than as a peer ({}).",
        percent(success(named(&got, "without"))),
        percent(success(named(&got, "on_empty"))),
        percent(success(named(&got, "first"))),
        percent(at_spare("first")),
        percent(at_spare("as_a_peer")),
    );
    Shown { name: "spare", commands: vec![args], table: table(heading, rows.collect()), verdict }
}

fn panic() -> Shown {
    let args = vec!["examples/panic.star"];
    let got = run_of(&args);
    let mut counts: Vec<u64> =
        got.iter().map(|s| s["params"]["unhealthy"].as_u64().expect("a count")).collect();
    counts.sort_unstable();
    counts.dedup();
    let of = |kind: &str, panic: &str, n: u64| {
        let wanted = format!("{kind}_{panic}");
        got.iter().find(|s| name(s) == wanted && s["params"]["unhealthy"] == n).expect("all are there")
    };
    let rows = counts.iter().map(|&n| {
        let both = |kind: &str| {
            let (never, half) = (of(kind, "never", n), of(kind, "half", n));
            [
                format!("{} / {}", percent(success(never)), percent(success(half))),
                format!("{} / {}", ms(never, "p99"), ms(half, "p99")),
            ]
        };
        let ([a, b], [c, d]) = (both("dead"), both("far"));
        [n.to_string(), a, b, c, d]
    });
    let heading = [
        "unhealthy of ten",
        "dead: success, panic 0 / 0.5",
        "p99 ms",
        "far: success, panic 0 / 0.5",
        "p99 ms",
    ];
    let table = table(heading, rows.collect());
    for &n in &counts {
        let (trusted, ignored) = (of("dead", "never", n), of("dead", "half", n));
        let better = success(trusted) - success(ignored);
        assert!(if n > 5 { better > 0.1 } else { better.abs() < 0.03 }, "{n} dead: {better}");
        assert!(success(of("far", "half", n)) >= success(of("far", "never", n)), "{n} far");
    }
    let two = |kind: &str| {
        let [a, b] = ["half", "never"].map(|panic| percent(success(of(kind, panic, 6))));
        format!("{a} instead of {b}")
    };
    let verdict = format!(
        "panic helps where checks are wrong and harms where they are right: with six of ten unhealthy, {} succeed if these \
         are only far, and {} if they are dead.",
        two("far"),
        two("dead"),
    );
    Shown { name: "panic", commands: vec![args], table, verdict }
}

fn layers() -> Shown {
    let args = vec!["examples/layers.star"];
    let got = run_of(&args);
    let of = |s: &str| success(named(&got, s));
    let rows = got.iter().map(|s| {
        let attempts = figure(s, "attempts_per_request").value;
        [format!("`{}`", name(s)), percent(success(s)), format!("{attempts:.4}"), ms(s, "p50"), ms(s, "p99")]
    });
    let heading = ["scenario", "success", "attempts per request", "p50 ms", "p99 ms"];
    assert_eq!(of("edge_by_kinds"), of("nobody"));
    assert!(
        of("nobody") < 0.998 && of("edge_by_statuses") > 0.9999 && of("routers") >= of("edge_by_statuses")
    );
    let verdict = format!(
        "an edge that waits for broken connections never sends again, since it sees none: {} succeed, as without it; by the \
         statuses 502 and 503 it makes {} of them. A router knows that it could not connect, and whom to leave out: {}.",
        percent(of("edge_by_kinds")),
        percent(of("edge_by_statuses")),
        percent(of("routers")),
    );
    Shown { name: "layers", commands: vec![args], table: table(heading, rows.collect()), verdict }
}

fn active() -> Shown {
    let args = vec!["examples/timelike/active.star"];
    let got = run_of(&args);
    let of = |how: &str, ties: &str| named(&got, &format!("{how}_{ties}"));
    let rows = got.iter().filter_map(|s| name(s).strip_suffix("_first")).map(|how| {
        let both = |f: &dyn Fn(&Value) -> String| [f(of(how, "first")), f(of(how, "random"))];
        let [a, b] = both(&|s| percent(success(s)));
        let [c, d] = both(&|s| ms(s, "p50"));
        let [e, f] = both(&|s| ms(s, "p99"));
        [format!("`{how}`"), a, b, format!("{c} / {d}"), format!("{e} / {f}")]
    });
    let heading = ["added", "success, ties first", "ties random", "p50 ms", "p99 ms"];
    let table = table(heading, rows.collect());
    let first = |how: &str| success(of(how, "first"));
    assert!(first("active") < first("hold") && first("eject_1") > first("nothing"));
    let verdict = format!(
        "of the post's requests {} succeed as it is, {} with checks every two seconds, {} with checks five times a second that believe \
         the first answer, {} if one failure ejects for a second and {} with the post's held errors; the post's retries on top make {} of the latter.",
        percent(first("nothing")),
        percent(first("active")),
        percent(first("active_often")),
        percent(first("eject_1")),
        percent(first("hold")),
        percent(first("hold_retry")),
    );
    Shown { name: "active", commands: vec![args], table, verdict }
}

// One test, so that the files run one after another, each on all cores, and nobody else writes the page.
#[test]
fn tables_and_verdicts_are_those_of_the_figures() {
    for example in [metastable, blocks, concurrent, lossy, lying, spare, panic, layers] {
        let example = example();
        stands("examples/README.md", example.name, &example.text());
        if example.name == "metastable" {
            stands("README.md", example.name, &wrapped(&example.verdict));
        }
    }
}

#[test]
fn what_active_checks_would_have_done() {
    let example = active();
    stands("examples/timelike/README.md", example.name, &example.text());
}

#[test]
fn files_open_with_a_question_and_how_to_run_them() {
    let names = [
        "bamboo",
        "metastable",
        "blocks",
        "concurrent",
        "lossy",
        "lying",
        "spare",
        "panic",
        "hops",
        "layers",
        "policies",
    ];
    for name in names {
        let file = format!("examples/{name}.star");
        let text = fs::read_to_string(root().join(&file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("# ") && lines[0].ends_with('?'), "{file}: {}", lines[0]);
        assert_eq!(lines[2], format!("#   cargo run --release -- sim {file}"));
        assert!(lines.len() <= 62, "{file} has {} lines", lines.len());
        assert!(lines.iter().all(|l| l.chars().count() <= 120), "{file} has long lines");
    }
}

/// It is served as well: `serve_real.rs`.
#[test]
fn the_edge_of_one_page_is_simulated() {
    let scenarios = run_of(&["examples/edge.star"]);
    let [day] = &scenarios[..] else { panic!("{} scenarios", scenarios.len()) };
    assert!(success(day) > 0.99, "{}", success(day));
}
