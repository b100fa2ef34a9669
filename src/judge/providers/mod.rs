//! What to send and what came back, one file per wire. Nothing here opens a connection.
//!
//! A provider is two pure functions. What all wires share is here and beside: `Target` holds the settings
//! that every request needs, `failure.rs` reads what went wrong, `patience.rs` how long to wait.

pub mod anthropic;
pub mod azure;
pub(crate) mod embeddings;
pub mod failure;
pub mod gemini;
pub mod ollama;
pub mod openai;
pub mod patience;
pub mod scripted;
#[cfg(test)]
pub(super) mod testing;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use serde_json::{Map, Value};

use super::secret::Secret;
use super::settings::{Auth, Environment, JudgeSettings, ProviderKind, SettingsError, Structured};
use super::{Field, JudgeError, JudgeErrorKind, Question, Reply, ReplyForm, Sampling, Speaker, TokenChance};

/// Alternatives asked for per token: the most that every provider gives.
pub(crate) const ALTERNATIVES: u32 = 20;

/// One wire: what to send and what came back.
pub trait Provider: Send + Sync {
    /// The request that asks `question`.
    ///
    /// # Errors
    /// `Unsupported` when this wire has no words for what is asked; `Credentials` for a key that no header
    /// can hold.
    fn request(&self, question: &Question, key: Option<&Secret>) -> Result<Request<Bytes>, JudgeError>;

    /// What `response` says.
    ///
    /// # Errors
    /// Every kind but `OutOfTime`.
    fn reply(&self, response: Response<Bytes>) -> Result<Reply, JudgeError>;
}

/// The provider that `settings` name; absent for `scripted`, which needs no wire.
///
/// # Errors
/// The first setting that cannot be used.
pub fn provider(
    settings: &JudgeSettings,
    environment: Environment<'_>,
) -> Result<Option<Box<dyn Provider>>, SettingsError> {
    settings.check()?;
    Ok(Some(match settings.provider {
        ProviderKind::OpenAi => Box::new(openai::OpenAi::new(settings, environment)?),
        ProviderKind::Azure => Box::new(azure::Azure::new(settings, environment)?),
        ProviderKind::Anthropic => Box::new(anthropic::Anthropic::new(settings, environment)?),
        ProviderKind::Gemini => Box::new(gemini::Gemini::new(settings, environment)?),
        ProviderKind::Ollama => Box::new(ollama::Ollama::new(settings, environment)?),
        ProviderKind::Scripted => return Ok(None),
    }))
}

/// Where the requests of one endpoint go, and what its settings add to each.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) url: Uri,
    pub(crate) model: String,
    headers: HeaderMap,
    sampling: Sampling,
    structured: Structured,
    extra_body: Map<String, Value>,
}

/// A schema and the way to ask for it.
pub(crate) struct Wanted<'a> {
    pub(crate) mode: Structured,
    pub(crate) name: &'static str,
    pub(crate) schema: &'a Value,
}

impl Target {
    /// `path` is put behind the base address.
    fn new(
        settings: &JudgeSettings,
        environment: Environment<'_>,
        path: &str,
    ) -> Result<Self, SettingsError> {
        let base = settings.base()?.to_string();
        let url = format!("{}{path}", base.trim_end_matches('/'))
            .parse()
            .map_err(|_| settings.error("model", "cannot be part of an address"))?;
        Ok(Self {
            url,
            model: settings.model.clone(),
            headers: settings.header_map(environment)?,
            sampling: Sampling {
                temperature: settings.temperature,
                top_p: settings.top_p,
                seed: settings.seed,
                max_tokens: settings.max_tokens,
                reasoning_effort: settings.reasoning_effort.clone(),
            },
            structured: settings.structured(),
            extra_body: settings.extra_body.clone(),
        })
    }

    /// The caller's wishes over the endpoint's settings, less what the endpoint refuses.
    pub(crate) fn sampling(&self, question: &Question) -> Sampling {
        let asked = &question.sampling;
        let takes = |field| !question.without.contains(&field);
        let one_token = matches!(question.form, ReplyForm::Label { .. });
        Sampling {
            temperature: asked
                .temperature
                .or(self.sampling.temperature)
                .filter(|_| takes(Field::Temperature)),
            top_p: asked.top_p.or(self.sampling.top_p).filter(|_| takes(Field::TopP)),
            seed: asked.seed.or(self.sampling.seed).filter(|_| takes(Field::Seed)),
            max_tokens: if one_token { Some(1) } else { asked.max_tokens.or(self.sampling.max_tokens) },
            reasoning_effort: asked
                .reasoning_effort
                .clone()
                .or_else(|| self.sampling.reasoning_effort.clone())
                .filter(|_| takes(Field::ReasoningEffort)),
        }
    }

