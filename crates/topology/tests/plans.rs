//! The plan of a file: locations, sites, hash, parameters, and the plan read back.

mod common;

use common::{plan, request, run};
use std::path::PathBuf;
use weir_plan::{Diagnostic, Plan, Spec, Value, label, offered_load, target_labels};
use weir_topology::{Request, evaluate};

fn labels(plan: &Plan) -> Vec<&str> {
    plan.points[0].sites.iter().map(|s| s.label.as_str()).collect()
}

fn said(findings: &[Diagnostic]) -> Vec<&str> {
    findings.iter().map(|f| f.message.as_str()).collect()
}

const BAMBOO: &str = r#"
def dyno():
    return cable(2*ms, queue(delay(20*ms, delay(dist.exponential(100*ms), server("rails")))))

dynos = pool(250, dyno)
routers = pool(param("routers", 4), lambda: cable(5*ms, lb.least_conn(dynos)))
scenario("bamboo", lb.random(routers), traffic.poisson(every = 1*ms), requests = 100000)
"#;

#[test]
fn members_of_a_pool_share_their_sites_and_shared_nodes_stay_one() {
    let plan = plan(BAMBOO);
    let point = &plan.points[0];
    assert_eq!(point.nodes.len(), 250 * 5 + 4 * 2 + 1);
    assert_eq!(
        labels(&plan),
        [
            "dyno/server",
            "dyno/delay#2",
            "dyno/delay",
            "dyno/queue",
            "dyno/cable",
            "routers/lb.least_conn",
            "routers/cable",
            "bamboo/lb.random"
        ]
    );
    assert_eq!(point.lists.len(), 2, "four routers over one list");
    assert_eq!(point.specs.iter().filter(|s| matches!(s, Spec::Delay { .. })).count(), 2);
    assert_eq!(plan.schema, "weir.plan/1");
    assert_eq!(plan.hash.len(), 32);
}

#[test]
fn comments_lines_and_other_functions_change_no_hash() {
    let before = plan(BAMBOO);
    let other = format!(
        "# a comment\n\n{}",
        BAMBOO.replace("dynos =", "def unused(x):\n    return cable(x, server())\n\ndynos =")
    );
    let after = plan(&other);
    assert_eq!(before.hash, after.hash);
    assert_eq!(labels(&before), labels(&after));
    assert_ne!(before.points[0].sites[0].span, after.points[0].sites[0].span);
    assert_ne!(before.hash, plan(&BAMBOO.replace("250", "251")).hash);
    assert_ne!(before.hash, plan(&BAMBOO.replace("dyno", "machine")).hash, "places belong to the meaning");
}

#[test]
fn a_helper_called_twice_gives_two_sites_and_one_place() {
    let plan = plan("def work(x):\n    return queue(delay(x, server()))\na = work(1*ms)\nb = work(2*ms)\n");
    let point = &plan.points[0];
    assert_eq!(point.places.len(), 3);
    assert_eq!(point.sites.len(), 6);
    assert_eq!(labels(&plan)[2..4], ["a/queue", "b/server"]);
}

#[test]
fn calls_through_other_names_and_by_pool_have_the_place_of_that_call() {
    let plan =
        plan("f = server\na = f()\nb = f()\nc = pool(2, server)\nd = pool(2, lambda: cable(1*ms, f()))\n");
    let places: Vec<String> = plan.points[0]
        .places
        .iter()
        .map(|p| format!("{}/{} {} {}", p.def, p.kind, p.via, p.number))
        .collect();
    assert_eq!(
        places,
        [
            "<file>/server f 1",
            "<file>/server f 2",
            "<file>/server pool 1",
            "<file>/server f 3",
            "<file>/cable  1"
        ]
    );
}

#[test]
fn pool_gives_the_number_only_where_it_is_wanted() {
    let plan =
        plan("a = pool(2, lambda i: server(\"s%d\" % i))\nb = pool(2, lambda i = 7: server(\"t%d\" % i))\n");
    let names: Vec<_> = plan.points[0].nodes.iter().filter_map(|n| n.name.clone()).collect();
    assert_eq!(names, ["s0", "s1", "t7", "t7"]);
}

