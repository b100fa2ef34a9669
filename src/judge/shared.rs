//! The Redis or Valkey that processes share: a connection that nothing depends on.
//!
//! What does not answer within the time limit is gone on without, and after trouble the store is left alone for a second,
//! then two, up to half a minute. What is kept there and under which names is the business of `cache/shared.rs` and
//! `pool/quota.rs`.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, RedisResult};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);
/// Writes under way; beyond that they are left out rather than piled up.
const MOST_WRITES: usize = 256;

/// A way to the store.
#[derive(Clone)]
pub(crate) struct Link {
    inside: Arc<Inside>,
}

struct Inside {
    client: Client,
    connection: OnceLock<ConnectionManager>,
    time_limit: Duration,
    trouble: Mutex<Trouble>,
    writes: Semaphore,
}

#[derive(Default)]
struct Trouble {
    in_a_row: u32,
    until: Option<Instant>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    /// To the store at `url`. Opens no connection yet.
    ///
    /// # Errors
    /// A sentence about the address, without it.
    pub(crate) fn open(url: &str, time_limit: Duration) -> Result<Self, String> {
        let client =
            Client::open(url).map_err(|_| String::from("is no address such as redis://127.0.0.1:6379/0"))?;
        Ok(Self {
            inside: Arc::new(Inside {
                client,
                connection: OnceLock::new(),
                time_limit,
                trouble: Mutex::default(),
                writes: Semaphore::new(MOST_WRITES),
            }),
        })
    }

    /// Does it, or goes on without.
    pub(crate) async fn attempt<T, F>(&self, operation: impl FnOnce(ConnectionManager) -> F) -> Option<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        self.inside.attempt(operation).await
    }

    /// Does it some time soon; nobody waits.
    pub(crate) fn write<F>(&self, operation: impl FnOnce(ConnectionManager) -> F + Send + 'static)
    where
        F: Future<Output = RedisResult<()>> + Send,
    {
        let inside = Arc::clone(&self.inside);
        // Whoever drops a call outside of the runtime is about to end.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let Ok(_place) = inside.writes.try_acquire() else { return };
            inside.attempt(operation).await;
        });
    }
}

impl Inside {
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
                    tracing::info!("the shared store answers again");
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
            tracing::warn!("going on without the shared store: {what}");
        }
        if trouble.until.is_none_or(|until| Instant::now() >= until) {
            *trouble = Trouble { in_a_row: trouble.in_a_row + 1, until: Some(Instant::now() + rest) };
        }
        None
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
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
