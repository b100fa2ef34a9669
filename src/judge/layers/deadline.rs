//! Gives up on an answer that takes too long: longer than the endpoint may, or than the caller waits.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::judge::{Judge, JudgeError, JudgeErrorKind, Question, Reply};

/// Gives up on an answer that takes longer than `limit`, or than the caller waits.
#[derive(Debug)]
pub struct Deadline<J> {
    inner: J,
    limit: Duration,
}

impl<J> Deadline<J> {
    /// `limit` is for one call.
    pub fn new(inner: J, limit: Duration) -> Self {
        Self { inner, limit }
    }
}

impl<J: Judge> Judge for Deadline<J> {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        in_time(self.limit, question.deadline, self.inner.ask(question)).await
    }
}

/// The answer, unless it takes longer than `limit`, or than the caller waits.
///
/// # Errors
/// Those of the answer; `TimedOut`, `OutOfTime`.
pub(crate) async fn in_time<T>(
    limit: Duration,
    deadline: Option<Instant>,
    asked: impl Future<Output = Result<T, JudgeError>>,
) -> Result<T, JudgeError> {
    let now = Instant::now();
    if deadline.is_some_and(|deadline| deadline <= now) {
        return Err(JudgeError::new(
            JudgeErrorKind::OutOfTime,
            "the caller's deadline leaves no time to ask",
        ));
    }
    let ours = now + limit;
    let until = deadline.map_or(ours, |deadline| deadline.min(ours));
    timeout_at(until, asked).await.unwrap_or_else(|_| {
        let error = if until < ours {
            JudgeError::new(JudgeErrorKind::OutOfTime, "no answer before the caller's deadline")
        } else {
            JudgeError::new(JudgeErrorKind::TimedOut, format!("no answer within {limit:?}"))
        };
        Err(JudgeError { attempts: 1, ..error })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::providers::scripted::Scripted;

    fn deadline(script: &str) -> Deadline<Scripted> {
        Deadline::new(Scripted::from_script(script).unwrap(), Duration::from_secs(30))
    }

    fn within(seconds: u64) -> Question {
        let deadline = Some(Instant::now() + Duration::from_secs(seconds));
        Question { deadline, ..Question::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn the_endpoints_limit_ends_a_call_that_never_answers() {
        let started = Instant::now();
        let error = deadline(r#"{"hang": true}"#).ask(&Question::default()).await.unwrap_err();
        assert_eq!((error.kind, error.attempts), (JudgeErrorKind::TimedOut, 1));
        assert_eq!(error.message, "no answer within 30s");
        assert_eq!(started.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn the_callers_deadline_ends_it_sooner() {
        let started = Instant::now();
        let error = deadline(r#"{"hang": true}"#).ask(&within(2)).await.unwrap_err();
        assert_eq!((error.kind, error.attempts), (JudgeErrorKind::OutOfTime, 1));
        assert_eq!(started.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_who_has_gone_is_not_asked_for() {
        let error = deadline("\"x\"").ask(&within(0)).await.unwrap_err();
        assert_eq!((error.kind, error.attempts), (JudgeErrorKind::OutOfTime, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_time_passes() {
        let reply = deadline(r#"{"reply": "x", "delay_ms": 1500}"#).ask(&within(2)).await.unwrap();
        assert_eq!(reply.text, "x");
    }
}
