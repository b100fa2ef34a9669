//! Samples of one item in one call, where the endpoint takes the number of answers wanted: the prompt is then read, and
//! charged, once for all of them.
//!
//! Questions that differ in their sample alone, asked by one caller at the same moment, board one call. Nobody waits for
//! others to come. An endpoint that refuses the number, or answers once whatever it is told, is asked one by one from
//! then on. At temperature 0 there is no point: the answers would be copies.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use tokio::task::yield_now;

use crate::judge::{Judge, JudgeError, JudgeErrorKind, Question, Reply, ReplyForm};
use crate::telemetry;

/// Answers of one call: as many as all endpoints that take a number give.
const SEATS: usize = 8;

/// What a call brought for each seat; fewer than there are seats when the endpoint gave fewer.
type Answers = Result<Arc<[Result<Reply, JudgeError>]>, JudgeError>;
/// The number of seats, and what came.
type Call = BoxFuture<'static, (usize, Answers)>;

/// Asks for several samples in one call.
#[derive(Debug)]
pub struct Together<J> {
    inner: Arc<J>,
    /// The temperature where a question names none.
    temperature: Option<f64>,
    gate: Arc<Gate>,
    /// Whether the endpoint takes a number, as far as is known.
    is_taken: AtomicBool,
}

/// Calls that can still be boarded.
#[derive(Debug, Default)]
struct Gate {
    next: AtomicU64,
    open: Mutex<Vec<Boarding>>,
}

#[derive(Debug)]
struct Boarding {
    number: u64,
    asked: Question,
    seats: usize,
    call: WeakShared<Call>,
}

impl<J> Together<J> {
    /// `is_taken` says whether the provider's wire has words for a number of answers at all.
    pub fn new(inner: J, is_taken: bool, temperature: Option<f64>) -> Self {
        let is_taken = AtomicBool::new(is_taken);
        Self { inner: Arc::new(inner), temperature, gate: Arc::default(), is_taken }
    }

    fn may_share(&self, question: &Question) -> bool {
        question.has_siblings
            && self.is_taken.load(Ordering::Relaxed)
            && !matches!(question.form, ReplyForm::Label { .. })
            && question.sampling.temperature.or(self.temperature) != Some(0.0)
    }
}

impl<J: Judge + 'static> Together<J> {
    /// A seat in a call for this question.
    fn board(&self, question: &Question) -> (Shared<Call>, usize) {
        let asked = apart_from_sample(question);
        let mut open = self.gate.lock();
        if let Some(boarding) = open.iter_mut().find(|boarding| boarding.asked == asked)
            && let Some(call) = boarding.call.upgrade()
        {
            let seat = boarding.seats;
            boarding.seats += 1;
            if boarding.seats == SEATS {
                // The call finds its number of seats by its absence.
                open.retain(|boarding| boarding.seats < SEATS);
            }
            return (call, seat);
        }
        let number = self.gate.next.fetch_add(1, Ordering::Relaxed);
        let leaving = Leaving { gate: Arc::clone(&self.gate), number };
        let call = fly(Arc::clone(&self.inner), leaving, question.clone());
        let call = telemetry::traces::carry(call).boxed().shared();
        let boarding = call.downgrade().map(|call| Boarding { number, asked, seats: 1, call });
        open.extend(boarding);
        (call, 0)
    }
}

/// One call for all who boarded it.
async fn fly<J: Judge>(inner: Arc<J>, leaving: Leaving, question: Question) -> (usize, Answers) {
    // A task of its own runs when that of all who board has nothing left to do. To yield here would not: each of them
    // polls this call.
    let _ = tokio::spawn(yield_now()).await;
    let seats = leaving.close();
    (seats, ask_for(&*inner, seats, question).await)
}

