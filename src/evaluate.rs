//! ONE exhaustive match over the request's oneof: the table of contents of the service.
//!
//! An arm names its metric and where its work is done: `computed.rs` (texts to the CPU workers), `judged.rs`
//! (texts to a judge), `graders.rs`, `test_methods.rs` and `summaries.rs` (either).
//! Every door (gRPC under three names, REST, command line) ends here.

mod computed;
mod cosine;
pub mod graders;
mod judged;
mod rubrics;
mod summaries;
mod test_methods;
mod told;
mod unified;

use std::sync::Arc;

use tokio::time::Instant;

use crate::config::{Judging, Limits};
use crate::embeddings::Embedder;
use crate::error::{Error, Kind};
use crate::evaluate::judged::{Asking, Texts, fields};
use crate::judge::roster::Roster;
use crate::metrics::meteor::WordNet;
use crate::telemetry;
use crate::wire::v1::evaluate_instances_request::MetricInputs;
use crate::wire::v1::evaluate_instances_response::EvaluationResults;
use crate::wire::v1::*;
use crate::workers::Workers;

/// Answers requests. One for the whole process.
#[derive(Debug)]
pub struct Evaluator {
    workers: Workers,
    limits: Limits,
    roster: Roster,
    judging: Judging,
    synonyms: Option<Arc<WordNet>>,
    embedder: Option<Embedder>,
}

/// What holds for all metrics of one request.
#[derive(Debug, Default)]
struct Call {
    autorater: Option<AutoraterConfig>,
    details: bool,
    deadline: Option<Instant>,
}

impl Evaluator {
    /// An evaluator with its own CPU workers, as many as `threads`.
    pub fn start(limits: Limits, threads: usize, roster: Roster, judging: Judging) -> std::io::Result<Self> {
        let workers = Workers::start(threads)?;
        Ok(Self { workers, limits, roster, judging, synonyms: None, embedder: None })
    }

    /// The same with synonyms for METEOR, if there are any.
    #[must_use]
    pub fn with_synonyms(self, synonyms: Option<WordNet>) -> Self {
        Self { synonyms: synonyms.map(Arc::new), ..self }
    }

    /// The same with embeddings for cosine, if there is an endpoint that gives them.
    #[must_use]
    pub fn with_embeddings(self, embedder: Option<Embedder>) -> Self {
        Self { embedder, ..self }
    }

    /// The judges that are configured.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// One value per instance, in order; or, in the unified form, one result per metric, in order. `deadline` is
    /// when the caller stops waiting.
    pub async fn evaluate(
        &self,
        request: EvaluateInstancesRequest,
        deadline: Option<Instant>,
    ) -> Result<EvaluateInstancesResponse, Error> {
        let EvaluateInstancesRequest {
            metric_inputs,
            metrics,
            instance,
            metric_sources,
            include_details,
            autorater_config,
            location: _,
        } = request;
        let call = Call { autorater: autorater_config, details: include_details, deadline };
        let unified = !(metrics.is_empty() && metric_sources.is_empty());
        match metric_inputs {
            Some(_) if unified => Err(Error::bad_request(
                "metrics",
                "is set beside a metric's input; send one of the two forms",
            )),
            Some(inputs) => {
                let metric: &'static str = (&inputs).into();
                let name = metric.strip_suffix("_input").unwrap_or(metric);
                // Boxed: the arms together are large, and each layer around them would hold them again on its stack.
                let results =
                    telemetry::evaluation::watch(name, Box::pin(self.metric(inputs, &call)), told::tell)
                        .await;
                let results = results.map_err(|error| error.within(metric))?;
                Ok(EvaluateInstancesResponse { evaluation_results: Some(results), ..Default::default() })
            }
            None if unified => Ok(EvaluateInstancesResponse {
                metric_results: self.unified(metrics, metric_sources, instance, &call).await?,
                ..Default::default()
            }),
            None => Err(Error::bad_request(
                "metric_inputs",
                "is not set; the request names no metric, such as rouge_input or exact_match_input, and no metrics",
            )),
        }
    }

