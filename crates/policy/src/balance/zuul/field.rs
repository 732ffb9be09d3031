//! The load that a target reports in a field of its answers.
//!
//! Three forms are read: a share, `0.37`; ORCA's text, `TEXT cpu_utilization=0.37`, in which `application_utilization`
//! comes first; and Netflix's percentages, `37, target=80`, whose target is not used. More than 1 counts as 1. Anything
//! else (a negative number, `NaN`, a field of more than [`MOST_BYTES`]) is no load. Of several fields of the name the first
//! that can be read counts. Nothing is allocated.
//!
//! Sources: the Open Request Cost Aggregation format as Envoy and gRPC read it (`endpoint-load-metrics`, gRPC proposal
//! A51); `X-Netflix.server.utilization` of "Rethinking Netflix's Edge Load Balancing" (2018).

/// The field that is read if the file names none.
pub const LOAD_FIELD: &str = "x-load";
/// A longer field is not read.
const MOST_BYTES: usize = 1024;
/// What ORCA's text begins with.
const ORCA: &str = "TEXT ";
/// ORCA's metrics that are a load, the better one first.
const METRICS: [&str; 2] = ["application_utilization", "cpu_utilization"];

/// The load in the first of these fields that can be read, 0 to 1; `None`: none can.
pub fn first_load<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Option<f32> {
    fields.filter_map(load).next()
}

/// The load in a field, 0 to 1; `None`: it cannot be read.
pub fn load(field: &[u8]) -> Option<f32> {
    if field.len() > MOST_BYTES {
        return None;
    }
    let text = std::str::from_utf8(field).ok()?.trim_ascii();
    if let Some(metrics) = text.strip_prefix(ORCA) {
        return METRICS.iter().find_map(|name| metric(metrics, name));
    }
    match text.split_once(',') {
        None => number(text),
        Some((percent, target)) => {
            number(target.trim_ascii().strip_prefix("target=")?)?;
            percentage(percent)
        }
    }
}

/// A metric of ORCA's text.
fn metric(metrics: &str, name: &str) -> Option<f32> {
    let pairs = metrics.split(',').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| key.trim_ascii() == name).find_map(|(_, value)| number(value))
}

/// A number of 0 or more, at most 1; more counts as 1.
fn number(text: &str) -> Option<f32> {
    Some(real(text)?.min(1.0) as f32)
}

fn percentage(text: &str) -> Option<f32> {
    Some((real(text)? / 100.0).min(1.0) as f32)
}

/// A number without a sign.
fn real(text: &str) -> Option<f64> {
    let text = text.trim_ascii();
    // Words such as `inf` are numbers to Rust.
    if !text.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms() {
        for text in [
            "0.37",
            " 0.37 ",
            "37e-2",
            ".37",
            "TEXT cpu_utilization=0.37",
            "TEXT mem_utilization=0.9, cpu_utilization=0.37",
            "TEXT cpu_utilization=0.8,application_utilization=0.37,named_metrics.queue=12",
            "TEXT application_utilization=none,cpu_utilization=0.37",
            "37, target=80",
            "37,target=80",
            "37.0, target=150",
        ] {
            assert_eq!(load(text.as_bytes()), Some(0.37), "{text}");
        }
        assert_eq!(load(b"0"), Some(0.0));
        assert_eq!(load(b"0, target=80"), Some(0.0));
    }

    #[test]
    fn more_than_1_counts_as_1() {
        for text in ["1", "1.5", "1e9", "1e999", "37", "TEXT cpu_utilization=3", "250, target=80"] {
            assert_eq!(load(text.as_bytes()), Some(1.0), "{text}");
        }
    }

    #[test]
    fn what_is_no_load() {
        for text in [
            "",
            " ",
            "-1",
            "-0.5",
            "+0.5",
            "NaN",
            "nan",
            "inf",
            "infinity",
            "none",
            "0.3.7",
            "0,37",
            "0.3, 0.4",
            "37%",
            "37; target=80",
            "37, target=",
            "37, target=much",
            "-3, target=80",
            "TEXT",
            "TEXT mem_utilization=0.3",
            "TEXT cpu_utilization=-1",
            "TEXT cpu_utilization",
            "text cpu_utilization=0.3",
            "JSON {\"cpu_utilization\": 0.3}",
        ] {
            assert_eq!(load(text.as_bytes()), None, "{text}");
        }
        assert_eq!(load(b"0.3\xff"), None);
        assert_eq!(load(&[b'0'; 10_240]), None);
        assert_eq!(load(format!("TEXT cpu_utilization=0.3,{}", "x=1,".repeat(2_500)).as_bytes()), None);
    }

    #[test]
    fn of_several_the_first_that_can_be_read() {
        let of = |fields: &[&'static str]| first_load(fields.iter().map(|field| field.as_bytes()));
        assert_eq!(of(&["0.3", "0.4"]), Some(0.3));
        assert_eq!(of(&["NaN", "0.4", "0.5"]), Some(0.4));
        assert_eq!(of(&["NaN", "-1"]), None);
        assert_eq!(of(&[]), None);
    }
}
