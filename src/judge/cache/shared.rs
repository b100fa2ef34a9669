//! Answers shared with other processes, in Redis or Valkey.
//!
//! The service never depends on it: what does not answer within the time limit is gone on without, and after trouble it
//! is left alone for a second, then two, up to half a minute. Writing waits for nobody. Keys are
//! `rapid-eval:reply:` and a hash; values are JSON; both end with the TTL.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{AsyncCommands, Client, RedisResult, SetExpiry, SetOptions};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use super::CacheSettings;
use super::key::Key;
use crate::judge::{Reply, TokenChance, Usage};

const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);
/// Writes under way; beyond that answers are not shared, rather than piled up.
const MOST_WRITES: usize = 256;

/// A store that processes share.
#[derive(Clone)]
pub(super) struct Shared {
    inside: Arc<Inside>,
}

struct Inside {
    client: Client,
    connection: OnceLock<ConnectionManager>,
    time_limit: Duration,
    ttl: Duration,
    trouble: Mutex<Trouble>,
    writes: tokio::sync::Semaphore,
}

#[derive(Default)]
struct Trouble {
    in_a_row: u32,
    until: Option<Instant>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// As the settings say; absent when they name none. Opens no connection.
    ///
    /// # Errors
    /// A sentence about the address, without it.
    pub(super) fn open(settings: &CacheSettings) -> Result<Option<Self>, String> {
        let url = settings.redis_url.expose();
        if url.is_empty() {
            return Ok(None);
        }
        let client =
            Client::open(url).map_err(|_| String::from("is no address such as redis://127.0.0.1:6379/0"))?;
        Ok(Some(Self {
            inside: Arc::new(Inside {
                client,
                connection: OnceLock::new(),
                time_limit: Duration::from_millis(settings.redis_timeout_ms),
                ttl: Duration::from_secs(settings.ttl_seconds),
                trouble: Mutex::default(),
                writes: tokio::sync::Semaphore::new(MOST_WRITES),
            }),
        }))
    }

    /// An answer that some process has kept.
    pub(super) async fn get(&self, key: &Key) -> Option<Reply> {
        let name = name(key);
        let text: Option<String> =
            self.inside.attempt(|mut redis| async move { redis.get(name).await }).await?;
        let kept: Kept = serde_json::from_str(&text?).ok()?;
        Some(kept.into())
    }

    /// Keeps an answer, some time soon.
    pub(super) fn put(&self, key: &Key, reply: &Reply) {
        let Ok(text) = serde_json::to_string(&Kept::from(reply)) else { return };
        let options = SetOptions::default().with_expiration(SetExpiry::EX(self.inside.ttl.as_secs()));
        let name = name(key);
        self.write(|mut redis| async move { redis.set_options::<_, _, ()>(name, text, options).await });
    }

    /// Keeps it no longer.
    pub(super) fn forget(&self, key: &Key) {
        let name = name(key);
        self.write(|mut redis| async move { redis.del::<_, ()>(name).await });
    }

    fn write<F>(&self, operation: impl FnOnce(ConnectionManager) -> F + Send + 'static)
    where
        F: Future<Output = RedisResult<()>> + Send,
    {
        let inside = Arc::clone(&self.inside);
        tokio::spawn(async move {
            let Ok(_place) = inside.writes.try_acquire() else { return };
            inside.attempt(operation).await;
        });
    }
}

impl Inside {
    /// Does it, or goes on without.
    async fn attempt<T, F>(&self, operation: impl FnOnce(ConnectionManager) -> F) -> Option<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        if self.trouble().until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let done = match self.connection() {
            Ok(connection) => timeout(self.time_limit, operation(connection)).await,
            Err(error) => Ok(Err(error)),
        };
        let what = match done {
            Ok(Ok(value)) => {
                let mut trouble = self.trouble();
                if std::mem::take(&mut *trouble).in_a_row > 0 {
                    tracing::info!("the shared cache answers again");
                }
                return Some(value);
            }
            // Its words may hold the address.
            Ok(Err(error)) => error.category().to_owned(),
            Err(_) => format!("no answer within {:?}", self.time_limit),
        };
        let mut trouble = self.trouble();
        let rest = FIRST_REST.saturating_mul(1 << trouble.in_a_row.min(5)).min(LONGEST_REST);
        if trouble.in_a_row == 0 {
            tracing::warn!("going on without the shared cache: {what}");
        }
        if trouble.until.is_none_or(|until| Instant::now() >= until) {
            *trouble = Trouble { in_a_row: trouble.in_a_row + 1, until: Some(Instant::now() + rest) };
        }
        None
    }

    fn trouble(&self) -> std::sync::MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self) -> RedisResult<ConnectionManager> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection.clone());
        }
        // Retries are ours: each attempt is bounded by the time limit, and rests are above.
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(0)
            .set_connection_timeout(Some(self.time_limit))
            .set_response_timeout(Some(self.time_limit));
        let made = ConnectionManager::new_lazy_with_config(self.client.clone(), config)?;
        Ok(self.connection.get_or_init(|| made).clone())
    }
}

fn name(key: &Key) -> String {
    format!("rapid-eval:reply:{}", key.hex())
}

/// An answer as it is kept; how it was got is not.
#[derive(Serialize, Deserialize)]
struct Kept {
    text: String,
    model: String,
    id: String,
    truncated: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<Vec<(String, f64)>>,
}

impl From<&Reply> for Kept {
    fn from(reply: &Reply) -> Self {
        let pair = |chance: &TokenChance| (chance.token.clone(), chance.logprob);
        Self {
            text: reply.text.clone(),
            model: reply.model.clone(),
            id: reply.id.clone(),
            truncated: reply.truncated,
            alternatives: reply.alternatives.iter().map(|token| token.iter().map(pair).collect()).collect(),
        }
    }
}

impl From<Kept> for Reply {
    fn from(kept: Kept) -> Self {
        let chance = |(token, logprob)| TokenChance { token, logprob };
        Self {
            text: kept.text,
            model: kept.model,
            id: kept.id,
            truncated: kept.truncated,
            usage: Usage::default(),
            alternatives: kept
                .alternatives
                .into_iter()
                .map(|token| token.into_iter().map(chance).collect())
                .collect(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_back_as_it_was_but_free_of_charge() {
        let reply = Reply {
            text: String::from("a \"text\"\n"),
            model: String::from("m"),
            id: String::from("1"),
            truncated: true,
            usage: Usage { input_tokens: 5, ..Usage::default() },
            alternatives: vec![vec![TokenChance { token: String::from("4"), logprob: -0.25 }]],
            ..Reply::default()
        };
        let text = serde_json::to_string(&Kept::from(&reply)).unwrap();
        let back = Reply::from(serde_json::from_str::<Kept>(&text).unwrap());
        assert_eq!(back, Reply { usage: Usage::default(), ..reply });
    }
}
