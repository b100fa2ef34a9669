//! On whose behalf a judge is asked.
//!
//! The doors know it, the pool needs it, and everything between passes it on without a look: so it travels with the
//! task that answers the request, not through every signature. Without a door (the command line, tests) there is one
//! caller, who refuses nothing.

use std::future::Future;

use super::Reuse;

tokio::task_local! {
    static CURRENT: Caller;
}

/// Who asks, and what he asks for besides the question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caller {
    /// The same for all requests that share one turn in line: an API key, or else a connection.
    pub id: u64,
    /// Whether answers to equal questions may be used.
    pub reuse: Reuse,
}

impl Caller {
    /// Whoever's request the current task answers.
    pub fn current() -> Self {
        CURRENT.try_with(|caller| *caller).unwrap_or_default()
    }

    /// Does `work` on behalf of this caller.
    pub async fn on_behalf<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_for_the_caller_it_is_begun_for() {
        let ann = Caller { id: 7, reuse: Reuse::Refused };
        assert_eq!(ann.on_behalf(async { Caller::current() }).await, ann);
        assert_eq!(Caller::current(), Caller::default());
    }
}
