//! What is asked at each poll, and whether hashes are worth a comparison.
//!
//! Hashes count instances by status, so that they miss swaps, and servers get them wrong (Netflix/eureka
//! 1120): the whole registry is read every tenth time whatever they say, and one that stays wrong costs one
//! reading until then.

/// Polls between two readings of the whole.
const DELTAS: u32 = 9;

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The whole registry.
    Whole,
    /// What has changed lately.
    Delta,
}

/// How far the server's hashes are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HashTrust {
    /// They are compared.
    #[default]
    Full,
    /// The last one of a delta differed, and the whole was read for it.
    Doubted,
    /// They are the server's mistake, until the next whole.
    Lost,
}

/// What comes next.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// Deltas until the next whole.
    deltas: u32,
    trust: HashTrust,
}

impl Agenda {
    /// What is asked now.
    pub(super) fn question(&self) -> Question {
        if self.deltas == 0 { Question::Whole } else { Question::Delta }
    }

    /// Notes that the whole was read, and whether its hash is that of its instances.
    pub(super) fn note_whole(&mut self, is_equal: bool) {
        self.deltas = DELTAS;
        self.trust = match self.trust {
            _ if !is_equal => HashTrust::Lost,
            HashTrust::Doubted => HashTrust::Doubted,
            HashTrust::Full | HashTrust::Lost => HashTrust::Full,
        };
    }

    /// Notes that a delta was applied, and whether its hash is that of the copy. Returns whether the whole is
    /// to be read at once.
    pub(super) fn note_delta(&mut self, is_equal: bool) -> bool {
        self.deltas = self.deltas.saturating_sub(1);
        if self.trust == HashTrust::Lost {
            return false;
        }
        // The whole was read at the last poll: what differs again is not the copy.
        let is_first = self.trust == HashTrust::Full;
        self.trust = match (is_equal, is_first) {
            (true, _) => HashTrust::Full,
            (false, true) => HashTrust::Doubted,
            (false, false) => HashTrust::Lost,
        };
        !is_equal && is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The questions of some polls: `W` and `d`. The functions say of each, by its number, whether its hash
    /// fits.
    fn play(polls: usize, whole: impl Fn(usize) -> bool, delta: impl Fn(usize) -> bool) -> String {
        let mut agenda = Agenda::default();
        let mut questions = String::new();
        for _ in 0..polls {
            if agenda.question() == Question::Delta {
                let number = questions.matches('d').count();
                questions.push('d');
                if !agenda.note_delta(delta(number)) {
                    continue;
                }
            }
            agenda.note_whole(whole(questions.matches('W').count()));
            questions.push('W');
        }
        questions
    }

    #[test]
    fn the_whole_is_read_every_tenth_time_and_after_a_difference() {
        let nine = "d".repeat(9);
        assert_eq!(play(21, |_| true, |_| true), format!("W{nine}W{nine}W"));
        assert_eq!(play(13, |_| true, |i| i != 1), format!("WddW{nine}W"));
        assert_eq!(play(5, |_| true, |i| i != 0 && i != 2), "WdWddWd");
    }

    #[test]
    fn a_hash_that_stays_wrong_costs_one_reading_until_the_next_whole() {
        let nine = "d".repeat(9);
        // The whole's own hash is wrong as well: at the start, and after a difference.
        assert_eq!(play(21, |_| false, |_| false), format!("W{nine}W{nine}W"));
        assert_eq!(play(12, |i| i == 0, |_| false), format!("WdW{nine}W"));
        // Only those of deltas are.
        assert_eq!(play(22, |_| true, |_| false), format!("WdW{nine}WdW{nine}"));
        // After the next whole they are compared again.
        assert_eq!(play(14, |i| i != 0, |i| i != 9), format!("W{nine}WdWdd"));
    }
}
