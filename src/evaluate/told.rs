//! What traces, metrics and events are told of results.

use crate::evaluate::judged::narrow;
use crate::telemetry::evaluation::Told;
use crate::wire::v1::evaluate_instances_response::EvaluationResults;
use crate::wire::v1::*;

/// Calls back with each result of an arm, in order.
pub(super) fn tell<'r>(results: &'r EvaluationResults, each: &mut dyn FnMut(Told<'r>)) {
    use EvaluationResults as Results;
    macro_rules! values {
        ($values:expr) => {
            $values.iter().for_each(|value| each(Told { score: value.score, ..Told::default() }))
        };
    }
    macro_rules! grade {
        ($result:expr) => {
            each(Told { score: $result.score, explanation: &$result.explanation, ..Told::default() })
        };
    }
    macro_rules! verdict {
        ($result:expr, $explanation:expr) => {
            each(Told {
                score: $result.score.map(narrow),
                label: passed($result.passed),
                explanation: $explanation,
            })
        };
    }
    macro_rules! verdicts {
        ($values:expr) => {
            $values.iter().for_each(|value| verdict!(value, ""))
        };
    }
    macro_rules! comparison {
        ($result:expr) => {
            each(Told {
                score: share_of_win($result.pairwise_choice()),
                label: $result.pairwise_choice().as_str_name(),
                explanation: &$result.explanation,
            })
        };
    }
    match results {
        Results::ExactMatchResults(results) => values!(results.exact_match_metric_values),
        Results::BleuResults(results) => values!(results.bleu_metric_values),
        Results::RougeResults(results) => values!(results.rouge_metric_values),
        Results::ToolCallValidResults(results) => values!(results.tool_call_valid_metric_values),
        Results::ToolNameMatchResults(results) => values!(results.tool_name_match_metric_values),
        Results::ToolParameterKeyMatchResults(results) => {
            values!(results.tool_parameter_key_match_metric_values)
        }
        Results::ToolParameterKvMatchResults(results) => {
            values!(results.tool_parameter_kv_match_metric_values)
        }
        Results::TrajectoryExactMatchResults(results) => {
            values!(results.trajectory_exact_match_metric_values)
        }
        Results::TrajectoryInOrderMatchResults(results) => {
            values!(results.trajectory_in_order_match_metric_values)
        }
        Results::TrajectoryAnyOrderMatchResults(results) => {
            values!(results.trajectory_any_order_match_metric_values)
        }
        Results::TrajectoryPrecisionResults(results) => values!(results.trajectory_precision_metric_values),
        Results::TrajectoryRecallResults(results) => values!(results.trajectory_recall_metric_values),
        Results::TrajectorySingleToolUseResults(results) => {
            values!(results.trajectory_single_tool_use_metric_values)
        }
        Results::FluencyResult(result) => grade!(result),
        Results::CoherenceResult(result) => grade!(result),
        Results::SummarizationQualityResult(result) => grade!(result),
        Results::SafetyResult(result) => grade!(result),
        Results::GroundednessResult(result) => grade!(result),
        Results::QuestionAnsweringQualityResult(result) => grade!(result),
        Results::FulfillmentResult(result) => grade!(result),
        Results::SummarizationHelpfulnessResult(result) => grade!(result),
        Results::SummarizationVerbosityResult(result) => grade!(result),
        Results::QuestionAnsweringRelevanceResult(result) => grade!(result),
        Results::QuestionAnsweringHelpfulnessResult(result) => grade!(result),
        Results::QuestionAnsweringCorrectnessResult(result) => grade!(result),
        Results::PointwiseMetricResult(result) => grade!(result),
        Results::PairwiseSummarizationQualityResult(result) => comparison!(result),
        Results::PairwiseQuestionAnsweringQualityResult(result) => comparison!(result),
        Results::PairwiseMetricResult(result) => comparison!(result),
        Results::CometResult(result) => each(Told { score: result.score, ..Told::default() }),
        Results::MetricxResult(result) => each(Told { score: result.score, ..Told::default() }),
        Results::RubricBasedInstructionFollowingResult(result) => {
            each(Told { score: result.score, ..Told::default() });
        }
        Results::StringCheckResults(results) => verdicts!(results.string_check_metric_values),
        Results::TextSimilarityResults(results) => verdicts!(results.text_similarity_metric_values),
        Results::KeywordMatchResults(results) => verdicts!(results.keyword_match_metric_values),
        Results::SemanticSimilarityResults(results) => verdicts!(results.semantic_similarity_metric_values),
        Results::LabelModelResult(result) => verdict!(result, &result.explanation),
        Results::ScoreModelResult(result) => verdict!(result, &result.explanation),
        Results::CompareMeaningResult(result) => verdict!(result, &result.explanation),
        Results::GeneralQualityResult(result) => verdict!(result, ""),
        Results::MultiGraderResult(result) => each(unjudged(result.score)),
        Results::SummarizationAccuracyResult(result) => each(unjudged(result.score)),
        Results::SummarizationAdherenceResult(result) => each(unjudged(result.score)),
        Results::SummarizationCompletenessResult(result) => each(unjudged(result.score)),
    }
}

/// A score and nothing beside it.
fn unjudged<'r>(score: Option<f64>) -> Told<'r> {
    Told { score: score.map(narrow), ..Told::default() }
}

/// Whether a score is enough, in a word.
fn passed(passed: Option<bool>) -> &'static str {
    match passed {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "",
    }
}

/// As [`tell`], of one metric of the unified form.
pub(super) fn tell_one<'r>(result: &'r MetricResult, each: &mut dyn FnMut(Told<'r>)) {
    let explanation = result.explanation.as_deref().unwrap_or_default();
    each(Told { score: result.score, explanation, ..Told::default() });
}

/// A comparison as a number: 1 = the candidate is better, 0 = the baseline is, 0.5 = a tie, so that the mean is a
/// win rate.
pub(super) fn share_of_win(choice: PairwiseChoice) -> Option<f32> {
    match choice {
        PairwiseChoice::Candidate => Some(1.0),
        PairwiseChoice::Tie => Some(0.5),
        PairwiseChoice::Baseline => Some(0.0),
        PairwiseChoice::Unspecified => None,
    }
}
