//! Embeddings of texts, from a configured endpoint: settings, and the client that asks it.
//!
//! Texts are asked for in batches, a bounded number of calls at one time, each sent once more where that may help.
//! What was given is kept in memory for an hour, so that an equal text is asked for once. What the endpoint is sent
//! and how its answers are read is in `judge/providers/embeddings.rs`; keys, connections and failures are handled as
//! those of judges are.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::judge::endpoint::exchange;
use crate::judge::http::Http;
use crate::judge::layers::{in_time, rest};
use crate::judge::providers::embeddings::{Embedded, Embeddings, Vector, embedded};
use crate::judge::providers::unreadable;
use crate::judge::secret::Key;
use crate::judge::settings::{Environment, JudgeSettings, ProviderKind, SettingsError};
use crate::judge::{JudgeError, JudgeErrorKind};
use crate::telemetry::judge::Callee;

/// Most texts of one request: OpenAI takes no more.
const MOST_BATCH_TEXTS: usize = 2048;
/// Most bytes of text in one request of several texts. A token has at least a byte, and OpenAI takes 300,000.
const BATCH_BYTES: usize = 256 << 10;
/// Longest answer that is read, in bytes: a component is written in some 20.
const LONGEST_ANSWER: usize = 32 << 20;
/// How often a request is sent at most.
const ATTEMPTS: u32 = 2;
/// How long a vector is kept; the model behind an address may be another one day.
const KEPT: Duration = Duration::from_secs(3600);
/// What a kept vector costs beside its components, in bytes, roughly.
const OVERHEAD: usize = 128;

/// The endpoint that turns texts into vectors; without a model there is none.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddingSettings {
    /// Address of an API as OpenAI's; empty = OpenAI itself. One without a path gets `/v1`.
    pub base_url: String,
    /// The model; empty = no embeddings.
    pub model: String,
    /// Environment variable that holds the key; empty = `OPENAI_API_KEY` for OpenAI itself, otherwise none.
    pub key_env: String,
    /// File that holds the key, read again for each call; empty = none.
    pub key_file: PathBuf,
    /// Certificate authorities to trust beside the system's, in PEM; empty = none.
    pub ca_file: PathBuf,
    /// Components of a vector, for models that let one choose; 0 = the model's own number.
    pub dimensions: u32,
    /// Texts in one request, 1 to 2048.
    pub batch_texts: usize,
    /// Calls open at one time, at least 1.
    pub max_concurrency: u32,
    /// Longest wait for one answer, in seconds, above 0 to 3600.
    pub timeout_seconds: f64,
    /// Bytes of vectors in memory; 0 = none are kept.
    pub cache_bytes: u64,
}

impl Default for EmbeddingSettings {
    fn default() -> Self {
        Self {
            base_url: String::new(),
            model: String::new(),
            key_env: String::new(),
            key_file: PathBuf::new(),
            ca_file: PathBuf::new(),
            dimensions: 0,
            batch_texts: 64,
            max_concurrency: 8,
            timeout_seconds: 60.0,
            cache_bytes: 64 << 20,
        }
    }
}

impl EmbeddingSettings {
    /// Checks everything that needs no file and no environment.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=MOST_BATCH_TEXTS).contains(&self.batch_texts) {
            return Err(format!("embeddings.batch_texts: must be 1 to {MOST_BATCH_TEXTS}"));
        }
        self.endpoint().map_or(Ok(()), |endpoint| endpoint.check().map_err(renamed))
    }

    /// The endpoint as a judge of that name has it; `None` = there is none.
    fn endpoint(&self) -> Option<JudgeSettings> {
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let path = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
        let (base_url, key_env, key_file) = (text(&self.base_url), text(&self.key_env), path(&self.key_file));
        if self.model.is_empty() && base_url.is_none() && key_env.is_none() && key_file.is_none() {
            return None;
        }
        let mut endpoint = JudgeSettings {
            name: String::from("embeddings"),
            base_url,
            model: self.model.clone(),
            key_env,
            key_file,
            ca_file: path(&self.ca_file),
            timeout_seconds: self.timeout_seconds,
            max_concurrency: self.max_concurrency,
            ..JudgeSettings::new(ProviderKind::OpenAi)
        };
        if self.dimensions > 0 {
            endpoint.extra_body.insert(String::from("dimensions"), self.dimensions.into());
        }
        Some(endpoint)
    }
}

