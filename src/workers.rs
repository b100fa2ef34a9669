//! The CPU workers for computed metrics: bounded, fair, in order, and proof against panics.
//!
//! Little work is done at once on the caller's own task. More is cut into slices that the calls take in
//! turns, so that a call with ten thousand instances and one with twenty share the threads; a text so long
//! that it alone fills many slices may hold all threads but one. Whoever asked and went away
//! raises the [`Stop`] of its work.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::error::Error;
use crate::metrics::Stop;
use crate::telemetry;

/// Calls with at most this many bytes of text are answered on the spot: some hundred microseconds of work.
const AT_ONCE_BYTES: usize = 16 * 1024;

/// An instance with more bytes than this takes the slow lane.
const LONG_TEXT_BYTES: usize = 256 * 1024;

/// How long a call may keep a thread while others wait.
const SLICE: Duration = Duration::from_millis(2);

/// The pool. Its threads end when it is dropped.
#[derive(Debug)]
pub struct Workers {
    queue: Arc<Queue>,
}

impl Workers {
    /// A pool of `threads` threads, at least two: one is always free of long texts.
    pub fn start(threads: usize) -> std::io::Result<Self> {
        let threads = threads.max(2);
        telemetry::metrics::workers(threads);
        let queue =
            Arc::new(Queue { state: Mutex::default(), wake: Condvar::new(), long_lanes: threads - 1 });
        for number in 0..threads {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name(format!("metrics-{number}")).spawn(move || queue.work())?;
        }
        Ok(Self { queue })
    }

    /// One score per item, in the order of the items. `bytes` is the length of an item's texts; it decides
    /// who waits for whom. The first error in that order is the call's error; dropping the future stops the work.
    pub async fn score_each<T, S, F>(
        &self,
        items: Vec<T>,
        bytes: impl Fn(&T) -> usize,
        score: F,
    ) -> Result<Vec<S>, Error>
    where
        T: Send + Sync + 'static,
        S: Send + 'static,
        F: Fn(usize, &T, Stop<'_>) -> Result<S, Error> + Send + Sync + 'static,
    {
        let total = items.iter().map(&bytes).fold(0_usize, usize::saturating_add);
        if total.saturating_add(items.len()) <= AT_ONCE_BYTES {
            let mut scores = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                scores.push(guarded(|| score(index, item, Stop::NEVER))?);
            }
            return Ok(scores);
        }

        let long = items.iter().any(|item| bytes(item) > LONG_TEXT_BYTES);
        let (send, done) = oneshot::channel();
        let call = Arc::new(Call {
            scores: Mutex::new(items.iter().map(|_| None).collect()),
            next: AtomicUsize::new(0),
            unfinished: AtomicUsize::new(items.len()),
            stop: AtomicBool::new(false),
            queued: Instant::now(),
            done: Mutex::new(Some(send)),
            items,
            score,
        });
        let _gone = RaiseOnDrop(Arc::clone(&call) as Arc<dyn Work>);
        self.queue.put(call, long);
        let scores = done.await.map_err(|_| Error::internal("a metrics worker ended without an answer"))?;
        scores.into_iter().map(|score| score.unwrap_or_else(|| Err(unanswered()))).collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.queue.lock().closed = true;
        self.queue.wake.notify_all();
    }
}

fn unanswered() -> Error {
    Error::internal("an instance was left unscored by its worker")
}

/// A panic in a metric is that call's INTERNAL and nobody else's.
fn guarded<S>(score: impl FnOnce() -> Result<S, Error>) -> Result<S, Error> {
    catch_unwind(AssertUnwindSafe(score))
        .unwrap_or_else(|panic| Err(Error::internal(panic_text(panic.as_ref()))))
}

/// The words of a panic, for the log.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let words =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", words.unwrap_or("no message"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing here is left half-done by a panic: metrics run outside the locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Queue {
    state: Mutex<Lanes>,
    wake: Condvar,
    long_lanes: usize,
}

#[derive(Default)]
struct Lanes {
    short: VecDeque<Arc<dyn Work>>,
    long: VecDeque<Arc<dyn Work>>,
    long_running: usize,
    /// Who goes first when both lanes have work; changes with each turn.
    long_first: bool,
    closed: bool,
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lanes")
            .field("short", &self.short.len())
            .field("long", &self.long.len())
            .field("long_running", &self.long_running)
            .finish_non_exhaustive()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Lanes> {
        lock(&self.state)
    }

    fn put(&self, work: Arc<dyn Work>, long: bool) {
        let mut lanes = self.lock();
        if long {
            lanes.long.push_back(work)
        } else {
            lanes.short.push_back(work)
        }
        drop(lanes);
        self.wake.notify_one();
    }

    /// What a thread does all its life.
    fn work(&self) {
        while let Some((work, long)) = self.take() {
            let began = Instant::now();
            work.run_slice();
            telemetry::metrics::worker_was_busy(began);
            if long {
                self.lock().long_running -= 1;
                self.wake.notify_one();
            }
        }
    }

