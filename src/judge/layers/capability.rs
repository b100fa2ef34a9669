//! Learns which request fields an endpoint refuses, and asks without them from then on.
//!
//! Each refusal costs one call. So that a burst of first calls does not collect the same refusal many times,
//! the first question of each shape goes alone; the others wait for its outcome, but no longer than two seconds:
//! refusals come at once, only answers take time.

use std::collections::{BTreeSet, HashSet};
use std::mem::{Discriminant, discriminant};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::judge::{Field, Judge, JudgeError, JudgeErrorKind, Question, Reply, ReplyForm};

/// How long others wait for the first question of a shape.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks without the fields that the judge inside is known to refuse.
#[derive(Debug)]
pub struct Capability<J> {
    inner: J,
    known: RwLock<Known>,
    first: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    refused: BTreeSet<Field>,
    /// Shapes that were answered, so that nothing in them is refused.
    accepted: HashSet<Shape>,
}

/// Which fields a question brings along. What the endpoint's settings add is the same in all.
type Shape = (Discriminant<ReplyForm>, [bool; 6]);

fn shape(question: &Question) -> Shape {
    let sampling = &question.sampling;
    let set = [
        sampling.temperature.is_some(),
        sampling.top_p.is_some(),
        sampling.seed.is_some(),
        sampling.max_tokens.is_some(),
        sampling.reasoning_effort.is_some(),
        !question.system.is_empty(),
    ];
    (discriminant(&question.form), set)
}

impl<J> Capability<J> {
    /// Knows nothing yet.
    pub fn new(inner: J) -> Self {
        Self { inner, known: RwLock::default(), first: Mutex::default() }
    }

    fn refused(&self) -> BTreeSet<Field> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).refused.clone()
    }

    fn is_accepted(&self, shape: &Shape) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).accepted.contains(shape)
    }

    fn learn(&self, lesson: impl FnOnce(&mut Known)) {
        lesson(&mut self.known.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl<J: Judge> Judge for Capability<J> {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        let shape = shape(question);
        let mut turn = None;
        if !self.is_accepted(&shape) {
            let patience = Instant::now() + PATIENCE;
            let until = question.deadline.map_or(patience, |deadline| deadline.min(patience));
            turn = timeout_at(until, self.first.lock()).await.ok();
            if self.is_accepted(&shape) {
                turn = None;
            }
        }
        let mut sent = 0;
        let mut asked = question.clone();
        loop {
            asked.without.extend(self.refused());
            match self.inner.ask(&asked).await {
                Ok(reply) => {
                    if turn.is_some() {
                        self.learn(|known| {
                            known.accepted.insert(shape);
                        });
                    }
                    return Ok(reply);
                }
                Err(mut error) => {
                    sent += error.attempts;
                    error.attempts = sent;
                    // A field refused although it was not sent: the endpoint means something else. Ends the loop
                    // after as many rounds as there are fields.
                    let JudgeErrorKind::Unsupported(field) = error.kind else { return Err(error) };
                    if asked.without.contains(&field) {
                        return Err(error);
                    }
                    self.learn(|known| {
                        known.refused.insert(field);
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Refuses the fields it is told to, and counts.
    #[derive(Default)]
    struct Picky {
        refuses: Vec<Field>,
        always: bool,
        refusals: AtomicUsize,
        asked: AtomicUsize,
    }

    impl Judge for Picky {
        async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(100)).await;
            let refused = self.refuses.iter().find(|field| self.always || !question.without.contains(field));
            match refused {
                None => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(Reply { text: "x".to_owned(), ..Reply::default() })
                }
                Some(field) => {
                    self.refusals.fetch_add(1, Ordering::Relaxed);
                    let error = JudgeError::new(JudgeErrorKind::Unsupported(*field), "no");
                    Err(JudgeError { attempts: 1, ..error })
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_first_calls_costs_one_refusal_per_field() {
        let picky = Picky { refuses: vec![Field::Temperature, Field::Schema], ..Picky::default() };
        let judge = Capability::new(picky);
        let question = Question::default();
        let asks = futures_util::future::join_all((0..16).map(|_| judge.ask(&question)));
        assert!(asks.await.iter().all(Result::is_ok));
        assert_eq!(judge.inner.refusals.load(Ordering::Relaxed), 2);
        assert_eq!(judge.inner.asked.load(Ordering::Relaxed), 18);
        judge.ask(&question).await.unwrap();
        assert_eq!(judge.inner.refusals.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn questions_of_an_accepted_shape_do_not_wait_for_one_another() {
        let judge = Capability::new(Picky::default());
        let question = Question::default();
        judge.ask(&question).await.unwrap();
        let started = Instant::now();
        futures_util::future::join_all((0..8).map(|_| judge.ask(&question))).await;
        assert_eq!(started.elapsed(), Duration::from_millis(1100));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_the_first_question_ends_after_two_seconds() {
        struct Stuck;
        impl Judge for Stuck {
            async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
                if question.sample == 0 {
                    std::future::pending::<()>().await;
                }
                Ok(Reply::default())
            }
        }
        let judge = Capability::new(Stuck);
        let started = Instant::now();
        let (first, second) = (Question::default(), Question { sample: 1, ..Question::default() });
        tokio::select! {
            biased;
            _ = judge.ask(&first) => panic!("the first question never ends"),
            reply = judge.ask(&second) => assert!(reply.is_ok()),
        }
        assert_eq!(started.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_field_refused_though_left_out_is_an_error_not_a_loop() {
        let picky = Picky { refuses: vec![Field::Seed], always: true, ..Picky::default() };
        let error = Capability::new(picky).ask(&Question::default()).await.unwrap_err();
        assert_eq!((error.kind, error.attempts), (JudgeErrorKind::Unsupported(Field::Seed), 2));
    }
}