fn renamed(wrong: SettingsError) -> String {
    wrong.0.strip_prefix("judges.").map_or_else(|| wrong.0.clone(), str::to_owned)
}

/// A text with the name under which its vector is kept.
#[derive(Debug, Clone)]
pub struct Text {
    text: String,
    name: Name,
}

/// The SHA-256 of a text.
pub type Name = [u8; 32];

impl Text {
    /// Takes time by the length of the text.
    pub fn new(text: String) -> Self {
        let name = Sha256::digest(&text).into();
        Self { text, name }
    }

    /// Whether nothing can be asked about it: an empty text has no embedding.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Equal texts have the same.
    pub fn name(&self) -> &Name {
        &self.name
    }
}

/// Asks the endpoint.
pub struct Embedder {
    model: String,
    callee: Callee,
    wire: Embeddings,
    key: Key,
    http: Http,
    timeout: Duration,
    batch_texts: usize,
    max_concurrency: usize,
    places: Semaphore,
    kept: moka::sync::Cache<Name, Vector>,
}

impl fmt::Debug for Embedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedder").field("model", &self.model).field("key", &self.key).finish_non_exhaustive()
    }
}

impl Embedder {
    /// The client of the endpoint that is configured, if there is one. Opens no connection.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn open(settings: &EmbeddingSettings, environment: Environment<'_>) -> Result<Option<Self>, String> {
        settings.check()?;
        let Some(endpoint) = settings.endpoint() else { return Ok(None) };
        let base = endpoint.base().map_err(renamed)?;
        let http = Http::new(&base, endpoint.ca_file.as_deref())
            .map_err(|what| format!("embeddings.ca_file: {what}"))?;
        let max_concurrency = usize::try_from(settings.max_concurrency).unwrap_or(usize::MAX);
        Ok(Some(Self {
            wire: Embeddings::new(&endpoint, environment).map_err(renamed)?,
            key: endpoint.key(environment).map_err(renamed)?,
            http: http.with_longest_answer(LONGEST_ANSWER),
            timeout: endpoint.timeout(),
            callee: Callee::of(&endpoint.name, "", &endpoint),
            model: endpoint.model,
            batch_texts: settings.batch_texts,
            max_concurrency,
            places: Semaphore::new(max_concurrency.min(Semaphore::MAX_PERMITS)),
            kept: moka::sync::Cache::builder()
                .max_capacity(settings.cache_bytes)
                .weigher(|_, vector: &Vector| {
                    u32::try_from(size_of_val::<[f64]>(vector) + OVERHEAD).unwrap_or(u32::MAX)
                })
                .time_to_live(KEPT)
                .build(),
        }))
    }

    /// The model that is asked for.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// So many texts keep all calls busy; whoever has more had better ask in parts, to hold few vectors at a time.
    pub fn texts_at_once(&self) -> usize {
        self.batch_texts.saturating_mul(self.max_concurrency)
    }

    /// The vector of a text, if it is kept.
    pub fn kept(&self, text: &Text) -> Option<Vector> {
        self.kept.get(text.name())
    }

    /// The vectors of these texts, in order, none of which is empty. `deadline` is when the caller stops waiting.
    ///
    /// # Errors
    /// That of the first batch that failed; the others are given up.
    pub async fn vectors(
        &self,
        texts: &[&Text],
        deadline: Option<Instant>,
    ) -> Result<Vec<Vector>, JudgeError> {
        let batches = batches(texts, self.batch_texts);
        let answers = try_join_all(batches.into_iter().map(|batch| self.ask(batch, deadline))).await?;
        let found: Vec<Vector> = answers.into_iter().flatten().collect();
        for (text, vector) in texts.iter().zip(&found) {
            self.kept.insert(*text.name(), Arc::clone(vector));
        }
        Ok(found)
    }

    /// A place is kept through the pause before asking again: an endpoint that wants fewer requests gets fewer.
    async fn ask(&self, batch: &[&Text], deadline: Option<Instant>) -> Result<Vec<Vector>, JudgeError> {
        let _place =
            self.places.acquire().await.map_err(|_| {
                JudgeError::new(JudgeErrorKind::Unreachable, "the embeddings' line is closed")
            })?;
        let mut attempt = 1;
        loop {
            let asked = in_time(self.timeout, deadline, self.ask_once(batch));
            let error = match self.callee.watch_embeddings(attempt - 1, asked).await {
                Ok(found) => return Ok(found.vectors),
                Err(error) => error,
            };
            let pause = match attempt < ATTEMPTS && error.is_transient() {
                true => rest(&error, attempt, deadline),
                false => None,
            };
            let Some(pause) = pause else { return Err(JudgeError { attempts: attempt, ..error }) };
            sleep(pause).await;
            attempt += 1;
        }
    }

    async fn ask_once(&self, batch: &[&Text]) -> Result<Embedded, JudgeError> {
        let key = self.key.read().await?;
        let request = self.wire.request(batch.iter().map(|text| text.text.as_str()), key.as_ref())?;
        let response = exchange(&self.http, request, key.as_ref()).await?;
        let count = batch.len();
        // Megabytes of digits are not for a thread that others wait for.
        tokio::task::spawn_blocking(move || embedded(&response, count))
            .await
            .unwrap_or_else(|_| Err(unreadable("reading the answer failed")))
    }
}