async fn ask_for<J: Judge>(inner: &J, seats: usize, mut question: Question) -> Answers {
    question.more_choices = u32::try_from(seats - 1).unwrap_or_default();
    let mut reply = inner.ask(&question).await?;
    let others = std::mem::take(&mut reply.more_choices);
    let others = others.into_iter().map(|other| match other {
        Ok(other) => Ok(Reply {
            model: reply.model.clone(),
            id: reply.id.clone(),
            journey: reply.journey.clone(),
            ..other
        }),
        Err(error) => Err(JudgeError {
            endpoint: reply.journey.endpoint.to_string(),
            attempts: reply.journey.attempts,
            ..error
        }),
    });
    let others: Vec<_> = others.take(seats - 1).collect();
    Ok(std::iter::once(Ok(reply)).chain(others).collect())
}

impl<J: Judge + 'static> Judge for Together<J> {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        if !self.may_share(question) {
            return self.inner.ask(question).await;
        }
        let (call, seat) = self.board(question);
        let (seats, answers) = call.await;
        match answers {
            Ok(answers) => match answers.get(seat) {
                Some(answer) => return answer.clone(),
                None => {
                    if answers.len() == 1 {
                        self.is_taken.store(false, Ordering::Relaxed);
                    }
                }
            },
            Err(error) if seats > 1 && is_refusal(&error) => self.is_taken.store(false, Ordering::Relaxed),
            Err(error) => return Err(error),
        }
        self.inner.ask(question).await
    }

    fn disown(&self, question: &Question) {
        self.inner.disown(question);
    }
}

/// Whether the number may be what the endpoint does not take.
fn is_refusal(error: &JudgeError) -> bool {
    matches!(error.kind, JudgeErrorKind::BadRequest | JudgeErrorKind::Unsupported(_))
}

