//! Stretches of time in words, on the page and in `weir admin`.

/// A stretch of time, in its two greatest units at most: `2 s`, `4 min`, `3 h 12 min`, `9 days`.
pub(crate) fn stretch(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min", s / 60),
        3600..86_400 => match (s / 3600, s % 3600 / 60) {
            (h, 0) => format!("{h} h"),
            (h, min) => format!("{h} h {min} min"),
        },
        _ => match s / 86_400 {
            1 => "1 day".to_owned(),
            days => format!("{days} days"),
        },
    }
}

/// How long ago an instant was; `now` and then are ms since 1970.
pub(crate) fn ago(now_unix_ms: u64, at_unix_ms: u64) -> String {
    match now_unix_ms.saturating_sub(at_unix_ms) {
        0..1000 => "now".to_owned(),
        ms => format!("{} ago", stretch(ms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_short() {
        let day = 86_400_000;
        assert_eq!(
            [0, 2_900, 60_000, 3_600_000, 11_520_000, day, 9 * day].map(stretch),
            ["0 s", "2 s", "1 min", "1 h", "3 h 12 min", "1 day", "9 days"]
        );
        assert_eq!([ago(5_000, 4_500), ago(5_000, 9_000), ago(65_000, 1_000)], ["now", "now", "1 min ago"]);
    }
}
