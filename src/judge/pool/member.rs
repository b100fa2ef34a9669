//! One endpoint of a pool: its places, its rate, its health and its pace.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::health::{Advice, Health, is_the_endpoints_fault};
use super::latency::Latency;
use super::quota::Quota;
use super::rate::Rate;
use crate::judge::{JudgeError, JudgeErrorKind, Usage};

/// What the configuration says of one endpoint, as far as a pool is concerned.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The name that errors and telemetry use; empty where a judge has one endpoint only.
    pub name: Arc<str>,
    /// Endpoints of a higher number are asked when none of a lower one can be.
    pub priority: u32,
    /// Calls open at one time.
    pub max_concurrency: u32,
    /// Requests sent in a minute.
    pub requests_per_minute: Option<u32>,
    /// Tokens sent and received in a minute.
    pub tokens_per_minute: Option<u32>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            name: "".into(),
            priority: 0,
            max_concurrency: 64,
            requests_per_minute: None,
            tokens_per_minute: None,
        }
    }
}

/// An endpoint as its pool sees it.
#[derive(Debug)]
pub(super) struct Member<J> {
    pub(super) judge: J,
    pub(super) terms: Terms,
    /// What it shares of its limits with other processes.
    pub(super) quota: Option<Quota>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    open: u32,
    rate: Rate,
    health: Health,
    latency: Latency,
}

/// Whether a question can be sent to a member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Standing {
    /// Now; the smaller the load, the better.
    Ready { load: f64 },
    /// Once a call has ended.
    Full,
    /// Once its rate allows.
    Paced(Instant),
    /// It failed and rests.
    Down,
    /// It wants to be left alone.
    Throttled,
}

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum End<'a> {
    /// With an answer that used so many tokens.
    Answered(Usage),
    /// With an error.
    Failed(&'a JudgeError),
    /// It was dropped.
    Abandoned,
}

impl End<'_> {
    /// The tokens to charge for it, when nobody says.
    pub(super) fn charge(self, estimate: Usage) -> Usage {
        match self {
            Self::Answered(usage) => usage,
            Self::Abandoned => estimate,
            Self::Failed(error) => {
                // It may have been answered all the same, too late for us.
                let too_late = matches!(error.kind, JudgeErrorKind::TimedOut | JudgeErrorKind::OutOfTime);
                if too_late && error.attempts > 0 { estimate } else { Usage::default() }
            }
        }
    }
}

/// A call as its member knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) reserved: u64,
}

impl<J> Member<J> {
    pub(super) fn new(judge: J, terms: Terms, quota: Option<Quota>) -> Self {
        let rate = Rate::new(terms.requests_per_minute, terms.tokens_per_minute, Instant::now());
        let state = State { open: 0, rate, health: Health::default(), latency: Latency::default() };
        Self { judge, terms, quota, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a question of so many tokens can be sent. `typical` is the pace, in seconds, to assume of an endpoint
    /// that has not answered yet. As a last resort failures do not count.
    pub(super) fn standing(&self, now: Instant, tokens: u64, typical: f64, last_resort: bool) -> Standing {
        let mut state = self.state();
        let ready_at = state.rate.ready_at(now, tokens);
        if state.rate.rests_until(now).is_some() {
            return Standing::Throttled;
        }
        if !last_resort && matches!(state.health.advice(now), Advice::Rest(_)) {
            return Standing::Down;
        }
        if state.open >= self.terms.max_concurrency {
            return Standing::Full;
        }
        match ready_at {
            Some(at) => Standing::Paced(at),
            None => {
                let pace = state.latency.average(now).unwrap_or(typical);
                Standing::Ready { load: pace * f64::from(state.open + 1) }
            }
        }
    }

    /// Other processes have used up what they share with this one.
    pub(super) fn hold(&self, until: Instant) {
        self.state().rate.hold(until);
    }

    /// Until when it wants to be left alone.
    pub(super) fn rests_until(&self, now: Instant) -> Option<Instant> {
        self.state().rate.rests_until(now)
    }

    /// Its average pace in seconds, if it has answered.
    pub(super) fn pace(&self, now: Instant) -> Option<f64> {
        self.state().latency.average(now)
    }

    /// The time that half of its answers take, if known and known of late.
    pub(super) fn usual(&self, now: Instant) -> Option<Duration> {
        self.state().latency.usual(now)
    }

    /// The time within which a share of its answers come, if known.
    pub(super) fn quantile(&self, part: f64) -> Option<Duration> {
        self.state().latency.quantile(part)
    }

    /// A question is sent.
    pub(super) fn begin(&self, now: Instant, tokens: u64) -> Sent {
        let mut state = self.state();
        state.open += 1;
        state.rate.take(now, tokens);
        state.health.asked(now);
        Sent { at: now, reserved: tokens }
    }

    /// A call has ended.
    pub(super) fn end(&self, now: Instant, sent: Sent, end: End<'_>) {
        let mut state = self.state();
        let took = now.saturating_duration_since(sent.at);
        state.open = state.open.saturating_sub(1);
        match end {
            End::Answered(usage) => {
                state.rate.settle(now, sent.reserved, usage.total());
                state.rate.accepted();
                state.health.answered();
                state.latency.observe(now, took);
            }
            // Nobody says what it used; the estimate stands.
            End::Abandoned => {
                state.latency.at_least(now, took);
                state.health.abandoned();
            }
            End::Failed(error) => {
                let estimate = Usage { input_tokens: sent.reserved, ..Usage::default() };
                state.rate.settle(now, sent.reserved, end.charge(estimate).total());
                state.fail(now, took, sent, error);
            }
        }
    }
}

impl State {
    fn fail(&mut self, now: Instant, took: Duration, sent: Sent, error: &JudgeError) {
        if matches!(error.kind, JudgeErrorKind::TimedOut | JudgeErrorKind::OutOfTime) {
            self.latency.at_least(now, took);
        }
        if error.kind == JudgeErrorKind::Throttled {
            self.rate.refused(now, sent.at, error.retry_after);
            self.health.abandoned();
        } else if error.kind == JudgeErrorKind::OutOfTime {
            self.health.abandoned();
        } else if is_the_endpoints_fault(error.kind) {
            self.health.failed(now, error.kind, rand::random());
        } else {
            self.health.answered();
        }
    }
}
