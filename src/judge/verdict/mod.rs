//! Verdicts: what is asked of a reply, and a reply read as a verdict or the reason why not.
//!
//! | file | what it reads |
//! | --- | --- |
//! | `score.rs` | a number on a scale |
//! | `choice.rs` | A, B or SAME; one label out of several |
//! | `graded.rs` | the steps and the result of a grader |
//! | `rubrics.rs` | a list of rubrics; a verdict on each of them |
//! | `readout.rs` | token probabilities |
//! | `json.rs` | JSON objects in a text that was not written by a machine |
//!
//! # Order of reading
//!
//! 1. The whole text as JSON.
//! 2. Without one think block at its start: the last outermost object that has the key asked for. Strict JSON
//!    or repaired makes no difference to the order, or an object that the judge quoted would win over its own
//!    with a stray comma.
//! 3. A text that is nothing but the verdict: `4`, `Score: 4`, `SAME`.
//! 4. Nothing: [`Unreadable`].
//!
//! Once an object is the one that counts, its value is valid or the reply is unreadable; no other object is
//! tried. A reply that ends inside of an object is unreadable, and so is a verdict that stands word for word
//! in the judged text. No verdict is looked for in prose.

mod choice;
mod graded;
mod json;
mod readout;
mod rubrics;
mod score;

use std::fmt;
use std::sync::OnceLock;

use serde_json::{Map, Value};

pub use choice::{Label, Pair, Shown};
pub use graded::{Graded, Steps};
pub use readout::{Weighted, labels_of, weighted_score};
pub use rubrics::{Importance, RubricList, RubricVerdict, RubricVerdicts, WrittenRubric};
pub use score::{Scale, Score};

use super::{Reply, ReplyForm};

/// Text of a judge in a reason is cut to this many characters.
const QUOTED_CHARS: usize = 200;
/// So many verdict-like objects of one reply are looked at.
const KEPT_OBJECTS: usize = 16;

/// What is asked of a reply and how it is read.
pub trait Reading: Send + Sync {
    /// What a reply says.
    type Value: Clone + Send + Sync + fmt::Debug;

    /// The form that the endpoint is asked for.
    fn form(&self) -> ReplyForm;

    /// The same form in words, for the prompt.
    fn instructions(&self) -> String;

    /// The keys that hold the verdict; an object with none of them is no verdict. Spelled in small letters
    /// and digits only, as `member` compares them.
    fn keys(&self) -> &'static [&'static str];

    /// Reads an object that has one of the keys; an error is the reason, for a sentence.
    fn read(&self, object: &Map<String, Value>) -> Result<Self::Value, String>;

    /// Reads a text that is nothing but the verdict; `None` when it is none.
    fn read_bare(&self, _text: &str) -> Option<Self::Value> {
        None
    }

    /// The explanation, when the form has no key of that name.
    fn explain(&self, _object: &Map<String, Value>) -> Option<String> {
        None
    }

    /// Whether a list that stands alone is the list under the first key.
    fn is_list(&self) -> bool {
        false
    }
}

/// A verdict, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict<V> {
    /// What the judge decided.
    pub value: V,
    /// Why, in its words; empty when it did not say.
    pub explanation: String,
    /// True when the reply was not strictly what was asked for.
    pub repaired: bool,
}

/// Why a reply is no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong, for a sentence.
    pub reason: String,
    /// What the judge said, shortened.
    pub said: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if !self.said.is_empty() {
            write!(f, "; the judge said: {}", self.said)?;
        }
        Ok(())
    }
}

impl std::error::Error for Unreadable {}

/// The texts that a judge was shown, to tell its own words from theirs.
#[derive(Debug, Default)]
pub struct Material {
    texts: Vec<String>,
    squeezed: OnceLock<Vec<String>>,
}

impl Material {
    /// These texts.
    pub fn new(texts: Vec<String>) -> Self {
        Self { texts, squeezed: OnceLock::new() }
    }

    /// Whether one of the texts contains this passage; white space makes no difference.
    fn contains(&self, passage: &str) -> bool {
        let squeezed = self.squeezed.get_or_init(|| self.texts.iter().map(|text| squeeze(text)).collect());
        let passage = squeeze(passage);
        squeezed.iter().any(|text| text.contains(&passage))
    }
}

