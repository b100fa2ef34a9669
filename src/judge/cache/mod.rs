//! Answers kept and shared, so that equal questions are asked once.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `key.rs` | which questions are equal |
//! | `flight.rs` | a question that is being asked has one call, however many wait for it |
//! | `shared.rs` | answers shared with other processes, in Redis or Valkey |
//!
//! Two questions are equal when an endpoint would be sent the same, **and** they are the same sample of their item: the
//! samples of one item never collapse into one. An answer is looked for in memory, then among the calls in flight, then in
//! the shared store. Only answers are kept, never failures, and no answer that turned out to be no verdict. What is kept
//! costs nothing: such a reply reports no tokens.

mod flight;
mod key;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::counters::{Counters, Event};
use super::secret::Secret;
use super::shared::Link;
use super::{Judge, JudgeError, JudgeErrorKind, Question, Reply, Reuse, Source, Usage};
use crate::telemetry;
use flight::Flights;
use key::Key;
use shared::Shared;

pub use key::Identity;

/// What an entry costs beside its texts, in bytes, roughly.
const OVERHEAD: usize = 256;

/// How answers are kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheSettings {
    /// Bytes of answers in memory; 0 = none are kept there.
    pub memory_bytes: u64,
    /// Seconds that an answer is kept, in memory and in Redis; 0 = none are kept anywhere.
    pub ttl_seconds: u64,
    /// `redis://` address of a Redis or Valkey in which processes share answers; empty = none.
    pub redis_url: Secret,
    /// Milliseconds after which the service goes on without the answer of Redis.
    pub redis_timeout_ms: u64,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { memory_bytes: 64 << 20, ttl_seconds: 3600, redis_url: Secret::new(""), redis_timeout_ms: 100 }
    }
}

impl CacheSettings {
    /// Checks everything; opens no connection.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn check(&self) -> Result<(), String> {
        if self.redis_timeout_ms == 0 {
            return Err(String::from("judge.cache.redis_timeout_ms: must be at least 1"));
        }
        self.link().map(|_| ())
    }

    /// The way to Redis, if there is one.
    fn link(&self) -> Result<Option<Link>, String> {
        let url = self.redis_url.expose();
        let time_limit = Duration::from_millis(self.redis_timeout_ms);
        let link = (!url.is_empty()).then(|| Link::open(url, time_limit)).transpose();
        link.map_err(|what| format!("judge.cache.redis_url: {what}"))
    }
}

/// Where answers are kept, for all judges of a process.
#[derive(Debug)]
pub struct Store {
    memory: Option<moka::sync::Cache<Key, Arc<Reply>>>,
    shared: Option<Shared>,
    link: Option<Link>,
}

impl Store {
    /// As these settings say; opens no connection yet.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn open(settings: &CacheSettings) -> Result<Self, String> {
        settings.check()?;
        let ttl = Duration::from_secs(settings.ttl_seconds);
        let memory = (settings.memory_bytes > 0 && !ttl.is_zero()).then(|| {
            moka::sync::Cache::builder()
                .max_capacity(settings.memory_bytes)
                .weigher(|_, reply: &Arc<Reply>| weight(reply))
                .time_to_live(ttl)
                .build()
        });
        let link = settings.link()?;
        let shared = link.clone().filter(|_| !ttl.is_zero()).map(|link| Shared::new(link, ttl));
        Ok(Self { memory, shared, link })
    }

    /// The store that processes share, for what else they share.
    pub(crate) fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    fn remembered(&self, key: &Key) -> Option<Reply> {
        let reply = self.memory.as_ref()?.get(key)?;
        Some(free_of_charge(Reply::clone(&reply), Source::Memory))
    }

    fn remember(&self, key: Key, reply: &Reply) {
        if let Some(memory) = &self.memory {
            memory.insert(key, Arc::new(reply.clone()));
        }
    }

    fn forget(&self, key: &Key) {
        if let Some(memory) = &self.memory {
            memory.invalidate(key);
        }
        if let Some(shared) = &self.shared {
            shared.forget(key);
        }
    }
}

