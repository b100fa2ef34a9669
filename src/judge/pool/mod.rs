//! Several endpoints as one judge.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `line.rs` | callers take turns |
//! | `member.rs` | one endpoint: places, rate, health, pace |
//! | `rate.rs` | requests and tokens in a time, configured and learned |
//! | `health.rs` | who rests after failures, and for how long |
//! | `latency.rs` | how long an endpoint takes |
//! | `hedge.rs` | a second copy of what takes too long |
//! | `quota.rs` | limits that several processes share |
//! | `budget.rs` | what the judge may cost in a time |
//!
//! Questions wait in ONE line for all endpoints, so that none waits for a busy endpoint while another has a place.
//! Who has the turn takes the endpoint with the least load (open calls × average time) among those of the first
//! priority that has any able to answer; if all of them are full or paced, the turn is kept until one is free. Then the next
//! caller has the turn. With a handful of endpoints all of them are looked at, where others draw two.
//!
//! An endpoint that rests after failures is passed over; when nobody else is left, it is asked all the same: a try is
//! better than a certain no. One that sent a `Retry-After` is never asked before.

mod budget;
mod health;
mod hedge;
mod latency;
mod line;
mod member;
mod quota;
mod rate;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::counters::{Counters, Event};
use super::shared::Link;
use super::{Judge, JudgeError, JudgeErrorKind, Question, Reply, ReplyForm, Usage};
use budget::Reserve;
use hedge::Hedging;
use line::Line;
use member::{End, Member, Sent, Standing};
use quota::Quota;

pub use budget::Budget;
pub use member::Terms;

/// Nobody waits longer than this for an endpoint that can say how long it will take.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// Bytes of text in a token, for estimates.
const BYTES_PER_TOKEN: usize = 4;
/// Output tokens to reckon with when nothing bounds them.
const USUAL_OUTPUT: u64 = 512;

/// Rules for all endpoints of a pool.
#[derive(Debug, Default)]
pub struct House {
    /// Bounds an answer where the question does not.
    pub max_tokens: Option<u32>,
    /// What all calls together may cost.
    pub budget: Option<Budget>,
    /// Sends second copies of what takes too long.
    pub hedge: bool,
    /// Where limits are shared with other processes, and the name of the judge there.
    pub(crate) shared: Option<(Link, String)>,
}

/// Endpoints that are asked as one.
#[derive(Debug)]
pub struct Pool<J> {
    members: Vec<Arc<Member<J>>>,
    line: Line,
    /// A place or a rest has ended, for whoever has the turn.
    freed: Notify,
    /// Output tokens to reckon with when the question does not bound them.
    usual_output: u64,
    budget: Option<Budget>,
    hedging: Option<Hedging>,
    counters: Arc<Counters>,
}

impl<J> Pool<J> {
    /// Of these endpoints, of which there is at least one.
    pub fn new(
        endpoints: impl IntoIterator<Item = (J, Terms)>,
        house: House,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        let House { max_tokens, budget, hedge, shared } = house;
        let quota = |terms: &Terms| shared.as_ref().and_then(|(link, judge)| Quota::new(link, judge, terms));
        let member = |(judge, terms)| {
            let quota = quota(&terms);
            Arc::new(Member::new(judge, terms, quota))
        };
        Arc::new(Self {
            members: endpoints.into_iter().map(member).collect(),
            line: Line::default(),
            freed: Notify::new(),
            usual_output: max_tokens.map_or(USUAL_OUTPUT, u64::from),
            budget,
            hedging: hedge.then(Hedging::default),
            counters,
        })
    }

    /// Tokens to reserve for a question: all that is sent, and all that may come back.
    fn estimate(&self, question: &Question) -> Usage {
        let turns = question.turns.iter().map(|turn| turn.text.len()).sum::<usize>();
        let sent = (question.system.len() + turns) / BYTES_PER_TOKEN;
        let back = match question.form {
            ReplyForm::Label { .. } => 1,
            ReplyForm::Text | ReplyForm::Json { .. } => {
                question.sampling.max_tokens.map_or(self.usual_output, u64::from)
            }
        };
        let back = back.saturating_mul(1 + u64::from(question.more_choices));
        let sent = u64::try_from(sent).unwrap_or(u64::MAX);
        Usage { input_tokens: sent, output_tokens: back, ..Usage::default() }
    }

