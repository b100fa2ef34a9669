//! Rubrics written by a judge, and its verdict on each of a list of rubrics.

use serde_json::{Map, Value, json};

use super::{Reading, json_form, member, object_schema, shorten};
use crate::judge::ReplyForm;

/// A judge may write so many rubrics for one item.
const MAX_RUBRICS: usize = 50;

/// How much a rubric matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Importance {
    /// The answer is useless without it.
    High,
    /// The answer is worse without it.
    Medium,
    /// Nice to have.
    Low,
}

/// A property that a good answer has, which holds or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRubric {
    /// The property, one sentence.
    pub text: String,
    /// What sort of property it is, such as `LANGUAGE:PRIMARY_RESPONSE_LANGUAGE`; empty = not said.
    pub kind: String,
    /// How much it matters, when said.
    pub importance: Option<Importance>,
}

/// Asks for `{rubrics: [{text, type, importance}]}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RubricList {
    /// Whether a list without a single rubric is an answer.
    pub may_be_empty: bool,
}

impl Reading for RubricList {
    type Value = Vec<WrittenRubric>;

    fn form(&self) -> ReplyForm {
        let text = || json!({"type": "string"});
        let importance = json!({"type": "string", "enum": ["HIGH", "MEDIUM", "LOW"]});
        let rubric = object_schema(vec![("text", text()), ("type", text()), ("importance", importance)]);
        json_form("rubrics", vec![("rubrics", json!({"type": "array", "items": rubric}))])
    }

    fn instructions(&self) -> String {
        format!(
            "Reply with one JSON object and nothing else:\n\
             {{\"rubrics\": [{{\"text\": \"…\", \"type\": \"…\", \"importance\": \"HIGH\"}}]}}\n\
             text: one statement that can be answered with yes or no on its own.\n\
             type: a short name of what it is about, in capitals, such as CONTENT or FORMAT:LENGTH.\n\
             importance: HIGH, MEDIUM or LOW.\n\
             {} at most {MAX_RUBRICS} rubrics, no two of them about the same thing.",
            if self.may_be_empty { "An empty list when there is nothing to list," } else { "At least one," }
        )
    }

    fn keys(&self) -> &'static [&'static str] {
        &["rubrics"]
    }

    fn is_list(&self) -> bool {
        true
    }

    fn read(&self, object: &Map<String, Value>) -> Result<Self::Value, String> {
        let list = member(object, self.keys())?.and_then(Value::as_array).ok_or("rubrics is no list")?;
        if list.len() > MAX_RUBRICS {
            return Err(format!("{} rubrics are more than {MAX_RUBRICS}", list.len()));
        }
        if list.is_empty() && !self.may_be_empty {
            return Err("the list of rubrics is empty".to_owned());
        }
        list.iter().map(written_rubric).collect()
    }
}

fn written_rubric(value: &Value) -> Result<WrittenRubric, String> {
    let (text, kind, importance) = match value {
        Value::String(text) => (Some(text.as_str()), None, None),
        Value::Object(object) => {
            let said = |keys: &[&str]| member(object, keys).map(|value| value.and_then(Value::as_str));
            (said(&["text", "rubric", "description"])?, said(&["type"])?, said(&["importance"])?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => (None, None, None),
    };
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| format!("a rubric has no text: {}", shorten(&value.to_string(), 80)))?;
    let importance = match importance.unwrap_or_default().to_uppercase().as_str() {
        "HIGH" => Some(Importance::High),
        "MEDIUM" => Some(Importance::Medium),
        "LOW" => Some(Importance::Low),
        _ => None,
    };
    Ok(WrittenRubric { text: text.to_owned(), kind: kind.unwrap_or_default().to_owned(), importance })
}

/// A verdict on one rubric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RubricVerdict {
    /// Whether the answer has the property.
    pub satisfied: bool,
    /// Why.
    pub explanation: String,
}

/// Asks for `{verdicts: [{id, explanation, satisfied}]}`, ids from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RubricVerdicts {
    /// How many rubrics there are.
    pub count: usize,
}

impl Reading for RubricVerdicts {
    /// One for each rubric, in order.
    type Value = Vec<RubricVerdict>;

    fn form(&self) -> ReplyForm {
        let verdict = object_schema(vec![
            ("id", json!({"type": "integer"})),
            ("explanation", json!({"type": "string"})),
            ("satisfied", json!({"type": "boolean"})),
        ]);
        json_form("verdicts", vec![("verdicts", json!({"type": "array", "items": verdict}))])
    }

    fn instructions(&self) -> String {
        format!(
            "Reply with one JSON object and nothing else:\n\
             {{\"verdicts\": [{{\"id\": 1, \"explanation\": \"…\", \"satisfied\": true}}]}}\n\
             One verdict for each of the {} numbered rubrics, in their order.\n\
             id: the number of the rubric.\n\
             explanation: one sentence that gives the reason.\n\
             satisfied: true or false.",
            self.count
        )
    }

    fn keys(&self) -> &'static [&'static str] {
        &["verdicts"]
    }

    fn is_list(&self) -> bool {
        true
    }

    fn read(&self, object: &Map<String, Value>) -> Result<Self::Value, String> {
        let list = member(object, self.keys())?.and_then(Value::as_array).ok_or("verdicts is no list")?;
        let mut verdicts: Vec<Option<RubricVerdict>> = vec![None; self.count];
        let has_ids = list.iter().any(|entry| entry.get("id").is_some());
        if !has_ids && list.len() != self.count {
            return Err(format!("{} verdicts for {} rubrics", list.len(), self.count));
        }
        for (position, entry) in list.iter().enumerate() {
            let id = if has_ids { id_of(entry)? } else { position };
            let place =
                verdicts.get_mut(id).ok_or_else(|| format!("there is no rubric {}", id.saturating_add(1)))?;
            let verdict = rubric_verdict(entry).map_err(|reason| format!("rubric {}: {reason}", id + 1))?;
            if place.as_ref().is_some_and(|earlier| earlier.satisfied != verdict.satisfied) {
                return Err(format!("rubric {} has two verdicts", id + 1));
            }
            *place = Some(verdict);
        }
        let missing = verdicts.iter().position(Option::is_none);
        match missing {
            Some(id) => Err(format!("rubric {} has no verdict", id + 1)),
            None => Ok(verdicts.into_iter().flatten().collect()),
        }
    }
}

/// The position of the rubric that an entry is about.
fn id_of(entry: &Value) -> Result<usize, String> {
    let number = match entry.get("id") {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
    };
    number
        .and_then(|id| usize::try_from(id).ok())
        .and_then(|id| id.checked_sub(1))
        .ok_or_else(|| format!("a verdict names no rubric: {}", shorten(&entry.to_string(), 80)))
}

fn rubric_verdict(entry: &Value) -> Result<RubricVerdict, String> {
    let object = entry.as_object().ok_or("no object")?;
    let value = member(object, &["satisfied", "verdict"])?.ok_or("no verdict")?;
    let satisfied = match value {
        Value::Bool(satisfied) => Some(*satisfied),
        Value::String(word) => match word.trim().to_lowercase().as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            _ => None,
        },
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let satisfied =
        satisfied.ok_or_else(|| format!("{} is neither true nor false", shorten(&value.to_string(), 40)))?;
    let explanation = member(object, &["explanation", "reasoning", "reason"])?.and_then(Value::as_str);
    Ok(RubricVerdict { satisfied, explanation: explanation.unwrap_or_default().trim().to_owned() })
}
