//! What a verification comes to, as its text says it: how many figures were compared, which agree, what was not compared
//! and why, and what an interrupt left out.

use weir_plan::Value;
use weir_stats::Estimate;
use weir_verify::{
    BothWorlds, Calibration, Connections, MissingScenario, Omission, OmissionCause, Options, Router,
    ScenarioVerified, Statistic, Unit, Verdict, Verification,
};

fn make_statistic(name: &'static str, verdict: Verdict, runs_needed: Option<u32>) -> Statistic {
    let near = |value: f64| Estimate { value: Some(value), low: Some(value - 0.5), high: Some(value + 0.5) };
    Statistic {
        name,
        simulated: near(100.0),
        real: near(101.0),
        difference: near(1.0),
        relative: near(0.01),
        tolerance: 0.03,
        unit: Unit::Ratio,
        no_matter_ms: Some(1.0),
        verdict,
        runs_needed,
    }
}

/// A scenario with a parameter, and these statistics.
fn make_scenario(name: &str, routers: i64, statistics: Vec<Statistic>) -> ScenarioVerified {
    let nothing = BothWorlds { simulated: Estimate::default(), real: Estimate::default() };
    ScenarioVerified {
        name: name.to_owned(),
        params: vec![("routers".to_owned(), Value::Int(routers))],
        runs: 5,
        asked_runs: 5,
        interrupted: false,
        void: Vec::new(),
        verdict: Verdict::of_all(statistics.iter().map(|s| s.verdict)),
        statistics,
        omissions: Vec::new(),
        curve: Vec::new(),
        targets: Vec::new(),
        ejections: None,
        connections: Connections { client: nothing, server: nothing, server_takes_ms: None },
        timers_late_ns: None,
        warnings: Vec::new(),
    }
}

fn make_verification(scenarios: Vec<ScenarioVerified>) -> Verification {
    Verification {
        against: Router::Weir,
        file: "t.star".to_owned(),
        plan: "0123456789abcdef".to_owned(),
        seed: 1,
        calibration: Some(Calibration::default()),
        scenarios,
        missing: Vec::new(),
    }
}

