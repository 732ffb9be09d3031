//! Choosing where weights differ: the least requests in flight for the weight, and of equals by weight.

use super::{Class, LeastConn};
use crate::TargetId;
use crate::balance::ties::Ties;
use weir_stats::Key;

impl Class {
    /// The least load of its targets; `None` if none may be picked.
    fn load(&self) -> Option<f64> {
        self.levels.least().map(|(level, _)| f64::from(level) / self.weight)
    }

    /// The number of its targets with the least load.
    fn size(&self) -> u32 {
        self.levels.least().map_or(0, |(_, size)| size)
    }
}

impl LeastConn {
    #[inline(never)]
    pub(super) fn choose_by_weight(&mut self, draw: Key) -> Option<TargetId> {
        let best = self.classes.iter().filter_map(Class::load).min_by(f64::total_cmp)?;
        match self.ties {
            Ties::Random => self.draw_by_weight(draw, best),
            Ties::First => self.tied(best).map(|c| c.members[c.levels.next_from(0) as usize]).min(),
            Ties::Rotate => self.turn_by_weight(best),
        }
    }

    /// The classes whose least load is this.
    fn tied(&self, best: f64) -> impl Iterator<Item = &Class> {
        self.classes.iter().filter(move |c| c.load() == Some(best))
    }

    /// One draw chooses the class by its weight in all, and then the target in it.
    fn draw_by_weight(&self, draw: Key, best: f64) -> Option<TargetId> {
        let whole = |c: &Class| c.weight * f64::from(c.size());
        let mut left = draw.unit() * self.tied(best).map(whole).sum::<f64>();
        let mut last = None;
        for class in self.tied(best) {
            let at = ((left / class.weight) as u32).min(class.size().saturating_sub(1));
            last = Some((class, at));
            if left < whole(class) {
                break;
            }
            left -= whole(class);
        }
        last.map(|(class, at)| class.members[class.levels.select(at) as usize])
    }

    /// A step of nginx's smooth rotation among the equally loaded: each gains its weight, the one that then has most is
    /// chosen and loses the sum.
    fn turn_by_weight(&mut self, best: f64) -> Option<TargetId> {
        let (mut chosen, mut most, mut sum) = (None, f64::NEG_INFINITY, 0.0);
        for class in self.classes.iter().filter(|c| c.load() == Some(best)) {
            for at in class.levels.least_members() {
                let target = class.members[at as usize];
                let turn = &mut self.position[target.index()].turn;
                *turn += class.weight;
                sum += class.weight;
                if *turn > most || *turn == most && Some(target) < chosen {
                    (chosen, most) = (Some(target), *turn);
                }
            }
        }
        if let Some(target) = chosen {
            self.position[target.index()].turn -= sum;
        }
        chosen
    }

    /// A step of the rotation among targets that are not barred. All barred ones are taken out before: one that took
    /// part and may not be picked would get all the turns that it missed at once, later.
    #[cold]
    pub(super) fn turn_where(&mut self, barred: impl Fn(TargetId) -> bool) -> Option<TargetId> {
        let mut aside = std::mem::take(&mut self.aside);
        for target in TargetId::all(self.n) {
            let place = self.place(target);
            if self.is_present(place) && barred(target) {
                self.set_present(place, false);
                aside.push(place);
            }
        }
        // The rotation draws nothing.
        let chosen = self.choose_again(Key::new(0));
        aside.drain(..).for_each(|place| self.set_present(place, true));
        self.aside = aside;
        chosen.inspect(|&t| self.take(t))
    }

    /// The rotation starts at the cursor, which was drawn and follows the picks, so that balancers stay apart: each
    /// target has a part of its weight, the more the sooner its turn would come.
    pub(super) fn start_turns(&mut self, weights: &[f64]) {
        if self.ties != Ties::Rotate {
            return;
        }
        let (n, cursor) = (self.n, self.cursor);
        for ((i, position), weight) in (0..).zip(&mut self.position).zip(weights) {
            let later = (i + n - cursor) % n;
            position.turn = weight * f64::from(n - later) / f64::from(n);
        }
    }

    /// After a change of weights no target is more than a round ahead or behind.
    pub(super) fn bound_turns(&mut self, weights: &[f64]) {
        let sum: f64 = weights.iter().sum();
        for position in &mut self.position {
            position.turn = position.turn.clamp(-sum, sum);
        }
    }
}
