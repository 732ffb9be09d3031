//! The output of `weir admin` for people: the answers of `/topology`, `/config` and `/ready` in columns.

use crate::age::ago;
use serde_json::Value;
use std::fmt::Write as _;

/// Rows in columns, the first to the left, `#` headings to the right; the last has no end.
fn columns(headings: &[&str], rows: &[Vec<String>]) -> String {
    let name = |at: usize| headings[at].trim_start_matches('#');
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([name(at).chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut text = String::new();
    let heading: Vec<String> = (0..headings.len()).map(|at| name(at).to_owned()).collect();
    for row in std::iter::once(&heading).chain(rows) {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let width = widths[at];
            let _ = match headings[at].starts_with('#') {
                true => write!(line, "{cell:>width$}  "),
                false => write!(line, "{cell:<width$}  "),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(n) => match n.as_f64() {
            Some(x) if !n.is_u64() && x.fract() != 0.0 => format!("{x:.2}"),
            Some(x) => format!("{x}"),
            None => n.to_string(),
        },
        other => other.to_string(),
    }
}

fn each<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of[key].as_array().into_iter().flatten()
}

fn is_up(target: &Value) -> bool {
    target["state"] == "up"
}

/// The state of a weir, in a few lines: its generation, listeners, balancers, and targets that are not up.
pub fn status(topology: &Value, config: &Value, ready: &str) -> String {
    let mut text = format!(
        "{}: {ready}\nweir {} · generation {} · plan {} · since {}\n",
        word(&config["file"]),
        word(&config["version"]),
        word(&config["generation"]),
        word(&config["plan"]).get(..12).unwrap_or_default(),
        word(&config["at"])
    );
    if let Some(why) = config["last_reload"]["failed"].as_str() {
        let _ = writeln!(text, "the last reload changed nothing: {why}");
    }
    for silent in each(topology, "silent") {
        let _ = writeln!(text, "{}", word(silent));
    }
    let listeners = each(topology, "listeners").map(|one| {
        let target = if one["has_target"] == true { "there" } else { "none" };
        vec![word(&one["name"]), word(&one["addr"]), word(&one["connections"]), target.to_owned()]
    });
    let _ = write!(
        text,
        "\n{}",
        columns(&["listener", "address", "#clients", "targets"], &listeners.collect::<Vec<_>>())
    );
    let pools: Vec<Vec<String>> = each(topology, "pools")
        .map(|pool| {
            let up = each(pool, "targets").filter(|target| is_up(target)).count();
            let of = each(pool, "targets").count();
            vec![word(&pool["name"]), word(&pool["policy"]), format!("{up} of {of}"), word(&pool["waiting"])]
        })
        .collect();
    if !pools.is_empty() {
        let _ = write!(text, "\n{}", columns(&["balancer", "policy", "#up", "#waiting"], &pools));
    }
    let fleets: Vec<Vec<String>> = each(topology, "fleets").map(fleet).collect();
    if !fleets.is_empty() {
        let _ = write!(text, "\n{}", columns(FLEET_HEADINGS, &fleets));
    }
    let out = rows(topology, |target| !is_up(target));
    if !out.is_empty() {
        let _ = write!(text, "\n{}", columns(HEADINGS, &out));
    }
    text
}

const FLEET_HEADINGS: &[&str] = &["fleet", "source", "#members", "#draining", "#withdrawn", "list"];

/// A fleet whose members a source lists.
fn fleet(one: &Value) -> Vec<String> {
    let list = match (one["stale_s"].as_f64().map(f64::floor), one["error"].as_str()) {
        (Some(s), Some(why)) => format!("no list for {s:.0} s: {why}"),
        (Some(s), None) => format!("no list yet, for {s:.0} s"),
        (None, _) if one["withdrawn"].as_u64().is_some_and(|n| n > 0) => "doubted".to_owned(),
        (None, _) => "there".to_owned(),
    };
    let numbers = ["fleet", "source", "members", "draining", "withdrawn"].map(|of| word(&one[of]));
    numbers.into_iter().chain([list]).collect()
}

/// All targets, a line each.
pub fn targets(topology: &Value) -> String {
    columns(HEADINGS, &rows(topology, |_| true))
}

const HEADINGS: &[&str] = &[
    "balancer",
    "target",
    "address",
    "state",
    "#in flight",
    "#estimate ms",
    "#weight",
    "by hand",
    "last check",
    "why",
];

/// What its last check saw, and when: `connect refused, 2 s ago`.
fn last_check(topology: &Value, target: &Value) -> String {
    let check = &target["last_check"];
    match (check["words"].as_str(), topology["at_unix_ms"].as_u64(), check["at_unix_ms"].as_u64()) {
        (Some(words), Some(now), Some(at)) => format!("{words}, {}", ago(now, at)),
        _ => "-".to_owned(),
    }
}

/// What is set by hand, with what is left of it: `drain 60 s, weight`.
fn by_hand(target: &Value) -> String {
    let left = |of: &str| target[of].as_f64().map(|s| format!(" {:.0} s", s.ceil())).unwrap_or_default();
    let state = (target["admin"] != "file").then(|| word(&target["admin"]) + &left("admin_left_s"));
    let weight = (target["weight_by_hand"] == true).then(|| "weight".to_owned() + &left("weight_left_s"));
    let all: Vec<String> = state.into_iter().chain(weight).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// Its state, and whether the last list of its fleet lacks it: `up, withdrawn`.
fn state(target: &Value) -> String {
    let state = word(&target["state"]).replace('_', " ");
    if target["withdrawn"] == true { state + ", withdrawn" } else { state }
}

fn rows(topology: &Value, which: impl Fn(&Value) -> bool) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for pool in each(topology, "pools") {
        for target in each(pool, "targets").filter(|target| which(target)) {
            let why: Vec<&str> = each(target, "why").filter_map(Value::as_str).collect();
            rows.push(vec![
                word(&pool["name"]),
                word(&target["name"]),
                word(&target["addr"]),
                state(target),
                word(&target["in_flight"]),
                word(&target["estimate_ms"]),
                word(&target["weight"]),
                by_hand(target),
                last_check(topology, target),
                why.join("; "),
            ]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_set_by_hand_has_an_end() {
        let target =
            json!({"admin": "drain", "admin_left_s": 59.2, "weight_by_hand": true, "weight_left_s": null});
        assert_eq!(by_hand(&target), "drain 60 s, weight");
        let target =
            json!({"admin": "file", "admin_left_s": null, "weight_by_hand": true, "weight_left_s": 3.0});
        assert_eq!(by_hand(&target), "weight 3 s");
        assert_eq!(by_hand(&json!({"admin": "file", "weight_by_hand": false})), "-");
    }

    #[test]
    fn a_target_that_a_doubted_list_lacks_is_not_simply_up() {
        let target = |more: Value| {
            let mut target = json!({"name": "a", "state": "up", "why": []});
            target["withdrawn"] = more;
            target
        };
        let all = [target(json!(true)), target(json!(false)), target(Value::Null)];
        let text = targets(&json!({"pools": [{"name": "apps", "targets": all}]}));
        assert_eq!(text.matches("up, withdrawn").count(), 1, "{text}");
        assert_eq!(text.matches(" up ").count(), 2, "{text}");
    }

    #[test]
    fn a_fleet_without_a_list_says_since_when_and_why() {
        let fleet = |name: &str, source: &str, stale_s: Option<f64>, error: Option<&str>| {
            json!({"fleet": name, "source": source, "members": 12, "draining": 1, "withdrawn": 0,
                   "stale_s": stale_s, "error": error})
        };
        let why = "consul web: http://127.0.0.1:8500 answers 500; see to the registry";
        let mut short = fleet("short", "file b.json", None, None);
        short["withdrawn"] = json!(12);
        let fleets = [
            short,
            fleet("apps", "consul web", Some(12.7), Some(why)),
            fleet("files", "file a.json", None, None),
            fleet("new", "consul new", Some(3.2), None),
        ];
        let text = status(&json!({"fleets": fleets}), &json!({}), "ready");
        let want = format!(
            "\nfleet  source       members  draining  withdrawn  list\n\
             short  file b.json       12         1         12  doubted\n\
             apps   consul web        12         1          0  no list for 12 s: {why}\n\
             files  file a.json       12         1          0  there\n\
             new    consul new        12         1          0  no list yet, for 3 s\n"
        );
        assert!(text.ends_with(&want), "{text}");
    }

    #[test]
    fn people_read_columns() {
        let topology = json!({
            "at_unix_ms": 12_000,
            "silent": [],
            "listeners": [{"name": "web", "addr": "127.0.0.1:8080", "connections": 12, "has_target": true}],
            "pools": [{"name": "apps", "policy": "lb.p2c", "waiting": null, "targets": [
                {"name": "a", "state": "up", "in_flight": 3, "estimate_ms": null, "weight": 1.0, "admin": "file", "why": []},
                {"name": "bee", "addr": "10.0.0.2:80", "state": "passed_over", "in_flight": 0, "estimate_ms": 1.234, "weight": 0.5,
                 "admin": "drain", "last_check": {"at_unix_ms": 9_500, "result": "refused", "words": "connect refused"},
                 "why": ["drained by hand", "passed over"]},
            ]}],
        });
        let config = json!({"file": "edge.star", "version": "0.1.0", "generation": 0, "plan": "0123456789abcdef", "at": "then"});
        let text = status(&topology, &config, "ready");
        assert_eq!(
            text,
            "edge.star: ready\nweir 0.1.0 · generation 0 · plan 0123456789ab · since then\n\n\
             listener  address         clients  targets\nweb       127.0.0.1:8080       12  there\n\n\
             balancer  policy      up  waiting\napps      lb.p2c  1 of 2        -\n\n\
             balancer  target  address      state        in flight  estimate ms  weight  by hand  last check                why\n\
             apps      bee     10.0.0.2:80  passed over          0         1.23    0.50  drain    connect refused, 2 s ago  drained by hand; passed over\n"
        );
        assert_eq!(targets(&topology).lines().count(), 3);
    }
}
