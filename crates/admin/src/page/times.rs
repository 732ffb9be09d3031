//! Instants and stretches of time on the page. All are UTC, as in logs.

/// A stretch of time, in its two greatest units at most: `2 s`, `4 min`, `3 h 12 min`, `9 days`.
pub(super) fn stretch(ms: u64) -> String {
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
pub(super) fn ago(now_unix_ms: u64, at_unix_ms: u64) -> String {
    match now_unix_ms.saturating_sub(at_unix_ms) {
        0..1000 => "now".to_owned(),
        ms => format!("{} ago", stretch(ms)),
    }
}

/// The time of day, with the date if that is another: `03:12:04`, `25 Nov 03:12:04`.
pub(super) fn clock(now_unix_ms: u64, at_unix_ms: u64) -> String {
    // `Thu, 26 Nov 2026 03:12:04 GMT`
    let date = crate::topology::format_time(at_unix_ms);
    let (day, time) = (date.get(5..11).unwrap_or_default(), date.get(17..25).unwrap_or_default());
    if now_unix_ms / 86_400_000 == at_unix_ms / 86_400_000 {
        time.to_owned()
    } else {
        format!("{day} {time}")
    }
}

/// The date: `26 Nov 2026`.
pub(super) fn date(unix_ms: u64) -> String {
    crate::topology::format_time(unix_ms).get(5..16).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let day = 86_400_000;
        assert_eq!(
            [0, 2_900, 60_000, 3_600_000, 11_520_000, day, 9 * day].map(stretch),
            ["0 s", "2 s", "1 min", "1 h", "3 h 12 min", "1 day", "9 days"]
        );
        assert_eq!([ago(5_000, 4_500), ago(5_000, 9_000), ago(65_000, 1_000)], ["now", "now", "1 min ago"]);
        let at = 1_795_662_724_000;
        assert_eq!(clock(at + 1, at), "03:12:04");
        assert_eq!((clock(at + day, at), date(at)), ("26 Nov 03:12:04".to_owned(), "26 Nov 2026".to_owned()));
    }
}