    fn asking_of(&self, call: &Call) -> Result<Asking<'_>, Error> {
        self.asking(call.autorater.as_ref(), call.deadline, call.details)
    }

    async fn metric(&self, inputs: MetricInputs, call: &Call) -> Result<EvaluationResults, Error> {
        use EvaluationResults as Results;
        let details = call.details;
        Ok(match inputs {
            MetricInputs::ExactMatchInput(input) => {
                Results::ExactMatchResults(self.exact_match(input).await?)
            }
            MetricInputs::BleuInput(input) => Results::BleuResults(self.bleu(input, details).await?),
            MetricInputs::RougeInput(input) => Results::RougeResults(self.rouge(input, details).await?),
            MetricInputs::FluencyInput(input) => {
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self.score_by_rubric(self.rubric("fluency")?, &texts, false, &asking).await?;
                Results::FluencyResult(FluencyResult::of(grade, &asking))
            }
            MetricInputs::CoherenceInput(input) => {
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self.score_by_rubric(self.rubric("coherence")?, &texts, false, &asking).await?;
                Results::CoherenceResult(CoherenceResult::of(grade, &asking))
            }
            MetricInputs::SummarizationQualityInput(input) => {
                let reference = input.metric_spec.is_some_and(|spec| spec.use_reference);
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self
                    .score_by_rubric(self.rubric("summarization_quality")?, &texts, reference, &asking)
                    .await?;
                Results::SummarizationQualityResult(SummarizationQualityResult::of(grade, &asking))
            }
            MetricInputs::SafetyInput(input) => {
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self.score_by_rubric(self.rubric("safety")?, &texts, false, &asking).await?;
                Results::SafetyResult(SafetyResult::of(grade, &asking))
            }
            MetricInputs::GroundednessInput(input) => {
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade =
                    self.score_by_rubric(self.rubric("groundedness")?, &texts, false, &asking).await?;
                Results::GroundednessResult(GroundednessResult::of(grade, &asking))
            }
            MetricInputs::QuestionAnsweringQualityInput(input) => {
                let reference = input.metric_spec.is_some_and(|spec| spec.use_reference);
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self
                    .score_by_rubric(self.rubric("question_answering_quality")?, &texts, reference, &asking)
                    .await?;
                Results::QuestionAnsweringQualityResult(QuestionAnsweringQualityResult::of(grade, &asking))
            }
            MetricInputs::FulfillmentInput(input) => {
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self.score_by_rubric(self.rubric("fulfillment")?, &texts, false, &asking).await?;
                Results::FulfillmentResult(FulfillmentResult::of(grade, &asking))
            }
            MetricInputs::SummarizationHelpfulnessInput(input) => {
                let reference = input.metric_spec.is_some_and(|spec| spec.use_reference);
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self
                    .score_by_rubric(self.rubric("summarization_helpfulness")?, &texts, reference, &asking)
                    .await?;
                Results::SummarizationHelpfulnessResult(SummarizationHelpfulnessResult::of(grade, &asking))
            }
            MetricInputs::SummarizationVerbosityInput(input) => {
                let reference = input.metric_spec.is_some_and(|spec| spec.use_reference);
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self
                    .score_by_rubric(self.rubric("summarization_verbosity")?, &texts, reference, &asking)
                    .await?;
                Results::SummarizationVerbosityResult(SummarizationVerbosityResult::of(grade, &asking))
            }
            MetricInputs::QuestionAnsweringRelevanceInput(input) => {
                let reference = input.metric_spec.is_some_and(|spec| spec.use_reference);
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self
                    .score_by_rubric(self.rubric("question_answering_relevance")?, &texts, reference, &asking)
                    .await?;
                Results::QuestionAnsweringRelevanceResult(QuestionAnsweringRelevanceResult::of(
                    grade, &asking,
                ))
            }
            MetricInputs::QuestionAnsweringHelpfulnessInput(input) => {
                let reference = input.metric_spec.is_some_and(|spec| spec.use_reference);
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self
                    .score_by_rubric(
                        self.rubric("question_answering_helpfulness")?,
                        &texts,
                        reference,
                        &asking,
                    )
                    .await?;
                Results::QuestionAnsweringHelpfulnessResult(QuestionAnsweringHelpfulnessResult::of(
                    grade, &asking,
                ))
            }
            MetricInputs::QuestionAnsweringCorrectnessInput(input) => {
                let reference = input.metric_spec.is_some_and(|spec| spec.use_reference);
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self
                    .score_by_rubric(
                        self.rubric("question_answering_correctness")?,
                        &texts,
                        reference,
                        &asking,
                    )
                    .await?;
                Results::QuestionAnsweringCorrectnessResult(QuestionAnsweringCorrectnessResult::of(
                    grade, &asking,
                ))
            }
            MetricInputs::ToolCallValidInput(input) => {
                Results::ToolCallValidResults(self.tool_call_valid(input).await?)
            }
            MetricInputs::ToolNameMatchInput(input) => {
                Results::ToolNameMatchResults(self.tool_name_match(input).await?)
            }
            MetricInputs::ToolParameterKeyMatchInput(input) => {
                Results::ToolParameterKeyMatchResults(self.tool_parameter_key_match(input, details).await?)
            }
            MetricInputs::ToolParameterKvMatchInput(input) => {
                Results::ToolParameterKvMatchResults(self.tool_parameter_kv_match(input, details).await?)
            }
            MetricInputs::PairwiseSummarizationQualityInput(input) => {
                let reference = input.metric_spec.is_some_and(|spec| spec.use_reference);
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self
                    .choose_by_rubric(
                        self.rubric("pairwise_summarization_quality")?,
                        &texts,
                        reference,
                        &asking,
                    )
                    .await?;
                Results::PairwiseSummarizationQualityResult(PairwiseSummarizationQualityResult::of(
                    grade, &asking,
                ))
            }
            MetricInputs::PairwiseQuestionAnsweringQualityInput(input) => {
                let reference = input.metric_spec.is_some_and(|spec| spec.use_reference);
                let (texts, asking) = (fields(input.instance)?, self.asking_of(call)?);
                let grade = self
                    .choose_by_rubric(
                        self.rubric("pairwise_question_answering_quality")?,
                        &texts,
                        reference,
                        &asking,
                    )
                    .await?;
                Results::PairwiseQuestionAnsweringQualityResult(PairwiseQuestionAnsweringQualityResult::of(
                    grade, &asking,
                ))
            }
            MetricInputs::PointwiseMetricInput(input) => {
                let (texts, asking) = (Texts::of_pointwise(input.instance)?, self.asking_of(call)?);
                let spec = input.metric_spec.unwrap_or_default();
                Results::PointwiseMetricResult(self.pointwise_metric(&spec, &texts, asking).await?)
            }
            MetricInputs::PairwiseMetricInput(input) => {
                let (texts, asking) = (Texts::of_pairwise(input.instance)?, self.asking_of(call)?);
                let spec = input.metric_spec.unwrap_or_default();
                Results::PairwiseMetricResult(self.pairwise_metric(&spec, &texts, asking).await?)
            }
            MetricInputs::CometInput(_) | MetricInputs::MetricxInput(_) => return Err(no_scorer()),
            MetricInputs::TrajectoryExactMatchInput(input) => {
                Results::TrajectoryExactMatchResults(self.trajectory_exact_match(input).await?)
            }
            MetricInputs::TrajectoryInOrderMatchInput(input) => {
                Results::TrajectoryInOrderMatchResults(self.trajectory_in_order_match(input).await?)
            }
            MetricInputs::TrajectoryAnyOrderMatchInput(input) => {
                Results::TrajectoryAnyOrderMatchResults(self.trajectory_any_order_match(input).await?)
            }
            MetricInputs::TrajectoryPrecisionInput(input) => {
                Results::TrajectoryPrecisionResults(self.trajectory_precision(input, details).await?)
            }
            MetricInputs::TrajectoryRecallInput(input) => {
                Results::TrajectoryRecallResults(self.trajectory_recall(input, details).await?)
            }
            MetricInputs::TrajectorySingleToolUseInput(input) => {
                Results::TrajectorySingleToolUseResults(self.trajectory_single_tool_use(input).await?)
            }
            MetricInputs::RubricBasedInstructionFollowingInput(input) => {
                let (texts, asking) = (Texts::of_rubric_based(input.instance)?, self.asking_of(call)?);
                let result = self.instruction_following(&texts, &asking).await?;
                Results::RubricBasedInstructionFollowingResult(result)
            }
            MetricInputs::StringCheckInput(input) => {
                Results::StringCheckResults(self.string_check(input).await?)
            }
            MetricInputs::TextSimilarityInput(input) => {
                Results::TextSimilarityResults(self.text_similarity(input, call).await?)
            }
            MetricInputs::LabelModelInput(input) => {
                Results::LabelModelResult(self.label_model(input, call).await?)
            }
            MetricInputs::ScoreModelInput(input) => {
                Results::ScoreModelResult(self.score_model(input, call).await?)
            }
            MetricInputs::MultiGraderInput(input) => {
                Results::MultiGraderResult(self.multi_grader(input, call).await?)
            }
            MetricInputs::KeywordMatchInput(input) => {
                Results::KeywordMatchResults(self.keyword_match(input).await?)
            }
            MetricInputs::SemanticSimilarityInput(input) => {
                Results::SemanticSimilarityResults(self.semantic_similarity(input, call).await?)
            }
            MetricInputs::CompareMeaningInput(input) => {
                Results::CompareMeaningResult(self.compare_meaning(input, call).await?)
            }
            MetricInputs::GeneralQualityInput(input) => {
                Results::GeneralQualityResult(self.general_quality(input, call).await?)
            }
            MetricInputs::SummarizationAccuracyInput(input) => {
                Results::SummarizationAccuracyResult(self.summarization_accuracy(input, call).await?)
            }
            MetricInputs::SummarizationAdherenceInput(input) => {
                Results::SummarizationAdherenceResult(self.summarization_adherence(input, call).await?)
            }
            MetricInputs::SummarizationCompletenessInput(input) => {
                Results::SummarizationCompletenessResult(self.summarization_completeness(input, call).await?)
            }
        })
    }
}

fn no_scorer() -> Error {
    Error::new(
        Kind::Unimplemented,
        "COMET and MetricX need a neural scorer, which this service does not run; bleu_input and rouge_input \
         are computed here",
    )
}
