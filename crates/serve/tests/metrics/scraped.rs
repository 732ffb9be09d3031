//! A scrape as a test reads it, and the lines of an access log.

use super::common::RunningBalancer;
use std::collections::BTreeMap;
use std::path::PathBuf;
use weir_serve::Exposition;

/// Series by their name with labels, as they are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Scraped(pub BTreeMap<String, f64>);

impl Scraped {
    /// What is said now.
    pub fn new(served: &RunningBalancer) -> Scraped {
        let text = served.scrape(Exposition::Prometheus);
        let line = |line: &str| {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            (series.to_owned(), value.parse().expect("a number"))
        };
        Scraped(text.lines().filter(|l| !l.starts_with('#')).map(line).collect())
    }

    /// A series; 0 where there is none.
    pub fn get(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or(0.0)
    }

    /// All of a family whose labels have this text.
    pub fn sum(&self, family: &str, with: &str) -> f64 {
        self.each(family).filter(|(labels, _)| labels.contains(with)).map(|(_, value)| value).sum()
    }

    /// The series of a family: the text in the braces, and the value.
    pub fn each<'a>(&'a self, family: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.iter().filter_map(move |(series, value)| {
            let labels = series.strip_prefix(family)?;
            if labels.is_empty() {
                return Some(("", *value));
            }
            Some((labels.strip_prefix('{')?.strip_suffix('}')?, *value))
        })
    }

    /// The same as a map.
    pub fn all(&self, family: &str) -> BTreeMap<String, f64> {
        self.each(family).map(|(labels, value)| (labels.to_owned(), value)).collect()
    }
}

/// The file of an access log, which goes with the test.
pub struct LogFile(PathBuf);

impl LogFile {
    /// One of this name.
    pub fn new(name: &str) -> LogFile {
        LogFile(std::env::temp_dir().join(format!("weir-metrics-{}-{name}.log", std::process::id())))
    }

    /// Where it is.
    pub fn path(&self) -> String {
        self.0.display().to_string()
    }

    /// Its lines.
    pub fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A field of a line, without quotes; `null` is none.
pub fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.split_once(&format!("\"{name}\":"))?.1;
    let end =
        rest.strip_prefix('"').map_or_else(|| rest.find([',', '}']), |text| text.find('"').map(|at| at + 2));
    let value = rest[..end?].trim_matches('"');
    (value != "null").then_some(value)
}
