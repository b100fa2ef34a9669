//! Anthropic messages: `POST {base}/v1/messages`, both API versions.
//!
//! Version `2026-10-21` refuses sampling parameters and takes the key as bearer; `2023-06-01` takes both as
//! they are and the key in `x-api-key`. There are no seeds and no log-probabilities. The total of input tokens
//! is the sum of three counters, since cached ones are counted apart.

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use serde_json::{Map, Value, json};

use super::{
    KeyHeader, Provider, Target, body_of, conversation, count_at, failure, list_at, refused,
    require_logprobs, text_at, unreadable, with_text,
};
use crate::judge::secret::Secret;
use crate::judge::settings::{Auth, Environment, JudgeSettings, SettingsError, Structured};
use crate::judge::{JudgeError, Question, Reply, ReplyForm, Speaker, Usage};

/// The version spoken when the settings name none.
const USUAL_VERSION: &str = "2023-06-01";
/// From this version on there are no sampling parameters.
const WITHOUT_SAMPLING: &str = "2026-10-21";
/// The wire requires a limit; this is long enough for any verdict, reasoning included.
const USUAL_LIMIT: u32 = 4096;

/// An endpoint with messages.
#[derive(Debug)]
pub struct Anthropic {
    target: Target,
    version: HeaderValue,
    takes_sampling: bool,
    key_header: KeyHeader,
}

impl Anthropic {
    /// # Errors
    /// The first setting that cannot be used.
    pub fn new(settings: &JudgeSettings, environment: Environment<'_>) -> Result<Self, SettingsError> {
        let version = settings.api_version.as_deref().unwrap_or(USUAL_VERSION);
        // Versions are dates, so their order is that of their texts.
        let takes_sampling = version < WITHOUT_SAMPLING;
        let path = if settings.base()?.path().ends_with("/v1") { "/messages" } else { "/v1/messages" };
        let usual_auth = if takes_sampling { Auth::ApiKey } else { Auth::Bearer };
        Ok(Self {
            target: Target::new(settings, environment, path)?,
            version: HeaderValue::from_str(version)
                .map_err(|_| settings.error("api_version", "is no version such as 2023-06-01"))?,
            takes_sampling,
            key_header: KeyHeader::new(settings.auth.unwrap_or(usual_auth), "x-api-key"),
        })
    }
}

impl Provider for Anthropic {
    fn request(&self, question: &Question, key: Option<&Secret>) -> Result<Request<Bytes>, JudgeError> {
        if matches!(question.form, ReplyForm::Label { .. }) {
            require_logprobs(question, false)?;
        }
        let (system, turns) = conversation(question);
        let messages: Vec<Value> = turns
            .iter()
            .map(|(speaker, text)| match speaker {
                Speaker::User => json!({"role": "user", "content": text}),
                Speaker::Judge => json!({"role": "assistant", "content": text}),
            })
            .collect();
        let sampling = self.target.sampling(question);
        let mut body = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        set("model", Some(self.target.model.clone().into()));
        set("max_tokens", Some(sampling.max_tokens.unwrap_or(USUAL_LIMIT).into()));
        set("messages", Some(messages.into()));
        set("system", system.map(Value::from));
        if self.takes_sampling {
            set("temperature", sampling.temperature.map(Value::from));
            set("top_p", sampling.top_p.map(Value::from));
        }
        let mut output = Map::new();
        if let Some(effort) = sampling.reasoning_effort.filter(|effort| effort != "none") {
            output.insert("effort".to_owned(), effort.into());
        }
        if let Some(wanted) = self.target.wanted(question) {
            match wanted.mode {
                Structured::JsonSchema => {
                    output
                        .insert("format".to_owned(), json!({"type": "json_schema", "schema": wanted.schema}));
                }
                Structured::Tool => {
                    let description = "Gives the verdict";
                    let tool = json!({"name": wanted.name, "description": description, "input_schema": wanted.schema});
                    set("tools", Some(json!([tool])));
                    set("tool_choice", Some(json!({"type": "tool", "name": wanted.name})));
                }
                Structured::JsonObject | Structured::None => {}
            }
        }
        set("output_config", (!output.is_empty()).then(|| output.into()));
        let mut request = self.target.post(body, key, self.key_header.clone())?;
        request.headers_mut().entry("anthropic-version").or_insert_with(|| self.version.clone());
        Ok(request)
    }

