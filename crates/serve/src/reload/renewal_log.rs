//! What the error log says of certificates that follow their files: what was renewed, in one line at most once a
//! second; files that cannot be used, once that has lasted ten seconds (a certificate may come before its key), and
//! once they can be again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use weir_net::transport::tls::{CannotUse, Renewal};

/// Renewals are said at most once in this time.
const APART: Duration = Duration::from_secs(1);

/// How long the other half of a pair is waited for in silence.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lines that are to be written.
#[derive(Debug, Default)]
pub(super) struct RenewalLog {
    lines: Vec<String>,
    /// Parts that were renewed since the last line.
    renewed: BTreeSet<String>,
    said: Option<Instant>,
    /// Parts whose files cannot be used.
    troubles: BTreeMap<String, Trouble>,
}

/// Why a part cannot be used.
#[derive(Debug)]
struct Trouble {
    since: Instant,
    why: CannotUse,
    is_said: bool,
}

impl RenewalLog {
    /// Notes parts that were read again. One of several listeners and servers is noted once.
    pub(super) fn note(&mut self, renewals: &[Renewal], now: Instant) {
        let mut parts: BTreeMap<&str, Option<&CannotUse>> = BTreeMap::new();
        for renewal in renewals {
            if renewal.has_changed() {
                self.renewed.insert(renewal.part.clone());
            }
            let why = parts.entry(&renewal.part).or_default();
            *why = why.or(renewal.result.as_ref().err());
        }
        for (part, why) in parts {
            let Some(why) = why else {
                let trouble = self.troubles.remove(part);
                if trouble.is_some_and(|trouble| trouble.is_said) {
                    self.lines.push(format!("{part}: its files can be used again"));
                }
                continue;
            };
            let new = || Trouble { since: now, why: why.clone(), is_said: false };
            self.troubles.entry(part.to_owned()).or_insert_with(new).why = why.clone();
        }
    }

    /// Notes that a line is to be written at once.
    pub(super) fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Forgets parts that cannot be used: others are followed from now on.
    pub(super) fn forget(&mut self) {
        self.troubles.clear();
    }

    /// When there is something to write; `None`: nothing will be.
    pub(super) fn due(&self, now: Instant) -> Option<Duration> {
        let lines = (!self.lines.is_empty()).then_some(Duration::ZERO);
        let renewed = (!self.renewed.is_empty()).then(|| self.wait(now));
        let troubles = self.troubles.values().filter(|trouble| !trouble.is_said);
        let troubles = troubles.map(|trouble| (trouble.since + PATIENCE).saturating_duration_since(now));
        troubles.chain(lines).chain(renewed).min()
    }

    /// Takes the lines that are due.
    pub(super) fn take(&mut self, now: Instant) -> Vec<String> {
        let mut lines = std::mem::take(&mut self.lines);
        for (part, trouble) in &mut self.troubles {
            if trouble.is_said || now < trouble.since + PATIENCE {
                continue;
            }
            trouble.is_said = true;
            lines.push(format!("{part} is not renewed: {}\nthe former one serves until then", trouble.why));
        }
        if !self.renewed.is_empty() && self.wait(now).is_zero() {
            self.said = Some(now);
            let mut renewed = std::mem::take(&mut self.renewed).into_iter();
            let first = renewed.next().unwrap_or_default();
            lines.push(match renewed.count() {
                0 => format!("{first} renewed"),
                1 => format!("{first} renewed; so is 1 more"),
                n => format!("{first} renewed; so are {n} more"),
            });
        }
        lines
    }

    fn wait(&self, now: Instant) -> Duration {
        self.said.map_or(Duration::ZERO, |said| (said + APART).saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renewal(name: &str, result: Result<bool, &str>) -> Renewal {
        let result = result.map_err(|why| CannotUse(why.to_owned()));
        Renewal { part: format!("certificate \"{name}\""), files: Vec::new(), result }
    }

    /// A log, and the time.
    struct TimedLog {
        log: RenewalLog,
        start: Instant,
    }

    impl TimedLog {
        fn new() -> TimedLog {
            TimedLog { log: RenewalLog::default(), start: Instant::now() }
        }

        /// The lines that are due at this instant behind these renewals, and when the next ones are, both in ms.
        fn read(&mut self, ms: u64, renewals: &[Renewal]) -> (Vec<String>, Option<u64>) {
            let now = self.start + Duration::from_millis(ms);
            self.log.note(renewals, now);
            let lines = self.log.take(now);
            (lines, self.log.due(now).map(|due| u64::try_from(due.as_millis()).expect("a short time")))
        }
    }

    fn said(line: &str) -> Vec<String> {
        vec![line.to_owned()]
    }

    #[test]
    fn renewals_are_said_once_a_second() {
        let mut log = TimedLog::new();
        assert_eq!(log.read(0, &[renewal("a", Ok(false))]), (vec![], None));
        let a = || renewal("a", Ok(true));
        assert_eq!(log.read(100, &[a(), a()]), (said("certificate \"a\" renewed"), None));
        assert_eq!(log.read(400, &[a(), renewal("b", Ok(true))]), (vec![], Some(700)));
        assert_eq!(log.read(600, &[renewal("c", Ok(true)), a()]), (vec![], Some(500)));
        assert_eq!(log.read(1100, &[]), (said("certificate \"a\" renewed; so are 2 more"), None));
    }

    #[test]
    fn only_what_lasts_is_said_and_once_that_it_is_over() {
        let mut log = TimedLog::new();
        let bad = || renewal("a", Err("the key does not match"));
        assert_eq!(log.read(0, &[bad()]), (vec![], Some(10_000)));
        // Its other half has come.
        assert_eq!(log.read(9_999, &[renewal("a", Ok(true))]), (said("certificate \"a\" renewed"), None));
        assert_eq!(log.read(20_000, &[bad()]), (vec![], Some(10_000)));
        assert_eq!(log.read(25_000, &[renewal("a", Err("there is no such file"))]), (vec![], Some(5_000)));
        let line =
            "certificate \"a\" is not renewed: there is no such file\nthe former one serves until then";
        assert_eq!(log.read(30_000, &[]), (said(line), None));
        assert_eq!(log.read(90_000, &[bad()]), (vec![], None));
        // Of two listeners one has read it in time.
        assert_eq!(log.read(91_000, &[renewal("a", Ok(false)), bad()]), (vec![], None));
        let well = "certificate \"a\": its files can be used again";
        assert_eq!(log.read(92_000, &[renewal("a", Ok(false))]), (said(well), None));
        assert_eq!(log.read(93_000, &[bad()]), (vec![], Some(10_000)));
        log.log.forget();
        assert_eq!(log.read(110_000, &[]), (vec![], None));
    }
}
