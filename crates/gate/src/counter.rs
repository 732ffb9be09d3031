//! The sum of a counter in a page of Prometheus or OpenMetrics.

/// Families that are looked for where none is named, the first there is.
const KNOWN: [&str; 3] = ["http_requests_total", "http_server_requests_seconds_count", "weir_requests_total"];

/// The sum of a family's samples; `None`: there is none that is a number.
pub(crate) fn sum(page: &str, family: Option<&str>) -> Option<u64> {
    match family {
        Some(family) => sum_of(page, family),
        None => KNOWN.iter().find_map(|family| sum_of(page, family)),
    }
}

fn sum_of(page: &str, family: &str) -> Option<u64> {
    let samples = page.lines().filter_map(|line| sample(line.trim(), family));
    let (sum, any) = samples.fold((0.0, false), |(sum, _), value| (sum + value, true));
    // A count is below 2⁵³, or no sum of doubles is exact.
    (any && sum >= 0.0).then_some(sum as u64)
}

/// The value of a line, if it is a sample of the family: `name{labels} value [time]`. A counter of OpenMetrics may leave out
/// `_total` where it is named.
fn sample(line: &str, family: &str) -> Option<f64> {
    let rest = line.strip_prefix(family)?;
    let rest = rest.strip_prefix("_total").filter(|_| !family.ends_with("_total")).unwrap_or(rest);
    let rest = match rest.strip_prefix('{') {
        Some(labels) => behind_labels(labels)?,
        None => rest.strip_prefix([' ', '\t'])?,
    };
    rest.split_whitespace().next()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// What is behind the brace that ends the labels; one in a quoted value ends nothing.
fn behind_labels(labels: &str) -> Option<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in labels.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => return labels.get(at + 1..),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP http_requests_total Requests.
# TYPE http_requests_total counter
http_requests_total{code=\"200\",path=\"/a } b\\\" \"} 1027 1395066363000
http_requests_total{code=\"400\"}    3
http_requests_total_other 99
jetty_requests 5
jetty_requests_total{a=\"b\"} 7.0
weir_requests_total 12
broken{ 1
nan NaN
";

    #[test]
    fn samples_of_a_family_are_summed() {
        for (family, wanted) in [
            (None, Some(1030)),
            (Some("http_requests_total"), Some(1030)),
            (Some("http_requests"), Some(1030)),
            (Some("jetty_requests"), Some(12)),
            (Some("weir_requests_total"), Some(12)),
            (Some("broken"), None),
            (Some("nan"), None),
            (Some("absent"), None),
        ] {
            assert_eq!(sum(PAGE, family), wanted, "{family:?}");
        }
        assert_eq!(sum("weir_requests_total{listener=\"a\"} 5\n", None), Some(5));
        assert_eq!(sum("", None), None);
    }
}
