//! Fuzzy match: how much of two texts is one common subsequence of characters.
//!
//! From 0 to 1: twice the length of the longest common subsequence of code points, by the lengths of both texts.
//! This is RapidFuzz's `fuzz.ratio` by 100 (checked against 3.14.6, equal to the last bit), which the
//! hosted graders' published `fuzzy_match` scores equal. Nothing is trimmed, folded or normalized. Two empty
//! texts score 1.
//!
//! The subsequence takes one step for 64 pairs of characters; a call that would take more than [`MOST_STEPS`]
//! is refused, as are texts of more than [`MOST_BYTES`]. Two texts of 512 KiB without much in common are
//! about the largest; equal beginnings and ends cost nothing.
//!
//! ```
//! use rapid_eval::metrics::fuzzy::score;
//!
//! // 7 of 8 letters on both sides.
//! assert_eq!(score("calender", "calendar")?, 0.875);
//! # Ok::<(), rapid_eval::metrics::Unscored>(())
//! ```

use super::lcs::Lcs;
use super::{Stop, Unscored};

/// The most steps of 64 pairs of characters that one call may take: a few seconds.
pub const MOST_STEPS: u64 = 1 << 32;

/// The longest text, in bytes, that can be scored. Callers will want a lower limit.
pub const MOST_BYTES: usize = 1 << 28;

/// The fuzzy match of two texts. Both may change places.
///
/// # Errors
/// [`Unscored::OverLimit`] for texts over [`MOST_BYTES`] or work over [`MOST_STEPS`].
pub fn score(prediction: &str, reference: &str) -> Result<f64, Unscored> {
    score_until(prediction, reference, Stop::NEVER)
}

/// As [`score`], for a caller who may lose interest.
///
/// # Errors
/// As [`score`]; [`Unscored::Stopped`] soon after `stop` was raised.
pub fn score_until(prediction: &str, reference: &str, stop: Stop<'_>) -> Result<f64, Unscored> {
    let longest = prediction.len().max(reference.len());
    if longest > MOST_BYTES {
        let what = "bytes of text for fuzzy_match";
        return Err(Unscored::OverLimit { what, found: longest as u64, limit: MOST_BYTES as u64 });
    }
    stop.check()?;
    let (prediction, reference) = (characters(prediction), characters(reference));
    let both = prediction.len() as u64 + reference.len() as u64;
    let mut lcs = Lcs::default();
    let largest = prediction.iter().chain(&reference).max().map_or(0, |character| *character as usize);
    lcs.reset(largest);
    let common =
        lcs.length(&prediction, &reference, MOST_STEPS, stop).map_err(|unscored| match unscored {
            Unscored::OverLimit { found, limit, .. } => {
                Unscored::OverLimit { what: "fuzzy_match steps of 64 pairs of characters", found, limit }
            }
            Unscored::Stopped => Unscored::Stopped,
        })?;
    if both == 0 {
        return Ok(1.0);
    }
    // The reference counts what does not match and passes through per cent; so do the last bits.
    let distance = (both - 2 * common) as f64 / both as f64;
    Ok((1.0 - distance) * 100.0 / 100.0)
}

/// Code points, from 1 up.
fn characters(text: &str) -> Vec<u32> {
    text.chars().map(|character| character as u32 + 1).collect()
}
