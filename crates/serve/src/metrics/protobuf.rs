//! The protobuf format of Prometheus (`io.prometheus.client.MetricFamily`, each with its length before it): the
//! format in which native histograms are scraped. Scrapers that accept it get them beside the bounds that all formats
//! have.

use super::families::{FAMILIES, Family, Kind};
use super::histogram::{BOUNDS, HistogramCounts};
use super::native;
use super::sample::{Label, Sample, Value};
use prost::Message;
use prost::bytes::Bytes;

// Field by field as in prometheus/client_model, metrics.proto; texts are bytes on the wire, and need no copy here.

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(bytes = "bytes", tag = "1")]
    name: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct One {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    upper_bound: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(sint32, optional, tag = "1")]
    offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    length: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<Span>,
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<One>,
    #[prost(message, optional, tag = "3")]
    counter: Option<One>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(bytes = "bytes", tag = "1")]
    name: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    help: Bytes,
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
}

/// All series, in the order of their families.
pub(crate) fn write(all: &[Sample]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96 * all.len() + 4096);
    for of_family in all.chunk_by(|a, b| a.family == b.family) {
        let Some(family) = of_family.first().map(|sample| &FAMILIES[sample.family as usize]) else {
            continue;
        };
        let written = MetricFamily {
            name: Bytes::from_static(family.name.as_bytes()),
            help: Bytes::from_static(family.help.as_bytes()),
            kind: Some(number(family.kind)),
            metric: of_family.iter().map(|sample| metric(family, sample)).collect(),
        };
        // A vector grows as it must.
        let _ = written.encode_length_delimited(&mut bytes);
    }
    bytes
}

/// The number of a family's type.
fn number(kind: Kind) -> i32 {
    match kind {
        Kind::Counter => 0,
        Kind::Gauge | Kind::Info => 1,
        Kind::Histogram => 4,
    }
}

fn metric(family: &Family, sample: &Sample) -> Metric {
    let one = |value: f64| Some(One { value: Some(value) });
    let value = match &sample.value {
        Value::Whole(whole) => one(*whole as f64),
        Value::Real(real) => one(*real),
        Value::Histogram(_) => None,
    };
    let (gauge, counter) = if family.kind == Kind::Counter { (None, value) } else { (value, None) };
    let label = family
        .labels
        .iter()
        .zip(&sample.labels)
        .map(|(name, label)| LabelPair { name: Bytes::from_static(name.as_bytes()), value: text(label) });
    let histogram = match &sample.value {
        Value::Histogram(observed) => Some(histogram(observed)),
        _ => None,
    };
    Metric { label: label.collect(), gauge, counter, histogram }
}

fn text(label: &Label) -> Bytes {
    match label {
        Label::None => Bytes::new(),
        Label::Word(word) => Bytes::from_static(word.as_bytes()),
        Label::Name(name) => Bytes::copy_from_slice(name.as_bytes()),
        Label::Number(number) => number.to_string().into(),
    }
}

fn histogram(observed: &HistogramCounts) -> Histogram {
    let cumulative = observed.cumulative();
    let bound = |(bound, count): (&&str, u64)| Bucket {
        cumulative_count: Some(count),
        upper_bound: bound.parse().ok(),
    };
    let (mut positive_span, mut positive_delta) = (Vec::new(), Vec::new());
    let (mut end, mut before) = (0, 0);
    for (first, run) in native::runs(&observed.native) {
        positive_span.push(Span { offset: Some(first - end), length: Some(run.len() as u32) });
        end = first + run.len() as i32;
        for count in run {
            // Each as the difference to the one before it.
            let count = count as i64;
            positive_delta.push(count - std::mem::replace(&mut before, count));
        }
    }
    Histogram {
        sample_count: cumulative.last().copied(),
        sample_sum: Some(observed.sum_s()),
        bucket: BOUNDS.iter().zip(cumulative).map(bound).collect(),
        schema: Some(native::SCHEMA),
        zero_threshold: Some(native::ZERO_S),
        zero_count: Some(native::zeros(&observed.native)),
        positive_span,
        positive_delta,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::families::Id;
    use crate::metrics::histogram::Histogram as Observing;
    use crate::metrics::sample::{Samples, merged};
    use std::sync::Arc;

    /// The output is parsed again, with the same counts in both kinds of buckets.
    #[test]
    fn families_stand_behind_their_lengths() {
        let (name, slow): (Arc<str>, _) = ("a \"b\"".into(), Observing::default());
        [0, 250_000, 250_000, 2_000_000_000].into_iter().for_each(|ns| slow.observe(ns));
        let mut samples = Samples::default();
        samples.add(Id::Requests, [(&name).into(), "GET".into(), 200.into(), "1.1".into()], 7);
        samples.add(Id::RequestDuration, [(&name).into()], &slow);
        samples.add(Id::ProcessCpu, [], 1.25);
        let written = write(&merged(std::iter::once(&samples)));
        let mut rest = &written[..];
        let mut families = Vec::new();
        while !rest.is_empty() {
            families.push(MetricFamily::decode_length_delimited(&mut rest).expect("a family"));
        }
        let names: Vec<&[u8]> = families.iter().map(|f| &f.name[..]).collect();
        let all: [&[u8]; 3] =
            [b"weir_requests_total", b"weir_request_duration_seconds", b"process_cpu_seconds_total"];
        assert_eq!(names, all);
        let requests = &families[0].metric[0];
        assert_eq!((requests.counter.as_ref().and_then(|c| c.value), &requests.gauge), (Some(7.0), &None));
        assert_eq!(
            (&requests.label[0].value[..], &requests.label[2].value[..]),
            (&b"a \"b\""[..], &b"200"[..])
        );
        let histogram = families[1].metric[0].histogram.as_ref().expect("a histogram");
        assert_eq!((histogram.sample_count, histogram.zero_count), (Some(4), Some(1)));
        let spans = histogram.positive_span.iter().map(|s| (s.offset, s.length)).collect::<Vec<_>>();
        // 250 us are above 2^-12 s, 2 s in the bucket that ends there.
        assert_eq!(spans, [(Some(-95), Some(1)), (Some(102), Some(1))]);
        assert_eq!(histogram.positive_delta, [2, -1]);
        assert_eq!(histogram.bucket.iter().filter_map(|b| b.cumulative_count).max(), Some(4));
    }
}
