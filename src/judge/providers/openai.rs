//! Chat completions: OpenAI and every server that speaks its protocol (vLLM, llama.cpp, LiteLLM, TGI, …).
//!
//! `POST {base}/chat/completions`. Only fields that are set are sent, since compatible servers refuse what they
//! do not know; `n` is never used, because servers limit it each in its own way. Text that a server keeps apart
//! as reasoning (`reasoning_content`, `reasoning`) is left out of the reply.

use bytes::Bytes;
use http::{Request, Response, Uri};
use serde_json::{Map, Value, json};

use super::{
    ALTERNATIVES, KeyHeader, Provider, Target, body_of, conversation, count_at, failure, list_at, ranked,
    refused, require_logprobs, text_at, unreadable, with_choices, with_text,
};
use crate::judge::secret::Secret;
use crate::judge::settings::{Auth, Environment, JudgeSettings, SettingsError, Structured, TokenLimitName};
use crate::judge::{Field, JudgeError, Question, Reply, ReplyForm, Speaker, Usage};

/// An endpoint with chat completions.
#[derive(Debug)]
pub struct OpenAi {
    target: Target,
    limit_name: TokenLimitName,
    key_header: KeyHeader,
}

impl OpenAi {
    /// # Errors
    /// The first setting that cannot be used.
    pub fn new(settings: &JudgeSettings, environment: Environment<'_>) -> Result<Self, SettingsError> {
        let base = settings.base()?;
        let by_host = match base.host() {
            Some("api.openai.com") => TokenLimitName::MaxCompletionTokens,
            _ => TokenLimitName::MaxTokens,
        };
        Ok(Self {
            target: Target::new(settings, environment, &path_below(&base, "/chat/completions"))?,
            limit_name: settings.max_tokens_field.unwrap_or(by_host),
            key_header: KeyHeader::new(settings.auth.unwrap_or(Auth::Bearer), "api-key"),
        })
    }
}

impl Provider for OpenAi {
    fn request(&self, question: &Question, key: Option<&Secret>) -> Result<Request<Bytes>, JudgeError> {
        let body = body(&self.target, self.limit_name, question)?;
        self.target.post(body, key, self.key_header.clone())
    }

    fn reply(&self, response: Response<Bytes>) -> Result<Reply, JudgeError> {
        reply(&body_of(&response)?)
    }
}

/// The path of a method. An address without a path gets the version that everybody speaks.
pub(super) fn path_below(base: &Uri, method: &str) -> String {
    let version = if base.path().trim_matches('/').is_empty() { "/v1" } else { "" };
    format!("{version}{method}")
}

/// The request body of a chat completion.
pub(super) fn body(
    target: &Target,
    limit_name: TokenLimitName,
    question: &Question,
) -> Result<Map<String, Value>, JudgeError> {
    let (system, turns) = conversation(question);
    let mut messages: Vec<Value> = Vec::new();
    messages.extend(system.map(|text| json!({"role": "system", "content": text})));
    messages.extend(turns.iter().map(|(speaker, text)| match speaker {
        Speaker::User => json!({"role": "user", "content": text}),
        Speaker::Judge => json!({"role": "assistant", "content": text}),
    }));
    let mut body = Map::new();
    body.insert("model".to_owned(), target.model.clone().into());
    body.insert("messages".to_owned(), messages.into());

    let sampling = target.sampling(question);
    let limit_name = match (limit_name, question.without.contains(&Field::TokenLimitName)) {
        (TokenLimitName::MaxTokens, false) | (TokenLimitName::MaxCompletionTokens, true) => "max_tokens",
        (TokenLimitName::MaxTokens, true) | (TokenLimitName::MaxCompletionTokens, false) => {
            "max_completion_tokens"
        }
    };
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    set("temperature", sampling.temperature.map(Value::from));
    set("top_p", sampling.top_p.map(Value::from));
    set("seed", sampling.seed.map(Value::from));
    set(limit_name, sampling.max_tokens.map(Value::from));
    set("n", (question.more_choices > 0).then(|| (question.more_choices + 1).into()));
    set("reasoning_effort", sampling.reasoning_effort.map(Value::from));
    if matches!(question.form, ReplyForm::Label { .. }) {
        require_logprobs(question, true)?;
        set("logprobs", Some(true.into()));
        set("top_logprobs", Some(ALTERNATIVES.into()));
    }
    if let Some(wanted) = target.wanted(question) {
        let (name, schema) = (wanted.name, wanted.schema);
        match wanted.mode {
            Structured::JsonSchema => {
                let schema = json!({"name": name, "strict": true, "schema": schema});
                set("response_format", Some(json!({"type": "json_schema", "json_schema": schema})));
            }
            Structured::JsonObject => set("response_format", Some(json!({"type": "json_object"}))),
            Structured::Tool => {
                let function = json!({"name": name, "parameters": schema});
                set("tools", Some(json!([{"type": "function", "function": function}])));
                set("tool_choice", Some(json!({"type": "function", "function": {"name": name}})));
            }
            Structured::None => {}
        }
    }
    Ok(body)
}

