//! Why there is no grade, by what the caller can do about it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::super::verdict::shorten;
use super::super::{JudgeErrorKind, Usage};
use super::Failure;

/// So many different reasons are spelled out.
const SPELLED_OUT: usize = 4;
/// A reason is cut to this many characters; it holds up to 200 of the judge's.
const REASON_CHARS: usize = 400;

/// Why there is no grade, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The judge cannot be reached or is overloaded: the same request may be answered later.
    Unavailable,
    /// The caller's own time ran out.
    OutOfTime,
    /// What the configuration lets the judge cost is spent.
    OverBudget,
    /// The prompt is longer than the judge takes: a shorter one may be answered.
    TooLong,
    /// The judge is not set up: credentials, model, spend limit.
    Misconfigured,
    /// The judge or its provider declines to judge this item.
    Refused,
    /// The judge answers, but not with verdicts, or with evenly divided ones.
    NoVerdict,
}

/// No grade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ungraded {
    /// What can be done about it.
    pub cause: Cause,
    /// What happened, sample by sample, for the caller.
    pub message: String,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
    /// Tokens spent all the same.
    pub usage: Usage,
}

impl fmt::Display for Ungraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Ungraded {}

impl Ungraded {
    /// Too few of the samples gave a verdict. `failures` are those asked that did not, by their index.
    pub(super) fn without_quorum(
        valid: usize,
        planned: usize,
        failures: &[(usize, Failure)],
        usage: Usage,
    ) -> Self {
        let mut indices: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (index, failure) in failures {
            indices.entry(shorten(&failure.to_string(), REASON_CHARS)).or_default().push(index + 1);
        }
        let mut reasons: Vec<(Vec<usize>, String)> =
            indices.into_iter().map(|(reason, indices)| (indices, reason)).collect();
        reasons.sort();
        let mut message = format!("no verdict from the judge: {valid} of {planned} samples valid");
        for (indices, reason) in reasons.iter().take(SPELLED_OUT) {
            let indices: Vec<String> = indices.iter().map(usize::to_string).collect();
            message.push_str(&format!("; sample {}: {reason}", indices.join(", ")));
        }
        if reasons.len() > SPELLED_OUT {
            message.push_str(&format!("; and {} more reasons", reasons.len() - SPELLED_OUT));
        }
        let retry_after = failures
            .iter()
            .filter_map(|(_, failure)| match failure {
                Failure::Unanswered(error) => error.retry_after,
                Failure::Unreadable(_) => None,
            })
            .max();
        let causes = failures.iter().map(|(_, failure)| cause_of(failure));
        Self { cause: overall(valid, planned, causes), message, retry_after, usage }
    }

    /// Labels without an order have equally many votes.
    pub(super) fn split(valid: usize, planned: usize, usage: Usage) -> Self {
        Self {
            cause: Cause::NoVerdict,
            message: format!(
                "no verdict from the judge: its {valid} valid samples of {planned} are evenly divided"
            ),
            retry_after: None,
            usage,
        }
    }
}

fn cause_of(failure: &Failure) -> Cause {
    match failure {
        Failure::Unanswered(error) => Cause::of(error.kind),
        Failure::Unreadable(_) => Cause::NoVerdict,
    }
}

impl Cause {
    /// What an answer that did not come comes to.
    pub fn of(kind: JudgeErrorKind) -> Self {
        match kind {
            JudgeErrorKind::Unreachable | JudgeErrorKind::TimedOut | JudgeErrorKind::Throttled => {
                Self::Unavailable
            }
            JudgeErrorKind::OutOfTime => Self::OutOfTime,
            JudgeErrorKind::OverBudget => Self::OverBudget,
            JudgeErrorKind::PromptTooLong => Self::TooLong,
            JudgeErrorKind::Exhausted
            | JudgeErrorKind::Credentials
            | JudgeErrorKind::UnknownModel
            | JudgeErrorKind::Unsupported(_)
            | JudgeErrorKind::BadRequest => Self::Misconfigured,
            JudgeErrorKind::Refused => Self::Refused,
            JudgeErrorKind::Unreadable => Self::NoVerdict,
        }
    }
}

/// One cause for all failures: one that time would have mended, when without it there would have been a
/// quorum; otherwise the most frequent of those that it would not.
fn overall(valid: usize, planned: usize, causes: impl Iterator<Item = Cause>) -> Cause {
    let mut counts: BTreeMap<Cause, usize> = BTreeMap::new();
    causes.for_each(|cause| *counts.entry(cause).or_default() += 1);
    let count = |cause| counts.get(&cause).copied().unwrap_or(0);
    let (down, late) = (count(Cause::Unavailable), count(Cause::OutOfTime));
    let failed: usize = counts.values().sum();
    let unasked = planned.saturating_sub(valid + failed);
    if down + late > 0 && (valid + unasked + down + late) * 2 > planned {
        return if down > 0 { Cause::Unavailable } else { Cause::OutOfTime };
    }
    let lasting = counts.iter().filter(|(cause, _)| !matches!(cause, Cause::Unavailable | Cause::OutOfTime));
    lasting.max_by_key(|(_, count)| **count).map_or(Cause::NoVerdict, |(cause, _)| *cause)
}
