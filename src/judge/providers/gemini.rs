//! Gemini's `generateContent`, of the Gemini API (key) and of Vertex AI (bearer token).
//!
//! The base address is everything before `/models/{model}:generateContent`: by default the Gemini API's
//! `https://generativelanguage.googleapis.com/v1beta`, for Vertex AI
//! `https://HOST/v1/projects/PROJECT/locations/LOCATION/publishers/google`. Hosts of Vertex AI get the key as
//! bearer, all others as `x-goog-api-key`. Parts marked as thought are left out of the reply.

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Map, Value, json};

use super::{
    ALTERNATIVES, KeyHeader, Provider, Target, body_of, conversation, count_at, failure, list_at, ranked,
    refused, require_logprobs, text_at, unreadable, with_choices, with_text,
};
use crate::judge::secret::Secret;
use crate::judge::settings::{Auth, Environment, JudgeSettings, SettingsError, Structured};
use crate::judge::{JudgeError, Question, Reply, ReplyForm, Speaker, Usage};

/// An endpoint with `generateContent`.
#[derive(Debug)]
pub struct Gemini {
    target: Target,
    key_header: KeyHeader,
}

impl Gemini {
    /// # Errors
    /// The first setting that cannot be used.
    pub fn new(settings: &JudgeSettings, environment: Environment<'_>) -> Result<Self, SettingsError> {
        let host = settings.base()?.host().unwrap_or_default().to_ascii_lowercase();
        let usual = if host.ends_with("aiplatform.googleapis.com") { Auth::Bearer } else { Auth::ApiKey };
        let model = settings.model.trim_start_matches("models/");
        if !model.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '@')) {
            return Err(settings.error("model", "is no model name"));
        }
        Ok(Self {
            target: Target::new(settings, environment, &format!("/models/{model}:generateContent"))?,
            key_header: KeyHeader::new(settings.auth.unwrap_or(usual), "x-goog-api-key"),
        })
    }
}

impl Provider for Gemini {
    fn request(&self, question: &Question, key: Option<&Secret>) -> Result<Request<Bytes>, JudgeError> {
        let (system, turns) = conversation(question);
        let contents: Vec<Value> = turns
            .iter()
            .map(|(speaker, text)| match speaker {
                Speaker::User => json!({"role": "user", "parts": [{"text": text}]}),
                Speaker::Judge => json!({"role": "model", "parts": [{"text": text}]}),
            })
            .collect();
        let mut body = Map::new();
        body.insert("contents".to_owned(), contents.into());
        if let Some(system) = system {
            body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}]}));
        }
        let sampling = self.target.sampling(question);
        let mut config = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                config.insert(name.to_owned(), value);
            }
        };
        set("temperature", sampling.temperature.map(Value::from));
        set("topP", sampling.top_p.map(Value::from));
        set("seed", sampling.seed.map(Value::from));
        set("maxOutputTokens", sampling.max_tokens.map(Value::from));
        let choices = question.more_choices + 1;
        set("candidateCount", (choices > 1).then(|| choices.into()));
        set("thinkingConfig", sampling.reasoning_effort.as_deref().map(thinking));
        if matches!(question.form, ReplyForm::Label { .. }) {
            require_logprobs(question, true)?;
            set("responseLogprobs", Some(true.into()));
            set("logprobs", Some(ALTERNATIVES.into()));
        }
        if let Some(wanted) = self.target.wanted(question) {
            match wanted.mode {
                Structured::JsonSchema => {
                    set("responseMimeType", Some("application/json".into()));
                    set("responseJsonSchema", Some(wanted.schema.clone()));
                }
                Structured::JsonObject => set("responseMimeType", Some("application/json".into())),
                Structured::Tool => {
                    let function = json!({
                        "name": wanted.name,
                        "description": "Gives the verdict",
                        "parametersJsonSchema": wanted.schema,
                    });
                    let calling = json!({"mode": "ANY", "allowedFunctionNames": [wanted.name]});
                    body.insert("tools".to_owned(), json!([{"functionDeclarations": [function]}]));
                    body.insert("toolConfig".to_owned(), json!({"functionCallingConfig": calling}));
                }
                Structured::None => {}
            }
        }
        if !config.is_empty() {
            body.insert("generationConfig".to_owned(), config.into());
        }
        self.target.post(body, key, self.key_header.clone())
    }

    fn reply(&self, response: Response<Bytes>) -> Result<Reply, JudgeError> {
        let body = body_of(&response)?;
        let candidates = list_at(&body, "/candidates");
        let reply = with_choices(candidates.iter().map(said), || {
            match text_at(&body, "/promptFeedback/blockReason") {
                "" => unreadable("the answer has no candidates"),
                reason => refused(format!("the provider blocked the prompt: {}", failure::shorten(reason))),
            }
        })?;
        let thoughts = count_at(&body, "/usageMetadata/thoughtsTokenCount");
        Ok(Reply {
            model: text_at(&body, "/modelVersion").to_owned(),
            id: text_at(&body, "/responseId").to_owned(),
            usage: Usage {
                input_tokens: count_at(&body, "/usageMetadata/promptTokenCount"),
                output_tokens: count_at(&body, "/usageMetadata/candidatesTokenCount")
                    .saturating_add(thoughts),
                cached_input_tokens: count_at(&body, "/usageMetadata/cachedContentTokenCount"),
                reasoning_tokens: thoughts,
            },
            ..reply
        })
    }
}

