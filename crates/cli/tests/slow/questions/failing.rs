//! Questions about failures: dynos, blocks, links, and retries.

use crate::shared::answers::{Answer, find, list, more, ms, name, names, percent, run_of, sign, success};
use crate::shared::figures::{figure, named};
use crate::shared::pages::{lower, table};
use serde_json::Value;
use std::fmt::Write as _;

pub(crate) fn hold_check_or_eject() -> Answer {
    let args = vec!["examples/timelike/questions/06-hold-check-or-eject.star"];
    let got = run_of(&args);
    let of = |how: &str, which: &str| named(&got, &format!("{how}_{which}"));
    let rows = got.iter().filter_map(|s| name(s).strip_suffix("_first")).map(|how| {
        let all = |f: &dyn Fn(&Value) -> String| ["first", "one", "ten"].map(|which| f(of(how, which)));
        let [a, b, c] = all(&|s| percent(success(s)));
        let p99 = all(&|s| ms(s, "p99")).join(" / ");
        [format!("`{how}`"), a, b, c, p99]
    });
    let heading =
        ["added", "success, one pool, ties first", "ties random", "ten pools", "p99 ms, in this order"];
    let table = table(heading, rows.collect());
    let better =
        |a: &str, b: &str, which: &str| sign(more(of(a, which), of(b, which), "success")) == Some(true);
    for which in ["first", "one", "ten"] {
        assert!(better("hold", "nothing", which) && better("check_often", "nothing", which), "{which}");
        assert!(!better("check", "hold", which), "checks every two seconds help {which}");
        assert!(better("eject_1", "eject", which) && better("hold_retry", "hold", which), "{which}");
    }
    let rare = |which: &str| {
        let d = more(of("check", which), of("nothing", which), "success");
        format!("{:.1}", d.value * 100.0)
    };
    let three = |how: &str| {
        let each = ["first", "one", "ten"].map(|which| percent(success(of(how, which))));
        format!("{}, {} and {}", each[0], each[1], each[2])
    };
    let verdict = format!(
        "with ties first, with random ties and with ten pools {} succeed if nothing is done; held errors make that {}, as does \
         ejection for a second after one error ({}); checks every two seconds add {}, {} and {} points, since a dyno is down \
         for one, and five times a second they make {}; with three attempts on top of held errors {}.",
        three("nothing"),
        three("hold"),
        three("eject_1"),
        rare("first"),
        rare("one"),
        rare("ten"),
        three("check_often"),
        three("hold_retry"),
    );
    Answer { name: "06", commands: vec![args], table, verdict }
}

const BLOCKS: &str = "examples/timelike/questions/07-blocks.star";

pub(crate) fn blocks() -> Answer {
    let first = vec![BLOCKS];
    let gist = ["all_routers_die", "own_routers_die", "all_racks_die", "own_racks_die"];
    let racks = [&[BLOCKS], &gist[..], &["--sweep", "utilisation=0.5,0.8"]].concat();
    let longer = ["all_racks_die", "own_racks_die", "-p", "utilisation=0.9", "-p", "requests=400000"];
    let longer = [&[BLOCKS], &longer[..]].concat();
    let (got, guess) = (run_of(&first), [run_of(&racks), run_of(&longer)].concat());
    let (counted, split) = by_number(&got);
    let (busy, better) = when_blocks_die(&guess);
    Answer {
        name: "07",
        commands: vec![first, racks, longer],
        table: counted + "\n" + &busy,
        verdict: format!("{split}; {better}."),
    }
}

/// What the number of blocks does, routers dying alone or half of them at once.
fn by_number(got: &[Value]) -> (String, String) {
    let counts = [1, 2, 5, 10, 25, 50];
    let of = |what: &str, n: i32| named(got, &format!("{what}_{n}"));
    let rows = counts.map(|n| {
        let halves = (n > 1).then(|| of("halves", n));
        let or = |f: &dyn Fn(&Value) -> String| halves.map_or_else(|| "–".to_owned(), f);
        [
            n.to_string(),
            percent(1.0 - success(of("one_down", n))),
            percent(success(of("alone", n))),
            ms(of("alone", n), "p99"),
            or(&|s| percent(success(s))),
            or(&|s| ms(s, "p99")),
        ]
    });
    let heading = [
        "blocks",
        "lost while one router is down",
        "success with three tries, routers fail alone",
        "p99 ms",
        "success, half of them at once",
        "p99 ms",
    ];
    let alone = |n: i32| success(of("alone", n));
    let halves = |n: i32| success(of("halves", n));
    assert!([5, 10, 25].iter().all(|n| alone(*n) > 0.9995) && alone(1) < 0.99 && halves(10) < 0.99);
    let (ten, fifty) = (of("alone", 10), of("alone", 50));
    assert_eq!(sign(more(fifty, ten, "p99")), Some(true));
    let verdict = format!(
        "n blocks lose 1/n of the requests while one router is down, and with three tries 5 to 25 of them lose hardly any \
         ({} at ten, {} at one) and cost little (p99 {} at ten, {} at fifty ms); where half of the routers fail at once, ten \
         blocks make {}, because the tries do not know which half that is",
        percent(alone(10)),
        percent(alone(1)),
        ms(ten, "p99"),
        ms(fifty, "p99"),
        percent(halves(10)),
    );
    (table(heading, rows.to_vec()), verdict)
}

