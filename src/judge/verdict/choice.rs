//! A choice: A, B or SAME between two texts; one label out of several.
//!
//! A word counts only when it is the whole value: `incorrect` contains `correct` and is not it.

use serde_json::{Map, Value, json};

use super::{Reading, json_form, member, shorten, tidy};
use crate::judge::ReplyForm;

/// What a judge says of two texts, by the places in which it saw them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shown {
    /// The one called A is better.
    A,
    /// The one called B is better.
    B,
    /// Neither is.
    Same,
}

/// Asks for `{explanation, choice}` with A, B or SAME.
///
/// Also read: the key `pairwise_choice`, other letter case, `Response A`, `[[A]]`, and for SAME the word `TIE`
/// of Vertex's own enum and its everyday name `EQUAL`. Not `BOTH` and not `NEITHER`: they say something of
/// the quality of the two, nothing of which one is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pair;

impl Reading for Pair {
    type Value = Shown;

    fn form(&self) -> ReplyForm {
        json_form(
            "choice",
            vec![
                ("explanation", json!({"type": "string"})),
                ("choice", json!({"type": "string", "enum": ["A", "B", "SAME"]})),
            ],
        )
    }

    fn instructions(&self) -> String {
        "Reply with one JSON object and nothing else:\n\
         {\"explanation\": \"…\", \"choice\": \"…\"}\n\
         explanation: two or three sentences that give the reasons for the choice.\n\
         choice: \"A\" when response A is better, \"B\" when response B is better, \"SAME\" when they are \
         equally good."
            .to_owned()
    }

    fn keys(&self) -> &'static [&'static str] {
        &["choice", "pairwisechoice"]
    }

    fn read(&self, object: &Map<String, Value>) -> Result<Shown, String> {
        let value = member(object, self.keys())?.ok_or("there is no choice in the reply")?;
        value
            .as_str()
            .and_then(shown)
            .ok_or_else(|| format!("the choice {} is none of A, B, SAME", shorten(&value.to_string(), 40)))
    }

    fn read_bare(&self, text: &str) -> Option<Shown> {
        shown(text)
    }
}

fn shown(text: &str) -> Option<Shown> {
    let word = bare_word(text).trim_matches(['[', ']']).to_uppercase();
    let word = ["RESPONSE ", "ANSWER ", "OPTION "]
        .into_iter()
        .find_map(|lead| word.strip_prefix(lead))
        .unwrap_or(&word)
        .trim();
    match word {
        "A" => Some(Shown::A),
        "B" => Some(Shown::B),
        "SAME" | "TIE" | "EQUAL" => Some(Shown::Same),
        _ => None,
    }
}

/// A word without the marks that judges put around one.
fn bare_word(text: &str) -> &str {
    let text = tidy(text).trim_matches(|c: char| matches!(c, '*' | '`' | '"' | '\'') || c.is_whitespace());
    tidy(text.strip_suffix(['.', '!']).unwrap_or(text))
}

/// Asks for `{explanation, label}` with one of these labels; the value is the label's index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// What may be said.
    pub labels: Vec<String>,
}

impl Reading for Label {
    type Value = usize;

    fn form(&self) -> ReplyForm {
        json_form(
            "label",
            vec![
                ("explanation", json!({"type": "string"})),
                ("label", json!({"type": "string", "enum": self.labels})),
            ],
        )
    }

    fn instructions(&self) -> String {
        format!(
            "Reply with one JSON object and nothing else:\n\
             {{\"explanation\": \"…\", \"label\": \"…\"}}\n\
             explanation: two or three sentences that give the reasons for the label.\n\
             label: one of {}.",
            json!(self.labels)
        )
    }

    fn keys(&self) -> &'static [&'static str] {
        &["label"]
    }

    fn read(&self, object: &Map<String, Value>) -> Result<usize, String> {
        let value = member(object, self.keys())?.ok_or("there is no label in the reply")?;
        one_of(value, &self.labels)
    }

    fn read_bare(&self, text: &str) -> Option<usize> {
        index_of(text, &self.labels)
    }
}

/// The index of the label that `value` is.
pub(super) fn one_of(value: &Value, labels: &[String]) -> Result<usize, String> {
    let found = match value {
        Value::String(text) => index_of(text, labels),
        Value::Bool(_) | Value::Number(_) => index_of(&value.to_string(), labels),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    found.ok_or_else(|| {
        format!(
            "{} is none of the labels {}",
            shorten(&value.to_string(), 40),
            shorten(&json!(labels).to_string(), 100)
        )
    })
}

/// The label that a text is: to the letter, or else the only one that differs in letter case and marks around.
pub(super) fn index_of(text: &str, labels: &[String]) -> Option<usize> {
    if let Some(exact) = labels.iter().position(|label| label == text) {
        return Some(exact);
    }
    let folded = |text: &str| bare_word(text).to_lowercase();
    let wanted = folded(text);
    let mut alike = labels.iter().enumerate().filter(|(_, label)| folded(label) == wanted);
    match (alike.next(), alike.next()) {
        (Some((index, _)), None) => Some(index),
        _ => None,
    }
}