#[test]
fn sweeps_make_the_product_with_the_first_named_slowest() {
    let source = "a = param(\"a\", 1, sweep=[1, 2])\nb = param(\"b\", 2.0)\nc = param(\"c\", 5*ms)\n";
    let mut asked = request(source);
    asked.sweeps = vec![("b".to_owned(), vec!["1".to_owned(), "1.5".to_owned()])];
    asked.params = vec![("c".to_owned(), "7ms".to_owned())];
    let points = evaluate(&asked).expect("evaluates").plan.points;
    let values: Vec<Vec<Value>> =
        points.iter().map(|p| p.params.iter().map(|v| v.1.clone()).collect()).collect();
    let c = Value::Duration { ns: 7_000_000 };
    let row = |a, b| vec![Value::Int(a), Value::Float(b), c.clone()];
    assert_eq!(values, [row(1, 1.0), row(1, 1.5), row(2, 1.0), row(2, 1.5)]);
    asked.params.push(("a".to_owned(), "9".to_owned()));
    assert_eq!(evaluate(&asked).expect("evaluates").plan.points.len(), 2, "-p switches the file's sweep off");
}

#[test]
fn parameters_of_the_command_line_are_checked() {
    let ask = |params: &[(&str, &str)], sweeps: &[(&str, &[&str])]| {
        let mut asked = request("n = param(\"size\", 3)\nm = param(\"mode\", True)\n");
        asked.params = params.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        asked.sweeps = sweeps
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.iter().map(|x| (*x).to_owned()).collect()))
            .collect();
        let findings = evaluate(&asked).expect_err("refused");
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        ask(&[("sizes", "4")], &[]),
        "error: no parameter is called \"sizes\"\n  = help: did you mean `size`? (the file has size, mode)"
    );
    assert_eq!(
        ask(&[("size", "2.5")], &[]),
        "error: the parameter \"size\" cannot be \"2.5\": it must be a whole number"
    );
    assert_eq!(
        ask(&[("mode", "yes")], &[]),
        "error: the parameter \"mode\" cannot be \"yes\": it must be true or false"
    );
    assert_eq!(
        ask(&[], &[("size", &["1", "two"])]),
        "error: the sweep of \"size\" cannot hold \"two\": it must be a whole number"
    );
    assert!(ask(&[("size", "1")], &[("size", &["1"])]).contains("both set and swept"));
}

#[test]
fn a_plan_read_back_is_the_same_plan() {
    let source = format!(
        "{BAMBOO}\nscenario(\"r\", retry(2, weight(0.5, lb.p2c(dynos, bias=1.5))), traffic.poisson(rate=3.3), requests=9)\n"
    );
    let plan = plan(&source);
    let json = plan.to_json();
    assert!(Plan::is_json(&json) && !Plan::is_json(source.as_bytes()));
    let back = Plan::from_json(&json).expect("reads");
    assert_eq!(back, plan);
    assert_eq!(back.to_json(), json);
}

#[test]
fn wrong_plans_are_refused_and_never_panic() {
    let json = plan(BAMBOO.replace("250", "3").as_str()).to_json();
    let text = String::from_utf8(json.clone()).expect("UTF-8");
    for (from, to, part) in [
        ("\"weir.plan/1\"", "\"weir.plan/9\"", "schema"),
        ("{\"node\":0}", "{\"node\":1}", "no cycles"),
        ("{\"node\":0}", "{\"node\":99}", "after all that it leads to"),
        ("\"site\":3", "\"site\":77", "there is no site 77"),
        ("\"concurrency\":1", "\"concurrency\":0", "concurrency"),
        ("\"requests\":100000", "\"requests\":0", "requests"),
        ("\"gap_ns\":1000000.0", "\"gap_ns\":-1.5", "gap"),
        ("\"ns\":2000000", "\"ns\":-5", "invalid value"),
        ("{\"list\":0}", "{\"node\":0}", "leads to a list"),
        ("\"root\":", "\"root\":9", "there is no node"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let why = Plan::from_json(text.replacen(from, to, 1).as_bytes()).expect_err(from).to_string();
        assert!(why.contains(part), "{from} -> {to}: {why}");
    }
    for end in (0..json.trim_ascii_end().len()).step_by(7) {
        assert!(Plan::from_json(&json[..end]).is_err());
    }
    // Single bytes changed: a plan that is still accepted is written and read back unchanged.
    let mut state = 1u64;
    for _ in 0..3000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bytes = json.clone();
        let at = (state >> 33) as usize % bytes.len();
        bytes[at] = (state >> 24) as u8;
        if let Ok(plan) = Plan::from_json(&bytes) {
            assert_eq!(Plan::from_json(&plan.to_json()).expect("reads"), plan);
            for i in 0..plan.points[0].scenarios.len() {
                let _ = offered_load(&plan.points[0], i);
            }
        }
    }
}

