//! Asks again when that may help. The only layer that does: retries inside retries multiply.
//!
//! Pauses are as those of the official clients of OpenAI and Anthropic: 0.5 s doubling to 8 s, each shortened by
//! up to a quarter at random. A wait that the provider asks for counts instead, when it is longer.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::judge::{Judge, JudgeError, Question, Reply};
use crate::telemetry;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// A provider that wants a longer rest than this is not waited for; the caller learns how long it is.
const LONGEST_REST: Duration = Duration::from_secs(120);
/// What has to be left of the caller's time after a pause: a call in less seldom succeeds.
const RESERVE: Duration = Duration::from_secs(1);

/// Asks up to `attempts` times while failures are transient and the caller's time allows.
#[derive(Debug)]
pub struct Retry<J> {
    inner: J,
    attempts: u32,
}

impl<J> Retry<J> {
    /// `attempts` counts the first one; 0 is taken as 1.
    pub fn new(inner: J, attempts: u32) -> Self {
        Self { inner, attempts: attempts.max(1) }
    }
}

impl<J: Judge> Judge for Retry<J> {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        let mut sent = 0;
        let mut attempt = 1;
        loop {
            let mut error = match telemetry::judge::attempt(attempt, self.inner.ask(question)).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            sent += error.attempts;
            error.attempts = sent;
            if attempt >= self.attempts || !error.is_transient() {
                return Err(error);
            }
            let pause = backoff(attempt, rand::random()).max(error.retry_after.unwrap_or_default());
            let in_time =
                question.deadline.is_none_or(|deadline| Instant::now() + pause + RESERVE <= deadline);
            if pause > LONGEST_REST || !in_time {
                return Err(error);
            }
            sleep(pause).await;
            attempt += 1;
        }
    }
}

/// The pause after attempt number `attempt`, from 1; `chance` is 0 to 1.
fn backoff(attempt: u32, chance: f64) -> Duration {
    let full = FIRST_PAUSE.saturating_mul(1 << (attempt - 1).min(8)).min(LONGEST_PAUSE);
    full.mul_f64(1.0 - 0.25 * chance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::JudgeErrorKind;
    use crate::judge::providers::scripted::Scripted;

    fn retry(script: &str) -> Retry<Scripted> {
        Retry::new(Scripted::from_script(script).unwrap(), 3)
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
}