    /// Waits for the turn and for an endpoint.
    async fn place(self: &Arc<Self>, question: &Question) -> Result<Place<J>, JudgeError> {
        let joined = Instant::now();
        let estimate = self.estimate(question);
        let turn = self.line.turn(question.caller);
        let _turn = match question.deadline {
            None => turn.await,
            Some(deadline) => timeout_at(deadline, turn)
                .await
                .map_err(|_| too_late("the caller's deadline passed while others were being answered"))?,
        };
        loop {
            let now = Instant::now();
            let wait = match self.choose(now, question, estimate.total()) {
                Choice::Ask(member) => {
                    self.check_time(member, now, question)?;
                    if let Some(quota) = &member.quota {
                        let wait = quota.claim(estimate.total()).await;
                        if !wait.is_zero() {
                            member.hold(now + wait);
                            continue;
                        }
                    }
                    return self.begin(member, now, estimate, now.saturating_duration_since(joined));
                }
                Choice::Wait(wait) => wait,
            };
            self.wait(now, wait, question.deadline).await?;
        }
    }

    fn choose(&self, now: Instant, question: &Question, tokens: u64) -> Choice<'_, J> {
        let fastest = self.members.iter().filter_map(|member| member.pace(now)).min_by(f64::total_cmp);
        let typical = fastest.unwrap_or(1.0);
        let standing = |last_resort| {
            let of = |member: &Arc<Member<J>>| member.standing(now, tokens, typical, last_resort);
            let standings = self.members.iter().map(|member| (member, of(member))).collect();
            choose_among(standings, &question.failed_at)
        };
        standing(false).or_else(|| standing(true)).unwrap_or_else(|| {
            let rests = self.members.iter().filter_map(|member| member.rests_until(now)).min();
            Choice::Wait(Wait { place: false, until: rests })
        })
    }

    /// No call is begun that the deadline most likely ends.
    fn check_time(&self, member: &Member<J>, now: Instant, question: &Question) -> Result<(), JudgeError> {
        let Some(left) = question.deadline.map(|deadline| deadline.saturating_duration_since(now)) else {
            return Ok(());
        };
        match member.usual(now) {
            Some(usual) if usual > left => Err(too_late(format!(
                "the caller's deadline leaves {left:.0?}, and half of the answers take longer than {usual:.0?}"
            ))),
            _ => Ok(()),
        }
    }

    async fn wait(&self, now: Instant, wait: Wait, deadline: Option<Instant>) -> Result<(), JudgeError> {
        let patience = deadline.unwrap_or(now + LONGEST_WAIT).min(now + LONGEST_WAIT);
        if let Some(until) = wait.until.filter(|until| *until >= patience && !wait.place) {
            let error = JudgeError::new(
                JudgeErrorKind::Throttled,
                "the endpoint's rate leaves no room for another call in time",
            );
            return Err(JudgeError { retry_after: Some(until.saturating_duration_since(now)), ..error });
        }
        let freed = self.freed.notified();
        match wait.until.into_iter().chain(deadline).min() {
            None => freed.await,
            Some(until) => {
                let is_over = timeout_at(until, freed).await.is_err();
                if is_over && deadline == Some(until) {
                    return Err(too_late("the caller's deadline passed while others were being answered"));
                }
            }
        }
        Ok(())
    }

    fn begin(
        self: &Arc<Self>,
        member: &Arc<Member<J>>,
        now: Instant,
        estimate: Usage,
        queued: Duration,
    ) -> Result<Place<J>, JudgeError> {
        let reserve = self.budget.as_ref().map(|budget| budget.reserve(now, estimate)).transpose();
        let reserve = reserve.inspect_err(|_| self.counters.count(Event::OverBudget))?;
        self.counters.count(Event::Call);
        self.counters.queued(queued);
        let sent = member.begin(now, estimate.total());
        Ok(Place {
            pool: Arc::clone(self),
            member: Arc::clone(member),
            sent,
            estimate,
            reserve,
            queued,
            ended: false,
        })
    }

    /// Whether an endpoint other than `asked`, that has not failed this question, could be asked now.
    fn has_another(&self, asked: &Arc<Member<J>>, question: &Question) -> bool {
        let now = Instant::now();
        self.members.iter().any(|member| {
            !Arc::ptr_eq(member, asked)
                && !question.failed_at.contains(&member.terms.name)
                && !matches!(member.standing(now, 0, 1.0, false), Standing::Down | Standing::Throttled)
        })
    }
}