/// What the body of a chat completion says.
pub(super) fn reply(body: &Value) -> Result<Reply, JudgeError> {
    let choices = list_at(body, "/choices");
    let reply = with_choices(choices.iter().map(said), || unreadable("the answer has no choices"))?;
    Ok(Reply {
        model: text_at(body, "/model").to_owned(),
        id: text_at(body, "/id").to_owned(),
        usage: Usage {
            input_tokens: count_at(body, "/usage/prompt_tokens"),
            output_tokens: count_at(body, "/usage/completion_tokens"),
            cached_input_tokens: count_at(body, "/usage/prompt_tokens_details/cached_tokens"),
            reasoning_tokens: count_at(body, "/usage/completion_tokens_details/reasoning_tokens"),
        },
        ..reply
    })
}

/// What one choice says.
fn said(choice: &Value) -> Result<Reply, JudgeError> {
    let finish = text_at(choice, "/finish_reason");
    let refusal = text_at(choice, "/message/refusal");
    if !refusal.is_empty() {
        return Err(refused(format!("the judge declined: {}", failure::shorten(refusal))));
    }
    if finish == "content_filter" {
        return Err(refused("the provider's content filter stopped the answer"));
    }
    // Gateways in front of several providers put an upstream's failure beside the choice it spoiled.
    if finish == "error" || choice.get("error").is_some_and(Value::is_object) {
        return Err(failure::inside(&http::HeaderMap::new(), choice)
            .unwrap_or_else(|| unreadable("the answer broke off with an error")));
    }
    let text = match choice.pointer("/message/tool_calls/0/function/arguments") {
        Some(Value::String(arguments)) => arguments.clone(),
        Some(arguments) if arguments.is_object() => arguments.to_string(),
        _ => content(choice.pointer("/message/content")),
    };
    let alternatives = list_at(choice, "/logprobs/content")
        .iter()
        .map(|position| ranked(list_at(position, "/top_logprobs"), position, "logprob"))
        .collect();
    with_text(Reply { text, truncated: finish == "length", alternatives, ..Reply::default() })
}

