//! The files of deploy/: the units as systemd reads them, the manifests by their schema, the topology of the ConfigMap,
//! and queries that name what there is.

use crate::shared::common::{Scratch, run};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

fn text(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Metrics and their labels, as docs/metrics.md has them (a test of `serve` holds that to the code).
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for line in
        text("docs/metrics.md").lines().filter(|l| l.starts_with("| `weir_") || l.starts_with("| `process_"))
    {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let labels = cells[3].split(", ").map(|l| l.trim_matches('`').to_owned()).filter(|l| !l.is_empty());
        let (name, kind) = (cells[1].trim_matches('`').to_owned(), cells[2]);
        let mut labels: BTreeSet<String> = labels.collect();
        // What Prometheus adds.
        labels.extend(["instance".to_owned(), "job".to_owned()]);
        if kind.starts_with("histogram") {
            labels.insert("le".to_owned());
            all.insert(format!("{name}_bucket"), labels.clone());
            all.insert(format!("{name}_sum"), labels.clone());
            all.insert(format!("{name}_count"), labels.clone());
        }
        all.insert(name, labels);
    }
    assert!(all.len() > 50, "{all:?}");
    all
}

/// The words of a query that are not in quotes.
fn words(query: &str) -> Vec<String> {
    let plain: Vec<&str> = query.split('"').step_by(2).collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let all = plain.join(" ");
    all.split(|c| !is_word(c)).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

/// Each query names metrics that there are, and labels that one of them has.
fn check(query: &str, known: &BTreeMap<String, BTreeSet<String>>) {
    const LANGUAGE: [&str; 18] = [
        "or",
        "on",
        "unless",
        "offset",
        "sum",
        "by",
        "rate",
        "histogram_quantile",
        "increase",
        "max",
        "min",
        "time",
        "avg",
        "without",
        "__rate_interval",
        "label_values",
        "irate",
        "count",
    ];
    let words = words(query);
    let metrics: Vec<&String> =
        words.iter().filter(|w| w.starts_with("weir_") || w.starts_with("process_")).collect();
    assert!(!metrics.is_empty(), "{query}");
    let mut labels = BTreeSet::new();
    for metric in &metrics {
        labels.extend(
            known.get(*metric).unwrap_or_else(|| panic!("{query}: there is no {metric}")).iter().cloned(),
        );
    }
    for word in &words {
        let is_number = word.chars().all(|c| c.is_ascii_digit())
            || word.trim_end_matches(['m', 's', 'd']).parse::<u32>().is_ok();
        let fits =
            metrics.contains(&word) || labels.contains(word) || LANGUAGE.contains(&&word[..]) || is_number;
        assert!(fits, "{query}: no label or function {word}");
    }
}

#[test]
fn alerts_and_dashboard_name_what_there_is() {
    let known = documented();
    let rules = text("deploy/prometheus/weir.rules.yml");
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(alerts.len(), rules.matches("- alert: ").count());
    alerts.iter().for_each(|query| check(query, &known));
    assert!(alerts.contains(&"weir_fleet_stale_seconds > 300"), "{alerts:?}");
    let board: serde_json::Value = serde_json::from_str(&text("deploy/grafana/weir.json")).expect("JSON");
    let panels = board["panels"].as_array().expect("panels");
    let queries = panels.iter().flat_map(|p| p["targets"].as_array().into_iter().flatten());
    let queries: Vec<&str> = queries.map(|t| t["expr"].as_str().expect("a query")).collect();
    assert!(queries.len() > 20);
    queries.iter().for_each(|query| check(query, &known));
    for metric in ["weir_fleet_members", "weir_fleet_stale_seconds", "weir_fleet_lists_total"] {
        assert!(queries.iter().any(|query| query.contains(metric)), "no panel has {metric}");
    }
}

#[test]
fn the_units_are_as_systemd_wants_them() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no systemd-analyze");
    }
    let scratch = Scratch::new("units");
    // It looks whether the program is there.
    let service = text("deploy/systemd/weir.service").replace("/usr/bin/weir", env!("CARGO_BIN_EXE_weir"));
    let unit = scratch.file("weir.service", service);
    scratch.file("weir.socket", text("deploy/systemd/weir.socket"));
    let ran = Command::new("systemd-analyze").args(["verify", "--man=no", &unit]).output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("weir.s")).collect();
    assert!(ours.is_empty(), "{said}");
}

#[test]
fn the_manifests_are_as_kubernetes_wants_them() {
    if Command::new("kubernetes-validate").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no kubernetes-validate");
    }
    let scratch = Scratch::new("manifests");
    let validate = |name: &str, manifest: String| {
        let file = scratch.file(name, manifest);
        let ran = Command::new("kubernetes-validate").args(["--strict", &file]).output().expect("it runs");
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        (ran.status.success(), said)
    };
    for (name, resources, key, wrong) in
        [("weir.yaml", 4, "replicas:", "replica:"), ("discovery.yaml", 3, "verbs:", "verb:")]
    {
        let manifest = text(&format!("deploy/kubernetes/{name}"));
        let (is_right, said) = validate(name, manifest.clone());
        assert!(is_right && said.matches("passed for resource").count() == resources, "{said}");
        // It is no check that anything passes.
        let (is_right, said) = validate(&format!("wrong-{name}"), manifest.replace(key, wrong));
        assert!(!is_right, "{said}");
    }
}

/// To list and watch EndpointSlices, and nothing else; the page of sources says the same.
#[test]
fn the_manifest_of_rights_grants_what_discovery_needs() {
    let manifest = text("deploy/kubernetes/discovery.yaml");
    let values = |key: &str| -> Vec<String> {
        let entries = manifest.lines().map(|line| line.trim().trim_start_matches("- "));
        entries.filter_map(|entry| entry.strip_prefix(key)).map(str::to_owned).collect()
    };
    let (groups, resources) = (r#"["discovery.k8s.io"]"#, r#"["endpointslices"]"#);
    let verbs = r#"["get", "list", "watch"]"#;
    assert_eq!(values("apiGroups: "), [groups]);
    assert_eq!(values("resources: "), [resources]);
    assert_eq!(values("verbs: "), [verbs]);
    let rule = format!("- {{apiGroups: {groups}, resources: {resources}, verbs: {verbs}}}\n");
    assert!(text("docs/discovery.md").contains(&rule), "{rule}");
}

#[test]
fn the_topology_of_the_config_map_can_be_served() {
    let manifest = text("deploy/kubernetes/weir.yaml");
    let after = manifest.split_once("weir.star: |\n").expect("it is there").1;
    let lines = after.lines().map_while(|line| line.strip_prefix("    "));
    let file: String = lines.map(|line| format!("{line}\n")).collect();
    let scratch = Scratch::new("config-map");
    run(&["check", "--serve", &scratch.file("weir.star", file)]).succeeds();
}
