//! Elementary functions whose bits depend on no C library: `libm` where speed does not matter, a table logarithm of our
//! own on the path of every exponential draw.

/// Entries of the table: the leading seven bits of the mantissa.
const ENTRIES: usize = 128;

/// (1/c, ln c) for c in the middle of each of the 128 parts of [1, 2).
static TABLE: [(f64, f64); ENTRIES] = table();

/// ln x for x in [1, 2] as 2 artanh((x-1)/(x+1)), evaluated by the compiler.
const fn ln_series(x: f64) -> f64 {
    let z = (x - 1.0) / (x + 1.0);
    let (mut power, mut sum, mut k) = (z, 0.0, 1);
    while k < 60 {
        sum += power / k as f64;
        power = power * z * z;
        k += 2;
    }
    2.0 * sum
}

const fn table() -> [(f64, f64); ENTRIES] {
    let mut t = [(0.0, 0.0); ENTRIES];
    let mut i = 0;
    while i < ENTRIES {
        let inverse = 1.0 / (1.0 + (i as f64 + 0.5) / ENTRIES as f64);
        t[i] = (inverse, ln_series(1.0 / inverse));
        i += 1;
    }
    t
}

/// The natural logarithm of a positive, normal, finite number, to within 3e-13 absolutely.
#[inline]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    let (inverse, ln_c) = TABLE[(bits >> 45 & 127) as usize];
    let r = mantissa * inverse - 1.0;
    let series = r * (1.0 - r * (0.5 - r * (1.0 / 3.0 - r * 0.25)));
    f64::from(exponent) * std::f64::consts::LN_2 + (ln_c + series)
}

/// e^x.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// e^x − 1, exact for small x too.
pub fn exp_m1(x: f64) -> f64 {
    libm::expm1(x)
}

/// ln(1 + x), exact for small x too.
pub fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}

/// x^y.
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The square root (correctly rounded everywhere by IEEE 754).
#[inline]
pub fn sqrt(x: f64) -> f64 {
    x.sqrt()
}

/// Coefficients of AS 241, by ascending powers: for p within 0.425 of a half, the numerator and the denominator.
const CENTRE_NUMERATOR: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_38,
    1_971.590_950_306_551_3,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const CENTRE_DENOMINATOR: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_545,
];

/// The same farther out, to where r = sqrt(-ln(tail)) is 5.
const FLANK_NUMERATOR: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const FLANK_DENOMINATOR: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];

/// The same beyond.
const TAIL_NUMERATOR: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    0.001_242_660_947_388_078_4,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const TAIL_DENOMINATOR: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_7e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

/// The polynomial with these coefficients, by Horner's rule.
fn evaluate(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, k| sum * x + k)
}

/// The quantile of the standard normal distribution, to 1e-15 relatively (Wichura 1988, algorithm AS 241, PPND16).
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * evaluate(&CENTRE_NUMERATOR, r) / evaluate(&CENTRE_DENOMINATOR, r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = sqrt(-libm::log(tail));
    let x = if r <= 5.0 {
        evaluate(&FLANK_NUMERATOR, r - 1.6) / evaluate(&FLANK_DENOMINATOR, r - 1.6)
    } else {
        evaluate(&TAIL_NUMERATOR, r - 5.0) / evaluate(&TAIL_DENOMINATOR, r - 5.0)
    };
    if q < 0.0 { -x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_logarithm_agrees_with_libm() {
        let mut x = 1e-16;
        while x < 10.0 {
            assert!((ln(x) - libm::log(x)).abs() < 3e-13, "{x}: {} {}", ln(x), libm::log(x));
            x *= 1.000_37;
        }
    }

    /// Values of the normal quantile from published tables.
    #[test]
    fn normal_quantiles_are_the_known_ones() {
        for (p, z) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813),
            (1e-10, -6.361_340_902_404_056),
        ] {
            assert!((normal_quantile(p) - z).abs() < 1e-9, "{p}");
            assert!((normal_quantile(1.0 - p) + z).abs() < 1e-5, "{p}");
        }
    }
}