/// Content is a string, or with some servers a list of parts, of which the text counts.
fn content(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let is_text = |part: &&Value| text_at(part, "/type") == "text";
            parts.iter().filter(is_text).map(|part| text_at(part, "/text")).collect()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::providers::testing::{body_json, everything, labels, settings, verdict};

    fn openai(text: &str) -> OpenAi {
        OpenAi::new(&settings(text), &|_| None).unwrap()
    }

    #[test]
    fn only_fields_that_are_set_are_sent() {
        let provider = openai("provider = 'openai'\nmodel = 'm'\nbase_url = 'http://h:1/v1'");
        let mut question = verdict();
        question.form = ReplyForm::Text;
        let request = provider.request(&question, None).unwrap();
        assert_eq!(request.uri(), "http://h:1/v1/chat/completions");
        assert_eq!(request.headers().get("authorization"), None);
        let expected = json!({"model": "m", "messages": [
            {"role": "system", "content": "be fair"},
            {"role": "user", "content": "rate it"},
        ]});
        assert_eq!(body_json(&request), expected);
    }

    #[test]
    fn every_field_has_its_name_on_the_wire() {
        let provider = openai(
            "provider = 'openai'\nmodel = 'm'\nextra_body = { store = false }\nheaders = { x-team = 'blue' }",
        );
        let request = provider.request(&everything(), Some(&Secret::new("k"))).unwrap();
        assert_eq!(request.method(), "POST");
        assert_eq!(request.uri(), "https://api.openai.com/v1/chat/completions");
        assert_eq!(request.headers()["authorization"], "Bearer k");
        assert_eq!(request.headers()["x-team"], "blue");
        assert_eq!(request.headers()["content-type"], "application/json");
        let expected = json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "be fair"},
                {"role": "user", "content": "rate it"},
                {"role": "assistant", "content": "hm"},
                {"role": "user", "content": "again"},
            ],
            "temperature": 0.5, "top_p": 0.9, "seed": 7, "max_completion_tokens": 300, "reasoning_effort": "low",
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "verdict", "strict": true, "schema": verdict_schema(),
            }},
            "store": false,
        });
        assert_eq!(body_json(&request), expected);
    }

    fn verdict_schema() -> Value {
        match verdict().form {
            ReplyForm::Json { schema, .. } => schema,
            ReplyForm::Text | ReplyForm::Label { .. } => panic!("no schema"),
        }
    }

    #[test]
    fn what_an_endpoint_refuses_is_left_out() {
        let provider = openai("provider = 'openai'\nmodel = 'm'\ntemperature = 1.0");
        let mut question = everything();
        question.without = [
            Field::Temperature,
            Field::TopP,
            Field::Seed,
            Field::TokenLimitName,
            Field::Schema,
            Field::ReasoningEffort,
            Field::System,
        ]
        .into();
        let expected = json!({
            "model": "m",
            "messages": [
                {"role": "user", "content": "be fair\n\nrate it"},
                {"role": "assistant", "content": "hm"},
                {"role": "user", "content": "again"},
            ],
            "max_tokens": 300,
        });
        assert_eq!(body_json(&provider.request(&question, None).unwrap()), expected);
    }

    #[test]
    fn a_label_is_one_token_with_its_alternatives() {
        let provider = openai("provider = 'openai'\nmodel = 'm'\nbase_url = 'http://h'\nmax_tokens = 99");
        let body = body_json(&provider.request(&labels(), None).unwrap());
        assert_eq!(body["max_tokens"], 1);
        assert_eq!(body["logprobs"], true);
        assert_eq!(body["top_logprobs"], 20);
        let mut question = labels();
        question.without = [Field::LogProbs].into();
        let error = provider.request(&question, None).unwrap_err();
        assert_eq!(error.kind, crate::judge::JudgeErrorKind::Unsupported(Field::LogProbs));
    }

    #[test]
    fn the_other_ways_to_ask_for_json() {
        let ask = |mode: &str| {
            let text = format!("provider = 'openai'\nmodel = 'm'\nstructured = '{mode}'");
            body_json(&openai(&text).request(&verdict(), None).unwrap())
        };
        assert_eq!(ask("json_object")["response_format"], json!({"type": "json_object"}));
        assert_eq!(ask("none").get("response_format"), None);
        let tool = ask("tool");
        assert_eq!(tool["tool_choice"], json!({"type": "function", "function": {"name": "verdict"}}));
        assert_eq!(tool["tools"][0]["function"]["parameters"], verdict_schema());
    }

    #[test]
    fn several_answers_of_one_call_are_told_apart_and_charged_once() {
        let mut question = verdict();
        question.more_choices = 2;
        let provider = openai("provider = 'openai'\nmodel = 'm'");
        assert_eq!(body_json(&provider.request(&question, None).unwrap())["n"], 3);
        let answer = json!({
            "id": "1", "model": "m-2", "usage": {"prompt_tokens": 9, "completion_tokens": 30},
            "choices": [
                {"index": 0, "finish_reason": "content_filter", "message": {"content": ""}},
                {"index": 1, "finish_reason": "length", "message": {"content": "a"}},
                {"index": 2, "finish_reason": "stop", "message": {"content": "b"}},
            ],
        });
        let reply = reply(&answer).unwrap();
        assert_eq!((reply.text.as_str(), reply.truncated, reply.usage.total()), ("a", true, 39));
        let [blocked, other] = &reply.more_choices[..] else { panic!("{reply:?}") };
        assert_eq!(blocked.as_ref().unwrap_err().kind, crate::judge::JudgeErrorKind::Refused);
        let other = other.as_ref().unwrap();
        assert_eq!((other.text.as_str(), other.truncated, other.usage.total()), ("b", false, 0));
    }

    #[test]
    fn an_address_without_a_path_gets_v1() {
        let provider = openai("provider = 'openai'\nmodel = 'm'\nbase_url = 'http://h:11434/'");
        let request = provider.request(&verdict(), None).unwrap();
        assert_eq!(request.uri(), "http://h:11434/v1/chat/completions");
    }
}
