//! `subset.loops` in its most literal form, written from the contract: [`super::loops`] must do the same.

use super::LoopsArgs;
use crate::TargetId;

/// A target that is there: when it joined, and its subset.
#[derive(Clone, Copy, Debug)]
pub(super) struct NaiveMember {
    pub target: TargetId,
    pub subset: u32,
    joined: usize,
}

/// A list of targets in no order, and nothing else.
#[derive(Clone, Debug)]
pub(super) struct Naive {
    args: LoopsArgs,
    loops: u32,
    pub count: u32,
    pub members: Vec<NaiveMember>,
    joined: usize,
    pub moves: u64,
}

/// The least prime factor, or 1.
fn least_factor(n: u32) -> u32 {
    (2..=n).find(|factor| n.is_multiple_of(*factor)).unwrap_or(1)
}

/// The prime factors up to a number of subsets, in the order in which it is divided.
fn factors(loops: u32, count: u32) -> Vec<u32> {
    let (mut all, mut left, mut now) = (Vec::new(), loops, 1);
    while now < count {
        let factor = least_factor(left);
        left /= factor;
        now *= factor;
        all.push(factor);
    }
    all
}

impl Naive {
    pub fn new(args: LoopsArgs, loops: u32, shuffled: &[TargetId]) -> Naive {
        let n = shuffled.len() as f64;
        let mut naive = Naive { args, loops, count: 1, members: Vec::new(), joined: 0, moves: 0 };
        while n / f64::from(naive.count) > f64::from(args.max) && naive.next() > naive.count {
            naive.count = naive.next();
        }
        if n / f64::from(naive.count) < f64::from(args.min) {
            naive.count = naive.before();
        }
        shuffled.iter().for_each(|target| naive.join(*target));
        naive
    }

    /// The next greater number of subsets, or this one.
    fn next(&self) -> u32 {
        self.count * least_factor(self.loops / self.count)
    }

    /// The next smaller one, or this one.
    fn before(&self) -> u32 {
        let factors = factors(self.loops, self.count);
        self.count / factors.last().copied().unwrap_or(1)
    }

    pub fn size(&self, subset: u32) -> usize {
        self.members.iter().filter(|member| member.subset == subset).count()
    }

    /// The subsets from the first to the last of the order: sorted by the digits of their numbers, the last of which
    /// count most.
    fn order(&self) -> Vec<u32> {
        let factors = factors(self.loops, self.count);
        let rank = |subset: &u32| {
            let mut rest = *subset;
            // The last factor's digit is the lowest of the number and the highest of the rank.
            let mut digits: Vec<u32> = Vec::new();
            for factor in factors.iter().rev() {
                digits.push(rest % factor);
                rest /= factor;
            }
            digits
        };
        let mut all: Vec<u32> = (0..self.count).collect();
        all.sort_by_key(rank);
        all
    }

    fn smallest(&self) -> u32 {
        let least = (0..self.count).map(|subset| self.size(subset)).min().unwrap();
        self.order().into_iter().find(|subset| self.size(*subset) == least).unwrap()
    }

    fn largest(&self) -> u32 {
        let most = (0..self.count).map(|subset| self.size(subset)).max().unwrap();
        self.order().into_iter().find(|subset| self.size(*subset) == most).unwrap()
    }

    fn join(&mut self, target: TargetId) {
        let subset = self.smallest();
        self.members.push(NaiveMember { target, subset, joined: self.joined });
        self.joined += 1;
    }

    /// One change: the leavers, and the newcomers in the order in which they are shuffled.
    pub fn change(&mut self, leavers: &[TargetId], shuffled: &[TargetId]) {
        self.members.retain(|member| !leavers.contains(&member.target));
        shuffled.iter().for_each(|target| self.join(*target));
        let n = self.members.len() as f64;
        let (min, max) = (f64::from(self.args.min), f64::from(self.args.max));
        let share = |count: u32| n / f64::from(count);
        loop {
            let (next, before) = (self.next(), self.before());
            if share(self.count) > max && next > self.count && share(next) >= min {
                self.split(next);
            } else if share(self.count) < min && before < self.count && share(before) <= max {
                let by = self.count / before;
                self.members.iter_mut().for_each(|member| member.subset /= by);
                self.count = before;
            } else {
                break;
            }
        }
        let apart = (n / (10.0 * f64::from(self.count))).ceil().max(1.0) as usize;
        loop {
            let (from, to) = (self.largest(), self.smallest());
            if self.size(from) - self.size(to) <= apart {
                break;
            }
            let of_largest = self.members.iter_mut().filter(|member| member.subset == from);
            of_largest.max_by_key(|member| member.joined).unwrap().subset = to;
            self.moves += 1;
        }
    }

    /// Each subset is dealt out in turn, in the order of joining.
    fn split(&mut self, next: u32) {
        let by = next / self.count;
        self.members.sort_by_key(|member| member.joined);
        for subset in 0..self.count {
            let dealt = self.members.iter_mut().filter(|member| member.subset == subset);
            // Those that are dealt out have numbers beyond all old ones until the end.
            dealt.zip((0..by).cycle()).for_each(|(member, turn)| member.subset = next + subset * by + turn);
        }
        self.members.iter_mut().for_each(|member| member.subset -= next);
        self.count = next;
    }
}
