//! The computed metrics' arms: read the spec, hand the texts to the workers, write the values.
//! `f64` becomes the wire's `float` only here.

use crate::error::{Error, Kind, quoted};
use crate::evaluate::Evaluator;
use crate::metrics::ratio::Ratio;
use crate::metrics::{Stop, Unscored, bleu, exact_match, rouge, tool_call, trajectory};
use crate::wire::v1::*;
use crate::wire::{Pair, required};

impl Evaluator {
    pub(super) async fn exact_match(&self, input: ExactMatchInput) -> Result<ExactMatchResults, Error> {
        let options = exact_match_options(&input.metric_spec.unwrap_or_default())?;
        let score = move |prediction: &str, reference: &str, _: Stop<'_>| {
            Ok(ExactMatchMetricValue { score: wire(exact_match::score(prediction, reference, &options)) })
        };
        Ok(ExactMatchResults { exact_match_metric_values: self.score_pairs(input.instances, score).await? })
    }

    pub(super) async fn bleu(&self, input: BleuInput, details: bool) -> Result<BleuResults, Error> {
        let options = bleu_options(&input.metric_spec.unwrap_or_default())?;
        let score = move |prediction: &str, reference: &str, stop: Stop<'_>| {
            let score = bleu::score_until(prediction, reference, &options, stop)?;
            Ok(BleuMetricValue { score: wire(score.value), details: details.then(|| bleu_details(score)) })
        };
        Ok(BleuResults { bleu_metric_values: self.score_pairs(input.instances, score).await? })
    }

    pub(super) async fn rouge(&self, input: RougeInput, details: bool) -> Result<RougeResults, Error> {
        let options = rouge_options(&input.metric_spec.unwrap_or_default())?;
        let score = move |prediction: &str, reference: &str, stop: Stop<'_>| {
            let score = rouge::score_until(prediction, reference, &options, stop)?;
            Ok(RougeMetricValue {
                score: wire(score.f_measure),
                details: details.then(|| rouge_details(&score)),
            })
        };
        Ok(RougeResults { rouge_metric_values: self.score_pairs(input.instances, score).await? })
    }

    pub(super) async fn tool_call_valid(
        &self,
        input: ToolCallValidInput,
    ) -> Result<ToolCallValidResults, Error> {
        let score = |prediction: &str, _: &str, stop: Stop<'_>| {
            Ok(ToolCallValidMetricValue { score: wire(tool_call::valid(prediction, stop)?) })
        };
        Ok(ToolCallValidResults {
            tool_call_valid_metric_values: self.score_pairs(input.instances, score).await?,
        })
    }

    pub(super) async fn tool_name_match(
        &self,
        input: ToolNameMatchInput,
    ) -> Result<ToolNameMatchResults, Error> {
        let score = |prediction: &str, reference: &str, stop: Stop<'_>| {
            Ok(ToolNameMatchMetricValue { score: wire(tool_call::name_match(prediction, reference, stop)?) })
        };
        Ok(ToolNameMatchResults {
            tool_name_match_metric_values: self.score_pairs(input.instances, score).await?,
        })
    }

    pub(super) async fn tool_parameter_key_match(
        &self,
        input: ToolParameterKeyMatchInput,
        details: bool,
    ) -> Result<ToolParameterKeyMatchResults, Error> {
        let score = move |prediction: &str, reference: &str, stop: Stop<'_>| {
            let ratio = tool_call::parameter_key_match(prediction, reference, stop)?;
            Ok(ToolParameterKeyMatchMetricValue {
                score: wire(ratio.value()),
                details: details.then(|| ratio_details(ratio)),
            })
        };
        let tool_parameter_key_match_metric_values = self.score_pairs(input.instances, score).await?;
        Ok(ToolParameterKeyMatchResults { tool_parameter_key_match_metric_values })
    }

    pub(super) async fn tool_parameter_kv_match(
        &self,
        input: ToolParameterKvMatchInput,
        details: bool,
    ) -> Result<ToolParameterKvMatchResults, Error> {
        let strict = input.metric_spec.unwrap_or_default().use_strict_string_match;
        let score = move |prediction: &str, reference: &str, stop: Stop<'_>| {
            let ratio = tool_call::parameter_kv_match(prediction, reference, strict, stop)?;
            Ok(ToolParameterKvMatchMetricValue {
                score: wire(ratio.value()),
                details: details.then(|| ratio_details(ratio)),
            })
        };
        let tool_parameter_kv_match_metric_values = self.score_pairs(input.instances, score).await?;
        Ok(ToolParameterKvMatchResults { tool_parameter_kv_match_metric_values })
    }

    pub(super) async fn trajectory_exact_match(
        &self,
        input: TrajectoryExactMatchInput,
    ) -> Result<TrajectoryExactMatchResults, Error> {
        let instances = input.instances.into_iter().map(|i| (i.predicted_trajectory, i.reference_trajectory));
        let score =
            |predicted: &[trajectory::Call<'_>], reference: &[trajectory::Call<'_>], stop: Stop<'_>| {
                Ok(TrajectoryExactMatchMetricValue {
                    score: wire(trajectory::exact_match(predicted, reference, stop)?),
                })
            };
        let trajectory_exact_match_metric_values =
            self.score_trajectories(instances.collect(), score).await?;
        Ok(TrajectoryExactMatchResults { trajectory_exact_match_metric_values })
    }

    pub(super) async fn trajectory_in_order_match(
        &self,
        input: TrajectoryInOrderMatchInput,
    ) -> Result<TrajectoryInOrderMatchResults, Error> {
        let instances = input.instances.into_iter().map(|i| (i.predicted_trajectory, i.reference_trajectory));
        let score =
            |predicted: &[trajectory::Call<'_>], reference: &[trajectory::Call<'_>], stop: Stop<'_>| {
                let score = trajectory::in_order_match(predicted, reference, stop)?;
                Ok(TrajectoryInOrderMatchMetricValue { score: wire(score) })
            };
        let trajectory_in_order_match_metric_values =
            self.score_trajectories(instances.collect(), score).await?;
        Ok(TrajectoryInOrderMatchResults { trajectory_in_order_match_metric_values })
    }

    pub(super) async fn trajectory_any_order_match(
        &self,
        input: TrajectoryAnyOrderMatchInput,
    ) -> Result<TrajectoryAnyOrderMatchResults, Error> {
        let instances = input.instances.into_iter().map(|i| (i.predicted_trajectory, i.reference_trajectory));
        let score =
            |predicted: &[trajectory::Call<'_>], reference: &[trajectory::Call<'_>], stop: Stop<'_>| {
                let score = trajectory::any_order_match(predicted, reference, stop)?;
                Ok(TrajectoryAnyOrderMatchMetricValue { score: wire(score) })
            };
        let trajectory_any_order_match_metric_values =
            self.score_trajectories(instances.collect(), score).await?;
        Ok(TrajectoryAnyOrderMatchResults { trajectory_any_order_match_metric_values })
    }

    pub(super) async fn trajectory_precision(
        &self,
        input: TrajectoryPrecisionInput,
        details: bool,
    ) -> Result<TrajectoryPrecisionResults, Error> {
        let instances = input.instances.into_iter().map(|i| (i.predicted_trajectory, i.reference_trajectory));
        let score =
            move |predicted: &[trajectory::Call<'_>], reference: &[trajectory::Call<'_>], stop: Stop<'_>| {
                let ratio = trajectory::precision(predicted, reference, stop)?;
                Ok(TrajectoryPrecisionMetricValue {
                    score: wire(ratio.value()),
                    details: details.then(|| ratio_details(ratio)),
                })
            };
        let trajectory_precision_metric_values = self.score_trajectories(instances.collect(), score).await?;
        Ok(TrajectoryPrecisionResults { trajectory_precision_metric_values })
    }

    pub(super) async fn trajectory_recall(
        &self,
        input: TrajectoryRecallInput,
        details: bool,
    ) -> Result<TrajectoryRecallResults, Error> {
        let instances = input.instances.into_iter().map(|i| (i.predicted_trajectory, i.reference_trajectory));
        let score =
            move |predicted: &[trajectory::Call<'_>], reference: &[trajectory::Call<'_>], stop: Stop<'_>| {
                let ratio = trajectory::recall(predicted, reference, stop)?;
                Ok(TrajectoryRecallMetricValue {
                    score: wire(ratio.value()),
                    details: details.then(|| ratio_details(ratio)),
                })
            };
        let trajectory_recall_metric_values = self.score_trajectories(instances.collect(), score).await?;
        Ok(TrajectoryRecallResults { trajectory_recall_metric_values })
    }

    pub(super) async fn trajectory_single_tool_use(
        &self,
        input: TrajectorySingleToolUseInput,
    ) -> Result<TrajectorySingleToolUseResults, Error> {
        let tool_name = required(input.metric_spec.unwrap_or_default().tool_name, "metric_spec.tool_name")?;
        let instances =
            input.instances.into_iter().map(|i| (i.predicted_trajectory, Some(Trajectory::default())));
        let score = move |predicted: &[trajectory::Call<'_>], _: &[trajectory::Call<'_>], _: Stop<'_>| {
            Ok(TrajectorySingleToolUseMetricValue {
                score: wire(trajectory::single_tool_use(predicted, &tool_name)),
            })
        };
        let trajectory_single_tool_use_metric_values =
            self.score_trajectories(instances.collect(), score).await?;
        Ok(TrajectorySingleToolUseResults { trajectory_single_tool_use_metric_values })
    }

    pub(super) async fn score_pairs<I, V, F>(&self, instances: Vec<I>, score: F) -> Result<Vec<V>, Error>
    where
        I: Pair + Send + Sync + 'static,
        V: Send + 'static,
        F: Fn(&str, &str, Stop<'_>) -> Result<V, Unscored> + Send + Sync + 'static,
    {
        self.check_count(instances.len())?;
        let text_bytes = self.limits.text_bytes;
        self.workers
            .score_each(instances, Pair::bytes, move |index, instance, stop| {
                let text = |value, field| within_limit(required(value, field)?, field, text_bytes);
                let score = || {
                    let prediction = text(instance.prediction(), "prediction")?;
                    let reference = text(instance.reference(), "reference")?;
                    score(prediction, reference, stop).map_err(Error::from)
                };
                score().map_err(|error: Error| error.within(format_args!("instances[{index}]")))
            })
            .await
    }

    async fn score_trajectories<V, F>(
        &self,
        instances: Vec<(Option<Trajectory>, Option<Trajectory>)>,
        score: F,
    ) -> Result<Vec<V>, Error>
    where
        V: Send + 'static,
        F: Fn(&[trajectory::Call<'_>], &[trajectory::Call<'_>], Stop<'_>) -> Result<V, Unscored>
            + Send
            + Sync
            + 'static,
    {
        self.check_count(instances.len())?;
        let text_bytes = self.limits.text_bytes;
        let bytes = |(predicted, reference): &(Option<Trajectory>, Option<Trajectory>)| {
            trajectory_bytes(predicted.as_ref()) + trajectory_bytes(reference.as_ref())
        };
        self.workers
            .score_each(instances, bytes, move |index, (predicted, reference), stop| {
                let score = || {
                    // The official client leaves an empty prediction out.
                    let predicted = predicted.as_ref().map_or(&[][..], |trajectory| &trajectory.tool_calls);
                    let reference = &required(reference.as_ref(), "reference_trajectory")?.tool_calls;
                    let predicted =
                        calls(predicted, text_bytes).map_err(|error| error.within("predicted_trajectory"))?;
                    let reference =
                        calls(reference, text_bytes).map_err(|error| error.within("reference_trajectory"))?;
                    score(&predicted, &reference, stop).map_err(Error::from)
                };
                score().map_err(|error: Error| error.within(format_args!("instances[{index}]")))
            })
            .await
    }

    pub(super) fn check_count(&self, instances: usize) -> Result<(), Error> {
        let limit = self.limits.instances;
        match instances {
            0 => Err(Error::bad_request("instances", "is empty; at least one instance is needed")),
            found if found > limit => Err(Error {
                field: String::from("instances"),
                ..Error::new(
                    Kind::TooLarge,
                    format!("has {found} instances, over limits.instances = {limit}; split the request"),
                )
            }),
            _ => Ok(()),
        }
    }
}

pub(super) fn within_limit<'a>(text: &'a str, field: &str, limit: usize) -> Result<&'a str, Error> {
    if text.len() <= limit {
        return Ok(text);
    }
    Err(Error {
        field: String::from(field),
        ..Error::new(Kind::TooLarge, format!("has {} bytes, over limits.text_bytes = {limit}", text.len()))
    })
}

