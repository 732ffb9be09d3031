//! The askers that are known: ten thousand at most, of which the one that was silent longest goes.

use std::collections::{BTreeMap, BTreeSet};
use weir_policy::gate::{Answer, Asker, Flap, Place};

/// The most that are known.
pub(crate) const MOST: usize = 10_000;

/// What is known of one.
#[derive(Clone, Debug)]
pub(crate) struct AskerRecord {
    pub number: u32,
    pub place: Place,
    /// Its last answer; `None` before the first.
    pub last: Option<Answer>,
    /// Checks.
    pub asked: u64,
    /// The number of readings of the counter at the last check that was judged.
    readings: u64,
    /// When the last was, ns.
    pub last_ns: u64,
}

/// All of them.
pub(crate) struct Askers {
    flap: Flap,
    id: String,
    known: BTreeMap<String, AskerRecord>,
    /// By their last check.
    silent: BTreeSet<(u64, String)>,
    next: u32,
}

impl Askers {
    pub fn new(flap: Flap, id: &str) -> Askers {
        Askers { flap, id: id.to_owned(), known: BTreeMap::new(), silent: BTreeSet::new(), next: 0 }
    }

    /// Notes a check; returns its asker, and the number of one that is forgotten for it.
    pub fn ask(&mut self, now_ns: u64, text: &str) -> (Asker, Option<u32>) {
        let mut gone = None;
        if !self.known.contains_key(text) {
            if self.known.len() >= MOST
                && let Some((_, oldest)) = self.silent.pop_first()
            {
                gone = self.known.remove(&oldest).map(|known| known.number);
            }
            let place = Place::new(self.flap, &self.id, text);
            let known =
                AskerRecord { number: self.next, place, last: None, asked: 0, readings: 0, last_ns: now_ns };
            self.next = self.next.wrapping_add(1);
            self.known.insert(text.to_owned(), known);
        }
        let Some(known) = self.known.get_mut(text) else {
            // It was inserted above.
            return (Asker { number: u32::MAX, place: Place::new(self.flap, &self.id, text) }, gone);
        };
        self.silent.remove(&(known.last_ns, text.to_owned()));
        self.silent.insert((now_ns, text.to_owned()));
        known.last_ns = now_ns;
        known.asked += 1;
        (Asker { number: known.number, place: known.place }, gone)
    }

    /// Whether the counter was read since this was last true for an asker; then it is noted.
    pub fn meet_reading(&mut self, text: &str, readings: u64) -> bool {
        let Some(known) = self.known.get_mut(text) else { return false };
        std::mem::replace(&mut known.readings, readings) != readings
    }

    /// Notes its answer; returns whether that is its first, or differs from the last in whether it is healthy.
    pub fn answer(&mut self, text: &str, answer: Answer) -> bool {
        let Some(known) = self.known.get_mut(text) else { return false };
        let before = known.last.replace(answer);
        before.is_none_or(|before| before.is_healthy() != answer.is_healthy())
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &AskerRecord)> {
        self.known.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_silent_longest_is_forgotten() {
        let mut askers = Askers::new(Flap::Even, "a");
        for n in 0..MOST as u64 {
            assert_eq!(askers.ask(n, &format!("peer {n}")).1, None);
        }
        let first = askers.ask(MOST as u64, "peer 0").0.number;
        assert_eq!((first, askers.ask(20_000, "new").1, askers.len()), (0, Some(1), MOST));
        assert_eq!(askers.ask(20_001, "peer 1").1, Some(2));
    }

    #[test]
    fn first_answers_and_changes_are_news() {
        let mut askers = Askers::new(Flap::Even, "a");
        askers.ask(1, "a");
        let news = [Answer::Ramp, Answer::Unready, Answer::Healthy, Answer::Healthy, Answer::Held];
        assert_eq!(news.map(|answer| askers.answer("a", answer)), [true, false, true, false, true]);
    }
}
