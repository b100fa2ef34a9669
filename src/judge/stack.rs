//! From settings to a judge that can be asked: the leaf, and the layers in their order.

use std::fmt;

use super::endpoint::Endpoint;
use super::http::Http;
use super::layers::{Capability, Deadline, Limit, Observed, Retry};
use super::providers;
use super::providers::scripted::Scripted;
use super::settings::{Environment, JudgeSettings, SettingsError};
use super::{Judge, JudgeError, Question, Reply};
use crate::telemetry::judge::Callee;

/// The innermost judge.
#[derive(Debug)]
enum Leaf {
    Endpoint(Endpoint),
    Scripted(Scripted),
}

impl Judge for Leaf {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        match self {
            Self::Endpoint(endpoint) => endpoint.ask(question).await,
            Self::Scripted(scripted) => scripted.ask(question).await,
        }
    }
}

/// A judge as configured, ready to be asked.
pub struct ConfiguredJudge {
    name: String,
    aliases: Vec<String>,
    model: String,
    judge: Retry<Capability<Limit<Observed<Deadline<Leaf>>>>>,
}

/// Builds the judge that `settings` describe, with keys from the process's environment. Opens no connection.
///
/// # Errors
/// The first setting that cannot be used, in a sentence that names it.
pub fn connect(settings: &JudgeSettings) -> Result<ConfiguredJudge, SettingsError> {
    connect_in(settings, &|name| std::env::var(name).ok())
}

/// As [`connect`], with keys from `environment`.
///
/// # Errors
/// As [`connect`].
pub fn connect_in(
    settings: &JudgeSettings,
    environment: Environment<'_>,
) -> Result<ConfiguredJudge, SettingsError> {
    let leaf = match providers::provider(settings, environment)? {
        Some(provider) => {
            let http = Http::new(&settings.base()?, settings.ca_file.as_deref())
                .map_err(|what| settings.error("ca_file", what))?;
            Leaf::Endpoint(Endpoint::new(provider, settings.key(environment)?, http))
        }
        None => {
            let script = settings.script.as_deref().unwrap_or_else(|| "".as_ref());
            Leaf::Scripted(Scripted::open(script).map_err(|what| settings.error("script", what))?)
        }
    };
    // From the inside out. The deadline is for one call, so it stands inside whatever asks again, and inside the
    // limit: waiting in line is not the endpoint's time. A pause before asking again keeps no place. A refused field
    // is no failed attempt, so learning stands inside retrying. Retrying is outermost, and nothing else retries.
    let judge = Deadline::new(leaf, settings.timeout());
    let judge = Observed::new(judge, Callee::of(settings));
    let judge = Limit::new(judge, settings.max_concurrency);
    let judge = Capability::new(judge);
    let judge = Retry::new(judge, settings.attempts);
    Ok(ConfiguredJudge {
        name: settings.name.clone(),
        aliases: settings.aliases.clone(),
        model: settings.model.clone(),
        judge,
    })
}

impl ConfiguredJudge {
    /// Its configured name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The model it is asked for; empty for a script.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether `name` is its name or one of its aliases.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

impl fmt::Debug for ConfiguredJudge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredJudge")
            .field("name", &self.name)
            .field("aliases", &self.aliases)
            .field("model", &self.model)
            .field("judge", &self.judge)
            .finish()
    }
}

impl Judge for ConfiguredJudge {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        self.judge.ask(question).await.map_err(|error| JudgeError { endpoint: self.name.clone(), ..error })
    }
}