fn calls(tool_calls: &[ToolCall], text_bytes: usize) -> Result<Vec<trajectory::Call<'_>>, Error> {
    let read = |call: &'_ ToolCall| -> Result<(), Error> {
        within_limit(required(call.tool_name.as_deref(), "tool_name")?, "tool_name", text_bytes)?;
        within_limit(call.tool_input.as_deref().unwrap_or_default(), "tool_input", text_bytes)?;
        Ok(())
    };
    tool_calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            read(call).map_err(|error| error.within(format_args!("tool_calls[{index}]")))?;
            Ok(trajectory::Call {
                name: call.tool_name.as_deref().unwrap_or_default(),
                input: call.tool_input.as_deref(),
            })
        })
        .collect()
}

fn trajectory_bytes(trajectory: Option<&Trajectory>) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    trajectory.map_or(0, |trajectory| {
        trajectory.tool_calls.iter().map(|call| text(&call.tool_name) + text(&call.tool_input) + 16).sum()
    })
}

/// Google's `float`: rounded once, at the very end. Present even when 0.
fn wire(score: f64) -> Option<f32> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the wire type is float; `as` rounds to nearest even"
    )]
    Some(score as f32)
}

fn count(found: u64) -> i64 {
    i64::try_from(found).unwrap_or(i64::MAX)
}