/// The question without what tells samples of one item apart.
fn apart_from_sample(question: &Question) -> Question {
    let mut asked = question.clone();
    let sample = i64::from(std::mem::take(&mut asked.sample));
    asked.sampling.seed = asked.sampling.seed.map(|seed| seed.wrapping_sub(sample));
    asked
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Vec<Boarding>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a call off the gate when it leaves, or when nobody waits for it any more.
struct Leaving {
    gate: Arc<Gate>,
    number: u64,
}

impl Leaving {
    /// Nobody boards any more; how many have.
    fn close(self) -> usize {
        let mut open = self.gate.lock();
        let at = open.iter().position(|boarding| boarding.number == self.number);
        at.map_or(SEATS, |at| open.swap_remove(at).seats)
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.gate.lock().retain(|boarding| boarding.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::judge::{Sampling, Usage};

    /// Gives at most so many answers in a call, or refuses to be asked for more than one.
    #[derive(Debug)]
    struct Endpoint {
        most: usize,
        refuses: bool,
        /// Answers wanted, call by call.
        calls: Mutex<Vec<usize>>,
    }

    impl Judge for Endpoint {
        async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
            let wanted = question.more_choices as usize + 1;
            let call = {
                let mut calls = self.calls.lock().unwrap();
                calls.push(wanted);
                calls.len()
            };
            yield_now().await;
            if self.refuses && wanted > self.most {
                return Err(JudgeError::new(JudgeErrorKind::BadRequest, "n must be 1"));
            }
            let said = |number| Reply { text: format!("{call}.{number}"), ..Reply::default() };
            Ok(Reply {
                usage: Usage { input_tokens: 10, ..Usage::default() },
                more_choices: (1..wanted.min(self.most)).map(|number| Ok(said(number))).collect(),
                ..said(0)
            })
        }
    }

    fn together(most: usize, refuses: bool) -> Together<Endpoint> {
        Together::new(Endpoint { most, refuses, calls: Mutex::default() }, true, None)
    }

    fn sample(sample: u32) -> Question {
        let sampling = Sampling { seed: Some(7 + i64::from(sample)), ..Sampling::default() };
        Question { sample, sampling, has_siblings: true, ..Question::default() }
    }

    async fn ask(judge: &Together<Endpoint>, questions: Vec<Question>) -> (Vec<String>, u64) {
        let replies = join_all(questions.iter().map(|question| judge.ask(question))).await;
        let replies: Vec<Reply> = replies.into_iter().map(Result::unwrap).collect();
        let tokens = replies.iter().map(|reply| reply.usage.input_tokens).sum();
        (replies.into_iter().map(|reply| reply.text).collect(), tokens)
    }

    fn calls(judge: &Together<Endpoint>) -> Vec<usize> {
        std::mem::take(&mut judge.inner.calls.lock().unwrap())
    }

    #[tokio::test]
    async fn samples_of_an_item_are_one_call_and_its_prompt_is_charged_once() {
        let judge = together(9, false);
        let (texts, tokens) = ask(&judge, (0..4).map(sample).collect()).await;
        assert_eq!((calls(&judge), tokens), (vec![4], 10));
        assert_eq!(texts, ["1.0", "1.1", "1.2", "1.3"]);
        assert!(judge.gate.lock().is_empty());
    }

    #[tokio::test]
    async fn what_is_no_sample_of_the_same_item_goes_by_itself() {
        let judge = together(9, false);
        let other = Question { system: "other".to_owned(), ..sample(1) };
        let (other_caller, alone) = (Question { caller: 9, ..sample(2) }, Question::default());
        ask(&judge, vec![sample(0), other, other_caller, alone, sample(3)]).await;
        let mut calls = calls(&judge);
        calls.sort_unstable();
        assert_eq!(calls, [1, 1, 1, 2]);
    }

    #[tokio::test]
    async fn a_call_has_eight_seats() {
        let judge = together(9, false);
        let (texts, _) = ask(&judge, (0..20).map(sample).collect()).await;
        assert_eq!(calls(&judge), [8, 8, 4]);
        let distinct: std::collections::HashSet<String> = texts.into_iter().collect();
        assert_eq!(distinct.len(), 20);
    }

    #[tokio::test]
    async fn copies_of_one_answer_are_not_asked_for() {
        let judge = together(9, false);
        let cold = |number| {
            let mut question = sample(number);
            question.sampling.temperature = Some(0.0);
            question
        };
        ask(&judge, (0..3).map(cold).collect()).await;
        assert_eq!(calls(&judge), [1, 1, 1]);
    }

    #[tokio::test]
    async fn an_endpoint_that_takes_no_number_is_told_one_once() {
        for (refuses, first) in [(false, vec![4, 1, 1, 1]), (true, vec![4, 1, 1, 1, 1])] {
            let judge = together(1, refuses);
            let (texts, _) = ask(&judge, (0..4).map(sample).collect()).await;
            assert_eq!(calls(&judge), first);
            assert_eq!(texts.iter().collect::<std::collections::HashSet<_>>().len(), 4, "{texts:?}");
            ask(&judge, (0..4).map(sample).collect()).await;
            assert_eq!(calls(&judge), [1, 1, 1, 1]);
        }
    }

    #[tokio::test]
    async fn a_question_refused_by_itself_is_not_asked_again_and_says_nothing_of_numbers() {
        let judge = together(0, true);
        assert!(judge.ask(&sample(0)).await.is_err());
        assert_eq!(calls(&judge), [1]);
        assert!(judge.may_share(&sample(0)));
    }

    #[tokio::test]
    async fn what_is_missing_of_several_answers_is_asked_for_apart() {
        let judge = together(3, false);
        for _ in 0..2 {
            let (texts, _) = ask(&judge, (0..4).map(sample).collect()).await;
            assert_eq!(calls(&judge), [4, 1]);
            assert_eq!(texts.iter().filter(|text| text.starts_with("1.")).count(), 3);
        }
    }

    #[tokio::test]
    async fn who_goes_away_leaves_the_others_their_answers_and_nothing_behind() {
        let judge = together(9, false);
        let questions: Vec<Question> = (0..3).map(sample).collect();
        let mut asks: Vec<_> = questions.iter().map(|question| Box::pin(judge.ask(question))).collect();
        for ask in &mut asks {
            assert!(futures_util::poll!(ask).is_pending());
        }
        // The one who boarded first.
        drop(asks.remove(0));
        assert!(join_all(asks).await.iter().all(Result::is_ok));
        assert_eq!(calls(&judge), [3]);
        let mut given_up = Box::pin(judge.ask(&questions[0]));
        assert!(futures_util::poll!(&mut given_up).is_pending());
        drop(given_up);
        assert!(judge.gate.lock().is_empty() && calls(&judge).is_empty());
    }
}
