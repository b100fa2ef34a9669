//! The tool call a model answered with, against the one wanted: is it one, does its name match, do its
//! parameters.
//!
//! Each metric follows the published description of the Vertex AI metric of the same name; there is no reference
//! implementation. Scores go from 0 to 1. Both texts are JSON of the form
//! `{"content": "…", "tool_calls": [{"name": "book", "arguments": {"city": "Oslo"}}]}`. The rules that the
//! description leaves open:
//!
//! - `tool_calls` is a list, or a string that holds the JSON of one. `arguments` is an object, or a string
//!   that holds the JSON of one (an empty string does not). Other members are not looked at, nor need they be there.
//! - Only the first call counts.
//! - A text that has no such call scores 0, on either side; it is never an error. Each metric asks only for the
//!   part it compares: a call without `arguments` is not [`valid`], but its name can match.
//! - Parameters are compared whatever the tools' names are. The total is the number of names in either
//!   call (their union), so an invented parameter costs as much as a missing one. No parameters
//!   on either side is 1.
//! - Values are equal as JSON values are ([`json`](super::json)): key order and spelling of numbers play no part, and the
//!   text `"2"` is not the number `2`. In the strict mode their texts must be the same as sent: `2` is
//!   not `2.0`, and `{"a":1}` is not `{"a": 1}`.
//!
//! ```
//! use rapid_eval::metrics::Stop;
//! use rapid_eval::metrics::tool_call::parameter_kv_match;
//!
//! let prediction = r#"{"tool_calls": [{"name": "book", "arguments": {"city": "Oslo", "nights": 2.0}}]}"#;
//! let reference = r#"{"tool_calls": [{"name": "book", "arguments": {"nights": 2, "city": "Rome"}}]}"#;
//! assert_eq!(parameter_kv_match(prediction, reference, false, Stop::NEVER)?.value(), 0.5);
//! # Ok::<(), rapid_eval::metrics::Unscored>(())
//! ```

use std::cmp::Ordering;

pub use super::ratio::Ratio;

use super::json::{Kind, ValueId, Values, spans};
use super::{Stop, Unscored};

/// 1 if the prediction's first call has a `name` that is a string and `arguments` as described above,
/// else 0.
pub fn valid(prediction: &str, stop: Stop<'_>) -> Result<f64, Unscored> {
    let mut reader = Reader { values: Values::new(), stop };
    let call = reader.first_call(prediction)?;
    let valid = reader.name(call).is_some() && reader.arguments(call)?.is_some();
    Ok(f64::from(u8::from(valid)))
}

/// 1 if both first calls have a name and the names are equal, else 0.
pub fn name_match(prediction: &str, reference: &str, stop: Stop<'_>) -> Result<f64, Unscored> {
    let mut reader = Reader { values: Values::new(), stop };
    let predicted = reader.first_call(prediction)?;
    let wanted = reader.first_call(reference)?;
    let name = reader.name(predicted);
    Ok(f64::from(u8::from(name.is_some() && name == reader.name(wanted))))
}

/// Parameter names that both first calls have, out of those that either has.
///
/// If a side has no arguments that can be read, nothing matches out of the other side's parameters, and out of
/// 1 if there are none.
pub fn parameter_key_match(prediction: &str, reference: &str, stop: Stop<'_>) -> Result<Ratio, Unscored> {
    let mut reader = Reader { values: Values::new(), stop };
    let predicted = reader.parameters(prediction)?;
    let wanted = reader.parameters(reference)?;
    Ok(matching(predicted, wanted, |_, _| true))
}

/// Parameters that both first calls have with equal values, out of the names that either has. `strict`
/// compares the values' texts as sent. Else as [`parameter_key_match`].
pub fn parameter_kv_match(
    prediction: &str,
    reference: &str,
    strict: bool,
    stop: Stop<'_>,
) -> Result<Ratio, Unscored> {
    let mut reader = Reader { values: Values::new(), stop };
    if !strict {
        let predicted = reader.parameters(prediction)?;
        let wanted = reader.parameters(reference)?;
        return Ok(matching(predicted, wanted, |a, b| a == b));
    }
    let predicted = reader.arguments_text(prediction)?;
    let wanted = reader.arguments_text(reference)?;
    let predicted = predicted.as_deref().map(|text| reader.parameter_texts(text)).transpose()?;
    let wanted = wanted.as_deref().map(|text| reader.parameter_texts(text)).transpose()?;
    Ok(matching(predicted, wanted, |a, b| a == b))
}