fn ratio_details(ratio: Ratio) -> RatioDetails {
    RatioDetails { matches: count(ratio.matches), total: count(ratio.total) }
}

fn rouge_details(score: &rouge::Score) -> RougeDetails {
    RougeDetails {
        precision: score.precision,
        recall: score.recall,
        f_measure: score.f_measure,
        matches: count(score.matches),
        prediction_units: count(score.prediction_units),
        reference_units: count(score.reference_units),
    }
}

fn bleu_details(score: bleu::Score) -> BleuDetails {
    BleuDetails {
        precisions: score.precisions,
        matches: score.matches.into_iter().map(count).collect(),
        totals: score.totals.into_iter().map(count).collect(),
        brevity_penalty: score.brevity_penalty,
        prediction_length: count(score.prediction_length),
        reference_length: count(score.reference_length),
    }
}

pub(super) fn exact_match_options(spec: &ExactMatchSpec) -> Result<exact_match::Options, Error> {
    let normalization = match UnicodeNormalization::try_from(spec.unicode_normalization) {
        Ok(UnicodeNormalization::Unspecified) => exact_match::Normalization::None,
        Ok(UnicodeNormalization::Nfc) => exact_match::Normalization::Nfc,
        Ok(UnicodeNormalization::Nfkc) => exact_match::Normalization::Nfkc,
        Err(unknown) => return Err(unknown_value("metric_spec.unicode_normalization", unknown.0)),
    };
    Ok(exact_match::Options {
        trim_whitespace: spec.trim_whitespace,
        ignore_case: spec.ignore_case,
        ignore_punctuation: spec.ignore_punctuation,
        normalization,
    })
}

