//! Texts that make up the rest of a fuzz input, with a byte between them that no UTF-8 has. So a seed is
//! a few bytes of choices and then plain text, and the fuzzer changes letters, not lengths.

use arbitrary::{Arbitrary, Result, Unstructured};

/// What separates two texts.
pub const SEPARATOR: u8 = 0xff;

/// A prediction and a reference. A missing second text is the first one.
#[derive(Debug, Clone)]
pub struct Texts {
    pub prediction: String,
    pub reference: String,
}

impl<'a> Arbitrary<'a> for Texts {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut parts = all(u)?.into_iter();
        let prediction = parts.next().unwrap_or_default();
        let reference = parts.next().unwrap_or_else(|| prediction.clone());
        Ok(Self { prediction, reference })
    }
}

/// All texts of the rest of the input.
pub fn all(u: &mut Unstructured<'_>) -> Result<Vec<String>> {
    let rest = u.bytes(u.len())?;
    Ok(rest.split(|&byte| byte == SEPARATOR).map(|text| String::from_utf8_lossy(text).into_owned()).collect())
}
