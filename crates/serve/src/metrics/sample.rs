//! The contents of a scrape: values of all threads with their labels; those of one series are combined.

use super::families::{FAMILIES, Id, Merge};
use super::histogram::{Histogram, HistogramCounts};
use std::cmp::Ordering;
use std::sync::Arc;

/// A label's value.
#[derive(Clone, Debug)]
pub(crate) enum Label {
    /// The family has no further label.
    None,
    Word(&'static str),
    Name(Arc<str>),
    Number(u32),
}

impl From<&'static str> for Label {
    fn from(word: &'static str) -> Label {
        Label::Word(word)
    }
}

impl From<&Arc<str>> for Label {
    fn from(name: &Arc<str>) -> Label {
        Label::Name(name.clone())
    }
}

impl From<u32> for Label {
    fn from(number: u32) -> Label {
        Label::Number(number)
    }
}

impl Label {
    fn text(&self) -> Option<&str> {
        match self {
            Label::Word(word) => Some(word),
            Label::Name(name) => Some(name),
            Label::None | Label::Number(_) => None,
        }
    }

    fn number(&self) -> u64 {
        if let Label::Number(number) = self { 1 + u64::from(*number) } else { 0 }
    }

    fn order(&self, other: &Label) -> Ordering {
        match (self, other) {
            (Label::Name(a), Label::Name(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            _ => self.text().cmp(&other.text()).then(self.number().cmp(&other.number())),
        }
    }
}

/// A series' value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
    Histogram(Box<HistogramCounts>),
}

impl From<u64> for Value {
    fn from(whole: u64) -> Value {
        Value::Whole(whole)
    }
}

impl From<f64> for Value {
    fn from(real: f64) -> Value {
        Value::Real(real)
    }
}

impl From<&Histogram> for Value {
    fn from(histogram: &Histogram) -> Value {
        Value::Histogram(Box::new(histogram.observed()))
    }
}

impl Value {
    fn merge(&mut self, other: &Value, by: Merge) {
        match (self, other) {
            (Value::Histogram(all), Value::Histogram(more)) => all.add(more),
            (Value::Whole(all), Value::Whole(more)) => {
                *all = match by {
                    // A negative value on one thread is compensated on another.
                    Merge::Sum => all.wrapping_add(*more),
                    Merge::Least => (*all).min(*more),
                    Merge::Most => (*all).max(*more),
                }
            }
            (Value::Real(all), Value::Real(more)) => {
                *all = match by {
                    Merge::Sum => *all + more,
                    Merge::Least => all.min(*more),
                    Merge::Most => all.max(*more),
                }
            }
            // A family has values of one sort.
            _ => {}
        }
    }
}

/// The most labels that a family has.
const LABELS: usize = 4;

/// One value of one thread.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub family: Id,
    pub labels: [Label; LABELS],
    pub value: Value,
}

impl Sample {
    fn order(&self, other: &Sample) -> Ordering {
        let labels = || {
            let mut pairs = self.labels.iter().zip(&other.labels).map(|(a, b)| a.order(b));
            pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        self.family.cmp(&other.family).then_with(labels)
    }
}

/// Samples that are added before more room is needed.
const CHUNK: usize = 1024;

/// The samples of one thread, in chunks: to grow one list of a million would copy it while requests wait.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Vec<Sample>>);

impl Samples {
    /// Adds a series of this family, with its labels in the family's order.
    pub fn add<const N: usize>(&mut self, family: Id, labels: [Label; N], value: impl Into<Value>) {
        debug_assert_eq!(N, FAMILIES[family as usize].labels.len(), "{family:?}");
        let mut all = [const { Label::None }; LABELS];
        for (place, label) in all.iter_mut().zip(labels) {
            *place = label;
        }
        let sample = Sample { family, labels: all, value: value.into() };
        match self.0.last_mut().filter(|chunk| chunk.len() < CHUNK) {
            Some(chunk) => chunk.push(sample),
            None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(sample);
                self.0.push(chunk);
            }
        }
    }
}

/// All series of these threads, each once, in the order of families and labels.
pub(crate) fn merged<'a>(threads: impl Iterator<Item = &'a Samples>) -> Vec<Sample> {
    let mut all: Vec<&Sample> = threads.flat_map(|samples| samples.0.iter().flatten()).collect();
    all.sort_by(|a, b| a.order(b));
    let mut series: Vec<Sample> = Vec::with_capacity(all.len());
    for sample in all {
        match series.last_mut().filter(|last| last.order(sample).is_eq()) {
            Some(last) => last.value.merge(&sample.value, FAMILIES[sample.family as usize].merge),
            None => series.push(sample.clone()),
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_of_several_threads_is_one() {
        let name: Arc<str> = "pool".into();
        let other: Arc<str> = "pool".into();
        let (mut one, mut two) = (Samples::default(), Samples::default());
        one.add(Id::AttemptsInFlight, [(&name).into(), "b".into()], 3);
        one.add(Id::AttemptsInFlight, [(&name).into(), "a".into()], 1);
        one.add(Id::TargetEligible, [(&name).into(), "a".into()], 1);
        two.add(Id::AttemptsInFlight, [(&other).into(), "b".into()], 2_u64.wrapping_neg());
        two.add(Id::TargetEligible, [(&other).into(), "a".into()], 0);
        two.add(Id::LoopBusy, [7.into()], 0.5);
        let all = merged([&one, &two].into_iter());
        let seen: Vec<(Id, Option<&str>, &Value)> =
            all.iter().map(|s| (s.family, s.labels[1].text(), &s.value)).collect();
        assert!(
            matches!(
                seen[..],
                [
                    (Id::AttemptsInFlight, Some("a"), Value::Whole(1)),
                    (Id::AttemptsInFlight, Some("b"), Value::Whole(1)),
                    (Id::TargetEligible, Some("a"), Value::Whole(0)),
                    (Id::LoopBusy, None, Value::Real(0.5)),
                ]
            ),
            "{seen:?}"
        );
    }
}