pub(super) fn bleu_options(spec: &BleuSpec) -> Result<bleu::Options, Error> {
    let tokenizer = match BleuTokenizer::try_from(spec.tokenizer) {
        Ok(BleuTokenizer::Unspecified | BleuTokenizer::Intl) => bleu::Tokenizer::Intl,
        Ok(BleuTokenizer::BleuTokenizer13a) => bleu::Tokenizer::Mteval13a,
        Ok(BleuTokenizer::Zh) => bleu::Tokenizer::Zh,
        Ok(BleuTokenizer::Char) => bleu::Tokenizer::Char,
        Ok(BleuTokenizer::None) => bleu::Tokenizer::None,
        Err(unknown) => return Err(unknown_value("metric_spec.tokenizer", unknown.0)),
    };
    let max_order = spec.max_order.unwrap_or(4);
    let max_order =
        u8::try_from(max_order).ok().filter(|order| (1..=8).contains(order)).ok_or_else(|| {
            Error::bad_request("metric_spec.max_order", format!("{max_order} is not from 1 to 8"))
        })?;
    Ok(bleu::Options {
        tokenizer,
        use_effective_order: spec.use_effective_order,
        lowercase: spec.lowercase,
        max_order,
        smoothing: bleu::Smoothing::Exp,
    })
}

pub(super) fn rouge_options(spec: &RougeSpec) -> Result<rouge::Options, Error> {
    let kind = match spec.rouge_type.as_str() {
        "" => rouge::Kind::default(),
        name => name.parse().map_err(|unknown: rouge::UnknownKind| {
            Error::bad_request("metric_spec.rouge_type", unknown.to_string())
        })?,
    };
    let tokenizer = match RougeTokenizer::try_from(spec.tokenizer) {
        Ok(RougeTokenizer::Unspecified | RougeTokenizer::Unicode) => rouge::Tokenizer::Unicode,
        Ok(RougeTokenizer::Reference) => rouge::Tokenizer::Reference,
        Err(unknown) => return Err(unknown_value("metric_spec.tokenizer", unknown.0)),
    };
    let stemmer = match (spec.use_stemmer, spec.language.as_str()) {
        (false, _) => rouge::Stemmer::None,
        (true, "") => rouge::Stemmer::Porter,
        (true, language) => rouge::Stemmer::for_language(language).map_err(|_| {
            Error::bad_request("metric_spec.language", format!("no stemmer for {:?}", quoted(language)))
        })?,
    };
    Ok(rouge::Options { kind, tokenizer, stemmer, split_summaries: spec.split_summaries })
}

pub(super) fn unknown_value(field: &str, value: i32) -> Error {
    Error::bad_request(field, format!("{value} is none of the values that this enum has"))
}
