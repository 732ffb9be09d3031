//! What a request carries between processes of weir: the keys of its draws, and its number in a verification.

use weir_model::way::Way;

/// The field in which a loop passes a built-in server the keys of the request's draws and the factor of its work; the
/// generator of a verification passes a loop the same. It is believed if it has the token.
pub const DRAWN: &str = "x-weir-draw";

/// The draws of a request, as one from a verification carries them.
#[derive(Clone, Debug)]
pub struct RequestDraws {
    /// The request's number in the run.
    pub of_run: RunRequest,
    /// The factor of its work.
    pub factor: f64,
    /// Its way.
    pub way: Way,
}

/// A request of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunRequest {
    /// Its number in the run.
    pub ordinal: u64,
    /// Whether it counts.
    pub selected: bool,
    /// The hash of its key, if the request lacks what a node reads; `None`: it belongs to no run.
    pub sender: Option<u64>,
}

impl RequestDraws {
    /// The value of the field.
    pub fn value(&self, token: u64) -> String {
        let RunRequest { ordinal, selected, sender } = self.of_run;
        let sender = sender.map_or_else(|| "-".to_owned(), |sender| format!("{sender:x}"));
        let factor = self.factor.to_bits();
        let way = self.way.words();
        format!("{token:016x} {ordinal:x} {} {sender} {factor:x} {way}", u8::from(selected))
    }

    /// Parses such a value, if it has the token.
    pub fn read(text: &str, token: u64) -> Option<RequestDraws> {
        let mut words = text.split(' ');
        let number = |word: &str| u64::from_str_radix(word, 16).ok();
        if number(words.next()?)? != token {
            return None;
        }
        let ordinal = number(words.next()?)?;
        let selected = words.next()? == "1";
        let sender = words.next().filter(|word| *word != "-").and_then(number);
        let factor = f64::from_bits(number(words.next()?)?);
        let way = Way::read(&mut words)?;
        Some(RequestDraws { of_run: RunRequest { ordinal, selected, sender }, factor, way })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::Key;

    #[test]
    fn only_who_knows_the_token_is_believed() {
        for sender in [None, Some(77)] {
            let of_run = RunRequest { ordinal: 41, selected: sender.is_some(), sender };
            let drawn = RequestDraws { of_run, factor: 1.25, way: Way::new(Key::new(5)) };
            let value = drawn.value(9);
            let read = RequestDraws::read(&value, 9).unwrap();
            assert_eq!((read.of_run, read.factor), (of_run, 1.25));
            assert_eq!(read.way.choice(Key::new(1)), drawn.way.choice(Key::new(1)));
            assert!(RequestDraws::read(&value, 8).is_none());
            assert!(RequestDraws::read(&value[..20], 9).is_none() && RequestDraws::read("", 9).is_none());
        }
    }
}
