//! The exposition, as a scraper reads it.

use super::common::{Origin, get, serve_node};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use weir_serve::Exposition;

fn scraped(format: Exposition) -> String {
    let origin = Origin::named("a");
    let served = serve_node(&format!(
        "retry(2, lb.p2c([server(\"a\", addr=\"{}\")], name=\"a \\\"b\\\"\"))",
        origin.addr
    ));
    assert_eq!(get(&served.addr, "/").status, 200);
    served.scrape(format)
}

/// Each family once, its samples behind it, each series once.
#[test]
fn families_stand_together() {
    for format in [Exposition::Prometheus, Exposition::OpenMetrics] {
        let text = scraped(format);
        let (mut family, mut families, mut series) = (String::new(), BTreeSet::new(), BTreeSet::new());
        for line in text.lines() {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next()) {
                (Some("#"), Some("TYPE"), Some(name)) => {
                    name.clone_into(&mut family);
                    assert!(families.insert(family.clone()), "{family} stands there twice");
                }
                (Some("#"), Some("HELP" | "UNIT" | "EOF"), _) => {}
                _ => {
                    assert!(line.starts_with(&family), "{line} is of no {family}");
                    let (one, value) = line.rsplit_once(' ').expect("a value");
                    assert!(value.parse::<f64>().is_ok_and(|v| v >= 0.0), "{line}");
                    assert!(series.insert(one.to_owned()), "{one} stands there twice");
                }
            }
        }
        assert!(families.len() > 20 && series.len() > 50, "{text}");
        assert!(text.contains("pool=\"a \\\"b\\\"\""), "{text}");
        assert_eq!(text.ends_with("# EOF\n"), format == Exposition::OpenMetrics);
    }
}

/// Where Prometheus' own tool is installed it has the last word.
#[test]
fn promtool_finds_nothing() {
    promtool(&scraped(Exposition::Prometheus));
}

/// Has it judge a scrape.
pub fn promtool(text: &str) {
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tool) = tool else { return };
    tool.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let said = tool.wait_with_output().expect("it ends");
    let words = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success() && words.trim().is_empty(), "{words}");
}