#[test]
fn random_sources_never_panic() {
    let words = [
        "server",
        "(",
        ")",
        "[",
        "]",
        "cable",
        "5*ms",
        ",",
        "lb.random",
        "=",
        "x",
        "\n",
        "pool",
        "lambda:",
        "1e999",
        "\"",
        "def f():\n ",
        "return",
        "-",
        "param",
        "#",
        "é",
        "{",
        "}",
        "dist.sum",
        "if",
        "for x in",
    ];
    let mut state = 7u64;
    for _ in 0..1500 {
        let mut source = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            source.push_str(words[(state >> 33) as usize % words.len()]);
            if state & 4096 == 0 {
                source.push(' ');
            }
        }
        if let Err(findings) = evaluate(&request(&source)) {
            assert!(findings.iter().all(|f| !f.message.contains("fault in weir")), "{source}");
        }
    }
}

#[test]
fn the_offered_load_of_every_queue_is_known() {
    let done = run(
        "def d():\n    return cable(2*ms, queue(delay(20*ms, delay(dist.exponential(100*ms), server()))))\n\
         one = lb.random([weight(3, d()), weight(1, d())])\n\
         scenario(\"x\", one, traffic.poisson(rate=8), requests=9)\n\
         scenario(\"y\", queue(one, concurrency=2), traffic.poisson(rate=12), requests=9)\n",
    );
    let point = &done.plan.points[0];
    let loads =
        |i| offered_load(point, i).into_iter().map(|l| (l.rate_per_s, l.utilisation)).collect::<Vec<_>>();
    let near = |got: &[(f64, f64)], want: &[(f64, f64)]| {
        assert_eq!(got.len(), want.len());
        for (g, w) in got.iter().zip(want) {
            assert!((g.0 - w.0).abs() < 1e-9 && (g.1 - w.1).abs() < 1e-9, "{got:?} {want:?}");
        }
    };
    near(&loads(0), &[(6.0, 0.72), (2.0, 0.24)]);
    near(&loads(1), &[(9.0, 1.08), (3.0, 0.36), (12.0, 12.0 * 0.124 / 2.0)]);
    assert_eq!(
        said(&done.warnings),
        ["scenario \"y\": the offered load of the queue d/queue is 1.08 times its capacity: the run will \
                not settle"]
    );
}

/// Queues of one site may differ: what is too much for the slow one goes to the others.
#[test]
fn a_slow_queue_among_others_of_its_site_is_relieved() {
    let done = run("def work(i):\n    return queue(delay(100*ms if i == 0 else 10*ms, server()))\n\
         some = [work(i) for i in range(10)]\n\
         scenario(\"relieved\", lb.least_conn(some), traffic.poisson(rate=500), requests=9)\n\
         scenario(\"blind\", lb.random(some), traffic.poisson(rate=500), requests=9)\n\
         scenario(\"full\", lb.least_conn(some), traffic.poisson(rate=920), requests=9)\n");
    let found = said(&done.warnings);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("scenario \"blind\"") && found[0].contains("is 5.00 times"), "{found:?}");
    assert!(found[1].starts_with("scenario \"full\"") && found[1].contains("is 1.01 times"), "{found:?}");
}

#[test]
fn an_excess_is_overload_only_where_nothing_relieves_it() {
    let done = run("def work(ms_each, **more):\n    return queue(delay(ms_each*ms, server()), **more)\n\
         scenario(\"relieved\", lb.least_conn([work(10), work(100)]), traffic.poisson(rate=50), requests=9)\n\
         scenario(\"full\", work(10, capacity=3), traffic.poisson(rate=1000), requests=9)\n\
         scenario(\"over\", lb.p2c(pool(2, lambda: work(100))), traffic.poisson(rate=50), requests=9)\n");
    let found = said(&done.warnings);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("scenario \"full\"") && found[0].ends_with("full is rejected"),
        "{}",
        found[0]
    );
    assert!(
        found[1].starts_with("scenario \"over\"") && found[1].ends_with("will not settle"),
        "{}",
        found[1]
    );
}

/// A separate folder for files that a test writes.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn in_folder(folder: &std::path::Path, source: &str) -> Request {
    Request { path: Some(folder.join("t.star")), ..request(source) }
}

