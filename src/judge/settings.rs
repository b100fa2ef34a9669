//! What a configuration says of one judge, and the one-flag form `provider:base_url#model`.
//!
//! Keys are never in the configuration: `key_env` names a variable, `key_file` a file. Without either, the
//! provider's usual variable is read, but only for the provider's own hosts: a key for `api.openai.com` is
//! not for whoever else speaks the same protocol. Nothing here opens a connection.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde::Deserialize;

use super::secret::{Key, Secret};

mod cost;
mod endpoints;

pub use cost::{BudgetSettings, Prices};
pub use endpoints::EndpointSettings;

/// Longest accepted `timeout_seconds`.
const LONGEST_TIMEOUT: f64 = 3600.0;
/// Most accepted `attempts`.
const MOST_ATTEMPTS: u32 = 10;
/// Headers that belong to the connection, not to the configuration.
const OWN_HEADERS: [&str; 5] = ["host", "content-length", "content-type", "transfer-encoding", "connection"];

/// One judge: an endpoint, or several that answer alike.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgeSettings {
    /// The name that requests, errors and telemetry use. Default `default`.
    #[serde(default = "default_name")]
    pub name: String,
    /// Other names that a request's `autorater_model` may use for it. Default none.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Which wire the endpoint speaks. Required.
    pub provider: ProviderKind,
    /// `http` or `https` address without credentials and query. Default: the provider's own; `azure` has none.
    /// For `openai` an address without a path gets `/v1`.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The model (for `azure` the deployment) to ask. Required, except for `scripted`.
    #[serde(default)]
    pub model: String,
    /// Environment variable that holds the key. Default: the provider's usual one, for its own hosts only.
    #[serde(default)]
    pub key_env: Option<String>,
    /// File that holds the key, read again for each call. Default none.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// How the key is sent. Default: as the provider's own clients do.
    #[serde(default)]
    pub auth: Option<Auth>,
    /// 0 to 2. Default: not sent.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// 0 to 1. Default: not sent.
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Best effort on every provider. Default: not sent.
    #[serde(default)]
    pub seed: Option<i64>,
    /// Upper bound of output tokens. Default: not sent, but 4096 for `anthropic`, which requires it.
    #[serde(default)]
    pub max_tokens: Option<u32>,
    /// Name of the token limit on the OpenAI wire. Default `max_completion_tokens` for `api.openai.com` and
    /// `azure`, else `max_tokens`; the other one is tried when an endpoint refuses it.
    #[serde(default)]
    pub max_tokens_field: Option<TokenLimitName>,
    /// `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`. Default: not sent.
    #[serde(default)]
    pub reasoning_effort: Option<String>,
    /// How JSON is asked for. Default `json_schema`.
    #[serde(default)]
    pub structured: Option<Structured>,
    /// More request headers; `{env:NAME}` in a value stands for that variable. Default none.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// More fields for the request body, over those written here. Default none.
    #[serde(default)]
    pub extra_body: serde_json::Map<String, serde_json::Value>,
    /// Longest wait for one answer, in seconds, above 0 to 3600. Default 120.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: f64,
    /// How often a question is sent at most when the failure is transient, 1 to 10. Default 3.
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// Calls open at one time at one endpoint, at least 1; more wait in line, callers in turns. Default 64.
    #[serde(default = "default_max_concurrency")]
    pub max_concurrency: u32,
    /// Requests sent to one endpoint in a minute, at least 1. Default: as many as it takes.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
    /// Tokens sent to one endpoint and received in a minute, at least 1: reserved by estimate (a token for four
    /// bytes, and `max_tokens`), settled with what the endpoint reports. Default: as many as it takes.
    #[serde(default)]
    pub tokens_per_minute: Option<u32>,
    /// Sends a second copy of a question that takes longer than 95 % of the endpoint's answers, of at most 5 % of the
    /// questions; the first answer counts. Default false.
    #[serde(default)]
    pub hedge: bool,
    /// What the judge may cost in a time, all endpoints together. Default: no bound.
    #[serde(default)]
    pub budget: BudgetSettings,
    /// Prices of a million tokens, for a budget in money. Default none.
    #[serde(default)]
    pub prices: Option<Prices>,
    /// Several endpoints that answer alike, in place of `base_url`. Default: the one of `base_url`.
    #[serde(default)]
    pub endpoints: Vec<EndpointSettings>,
    /// `anthropic`: the `anthropic-version`, default `2023-06-01`. `azure`: chooses the older address style
    /// with this `api-version`; default the newer style, which has none. Otherwise refused.
    #[serde(default)]
    pub api_version: Option<String>,
    /// `ollama`: context length in tokens, default 8192. Otherwise refused.
    #[serde(default)]
    pub num_ctx: Option<u32>,
    /// `scripted`: the file of replies, or `builtin:prefer_first_shown`. Required there, otherwise refused.
    #[serde(default)]
    pub script: Option<PathBuf>,
    /// PEM file with certificate authorities to trust besides the system's. Default none.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
}