/// One pass over two lists sorted by name, each name once.
fn matching<V>(
    predicted: Option<Vec<(ValueId, V)>>,
    wanted: Option<Vec<(ValueId, V)>>,
    equal: impl Fn(&V, &V) -> bool,
) -> Ratio {
    let (predicted, wanted) = match (predicted, wanted) {
        (Some(predicted), Some(wanted)) => (predicted, wanted),
        (Some(only), None) | (None, Some(only)) => {
            return Ratio { matches: 0, total: only.len().max(1) as u64 };
        }
        (None, None) => return Ratio { matches: 0, total: 1 },
    };
    let mut ratio = Ratio { matches: 0, total: (predicted.len() + wanted.len()) as u64 };
    let (mut left, mut right) = (predicted.iter().peekable(), wanted.iter().peekable());
    while let (Some((name, value)), Some((wanted_name, wanted_value))) = (left.peek(), right.peek()) {
        match name.cmp(wanted_name) {
            Ordering::Less => {
                left.next();
            }
            Ordering::Greater => {
                right.next();
            }
            Ordering::Equal => {
                ratio.total -= 1;
                ratio.matches += u64::from(equal(value, wanted_value));
                left.next();
                right.next();
            }
        }
    }
    ratio
}

struct Reader<'s> {
    values: Values,
    stop: Stop<'s>,
}

impl Reader<'_> {
    fn read(&mut self, text: &str) -> Result<Option<ValueId>, Unscored> {
        Ok(self.values.read_until(text, self.stop)?.ok())
    }

    /// The value, or the value its text holds if it is a string.
    fn unwrapped(&mut self, value: Option<ValueId>) -> Result<Option<ValueId>, Unscored> {
        let Some(value) = value else { return Ok(None) };
        if self.values.kind(value) != Kind::String {
            return Ok(Some(value));
        }
        match self.values.text(value).map(str::to_owned) {
            Some(text) => self.read(&text),
            None => Ok(None),
        }
    }

    fn first_call(&mut self, text: &str) -> Result<Option<ValueId>, Unscored> {
        let calls = self.read(text)?.and_then(|root| self.values.get(root, "tool_calls"));
        let calls = self.unwrapped(calls)?;
        Ok(calls.and_then(|calls| self.values.items(calls)?.first().copied()))
    }

    fn name(&self, call: Option<ValueId>) -> Option<ValueId> {
        let name = self.values.get(call?, "name")?;
        (self.values.kind(name) == Kind::String).then_some(name)
    }

    /// The object of the call's arguments.
    fn arguments(&mut self, call: Option<ValueId>) -> Result<Option<ValueId>, Unscored> {
        let arguments = call.and_then(|call| self.values.get(call, "arguments"));
        let arguments = self.unwrapped(arguments)?;
        Ok(arguments.filter(|arguments| self.values.kind(*arguments) == Kind::Object))
    }

    fn parameters(&mut self, text: &str) -> Result<Option<Vec<(ValueId, ValueId)>>, Unscored> {
        let call = self.first_call(text)?;
        let arguments = self.arguments(call)?;
        Ok(arguments.and_then(|arguments| self.values.members(arguments)).map(<[_]>::to_vec))
    }

    /// The text of the object of the first call's arguments, as sent.
    fn arguments_text(&mut self, text: &str) -> Result<Option<String>, Unscored> {
        let call = self.first_call(text)?;
        if self.arguments(call)?.is_none() {
            return Ok(None);
        }
        let Some(calls) = self.member_text(text, "\"tool_calls\"")? else { return Ok(None) };
        let Some(call) = spans::first_item(&calls).map(str::to_owned) else { return Ok(None) };
        self.member_text(&call, "\"arguments\"")
    }

    /// The text of an object's member, or what that text holds if it is a string.
    fn member_text(&mut self, object: &str, name: &str) -> Result<Option<String>, Unscored> {
        let name = self.read(name)?;
        let mut last = None;
        for (found, value) in spans::members(object) {
            if self.read(found)? == name {
                last = Some(value);
            }
        }
        let Some(text) = last else { return Ok(None) };
        if !text.starts_with('"') {
            return Ok(Some(text.to_owned()));
        }
        let string = self.read(text)?;
        Ok(string.and_then(|string| self.values.text(string)).map(str::to_owned))
    }

    /// The texts of the object's values by name, sorted by name; of a repeated name the last one.
    fn parameter_texts<'t>(&mut self, object: &'t str) -> Result<Vec<(ValueId, &'t str)>, Unscored> {
        let mut texts = Vec::new();
        for (name, value) in spans::members(object) {
            if let Some(name) = self.read(name)? {
                texts.push((name, value));
            }
        }
        texts.reverse();
        texts.sort_by_key(|(name, _)| *name);
        texts.dedup_by_key(|(name, _)| *name);
        Ok(texts)
    }
}