impl<J: Judge> Pool<J> {
    async fn call(mut place: Place<J>, question: &Question) -> Result<Reply, JudgeError> {
        let (pool, member) = (Arc::clone(&place.pool), Arc::clone(&place.member));
        let answer = member.judge.ask(question).await;
        let took = place.sent.at.elapsed();
        match answer {
            Ok(mut reply) => {
                place.end(End::Answered(reply.usage));
                pool.counters.count(Event::Answered);
                pool.counters.used(reply.usage);
                reply.journey.endpoint = Arc::clone(&member.terms.name);
                reply.journey.attempts = 1;
                reply.journey.queued = place.queued;
                reply.journey.took = took;
                Ok(reply)
            }
            Err(mut error) => {
                place.end(End::Failed(&error));
                pool.counters.count(if error.kind == JudgeErrorKind::Throttled {
                    Event::Throttled
                } else if error.kind == JudgeErrorKind::OutOfTime {
                    Event::Abandoned
                } else {
                    Event::Failed
                });
                let helps = error.is_transient() || health::is_the_endpoints_fault(error.kind);
                error.elsewhere = helps && pool.has_another(&member, question);
                error.endpoint = member.terms.name.to_string();
                Err(error)
            }
        }
    }
}

impl<J: Judge + 'static> Judge for Arc<Pool<J>> {
    async fn ask(&self, question: &Question) -> Result<Reply, JudgeError> {
        let place = self.place(question).await?;
        match &self.hedging {
            None => Pool::call(place, question).await,
            Some(hedging) => self.race(hedging, place, question).await,
        }
    }
}

/// What to do with the question whose turn it is.
enum Choice<'p, J> {
    Ask(&'p Arc<Member<J>>),
    Wait(Wait),
}

/// What to wait for.
#[derive(Debug, Clone, Copy)]
struct Wait {
    /// An open call may end.
    place: bool,
    /// A rate allows the next call, or a rest ends.
    until: Option<Instant>,
}

/// Of those who can be asked, sooner or later: who has not failed this question, then the lowest priority number,
/// then the least load. Absent when there is nobody.
fn choose_among<'p, J>(
    standings: Vec<(&'p Arc<Member<J>>, Standing)>,
    failed_at: &[Arc<str>],
) -> Option<Choice<'p, J>> {
    let rank = |member: &Member<J>| (failed_at.contains(&member.terms.name), member.terms.priority);
    let mut able = standings;
    able.retain(|(_, standing)| !matches!(standing, Standing::Down | Standing::Throttled));
    let best = able.iter().map(|(member, _)| rank(member)).min()?;
    able.retain(|(member, _)| rank(member) == best);
    let ready = able.iter().filter_map(|(member, standing)| {
        let Standing::Ready { load } = standing else { return None };
        Some((*load, *member))
    });
    if let Some((_, member)) = ready.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
        return Some(Choice::Ask(member));
    }
    let paced = able.iter().filter_map(|(_, standing)| {
        let Standing::Paced(at) = standing else { return None };
        Some(*at)
    });
    let place = able.iter().any(|(_, standing)| matches!(standing, Standing::Full));
    Some(Choice::Wait(Wait { place, until: paced.min() }))
}

/// A place at an endpoint, for one call. Dropped before the end, it counts as given up.
struct Place<J> {
    pool: Arc<Pool<J>>,
    member: Arc<Member<J>>,
    sent: Sent,
    estimate: Usage,
    reserve: Option<Reserve>,
    queued: Duration,
    ended: bool,
}

impl<J> Place<J> {
    fn end(&mut self, end: End<'_>) {
        self.ended = true;
        let now = Instant::now();
        self.member.end(now, self.sent, end);
        if let Some(quota) = &self.member.quota {
            quota.settle(self.estimate.total(), end.charge(self.estimate).total());
        }
        if let (Some(budget), Some(reserve)) = (&self.pool.budget, self.reserve) {
            budget.settle(now, reserve, end.charge(self.estimate));
        }
        self.pool.freed.notify_one();
    }
}

impl<J> Drop for Place<J> {
    fn drop(&mut self) {
        if !self.ended {
            self.end(End::Abandoned);
            self.pool.counters.count(Event::Abandoned);
        }
    }
}

fn too_late(message: impl Into<String>) -> JudgeError {
    JudgeError::new(JudgeErrorKind::OutOfTime, message)
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
