//! Questions that the tests of all wires ask.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use crate::judge::settings::JudgeSettings;
use crate::judge::{Question, ReplyForm, Sampling, Speaker, Turn};

pub(crate) fn settings(text: &str) -> JudgeSettings {
    let settings: JudgeSettings = toml::from_str(text).unwrap();
    settings.check().unwrap();
    settings
}

pub(crate) fn body_json(request: &Request<Bytes>) -> Value {
    serde_json::from_slice(request.body()).unwrap()
}

/// A system text, one turn, a schema, nothing else set.
pub(crate) fn verdict() -> Question {
    let schema = json!({
        "type": "object",
        "properties": {"explanation": {"type": "string"}, "score": {"type": "integer"}},
        "required": ["explanation", "score"],
        "additionalProperties": false,
    });
    Question {
        system: "be fair".to_owned(),
        turns: vec![said(Speaker::User, "rate it")],
        form: ReplyForm::Json { name: "verdict", schema },
        ..Question::default()
    }
}

/// Three turns and every sampling parameter.
pub(crate) fn everything() -> Question {
    let mut question = verdict();
    question.turns.push(said(Speaker::Judge, "hm"));
    question.turns.push(said(Speaker::User, "again"));
    question.sampling = Sampling {
        temperature: Some(0.5),
        top_p: Some(0.9),
        seed: Some(7),
        max_tokens: Some(300),
        reasoning_effort: Some("low".to_owned()),
    };
    question
}

/// One token out of two.
pub(crate) fn labels() -> Question {
    Question { form: ReplyForm::Label { labels: vec!["Yes".to_owned(), "No".to_owned()] }, ..verdict() }
}

fn said(speaker: Speaker, text: &str) -> Turn {
    Turn { speaker, text: text.to_owned() }
}
