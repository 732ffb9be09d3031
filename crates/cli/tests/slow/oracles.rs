//! Published tables: every file of examples/timelike agrees with an independent simulation of the same systems.
//!
//! A figure agrees if it lies within 3.5 standard errors of the difference, or within a floor of 0.5 ms or 0.3 % for
//! latencies and 0.0003 for success. The error that weir itself reports counts up to 1.6 times what the oracle's
//! scatter implies: a wide interval excuses nothing. Where nothing can fail, nothing may. What disagrees is run again
//! with another seed and three times the replications, and must agree then: chance alone fails no run, a bias does with
//! certainty.

use crate::shared::figures::{Estimate, figure, named, root, scenarios, student};
use serde_json::Value;

const REPLICATIONS: i32 = 20;
const STATS: [&str; 5] = ["mean", "p50", "p95", "p99", "success"];

/// What the oracle says of a scenario.
struct Row {
    file: String,
    scenario: String,
    reps: f64,
    shift_ms: f64,
    may_fail: bool,
    values: Value,
}

/// What came of a comparison.
struct Verdict {
    agrees: bool,
    says: String,
    /// The reported interval's width over that which the oracle's scatter implies.
    width: Option<f64>,
}

fn rows() -> Vec<Row> {
    let doc: Value = serde_json::from_str(include_str!("../data/oracles.json")).expect("JSON");
    let rows = doc["rows"].as_array().expect("a list");
    rows.iter()
        .map(|r| Row {
            file: r["file"].as_str().expect("text").into(),
            scenario: r["scenario"].as_str().expect("text").into(),
            reps: r["reps"].as_f64().expect("a number"),
            shift_ms: r["shift_ms"].as_f64().expect("a number"),
            may_fail: r["may_fail"] == true,
            values: r.clone(),
        })
        .collect()
}

impl Row {
    /// The oracle's mean, end to end, and its standard deviation between replications.
    fn expected(&self, stat: &str) -> (f64, f64) {
        let at = |i: usize| self.values[stat][i].as_f64().expect("a number");
        (at(0) + if stat == "success" { 0.0 } else { self.shift_ms }, at(1))
    }

    fn judge(&self, stat: &str, got: Estimate, reps: i32) -> Verdict {
        let (want, sd) = self.expected(stat);
        let verdict = |slack: f64, width: Option<f64>| Verdict {
            agrees: (got.value - want).abs() <= slack,
            says: format!("{} {} {stat}: {} is not {want} ± {slack:.4}", self.file, self.scenario, got.value),
            width,
        };
        if stat == "success" && !self.may_fail {
            return verdict(1e-9, None);
        }
        let t = student(0.975, reps - 1);
        let implied = sd / f64::from(reps).sqrt();
        let error = (sd / self.reps.sqrt()).hypot((got.half / t).min(1.6 * implied));
        let floor = if stat == "success" { 3e-4 } else { (0.003 * want).max(0.5) };
        let width = (stat != "success").then(|| got.half / (t * implied));
        verdict((3.5 * error).max(floor), width)
    }
}

/// Runs a file of examples/timelike: all of it, or one scenario.
fn simulate(file: &str, scenario: Option<&str>, reps: i32, seed: &str) -> Vec<Value> {
    let path = root().join("examples/timelike").join(file);
    let reps = reps.to_string();
    let mut args = vec![path.to_str().expect("UTF-8")];
    args.extend(scenario);
    args.extend(["--replications", &reps, "--seed", seed]);
    scenarios(&args)
}

#[test]
fn every_row_of_the_published_tables_agrees() {
    let rows = rows();
    let (mut widths, mut missed) = (Vec::new(), Vec::new());
    for file in ["post1.star", "post2.star", "gist.star", "var.star"] {
        let got = simulate(file, None, REPLICATIONS, "1");
        let of_file: Vec<&Row> = rows.iter().filter(|r| r.file == file).collect();
        assert_eq!(got.len(), of_file.len(), "{file} has a scenario for each row, and no other");
        for row in of_file {
            let entry = named(&got, &row.scenario);
            for stat in STATS {
                let verdict = row.judge(stat, figure(entry, stat), REPLICATIONS);
                widths.extend(verdict.width);
                if !verdict.agrees {
                    missed.push((row, stat, verdict.says));
                }
            }
        }
    }
    let seen_once = missed.len();
    assert!(seen_once <= rows.len() * STATS.len() / 4, "that is no chance: {:?}", missed[0].2);
    missed.retain(|(row, stat, _)| {
        let again = simulate(&row.file, Some(&row.scenario), 3 * REPLICATIONS, "7919");
        !row.judge(stat, figure(named(&again, &row.scenario), stat), 3 * REPLICATIONS).agrees
    });
    let says: Vec<&str> = missed.iter().map(|m| m.2.as_str()).collect();
    assert!(says.is_empty(), "{}", says.join("\n"));
    let logs: f64 = widths.iter().map(|w| w.max(1e-6).ln()).sum();
    let width = (logs / widths.len() as f64).exp();
    assert!((0.75..=1.33).contains(&width), "intervals are {width:.2} times as wide as the scatter implies");
    println!("{} rows agree, {seen_once} figures looked at twice; interval width {width:.2}", rows.len());
}

#[test]
fn the_judge_can_say_no() {
    let row = rows().into_iter().find(|r| r.scenario == "min_conn").expect("a row");
    let (want, _) = row.expected("p50");
    let half = 0.3;
    assert!(row.judge("p50", Estimate { value: want, half }, REPLICATIONS).agrees);
    // 2 % off, and a wide interval is no excuse.
    for half in [half, 100.0] {
        assert!(!row.judge("p50", Estimate { value: 1.02 * want, half }, REPLICATIONS).agrees);
    }
    assert!(!row.judge("success", Estimate { value: 0.99999, half: 0.0 }, REPLICATIONS).agrees);
    assert!((student(0.975, 19) - 2.093).abs() < 1e-3 && (student(0.9995, 9) - 4.781).abs() < 1e-3);
}
