//! Whether an endpoint is worth asking, learned from what it answers: nobody is sent to find out.
//!
//! After three failures in a row it rests for a second, and after each rest that ends in another failure for twice
//! as long, up to a minute; each rest is shortened by up to a quarter at random, so that many processes do not come back
//! together. After a rest one question goes first. A refused key, an unknown model or a spent quota rests it at once.

use std::time::Duration;

use tokio::time::Instant;

use crate::judge::JudgeErrorKind;

/// So many failures in a row make a rest.
const FAILURES: u32 = 3;
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// What is known of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Health {
    failures: u32,
    rests: u32,
    until: Option<Instant>,
    probing: bool,
}

/// Whether to ask an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// It answers, as far as is known.
    Ask,
    /// It has rested: one question may go first.
    Probe,
    /// It rests, or somebody is finding out.
    Rest(Instant),
}

impl Health {
    /// Whether to ask.
    pub(super) fn advice(&self, now: Instant) -> Advice {
        match self.until {
            None => Advice::Ask,
            Some(until) if now < until || self.probing => Advice::Rest(until),
            Some(_) => Advice::Probe,
        }
    }

    /// A question is sent.
    pub(super) fn asked(&mut self, now: Instant) {
        self.probing |= self.until.is_some_and(|until| now >= until);
    }

    /// It is alive, whatever it said.
    pub(super) fn answered(&mut self) {
        *self = Self::default();
    }

    /// It is not known how the question ended.
    pub(super) fn abandoned(&mut self) {
        self.probing = false;
    }

    /// A question failed; `chance` is 0 to 1.
    pub(super) fn failed(&mut self, now: Instant, kind: JudgeErrorKind, chance: f64) {
        self.failures = self.failures.saturating_add(1);
        let was_probing = std::mem::take(&mut self.probing);
        let rests = self.until.is_some_and(|until| now < until);
        if rests || !(is_lasting(kind) || was_probing || self.failures >= FAILURES) {
            return;
        }
        let rest = FIRST_REST.saturating_mul(1 << self.rests.min(16)).min(LONGEST_REST);
        self.until = Some(now + rest.mul_f64(1.0 - 0.25 * chance));
        self.rests = self.rests.saturating_add(1);
    }
}

/// Whether another endpoint may do better, and what this failure says of the one asked.
pub(super) fn is_the_endpoints_fault(kind: JudgeErrorKind) -> bool {
    matches!(kind, JudgeErrorKind::Unreachable | JudgeErrorKind::TimedOut) || is_lasting(kind)
}

fn is_lasting(kind: JudgeErrorKind) -> bool {
    matches!(kind, JudgeErrorKind::Credentials | JudgeErrorKind::UnknownModel | JudgeErrorKind::Exhausted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: JudgeErrorKind = JudgeErrorKind::Unreachable;

    fn after(seconds: u64, began: Instant) -> Instant {
        began + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn three_failures_in_a_row_make_a_rest_and_an_answer_between_makes_none() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.failed(now, DOWN, 0.0);
        health.failed(now, DOWN, 0.0);
        health.answered();
        health.failed(now, DOWN, 0.0);
        health.failed(now, DOWN, 0.0);
        assert_eq!(health.advice(now), Advice::Ask);
        health.failed(now, DOWN, 0.0);
        assert_eq!(health.advice(now), Advice::Rest(after(1, now)));
    }

    #[tokio::test(start_paused = true)]
    async fn rests_double_to_a_minute_and_one_question_goes_first() {
        let (mut health, mut now) = (Health::default(), Instant::now());
        for _ in 0..3 {
            health.failed(now, DOWN, 0.0);
        }
        for rest in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(health.advice(now), Advice::Rest(after(rest, now)));
            // Others that were under way fail as well, and say nothing new.
            health.failed(now, DOWN, 0.0);
            now = after(rest, now);
            assert_eq!(health.advice(now), Advice::Probe);
            health.asked(now);
            assert!(matches!(health.advice(now), Advice::Rest(_)));
            health.failed(now, DOWN, 0.0);
        }
        now = after(60, now);
        health.asked(now);
        health.answered();
        assert_eq!(health.advice(now), Advice::Ask);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_key_rests_at_once() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.failed(now, JudgeErrorKind::Credentials, 1.0);
        assert_eq!(health.advice(now), Advice::Rest(now + Duration::from_millis(750)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_question_that_is_dropped_lets_another_go_first() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.failed(now, JudgeErrorKind::Credentials, 0.0);
        let later = after(1, now);
        health.asked(later);
        health.abandoned();
        assert_eq!(health.advice(later), Advice::Probe);
    }
}