#[test]
fn files_load_files_beside_them() {
    let folder = folder("load");
    std::fs::write(folder.join("lib.star"), "load(\"inner.star\", \"leaf\")\ndef dyno():\n    return cable(2*ms, leaf())\nshared = server(\"shared\")\n").expect("written");
    std::fs::write(folder.join("inner.star"), "def leaf():\n    return server(\"leaf\")\n").expect("written");
    let source = "load(\"lib.star\", \"dyno\", \"shared\")\na = dyno()\nb = dyno()\nc = lb.random([shared, a, b])\nscenario(\"x\", c, traffic.poisson(rate=1), requests=5)\n";
    let plan = evaluate(&in_folder(&folder, source)).expect("evaluates").plan;
    let point = &plan.points[0];
    assert_eq!(point.nodes.len(), 6);
    let sites: Vec<&str> = point.sites.iter().map(|s| s.label.as_str()).collect();
    assert_eq!(
        sites,
        [
            "lib.star:shared",
            "a/inner.star:leaf/server",
            "a/cable",
            "b/inner.star:leaf/server",
            "b/cable",
            "c"
        ]
    );
    std::fs::rename(folder.join("inner.star"), folder.join("renamed.star")).expect("renamed");
    std::fs::write(folder.join("lib.star"), "# renamed\nload(\"renamed.star\", \"leaf\")\ndef dyno():\n    return cable(2*ms, leaf())\nshared = server(\"shared\")\n").expect("written");
    assert_eq!(
        evaluate(&in_folder(&folder, source)).expect("evaluates").plan.hash,
        plan.hash,
        "names of files mean nothing"
    );
}

#[test]
fn files_that_load_each_other_are_refused() {
    let folder = folder("cycle");
    std::fs::write(folder.join("a.star"), "load(\"b.star\", \"x\")\ny = 1\n").expect("written");
    std::fs::write(folder.join("b.star"), "load(\"a.star\", \"y\")\nx = 1\n").expect("written");
    let findings = evaluate(&in_folder(&folder, "load(\"a.star\", \"y\")\n")).expect_err("refused");
    assert_eq!(
        findings[0].to_string(),
        "error: the files load each other in a cycle: a.star -> b.star -> a.star\n --> b.star:1:6\n  |\n1 | load(\"a.star\", \"y\")\n  |      ^^^^^^^^\n  = help: move what both need into a third file"
    );
}

#[test]
fn data_files_are_read_and_hashed_by_content() {
    let folder = folder("data");
    std::fs::write(folder.join("a.csv"), "path,duration_ms\n/,5\n/,7.5\n").expect("written");
    std::fs::write(folder.join("b.csv"), "duration_us\n5000\n7500\n").expect("written");
    std::fs::write(folder.join("bad.csv"), "duration_ms\n5\nx\n").expect("written");
    let of = |name: &str| {
        evaluate(&in_folder(&folder, &format!("x = delay(dist.empirical(\"{name}\"), server())\n")))
    };
    let a = of("a.csv").expect("evaluates").plan;
    assert_eq!(a.data_files.len(), 1);
    assert_eq!(a.hash, of("b.csv").expect("evaluates").plan.hash);
    let findings = of("bad.csv").expect_err("refused");
    assert_eq!(
        said(&findings),
        ["the data file \"bad.csv\" holds \"x\" in row 3, column `duration_ms`: it must be a number"]
    );
}

#[test]
fn targets_of_a_balancer_have_labels_of_their_own() {
    let plan = plan(
        r#"
def rails():
    return queue(delay(5 * ms, server("rails")))
scenario("s", lb.random(pool(2, rails)), traffic.constant(rate = 10), requests = 10)
scenario("t", lb.random([server("a", addr = "10.0.0.1:80"), server("b", addr = "10.0.0.2:80"), server("b", addr = "10.0.0.3:80")], name = "mixed"), traffic.constant(rate = 10), requests = 10)
"#,
    );
    let point = &plan.points[0];
    let of = |scenario: usize| target_labels(point, point.scenarios[scenario].root);
    assert_eq!(of(0), ["rails/queue #0", "rails/queue #1"]);
    assert_eq!(of(1), ["a", "10.0.0.2:80", "10.0.0.3:80"]);
    assert_eq!(label(point, point.scenarios[1].root), "mixed");
}
