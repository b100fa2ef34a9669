//! Verdicts as result messages, and what is told of them when the caller asks for details.

use std::collections::BTreeMap;

use crate::evaluate::judged::Asking;
use crate::judge::Usage;
use crate::judge::autorater::{Grade, RubricGrade, Sample};
use crate::judge::consensus::Choice;
use crate::wire::v1::*;

/// Google's `float`. Set even when 0.
pub(crate) fn narrow(score: f64) -> f32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the wire type is float; `as` rounds to nearest even"
    )]
    {
        score as f32
    }
}

pub(crate) fn choice(choice: Choice) -> PairwiseChoice {
    match choice {
        Choice::Baseline => PairwiseChoice::Baseline,
        Choice::Candidate => PairwiseChoice::Candidate,
        Choice::Tie => PairwiseChoice::Tie,
    }
}

impl Asking<'_> {
    /// Each sample of a score, when the caller wants to see them.
    pub(crate) fn details(&self, grade: &Grade<f64>) -> Option<JudgeDetails> {
        self.of_samples(grade, |score| (score.to_string(), Some(narrow(*score))))
    }

    /// Each sample of a label, given by its index, when the caller wants to see them.
    pub(crate) fn details_of_label(&self, grade: &Grade<f64>, labels: &[String]) -> Option<JudgeDetails> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is an index of the list"
        )]
        let label = |index: &f64| labels.get(*index as usize).cloned().unwrap_or_default();
        let details = self.of_samples(grade, |index| (label(index), None));
        details.map(|details| JudgeDetails { mean_score: None, ..details })
    }

    /// Each sample of a comparison, when the caller wants to see them.
    pub(crate) fn details_of_choice(&self, grade: &Grade<Choice>) -> Option<JudgeDetails> {
        self.of_samples(grade, |vote| (choice(*vote).as_str_name().to_owned(), None))
    }

    /// Each sample of verdicts on rubrics, when the caller wants to see them.
    pub(crate) fn details_of_rubrics(&self, grade: &RubricGrade) -> Option<JudgeDetails> {
        self.details.then(|| {
            let met = |verdicts: &Vec<crate::judge::verdict::RubricVerdict>| {
                let satisfied = verdicts.iter().filter(|verdict| verdict.satisfied).count();
                (format!("{satisfied} of {}", verdicts.len()), None)
            };
            JudgeDetails {
                samples: samples(&grade.samples, met),
                votes: votes(&grade.samples, met),
                confidence: Some(narrow(grade.confidence)),
                usage: Some(usage(&grade.usage, grade.samples.iter().map(|sample| sample.asks).sum())),
                judge: self.judge.name().to_owned(),
                ..Default::default()
            }
        })
    }

    fn of_samples<V>(
        &self,
        grade: &Grade<V>,
        label: impl Fn(&V) -> (String, Option<f32>),
    ) -> Option<JudgeDetails> {
        self.details.then(|| JudgeDetails {
            samples: samples(&grade.samples, &label),
            votes: votes(&grade.samples, &label),
            confidence: Some(narrow(grade.confidence)),
            usage: Some(usage(&grade.usage, grade.asks)),
            judge: self.judge.name().to_owned(),
            stopped_early: grade.stopped_early,
            mean_score: grade.mean_score,
            first_position_rate: grade.first_position_rate.map(narrow),
        })
    }
}

fn samples<V>(taken: &[Sample<V>], label: impl Fn(&V) -> (String, Option<f32>)) -> Vec<JudgeSample> {
    let sample = |(index, sample): (usize, &Sample<V>)| {
        let mut told = JudgeSample {
            index: i32::try_from(index).unwrap_or(i32::MAX),
            flipped: sample.flipped,
            model: sample.model.clone(),
            ..Default::default()
        };
        match &sample.verdict {
            Ok(verdict) => {
                (told.label, told.score) = label(&verdict.value);
                told.explanation.clone_from(&verdict.explanation);
                told.repaired = verdict.repaired || sample.asks > 1;
            }
            Err(failure) => told.error = failure.to_string(),
        }
        told
    };
    taken.iter().enumerate().map(sample).collect()
}

fn votes<V>(taken: &[Sample<V>], label: impl Fn(&V) -> (String, Option<f32>)) -> Vec<Vote> {
    let mut counts: BTreeMap<String, i32> = BTreeMap::new();
    for verdict in taken.iter().filter_map(|sample| sample.verdict.as_ref().ok()) {
        *counts.entry(label(&verdict.value).0).or_default() += 1;
    }
    counts.into_iter().map(|(label, count)| Vote { label, count }).collect()
}

fn usage(usage: &Usage, asks: u32) -> TokenUsage {
    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    TokenUsage {
        input_tokens: tokens(usage.input_tokens),
        output_tokens: tokens(usage.output_tokens),
        cached_input_tokens: tokens(usage.cached_input_tokens),
        reasoning_tokens: tokens(usage.reasoning_tokens),
        calls: i32::try_from(asks).unwrap_or(i32::MAX),
    }
}

/// The built-in metrics' results all have these fields.
macro_rules! score_results {
    ($($result:ident),* $(,)?) => {$(
        impl $result {
            pub(in crate::evaluate) fn of(grade: Grade<f64>, asking: &Asking<'_>) -> Self {
                Self {
                    score: Some(narrow(grade.value)),
                    confidence: Some(narrow(grade.confidence)),
                    details: asking.details(&grade),
                    explanation: grade.explanation,
                }
            }
        }
    )*};
}

score_results!(
    FluencyResult,
    CoherenceResult,
    SummarizationQualityResult,
    SafetyResult,
    GroundednessResult,
    QuestionAnsweringQualityResult,
    FulfillmentResult,
    SummarizationHelpfulnessResult,
    SummarizationVerbosityResult,
    QuestionAnsweringRelevanceResult,
    QuestionAnsweringHelpfulnessResult,
    QuestionAnsweringCorrectnessResult,
);

macro_rules! choice_results {
    ($($result:ident),* $(,)?) => {$(
        impl $result {
            pub(in crate::evaluate) fn of(grade: Grade<Choice>, asking: &Asking<'_>) -> Self {
                Self {
                    pairwise_choice: choice(grade.value).into(),
                    confidence: Some(narrow(grade.confidence)),
                    details: asking.details_of_choice(&grade),
                    explanation: grade.explanation,
                }
            }
        }
    )*};
}

choice_results!(PairwiseSummarizationQualityResult, PairwiseQuestionAnsweringQualityResult);
