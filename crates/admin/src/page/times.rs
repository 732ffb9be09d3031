//! Instants on the page. All are UTC, as in logs.

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
    fn instants_are_short() {
        let day = 86_400_000;
        let at = 1_795_662_724_000;
        assert_eq!(clock(at + 1, at), "03:12:04");
        assert_eq!((clock(at + day, at), date(at)), ("26 Nov 03:12:04".to_owned(), "26 Nov 2026".to_owned()));
    }
}
