//! Decimal numbers and fractions, exactly: what a text or a float says in tens, and multiples of it without a rounding
//! that adds up.

/// Digits of a float that say something: 15 are always kept, 17 tell any two apart.
const FLOAT_DIGITS: std::ops::RangeInclusive<u32> = 15..=17;
/// The parts into which a gap of a fraction of a nanosecond is cut where its decimal has too many digits for a
/// [`Ratio`].
const FINE: u64 = 100_000_000_000_000_000;

/// A decimal number as it is written: ±digits · 10^exponent, without zeros at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    negative: bool,
    digits: u128,
    exponent: i32,
}

/// Why a decimal times a whole number is no whole number to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductError {
    /// It does not fit into 64 bits.
    TooLarge,
    /// It lies between two whole numbers, of which this is the nearest.
    Fraction(i64),
}

impl Decimal {
    /// The number that a text is: digits, a point, a sign, an exponent. `None`: it is no number, or has more than 38
    /// digits between its first and its last that is not 0.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let negative = mantissa.starts_with('-');
        let size = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
        let (whole, part) = size.split_once('.').unwrap_or((size, ""));
        if whole.is_empty() && part.is_empty() {
            return None;
        }
        let (mut digits, mut zeros, mut shift) = (0u128, 0u32, 0i32);
        for (in_part, digit) in whole.bytes().map(|d| (0, d)).chain(part.bytes().map(|d| (1, d))) {
            if !digit.is_ascii_digit() {
                return None;
            }
            shift = shift.checked_add(in_part)?;
            if digit == b'0' {
                // Zeros wait for a digit behind them: at the end they say nothing.
                zeros += u32::from(digits > 0);
                continue;
            }
            let by = 10u128.checked_pow(zeros + 1)?;
            digits = digits.checked_mul(by)?.checked_add(u128::from(digit - b'0'))?;
            zeros = 0;
        }
        let zeros = i32::try_from(zeros).ok()?;
        let exponent = if digits == 0 { 0 } else { exponent.checked_sub(shift)?.checked_add(zeros)? };
        Some(Decimal { negative: negative && digits > 0, digits, exponent })
    }

    /// The shortest decimal that is this float, as which it is written; `None` unless it is finite.
    pub fn shortest(float: f64) -> Option<Decimal> {
        if float.is_finite() { Decimal::parse(&format!("{float:e}")) } else { None }
    }

    /// Whether it has as many digits as a program prints of a float: the last ones are of no meaning then.
    pub fn is_like_a_float(&self) -> bool {
        FLOAT_DIGITS.contains(&self.digits.checked_ilog10().map_or(0, |n| n + 1))
    }

    /// `factor` times it.
    ///
    /// # Errors
    /// It is no whole number, or too large for one.
    pub fn times(&self, factor: i64) -> Result<i64, ProductError> {
        if self.digits == 0 || factor == 0 {
            return Ok(0);
        }
        let signed = |size: u128| match (i64::try_from(size), self.negative == (factor < 0)) {
            (Ok(size), true) => Ok(size),
            (Ok(size), false) => Ok(-size),
            (Err(_), _) => Err(ProductError::TooLarge),
        };
        // Digits that do not fit lie below all that the product can show.
        let (mut digits, mut exponent, mut is_exact) = (self.digits, self.exponent, true);
        let product = loop {
            match digits.checked_mul(u128::from(factor.unsigned_abs())) {
                Some(product) => break product,
                None if exponent >= 0 => return Err(ProductError::TooLarge),
                None => (digits, exponent, is_exact) = (digits / 10, exponent + 1, false),
            }
        };
        let tens = 10u128.checked_pow(exponent.unsigned_abs());
        if exponent >= 0 {
            return signed(tens.and_then(|tens| product.checked_mul(tens)).ok_or(ProductError::TooLarge)?);
        }
        // 10^39 is above every product.
        let Some(tens) = tens else { return Err(ProductError::Fraction(0)) };
        let (whole, rest) = (product / tens, product % tens);
        match signed(whole + u128::from(rest >= tens - rest))? {
            exact if rest == 0 && is_exact => Ok(exact),
            nearest => Err(ProductError::Fraction(nearest)),
        }
    }

    /// `factor` times it, to the nearest whole number, halves away from zero; `None`: too large.
    pub fn times_rounded(&self, factor: i64) -> Option<i64> {
        match self.times(factor) {
            Ok(number) | Err(ProductError::Fraction(number)) => Some(number),
            Err(ProductError::TooLarge) => None,
        }
    }

    /// A whole number divided by it, to the nearest whole number, halves away from zero; `None`: too large, or it is 0.
    pub fn divide_rounded(&self, number: i64) -> Option<i64> {
        let tens = 10u128.checked_pow(self.exponent.unsigned_abs());
        let dividend = u128::from(number.unsigned_abs());
        let (dividend, divisor) = match (self.exponent < 0, tens) {
            // A divisor of 10^39 leaves nothing, a factor of it too much.
            (false, None) => return Some(0),
            (true, None) => return (number == 0).then_some(0),
            (false, Some(tens)) => match self.digits.checked_mul(tens) {
                Some(divisor) => (dividend, divisor),
                None => return Some(0),
            },
            (true, Some(tens)) => (dividend.checked_mul(tens)?, self.digits),
        };
        let (whole, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
        let size = i64::try_from(whole + u128::from(rest >= divisor - rest)).ok()?;
        Some(if self.negative == (number < 0) { size } else { -size })
    }
}