    fn reply(&self, response: Response<Bytes>) -> Result<Reply, JudgeError> {
        let body = body_of(&response)?;
        let stop = text_at(&body, "/stop_reason");
        let truncated = match stop {
            "refusal" => {
                let category = text_at(&body, "/stop_details/category");
                let category = if category.is_empty() { "no category given" } else { category };
                return Err(refused(format!("the judge declined: {}", failure::shorten(category))));
            }
            "pause_turn" => return Err(unreadable("the judge paused its turn instead of answering")),
            "max_tokens" | "model_context_window_exceeded" => true,
            _ => false,
        };
        let Some(blocks) = body.get("content").and_then(Value::as_array) else {
            return Err(unreadable("the answer has no content"));
        };
        let tool = blocks.iter().find(|block| text_at(block, "/type") == "tool_use");
        let text = match tool.and_then(|block| block.get("input")) {
            Some(input) => input.to_string(),
            None => {
                let is_text = |block: &&Value| text_at(block, "/type") == "text";
                list_at(&body, "/content")
                    .iter()
                    .filter(is_text)
                    .map(|block| text_at(block, "/text"))
                    .collect()
            }
        };
        let cached = count_at(&body, "/usage/cache_read_input_tokens");
        let input = count_at(&body, "/usage/input_tokens")
            .saturating_add(count_at(&body, "/usage/cache_creation_input_tokens"))
            .saturating_add(cached);
        with_text(Reply {
            text,
            model: text_at(&body, "/model").to_owned(),
            id: text_at(&body, "/id").to_owned(),
            truncated,
            usage: Usage {
                input_tokens: input,
                output_tokens: count_at(&body, "/usage/output_tokens"),
                cached_input_tokens: cached,
                reasoning_tokens: 0,
            },
            alternatives: Vec::new(),
            ..Reply::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::providers::testing::{body_json, everything, labels, settings, verdict};
    use crate::judge::{Field, JudgeErrorKind};

    fn anthropic(text: &str) -> Anthropic {
        Anthropic::new(&settings(&format!("provider = 'anthropic'\nmodel = 'm'\n{text}")), &|_| None).unwrap()
    }

    #[test]
    fn the_older_version_takes_sampling_and_a_plain_key() {
        let request = anthropic("").request(&everything(), Some(&Secret::new("k"))).unwrap();
        assert_eq!(request.uri(), "https://api.anthropic.com/v1/messages");
        assert_eq!(request.headers()["anthropic-version"], "2023-06-01");
        assert_eq!(request.headers()["x-api-key"], "k");
        assert_eq!(request.headers().get("authorization"), None);
        let body = body_json(&request);
        let expected = json!({
            "model": "m", "max_tokens": 300, "system": "be fair",
            "messages": [
                {"role": "user", "content": "rate it"},
                {"role": "assistant", "content": "hm"},
                {"role": "user", "content": "again"},
            ],
            "temperature": 0.5, "top_p": 0.9,
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {
                "type": "object",
                "properties": {"explanation": {"type": "string"}, "score": {"type": "integer"}},
                "required": ["explanation", "score"],
                "additionalProperties": false,
            }}},
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn the_newer_version_takes_neither() {
        let provider = anthropic("api_version = '2026-10-21'\ntemperature = 1.0");
        let request = provider.request(&everything(), Some(&Secret::new("k"))).unwrap();
        assert_eq!(request.headers()["anthropic-version"], "2026-10-21");
        assert_eq!(request.headers()["authorization"], "Bearer k");
        assert_eq!(request.headers().get("x-api-key"), None);
        let body = body_json(&request);
        assert_eq!(body.get("temperature"), None);
        assert_eq!(body.get("top_p"), None);
    }

    #[test]
    fn a_limit_is_always_sent_because_the_wire_requires_one() {
        let body = body_json(&anthropic("structured = 'none'").request(&verdict(), None).unwrap());
        assert_eq!(body["max_tokens"], 4096);
        assert_eq!(body.get("output_config"), None);
    }

    #[test]
    fn a_forced_tool_carries_the_schema() {
        let body = body_json(&anthropic("structured = 'tool'").request(&verdict(), None).unwrap());
        assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "verdict"}));
        assert_eq!(body["tools"][0]["name"], "verdict");
        assert_eq!(body["tools"][0]["input_schema"]["required"], json!(["explanation", "score"]));
    }

    #[test]
    fn labels_with_probabilities_cannot_be_had() {
        let error = anthropic("").request(&labels(), None).unwrap_err();
        assert_eq!(error.kind, JudgeErrorKind::Unsupported(Field::LogProbs));
    }
}
