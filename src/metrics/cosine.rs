//! Cosine: how far two vectors point in the same direction.
//!
//! From -1 (opposite) over 0 (at right angles) to 1 (the same direction). The vectors are embeddings of two
//! texts, or, where there are none, the counts of each word in them ([`of_words`], 0 to 1). Agrees with the
//! exact value to 1e-12. A vector of zeros points nowhere; its cosine with any other is 0.
//!
//! ```
//! use rapid_eval::metrics::cosine::{of_vectors, of_words};
//!
//! assert_eq!(of_vectors(&[3.0, 4.0], &[4.0, 3.0])?, 24.0 / 25.0);
//! // One of two words each.
//! assert!((of_words("Red car", "A car")? - 0.5).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use super::nltk;
use super::text::{Tokenizer, Word, each_word, fold};
use super::vocabulary::Vocabulary;
use super::{Stop, Unscored};

/// Two vectors that have no cosine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCosine {
    /// They have not the same number of dimensions.
    Dimensions {
        /// Those of the first.
        first: usize,
        /// Those of the second.
        second: usize,
    },
    /// A component is infinite or not a number.
    NotFinite,
}

impl fmt::Display for NoCosine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dimensions { first, second } => {
                write!(f, "vectors of {first} and {second} dimensions have no cosine")
            }
            Self::NotFinite => f.write_str("a vector with an infinite component has no cosine"),
        }
    }
}

impl std::error::Error for NoCosine {}

/// The cosine of the angle between two vectors, such as embeddings.
///
/// # Errors
/// [`NoCosine`].
pub fn of_vectors(first: &[f64], second: &[f64]) -> Result<f64, NoCosine> {
    if first.len() != second.len() {
        return Err(NoCosine::Dimensions { first: first.len(), second: second.len() });
    }
    if !first.iter().chain(second).all(|component| component.is_finite()) {
        return Err(NoCosine::NotFinite);
    }
    let (first_scale, second_scale) = (scale(first), scale(second));
    let products = |a: &[f64], a_scale: f64, b: &[f64], b_scale: f64| {
        sum(a.iter().zip(b).map(|(a, b)| (a * a_scale) * (b * b_scale)))
    };
    let lengths = products(first, first_scale, first, first_scale)
        * products(second, second_scale, second, second_scale);
    if lengths == 0.0 {
        return Ok(0.0);
    }
    Ok((products(first, first_scale, second, second_scale) / lengths.sqrt()).clamp(-1.0, 1.0))
}

/// A power of two that brings the largest component near 1, so that no square overflows or vanishes.
fn scale(vector: &[f64]) -> f64 {
    let largest = vector.iter().fold(0.0_f64, |largest, component| largest.max(component.abs()));
    if largest == 0.0 { 1.0 } else { (-largest.log2().floor().max(-1000.0)).exp2() }
}

/// A sum that remembers what rounding takes away (Neumaier).
fn sum(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for term in terms {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    sum + lost
}

/// The cosine of two texts' word counts: their words are those of [`Tokenizer::Unicode`], without regard to
/// case. Texts without words score 0.
///
/// # Errors
/// [`Unscored::OverLimit`] for texts of more than 256 MiB.
pub fn of_words(prediction: &str, reference: &str) -> Result<f64, Unscored> {
    of_words_until(prediction, reference, Stop::NEVER)
}

/// As [`of_words`], for a caller who may lose interest. Time is linear in the texts.
///
/// # Errors
/// As [`of_words`]; [`Unscored::Stopped`] soon after `stop` was raised.
pub fn of_words_until(prediction: &str, reference: &str, stop: Stop<'_>) -> Result<f64, Unscored> {
    nltk::within_limits(prediction, reference, "bytes of text for cosine")?;
    let mut counts = WordCounts::default();
    counts.read(prediction, stop, |[predicted, _]| *predicted += 1)?;
    counts.read(reference, stop, |[_, wanted]| *wanted += 1)?;
    let sum = |of: fn(u128, u128) -> u128| {
        let terms = counts.by_word.iter().map(|&[a, b]| of(a.into(), b.into()));
        terms.sum::<u128>() as f64
    };
    let lengths = sum(|a, _| a * a) * sum(|_, b| b * b);
    if lengths == 0.0 {
        return Ok(0.0);
    }
    Ok((sum(|a, b| a * b) / lengths.sqrt()).min(1.0))
}

#[derive(Default)]
struct WordCounts {
    words: Vocabulary,
    /// How often each word stands in the prediction and in the reference.
    by_word: Vec<[u64; 2]>,
}

impl WordCounts {
    fn read(&mut self, text: &str, stop: Stop<'_>, count: impl Fn(&mut [u64; 2])) -> Result<(), Unscored> {
        let mut folded = String::new();
        each_word(text, Tokenizer::Unicode, &mut Vec::new(), stop, |word| {
            let id = match word {
                Word::Lowered(word) => self.words.insert(word),
                Word::Raw(raw) => {
                    fold(raw, &mut folded);
                    self.words.insert(folded.as_bytes())
                }
            };
            self.by_word.resize(self.words.len() + 1, [0; 2]);
            if let Some(counts) = self.by_word.get_mut(id as usize) {
                count(counts);
            }
        })
    }
}