/// The gist's guess.
fn when_blocks_die(got: &[Value]) -> (String, String) {
    let of = |load: f64, routing: &str, dies: &str| {
        let wanted = format!("{routing}_{dies}");
        got.iter().find(|s| name(s) == wanted && s["params"]["utilisation"] == load)
    };
    let loads = [0.5, 0.8, 0.9];
    let (mut rows, mut better, mut worse, mut open) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for load in loads {
        for (dies, says) in [("routers_die", "routers"), ("racks_die", "whole blocks")] {
            let (Some(all), Some(own)) = (of(load, "all", dies), of(load, "own", dies)) else { continue };
            let both = |stat: &str| format!("{} / {}", ms(all, stat), ms(own, stat));
            let successes = format!("{} / {}", percent(success(all)), percent(success(own)));
            rows.push([percent(load), says.to_owned(), successes, both("p50"), both("p95"), both("p99")]);
        }
        let racks = |routing| of(load, routing, "racks_die").expect("each load has them");
        let (all, own) = (racks("all"), racks("own"));
        let each = ["p50", "p95", "p99"].map(|stat| lower(figure(own, stat), figure(all, stat)));
        let says = format!("{} (p99 {} against {} ms)", percent(load), ms(own, "p99"), ms(all, "p99"));
        // Better is said where all three are certainly lower.
        match each {
            [Some(true), Some(true), Some(true)] => better.push(says),
            [_, _, Some(false)] => worse.push(says),
            _ => open.push(says),
        }
    }
    let heading =
        ["busy", "who dies", "success, routing to all / to the own block", "p50 ms", "p95 ms", "p99 ms"];
    let mut verdict = format!(
        "when a router dies with its whole block, latency is still better than with global routing where servers are busy {}",
        list(&better)
    );
    for (loads, says) in [(worse, "it is worse at"), (open, "there is no telling them apart at")] {
        if !loads.is_empty() {
            write!(verdict, "; {says} {}", list(&loads)).expect("a string takes all");
        }
    }
    (table(heading, rows), verdict)
}

fn busy(s: &Value) -> f64 {
    let queue = s["nodes"].as_array().expect("a list").iter().find(|n| n["kind"] == "queue");
    queue.expect("there are queues")["utilisation"]["value"].as_f64().expect("a number")
}

pub(crate) fn lossy_links() -> Answer {
    let args = vec!["examples/timelike/questions/12-lossy-links.star"];
    let got = run_of(&args);
    let mut known: Vec<&str> = got.iter().map(name).collect();
    known.dedup();
    let (table, verdict) = (tabulate_losses(&got, &known), judge_losses(&got, &known));
    Answer { name: "12", commands: vec![args], table, verdict }
}

/// A row for each of the known scenarios.
fn tabulate_losses(got: &[Value], known: &[&str]) -> String {
    let rows = known.iter().map(|scenario| {
        let of = |loss: f64| find(got, scenario, "loss", loss);
        let cell = |loss: f64| format!("{} / {}", ms(of(loss), "mean"), ms(of(loss), "p99"));
        let share = |loss: f64| percent(success(of(loss)));
        let attempts = format!("{:.2}", figure(of(0.01), "attempts_per_request").value);
        let busy = format!("{:.1} %", 100.0 * busy(of(0.01)));
        [
            format!("`{scenario}`"),
            cell(0.0),
            cell(0.001),
            cell(0.01),
            format!("{} / {}", share(0.001), share(0.01)),
            attempts,
            busy,
        ]
    });
    let heading = [
        "scenario",
        "mean / p99 ms, no loss",
        "0.1 %",
        "1 %",
        "success at 0.1 / 1 %",
        "attempts at 1 %",
        "busy at 1 %",
    ];
    table(heading, rows.collect())
}

