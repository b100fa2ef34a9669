//! A number on a scale.
//!
//! Read as numbers: `4`, `4.0`, `"4"`, `"4/5"` where 5 is the top of the scale, `"4 out of 5"`, `"Score: 4"`.
//! Off the scale, between two levels, `NaN`, `null`, `true` and words are no score; nothing is clamped.

use serde_json::{Map, Value, json};

use super::{Reading, json_form, member, shorten, tidy};
use crate::judge::ReplyForm;

/// The numbers that a judge may give.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// These only, in ascending order.
    Levels(Vec<f64>),
    /// Any number from `lo` to `hi`, both included.
    Range {
        /// The lowest.
        lo: f64,
        /// The highest.
        hi: f64,
    },
    /// Any finite number: a caller's template that declares no scale.
    Open,
}

impl Scale {
    /// The lowest and the highest number; `None` when there is none.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        match self {
            Self::Levels(levels) => Some((*levels.first()?, *levels.last()?)),
            Self::Range { lo, hi } => Some((*lo, *hi)),
            Self::Open => None,
        }
    }

    /// Whether a judge may give this number.
    pub fn admits(&self, number: f64) -> bool {
        match self {
            Self::Levels(levels) => levels.contains(&number),
            Self::Range { lo, hi } => (*lo..=*hi).contains(&number),
            Self::Open => number.is_finite(),
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Levels(levels) => {
                let words: Vec<String> = levels.iter().map(f64::to_string).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Range { lo, hi } => format!("a number from {lo} to {hi}"),
            Self::Open => "a number on the scale that the task names".to_owned(),
        }
    }
}

/// Asks for `{explanation, score}`.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The numbers that count.
    pub scale: Scale,
}

impl Reading for Score {
    type Value = f64;

    fn form(&self) -> ReplyForm {
        let whole = match &self.scale {
            Scale::Levels(levels) => levels.iter().all(|level| level.fract() == 0.0),
            Scale::Range { .. } | Scale::Open => false,
        };
        let number = if whole { "integer" } else { "number" };
        json_form(
            "score",
            vec![("explanation", json!({"type": "string"})), ("score", json!({"type": number}))],
        )
    }

    fn instructions(&self) -> String {
        format!(
            "Reply with one JSON object and nothing else:\n\
             {{\"explanation\": \"…\", \"score\": …}}\n\
             explanation: two or three sentences that give the reasons for the score.\n\
             score: {}.",
            self.scale.in_words()
        )
    }

    fn keys(&self) -> &'static [&'static str] {
        &["score"]
    }

    fn read(&self, object: &Map<String, Value>) -> Result<f64, String> {
        let value = member(object, self.keys())?.ok_or("there is no score in the reply")?;
        on_scale(value, &self.scale)
    }

    fn read_bare(&self, text: &str) -> Option<f64> {
        bare_number(text, &self.scale).filter(|number| self.scale.admits(*number))
    }
}

/// The number that `value` is, when it is on the scale.
pub(super) fn on_scale(value: &Value, scale: &Scale) -> Result<f64, String> {
    match number_of(value, scale)? {
        number if scale.admits(number) => Ok(number),
        _ => Err(format!("the score {} is not {}", shorten(&value.to_string(), 40), scale.in_words())),
    }
}

/// The number that `value` is, on the scale or not.
pub(super) fn number_of(value: &Value, scale: &Scale) -> Result<f64, String> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => bare_number(text, scale),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.ok_or_else(|| format!("the score {} is no number", shorten(&value.to_string(), 40)))
}

/// The number that a text is: `4`, `-1`, `4/5`, `4 out of 5`, `Score: 4`.
pub(super) fn bare_number(text: &str, scale: &Scale) -> Option<f64> {
    let text = tidy(text).trim_matches(|c: char| matches!(c, '*' | '`' | '"' | '\'') || c.is_whitespace());
    let number = match text.split_once([':', '=']) {
        Some((word, number))
            if ["score", "rating", "result"].contains(&word.trim().to_lowercase().as_str()) =>
        {
            number.trim_matches(|c: char| c == '*' || c.is_whitespace())
        }
        Some(_) => return None,
        None => text,
    };
    let number = number.strip_suffix('.').unwrap_or(number);
    match number.split_once('/').or_else(|| number.split_once(" out of ")) {
        None => finite(number),
        Some((number, top)) => {
            let (number, top) = (finite(number)?, finite(top)?);
            let is_top = scale.bounds().is_none_or(|(_, hi)| hi == top);
            (is_top && number <= top).then_some(number)
        }
    }
}

fn finite(text: &str) -> Option<f64> {
    // U+2212 is the minus sign of typographers
    let text = text.trim().replace('\u{2212}', "-");
    text.parse::<f64>().ok().filter(|number| number.is_finite())
}
