//! Graders in the JSON of OpenAI's and Azure's APIs.
//!
//! Members that are not known are passed over, as there. Read besides what the reference writes:
//! `sampling_parameters` and `max_completion_tokens`, which Azure's pages write, and messages of several texts,
//! which are joined by line breaks. Images and audio are refused: a judge that does not get them would judge
//! something else.

use serde_json::{Map, Value};

use super::{Ask, Grader, LabelModel, Message, Multi, ScoreModel, StringCheck, TextSimilarity, WrongGrader};
use crate::judge::Sampling;

/// A grader with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// What it is called.
    pub name: String,
    /// The word that its `type` is.
    pub kind: &'static str,
    /// The grader.
    pub grader: Single,
}

/// One grader, or several under a formula.
#[derive(Debug, Clone, PartialEq)]
pub enum Single {
    /// One.
    One(Grader),
    /// Several.
    Multi(Multi),
}

/// Reads a grader.
///
/// # Errors
/// The first member that is wrong.
pub fn read(grader: &Value) -> Result<Named, WrongGrader> {
    let members = object(grader, "")?;
    let (kind, grader) = match text(members, "type")? {
        "multi" => ("multi", Single::Multi(multi(members)?)),
        _ => {
            let (kind, grader) = one(members)?;
            (kind, Single::One(grader))
        }
    };
    Ok(Named { name: text(members, "name")?.to_owned(), kind, grader })
}

fn one(members: &Map<String, Value>) -> Result<(&'static str, Grader), WrongGrader> {
    Ok(match text(members, "type")? {
        "string_check" => (
            "string_check",
            Grader::StringCheck(StringCheck::new(
                text(members, "input")?,
                text(members, "reference")?,
                text(members, "operation")?,
            )?),
        ),
        "text_similarity" => (
            "text_similarity",
            Grader::TextSimilarity(TextSimilarity::new(
                text(members, "input")?,
                text(members, "reference")?,
                text(members, "evaluation_metric")?,
                number(members, "pass_threshold")?,
            )?),
        ),
        "label_model" => {
            let (labels, passing) = (texts(members, "labels")?, texts(members, "passing_labels")?);
            ("label_model", Grader::LabelModel(LabelModel::new(ask(members)?, labels, passing)?))
        }
        "score_model" => {
            let range = match members.get("range") {
                None | Some(Value::Null) => Vec::new(),
                Some(range) => list(range, "range")?.iter().filter_map(Value::as_f64).collect(),
            };
            // An empty list is no range either, and numbers that are none must not go unseen.
            let is_whole = range.len() == members.get("range").and_then(Value::as_array).map_or(0, Vec::len);
            if !is_whole || members.get("range").is_some_and(Value::is_array) && range.is_empty() {
                return Err(WrongGrader::new("range", "is not a lower and a higher number"));
            }
            let threshold = number(members, "pass_threshold")?;
            ("score_model", Grader::ScoreModel(ScoreModel::new(ask(members)?, &range, threshold)?))
        }
        "multi" => return Err(WrongGrader::new("type", "a multi grader holds no multi grader")),
        "python" => {
            return Err(WrongGrader::new(
                "type",
                "python graders are not run: this service runs no code that a request brings; a formula of a multi \
                 grader may do",
            ));
        }
        other => {
            let other: String = other.chars().take(40).collect();
            return Err(WrongGrader::new(
                "type",
                format!(
                    "{other:?} is none of string_check, text_similarity, label_model, score_model, multi"
                ),
            ));
        }
    })
}

fn multi(members: &Map<String, Value>) -> Result<Multi, WrongGrader> {
    let graders = object(members.get("graders").unwrap_or(&Value::Null), "graders")?;
    let graders = graders.iter().map(|(name, grader)| {
        let shown: String = name.chars().take(40).collect();
        let place = format!("graders.{shown}");
        let (_, grader) = object(grader, "").and_then(one).map_err(|wrong| wrong.within(&place))?;
        Ok((name.clone(), grader))
    });
    Multi::new(graders.collect::<Result<_, WrongGrader>>()?, text(members, "calculate_output")?)
}

