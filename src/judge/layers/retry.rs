//! Asks again when that may help. The only layer that does: retries inside retries multiply.
//!
//! Pauses are as those of the official clients of OpenAI and Anthropic: 0.5 s doubling to 8 s, each shortened by
//! up to a quarter at random. A wait that the provider asks for counts instead, when it is longer. Where another endpoint
//! can be asked there is no pause.
//!
//! A budget bounds how much retrying adds to a load that already fails: a fifth of the questions of the last ten
//! seconds, and a hundred. Waiting out a 429 adds nothing and is not charged.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tower::retry::budget::{Budget, TpsBudget};

use crate::judge::counters::{Counters, Event};
use crate::judge::{Judge, JudgeError, JudgeErrorKind, Question, Reply};
use crate::telemetry;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// A provider that wants a longer rest than this is not waited for; the caller learns how long it is.
const LONGEST_REST: Duration = Duration::from_secs(120);
/// What has to be left of the caller's time after a pause: a call in less seldom succeeds.
const RESERVE: Duration = Duration::from_secs(1);
/// Retries are counted against the questions of this time.
const BUDGET_TIME: Duration = Duration::from_secs(10);
/// Retries in a second that are good without any questions.
const BUDGET_PER_SECOND: u32 = 10;
/// The share of questions that may be retried beyond.
const BUDGET_SHARE: f32 = 0.2;

/// Asks up to `attempts` times while failures are transient and the caller's time allows.
pub struct Retry<J> {
    inner: J,
    attempts: u32,
    budget: TpsBudget,
    counters: Arc<Counters>,
}

impl<J> Retry<J> {
    /// `attempts` counts the first one; 0 is taken as 1.
    pub fn new(inner: J, attempts: u32, counters: Arc<Counters>) -> Self {
        let budget = TpsBudget::new(BUDGET_TIME, BUDGET_PER_SECOND, BUDGET_SHARE);
        Self { inner, attempts: attempts.max(1), budget, counters }
    }

    /// How long to wait before attempt number `attempt` + 1; absent = it is not worth it.
    fn pause(&self, error: &JudgeError, attempt: u32, question: &Question) -> Option<Duration> {
        if attempt >= self.attempts || !(error.is_transient() || error.elsewhere) {
            return None;
        }
        let pause = rest(error, attempt, question.deadline)?;
        if error.kind != JudgeErrorKind::Throttled && !self.budget.withdraw() {
            self.counters.count(Event::RetryRefused);
            return None;
        }
        Some(pause)
    }
}

impl<J: std::fmt::Debug> std::fmt::Debug for Retry<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retry").field("attempts", &self.attempts).field("inner", &self.inner).finish()
    }
}

impl<J: Judge> Judge for Retry<J> {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        self.budget.deposit();
        let mut sent = 0;
        let mut attempt = 1;
        let mut again: Option<Question> = None;
        loop {
            let asked = again.as_ref().unwrap_or(question);
            let mut error = match telemetry::judge::attempt(attempt, self.inner.ask(asked)).await {
                Ok(mut reply) => {
                    reply.journey.attempts += sent;
                    return Ok(reply);
                }
                Err(error) => error,
            };
            sent += error.attempts;
            error.attempts = sent;
            let Some(pause) = self.pause(&error, attempt, question) else { return Err(error) };
            self.counters.count(Event::Retry);
            sleep(pause).await;
            let next = again.get_or_insert_with(|| question.clone());
            if !error.endpoint.is_empty() {
                next.failed_at.push(error.endpoint.into());
            }
            attempt += 1;
        }
    }

    fn disown(&self, question: &Question) {
        self.inner.disown(question);
    }
}

/// How long to wait after attempt number `attempt`, from 1, that ended so; absent = longer than anybody waits.
pub(crate) fn rest(error: &JudgeError, attempt: u32, deadline: Option<Instant>) -> Option<Duration> {
    let pause = match error.elsewhere {
        true => Duration::ZERO,
        false => backoff(attempt, rand::random()).max(error.retry_after.unwrap_or_default()),
    };
    let in_time = deadline.is_none_or(|deadline| Instant::now() + pause + RESERVE <= deadline);
    (pause <= LONGEST_REST && in_time).then_some(pause)
}

