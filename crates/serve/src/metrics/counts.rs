//! Plain counters of one thread, single or by one of a few values.

use std::cell::Cell;
use weir_policy::{Kind, Outcome};

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Count(Cell<u64>);

impl Count {
    /// Adds one.
    #[inline]
    pub fn one(&self) {
        self.add(1);
    }

    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.set(self.0.get().wrapping_add(n));
    }

    /// Subtracts one, for values that go up and down.
    #[inline]
    pub fn less(&self) {
        self.0.set(self.0.get().wrapping_sub(1));
    }

    /// The value.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// A value of a label that has only a few.
pub(crate) trait Value: Copy + 'static {
    /// All of them, in their order.
    const ALL: &'static [Self];

    /// Its index.
    fn index(self) -> usize;

    /// Its name in the label.
    fn name(self) -> &'static str;
}

/// Counters by a value of `N`.
#[derive(Debug)]
pub(crate) struct CountsBy<V, const N: usize>([Count; N], std::marker::PhantomData<V>);

impl<V, const N: usize> Default for CountsBy<V, N> {
    fn default() -> CountsBy<V, N> {
        CountsBy(std::array::from_fn(|_| Count::default()), std::marker::PhantomData)
    }
}

impl<V: Value, const N: usize> CountsBy<V, N> {
    /// Adds one to this value.
    #[inline]
    pub fn one(&self, value: V) {
        self.add(value, 1);
    }

    /// Adds `n`.
    #[inline]
    pub fn add(&self, value: V, n: u64) {
        if let Some(count) = self.0.get(value.index()) {
            count.add(n);
        }
    }

    /// The count of this value.
    pub fn get(&self, value: V) -> u64 {
        self.0.get(value.index()).map_or(0, Count::get)
    }

    /// The total.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(Count::get).sum()
    }

    /// The non-zero counts.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let all = V::ALL.iter().zip(&self.0);
        all.map(|(value, count)| (value.name(), count.get())).filter(|(_, count)| *count > 0)
    }
}

/// Values of a label: an enum with their names.
macro_rules! values {
    ($(#[$doc:meta])* $name:ident { $($(#[$one:meta])* $value:ident $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$one])* $value),* }

        impl $crate::metrics::counts::Value for $name {
            const ALL: &'static [$name] = &[$($name::$value),*];

            #[inline]
            fn index(self) -> usize {
                self as usize
            }

            fn name(self) -> &'static str {
                match self { $($name::$value => $text),* }
            }
        }

        impl $name {
            /// Their number.
            pub const COUNT: usize = [$($text),*].len();
        }
    };
}
pub(crate) use values;

/// How something ended: well, or with an error of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutcomeLabel(pub Outcome);

/// The number of outcomes.
pub(crate) const OUTCOMES: usize = Kind::ALL.len() + 1;

impl Value for OutcomeLabel {
    const ALL: &'static [OutcomeLabel] = &{
        let mut all = [OutcomeLabel(None); OUTCOMES];
        let mut at = 0;
        while at < Kind::ALL.len() {
            all[at + 1] = OutcomeLabel(Some(Kind::ALL[at]));
            at += 1;
        }
        all
    };

    #[inline]
    fn index(self) -> usize {
        self.0.map_or(0, |kind| kind as usize + 1)
    }

    fn name(self) -> &'static str {
        self.0.map_or("ok", Kind::name)
    }
}

/// Counters by outcome.
pub(crate) type Outcomes = CountsBy<OutcomeLabel, OUTCOMES>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_place() {
        for (at, ended) in OutcomeLabel::ALL.iter().enumerate() {
            assert_eq!(ended.index(), at, "{}", ended.name());
        }
        let outcomes = Outcomes::default();
        outcomes.one(OutcomeLabel(None));
        outcomes.add(OutcomeLabel(Some(Kind::Lost)), 2);
        assert_eq!(outcomes.each().collect::<Vec<_>>(), [("ok", 1), ("lost", 2)]);
        assert_eq!(outcomes.sum(), 3);
    }
}
