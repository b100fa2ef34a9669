//! Tests of `mod.rs`, in virtual time.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;
use futures_util::poll;

use super::*;
use crate::judge::Field;

/// Takes a second for every answer, counts, and fails where it is told to.
#[derive(Debug, Default)]
struct Slow {
    asked: AtomicU32,
    given_up: Arc<AtomicU32>,
    fails: bool,
}

struct GivenUp(Arc<AtomicU32>, bool);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.fetch_add(u32::from(!self.1), Ordering::SeqCst);
    }
}

impl Judge for Slow {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        let mut given_up = GivenUp(Arc::clone(&self.given_up), false);
        let ends = Instant::now() + Duration::from_secs(1);
        if question.deadline.is_some_and(|deadline| deadline < ends) {
            tokio::time::sleep_until(question.deadline.unwrap()).await;
            given_up.1 = true;
            return Err(JudgeError::new(JudgeErrorKind::OutOfTime, "out of time"));
        }
        tokio::time::sleep_until(ends).await;
        given_up.1 = true;
        if self.fails {
            return Err(JudgeError::new(JudgeErrorKind::Unreachable, "down"));
        }
        let usage = Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() };
        Ok(Reply { text: format!("answer {number}"), usage, ..Reply::default() })
    }
}

fn cached(inner: Slow, settings: CacheSettings) -> Cached<Slow> {
    let judge = toml::from_str("provider = 'openai'\nmodel = 'm'").unwrap();
    let store = Arc::new(Store::open(&settings).unwrap());
    Cached::new(inner, Identity::of(&judge), Some(store), Arc::default())
}

fn plain() -> Cached<Slow> {
    cached(Slow::default(), CacheSettings::default())
}

fn sample(sample: u32) -> Question {
    Question { sample, ..Question::default() }
}

