//! The formats of a scrape, and the two text formats: Prometheus 0.0.4 and OpenMetrics 1.0.
//!
//! `prometheus-client` writes OpenMetrics alone, and by a dozen calls of a trait object for each value; the crates
//! that write the older format require their own counters, with a lock or an atomic on the path of a request. The
//! rest is names, labels and numbers, so it is written here.

use super::families::{FAMILIES, Family, Kind};
use super::histogram::BOUNDS;
use super::protobuf;
use super::sample::{Label, Sample, Value};
use std::fmt::Write as _;

/// The format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// `text/plain; version=0.0.4`.
    Prometheus,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
    /// `application/vnd.google.protobuf`, with native histograms beside.
    Protobuf,
}

impl Exposition {
    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Exposition::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Exposition::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// All series in a format.
pub(crate) fn exposed(all: &[Sample], format: Exposition) -> Vec<u8> {
    match format {
        Exposition::Protobuf => protobuf::write(all),
        Exposition::Prometheus | Exposition::OpenMetrics => write(all, format).into_bytes(),
    }
}

/// All series as text, in the order of their families.
fn write(all: &[Sample], format: Exposition) -> String {
    let mut text = String::with_capacity(128 * all.len() + 4096);
    let mut before = None;
    for sample in all {
        let family = &FAMILIES[sample.family as usize];
        if before.replace(sample.family) != Some(sample.family) {
            head(&mut text, family, format);
        }
        match &sample.value {
            Value::Histogram(observed) => {
                let mut buckets = observed.cumulative().into_iter();
                for (bound, count) in BOUNDS.iter().zip(&mut buckets) {
                    let bound = match format {
                        Exposition::OpenMetrics => bound,
                        _ => bound.strip_suffix(".0").unwrap_or(bound),
                    };
                    line(&mut text, family, "_bucket", &sample.labels, Some(bound));
                    whole(&mut text, count);
                }
                let count = buckets.next().unwrap_or_default();
                line(&mut text, family, "_bucket", &sample.labels, Some("+Inf"));
                whole(&mut text, count);
                line(&mut text, family, "_sum", &sample.labels, None);
                real(&mut text, observed.sum_s());
                line(&mut text, family, "_count", &sample.labels, None);
                whole(&mut text, count);
            }
            Value::Whole(value) => {
                line(&mut text, family, "", &sample.labels, None);
                whole(&mut text, *value);
            }
            Value::Real(value) => {
                line(&mut text, family, "", &sample.labels, None);
                real(&mut text, *value);
            }
        }
    }
    if format == Exposition::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

/// The lines before the series of a family.
fn head(text: &mut String, family: &Family, format: Exposition) {
    let (name, kind) = match (format, family.kind) {
        (Exposition::OpenMetrics, _) => (family.open_name(), kind(family)),
        (_, Kind::Info) => (family.name, "gauge"),
        _ => (family.name, kind(family)),
    };
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
    if let (Exposition::OpenMetrics, Some(unit)) = (format, family.unit()) {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
}

fn kind(family: &Family) -> &'static str {
    match family.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
        Kind::Info => "info",
    }
}

/// Name and labels, up to the blank before the value.
fn line(text: &mut String, family: &Family, ending: &str, labels: &[Label], bound: Option<&str>) {
    text.push_str(family.name);
    text.push_str(ending);
    let mut opening = '{';
    for (name, label) in family.labels.iter().zip(labels) {
        text.push(std::mem::replace(&mut opening, ','));
        text.push_str(name);
        text.push_str("=\"");
        match label {
            Label::Word(word) => text.push_str(word),
            Label::Name(name) => escape(text, name),
            Label::Number(number) => digits(text, u64::from(*number)),
            Label::None => {}
        }
        text.push('"');
    }
    if let Some(bound) = bound {
        text.push(std::mem::replace(&mut opening, ','));
        text.push_str("le=\"");
        text.push_str(bound);
        text.push('"');
    }
    text.push_str(if opening == '{' { " " } else { "} " });
}

fn whole(text: &mut String, value: u64) {
    digits(text, value);
    text.push('\n');
}

/// Nine places, without the zeros at their end.
fn real(text: &mut String, value: f64) {
    let begun = text.len();
    let _ = write!(text, "{value:.9}");
    let kept = text[begun..].trim_end_matches('0').trim_end_matches('.').len();
    text.truncate(begun + kept);
    text.push('\n');
}

fn digits(text: &mut String, value: u64) {
    let _ = write!(text, "{value}");
}

/// Names come from the file.
fn escape(text: &mut String, name: &str) {
    if !name.contains(['\\', '"', '\n']) {
        return text.push_str(name);
    }
    for c in name.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::families::Id;
    use crate::metrics::histogram::Histogram;
    use crate::metrics::sample::{Samples, merged};
    use std::sync::Arc;

    fn shown(format: Exposition) -> String {
        let (name, slow): (Arc<str>, _) = ("a \"b\"\\\n".into(), Histogram::default());
        slow.observe(250_000);
        let mut samples = Samples::default();
        samples.add(Id::BuildInfo, ["1.2".into()], 1);
        samples.add(Id::Requests, [(&name).into(), "GET".into(), 200.into(), "1.1".into()], 7);
        samples.add(Id::LoopLag, [], &slow);
        samples.add(Id::ProcessCpu, [], 1.25);
        write(&merged(std::iter::once(&samples)), format)
    }

    #[test]
    fn prometheus_has_help_and_type_of_what_samples_are_called() {
        let text = shown(Exposition::Prometheus);
        for line in [
            "# TYPE weir_build_info gauge",
            "weir_build_info{version=\"1.2\"} 1",
            "# TYPE weir_requests_total counter",
            "weir_requests_total{listener=\"a \\\"b\\\"\\\\\\n\",method=\"GET\",code=\"200\",protocol=\"1.1\"} 7",
            "weir_loop_lag_seconds_bucket{le=\"0.0002\"} 0",
            "weir_loop_lag_seconds_bucket{le=\"0.0004\"} 1",
            "weir_loop_lag_seconds_bucket{le=\"60\"} 1",
            "weir_loop_lag_seconds_bucket{le=\"+Inf\"} 1",
            "weir_loop_lag_seconds_sum 0.00025",
            "weir_loop_lag_seconds_count 1",
            "process_cpu_seconds_total 1.25",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
    }

    #[test]
    fn open_metrics_has_the_names_of_families_their_units_and_an_end() {
        let text = shown(Exposition::OpenMetrics);
        for line in [
            "# TYPE weir_build info",
            "# TYPE weir_requests counter",
            "# UNIT weir_loop_lag_seconds seconds",
            "# TYPE process_cpu_seconds counter",
            "# UNIT process_cpu_seconds seconds",
            "weir_loop_lag_seconds_bucket{le=\"60.0\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"), "{text}");
    }
}