/// A fraction of whole numbers above 0, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The part above.
    pub over: u64,
    /// The part below.
    pub under: u64,
}

impl Ratio {
    /// The fraction that the shortest decimal of a float is; `None` unless it is above 0 and both parts fit.
    pub fn from_shortest(float: f64) -> Option<Ratio> {
        let Decimal { negative: false, digits, exponent } = Decimal::shortest(float)? else { return None };
        let tens = 10u128.checked_pow(exponent.unsigned_abs())?;
        if exponent < 0 { Ratio::lowest(digits, tens) } else { Ratio::lowest(digits.checked_mul(tens)?, 1) }
    }

    /// The gap between events of a rate, where a gap is `unit` over a rate: exactly that of the shortest decimal rate
    /// which has it. A float holds no third, but the rate of 3 that it was made of.
    pub fn of_gap(gap: f64, unit: u32) -> Option<Ratio> {
        const EXACT: f64 = (1u64 << 53) as f64;
        if (1.0..EXACT).contains(&gap) && gap == gap.trunc() {
            return Some(Ratio { over: gap as u64, under: 1 });
        }
        if !(gap.is_finite() && gap > 0.0) {
            return None;
        }
        let unit_f = f64::from(unit);
        let rate = unit_f / gap;
        let rates = (0..17)
            .map(|digits| format!("{rate:.digits$e}"))
            .chain([rate.next_down(), rate.next_up()].map(|rate| format!("{rate:e}")));
        let found = rates.filter_map(|text| text.parse::<f64>().ok()).find(|rate| unit_f / rate == gap);
        let of_rate =
            |rate: Ratio| Ratio::lowest(u128::from(unit) * u128::from(rate.under), rate.over.into());
        Some(found.and_then(Ratio::from_shortest).and_then(of_rate).unwrap_or_else(|| Ratio::near(gap)))
    }

    /// The fraction that a float above 0 is, or the nearest whose parts fit.
    pub fn near(float: f64) -> Ratio {
        Ratio::from_shortest(float).unwrap_or_else(|| match float < 1.0 {
            true => Ratio { over: ((float * FINE as f64) as u64).max(1), under: FINE },
            false => Ratio { over: float as u64, under: 1 },
        })
    }

    fn lowest(over: u128, under: u128) -> Option<Ratio> {
        let (mut a, mut b) = (over, under);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let part = |part: u128| u64::try_from(part.checked_div(a)?).ok().filter(|part| *part > 0);
        Some(Ratio { over: part(over)?, under: part(under)? })
    }

    /// `number` times it, rounded down; saturates.
    pub fn times(&self, number: u64) -> u64 {
        self.times_carrying(number, 0).0
    }

    /// `number` times it and `carried` parts, which an earlier product left over: the whole number, which saturates,
    /// and what is left over now, so that nothing is lost however often it is called.
    pub fn times_carrying(&self, number: u64, carried: u64) -> (u64, u64) {
        // Nearly always all fits into 64 bits, whose division is several times faster.
        match number.checked_mul(self.over).and_then(|product| product.checked_add(carried)) {
            Some(sum) => (sum / self.under, sum % self.under),
            None => {
                let sum = u128::from(number) * u128::from(self.over) + u128::from(carried);
                let (whole, left) = (sum / u128::from(self.under), sum % u128::from(self.under));
                (u64::try_from(whole).unwrap_or(u64::MAX), left as u64)
            }
        }
    }

    /// The least number that, with what is carried, gives at least `wanted`; saturates.
    pub fn least_for(&self, wanted: u64, carried: u64) -> u64 {
        let parts = (u128::from(wanted) * u128::from(self.under)).saturating_sub(u128::from(carried));
        u64::try_from(parts.div_ceil(u128::from(self.over.max(1)))).unwrap_or(u64::MAX)
    }

    /// `number` divided by it, rounded down; saturates.
    pub fn divide(&self, number: u64) -> u64 {
        Ratio { over: self.under, under: self.over }.times(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).expect(text)
    }

