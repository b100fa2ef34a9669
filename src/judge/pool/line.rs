//! A line in which callers take turns: one turn at a time, and after each the next *caller* is served, not the next
//! in line. Whoever has one question waits behind one of each other caller, however many those have.
//!
//! Round robin over callers (Nagle 1987, RFC 970); within a caller first come, first served. Who leaves the line is
//! passed over.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A caller's queue is cleared of those who left when it has this length, and then whenever it has doubled.
const CLEARED_AT: usize = 64;

/// Callers in line.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether somebody has the turn.
    taken: bool,
    queues: HashMap<u64, Queue>,
    /// Callers with somebody in line, the next one first.
    round: VecDeque<u64>,
}

#[derive(Debug)]
struct Queue {
    waiting: VecDeque<oneshot::Sender<Turn>>,
    clear_at: usize,
}

/// The turn; dropping it calls the next.
#[derive(Debug)]
pub(super) struct Turn {
    /// Absent once the turn is given back.
    line: Option<Line>,
}

impl Line {
    /// Waits for the turn. Dropping the future leaves the line.
    pub(super) async fn turn(&self, caller: u64) -> Turn {
        let called = {
            let mut state = self.state();
            if !state.taken {
                state.taken = true;
                return Turn { line: Some(self.clone()) };
            }
            state.join(caller)
        };
        // The sender is dropped with the line only, which this holds.
        match called.await {
            Ok(turn) => turn,
            Err(_) => Turn { line: None },
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn to the next who still waits.
    fn call_next(&self) {
        loop {
            let next = {
                let mut state = self.state();
                let next = state.next();
                state.taken = next.is_some();
                next
            };
            let Some(next) = next else { return };
            match next.send(Turn { line: Some(self.clone()) }) {
                Ok(()) => return,
                // Gone. The turn that comes back must not call the next by itself: a thousand gone would be a
                // thousand calls deep.
                Err(mut turn) => turn.line = None,
            }
        }
    }
}

impl State {
    fn join(&mut self, caller: u64) -> oneshot::Receiver<Turn> {
        let (call, called) = oneshot::channel();
        let queue = self.queues.entry(caller).or_insert_with(|| {
            self.round.push_back(caller);
            Queue { waiting: VecDeque::new(), clear_at: CLEARED_AT }
        });
        if queue.waiting.len() >= queue.clear_at {
            queue.waiting.retain(|waiting| !waiting.is_closed());
            queue.clear_at = CLEARED_AT.max(2 * queue.waiting.len());
        }
        queue.waiting.push_back(call);
        called
    }

    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        loop {
            let caller = self.round.pop_front()?;
            let Some(queue) = self.queues.get_mut(&caller) else { continue };
            let next = queue.waiting.pop_front();
            if queue.waiting.is_empty() {
                self.queues.remove(&caller);
            } else {
                self.round.push_back(caller);
            }
            if next.is_some() {
                return next;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            line.call_next();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    /// Joins the line for each of `callers` in order; the order in which they get their turn.
    async fn served(callers: &[u64]) -> Vec<u64> {
        let line = Line::default();
        let order = Mutex::new(Vec::new());
        let first = line.turn(0).await;
        let waiting = join_all(callers.iter().map(|caller| async {
            let _turn = line.turn(*caller).await;
            order.lock().unwrap().push(*caller);
        }));
        let mut waiting = Box::pin(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(first);
        waiting.await;
        order.into_inner().unwrap()
    }

    #[tokio::test]
    async fn callers_take_turns() {
        assert_eq!(served(&[1, 1, 1, 2, 1, 3, 2]).await, [1, 2, 3, 1, 2, 1, 1]);
    }

    #[tokio::test]
    async fn one_question_waits_behind_one_of_a_flood() {
        let mut callers = vec![1; 1000];
        callers.push(2);
        assert_eq!(served(&callers).await.iter().position(|caller| *caller == 2), Some(1));
    }

    #[tokio::test]
    async fn who_left_is_passed_over_whether_called_or_not() {
        let line = Line::default();
        let first = line.turn(0).await;
        let mut gone: Vec<_> = (0..10_000).map(|_| Box::pin(line.turn(1))).collect();
        for waiting in &mut gone {
            assert!(futures_util::poll!(waiting).is_pending());
        }
        let mut stays = Box::pin(line.turn(2));
        assert!(futures_util::poll!(&mut stays).is_pending());
        // The next is called and leaves before it looks; the rest leave uncalled.
        drop(first);
        drop(gone);
        let turn = stays.await;
        assert!(line.state().taken);
        drop(turn);
        assert!(!line.state().taken);
    }

    #[tokio::test]
    async fn those_who_come_and_go_fill_no_memory() {
        let line = Line::default();
        let _first = line.turn(0).await;
        for _ in 0..100_000 {
            let mut waiting = Box::pin(line.turn(1));
            assert!(futures_util::poll!(&mut waiting).is_pending());
        }
        assert!(line.state().queues[&1].waiting.len() <= CLEARED_AT);
    }
}
