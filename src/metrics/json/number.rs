//! One spelling for all spellings of a number, exact at any size.

/// The parts of a number as written. `fraction` and `exponent` may be empty.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    pub negative: bool,
    pub integer: &'a [u8],
    pub fraction: &'a [u8],
    pub exponent_negative: bool,
    pub exponent: &'a [u8],
}

/// Writes the number as `-`, digits without zeros at either end, and the power of ten they are multiplied
/// by, if it is not 0: `120` is `12e1`, `-0.50` is `-5e-1`, every zero is `0`.
///
/// The exponent is computed in decimal digits, so one of a million digits costs a million steps
/// and no more.
pub(super) fn canonical(parts: Parts<'_>, out: &mut Vec<u8>) {
    out.clear();
    if parts.negative {
        out.push(b'-');
    }
    let sign = out.len();
    let digits = parts.integer.iter().chain(parts.fraction);
    out.extend(digits.skip_while(|digit| **digit == b'0'));
    let written = out.len();
    while out.len() > sign && out.last() == Some(&b'0') {
        out.pop();
    }
    if out.len() == sign {
        out.clear();
        out.push(b'0');
        return;
    }
    let shift = (written - out.len()) as i64 - parts.fraction.len() as i64;
    write_exponent(parts, shift, out);
}

/// Exponents of up to this many digits, and the lengths of texts, add up within 64 bits.
const SMALL: usize = 18;

fn write_exponent(parts: Parts<'_>, shift: i64, out: &mut Vec<u8>) {
    let exponent = without_leading_zeros(parts.exponent);
    if exponent.len() <= SMALL {
        let size = exponent.iter().fold(0, |sum: i64, digit| sum * 10 + i64::from(digit - b'0'));
        let power = shift + if parts.exponent_negative { -size } else { size };
        if power != 0 {
            out.extend_from_slice(format!("e{power}").as_bytes());
        }
        return;
    }
    // Its size is at least 10^18 and the shift is less than 10^10: the sign stays.
    let mut carry = if parts.exponent_negative { -shift } else { shift };
    let mut digits = exponent.to_vec();
    for digit in digits.iter_mut().rev() {
        if carry == 0 {
            break;
        }
        let sum = i64::from(*digit - b'0') + carry;
        *digit = b'0' + sum.rem_euclid(10) as u8;
        carry = sum.div_euclid(10);
    }
    out.push(b'e');
    if parts.exponent_negative {
        out.push(b'-');
    }
    if carry > 0 {
        digits.insert(0, b'0' + carry as u8);
    }
    out.extend_from_slice(without_leading_zeros(&digits));
}

fn without_leading_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.get(zeros..).unwrap_or_default()
}
