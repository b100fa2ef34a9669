//! Tests of `mod.rs`, with scripted endpoints in virtual time.

use std::sync::Mutex;

use futures_util::future::join_all;

use super::*;
use crate::judge::providers::scripted::Scripted;

const SECOND: Duration = Duration::from_secs(1);

fn pool(endpoints: &[(&str, u32, &str)]) -> Arc<Pool<Scripted>> {
    let endpoints = endpoints.iter().map(|(name, priority, script)| {
        let terms =
            Terms { name: (*name).into(), priority: *priority, max_concurrency: 2, ..Terms::default() };
        (Scripted::from_script(script).unwrap(), terms)
    });
    Pool::new(endpoints, House::default(), Arc::default())
}

fn slow(text: &str, delay_ms: u32) -> String {
    format!("{{\"reply\": \"{text}\", \"delay_ms\": {delay_ms}}}")
}

async fn ask_all(pool: &Arc<Pool<Scripted>>, count: usize) -> Vec<Result<Reply, JudgeError>> {
    let question = Question::default();
    join_all((0..count).map(|_| pool.ask(&question))).await
}

fn answered_by(replies: &[Result<Reply, JudgeError>], text: &str) -> usize {
    replies.iter().flatten().filter(|reply| reply.text == text).count()
}

#[tokio::test(start_paused = true)]
async fn six_questions_of_a_second_each_take_three_seconds_two_at_a_time() {
    let (judge, began) = (pool(&[("", 0, &slow("x", 1000))]), Instant::now());
    assert!(ask_all(&judge, 6).await.iter().all(Result::is_ok));
    assert_eq!(began.elapsed(), 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_line_waits_no_longer_than_the_caller() {
    let (judge, began) = (pool(&[("", 0, &slow("x", 1000))]), Instant::now());
    let question = Question { deadline: Some(began + Duration::from_millis(1500)), ..Question::default() };
    // Two are answered in the first second and two are begun then; two never get a place.
    let replies = join_all((0..6).map(|_| async { (judge.ask(&question).await, began.elapsed()) })).await;
    let late: Vec<_> = replies.iter().filter_map(|(reply, at)| Some((reply.as_ref().err()?, at))).collect();
    assert_eq!(late.len(), 2, "{replies:?}");
    for (error, at) in late {
        assert_eq!((error.kind, error.attempts), (JudgeErrorKind::OutOfTime, 0));
        assert_eq!(*at, Duration::from_millis(1500));
    }
}

#[tokio::test(start_paused = true)]
async fn one_question_waits_behind_one_of_another_callers_flood() {
    let judge = pool(&[("", 0, &slow("x", 1000))]);
    let began = Instant::now();
    let flood = join_all((0..100).map(|_| async {
        let question = Question { caller: 1, ..Question::default() };
        judge.ask(&question).await.unwrap();
    }));
    let single = async {
        let question = Question { caller: 2, ..Question::default() };
        judge.ask(&question).await.unwrap();
        began.elapsed()
    };
    let (_, waited) = tokio::join!(flood, single);
    // Two of the flood have places, one has the turn and one is before it in the round: it begins at two seconds.
    assert_eq!(waited, 3 * SECOND);
    assert_eq!(began.elapsed(), 51 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn questions_spread_by_load_and_a_slow_endpoint_gets_few() {
    let judge = pool(&[("fast", 0, &slow("fast", 100)), ("slow", 0, &slow("slow", 1000))]);
    let replies = ask_all(&judge, 110).await;
    // A place is never left free while somebody waits: of eleven, ten to the fast.
    let slow = answered_by(&replies, "slow");
    assert!((6..=14).contains(&slow), "{slow} by the slow one");
    assert!(replies.iter().flatten().all(|reply| *reply.journey.endpoint == *reply.text));
}

#[tokio::test(start_paused = true)]
async fn the_second_priority_is_asked_only_while_the_first_is_down() {
    let failing = "{\"status\": 500}";
    let judge = pool(&[("first", 0, failing), ("second", 1, "\"second\"")]);
    for _ in 0..3 {
        let error = judge.ask(&Question::default()).await.unwrap_err();
        assert_eq!((error.endpoint.as_str(), error.elsewhere), ("first", true));
    }
    let began = Instant::now();
    assert_eq!(judge.ask(&Question::default()).await.unwrap().text, "second");
    // A second later one question tries the first again.
    tokio::time::advance(SECOND).await;
    assert_eq!(judge.ask(&Question::default()).await.unwrap_err().endpoint, "first");
    assert_eq!(judge.ask(&Question::default()).await.unwrap().text, "second");
    assert_eq!(began.elapsed(), SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_failed_somewhere_goes_elsewhere() {
    let judge = pool(&[("a", 0, "\"a\""), ("b", 0, "\"b\""), ("c", 1, "\"c\"")]);
    for (failed_at, expected) in [(&["a"][..], "b"), (&["b"], "a"), (&["a", "b"], "c")] {
        let failed_at = failed_at.iter().map(|name| (*name).into()).collect();
        let question = Question { failed_at, ..Question::default() };
        assert_eq!(judge.ask(&question).await.unwrap().text, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lone_endpoint_is_asked_however_often_it_failed() {
    let judge = pool(&[("", 0, "{\"status\": 500}")]);
    for _ in 0..20 {
        let error = judge.ask(&Question::default()).await.unwrap_err();
        assert_eq!((error.kind, error.attempts, error.elsewhere), (JudgeErrorKind::Unreachable, 1, false));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_before_its_retry_after_and_the_other_is_asked_at_once() {
    let throttled = "{\"status\": 429, \"retry_after\": 20}\n\"a\"";
    let judge = pool(&[("a", 0, throttled), ("b", 1, "\"b\"")]);
    let began = Instant::now();
    let error = judge.ask(&Question::default()).await.unwrap_err();
    assert_eq!((error.kind, error.elsewhere), (JudgeErrorKind::Throttled, true));
    assert_eq!(judge.ask(&Question::default()).await.unwrap().text, "b");
    assert_eq!(began.elapsed(), Duration::ZERO);

    let alone = pool(&[("a", 0, throttled)]);
    alone.ask(&Question::default()).await.unwrap_err();
    // Who cannot wait so long is told at once how long it is.
    let hurried = Question { deadline: Some(began + 10 * SECOND), ..Question::default() };
    let error = alone.ask(&hurried).await.unwrap_err();
    assert_eq!((error.kind, error.attempts), (JudgeErrorKind::Throttled, 0));
    assert_eq!(error.retry_after, Some(20 * SECOND));
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(alone.ask(&Question::default()).await.unwrap().text, "a");
    assert_eq!(began.elapsed(), 20 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn no_call_is_begun_that_the_deadline_most_likely_ends() {
    let judge = pool(&[("", 0, &slow("x", 1000))]);
    ask_all(&judge, 16).await;
    let began = Instant::now();
    let question = Question { deadline: Some(began + SECOND / 2), ..Question::default() };
    let error = judge.ask(&question).await.unwrap_err();
    assert_eq!((error.kind, error.attempts), (JudgeErrorKind::OutOfTime, 0));
    assert_eq!(began.elapsed(), Duration::ZERO);
    // What was so long ago is no reason to refuse anybody. (What ends a call at its deadline is not part of this pool.)
    tokio::time::advance(11 * SECOND).await;
    let question = Question { deadline: Some(Instant::now() + SECOND / 2), ..Question::default() };
    assert!(judge.ask(&question).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_dropped_gives_back_its_place_and_its_turn() {
    let judge = pool(&[("", 0, "{\"hang\": true}")]);
    let question = Question::default();
    let mut open: Vec<_> = (0..6).map(|_| Box::pin(judge.ask(&question))).collect();
    for ask in &mut open {
        assert!(futures_util::poll!(ask).is_pending());
    }
    drop(open);
    assert_eq!(judge.counters.now().abandoned, 2);
    let free = ask_within(&judge, 1).await;
    assert_eq!(free.unwrap_err().kind, JudgeErrorKind::OutOfTime);
    assert_eq!(judge.counters.now().calls, 3, "it got a place");
}

async fn ask_within(judge: &Arc<Pool<Scripted>>, seconds: u32) -> Result<Reply, JudgeError> {
    let deadline = Instant::now() + seconds * SECOND;
    let question = Question { deadline: Some(deadline), ..Question::default() };
    timeout_at(deadline, judge.ask(&question)).await.unwrap_or_else(|_| Err(too_late("the test's own clock")))
}

#[tokio::test(start_paused = true)]
async fn requests_per_minute_are_kept_to() {
    let terms = Terms { requests_per_minute: Some(60), ..Terms::default() };
    let judge =
        Pool::new([(Scripted::from_script("\"x\"").unwrap(), terms)], House::default(), Arc::default());
    let began = Instant::now();
    let times = Mutex::new(Vec::new());
    join_all((0..5).map(|_| async {
        judge.ask(&Question::default()).await.unwrap();
        times.lock().unwrap().push(began.elapsed().as_secs());
    }))
    .await;
    assert_eq!(times.into_inner().unwrap(), [0, 1, 2, 3, 4]);
}

/// Fast, but every tenth of its answers takes ten seconds.
#[derive(Debug, Default)]
struct Uneven(std::sync::atomic::AtomicU32);

impl Judge for Uneven {
    async fn ask(&self, _: &Question) -> Result<Reply, JudgeError> {
        let number = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        tokio::time::sleep(if number % 30 == 29 { 10 * SECOND } else { SECOND / 10 }).await;
        Ok(Reply { usage: Usage { output_tokens: 1, ..Usage::default() }, ..Reply::default() })
    }
}

async fn slowest_of(hedge: bool) -> (Duration, crate::judge::counters::Counts) {
    let house = House { hedge, ..House::default() };
    let judge = Pool::new([(Uneven::default(), Terms::default())], house, Arc::default());
    let question = Question::default();
    let mut slowest = Duration::ZERO;
    for number in 0..1000 {
        let began = Instant::now();
        judge.ask(&question).await.unwrap();
        if number >= 100 {
            slowest = slowest.max(began.elapsed());
        }
    }
    // The last calls that lost to their copies.
    tokio::time::sleep(10 * SECOND).await;
    (slowest, judge.counters.now())
}

#[tokio::test(start_paused = true)]
async fn a_copy_saves_the_wait_for_a_late_answer_at_five_calls_more_in_a_hundred() {
    assert_eq!(slowest_of(false).await.0, 10 * SECOND);
    let (slowest, counts) = slowest_of(true).await;
    // A copy after a tenth of a second, answered in another.
    assert_eq!(slowest, SECOND / 5);
    assert!(counts.hedges >= 25 && counts.hedges <= 50, "{counts:?}");
    // Whoever loses the race is accounted all the same.
    assert_eq!((counts.calls, counts.answered, counts.abandoned), (1000 + counts.hedges, counts.calls, 0));
    assert_eq!(counts.usage.output_tokens, counts.calls);
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_refuses_calls_and_says_so() {
    let settings: crate::judge::settings::JudgeSettings = toml::from_str(
        "name = 'main'\nprovider = 'scripted'\nscript = 'x'\nbudget = {tokens = 1100, window_seconds = 60}",
    )
    .unwrap();
    let house = House { budget: Budget::new(&settings), ..House::default() };
    let scripted = Scripted::from_script(&slow("x", 100)).unwrap();
    let judge = Pool::new([(scripted, Terms::default())], house, Arc::default());
    // Each call is reckoned with 512 tokens and reports none: two at once, and as many as there are one by one.
    let replies = ask_all(&judge, 3).await;
    let refused: Vec<_> = replies.into_iter().filter_map(Result::err).collect();
    let [error] = &refused[..] else { panic!("{refused:?}") };
    assert_eq!((error.kind, error.attempts), (JudgeErrorKind::OverBudget, 0));
    for _ in 0..10 {
        judge.ask(&Question::default()).await.unwrap();
    }
    // What is given up is charged its estimate.
    for _ in 0..2 {
        let question = Question::default();
        let mut given_up = Box::pin(judge.ask(&question));
        assert!(futures_util::poll!(&mut given_up).is_pending());
    }
    assert_eq!(judge.ask(&Question::default()).await.unwrap_err().kind, JudgeErrorKind::OverBudget);
    tokio::time::advance(60 * SECOND).await;
    judge.ask(&Question::default()).await.unwrap();
}
