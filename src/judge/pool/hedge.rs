//! A second copy of a question that takes longer than its endpoint's answers mostly do.
//!
//! "The Tail at Scale" (Dean, Barroso 2013): sent after the time within which 95 % of the endpoint's answers come, to
//! another endpoint where there is one; the first valid answer counts and the other call is dropped. At most one
//! copy for twenty calls. A copy never waits for a place or a rate: what is throttled or full gets none.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{Either, select};
use tokio::time::{Instant, timeout};

use super::member::{Member, Standing};
use super::{Place, Pool};
use crate::judge::counters::Event;
use crate::judge::{Judge, JudgeError, Question, Reply};

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

impl<J: Judge> Pool<J> {
    /// Asks, and asks a second time when the answer is late.
    pub(super) async fn race(
        &self,
        hedging: &Hedging,
        place: Place<'_, J>,
        question: &Question,
    ) -> Result<Reply, JudgeError> {
        hedging.calls.fetch_add(1, Ordering::Relaxed);
        let member = place.member;
        let Some(patience) = member.quantile(AFTER) else { return self.call(place, question).await };
        let mut first = pin!(self.call(place, question));
        if let Ok(answer) = timeout(patience, &mut first).await {
            return answer;
        }
        let Some(place) = self.second_place(hedging, member, question) else { return first.await };
        self.counters.count(Event::Hedge);
        let second = pin!(self.call(place, question));
        let won = |mut reply: Reply| {
            self.counters.count(Event::HedgeWon);
            reply.journey.hedged = true;
            reply
        };
        match select(first, second).await {
            Either::Left((Ok(mut reply), _)) => {
                reply.journey.hedged = true;
                Ok(reply)
            }
            Either::Right((Ok(reply), _)) => Ok(won(reply)),
            Either::Left((Err(error), second)) => second.await.map(won).map_err(|_| error),
            Either::Right((Err(_), first)) => first.await,
        }
    }

    /// A place for a copy: at another endpoint where there is one.
    fn second_place(
        &self,
        hedging: &Hedging,
        asked: &Member<J>,
        question: &Question,
    ) -> Option<Place<'_, J>> {
        let now = Instant::now();
        let estimate = self.estimate(question);
        let is_alone = self.members.len() == 1;
        let ready = self.members.iter().filter_map(|member| {
            // A claim on what is shared with other processes would have to be waited for.
            let fits = member.quota.is_none() && (is_alone || !std::ptr::eq(member, asked));
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
