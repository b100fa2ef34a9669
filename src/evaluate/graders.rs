//! The graders' arms, and graders run for the REST door of OpenAI's API.
//!
//! | file | what it does |
//! | --- | --- |
//! | `spec.rs` | specs of the wire read as graders |
//! | `computed.rs` | string_check and text_similarity, on the workers |
//! | `similarity.rs` | text_similarity by embeddings |
//! | `model.rs` | label_model and score_model, by a judge |
//! | `run.rs` | one grader, or several under a formula, over one row |

mod computed;
mod model;
mod run;
mod similarity;
mod spec;

use std::sync::Arc;

use prost::Message;

use crate::error::{Error, Kind, quoted};
use crate::evaluate::{Call, Evaluator};
use crate::grader::scope::Scope;
use crate::grader::template::{Template, TemplateError};
use crate::grader::{StringCheck, TextSimilarity, WrongGrader};
use crate::judge::Usage;
use crate::judge::autorater::Cause;
use crate::wire::required;
use crate::wire::v1::*;

pub use run::Run;

/// What a grader says of one row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graded {
    /// The score.
    pub score: f64,
    /// Whether that is enough; `None` = there is no threshold.
    pub passed: Option<bool>,
    /// Label models: the label.
    pub label: String,
    /// Models: what the judge checked and found.
    pub explanation: String,
    /// Models: the share of samples that agree.
    pub confidence: Option<f64>,
    /// Cosine: what the texts were turned into.
    pub vectors: TextVectors,
    /// Cosine: the model whose embeddings were compared; empty = none.
    pub embedding_model: String,
    /// METEOR: whether synonyms counted.
    pub used_synonyms: Option<bool>,
    /// Models: what it cost.
    pub usage: Usage,
    /// Models: the model that answered first, as it names itself.
    pub model: String,
    /// Models: samples and votes, when the caller wants to see them.
    pub details: Option<JudgeDetails>,
}

/// Why a grader has no score.
#[derive(Debug)]
pub struct Failure {
    /// What sort of failure it is, in the words of OpenAI's API.
    pub sort: FailureSort,
    /// What happened.
    pub error: Error,
}

/// The sorts of failure that OpenAI's API has a flag for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureSort {
    /// A template reads what is not there.
    InvalidVariable,
    /// The judge cannot be asked, or does not answer.
    ModelServer,
    /// The judge declines.
    ModelRefusal,
    /// What the judge says is no verdict.
    ModelParse,
    /// Anything else.
    Other,
}

impl Failure {
    fn other(error: Error) -> Self {
        Self { sort: FailureSort::Other, error }
    }

    fn of_judge(cause: Cause, error: Error) -> Self {
        let sort = match cause {
            Cause::Unavailable
            | Cause::OutOfTime
            | Cause::TooLong
            | Cause::Misconfigured
            | Cause::OverBudget => FailureSort::ModelServer,
            Cause::Refused => FailureSort::ModelRefusal,
            Cause::NoVerdict => FailureSort::ModelParse,
        };
        Self { sort, error }
    }

    /// A template of this field that gave no text.
    fn of_template(field: &str, wrong: &TemplateError) -> Self {
        let kind = match wrong {
            TemplateError::TooLong => Kind::TooLarge,
            TemplateError::Unclosed { .. } | TemplateError::NotAPath(_) | TemplateError::NoValue(_) => {
                Kind::InvalidArgument
            }
        };
        let error = Error::new(kind, format!("{field}: {wrong}"));
        match wrong {
            TemplateError::NoValue(_) => Self { sort: FailureSort::InvalidVariable, error },
            TemplateError::TooLong | TemplateError::Unclosed { .. } | TemplateError::NotAPath(_) => {
                Self::other(error)
            }
        }
    }
}

impl From<WrongGrader> for Error {
    fn from(wrong: WrongGrader) -> Self {
        Self::bad_request(format!("metric_spec.{}", wrong.field), wrong.reason)
    }
}

/// A row to be graded.
trait Row: Send + Sync + 'static {
    /// About how long it is.
    fn bytes(&self) -> usize;

    /// It, as these templates read it.
    fn scope(&self, templates: &[&Template]) -> Arc<Scope>;
}

impl Row for GraderInstance {
    fn bytes(&self) -> usize {
        self.encoded_len()
    }

    fn scope(&self, templates: &[&Template]) -> Arc<Scope> {
        let members =
            |of: &Option<prost_types::Struct>| of.as_ref().map(crate::wire::json::object).unwrap_or_default();
        let scope = Scope::new(members(&self.item), members(&self.sample), self.encoded_len());
        Arc::new(scope.with_output_json(templates.iter().copied()))
    }
}