impl Cached<Slow> {
    fn asked(&self) -> u32 {
        self.inner.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn equal_questions_at_once_are_asked_once_and_cost_once() {
    let judge = plain();
    let question = sample(0);
    let replies = join_all((0..50).map(|_| judge.ask(&question))).await;
    assert_eq!(judge.asked(), 1);
    let mut tokens = 0;
    for reply in replies {
        let reply = reply.unwrap();
        assert_eq!(reply.text, "answer 0");
        tokens += reply.usage.total();
    }
    assert_eq!(tokens, 12);
    assert_eq!((judge.counters.now().from_flight, judge.flights.count()), (49, 0));
}

#[tokio::test(start_paused = true)]
async fn samples_of_one_item_stay_apart_and_come_back_from_memory() {
    let judge = plain();
    for _ in 0..2 {
        let questions: Vec<Question> = (0..4).map(sample).collect();
        let replies = join_all(questions.iter().map(|question| judge.ask(question))).await;
        let texts: Vec<String> = replies.into_iter().map(|reply| reply.unwrap().text).collect();
        assert_eq!(texts, ["answer 0", "answer 1", "answer 2", "answer 3"]);
    }
    assert_eq!((judge.asked(), judge.counters.now().from_memory), (4, 4));
    let again = judge.ask(&sample(0)).await.unwrap();
    assert_eq!((again.usage.total(), again.journey.source), (0, Source::Memory));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_shared_in_flight_but_not_kept() {
    let judge = cached(Slow { fails: true, ..Slow::default() }, CacheSettings::default());
    let question = sample(0);
    let answers = join_all((0..5).map(|_| judge.ask(&question))).await;
    assert!(answers.iter().all(Result::is_err));
    assert_eq!(judge.asked(), 1);
    judge.ask(&question).await.unwrap_err();
    assert_eq!(judge.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_when_whoever_began_it_leaves_and_ends_with_the_last() {
    let judge = plain();
    let question = sample(0);
    let mut first = Box::pin(judge.ask(&question));
    assert!(poll!(&mut first).is_pending());
    let mut second = Box::pin(judge.ask(&question));
    assert!(poll!(&mut second).is_pending());
    drop(first);
    assert_eq!(second.await.unwrap().text, "answer 0");
    assert_eq!((judge.asked(), judge.inner.given_up.load(Ordering::SeqCst)), (1, 0));

    let question = sample(1);
    let mut both: Vec<_> = (0..2).map(|_| Box::pin(judge.ask(&question))).collect();
    for ask in &mut both {
        assert!(poll!(ask).is_pending());
    }
    drop(both);
    assert_eq!((judge.inner.given_up.load(Ordering::SeqCst), judge.flights.count()), (1, 0));
    assert_eq!(judge.ask(&question).await.unwrap().text, "answer 2");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_somebody_elses_time_is_not_ours() {
    let judge = plain();
    let hurried =
        Question { deadline: Some(Instant::now() + Duration::from_millis(500)), ..Question::default() };
    let patient = Question::default();
    let (hurried, patient) = tokio::join!(judge.ask(&hurried), judge.ask(&patient));
    assert_eq!(hurried.unwrap_err().kind, JudgeErrorKind::OutOfTime);
    assert_eq!(patient.unwrap().text, "answer 1");
    // And the other way round.
    let patient = sample(1);
    let hurried = Question { deadline: Some(Instant::now() + Duration::from_millis(500)), ..sample(1) };
    let began = Instant::now();
    let (patient, (hurried, waited)) =
        tokio::join!(judge.ask(&patient), async { (judge.ask(&hurried).await, began.elapsed()) });
    assert!(patient.is_ok());
    assert_eq!(hurried.unwrap_err().kind, JudgeErrorKind::OutOfTime);
    assert_eq!((waited, judge.asked()), (Duration::from_millis(500), 3));
}

#[tokio::test(start_paused = true)]
async fn who_refuses_kept_answers_asks_and_leaves_none() {
    let judge = plain();
    let refusing = Question { reuse: Reuse::Refused, ..Question::default() };
    for expected in ["answer 0", "answer 1"] {
        assert_eq!(judge.ask(&refusing).await.unwrap().text, expected);
    }
    assert_eq!(judge.ask(&Question::default()).await.unwrap().text, "answer 2");
    assert_eq!(judge.ask(&refusing).await.unwrap().text, "answer 3");
    assert_eq!(judge.ask(&Question::default()).await.unwrap().text, "answer 2");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_verdict_is_not_given_to_the_next() {
    let judge = plain();
    let question = Question { without: [Field::Seed].into(), ..Question::default() };
    assert_eq!(judge.ask(&question).await.unwrap().text, "answer 0");
    judge.disown(&question);
    assert_eq!(judge.ask(&question).await.unwrap().text, "answer 1");
}

#[tokio::test(start_paused = true)]
async fn without_memory_only_what_is_in_flight_is_shared() {
    let judge = cached(Slow::default(), CacheSettings { memory_bytes: 0, ..CacheSettings::default() });
    let question = Question::default();
    let (one, two) = tokio::join!(judge.ask(&question), judge.ask(&question));
    assert_eq!(one.unwrap().text, two.unwrap().text);
    assert_eq!(judge.ask(&question).await.unwrap().text, "answer 1");
}

#[tokio::test]
async fn memory_is_bounded_in_bytes() {
    let settings = CacheSettings { memory_bytes: 100_000, ..CacheSettings::default() };
    let store = Store::open(&settings).unwrap();
    let judge = Identity::of(&toml::from_str("provider = 'openai'\nmodel = 'm'").unwrap());
    let reply = Reply { text: "x".repeat(1000), ..Reply::default() };
    for number in 0..1000 {
        store.remember(judge.key(&sample(number)), &reply);
    }
    let memory = store.memory.as_ref().unwrap();
    memory.run_pending_tasks();
    assert!(memory.weighted_size() <= 100_000, "{}", memory.weighted_size());
    assert!(memory.entry_count() >= 50, "{}", memory.entry_count());
}

#[test]
fn a_wrong_setting_is_named_without_its_password() {
    let wrong = |change: fn(&mut CacheSettings)| {
        let mut settings = CacheSettings::default();
        change(&mut settings);
        settings.check().unwrap_err()
    };
    let message = wrong(|settings| settings.redis_url = Secret::new("http://:hunter22@h"));
    assert_eq!(message, "judge.cache.redis_url: is no address such as redis://127.0.0.1:6379/0");
    let message = wrong(|settings| settings.redis_timeout_ms = 0);
    assert_eq!(message, "judge.cache.redis_timeout_ms: must be at least 1");
}
