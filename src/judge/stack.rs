//! From settings to a judge that can be asked: the leaf, and the layers in their order.

use std::fmt;
use std::sync::Arc;

use super::cache::{Cached, Identity, Store};
use super::counters::{Counters, Counts, Event, State};
use super::endpoint::Endpoint;
use super::http::Http;
use super::layers::{Capability, Deadline, Observed, Retry, Together};
use super::pool::{Budget, House, Pool};
use super::providers;
use super::providers::scripted::Scripted;
use super::settings::{Environment, JudgeSettings, SettingsError};
use super::{Judge, JudgeError, Question, Reply};
use crate::telemetry;
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

/// One endpoint with what belongs to it alone.
type Lone = Capability<Observed<Deadline<Leaf>>>;

/// A judge as configured, ready to be asked.
pub struct ConfiguredJudge {
    name: String,
    aliases: Vec<String>,
    model: String,
    counters: Arc<Counters>,
    judge: Cached<Together<Retry<Arc<Pool<Lone>>>>>,
}

/// Builds the judge that `settings` describe, with keys from the process's environment, and answers kept in `store`.
/// Opens no connection.
///
/// # Errors
/// The first setting that cannot be used, in a sentence that names it.
pub fn connect(settings: &JudgeSettings, store: Arc<Store>) -> Result<ConfiguredJudge, SettingsError> {
    build(settings, &|name| std::env::var(name).ok(), Some(store))
}

/// As [`connect`], with keys from `environment`, and no answer kept or shared.
///
/// # Errors
/// As [`connect`].
pub fn connect_in(
    settings: &JudgeSettings,
    environment: Environment<'_>,
) -> Result<ConfiguredJudge, SettingsError> {
    build(settings, environment, None)
}

fn build(
    settings: &JudgeSettings,
    environment: Environment<'_>,
    store: Option<Arc<Store>>,
) -> Result<ConfiguredJudge, SettingsError> {
    let counters = Arc::<Counters>::default();
    telemetry::metrics::follow_judge(&settings.name, &counters);
    let mut endpoints = Vec::new();
    // From the inside out. What an endpoint is like is its own: the deadline is for one call, and a refused field is
    // no failed attempt, so both stand inside whatever chooses and whatever asks again.
    for (terms, endpoint) in settings.each_endpoint()? {
        let judge = Deadline::new(leaf(&endpoint, environment)?, endpoint.timeout());
        let judge = Observed::new(judge, Callee::of(&settings.name, &terms.name, &endpoint));
        endpoints.push((Capability::new(judge), terms));
    }
    // Waiting in line is not the endpoint's time, and a pause before asking again keeps no place: the pool, which has
    // the line, stands between the two. Nothing else retries. Samples asked together are one call with one place and one
    // attempt. What is kept takes no place and no attempt, sample by sample, and what is shared in flight is shared with
    // all its attempts, so keeping is outermost.
    let house = House {
        max_tokens: settings.max_tokens,
        budget: Budget::new(settings),
        hedge: settings.hedge,
        shared: store.as_ref().and_then(|store| Some((store.link()?.clone(), settings.name.clone()))),
    };
    let judge = Pool::new(endpoints, house, Arc::clone(&counters));
    let judge = Retry::new(judge, settings.attempts, Arc::clone(&counters));
    let judge = Together::new(judge, settings.provider.takes_choices(), settings.temperature);
    let judge = Cached::new(judge, Identity::of(settings), store, Arc::clone(&counters));
    Ok(ConfiguredJudge {
        name: settings.name.clone(),
        aliases: settings.aliases.clone(),
        model: settings.model.clone(),
        counters,
        judge,
    })
}

fn leaf(settings: &JudgeSettings, environment: Environment<'_>) -> Result<Leaf, SettingsError> {
    match providers::provider(settings, environment)? {
        Some(provider) => {
            let http = Http::new(&settings.base()?, settings.ca_file.as_deref())
                .map_err(|what| settings.error("ca_file", what))?;
            Ok(Leaf::Endpoint(Endpoint::new(provider, settings.key(environment)?, http)))
        }
        None => {
            let script = settings.script.as_deref().unwrap_or_else(|| "".as_ref());
            Ok(Leaf::Scripted(Scripted::open(script).map_err(|what| settings.error("script", what))?))
        }
    }
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

    /// How it fares, as its last call tells.
    pub fn state(&self) -> State {
        self.counters.state()
    }

    /// What it has cost and how it fared.
    pub fn counts(&self) -> Counts {
        self.counters.now()
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
        self.counters.count(Event::Question);
        let answer = self.judge.ask(question).await;
        telemetry::judge::answered(&self.name, question, &answer);
        answer.map_err(|error| {
            let endpoint = match error.endpoint.as_str() {
                "" => self.name.clone(),
                endpoint => format!("{} at {endpoint}", self.name),
            };
            JudgeError { endpoint, ..error }
        })
    }

    fn disown(&self, question: &Question) {
        self.judge.disown(question);
    }
}