/// What one candidate says.
fn said(candidate: &Value) -> Result<Reply, JudgeError> {
    let finish = text_at(candidate, "/finishReason");
    let truncated = match finish {
        "" | "STOP" | "FINISH_REASON_UNSPECIFIED" => false,
        "MAX_TOKENS" | "CONTINUATION" => true,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "MODEL_ARMOR"
        | "LANGUAGE" => {
            return Err(refused(format!("the provider blocked the answer: {finish}")));
        }
        other => {
            let why = failure::shorten(&format!("{other} {}", text_at(candidate, "/finishMessage")));
            return Err(unreadable(format!("the judge broke off: {why}")));
        }
    };
    let parts = list_at(candidate, "/content/parts");
    let text = match parts.iter().find_map(|part| part.pointer("/functionCall/args")) {
        Some(arguments) => arguments.to_string(),
        None => {
            let is_said = |part: &&Value| part.get("thought") != Some(&Value::Bool(true));
            parts.iter().filter(is_said).map(|part| text_at(part, "/text")).collect()
        }
    };
    let chosen = list_at(candidate, "/logprobsResult/chosenCandidates");
    let alternatives = list_at(candidate, "/logprobsResult/topCandidates")
        .iter()
        .enumerate()
        .map(|(at, position)| {
            let chosen = chosen.get(at).unwrap_or(&Value::Null);
            ranked(list_at(position, "/candidates"), chosen, "logProbability")
        })
        .collect();
    with_text(Reply { text, truncated, alternatives, ..Reply::default() })
}

/// Efforts in Gemini's words: a budget of 0 is off, and there is nothing above `high`.
fn thinking(effort: &str) -> Value {
    match effort {
        "none" => json!({"thinkingBudget": 0}),
        "xhigh" | "max" => json!({"thinkingLevel": "high"}),
        level => json!({"thinkingLevel": level}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::providers::testing::{body_json, everything, labels, settings, verdict};

    fn gemini(text: &str) -> Gemini {
        Gemini::new(&settings(&format!("provider = 'gemini'\nmodel = 'g-3'\n{text}")), &|_| None).unwrap()
    }

    #[test]
    fn the_gemini_api_takes_a_key() {
        let request = gemini("").request(&everything(), Some(&Secret::new("k"))).unwrap();
        let expected = "https://generativelanguage.googleapis.com/v1beta/models/g-3:generateContent";
        assert_eq!(request.uri(), expected);
        assert_eq!(request.headers()["x-goog-api-key"], "k");
        let expected = json!({
            "contents": [
                {"role": "user", "parts": [{"text": "rate it"}]},
                {"role": "model", "parts": [{"text": "hm"}]},
                {"role": "user", "parts": [{"text": "again"}]},
            ],
            "systemInstruction": {"parts": [{"text": "be fair"}]},
            "generationConfig": {
                "temperature": 0.5, "topP": 0.9, "seed": 7, "maxOutputTokens": 300,
                "thinkingConfig": {"thinkingLevel": "low"},
                "responseMimeType": "application/json",
                "responseJsonSchema": {
                    "type": "object",
                    "properties": {"explanation": {"type": "string"}, "score": {"type": "integer"}},
                    "required": ["explanation", "score"],
                    "additionalProperties": false,
                },
            },
        });
        assert_eq!(body_json(&request), expected);
    }

    #[test]
    fn vertex_takes_a_bearer_token() {
        let base =
            "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google";
        let request =
            gemini(&format!("base_url = '{base}'")).request(&verdict(), Some(&Secret::new("t"))).unwrap();
        assert_eq!(request.uri().to_string(), format!("{base}/models/g-3:generateContent"));
        assert_eq!(request.headers()["authorization"], "Bearer t");
        assert_eq!(request.headers().get("x-goog-api-key"), None);
    }

    #[test]
    fn nothing_set_means_no_generation_config() {
        let body = body_json(&gemini("structured = 'none'").request(&verdict(), None).unwrap());
        assert_eq!(body.get("generationConfig"), None);
    }

    #[test]
    fn a_label_asks_for_log_probabilities() {
        let body = body_json(&gemini("").request(&labels(), None).unwrap());
        let expected = json!({"maxOutputTokens": 1, "responseLogprobs": true, "logprobs": 20});
        assert_eq!(body["generationConfig"], expected);
    }

    #[test]
    fn several_candidates_are_asked_for_and_told_apart() {
        let mut question = verdict();
        question.more_choices = 2;
        let provider = gemini("");
        let body = body_json(&provider.request(&question, None).unwrap());
        assert_eq!(body["generationConfig"]["candidateCount"], 3);
        let said = |text: &str, finish: &str| json!({"content": {"parts": [{"text": text}]}, "finishReason": finish});
        let answer = json!({
            "candidates": [said("", "SAFETY"), said("a", "MAX_TOKENS"), said("b", "STOP")],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 30},
        });
        let reply = provider.reply(Response::new(Bytes::from(answer.to_string()))).unwrap();
        assert_eq!((reply.text.as_str(), reply.truncated, reply.usage.total()), ("a", true, 39));
        let others: Vec<_> =
            reply.more_choices.iter().map(|other| other.as_ref().map(|other| &*other.text)).collect();
        assert_eq!((others[0].is_err(), others[1].ok()), (true, Some("b")));
    }

    #[test]
    fn a_forced_tool_is_a_function_declaration() {
        let body = body_json(&gemini("structured = 'tool'").request(&verdict(), None).unwrap());
        assert_eq!(body["tools"][0]["functionDeclarations"][0]["name"], "verdict");
        assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "ANY");
    }
}