fn weight(reply: &Reply) -> u32 {
    let chances = reply.alternatives.iter().flatten().map(|chance| chance.token.len() + OVERHEAD / 4);
    let bytes = reply.text.len() + reply.model.len() + reply.id.len() + chances.sum::<usize>() + OVERHEAD;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The same answer for somebody who did not cause its cost.
fn free_of_charge(mut reply: Reply, source: Source) -> Reply {
    reply.usage = Usage::default();
    reply.journey.source = source;
    reply.journey.attempts = 0;
    reply
}

/// Asks equal questions once.
#[derive(Debug)]
pub struct Cached<J> {
    inner: Arc<J>,
    identity: Identity,
    store: Option<Arc<Store>>,
    flights: Flights,
    counters: Arc<Counters>,
}

impl<J> Cached<J> {
    /// Keeps the answers of the judge of this identity in `store`; without one, every question is asked.
    pub fn new(inner: J, identity: Identity, store: Option<Arc<Store>>, counters: Arc<Counters>) -> Self {
        Self { inner: Arc::new(inner), identity, store, flights: Flights::default(), counters }
    }
}

impl<J: Judge + 'static> Cached<J> {
    /// Asks, unless another process has, and keeps the answer.
    async fn fetch(
        inner: Arc<J>,
        store: Arc<Store>,
        key: Key,
        question: Question,
    ) -> Result<Reply, JudgeError> {
        if let Some(shared) = &store.shared
            && let Some(reply) = shared.get(&key).await
        {
            store.remember(key, &reply);
            return Ok(free_of_charge(reply, Source::Shared));
        }
        let reply = inner.ask(&question).await?;
        store.remember(key, &reply);
        if let Some(shared) = &store.shared {
            shared.put(&key, &reply);
        }
        Ok(reply)
    }

    fn count(&self, source: Source) {
        match source {
            Source::Endpoint => {}
            Source::Memory => self.counters.count(Event::FromMemory),
            Source::Shared => self.counters.count(Event::FromShared),
            Source::InFlight => self.counters.count(Event::FromFlight),
        }
    }
}

impl<J: Judge + 'static> Judge for Cached<J> {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        let store = match &self.store {
            Some(store) if question.reuse == Reuse::Allowed => store,
            _ => return self.inner.ask(question).await,
        };
        let key = self.identity.key(question);
        loop {
            if let Some(reply) = store.remembered(&key) {
                self.count(Source::Memory);
                return Ok(reply);
            }
            let fetch = || {
                let fetch = Self::fetch(Arc::clone(&self.inner), Arc::clone(store), key, question.clone());
                telemetry::traces::carry(fetch)
            };
            let (flight, leads) = self.flights.board(key, fetch);
            if leads {
                let answer = flight.await;
                if let Ok(reply) = &answer {
                    self.count(reply.journey.source);
                }
                return answer;
            }
            let answer = match question.deadline {
                None => flight.await,
                Some(deadline) => timeout_at(deadline, flight).await.unwrap_or_else(|_| {
                    let message = "no answer before the caller's deadline";
                    Err(JudgeError::new(JudgeErrorKind::OutOfTime, message))
                }),
            };
            match answer {
                Ok(reply) => {
                    self.count(Source::InFlight);
                    return Ok(free_of_charge(reply, Source::InFlight));
                }
                // The time of whoever began the call is over; ours is not.
                Err(error)
                    if error.kind == JudgeErrorKind::OutOfTime
                        && question.deadline.is_none_or(|deadline| deadline > Instant::now()) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn disown(&self, question: &Question) {
        if let Some(store) = self.store.as_ref().filter(|_| question.reuse == Reuse::Allowed) {
            store.forget(&self.identity.key(question));
        }
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
