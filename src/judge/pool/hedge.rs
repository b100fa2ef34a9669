//! A second copy of a question that takes longer than its endpoint's answers mostly do.
//!
//! "The Tail at Scale" (Dean, Barroso 2013): sent after the time within which 95 % of the endpoint's answers come, to
//! another endpoint where there is one; the first valid answer counts. At most one copy for twenty calls. A copy never
//! waits for a place or a rate: what is throttled or full gets none.
//!
//! The other call goes on to its end, within its time: providers work on it and charge for it whether anybody listens or
//! not, and what it took and used belongs in the accounts. A caller that goes away before any answer closes both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, select};
use tokio::time::{Instant, timeout};

use super::member::{Member, Standing};
use super::{Place, Pool};
use crate::judge::counters::Event;
use crate::judge::{Judge, JudgeError, Question, Reply};
use crate::telemetry::traces;

/// The share of answers that come before a copy is sent.
const AFTER: f64 = 0.95;
/// One copy for so many calls.
const CALLS_PER_COPY: u64 = 20;

/// How many copies may be sent.
#[derive(Debug, Default)]
pub(super) struct Hedging {
    calls: AtomicU64,
    copies: AtomicU64,
}

impl Hedging {
    /// Counts a copy, if there may be one more.
    fn may_copy(&self) -> bool {
        let most = self.calls.load(Ordering::Relaxed) / CALLS_PER_COPY;
        let one_more = |copies: u64| (copies < most).then_some(copies + 1);
        self.copies.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }
}

/// A call that may outlive the question.
type Copy = BoxFuture<'static, Result<Reply, JudgeError>>;

impl<J: Judge + 'static> Pool<J> {
    /// Asks, and asks a second time when the answer is late.
    pub(super) async fn race(
        self: &Arc<Self>,
        hedging: &Hedging,
        place: Place<J>,
        question: &Question,
    ) -> Result<Reply, JudgeError> {
        hedging.calls.fetch_add(1, Ordering::Relaxed);
        let member = Arc::clone(&place.member);
        let Some(patience) = member.quantile(AFTER) else { return Self::call(place, question).await };
        let mut first = Self::copy(place, question);
        if let Ok(answer) = timeout(patience, &mut first).await {
            return answer;
        }
        let Some(place) = self.second_place(hedging, &member, question) else { return first.await };
        self.counters.count(Event::Hedge);
        let second = Self::copy(place, question);
        let won = |mut reply: Reply| {
            self.counters.count(Event::HedgeWon);
            reply.journey.hedged = true;
            reply
        };
        match select(first, second).await {
            Either::Left((Ok(mut reply), second)) => {
                tokio::spawn(traces::carry(second));
                reply.journey.hedged = true;
                Ok(reply)
            }
            Either::Right((Ok(reply), first)) => {
                tokio::spawn(traces::carry(first));
                Ok(won(reply))
            }
            Either::Left((Err(error), second)) => second.await.map(won).map_err(|_| error),
            Either::Right((Err(_), first)) => first.await,
        }
    }

    fn copy(place: Place<J>, question: &Question) -> Copy {
        let question = question.clone();
        async move { Self::call(place, &question).await }.boxed()
    }

    /// A place for a copy: at another endpoint where there is one.
    fn second_place(
        self: &Arc<Self>,
        hedging: &Hedging,
        asked: &Arc<Member<J>>,
        question: &Question,
    ) -> Option<Place<J>> {
        let now = Instant::now();
        let estimate = self.estimate(question);
        let is_alone = self.members.len() == 1;
        let ready = self.members.iter().filter_map(|member| {
            // A claim on what is shared with other processes would have to be waited for.
            let fits = member.quota.is_none() && (is_alone || !Arc::ptr_eq(member, asked));
            let standing = member.standing(now, estimate.total(), 1.0, false);
            let Standing::Ready { load } = standing else { return None };
            let fits = fits && !question.failed_at.contains(&member.terms.name);
            fits.then_some((member.terms.priority, load, member))
        });
        let (_, _, member) =
            ready.min_by(|(a, left, _), (b, right, _)| a.cmp(b).then(left.total_cmp(right)))?;
        if !hedging.may_copy() {
            return None;
        }
        self.begin(member, now, estimate, now.saturating_duration_since(now)).ok()
    }
}
