//! ONE exhaustive match over the request's oneof: the table of contents of the service.
//!
//! An arm names its metric and where its work is done: `computed.rs` (texts to the CPU workers) or the judges.
//! Every door (gRPC under three names, command line) ends here.

mod computed;
mod unified;

use crate::config::Limits;
use crate::error::{Error, Kind};
use crate::wire::v1::evaluate_instances_request::MetricInputs;
use crate::wire::v1::evaluate_instances_response::EvaluationResults;
use crate::wire::v1::{EvaluateInstancesRequest, EvaluateInstancesResponse};
use crate::workers::Workers;

/// Answers requests. One for the whole process.
#[derive(Debug)]
pub struct Evaluator {
    workers: Workers,
    limits: Limits,
}

impl Evaluator {
    /// An evaluator with its own CPU workers, as many as `threads`.
    pub fn start(limits: Limits, threads: usize) -> std::io::Result<Self> {
        Ok(Self { workers: Workers::start(threads)?, limits })
    }

    /// One value per instance, in order; or, in the unified form, one result per metric, in order.
    pub async fn evaluate(
        &self,
        request: EvaluateInstancesRequest,
    ) -> Result<EvaluateInstancesResponse, Error> {
        let EvaluateInstancesRequest {
            metric_inputs,
            metrics,
            instance,
            metric_sources,
            include_details,
            ..
        } = request;
        let unified = !(metrics.is_empty() && metric_sources.is_empty());
        match metric_inputs {
            Some(_) if unified => Err(Error::bad_request(
                "metrics",
                "is set beside a metric's input; send one of the two forms",
            )),
            Some(inputs) => {
                let metric: &'static str = (&inputs).into();
                let results =
                    self.metric(inputs, include_details).await.map_err(|error| error.within(metric))?;
                Ok(EvaluateInstancesResponse { evaluation_results: Some(results), ..Default::default() })
            }
            None if unified => Ok(EvaluateInstancesResponse {
                metric_results: self.unified(metrics, metric_sources, instance, include_details).await?,
                ..Default::default()
            }),
            None => Err(Error::bad_request(
                "metric_inputs",
                "is not set; the request names no metric, such as rouge_input or exact_match_input, and no metrics",
            )),
        }
    }

    async fn metric(&self, inputs: MetricInputs, details: bool) -> Result<EvaluationResults, Error> {
        use EvaluationResults as Results;
        Ok(match inputs {
            MetricInputs::ExactMatchInput(input) => {
                Results::ExactMatchResults(self.exact_match(input).await?)
            }
            MetricInputs::BleuInput(input) => Results::BleuResults(self.bleu(input, details).await?),
            MetricInputs::RougeInput(input) => Results::RougeResults(self.rouge(input, details).await?),
            MetricInputs::FluencyInput(_)
            | MetricInputs::CoherenceInput(_)
            | MetricInputs::SummarizationQualityInput(_)
            | MetricInputs::SafetyInput(_)
            | MetricInputs::GroundednessInput(_)
            | MetricInputs::QuestionAnsweringQualityInput(_)
            | MetricInputs::FulfillmentInput(_)
            | MetricInputs::SummarizationHelpfulnessInput(_)
            | MetricInputs::SummarizationVerbosityInput(_)
            | MetricInputs::QuestionAnsweringRelevanceInput(_)
            | MetricInputs::QuestionAnsweringHelpfulnessInput(_)
            | MetricInputs::QuestionAnsweringCorrectnessInput(_) => return Err(no_judge()),
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
            MetricInputs::PairwiseSummarizationQualityInput(_)
            | MetricInputs::PairwiseQuestionAnsweringQualityInput(_)
            | MetricInputs::PointwiseMetricInput(_)
            | MetricInputs::PairwiseMetricInput(_) => return Err(no_judge()),
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
            MetricInputs::RubricBasedInstructionFollowingInput(_) => return Err(no_judge()),
        })
    }
}

fn no_judge() -> Error {
    Error::new(
        Kind::FailedPrecondition,
        "this metric asks a judge LLM and none is configured; computed metrics such as rouge_input need none",
    )
}

fn no_scorer() -> Error {
    Error::new(
        Kind::Unimplemented,
        "COMET and MetricX need a neural scorer, which this service does not run; bleu_input and rouge_input \
         are computed here",
    )
}
