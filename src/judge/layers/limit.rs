//! Keeps the calls that an endpoint has open at one time within bounds. Who comes later waits in line, first come
//! first served, for as long as the caller does.

use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use crate::judge::{Judge, JudgeError, JudgeErrorKind, Question, Reply};

/// Lets so many questions through at one time.
#[derive(Debug)]
pub struct Limit<J> {
    inner: J,
    places: Semaphore,
}

impl<J> Limit<J> {
    /// At most `most` calls at one time.
    pub fn new(inner: J, most: u32) -> Self {
        Self { inner, places: Semaphore::new(usize::try_from(most).unwrap_or(Semaphore::MAX_PERMITS)) }
    }
}

impl<J: Judge> Judge for Limit<J> {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        let place = match question.deadline {
            None => self.places.acquire().await,
            Some(deadline) => timeout_at(deadline, self.places.acquire()).await.map_err(|_| {
                JudgeError::new(
                    JudgeErrorKind::OutOfTime,
                    "the caller's deadline passed while others were being answered",
                )
            })?,
        };
        let _place = place.expect("nobody closes the semaphore");
        self.inner.ask(question).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::time::Instant;

    use super::*;
    use crate::judge::providers::scripted::Scripted;

    fn two_at_a_time() -> Limit<Scripted> {
        Limit::new(Scripted::from_script(r#"{"reply": "x", "delay_ms": 1000}"#).unwrap(), 2)
    }

    #[tokio::test(start_paused = true)]
    async fn six_questions_of_a_second_each_take_three_seconds_two_at_a_time() {
        let (judge, began) = (two_at_a_time(), Instant::now());
        let question = Question::default();
        let replies = join_all((0..6).map(|_| judge.ask(&question))).await;
        assert!(replies.iter().all(Result::is_ok), "{replies:?}");
        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_in_line_waits_no_longer_than_the_caller() {
        let (judge, began) = (two_at_a_time(), Instant::now());
        let question =
            Question { deadline: Some(began + Duration::from_millis(1500)), ..Question::default() };
        let replies = join_all((0..6).map(|_| judge.ask(&question))).await;
        let late: Vec<&JudgeError> = replies.iter().filter_map(|reply| reply.as_ref().err()).collect();
        assert_eq!(late.len(), 2, "two in line never got a place: {replies:?}");
        assert!(late.iter().all(|error| (error.kind, error.attempts) == (JudgeErrorKind::OutOfTime, 0)));
    }
}