/// The pause after attempt number `attempt`, from 1; `chance` is 0 to 1.
fn backoff(attempt: u32, chance: f64) -> Duration {
    let full = FIRST_PAUSE.saturating_mul(1 << (attempt - 1).min(8)).min(LONGEST_PAUSE);
    full.mul_f64(1.0 - 0.25 * chance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::providers::scripted::Scripted;

    fn retry(script: &str) -> Retry<Scripted> {
        Retry::new(Scripted::from_script(script).unwrap(), 3, Arc::default())
    }

    #[test]
    fn pauses_double_up_to_eight_seconds_and_shrink_by_a_quarter_at_most() {
        for (attempt, longest) in [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (5, 8.0), (6, 8.0), (999, 8.0)] {
            assert_eq!(backoff(attempt, 0.0).as_secs_f64(), longest);
            assert_eq!(backoff(attempt, 1.0).as_secs_f64(), longest * 0.75);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_transient_failure_is_asked_again() {
        let reply =
            retry("{\"status\": 500}\n{\"status\": 529}\n\"x\"").ask(&Question::default()).await.unwrap();
        assert_eq!(reply.text, "x");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_failure_comes_back_with_the_count() {
        let started = Instant::now();
        let error = retry("{\"status\": 500}").ask(&Question::default()).await.unwrap_err();
        assert_eq!((error.kind, error.attempts), (JudgeErrorKind::Unreachable, 3));
        // Two pauses: 0.375 to 0.5 s and 0.75 to 1 s.
        let waited = started.elapsed().as_secs_f64();
        assert!((1.125..=1.51).contains(&waited), "{waited}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lasting_failure_is_not_asked_again() {
        for status in [400, 401, 402, 404, 413, 501] {
            let error =
                retry(&format!("{{\"status\": {status}}}")).ask(&Question::default()).await.unwrap_err();
            assert_eq!(error.attempts, 1, "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_asked_for_is_kept() {
        let started = Instant::now();
        let script = "{\"status\": 429, \"retry_after\": 20}\n\"x\"";
        retry(script).ask(&Question::default()).await.unwrap();
        let waited = started.elapsed();
        assert!((20.0..20.1).contains(&waited.as_secs_f64()), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_the_callers_time_ends_at_once() {
        for (retry_after, deadline) in [(20, Some(20)), (121, None)] {
            let started = Instant::now();
            let script = format!("{{\"status\": 429, \"retry_after\": {retry_after}}}\n\"x\"");
            let deadline = deadline.map(|seconds| started + Duration::from_secs(seconds));
            let question = Question { deadline, ..Question::default() };
            let error = retry(&script).ask(&question).await.unwrap_err();
            assert_eq!((error.kind, error.attempts), (JudgeErrorKind::Throttled, 1));
            assert_eq!(error.retry_after, Some(Duration::from_secs(retry_after)));
            assert!(started.elapsed() < Duration::from_millis(100));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retries_are_a_hundred_and_a_fifth_of_the_questions_at_most() {
        let judge = retry("{\"status\": 500}");
        let question = Question::default();
        let asks = futures_util::future::join_all((0..500).map(|_| judge.ask(&question))).await;
        let calls: u32 = asks.into_iter().map(|answer| answer.unwrap_err().attempts).sum();
        // Ten a second for ten seconds, and a fifth of 500.
        assert_eq!((calls - 500, judge.counters.now().retries), (200, 200));
        assert!(judge.counters.now().retries_refused > 0);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_out_a_429_is_no_charge_to_the_budget() {
        let judge = retry("{\"status\": 429, \"retry_after\": 1}\n\"x\"");
        let asks = futures_util::future::join_all((0..500).map(|sample| {
            let question = Question { sample, ..Question::default() };
            let judge = &judge;
            async move { judge.ask(&question).await }
        }));
        assert!(asks.await.iter().all(Result::is_ok));
    }
}
