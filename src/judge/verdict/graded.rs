//! The answer of a grader: steps, and a result that is a number or a label.

use serde_json::{Map, Value, json};

use super::choice::{index_of, one_of};
use super::score::{Scale, bare_number, number_of, on_scale};
use super::{Reading, json_form, member, object_schema};
use crate::judge::ReplyForm;

/// What the result of a grader may be.
#[derive(Debug, Clone, PartialEq)]
pub enum Graded {
    /// A number; the value is that number.
    Number(Scale),
    /// A number; what is beyond one of these two counts as that one, as in the hosted graders.
    Clamped {
        /// The lowest value.
        lo: f64,
        /// The highest value.
        hi: f64,
    },
    /// One of these labels; the value is its index.
    Label(Vec<String>),
}

/// Asks for `{steps: [{description, conclusion}], result}`.
///
/// A result outside of a scale is no verdict; only [`Graded::Clamped`] moves it to the nearer end.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    /// What the result may be.
    pub result: Graded,
}

impl Reading for Steps {
    /// The number, or the index of the label.
    type Value = f64;

    fn form(&self) -> ReplyForm {
        let text = || json!({"type": "string"});
        let step = object_schema(vec![("description", text()), ("conclusion", text())]);
        let result = match &self.result {
            Graded::Number(_) | Graded::Clamped { .. } => json!({"type": "number"}),
            Graded::Label(labels) => json!({"type": "string", "enum": labels}),
        };
        json_form("grade", vec![("steps", json!({"type": "array", "items": step})), ("result", result)])
    }

    fn instructions(&self) -> String {
        let result = match &self.result {
            Graded::Number(Scale::Open) => "the score, a number".to_owned(),
            Graded::Number(scale) => match scale.bounds() {
                Some((lo, hi)) => format!("the score, a number from {lo} to {hi}"),
                None => "the score, a number".to_owned(),
            },
            Graded::Clamped { lo, hi } => format!("the score, a number from {lo} to {hi}"),
            Graded::Label(labels) => format!("one of {}", json!(labels)),
        };
        format!(
            "Reply with one JSON object and nothing else:\n\
             {{\"steps\": [{{\"description\": \"…\", \"conclusion\": \"…\"}}], \"result\": …}}\n\
             steps: a few short checks that lead to the result, each with what it found.\n\
             result: {result}."
        )
    }

    fn keys(&self) -> &'static [&'static str] {
        match self.result {
            Graded::Number(_) | Graded::Clamped { .. } => &["result", "score"],
            Graded::Label(_) => &["result", "label"],
        }
    }

    fn read(&self, object: &Map<String, Value>) -> Result<f64, String> {
        let value = member(object, self.keys())?.ok_or("there is no result in the reply")?;
        match &self.result {
            Graded::Number(scale) => on_scale(value, scale),
            Graded::Clamped { lo, hi } => {
                number_of(value, &Scale::Range { lo: *lo, hi: *hi }).map(|number| number.clamp(*lo, *hi))
            }
            #[expect(clippy::cast_precision_loss, reason = "a request has far fewer labels than 2^53")]
            Graded::Label(labels) => one_of(value, labels).map(|index| index as f64),
        }
    }

    fn read_bare(&self, text: &str) -> Option<f64> {
        match &self.result {
            Graded::Number(scale) => bare_number(text, scale).filter(|number| scale.admits(*number)),
            Graded::Clamped { lo, hi } => {
                bare_number(text, &Scale::Range { lo: *lo, hi: *hi }).map(|number| number.clamp(*lo, *hi))
            }
            #[expect(clippy::cast_precision_loss, reason = "a request has far fewer labels than 2^53")]
            Graded::Label(labels) => index_of(text, labels).map(|index| index as f64),
        }
    }

    fn explain(&self, object: &Map<String, Value>) -> Option<String> {
        let steps = object.iter().find(|(key, _)| key.eq_ignore_ascii_case("steps"))?.1.as_array()?;
        let lines: Vec<String> = steps
            .iter()
            .map(|step| {
                let said = |key| step.get(key).and_then(Value::as_str).unwrap_or_default().trim();
                format!("{}: {}", said("description"), said("conclusion"))
            })
            .collect();
        Some(lines.join("\n"))
    }
}
