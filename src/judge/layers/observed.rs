//! Tells telemetry of each call that is sent: stands outside the deadline, so that a call that ran out of time is seen
//! as one, and inside whatever waits or asks again.

use crate::judge::{Judge, JudgeError, Question, Reply};
use crate::telemetry::judge::Callee;

/// Asks under the eyes of telemetry.
#[derive(Debug)]
pub struct Observed<J> {
    inner: J,
    callee: Callee,
}

impl<J> Observed<J> {
    /// `callee` is whom `inner` asks.
    pub fn new(inner: J, callee: Callee) -> Self {
        Self { inner, callee }
    }
}

impl<J: Judge> Judge for Observed<J> {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        self.callee.watch(question, self.inner.ask(question)).await
    }

    fn disown(&self, question: &Question) {
        self.inner.disown(question);
    }
}