    #[test]
    fn texts_are_read_digit_by_digit() {
        let s = 1_000_000_000;
        for (text, ns) in [
            ("1732600000.123456789", 1_732_600_000_123_456_789),
            ("1732600000.12345678900000000000000000000000000000", 1_732_600_000_123_456_789),
            ("0.1", 100_000_000),
            ("1e-1", 100_000_000),
            ("2E3", 2_000 * s),
            ("-.5", -500_000_000),
            ("+5.", 5 * s),
            ("000", 0),
            ("-0.000e9", 0),
            ("0e999999999", 0),
        ] {
            assert_eq!(decimal(text).times(s), Ok(ns), "{text}");
        }
        for (text, why) in [
            ("0.1234567891", ProductError::Fraction(123_456_789)),
            ("-0.0000000005", ProductError::Fraction(-1)),
            ("1e-80", ProductError::Fraction(0)),
            ("1.2345678901234567890123456789012345678", ProductError::Fraction(1_234_567_890)),
            ("1e10", ProductError::TooLarge),
            ("1e300", ProductError::TooLarge),
        ] {
            assert_eq!(decimal(text).times(s), Err(why), "{text}");
        }
        for bad in ["", ".", "-", "e1", "1e", "1,5", "0x1", "nan", "inf", "1.2.3", "1 ", "1e99999999999"] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn floats_are_the_decimals_as_which_they_are_written() {
        assert_eq!(Decimal::shortest(0.1), Some(decimal("0.1")));
        assert_eq!(Decimal::shortest(0.1 + 0.2), Some(decimal("0.30000000000000004")));
        assert!(
            decimal("0.30000000000000004").is_like_a_float() && !decimal("0.1234567891").is_like_a_float()
        );
        assert_eq!(
            Decimal::shortest(1.1).and_then(|d| d.times_rounded(9_007_199_254_740_993)),
            Some(9_907_919_180_215_092)
        );
        assert_eq!(Decimal::shortest(f64::NAN), None);
        assert_eq!(Decimal::shortest(1e308).and_then(|d| d.times_rounded(1)), None);
        assert_eq!(Decimal::shortest(5e-324).and_then(|d| d.times_rounded(1)), Some(0));
    }

    #[test]
    fn quotients_are_rounded_once() {
        assert_eq!(decimal("3").divide_rounded(1_000_000_000), Some(333_333_333));
        assert_eq!(decimal("4").divide_rounded(-10), Some(-3), "halves away from zero");
        assert_eq!(decimal("0.1").divide_rounded(9_007_199_254_740_993), Some(90_071_992_547_409_930));
        assert_eq!(decimal("1.2345678901234567e-5").divide_rounded(i64::MAX), None);
        assert_eq!((decimal("1e300").divide_rounded(5), decimal("0").divide_rounded(5)), (Some(0), None));
        assert_eq!(
            (decimal("1e-300").divide_rounded(5), decimal("1e-300").divide_rounded(0)),
            (None, Some(0))
        );
    }

    #[test]
    fn gaps_are_those_of_the_rates_that_they_were_made_of() {
        let gap = |rate: f64| Ratio::of_gap(1e9 / rate, 1_000_000_000);
        let ratio = |over, under| Some(Ratio { over, under });
        assert_eq!(gap(3.0), ratio(1_000_000_000, 3));
        assert_eq!(gap(1000.0), ratio(1_000_000, 1));
        assert_eq!(gap(0.7), ratio(10_000_000_000, 7));
        assert_eq!(gap(1.0 / 3.0), ratio(3_000_000_000, 1));
        assert_eq!(gap(2.5e14), ratio(1, 250_000));
        let irrational = gap(1e15 / 1.234_567_890_123_456_7).expect("a fraction");
        assert!(
            (irrational.over as f64 / irrational.under as f64 / 1.234_567_890_123_456_7e-6 - 1.0).abs()
                < 1e-11
        );
        assert_eq!(
            (gap(1e-10), Ratio::of_gap(f64::NAN, 1), Ratio::of_gap(0.0, 1)),
            (ratio(10u64.pow(19), 1), None, None)
        );
        let third = gap(3.0).expect("a fraction");
        assert_eq!((third.times(3_000_000_000), third.divide(10u64.pow(18))), (10u64.pow(18), 3_000_000_000));
        assert_eq!(Ratio { over: u64::MAX, under: 1 }.times(2), u64::MAX);
        let seventh = Ratio { over: 3, under: 7 };
        let step = |(sum, carried), _| {
            let (whole, carried) = seventh.times_carrying(1, carried);
            (sum + whole, carried)
        };
        assert_eq!((0..7000).fold((0, 0), step), (3000, 0), "nothing is lost between calls");
        assert_eq!((seventh.least_for(1, 0), seventh.least_for(1, 1), seventh.least_for(3, 0)), (3, 2, 7));
        assert_eq!(Ratio::near(1.234_567_890_123_456_7e-9).under, FINE);
    }
}
