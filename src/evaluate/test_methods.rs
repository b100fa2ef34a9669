//! Test methods for the answers of agents: keyword_match, semantic_similarity, compare_meaning, general_quality.

use prost::Message;

use crate::embeddings::Text;
use crate::error::Error;
use crate::evaluate::computed::within_limit;
use crate::evaluate::judged::{fields, narrow};
use crate::evaluate::{Call, Evaluator};
use crate::judge::verdict::{RubricVerdict, WrittenRubric};
use crate::metrics::keyword_match::{self, Mode, NoKeywordScore};
use crate::metrics::{Stop, cosine};
use crate::wire::required;
use crate::wire::v1::*;

/// From which cosine on an answer passes, when the request does not say.
const SIMILAR_ENOUGH: f64 = 0.7;

/// From which score on the meaning of an answer passes, when the request does not say.
const CLOSE_ENOUGH: f64 = 50.0;

/// The criterion that a missing answer fails.
const ABSTENTION: &str = "abstention";

impl Evaluator {
    pub(super) async fn keyword_match(&self, input: KeywordMatchInput) -> Result<KeywordMatchResults, Error> {
        self.check_count(input.instances.len())?;
        let spec = input.metric_spec.unwrap_or_default();
        let mode = match KeywordMatchMode::try_from(spec.mode) {
            Ok(KeywordMatchMode::Unspecified | KeywordMatchMode::Any) => Mode::Any,
            Ok(KeywordMatchMode::All) => Mode::All,
            Err(unknown) => return Err(super::computed::unknown_value("metric_spec.mode", unknown.0)),
        };
        let options =
            keyword_match::Options { mode, substring: spec.substring, case_sensitive: spec.case_sensitive };
        let text_bytes = self.limits.text_bytes;
        // A text is gone through once for each keyword.
        let work = |instance: &KeywordMatchInstance| {
            let text = instance.prediction.as_ref().map_or(0, String::len);
            text.saturating_mul(instance.keywords.len()).saturating_add(instance.encoded_len())
        };
        let keyword_match_metric_values = self
            .workers
            .score_each(input.instances, work, move |index, instance, stop| {
                let score = || {
                    let text = required(instance.prediction.as_deref(), "prediction")?;
                    within_limit(text, "prediction", text_bytes)?;
                    for (index, keyword) in instance.keywords.iter().enumerate() {
                        within_limit(keyword, &format!("keywords[{index}]"), text_bytes)?;
                    }
                    keywords_found(text, &instance.keywords, &options, stop)
                };
                score().map_err(|error: Error| error.within(format_args!("instances[{index}]")))
            })
            .await?;
        Ok(KeywordMatchResults { keyword_match_metric_values })
    }