/// Runs of at most `most` texts, and of at most [`BATCH_BYTES`] unless it is one text alone.
fn batches<'a, 't>(mut texts: &'a [&'t Text], most: usize) -> Vec<&'a [&'t Text]> {
    let mut batches = Vec::new();
    while !texts.is_empty() {
        let mut bytes = 0_usize;
        let fits = texts.iter().take(most).take_while(|text| {
            bytes = bytes.saturating_add(text.text.len());
            bytes <= BATCH_BYTES
        });
        let (batch, others) = texts.split_at(fits.count().max(1));
        batches.push(batch);
        texts = others;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(settings: &EmbeddingSettings) -> Result<Option<Embedder>, String> {
        Embedder::open(settings, &|name| (name == "KEY").then(|| String::from("sk-0123456789")))
    }

    fn model() -> EmbeddingSettings {
        EmbeddingSettings {
            model: String::from("m"),
            base_url: String::from("http://127.0.0.1:1"),
            ..EmbeddingSettings::default()
        }
    }

    #[test]
    fn without_a_model_there_is_no_endpoint() {
        assert!(open(&EmbeddingSettings::default()).unwrap().is_none());
        assert_eq!(open(&model()).unwrap().unwrap().model(), "m");
    }

    #[test]
    fn a_setting_that_cannot_be_used_is_named() {
        let set = |change: fn(&mut EmbeddingSettings)| {
            let mut settings = model();
            change(&mut settings);
            open(&settings).map(|_| ())
        };
        assert_eq!(set(|all| all.key_env = String::from("KEY")), Ok(()));
        for (wrong, message) in [
            (set(|all| all.model.clear()), "embeddings.model: is required"),
            (set(|all| all.base_url = String::from("ftp://h")), "embeddings.base_url: must begin with http"),
            (set(|all| all.base_url.clear()), "embeddings.key_env: openai needs a key"),
            (set(|all| all.key_env = String::from("NONE")), "embeddings.key_env: the variable NONE"),
            (set(|all| all.key_file = "/does/not/exist".into()), "embeddings.key_file: cannot be read"),
            (set(|all| all.ca_file = "Cargo.toml".into()), "embeddings.ca_file: holds no PEM"),
            (set(|all| all.batch_texts = 0), "embeddings.batch_texts: must be 1 to 2048"),
            (set(|all| all.batch_texts = 2049), "embeddings.batch_texts: must be 1 to 2048"),
            (set(|all| all.max_concurrency = 0), "embeddings.max_concurrency: must be at least 1"),
            (set(|all| all.timeout_seconds = 0.0), "embeddings.timeout_seconds: must be above 0"),
        ] {
            let found = wrong.unwrap_err();
            assert!(found.starts_with(message), "{found}");
        }
    }

    #[test]
    fn batches_are_bounded_in_texts_and_in_bytes() {
        let sizes = |lengths: &[usize], most: usize| {
            let texts: Vec<Text> = lengths.iter().map(|length| Text::new("x".repeat(*length))).collect();
            let texts: Vec<&Text> = texts.iter().collect();
            batches(&texts, most).iter().map(|batch| batch.len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[1; 7], 3), [3, 3, 1]);
        assert_eq!(sizes(&[BATCH_BYTES, 1, BATCH_BYTES, BATCH_BYTES + 1, 1, 1], 3), [1, 1, 1, 1, 2]);
        assert_eq!(sizes(&[], 3), [0; 0]);
    }
}
