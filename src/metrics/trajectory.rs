//! The tool calls an agent made, against those wanted.
//!
//! Each metric follows the published description of the Vertex AI metric of the same name; there is no reference
//! implementation. Scores go from 0 to 1. The rules that the description leaves open:
//!
//! - Two calls are equal if their names are the same text and their inputs are equal JSON values
//!   ([`json`](super::json)). An input that is not JSON equals the same text only. No input at all is `{}`.
//! - Each call is matched at most once: a call made once does not satisfy two wanted ones, and one wanted
//!   once does not excuse its repetition. [`precision`] and [`recall`] divide the same largest
//!   number of such pairs by the calls made and by the calls wanted.
//! - No calls wanted and none made is 1 everywhere. If only one side has none, the ratio with nothing to divide
//!   is 0.
//!
//! ```
//! use rapid_eval::metrics::Stop;
//! use rapid_eval::metrics::trajectory::{Call, precision, recall};
//!
//! let search = Call { name: "search", input: Some(r#"{"q": "ferry", "limit": 5}"#) };
//! let again = Call { name: "search", input: Some(r#"{"limit": 5.0, "q": "ferry"}"#) };
//! let book = Call { name: "book", input: None };
//! assert_eq!(precision(&[search, again], &[search, book], Stop::NEVER)?.value(), 0.5);
//! assert_eq!(recall(&[search, book, book], &[search, book], Stop::NEVER)?.value(), 1.0);
//! # Ok::<(), rapid_eval::metrics::Unscored>(())
//! ```

use std::collections::HashMap;

pub use super::ratio::Ratio;

use super::json::{ValueId, Values};
use super::vocabulary::{MAX_BYTES, Vocabulary};
use super::{Stop, Unscored};

/// A call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// What it was called with, as JSON. `None` is the empty object.
    pub input: Option<&'a str>,
}

/// 1 if the same calls were made in the same order and no others, else 0.
pub fn exact_match(predicted: &[Call<'_>], reference: &[Call<'_>], stop: Stop<'_>) -> Result<f64, Unscored> {
    let (predicted, reference) = classes(predicted, reference, stop)?;
    Ok(f64::from(u8::from(predicted == reference)))
}

/// 1 if the reference's calls were made in their order, others in between or not, else 0.
pub fn in_order_match(
    predicted: &[Call<'_>],
    reference: &[Call<'_>],
    stop: Stop<'_>,
) -> Result<f64, Unscored> {
    let (predicted, reference) = classes(predicted, reference, stop)?;
    let mut made = predicted.iter();
    let all = reference.iter().all(|wanted| made.any(|made| made == wanted));
    Ok(f64::from(u8::from(all)))
}

/// 1 if all of the reference's calls were made, in any order, each as often as it stands there, others
/// beside them or not; else 0.
pub fn any_order_match(
    predicted: &[Call<'_>],
    reference: &[Call<'_>],
    stop: Stop<'_>,
) -> Result<f64, Unscored> {
    let (predicted, reference) = classes(predicted, reference, stop)?;
    Ok(f64::from(u8::from(pairs(&predicted, &reference) == reference.len())))
}

/// Calls made that match one of the reference, out of those made.
///
/// If none were made and some wanted, 0 out of those wanted.
pub fn precision(predicted: &[Call<'_>], reference: &[Call<'_>], stop: Stop<'_>) -> Result<Ratio, Unscored> {
    let (predicted, reference) = classes(predicted, reference, stop)?;
    Ok(ratio(pairs(&predicted, &reference), predicted.len(), reference.len()))
}

/// Calls of the reference that match one made, out of those of the reference.
///
/// If none were wanted and some made, 0 out of those made.
pub fn recall(predicted: &[Call<'_>], reference: &[Call<'_>], stop: Stop<'_>) -> Result<Ratio, Unscored> {
    let (predicted, reference) = classes(predicted, reference, stop)?;
    Ok(ratio(pairs(&predicted, &reference), reference.len(), predicted.len()))
}

/// 1 if a tool of that name was called, else 0. Inputs are not looked at.
pub fn single_tool_use(predicted: &[Call<'_>], tool_name: &str) -> f64 {
    f64::from(u8::from(predicted.iter().any(|call| call.name == tool_name)))
}

fn ratio(matches: usize, total: usize, total_if_none: usize) -> Ratio {
    let total = if total == 0 { total_if_none } else { total };
    Ratio { matches: matches as u64, total: total as u64 }
}

/// Equal for calls that are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Class {
    name: u32,
    input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Input {
    Value(ValueId),
    Text(u32),
}

fn classes(
    predicted: &[Call<'_>],
    reference: &[Call<'_>],
    stop: Stop<'_>,
) -> Result<(Vec<Class>, Vec<Class>), Unscored> {
    let bytes = |call: &Call<'_>| call.name.len() + call.input.map_or(0, str::len);
    let found = predicted.iter().chain(reference).map(bytes).sum::<usize>();
    if found > MAX_BYTES {
        let (found, limit) = (found as u64, MAX_BYTES as u64);
        return Err(Unscored::OverLimit { what: "bytes of a trajectory", found, limit });
    }
    let (mut texts, mut values) = (Vocabulary::default(), Values::new());
    let mut class = |call: &Call<'_>| {
        stop.check()?;
        let input = match call.input {
            None => Input::Value(values.empty_object()),
            Some(input) => match values.read_until(input, stop)? {
                Ok(value) => Input::Value(value),
                Err(_) => Input::Text(texts.insert(input.as_bytes())),
            },
        };
        Ok(Class { name: texts.insert(call.name.as_bytes()), input })
    };
    let predicted = predicted.iter().map(&mut class).collect::<Result<_, Unscored>>()?;
    let reference = reference.iter().map(&mut class).collect::<Result<_, Unscored>>()?;
    Ok((predicted, reference))
}

/// The most pairs of equal calls with no call in two pairs: equality classes match as often as the smaller
/// side has them.
fn pairs(predicted: &[Class], reference: &[Class]) -> usize {
    let mut made: HashMap<Class, usize> = HashMap::new();
    for class in predicted {
        *made.entry(*class).or_default() += 1;
    }
    let match_one = |class: &&Class| match made.get_mut(*class) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    };
    reference.iter().filter(match_one).count()
}