    pub(super) async fn semantic_similarity(
        &self,
        input: SemanticSimilarityInput,
        call: &Call,
    ) -> Result<SemanticSimilarityResults, Error> {
        let spec = input.metric_spec.unwrap_or_default();
        let pass = pass_score(spec.pass_score, SIMILAR_ENOUGH, 1.0)?;
        let value = move |score: f64, vectors: TextVectors, embedding_model: &str| {
            let score = score.max(0.0);
            SemanticSimilarityMetricValue {
                score: Some(score),
                passed: Some(score >= pass),
                vectors: vectors.into(),
                embedding_model: embedding_model.to_owned(),
            }
        };
        let semantic_similarity_metric_values = match &self.embedder {
            Some(embedder) => {
                let texts = |prediction: &str, reference: &str, _: Stop<'_>| {
                    Ok([prediction, reference].map(|text| Text::new(text.to_owned())))
                };
                let pairs = self.score_pairs(input.instances, texts).await?;
                let cosines = self.cosines(embedder, &pairs, call.deadline).await?;
                let value = |score| value(score, TextVectors::Embeddings, embedder.model());
                cosines.into_iter().map(value).collect()
            }
            None => {
                let score = move |prediction: &str, reference: &str, stop: Stop<'_>| {
                    let score = cosine::of_words_until(prediction, reference, stop)?;
                    Ok(value(score, TextVectors::WordCounts, ""))
                };
                self.score_pairs(input.instances, score).await?
            }
        };
        Ok(SemanticSimilarityResults { semantic_similarity_metric_values })
    }

    pub(super) async fn compare_meaning(
        &self,
        input: CompareMeaningInput,
        call: &Call,
    ) -> Result<CompareMeaningResult, Error> {
        let pass = pass_score(input.metric_spec.unwrap_or_default().pass_score, CLOSE_ENOUGH, 100.0)?;
        let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
        let grade = self.score_by_rubric(self.rubric("compare_meaning")?, &texts, false, &asking).await?;
        Ok(CompareMeaningResult {
            score: Some(grade.value),
            passed: Some(grade.value >= pass),
            confidence: Some(narrow(grade.confidence)),
            details: asking.details(&grade),
            explanation: grade.explanation,
        })
    }

    pub(super) async fn general_quality(
        &self,
        input: GeneralQualityInput,
        call: &Call,
    ) -> Result<GeneralQualityResult, Error> {
        let instance = required(input.instance, "instance")?;
        required(instance.instruction.as_ref(), "instance.instruction")?;
        let answer = required(instance.prediction.as_ref(), "instance.prediction")?;
        let rubric = self.rubric("general_quality")?;
        let is_answered = !answer.trim().is_empty();
        let checks = rubric.fixed_rubrics();
        if !is_answered {
            return Ok(GeneralQualityResult {
                score: Some(0.0),
                passed: Some(false),
                criteria: checks.iter().map(unanswered).collect(),
                confidence: Some(1.0),
                details: None,
            });
        }
        let (texts, asking) = (fields(Some(instance))?, self.asking_of(call)?);
        let list = self.write_rubrics(rubric, &texts, &asking).await?;
        let grade = self.judge_rubrics(rubric, &list, &texts, &asking).await?;
        Ok(GeneralQualityResult {
            score: grade.per_cent(),
            passed: Some(grade.verdicts.iter().all(|verdict| verdict.satisfied)),
            criteria: list.iter().zip(&grade.verdicts).map(criterion).collect(),
            confidence: Some(narrow(grade.confidence)),
            details: asking.details_of_rubrics(&grade),
        })
    }
}

fn keywords_found(
    text: &str,
    keywords: &[String],
    options: &keyword_match::Options,
    stop: Stop<'_>,
) -> Result<KeywordMatchMetricValue, Error> {
    let score = keyword_match::score_until(text, keywords, options, stop).map_err(|no| match no {
        NoKeywordScore::NoKeywords => {
            Error::bad_request("keywords", "is empty; at least one keyword is needed")
        }
        NoKeywordScore::Blank { index } => {
            Error::bad_request(format!("keywords[{index}]"), "is blank, and every text would hold it")
        }
        NoKeywordScore::Unscored(unscored) => unscored.into(),
    })?;
    let those = |wanted: bool| {
        let pairs = keywords.iter().zip(&score.found);
        pairs.filter(|(_, found)| **found == wanted).map(|(keyword, _)| keyword.clone()).collect()
    };
    Ok(KeywordMatchMetricValue {
        score: Some(score.value),
        passed: Some(score.passed),
        matched_keywords: those(true),
        missing_keywords: those(false),
    })
}

fn pass_score(asked: Option<f64>, default: f64, most: f64) -> Result<f64, Error> {
    match asked {
        Some(score) if !(0.0..=most).contains(&score) => {
            Err(Error::bad_request("metric_spec.pass_score", format!("{score} is not from 0 to {most}")))
        }
        asked => Ok(asked.unwrap_or(default)),
    }
}

fn name(check: &WrittenRubric) -> String {
    if check.kind.is_empty() { check.text.clone() } else { check.kind.to_lowercase() }
}

fn criterion((check, verdict): (&WrittenRubric, &RubricVerdict)) -> QualityCriterion {
    QualityCriterion { name: name(check), met: Some(verdict.satisfied), reason: verdict.explanation.clone() }
}

fn unanswered(check: &WrittenRubric) -> QualityCriterion {
    let name = name(check);
    let met = (name == ABSTENTION).then_some(false);
    QualityCriterion { name, met, reason: String::from("not answered") }
}