fn squeeze(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Reads a reply.
pub fn read<R: Reading>(
    reading: &R,
    reply: &Reply,
    material: &Material,
) -> Result<Verdict<R::Value>, Unreadable> {
    verdict_of(reading, reply, material)
        .map_err(|reason| Unreadable { reason, said: shorten(tidy(&reply.text), QUOTED_CHARS) })
}

fn verdict_of<R: Reading>(
    reading: &R,
    reply: &Reply,
    material: &Material,
) -> Result<Verdict<R::Value>, String> {
    let text = tidy(&reply.text);
    if text.is_empty() {
        return Err(match reply.truncated {
            true => "the reply was cut off before its first visible word".to_owned(),
            false => "the reply is empty".to_owned(),
        });
    }
    if let Ok(whole) = serde_json::from_str::<Value>(text)
        && let Some(object) = as_object(reading, whole)
    {
        let object = unwrapped(reading, object).ok_or_else(|| nothing_asked_for(reading))?;
        if material.contains(text) {
            return Err("the reply is a copy of a passage of the judged text".to_owned());
        }
        return verdict(reading, &object, false);
    }

    let text = after_thinking(text)?;
    let objects = json::last_objects(text, KEPT_OBJECTS, |object| unwrapped_ref(reading, object).is_some());
    if objects.tangled {
        return Err("the reply is a tangle of brackets".to_owned());
    }
    if objects.unfinished {
        return Err("the reply ends in the middle of an object".to_owned());
    }
    let mut copies = 0;
    for found in objects.found.into_iter().rev() {
        if material.contains(&text[found.place.clone()]) {
            copies += 1;
            continue;
        }
        let rest = text[found.place.end..].trim_matches(|c: char| c.is_whitespace() || c == '`');
        if reply.truncated && !rest.is_empty() {
            return Err("the reply was cut off".to_owned());
        }
        let object = unwrapped(reading, found.object).ok_or_else(|| nothing_asked_for(reading))?;
        return verdict(reading, &object, found.repaired);
    }
    if copies > 0 {
        return Err("the only verdict in the reply is a copy of a passage of the judged text".to_owned());
    }
    if reply.truncated {
        return Err("the reply was cut off".to_owned());
    }
    let bare = without_fence(text);
    if reading.is_list()
        && let Ok(list @ Value::Array(_)) = serde_json::from_str(bare)
        && let Some(object) = as_object(reading, list)
    {
        return verdict(reading, &object, true);
    }
    let unquoted = serde_json::from_str::<String>(bare);
    match reading.read_bare(unquoted.as_deref().unwrap_or(bare)) {
        Some(value) => Ok(Verdict { value, explanation: String::new(), repaired: true }),
        None => Err(nothing_asked_for(reading)),
    }
}

fn nothing_asked_for<R: Reading>(reading: &R) -> String {
    format!("there is no {} in the reply", reading.keys().first().copied().unwrap_or("verdict"))
}

fn verdict<R: Reading>(
    reading: &R,
    object: &Map<String, Value>,
    repaired: bool,
) -> Result<Verdict<R::Value>, String> {
    let value = reading.read(object)?;
    let said = || {
        ["explanation", "reasoning", "rationale", "reason"]
            .into_iter()
            .find_map(|key| Some(member(object, &[key]).ok()??.as_str()?.trim().to_owned()))
    };
    let explanation = reading.explain(object).or_else(said).unwrap_or_default();
    Ok(Verdict { value, explanation, repaired })
}

/// An object as it is, a bare list under the key it would have.
fn as_object<R: Reading>(reading: &R, value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object),
        list @ Value::Array(_) if reading.is_list() => {
            reading.keys().first().map(|key| Map::from_iter([((*key).to_owned(), list)]))
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The object itself when it has a key asked for, or the object that is its only member.
fn unwrapped_ref<'o, R: Reading>(
    reading: &R,
    object: &'o Map<String, Value>,
) -> Option<&'o Map<String, Value>> {
    let has_key =
        |object: &Map<String, Value>| object.keys().any(|key| reading.keys().contains(&plain(key).as_str()));
    if has_key(object) {
        return Some(object);
    }
    match object.values().next() {
        Some(Value::Object(inner)) if object.len() == 1 && has_key(inner) => Some(inner),
        _ => None,
    }
}

fn unwrapped<R: Reading>(reading: &R, object: Map<String, Value>) -> Option<Map<String, Value>> {
    unwrapped_ref(reading, &object).cloned()
}

/// A key in small letters and digits, so that `pairwise_choice`, `PairwiseChoice` and `Pairwise Choice` are one.
fn plain(key: &str) -> String {
    key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The member under one of these keys; an error when two of them hold different values.
fn member<'o>(object: &'o Map<String, Value>, keys: &[&str]) -> Result<Option<&'o Value>, String> {
    let mut values =
        object.iter().filter(|(key, _)| keys.contains(&plain(key).as_str())).map(|(_, value)| value);
    let Some(first) = values.next() else { return Ok(None) };
    match values.find(|value| *value != first) {
        None => Ok(Some(first)),
        Some(_) => Err(format!("there is more than one {}", keys.first().copied().unwrap_or("verdict"))),
    }
}

/// The text after one think block: `<think>…</think>` at its start, or all up to a closing tag whose opening
/// tag the chat template swallowed. A tag inside of a JSON object is part of what the object says.
fn after_thinking(text: &str) -> Result<&str, String> {
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]")] {
        if let Some(thoughts) = text.strip_prefix(open) {
            return match thoughts.find(close) {
                Some(end) => Ok(tidy(&thoughts[end + close.len()..])),
                None => Err("the reply ends before the judge had finished thinking".to_owned()),
            };
        }
        if let Some(end) = text.rfind(close) {
            let is_said = json::last_objects(text, KEPT_OBJECTS, |_| true)
                .found
                .iter()
                .any(|found| found.place.contains(&end));
            if !is_said {
                return Ok(tidy(&text[end + close.len()..]));
            }
        }
    }
    Ok(text)
}

/// A text without white space and invisible characters around it.
fn tidy(text: &str) -> &str {
    text.trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{0}')
    })
}

/// The inside of a code fence, when the text is one.
fn without_fence(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return text;
    };
    match inside.split_once('\n') {
        Some((word, rest)) if word.trim().chars().all(char::is_alphanumeric) => tidy(rest),
        _ => tidy(inside),
    }
}

/// At most `limit` characters of a text.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A reply form of these properties, in this order, all of them required.
fn json_form(name: &'static str, properties: Vec<(&str, Value)>) -> ReplyForm {
    ReplyForm::Json { name, schema: object_schema(properties) }
}

fn object_schema(properties: Vec<(&str, Value)>) -> Value {
    let required: Vec<&str> = properties.iter().map(|(key, _)| *key).collect();
    let required = serde_json::json!(required);
    let properties: Map<String, Value> =
        properties.into_iter().map(|(key, schema)| (key.to_owned(), schema)).collect();
    serde_json::json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests;
