//! Rubrics written for an item, and verdicts on them. The score is the share of rubrics that are satisfied.

use futures_util::future::join_all;

use super::super::consensus;
use super::super::prompt::Prompt;
use super::super::verdict::{Reading, RubricList, RubricVerdict, RubricVerdicts, WrittenRubric};
use super::super::{Judge, Usage};
use super::sample::{Call, Failure, Sample, take_sample};
use super::{Samples, Ungraded, question};
use crate::telemetry;

/// Rubrics for one item.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedRubrics {
    /// In the order in which the judge wrote them.
    pub rubrics: Vec<WrittenRubric>,
    /// What they cost.
    pub usage: Usage,
}

/// A verdict on each of several rubrics.
#[derive(Debug, Clone, PartialEq)]
pub struct RubricGrade {
    /// The share of rubrics that are satisfied, 0 to 1; `None` when there are none to satisfy.
    pub score: Option<f64>,
    /// One for each rubric, in order: what most samples say, and the words of the first one that says so.
    pub verdicts: Vec<RubricVerdict>,
    /// The mean over rubrics of the share of samples that say so, 0 to 1.
    pub confidence: f64,
    /// Every sample that was asked, in order.
    pub samples: Vec<Sample<Vec<RubricVerdict>>>,
    /// Tokens of all samples.
    pub usage: Usage,
}

impl RubricGrade {
    /// The share of rubrics that are satisfied, in per cent; `None` when there are none to satisfy.
    pub fn per_cent(&self) -> Option<f64> {
        let satisfied = self.verdicts.iter().filter(|verdict| verdict.satisfied).count();
        #[expect(clippy::cast_precision_loss, reason = "rubrics are counted in tens")]
        self.score.map(|_| satisfied as f64 * 100.0 / self.verdicts.len() as f64)
    }
}

/// Asks once for rubrics; there is no majority among lists.
///
/// # Errors
///
/// The judge wrote none.
pub async fn generate_rubrics<J: Judge>(
    judge: &J,
    prompt: &Prompt,
    may_be_empty: bool,
    samples: &Samples,
) -> Result<GeneratedRubrics, Ungraded> {
    let reading = RubricList { may_be_empty };
    let Sample { verdict, usage, .. } = one(judge, &reading, prompt, samples, 0).await;
    match verdict {
        Ok(verdict) => Ok(GeneratedRubrics { rubrics: verdict.value, usage }),
        Err(failure) => Err(Ungraded::without_quorum(0, 1, &[(0, failure)], usage)),
    }
}

/// Asks for a verdict on each of `count` rubrics, which the prompt lists. A rubric on which the samples are
/// evenly divided is not satisfied.
///
/// # Errors
///
/// There was no quorum.
pub async fn judge_rubrics<J: Judge>(
    judge: &J,
    prompt: &Prompt,
    count: usize,
    samples: &Samples,
) -> Result<RubricGrade, Ungraded> {
    if count == 0 {
        let nothing = RubricGrade {
            score: None,
            verdicts: Vec::new(),
            confidence: 1.0,
            samples: Vec::new(),
            usage: Usage::default(),
        };
        return Ok(nothing);
    }
    let reading = RubricVerdicts { count };
    let planned = samples.planned();
    let taken = join_all((0..planned).map(|index| one(judge, &reading, prompt, samples, index))).await;
    let mut usage = Usage::default();
    taken.iter().for_each(|sample| usage += sample.usage);
    let mut verdicts = Vec::with_capacity(count);
    let (mut satisfied, mut confidence) = (0.0, 0.0);
    for rubric in 0..count {
        let said: Vec<Option<&RubricVerdict>> =
            taken.iter().map(|sample| sample.verdict.as_ref().ok()?.value.get(rubric)).collect();
        let votes: Vec<Option<f64>> = said
            .iter()
            .map(|verdict| verdict.map(|verdict| f64::from(u8::from(verdict.satisfied))))
            .collect();
        let agreed = consensus::scores(&votes, planned);
        let Ok(agreed) = agreed else {
            let failures: Vec<(usize, Failure)> = taken
                .into_iter()
                .enumerate()
                .filter_map(|(index, sample)| Some((index, sample.verdict.err()?)))
                .collect();
            return Err(Ungraded::without_quorum(planned - failures.len(), planned, &failures, usage));
        };
        let spokesman = agreed.spokesman.and_then(|index| *said.get(index)?);
        satisfied += agreed.label;
        confidence += agreed.confidence;
        verdicts.push(RubricVerdict {
            satisfied: agreed.label > 0.5,
            explanation: spokesman.map(|verdict| verdict.explanation.clone()).unwrap_or_default(),
        });
    }
    #[expect(clippy::cast_precision_loss, reason = "rubrics are counted in tens")]
    let all = count as f64;
    let valid = taken.iter().filter(|sample| sample.verdict.is_ok()).count();
    telemetry::evaluation::graded(confidence / all, None, valid, planned, false);
    Ok(RubricGrade {
        score: Some(satisfied / all),
        verdicts,
        confidence: confidence / all,
        samples: taken,
        usage,
    })
}

async fn one<J: Judge, R: Reading>(
    judge: &J,
    reading: &R,
    prompt: &Prompt,
    samples: &Samples,
    index: usize,
) -> Sample<R::Value> {
    let (system, user) = prompt.with_form(&reading.instructions());
    let question = question(prompt, (&system, &user), reading.form(), samples, index);
    take_sample(Call { judge, reading, material: prompt.material(), question, flipped: false }).await
}