fn ask(members: &Map<String, Value>) -> Result<Ask, WrongGrader> {
    let input = members.get("input").ok_or_else(|| WrongGrader::new("input", "is missing"))?;
    let messages = list(input, "input")?.iter().enumerate().map(|(index, message)| {
        self::message(message).map_err(|wrong| wrong.within(format_args!("input[{index}]")))
    });
    let messages: Vec<Message> = messages.collect::<Result<_, _>>()?;
    Ask::new(text(members, "model")?, messages, sampling(members)?)
}

fn message(message: &Value) -> Result<Message, WrongGrader> {
    let members = object(message, "")?;
    let content = members.get("content").ok_or_else(|| WrongGrader::new("content", "is missing"))?;
    let content = match content {
        Value::Array(parts) => {
            let parts = parts.iter().enumerate().map(|(index, part)| {
                self::part(part).map_err(|wrong| wrong.within(format_args!("content[{index}]")))
            });
            parts.collect::<Result<Vec<_>, _>>()?.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            part(content).map_err(|wrong| wrong.within("content"))?.to_owned()
        }
    };
    Message::new(text(members, "role")?, &content)
}

/// The text of a part.
fn part(part: &Value) -> Result<&str, WrongGrader> {
    if let Value::String(text) = part {
        return Ok(text);
    }
    let members = object(part, "")?;
    match text(members, "type")? {
        "input_text" | "output_text" | "text" => text(members, "text"),
        "input_image" | "input_audio" => {
            Err(WrongGrader::new("type", "images and audio are not judged here, only texts"))
        }
        other => {
            let other: String = other.chars().take(40).collect();
            Err(WrongGrader::new("type", format!("{other:?} is neither input_text nor output_text")))
        }
    }
}

fn sampling(members: &Map<String, Value>) -> Result<Sampling, WrongGrader> {
    let given = |name: &str| members.get(name).filter(|value| !value.is_null());
    let Some(params) = given("sampling_params").or_else(|| given("sampling_parameters")) else {
        return Ok(Sampling::default());
    };
    let params = object(params, "sampling_params")?;
    let within = |wrong: WrongGrader| wrong.within("sampling_params");
    let whole = |name: &str| match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            value.as_i64().map(Some).ok_or_else(|| within(WrongGrader::new(name, "is not a whole number")))
        }
    };
    let max_tokens = match whole("max_completions_tokens")? {
        None => whole("max_completion_tokens")?,
        given => given,
    };
    let max_tokens = max_tokens.map(|tokens| {
        u32::try_from(tokens).map_err(|_| {
            within(WrongGrader::new("max_completions_tokens", format!("{tokens} is no number of tokens")))
        })
    });
    let reasoning_effort = match params.get("reasoning_effort") {
        None | Some(Value::Null) => None,
        Some(_) => Some(text(params, "reasoning_effort").map_err(within)?.to_owned()),
    };
    Ok(Sampling {
        temperature: number(params, "temperature").map_err(within)?,
        top_p: number(params, "top_p").map_err(within)?,
        seed: whole("seed")?,
        max_tokens: max_tokens.transpose()?,
        reasoning_effort,
    })
}

fn object<'v>(value: &'v Value, field: &str) -> Result<&'v Map<String, Value>, WrongGrader> {
    value.as_object().ok_or_else(|| expected(field, "an object", value))
}

fn list<'v>(value: &'v Value, field: &str) -> Result<&'v [Value], WrongGrader> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| expected(field, "a list", value))
}

fn text<'v>(members: &'v Map<String, Value>, field: &str) -> Result<&'v str, WrongGrader> {
    match members.get(field) {
        Some(Value::String(text)) => Ok(text),
        None => Err(WrongGrader::new(field, "is missing")),
        Some(other) => Err(expected(field, "a string", other)),
    }
}

fn texts(members: &Map<String, Value>, field: &str) -> Result<Vec<String>, WrongGrader> {
    let value = members.get(field).ok_or_else(|| WrongGrader::new(field, "is missing"))?;
    let text = |value: &Value| {
        value.as_str().map(str::to_owned).ok_or_else(|| expected(field, "a list of strings", value))
    };
    list(value, field)?.iter().map(text).collect()
}

fn number(members: &Map<String, Value>, field: &str) -> Result<Option<f64>, WrongGrader> {
    match members.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| expected(field, "a number", value)),
    }
}

fn expected(field: &str, wanted: &str, found: &Value) -> WrongGrader {
    let found = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    WrongGrader::new(field, format!("expected {wanted}, but got {found}"))
}
