//! A question that is being asked has one call, however many wait for it.
//!
//! The call belongs to all who wait: it goes on while there is one of them, whoever began it, and is dropped, which
//! closes its connection, with the last. Nothing is spawned.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};

use super::key::Key;
use crate::judge::{JudgeError, Reply};

/// What is in flight comes to.
type Answer = Result<Reply, JudgeError>;
type Call = BoxFuture<'static, Answer>;

/// Calls in flight, by question.
#[derive(Debug, Clone, Default)]
pub(super) struct Flights {
    board: Arc<Mutex<Board>>,
}

#[derive(Debug, Default)]
struct Board {
    next: u64,
    flights: HashMap<Key, (u64, WeakShared<Call>)>,
}

impl Flights {
    /// The call for `key`, begun with `call` if there is none; and whether it was begun.
    pub(super) fn board<F>(&self, key: Key, call: impl FnOnce() -> F) -> (Shared<Call>, bool)
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let mut board = self.lock();
        if let Some(flight) = board.flights.get(&key).and_then(|(_, flight)| flight.upgrade())
            // What has landed is no longer news: it is in the store, or failed.
            && flight.peek().is_none()
        {
            return (flight, false);
        }
        let number = board.next;
        board.next += 1;
        let landing = Landing { flights: self.clone(), key, number };
        let call = call();
        let flight = async move {
            let _landing = landing;
            call.await
        }
        .boxed()
        .shared();
        if let Some(weak) = flight.downgrade() {
            board.flights.insert(key, (number, weak));
        }
        (flight, true)
    }

    fn lock(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().flights.len()
    }
}

/// Takes a flight off the board when it ends or is given up.
struct Landing {
    flights: Flights,
    key: Key,
    number: u64,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut board = self.flights.lock();
        if board.flights.get(&self.key).is_some_and(|(number, _)| *number == self.number) {
            board.flights.remove(&self.key);
        }
    }
}