    /// The schema to ask for; absent when none is wanted or the endpoint refuses schemas.
    pub(crate) fn wanted<'a>(&self, question: &'a Question) -> Option<Wanted<'a>> {
        match &question.form {
            ReplyForm::Json { name, schema }
                if self.structured != Structured::None && !question.without.contains(&Field::Schema) =>
            {
                Some(Wanted { mode: self.structured, name, schema })
            }
            ReplyForm::Json { .. } | ReplyForm::Text | ReplyForm::Label { .. } => None,
        }
    }

    /// A POST of `body`, with the key in `key_header` and the endpoint's own headers over all.
    fn post(
        &self,
        mut body: Map<String, Value>,
        key: Option<&Secret>,
        key_header: KeyHeader,
    ) -> Result<Request<Bytes>, JudgeError> {
        for (name, value) in &self.extra_body {
            body.insert(name.clone(), value.clone());
        }
        let mut request = Request::new(Bytes::from(Value::Object(body).to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(key) = key {
            let value = key
                .header(key_header.prefix)
                .ok_or_else(|| JudgeError::new(JudgeErrorKind::Credentials, "the key is no header value"))?;
            headers.insert(key_header.name, value);
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        Ok(request)
    }
}

/// Which header takes the key, and what stands before it.
#[derive(Debug, Clone)]
struct KeyHeader {
    name: HeaderName,
    prefix: &'static str,
}

impl KeyHeader {
    /// `own` is the provider's name for a plain key.
    fn new(auth: Auth, own: &'static str) -> Self {
        match auth {
            Auth::ApiKey => Self { name: HeaderName::from_static(own), prefix: "" },
            Auth::Bearer => Self { name: AUTHORIZATION, prefix: "Bearer " },
        }
    }
}

/// System text and turns, with the system text moved into the first turn for endpoints that refuse it apart.
pub(crate) fn conversation(question: &Question) -> (Option<&str>, Vec<(Speaker, String)>) {
    let mut turns: Vec<_> = question.turns.iter().map(|turn| (turn.speaker, turn.text.clone())).collect();
    if question.system.is_empty() {
        return (None, turns);
    }
    if !question.without.contains(&Field::System) {
        return (Some(&question.system), turns);
    }
    match turns.first_mut() {
        Some((Speaker::User, text)) => *text = format!("{}\n\n{text}", question.system),
        Some((Speaker::Judge, _)) | None => turns.insert(0, (Speaker::User, question.system.clone())),
    }
    (None, turns)
}

/// An error unless the endpoint gives log-probabilities; nothing can stand in for them.
pub(crate) fn require_logprobs(question: &Question, given: bool) -> Result<(), JudgeError> {
    if given && !question.without.contains(&Field::LogProbs) {
        return Ok(());
    }
    Err(JudgeError::new(
        JudgeErrorKind::Unsupported(Field::LogProbs),
        "this endpoint gives no token probabilities",
    ))
}

/// The body of a good response as JSON; an error where the response is one, whatever its status says.
pub(crate) fn body_of(response: &Response<Bytes>) -> Result<Value, JudgeError> {
    let (status, headers, body) = (response.status(), response.headers(), response.body());
    if !status.is_success() {
        return Err(failure::read(status, headers, body));
    }
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return Err(unreadable(match body.first() {
            None => "the answer has no body".to_owned(),
            Some(b'{' | b'[') => "the answer is cut off or not JSON".to_owned(),
            Some(_) => {
                format!("the answer is not JSON: {}", failure::shorten(&String::from_utf8_lossy(body)))
            }
        }));
    };
    match failure::inside(headers, &value) {
        Some(error) => Err(error),
        None => Ok(value),
    }
}

/// One reply of all choices: the first that can be read, with the others behind it. Without any, the error of the first.
pub(crate) fn with_choices(
    choices: impl Iterator<Item = Result<Reply, JudgeError>>,
    none: impl FnOnce() -> JudgeError,
) -> Result<Reply, JudgeError> {
    let mut choices: Vec<_> = choices.collect();
    match choices.iter().position(Result::is_ok) {
        Some(first) => {
            let reply = choices.remove(first)?;
            Ok(Reply { more_choices: choices, ..reply })
        }
        None => Err(choices.into_iter().find_map(Result::err).unwrap_or_else(none)),
    }
}

/// The reply, or an error when there is no text to read.
pub(crate) fn with_text(reply: Reply) -> Result<Reply, JudgeError> {
    if !reply.text.trim().is_empty() || !reply.alternatives.is_empty() {
        return Ok(reply);
    }
    Err(unreadable(if reply.truncated {
        "the token limit was reached before any visible text, raise max_tokens"
    } else {
        "the answer is empty"
    }))
}

pub(crate) fn unreadable(message: impl Into<String>) -> JudgeError {
    JudgeError::new(JudgeErrorKind::Unreadable, message)
}

pub(crate) fn refused(message: impl Into<String>) -> JudgeError {
    JudgeError::new(JudgeErrorKind::Refused, message)
}

/// The text at `pointer`, empty when there is none.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The count at `pointer`, 0 when there is none.
pub(crate) fn count_at(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// The list at `pointer`, empty when there is none.
pub(crate) fn list_at<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Candidates of one position, most likely first, the chosen token among them.
pub(crate) fn ranked(candidates: &[Value], chosen: &Value, logprob: &str) -> Vec<TokenChance> {
    let read = |candidate: &Value| {
        Some(TokenChance {
            token: candidate.get("token")?.as_str()?.to_owned(),
            logprob: candidate.get(logprob)?.as_f64()?,
        })
    };
    let mut ranked: Vec<TokenChance> = candidates.iter().filter_map(read).collect();
    if let Some(chosen) = read(chosen)
        && ranked.iter().all(|candidate| candidate.token != chosen.token)
    {
        ranked.push(chosen);
    }
    ranked.sort_by(|a, b| b.logprob.total_cmp(&a.logprob));
    ranked
}