    /// Waits for work; `None` when the pool is closed. Work with more than one slice left goes back to the
    /// end of its lane at once, so that other threads can join in.
    fn take(&self) -> Option<(Arc<dyn Work>, bool)> {
        let mut lanes = self.lock();
        loop {
            if lanes.closed {
                return None;
            }
            let may_go_long = lanes.long_running < self.long_lanes && !lanes.long.is_empty();
            let long = may_go_long && (lanes.long_first || lanes.short.is_empty());
            lanes.long_first = !long;
            let lane = if long { &mut lanes.long } else { &mut lanes.short };
            if let Some(work) = lane.pop_front() {
                if work.has_more() {
                    lane.push_back(Arc::clone(&work));
                    self.wake.notify_one();
                }
                lanes.long_running += usize::from(long);
                return Some((work, long));
            }
            lanes = self.wake.wait(lanes).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

trait Work: Send + Sync {
    /// Scores items for about [`SLICE`], at least one.
    fn run_slice(&self);
    /// Whether there are items that no thread has taken.
    fn has_more(&self) -> bool;
    /// Nobody waits for the scores any more.
    fn stop(&self);
}

/// What is known so far, a place per item.
type Scores<S> = Vec<Option<Result<S, Error>>>;

struct Call<T, S, F> {
    items: Vec<T>,
    score: F,
    next: AtomicUsize,
    scores: Mutex<Scores<S>>,
    unfinished: AtomicUsize,
    stop: AtomicBool,
    queued: Instant,
    done: Mutex<Option<oneshot::Sender<Scores<S>>>>,
}

impl<T, S, F> Work for Call<T, S, F>
where
    T: Send + Sync,
    S: Send,
    F: Fn(usize, &T, Stop<'_>) -> Result<S, Error> + Send + Sync,
{
    fn run_slice(&self) {
        let began = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = self.items.get(index) else { return };
            if index == 0 {
                telemetry::metrics::worker_queue(self.queued);
            }
            let score = guarded(|| (self.score)(index, item, Stop::when(&self.stop)));
            if let Some(slot) = lock(&self.scores).get_mut(index) {
                *slot = Some(score);
            }
            if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
                let scores = std::mem::take(&mut *lock(&self.scores));
                if let Some(done) = lock(&self.done).take() {
                    // Nobody listens when the caller has gone.
                    let _ = done.send(scores);
                }
            }
            if began.elapsed() >= SLICE {
                return;
            }
        }
    }

    fn has_more(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.next.load(Ordering::Relaxed) < self.items.len()
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct RaiseOnDrop(Arc<dyn Work>);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn long(text: &str) -> String {
        text.repeat(AT_ONCE_BYTES)
    }

    #[tokio::test]
    async fn scores_come_in_the_order_of_the_items() {
        let workers = Workers::start(3).unwrap();
        let items: Vec<usize> = (0..5_000).collect();
        let scores =
            workers.score_each(items, |_| 100, |index, item, _| Ok((index, item * 2))).await.unwrap();
        assert!(scores.iter().enumerate().all(|(index, score)| *score == (index, index * 2)));
    }

    #[tokio::test]
    async fn a_panic_is_one_calls_internal_error_and_the_pool_lives_on() {
        let workers = Workers::start(2).unwrap();
        for items in [vec![String::from("short")], vec![long("a"), long("b")]] {
            let failed =
                workers.score_each(items, String::len, |_, _, _| -> Result<(), Error> { panic!("boom") });
            assert_eq!(failed.await.unwrap_err().kind, Kind::Internal);
        }
        let scores =
            workers.score_each(vec![long("a")], String::len, |_, text, _| Ok(text.len())).await.unwrap();
        assert_eq!(scores, [AT_ONCE_BYTES]);
    }

    #[tokio::test]
    async fn a_caller_who_goes_away_stops_its_work() {
        let workers = Workers::start(2).unwrap();
        let (started, wait_for_start) = oneshot::channel();
        let (stopped, wait_for_stop) = oneshot::channel();
        let signals = Mutex::new(Some((started, stopped)));
        let endless = workers.score_each(vec![long("a")], String::len, move |_, _, stop| {
            let Some((started, stopped)) = lock(&signals).take() else { return Ok(()) };
            started.send(()).unwrap();
            while stop.check().is_ok() {
                thread::yield_now();
            }
            stopped.send(()).unwrap();
            Ok(())
        });
        tokio::select! {
            _ = endless => unreachable!("it has no end of its own"),
            _ = wait_for_start => {}
        }
        wait_for_stop.await.unwrap();
    }

    #[tokio::test]
    async fn long_texts_leave_a_thread_to_the_others() {
        let workers = Workers::start(2).unwrap();
        let release = Arc::new(AtomicBool::new(false));
        let held = Arc::clone(&release);
        let hold = move |_: usize, _: &String, _: Stop<'_>| {
            while !held.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            Ok(())
        };
        let texts = vec!["x".repeat(LONG_TEXT_BYTES + 1); 4];
        let long = workers.score_each(texts, String::len, hold);
        let other = async {
            let scores = workers.score_each(vec![long_enough()], String::len, |_, _, _| Ok(1)).await;
            release.store(true, Ordering::Relaxed);
            scores
        };
        let (long, other) = tokio::join!(long, other);
        assert_eq!((long.unwrap().len(), other.unwrap()), (4, vec![1]));
    }

    fn long_enough() -> String {
        "y".repeat(AT_ONCE_BYTES + 1)
    }
}
