//! Ollama's native chat: `POST {base}/api/chat`.
//!
//! Ollama cuts prompts that are longer than its context without a word, and its default context is short. So
//! `num_ctx` is always sent, newer servers are told not to cut, and an answer to a prompt that filled the whole
//! context is an error. What the server keeps apart as `thinking` is left out of the reply.

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Map, Value, json};

use super::{
    ALTERNATIVES, KeyHeader, Provider, Target, body_of, conversation, count_at, list_at, ranked,
    require_logprobs, text_at, unreadable, with_text,
};
use crate::judge::secret::Secret;
use crate::judge::settings::{Auth, Environment, JudgeSettings, SettingsError, Structured};
use crate::judge::{JudgeError, JudgeErrorKind, Question, Reply, ReplyForm, Speaker, Usage};

/// Context length when the settings name none. One fixed value, because a change of it reloads the model.
const USUAL_CONTEXT: u32 = 8192;

/// An Ollama server.
#[derive(Debug)]
pub struct Ollama {
    target: Target,
    num_ctx: u32,
    key_header: KeyHeader,
}

impl Ollama {
    /// # Errors
    /// The first setting that cannot be used.
    pub fn new(settings: &JudgeSettings, environment: Environment<'_>) -> Result<Self, SettingsError> {
        let path = if settings.base()?.path().ends_with("/api") { "/chat" } else { "/api/chat" };
        Ok(Self {
            target: Target::new(settings, environment, path)?,
            num_ctx: settings.num_ctx.unwrap_or(USUAL_CONTEXT),
            key_header: KeyHeader::new(settings.auth.unwrap_or(Auth::Bearer), "x-api-key"),
        })
    }
}

impl Provider for Ollama {
    fn request(&self, question: &Question, key: Option<&Secret>) -> Result<Request<Bytes>, JudgeError> {
        let (system, turns) = conversation(question);
        let mut messages: Vec<Value> = Vec::new();
        messages.extend(system.map(|text| json!({"role": "system", "content": text})));
        messages.extend(turns.iter().map(|(speaker, text)| match speaker {
            Speaker::User => json!({"role": "user", "content": text}),
            Speaker::Judge => json!({"role": "assistant", "content": text}),
        }));
        let sampling = self.target.sampling(question);
        let mut options = Map::new();
        options.insert("num_ctx".to_owned(), self.num_ctx.into());
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                options.insert(name.to_owned(), value);
            }
        };
        set("temperature", sampling.temperature.map(Value::from));
        set("top_p", sampling.top_p.map(Value::from));
        set("seed", sampling.seed.map(Value::from));
        set("num_predict", sampling.max_tokens.map(Value::from));

        let mut body = Map::new();
        body.insert("model".to_owned(), self.target.model.clone().into());
        body.insert("messages".to_owned(), messages.into());
        body.insert("stream".to_owned(), false.into());
        body.insert("truncate".to_owned(), false.into());
        body.insert("options".to_owned(), options.into());
        if let Some(effort) = sampling.reasoning_effort {
            body.insert("think".to_owned(), thinking(&effort));
        }
        if matches!(question.form, ReplyForm::Label { .. }) {
            require_logprobs(question, true)?;
            body.insert("logprobs".to_owned(), true.into());
            body.insert("top_logprobs".to_owned(), ALTERNATIVES.into());
        }
        if let Some(wanted) = self.target.wanted(question) {
            match wanted.mode {
                Structured::JsonSchema => body.insert("format".to_owned(), wanted.schema.clone()),
                Structured::JsonObject => body.insert("format".to_owned(), "json".into()),
                Structured::Tool | Structured::None => None,
            };
        }
        self.target.post(body, key, self.key_header.clone())
    }

    fn reply(&self, response: Response<Bytes>) -> Result<Reply, JudgeError> {
        let body = body_of(&response)?;
        let Some(message) = body.get("message") else {
            return Err(unreadable("the answer has no message"));
        };
        let prompt_tokens = count_at(&body, "/prompt_eval_count");
        if prompt_tokens >= u64::from(self.num_ctx) {
            return Err(JudgeError::new(
                JudgeErrorKind::PromptTooLong,
                format!("the prompt fills the whole context of {} tokens, raise num_ctx", self.num_ctx),
            ));
        }
        let alternatives = list_at(&body, "/logprobs")
            .iter()
            .map(|position| ranked(list_at(position, "/top_logprobs"), position, "logprob"))
            .collect();
        with_text(Reply {
            text: text_at(message, "/content").to_owned(),
            model: text_at(&body, "/model").to_owned(),
            id: String::new(),
            truncated: text_at(&body, "/done_reason") == "length",
            usage: Usage {
                input_tokens: prompt_tokens,
                output_tokens: count_at(&body, "/eval_count"),
                ..Usage::default()
            },
            alternatives,
            ..Reply::default()
        })
    }
}

/// Efforts in Ollama's words: off, or one of three levels.
fn thinking(effort: &str) -> Value {
    match effort {
        "none" => false.into(),
        "minimal" => "low".into(),
        "xhigh" | "max" => "high".into(),
        level => level.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::providers::testing::{body_json, everything, labels, settings, verdict};

    fn ollama(text: &str) -> Ollama {
        Ollama::new(&settings(&format!("provider = 'ollama'\nmodel = 'm'\n{text}")), &|_| None).unwrap()
    }

    #[test]
    fn every_field_has_its_name_on_the_wire() {
        let request = ollama("num_ctx = 4096").request(&everything(), None).unwrap();
        assert_eq!(request.uri(), "http://127.0.0.1:11434/api/chat");
        let expected = json!({
            "model": "m", "stream": false, "truncate": false, "think": "low",
            "messages": [
                {"role": "system", "content": "be fair"},
                {"role": "user", "content": "rate it"},
                {"role": "assistant", "content": "hm"},
                {"role": "user", "content": "again"},
            ],
            "options": {"num_ctx": 4096, "temperature": 0.5, "top_p": 0.9, "seed": 7, "num_predict": 300},
            "format": {
                "type": "object",
                "properties": {"explanation": {"type": "string"}, "score": {"type": "integer"}},
                "required": ["explanation", "score"],
                "additionalProperties": false,
            },
        });
        assert_eq!(body_json(&request), expected);
    }

    #[test]
    fn the_context_length_is_sent_even_when_nothing_is_set() {
        let body = body_json(&ollama("structured = 'json_object'").request(&verdict(), None).unwrap());
        assert_eq!(body["options"], json!({"num_ctx": 8192}));
        assert_eq!(body["format"], "json");
    }

    #[test]
    fn a_label_asks_for_log_probabilities() {
        let body = body_json(&ollama("").request(&labels(), None).unwrap());
        assert_eq!((&body["logprobs"], &body["top_logprobs"]), (&json!(true), &json!(20)));
        assert_eq!(body["options"]["num_predict"], 1);
    }
}
