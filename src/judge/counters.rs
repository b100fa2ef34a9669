//! What a judge has cost and how it fared since the start, as plain numbers.
//!
//! One [`Counters`] belongs to one judge; its layers count into it. [`Counters::now`] is a copy to read from, for
//! telemetry and tests. Counts only grow.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use super::Usage;

/// Counts of one judge.
#[derive(Debug, Default)]
pub struct Counters {
    questions: AtomicU64,
    from_memory: AtomicU64,
    from_shared: AtomicU64,
    from_flight: AtomicU64,
    calls: AtomicU64,
    answered: AtomicU64,
    retries: AtomicU64,
    retries_refused: AtomicU64,
    throttled: AtomicU64,
    failed: AtomicU64,
    abandoned: AtomicU64,
    hedges: AtomicU64,
    hedges_won: AtomicU64,
    over_budget: AtomicU64,
    queued_micros: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
    cached_input_tokens: AtomicU64,
    reasoning_tokens: AtomicU64,
    /// A [`State`].
    state: AtomicU8,
}

/// How a judge fares, as its last call tells. Nobody is called to find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// Nobody has asked it yet.
    #[default]
    NotAsked,
    /// It answered, or asked for patience.
    Up,
    /// Its last call failed.
    Failing,
}

/// One kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A question came in, whoever answers it.
    Question,
    /// It was answered from the memory of this process.
    FromMemory,
    /// It was answered from the store that processes share.
    FromShared,
    /// It was answered by an equal question in flight.
    FromFlight,
    /// A call was begun.
    Call,
    /// A call was answered.
    Answered,
    /// A question was asked again after a failure.
    Retry,
    /// A question was not asked again because the retry budget was spent.
    RetryRefused,
    /// An endpoint wanted fewer requests.
    Throttled,
    /// A call failed otherwise.
    Failed,
    /// A call was dropped before its answer.
    Abandoned,
    /// A second copy was sent.
    Hedge,
    /// The second copy was the first to be answered.
    HedgeWon,
    /// A call was refused because the judge's budget was spent.
    OverBudget,
}

/// [`Counters`] at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Questions that came in.
    pub questions: u64,
    /// Answered from the memory of this process.
    pub from_memory: u64,
    /// Answered from the store that processes share.
    pub from_shared: u64,
    /// Answered by an equal question in flight.
    pub from_flight: u64,
    /// Calls begun, second copies included.
    pub calls: u64,
    /// Calls answered.
    pub answered: u64,
    /// Questions asked again.
    pub retries: u64,
    /// Questions not asked again because the retry budget was spent.
    pub retries_refused: u64,
    /// Calls refused by an endpoint that wanted fewer.
    pub throttled: u64,
    /// Calls that failed otherwise.
    pub failed: u64,
    /// Calls dropped before their answer.
    pub abandoned: u64,
    /// Second copies sent.
    pub hedges: u64,
    /// Second copies that were the first to be answered.
    pub hedges_won: u64,
    /// Calls not begun because the judge's budget was spent.
    pub over_budget: u64,
    /// Time spent in line, of all calls together.
    pub queued: Duration,
    /// Tokens that endpoints reported, of every answer that arrived.
    pub usage: Usage,
}

impl Counters {
    /// One more.
    pub fn count(&self, event: Event) {
        let counter = match event {
            Event::Question => &self.questions,
            Event::FromMemory => &self.from_memory,
            Event::FromShared => &self.from_shared,
            Event::FromFlight => &self.from_flight,
            Event::Call => &self.calls,
            Event::Answered => &self.answered,
            Event::Retry => &self.retries,
            Event::RetryRefused => &self.retries_refused,
            Event::Throttled => &self.throttled,
            Event::Failed => &self.failed,
            Event::Abandoned => &self.abandoned,
            Event::Hedge => &self.hedges,
            Event::HedgeWon => &self.hedges_won,
            Event::OverBudget => &self.over_budget,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if matches!(event, Event::Answered | Event::Throttled) {
            self.state.store(State::Up as u8, Ordering::Relaxed);
        } else if event == Event::Failed {
            self.state.store(State::Failing as u8, Ordering::Relaxed);
        }
    }

    /// As the last call tells.
    pub fn state(&self) -> State {
        let state = self.state.load(Ordering::Relaxed);
        [State::Up, State::Failing].into_iter().find(|known| *known as u8 == state).unwrap_or_default()
    }

    /// Time that a call spent in line.
    pub fn queued(&self, time: Duration) {
        self.queued_micros.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Tokens of an answer.
    pub fn used(&self, usage: Usage) {
        self.input_tokens.fetch_add(usage.input_tokens, Ordering::Relaxed);
        self.output_tokens.fetch_add(usage.output_tokens, Ordering::Relaxed);
        self.cached_input_tokens.fetch_add(usage.cached_input_tokens, Ordering::Relaxed);
        self.reasoning_tokens.fetch_add(usage.reasoning_tokens, Ordering::Relaxed);
    }

    /// All counts.
    pub fn now(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            questions: of(&self.questions),
            from_memory: of(&self.from_memory),
            from_shared: of(&self.from_shared),
            from_flight: of(&self.from_flight),
            calls: of(&self.calls),
            answered: of(&self.answered),
            retries: of(&self.retries),
            retries_refused: of(&self.retries_refused),
            throttled: of(&self.throttled),
            failed: of(&self.failed),
            abandoned: of(&self.abandoned),
            hedges: of(&self.hedges),
            hedges_won: of(&self.hedges_won),
            over_budget: of(&self.over_budget),
            queued: Duration::from_micros(of(&self.queued_micros)),
            usage: Usage {
                input_tokens: of(&self.input_tokens),
                output_tokens: of(&self.output_tokens),
                cached_input_tokens: of(&self.cached_input_tokens),
                reasoning_tokens: of(&self.reasoning_tokens),
            },
        }
    }
}