impl Row for Arc<Scope> {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn scope(&self, _: &[&Template]) -> Arc<Scope> {
        Self::clone(self)
    }
}

impl Evaluator {
    pub(super) async fn string_check(&self, input: StringCheckInput) -> Result<StringCheckResults, Error> {
        let grader: StringCheck = spec::string_check(&required(input.metric_spec, "metric_spec")?)?;
        self.check_count(input.instances.len())?;
        let graded = self.compute(grader, input.instances).await?;
        let value =
            |graded: Graded| StringCheckMetricValue { score: Some(graded.score), passed: graded.passed };
        Ok(StringCheckResults { string_check_metric_values: values(graded, value)? })
    }

    pub(super) async fn text_similarity(
        &self,
        input: TextSimilarityInput,
        call: &Call,
    ) -> Result<TextSimilarityResults, Error> {
        let grader: TextSimilarity = spec::text_similarity(&required(input.metric_spec, "metric_spec")?)?;
        self.check_count(input.instances.len())?;
        let graded = self.similarity(grader, input.instances, call.deadline).await?;
        let value = |graded: Graded| TextSimilarityMetricValue {
            score: Some(graded.score),
            passed: graded.passed,
            vectors: graded.vectors.into(),
            used_synonyms: graded.used_synonyms,
            embedding_model: graded.embedding_model,
        };
        Ok(TextSimilarityResults { text_similarity_metric_values: values(graded, value)? })
    }

    pub(super) async fn label_model(
        &self,
        input: LabelModelInput,
        call: &Call,
    ) -> Result<LabelModelResult, Error> {
        let grader = spec::label_model(required(input.metric_spec, "metric_spec")?)?;
        let scope = required(input.instance, "instance")?.scope(&grader.ask.templates());
        let graded = self.label(&grader, &scope, call).await.map_err(|failure| failure.error)?;
        Ok(LabelModelResult {
            score: Some(graded.score),
            passed: graded.passed,
            label: graded.label,
            explanation: graded.explanation,
            confidence: graded.confidence.map(super::judged::narrow),
            details: graded.details,
        })
    }

    pub(super) async fn score_model(
        &self,
        input: ScoreModelInput,
        call: &Call,
    ) -> Result<ScoreModelResult, Error> {
        let grader = spec::score_model(required(input.metric_spec, "metric_spec")?)?;
        let scope = required(input.instance, "instance")?.scope(&grader.ask.templates());
        let graded = self.number(&grader, &scope, call).await.map_err(|failure| failure.error)?;
        Ok(ScoreModelResult {
            score: Some(graded.score),
            passed: graded.passed,
            explanation: graded.explanation,
            confidence: graded.confidence.map(super::judged::narrow),
            details: graded.details,
        })
    }

    pub(super) async fn multi_grader(
        &self,
        input: MultiGraderInput,
        call: &Call,
    ) -> Result<MultiGraderResult, Error> {
        let grader = spec::multi(required(input.metric_spec, "metric_spec")?)?;
        let templates: Vec<&Template> =
            grader.graders.iter().flat_map(|(_, grader)| grader.templates()).collect();
        let scope = required(input.instance, "instance")?.scope(&templates);
        let outcomes = self.parts(&grader, &scope, call).await;
        let mut parts = Vec::with_capacity(outcomes.len());
        for (name, outcome) in outcomes {
            let graded = outcome.map_err(|Failure { error, .. }| {
                let shown = quoted(&name);
                error.of_part(format_args!("metric_spec.graders.{shown}"), format_args!("grader {shown:?}"))
            })?;
            parts.push(GraderPart {
                name,
                score: Some(graded.score),
                passed: graded.passed,
                label: graded.label,
                explanation: graded.explanation,
                details: graded.details,
            });
        }
        let score_of = |name: &str| parts.iter().find(|part| part.name == name)?.score;
        let score = grader
            .formula
            .evaluate(score_of)
            .map_err(|no| Error::bad_request("metric_spec.calculate_output", no.to_string()))?;
        Ok(MultiGraderResult { score: Some(score), parts })
    }
}

/// One value for each instance, or the error of the first that has none.
fn values<V>(graded: Vec<Result<Graded, Failure>>, value: impl Fn(Graded) -> V) -> Result<Vec<V>, Error> {
    let values = graded.into_iter().enumerate().map(|(index, graded)| match graded {
        Ok(graded) => Ok(value(graded)),
        Err(failure) => Err(failure.error.within(format_args!("instances[{index}]"))),
    });
    values.collect()
}
