//! JSON for fuzz inputs: texts from a few choices, and equality by definition.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use serde_json::Value;

const NAMES: [&str; 8] = [
    r#""a""#,
    r#""\u0061""#,
    r#""b""#,
    r#""name""#,
    r#""arguments""#,
    r#""tool_calls""#,
    r#""""#,
    r#""\"é\\""#,
];
const NUMBERS: [&str; 12] = [
    "0",
    "-0.0",
    "1",
    "1.0",
    "10e-1",
    "0.1E+1",
    "9007199254740993",
    "9007199254740992",
    "1e999",
    "10e998",
    "-12.50",
    "-1250e-2",
];
const SPACES: [&str; 6] = ["", "", "", " ", "\n", "\t\r "];
/// Broken on purpose, so that a part of the texts is not JSON.
const BROKEN: [&str; 8] = ["", ",", "nul", "01", "\"", "{", "NaN", "\u{feff}1"];

/// One value, in some spelling. The shape is small; what is deep has [`nested`].
pub fn value(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    let kinds = if depth == 0 { 9 } else { 15 };
    Ok(match u.int_in_range(0..=kinds)? {
        0 => "null".to_owned(),
        1 => "true".to_owned(),
        2 => "false".to_owned(),
        3..=5 => (*u.choose(&NUMBERS)?).to_owned(),
        6 => (*u.choose(&NAMES)?).to_owned(),
        7 => u.int_in_range(-20..=120_i8)?.to_string(),
        8 => text(u)?,
        9 if u.ratio(1, 16)? => (*u.choose(&BROKEN)?).to_owned(),
        10 | 11 => list(u, '[', ']', |u| value(u, depth - 1))?,
        12 => quoted(&value(u, depth - 1)?),
        _ => object(u, depth)?,
    })
}

/// An object with names that repeat now and then.
pub fn object(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    list(u, '{', '}', |u| {
        let (name, space) = (*u.choose(&NAMES)?, *u.choose(&SPACES)?);
        Ok(format!("{name}{space}:{space}{}", value(u, depth.saturating_sub(1))?))
    })
}

/// The JSON string of a text.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn text(u: &mut Unstructured<'_>) -> Result<String> {
    let length = u.int_in_range(0..=8)?.min(u.len());
    Ok(quoted(&String::from_utf8_lossy(u.bytes(length)?)))
}

fn list(
    u: &mut Unstructured<'_>,
    open: char,
    close: char,
    mut item: impl FnMut(&mut Unstructured<'_>) -> Result<String>,
) -> Result<String> {
    let count = u.int_in_range(0..=4)?;
    let items = (0..count).map(|_| item(u)).collect::<Result<Vec<_>>>()?;
    let space = *u.choose(&SPACES)?;
    Ok(format!("{open}{space}{}{space}{close}", items.join(&format!("{space},"))))
}

/// `inner` inside that many arrays or objects.
pub fn nested(inner: &str, depth: usize, objects: bool) -> String {
    let (open, close) = if objects { (r#"{"a":"#, "}") } else { ("[", "]") };
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// What a value is apart from its spelling: equal for equal values only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Model {
    Null,
    Bool(bool),
    /// Negative, digits without zeros at either end, power of ten.
    Number(bool, String, i128),
    String(String),
    Array(Vec<Model>),
    Object(BTreeMap<String, Model>),
}

/// The model of a value, unless a number's exponent is too long to add up here.
pub fn model(value: &Value) -> Option<Model> {
    Some(match value {
        Value::Null => Model::Null,
        Value::Bool(it) => Model::Bool(*it),
        Value::Number(number) => decimal(number.as_str())?,
        Value::String(text) => Model::String(text.clone()),
        Value::Array(items) => Model::Array(items.iter().map(model).collect::<Option<_>>()?),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| Some((name.clone(), model(value)?));
            Model::Object(members.iter().map(member).collect::<Option<_>>()?)
        }
    })
}

fn decimal(text: &str) -> Option<Model> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let mut power: i128 = if exponent.len() < 30 { exponent.parse().ok()? } else { return None };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    power -= fraction.len() as i128;
    let digits = format!("{}{fraction}", integer.trim_start_matches('-'));
    let short = digits.trim_end_matches('0');
    power += (digits.len() - short.len()) as i128;
    let short = short.trim_start_matches('0');
    Some(match short {
        "" => Model::Number(false, String::new(), 0),
        _ => Model::Number(integer.starts_with('-'), short.to_owned(), power),
    })
}

/// What serde_json makes of a text: `None` where it refuses what is within the grammar (more than 128
/// levels, a lone surrogate) or reads something else into it (its own name for numbers).
pub fn oracle(text: &str) -> Option<std::result::Result<Value, serde_json::Error>> {
    if text.contains("$serde_json") {
        return None;
    }
    match serde_json::from_str::<Value>(text) {
        Err(error) => {
            let message = error.to_string();
            let known = ["recursion limit", "surrogate", "hex escape"];
            if known.iter().any(|known| message.contains(known)) { None } else { Some(Err(error)) }
        }
        value => Some(value),
    }
}