/// The text, each run of white space as one space.
fn write_text(found: &Verification) -> String {
    let mut out = Vec::new();
    weir_report::verify_text(found, weir_report::WIDTH, &mut out).expect("memory has room");
    let text = String::from_utf8(out).expect("UTF-8");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_summary_counts_what_agrees() {
    let agrees = ["mean", "p50"].map(|name| make_statistic(name, Verdict::Agrees, None));
    let text = write_text(&make_verification(vec![make_scenario("one", 1, agrees.to_vec())]));
    assert!(text.contains("one: simulation and reality agree in all of 2 figures (5 runs)"), "{text}");
    assert!(text.contains("2 figures were compared (1 scenario, 5 runs): all agree."), "{text}");
    assert!(!text.contains("Not compared") && !text.contains("Undecided:"), "{text}");
}

#[test]
fn the_summary_names_what_does_not_agree_and_what_is_not_compared() {
    let why_few = OmissionCause::FewRequests { counted: 150, needed: 200 };
    let few = || Omission { names: vec!["p95"], why: why_few.clone() };
    let why_unknown = OmissionCause::Other("nginx does not report its connections".to_owned());
    let proxy = Omission { names: vec!["opened", "open"], why: why_unknown };
    let first = vec![
        make_statistic("mean", Verdict::Agrees, None),
        make_statistic("p99", Verdict::Differs, None),
        make_statistic("success", Verdict::Undecided, Some(12)),
    ];
    let second =
        vec![make_statistic("mean", Verdict::Agrees, None), make_statistic("p99", Verdict::Differs, None)];
    let mut one = make_scenario("one", 1, first);
    (one.omissions, one.void) = (vec![few(), proxy], vec!["the client was late".to_owned()]);
    let mut other = make_scenario("one", 4, second);
    other.omissions = vec![few()];
    let found = make_verification(vec![one, other]);
    let text = write_text(&found);
    for says in [
        "one (routers=1): simulation and reality differ in p99 (5 runs); of 3 figures 1 agrees, 1 undecided",
        "5 figures were compared (2 scenarios, 10 runs, 1 void beside them): 2 agree, 2 differ, 1 is undecided.",
        "Differs: p99 of one (routers=1), one (routers=4).",
        "Undecided: success of one (routers=1).",
        "Not compared: p95 of one (routers=1), one (routers=4), since 150 requests of a run count, and it needs 200.",
        "Not compared: connections opened, connections open of one (routers=1), since nginx does not report",
        "A figure agrees if the whole 95 % interval of its difference lies within what is allowed",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    let figures = weir_report::verify_figures(&found, Verdict::Differs);
    assert_eq!(figures, "2 of 5 figures: p99 of one (routers=1), one (routers=4)");
    assert_eq!(weir_report::verify_advice(&found), "12 runs would decide: --runs 12");
}

#[test]
fn no_more_runs_are_advised_than_can_be_asked_for() {
    let advice = |runs_needed| {
        let statistic = make_statistic("p99", Verdict::Undecided, runs_needed);
        weir_report::verify_advice(&make_verification(vec![make_scenario("one", 1, vec![statistic])]))
    };
    let most = Options::MOST_RUNS;
    assert_eq!(advice(Some(most)), format!("{most} runs would decide: --runs {most}"));
    assert!(advice(Some(most + 1)).contains("more than --runs takes"));
    assert_eq!(advice(None), "try more runs (--runs)");
}

#[test]
fn an_interrupted_verification_says_what_is_missing() {
    let missing = |name: &str| MissingScenario {
        name: name.to_owned(),
        params: vec![("routers".to_owned(), Value::Int(1))],
        runs: 5,
    };
    let agrees = || vec![make_statistic("mean", Verdict::Agrees, None)];
    let cut = ScenarioVerified { runs: 2, interrupted: true, ..make_scenario("two", 1, agrees()) };
    let mut found = make_verification(vec![make_scenario("one", 1, agrees()), cut]);
    found.missing = vec![missing("three"), missing("four")];
    assert!(found.is_interrupted());
    assert_eq!(found.verdict(), Verdict::Undecided);
    let text = write_text(&found);
    for says in [
        "Interrupted after 7 of 20 runs: what follows is what was finished.",
        "Incomplete: two (2 of 5 runs).",
        "Without a run, 2 of 4: three, four.",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    assert_eq!(
        weir_report::verify_interrupted(&found),
        "interrupted after 7 of 20 runs; incomplete: two (2 of 5 runs); without a run, 2 of 4: three, four"
    );
}

/// Its figures are not taken for those of all scenarios.
#[test]
fn the_only_scenario_that_is_finished_is_named() {
    let differs = vec![make_statistic("p99", Verdict::Differs, None)];
    let mut found = make_verification(vec![make_scenario("one", 1, differs)]);
    let figures = |found: &Verification| weir_report::verify_figures(found, Verdict::Differs);
    assert_eq!(figures(&found), "1 of 1 figure: p99");
    let params = vec![("routers".to_owned(), Value::Int(1))];
    found.missing = vec![MissingScenario { name: "two".to_owned(), params, runs: 5 }];
    assert_eq!(figures(&found), "1 of 1 figure: p99 of one");
    let line = weir_report::verify_interrupted(&found);
    assert_eq!(line, "interrupted after 5 of 10 runs; without a run, 1 of 2: two");
    let text = write_text(&found);
    assert!(text.contains("Without a run, 1 of 2: two.") && text.contains("Differs: p99 of one."), "{text}");
    assert!(!text.contains("Incomplete"), "{text}");
}

/// Only a document of an interrupted verification has the keys that say so.
#[test]
fn the_json_says_that_it_was_interrupted() {
    let write_json = |found: &Verification| {
        let mut out = Vec::new();
        weir_report::verify_json(found, &mut out).expect("memory has room");
        serde_json::from_slice::<serde_json::Value>(&out).expect("JSON")
    };
    let agrees = vec![make_statistic("mean", Verdict::Agrees, None)];
    let mut found = make_verification(vec![make_scenario("one", 1, agrees)]);
    let whole = write_json(&found);
    assert_eq!(whole["verdict"], "agrees");
    for key in ["interrupted", "missing"] {
        assert!(whole.get(key).is_none() && whole["scenarios"][0].get("asked_runs").is_none(), "{whole}");
    }
    (found.scenarios[0].runs, found.scenarios[0].interrupted, found.calibration) = (2, true, None);
    let cut = write_json(&found);
    assert_eq!((&cut["interrupted"], &cut["missing"]), (&true.into(), &serde_json::json!([])));
    assert_eq!((&cut["scenarios"][0]["runs"], &cut["scenarios"][0]["asked_runs"]), (&2.into(), &5.into()));
    assert_eq!((&cut["verdict"], &cut["calibration"]), (&"undecided".into(), &serde_json::Value::Null));
}