/// What losses cost under each policy, and which ways to ask again help.
fn judge_losses(got: &[Value], known: &[&str]) -> String {
    let of = |name: &str, loss: f64| find(got, name, "loss", loss);
    let adds = |policy: &str, loss: f64| more(of(policy, loss), of(policy, 0.0), "mean").value;
    let policies: Vec<&str> = known.iter().copied().filter(|n| n.starts_with("tcp_")).collect();
    // Two crossings, each resent after 200 ms: 0.4 ms of the mean, by itself.
    let innocent = 2.0 * 0.001 * 200.0;
    let dear: Vec<&&str> = policies.iter().filter(|p| adds(p, 0.001) > 2.0 * innocent).collect();
    let dear: Vec<String> = dear.iter().map(|p| format!("`{}` {:.1} ms", &p[4..], adds(p, 0.001))).collect();
    let p99 = |scenario: &str, loss: f64| figure(of(scenario, loss), "p99");
    for policy in &policies {
        assert!(p99(policy, 0.01).value > 200.0 && p99(policy, 0.001).value < 100.0, "{policy}");
    }
    // What helps is certainly faster than sending again, and fails less than one in a thousand.
    let (mut helps, mut fails) = (Vec::new(), Vec::new());
    for scenario in known.iter().filter(|n| !n.starts_with("tcp_")) {
        let (s, failed) = (of(scenario, 0.01), 1.0 - success(of(scenario, 0.01)));
        if failed > 1e-3 {
            fails.push(format!("`{scenario}` ({:.1} %)", failed * 100.0));
        } else if lower(figure(s, "p99"), p99("tcp_least_conn", 0.01)) == Some(true) {
            helps.push(format!("`{scenario}` makes it {:.0} ms", figure(s, "p99").value));
        }
    }
    assert!(!dear.is_empty());
    format!(
        "a loss of 1 % makes p99 that of the timer under every policy ({:.0} ms and more), and one of 0.1 % leaves p99 below 100 ms; to \
         the mean, 0.1 % adds the 0.4 ms of the resends themselves, but under {}, where a late answer is held against a server that is \
         innocent of it; of those who ask again, {}; too many fail with {}.",
        policies.iter().map(|p| p99(p, 0.01).value).fold(f64::INFINITY, f64::min).floor(),
        list(&dear),
        list(&helps),
        list(&fails),
    )
}

const RETRIES: &str = "examples/timelike/questions/13-retries.star";

/// The table and the verdict; and what of the verdict is about the collapse, which the README says as well.
pub(crate) fn retries() -> (Answer, String) {
    let args = vec![RETRIES];
    let got = run_of(&args);
    let (tries, tries_say): (String, String) = attempts(&got);
    let (collapse, says) = collapse(&got);
    let verdict = format!("{tries_say}; {says}");
    (Answer { name: "13", commands: vec![args], table: tries + "\n" + &collapse, verdict }, says)
}

fn attempts(got: &[Value]) -> (String, String) {
    let rows = [5, 50].into_iter().flat_map(|percent_fails| {
        ["attempts_1", "attempts_2", "attempts_3", "attempts_5", "attempts_3_budget"].map(|how| {
            let s = named(got, &format!("fails_{percent_fails}_{how}"));
            let p = f64::from(percent_fails) / 100.0;
            let n: Option<i32> = how.strip_prefix("attempts_").and_then(|n| n.parse().ok());
            let fails = |n: i32| p.powi(n);
            let theory = n.map_or_else(
                || "–".to_owned(),
                |n| format!("{} / {:.3}", percent(1.0 - fails(n)), (1.0 - fails(n)) / (1.0 - p)),
            );
            let made = format!("{:.3}", figure(s, "attempts_per_request").value);
            [format!("{percent_fails} %"), format!("`{how}`"), percent(success(s)), made, theory]
        })
    });
    let heading = ["answers that fail", "retry", "success", "attempts per request", "by theory"];
    let of = |fails: i32, how: &str| named(got, &format!("fails_{fails}_{how}"));
    let made = |s: &Value| figure(s, "attempts_per_request").value;
    let bounded = of(50, "attempts_3_budget");
    assert!(made(bounded) < 1.21 && made(of(50, "attempts_3")) > 1.7);
    assert!((made(of(5, "attempts_3_budget")) - made(of(5, "attempts_3"))).abs() < 0.005);
    let verdict = format!(
        "three attempts make {} of 95 % at {:.2} attempts per request, and {} of 50 % at {:.2}; a budget of a fifth does not show \
         in the first case and stops at {:.2} in the second",
        percent(success(of(5, "attempts_3"))),
        made(of(5, "attempts_3")),
        percent(success(of(50, "attempts_3"))),
        made(of(50, "attempts_3")),
        made(bounded),
    );
    (table(heading, rows.collect()), verdict)
}