fn default_name() -> String {
    "default".to_owned()
}

fn default_timeout() -> f64 {
    120.0
}

fn default_max_concurrency() -> u32 {
    64
}

fn default_attempts() -> u32 {
    3
}

/// Which wire an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::EnumString, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ProviderKind {
    /// Chat completions, of OpenAI and everybody compatible.
    #[serde(rename = "openai")]
    #[strum(serialize = "openai")]
    OpenAi,
    /// Azure OpenAI, both address styles.
    Azure,
    /// Anthropic messages, both API versions.
    Anthropic,
    /// `generateContent`, of the Gemini API and of Vertex AI.
    Gemini,
    /// Ollama's native chat.
    Ollama,
    /// No endpoint: replies from a file.
    Scripted,
}

impl ProviderKind {
    /// Whether its wire has a field for the number of answers in one call.
    pub(crate) fn takes_choices(self) -> bool {
        matches!(self, Self::OpenAi | Self::Azure | Self::Gemini)
    }
}

/// How a key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// In the provider's own header: `api-key`, `x-api-key`, `x-goog-api-key`.
    ApiKey,
    /// As `authorization: Bearer`.
    Bearer,
}

/// How JSON is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Structured {
    /// Output bound to the schema.
    JsonSchema,
    /// Output bound to be some JSON object.
    JsonObject,
    /// A tool that the model is made to call.
    Tool,
    /// Only by the words of the prompt.
    None,
}

/// The two names of the token limit on the OpenAI wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenLimitName {
    /// The older name; many servers know only this one.
    MaxTokens,
    /// The newer name; reasoning models accept only this one.
    MaxCompletionTokens,
}

/// A setting that cannot be used: a sentence that names its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError(pub(crate) String);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

/// Reads an environment variable; a parameter so that tests need not touch the process's own.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl FromStr for JudgeSettings {
    type Err = SettingsError;

    /// Reads `provider:base_url#model`. An empty address is the provider's own; for `scripted` the middle part
    /// is the file.
    fn from_str(flag: &str) -> Result<Self, Self::Err> {
        let wrong = |what: &str| SettingsError(format!("--judge: {what}, expected provider:base_url#model"));
        let (provider, rest) = flag.split_once(':').ok_or_else(|| wrong("no provider"))?;
        let provider = provider.parse().map_err(|_| {
            wrong("unknown provider, known are openai, azure, anthropic, gemini, ollama, scripted")
        })?;
        let mut settings = Self::new(provider);
        if provider == ProviderKind::Scripted {
            if rest.is_empty() {
                return Err(SettingsError(
                    "--judge: scripted needs a file: scripted:replies.jsonl".to_owned(),
                ));
            }
            settings.script = Some(rest.into());
            return Ok(settings);
        }
        let (base_url, model) = rest.rsplit_once('#').ok_or_else(|| wrong("no model after #"))?;
        if model.is_empty() {
            return Err(wrong("no model after #"));
        }
        settings.base_url = (!base_url.is_empty()).then(|| base_url.to_owned());
        settings.model = model.to_owned();
        Ok(settings)
    }
}

impl JudgeSettings {
    /// All defaults, for this provider.
    pub fn new(provider: ProviderKind) -> Self {
        Self {
            name: default_name(),
            aliases: Vec::new(),
            provider,
            base_url: None,
            model: String::new(),
            key_env: None,
            key_file: None,
            auth: None,
            temperature: None,
            top_p: None,
            seed: None,
            max_tokens: None,
            max_tokens_field: None,
            reasoning_effort: None,
            structured: None,
            headers: BTreeMap::new(),
            extra_body: serde_json::Map::new(),
            timeout_seconds: default_timeout(),
            attempts: default_attempts(),
            max_concurrency: default_max_concurrency(),
            requests_per_minute: None,
            tokens_per_minute: None,
            hedge: false,
            budget: BudgetSettings::default(),
            prices: None,
            endpoints: Vec::new(),
            api_version: None,
            num_ctx: None,
            script: None,
            ca_file: None,
        }
    }