/// Requests per second before and after the burst, and how many have come when it ends: a second's, and ten seconds'.
const RATE: f64 = 600.0;
const BY_THEN: f64 = 11.0 * RATE;

fn collapse(got: &[Value]) -> (String, String) {
    let got: Vec<&Value> = got.iter().filter(|s| !name(s).starts_with("fails_")).collect();
    let of = |wanted: &str| *got.iter().find(|s| name(s) == wanted).expect("it is there");
    let (healthy, unchanged) = (of("no_burst"), of("as_it_is"));
    let others: Vec<&Value> =
        got.iter().copied().filter(|s| !["no_burst", "as_it_is"].contains(&name(s))).collect();
    assert_eq!((describe_recovery(healthy), describe_recovery(unchanged)), ("yes", "**no**"));
    let such =
        |wanted: &str| others.iter().copied().filter(|s| describe_recovery(s) == wanted).collect::<Vec<_>>();
    let (recover, slow, stuck) = (such("yes"), such("slowly"), such("**no**"));

    // The burst itself: what has failed once all requests count.
    let mut whole = vec![RETRIES, "-p", "window=all"];
    whole.extend(recover.iter().chain(&slow).map(|s| name(s)));
    let whole = run_of(&whole);
    // The window is the middle half of all that come.
    let total = unchanged["requests"]["total"].as_f64().expect("a number") / 10.0;
    let after = |quarters: f64| ((total * quarters / 4.0 - BY_THEN) / RATE).floor();
    let costs: Vec<String> = recover.iter().map(|s| format_cost(s, &whole)).collect();
    let slowly = describe_slow(&slow);
    let verdict = format!(
        "after a burst the system that tries three times does not recover: of the requests that arrive {} to {} s later {} \
         are answered in time ({} without the burst); {} settings cure it: {} (the burst then costs {} seconds' \
         requests){slowly}, and {} do not.",
        after(1.0),
        after(3.0),
        percent(success(unchanged)),
        percent(success(healthy)),
        ["no", "one", "two", "three", "four", "five", "six"][recover.len()],
        names(&recover),
        list(&costs),
        names(&stuck),
    );
    (tabulate_collapse(&got, &whole), verdict)
}

/// Whether a scenario is healthy again after the burst.
fn describe_recovery(s: &Value) -> &'static str {
    match success(s) {
        share if share >= 0.99 => "yes",
        share if share <= 0.01 => "**no**",
        _ => "slowly",
    }
}

/// What a burst costs, in seconds of requests. `whole`: the runs in which all requests count.
fn format_cost(s: &Value, whole: &[Value]) -> String {
    let failed = named(whole, name(s))["requests"]["failed"].as_f64().expect("a number");
    format!("{:.1}", failed / 10.0 / RATE)
}

/// A row for each scenario; the cost of a burst that was overcome is known from `whole`.
fn tabulate_collapse(got: &[&Value], whole: &[Value]) -> String {
    let rows = got.iter().map(|s| {
        let counted = whole.iter().any(|w| name(w) == name(s));
        let lost = if counted { format_cost(s, whole) } else { "–".to_owned() };
        let attempts = format!("{:.2}", figure(s, "attempts_per_request").value);
        [
            format!("`{}`", name(s)),
            describe_recovery(s).to_owned(),
            percent(success(s)),
            attempts,
            ms(s, "p50"),
            ms(s, "p99"),
            lost,
        ]
    });
    let heading = [
        "scenario",
        "healthy again",
        "success",
        "attempts per request",
        "p50 ms",
        "p99 ms",
        "lost, s of requests",
    ];
    table(heading, rows.collect())
}

/// The part of the verdict about scenarios that recover slowly, if any do.
fn describe_slow(slow: &[&Value]) -> String {
    if slow.is_empty() {
        return String::new();
    }
    let shares: Vec<String> = slow.iter().map(|s| percent(success(s))).collect();
    format!("; {} does so slowly ({} by then)", names(slow), list(&shares))
}