    /// Checks everything that needs no file and no environment.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.check_cost()?;
        if !self.endpoints.is_empty() {
            return self.each_endpoint()?.iter().try_for_each(|(_, endpoint)| endpoint.check());
        }
        let provider = self.provider;
        let only = |key: &str, used: bool, of: &[ProviderKind]| {
            if used && !of.contains(&provider) {
                return Err(self.error(key, format!("{provider} has no such setting")));
            }
            Ok(())
        };
        only("script", self.script.is_some(), &[ProviderKind::Scripted])?;
        only("num_ctx", self.num_ctx.is_some(), &[ProviderKind::Ollama])?;
        only("api_version", self.api_version.is_some(), &[ProviderKind::Azure, ProviderKind::Anthropic])?;
        only(
            "max_tokens_field",
            self.max_tokens_field.is_some(),
            &[ProviderKind::OpenAi, ProviderKind::Azure],
        )?;
        self.check_range("temperature", self.temperature, 2.0)?;
        self.check_range("top_p", self.top_p, 1.0)?;
        if !(self.timeout_seconds > 0.0 && self.timeout_seconds <= LONGEST_TIMEOUT) {
            return Err(self.error("timeout_seconds", "must be above 0 and at most 3600"));
        }
        let counts = [
            ("max_concurrency", Some(self.max_concurrency)),
            ("requests_per_minute", self.requests_per_minute),
            ("tokens_per_minute", self.tokens_per_minute),
            ("max_tokens", self.max_tokens),
            ("num_ctx", self.num_ctx),
        ];
        if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count == Some(0)) {
            return Err(self.error(key, "must be at least 1"));
        }
        if !(1..=MOST_ATTEMPTS).contains(&self.attempts) {
            return Err(self.error("attempts", "must be 1 to 10"));
        }
        if self.key_env.is_some() && self.key_file.is_some() {
            return Err(self.error("key_file", "cannot stand beside key_env"));
        }
        match (provider, self.structured) {
            (ProviderKind::Anthropic, Some(Structured::JsonObject)) => {
                Err(self.error("structured", "anthropic has no json_object, use json_schema, tool or none"))
            }
            (ProviderKind::Ollama, Some(Structured::Tool)) => {
                Err(self
                    .error("structured", "ollama cannot force a tool, use json_schema, json_object or none"))
            }
            _ if provider == ProviderKind::Scripted => match self.script {
                Some(_) => Ok(()),
                None => Err(self.error("script", "names no file of replies")),
            },
            _ if self.model.is_empty() => Err(self.error("model", "is required")),
            _ => self.base().map(|_| ()),
        }
    }

    fn check_range(&self, key: &str, value: Option<f64>, highest: f64) -> Result<(), SettingsError> {
        match value {
            Some(value) if !(0.0..=highest).contains(&value) => {
                Err(self.error(key, format!("must be 0 to {highest}")))
            }
            _ => Ok(()),
        }
    }

    /// Longest wait for one answer.
    pub fn timeout(&self) -> Duration {
        Duration::try_from_secs_f64(self.timeout_seconds).unwrap_or(Duration::from_secs(120))
    }

    /// How JSON is asked for.
    pub fn structured(&self) -> Structured {
        self.structured.unwrap_or(Structured::JsonSchema)
    }

    /// The checked address, without a slash at its end.
    ///
    /// # Errors
    /// Not an `http` or `https` address, or one with credentials, query or fragment.
    pub(crate) fn base(&self) -> Result<Uri, SettingsError> {
        let text = match (&self.base_url, self.provider) {
            (Some(text), _) => text.as_str(),
            (None, ProviderKind::OpenAi) => "https://api.openai.com/v1",
            (None, ProviderKind::Anthropic) => "https://api.anthropic.com",
            (None, ProviderKind::Gemini) => "https://generativelanguage.googleapis.com/v1beta",
            (None, ProviderKind::Ollama) => "http://127.0.0.1:11434",
            (None, ProviderKind::Azure | ProviderKind::Scripted) => {
                return Err(self.error("base_url", "is required, e.g. https://RESOURCE.openai.azure.com"));
            }
        };
        // The address itself is not repeated in a message before it is known to hold no credentials.
        let uri: Uri = text
            .trim_end_matches('/')
            .parse()
            .map_err(|_| self.error("base_url", "is not an address such as https://host/v1"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none_or(str::is_empty) {
            return Err(self.error("base_url", "must begin with http:// or https:// and name a host"));
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(self.error("base_url", "may not hold credentials, use key_env or key_file"));
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(self.error("base_url", "may not hold a query or a fragment"));
        }
        Ok(uri)
    }

    /// Whether the address is one of the provider's own hosts, reached safely.
    fn is_own_host(&self) -> bool {
        let Ok(base) = self.base() else { return false };
        let host = base.host().unwrap_or_default().to_ascii_lowercase();
        let ours = match self.provider {
            ProviderKind::OpenAi => host == "api.openai.com",
            ProviderKind::Anthropic => host == "api.anthropic.com",
            ProviderKind::Gemini => host == "generativelanguage.googleapis.com",
            ProviderKind::Azure => {
                [".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"]
                    .iter()
                    .any(|suffix| host.ends_with(suffix))
            }
            ProviderKind::Ollama | ProviderKind::Scripted => false,
        };
        ours && base.scheme_str() == Some("https")
    }

    fn usual_variables(&self) -> &'static [&'static str] {
        match self.provider {
            ProviderKind::OpenAi => &["OPENAI_API_KEY"],
            ProviderKind::Azure => &["AZURE_OPENAI_API_KEY"],
            ProviderKind::Anthropic => &["ANTHROPIC_API_KEY"],
            ProviderKind::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            ProviderKind::Ollama | ProviderKind::Scripted => &[],
        }
    }

    /// The key, or the reason why there is none though there should be.
    ///
    /// # Errors
    /// A named variable or file that holds nothing; no key at all for a provider's own host.
    pub(crate) fn key(&self, environment: Environment<'_>) -> Result<Key, SettingsError> {
        let variable = |name: &str| {
            environment(name).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).map(Secret::new)
        };
        if let Some(name) = &self.key_env {
            let secret = variable(name)
                .ok_or_else(|| self.error("key_env", format!("the variable {name} is not set")))?;
            secret.header("").ok_or_else(|| self.error("key_env", format!("{name} holds no usable key")))?;
            return Ok(Key::Fixed(secret));
        }
        if let Some(path) = &self.key_file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| self.error("key_file", format!("cannot be read: {}", error.kind())))?;
            if text.trim().is_empty() {
                return Err(self.error("key_file", "is empty"));
            }
            return Ok(Key::File(path.clone()));
        }
        if !self.is_own_host() || self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
            return Ok(Key::None);
        }
        let usual = self.usual_variables();
        match usual.iter().find_map(|name| variable(name)) {
            Some(secret) if secret.header("").is_some() => Ok(Key::Fixed(secret)),
            Some(_) => Err(self.error("key_env", format!("{} holds no usable key", usual.join(" or ")))),
            None => Err(self.error(
                "key_env",
                format!(
                    "{} needs a key: set {}, or name key_env or key_file",
                    self.provider,
                    usual.join(" or ")
                ),
            )),
        }
    }

    /// The extra headers, with `{env:NAME}` filled in.
    ///
    /// # Errors
    /// A name or value that no header can have, a variable that is not set.
    pub(crate) fn header_map(&self, environment: Environment<'_>) -> Result<HeaderMap, SettingsError> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let key = format!("headers.{name}");
            let header =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| self.error(&key, "is no header name"))?;
            if OWN_HEADERS.contains(&header.as_str()) {
                return Err(self.error(&key, "cannot be set"));
            }
            let filled = fill(value.expose(), environment)
                .map_err(|missing| self.error(&key, format!("the variable {missing} is not set")))?;
            let mut filled =
                HeaderValue::from_str(&filled).map_err(|_| self.error(&key, "is no header value"))?;
            filled.set_sensitive(true);
            map.insert(header, filled);
        }
        Ok(map)
    }

    /// A sentence about the setting `key` of this judge.
    pub(crate) fn error(&self, key: &str, what: impl fmt::Display) -> SettingsError {
        SettingsError(format!("judges.{}.{key}: {what}", self.name))
    }
}

/// Replaces each `{env:NAME}`, once; the error is the variable that is not set.
fn fill(template: &str, environment: Environment<'_>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{env:") {
        let Some((name, after)) = after.split_once('}') else { break };
        filled.push_str(before);
        filled.push_str(environment(name).ok_or(name)?.trim());
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
