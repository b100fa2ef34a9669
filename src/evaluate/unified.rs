//! The unified form: one instance, a list of metrics, one result each. A metric that fails carries its own
//! error and hurts no other.

use std::borrow::Cow;

use futures_util::future::join_all;
use prost_types::Struct;
use prost_types::value::Kind as JsonKind;

use crate::error::{Error, Kind};
use crate::evaluate::judged::{Texts, choice, data_text, narrow};
use crate::evaluate::told::{share_of_win, tell_one};
use crate::evaluate::{Call, Evaluator};
use crate::judge::rubric;
use crate::judge::template::{Names, Template};
use crate::judge::verdict::Scale;
use crate::telemetry;
use crate::telemetry::names::OTHER;
use crate::wire::required;
use crate::wire::v1::computation_based_metric_spec::ComputationBasedMetricType;
use crate::wire::v1::evaluation_instance::InstanceData;
use crate::wire::v1::metric::MetricSpec;
use crate::wire::v1::metric_source::MetricSource as Source;
use crate::wire::v1::*;

impl Evaluator {
    pub(super) async fn unified(
        &self,
        metrics: Vec<Metric>,
        metric_sources: Vec<MetricSource>,
        instance: Option<EvaluationInstance>,
        call: &Call,
    ) -> Result<Vec<MetricResult>, Error> {
        let instance = required(instance, "instance")?;
        let count = metrics.len() + metric_sources.len();
        if count > self.limits.instances {
            return Err(Error {
                field: String::from("metrics"),
                ..Error::new(
                    Kind::TooLarge,
                    format!("{count} metrics are over limits.instances = {}", self.limits.instances),
                )
            });
        }
        let listed =
            metrics.into_iter().enumerate().map(|(index, metric)| (format!("metrics[{index}]"), Ok(metric)));
        let sourced = metric_sources.into_iter().enumerate().map(|(index, source)| {
            let metric = match source.metric_source {
                Some(Source::Metric(metric)) => Ok(metric),
                Some(Source::MetricResourceName(_)) => Err(Error {
                    field: String::from("metric_resource_name"),
                    ..Error::new(Kind::NotFound, "this service stores no metrics; send the metric itself")
                }),
                None => Err(Error::bad_request("metric_source", "is not set")),
            };
            (format!("metric_sources[{index}]"), metric)
        });
        let results = listed.chain(sourced).map(async |(place, metric)| {
            let result = match metric {
                Ok(metric) => {
                    let name = self.name_of(&metric);
                    let work = self.metric_of(metric, &instance, call);
                    telemetry::evaluation::watch(name, work, tell_one).await
                }
                Err(error) => Err(error),
            };
            result.unwrap_or_else(|error| failed(error.within(place)))
        });
        Ok(join_all(results).await)
    }

    /// As `rapid-eval metrics` has it: a name that callers cannot make up.
    fn name_of(&self, metric: &Metric) -> Cow<'static, str> {
        let Some(spec) = &metric.metric_spec else { return OTHER.into() };
        let kind: &'static str = spec.into();
        match spec {
            MetricSpec::PredefinedMetricSpec(spec) => {
                self.rubric(&spec.metric_spec_name).map_or(OTHER.into(), |rubric| rubric.name.clone().into())
            }
            MetricSpec::ComputationBasedMetricSpec(spec) => match spec.r#type() {
                ComputationBasedMetricType::ExactMatch => "exact_match".into(),
                ComputationBasedMetricType::Bleu => "bleu".into(),
                ComputationBasedMetricType::Rouge => "rouge".into(),
                ComputationBasedMetricType::Unspecified => OTHER.into(),
            },
            MetricSpec::ExactMatchSpec(_)
            | MetricSpec::BleuSpec(_)
            | MetricSpec::RougeSpec(_)
            | MetricSpec::PointwiseMetricSpec(_)
            | MetricSpec::PairwiseMetricSpec(_)
            | MetricSpec::LlmBasedMetricSpec(_)
            | MetricSpec::CustomCodeExecutionSpec(_) => kind.strip_suffix("_spec").unwrap_or(kind).into(),
        }
    }

    async fn metric_of(
        &self,
        metric: Metric,
        instance: &EvaluationInstance,
        call: &Call,
    ) -> Result<MetricResult, Error> {
        let Metric { metric_spec, metadata, .. } = metric;
        let spec = required(metric_spec, "metric_spec")?;
        // What an arm of its own calls `metric_spec` has the name of its kind here.
        let name: &'static str = (&spec).into();
        let range = metadata.and_then(|metadata| metadata.score_range);
        self.by_spec(spec, range, instance, call).await.map_err(|error| error.renamed("metric_spec", name))
    }

    async fn by_spec(
        &self,
        spec: MetricSpec,
        range: Option<metric_metadata::ScoreRange>,
        instance: &EvaluationInstance,
        call: &Call,
    ) -> Result<MetricResult, Error> {
        match spec {
            MetricSpec::ExactMatchSpec(spec) => self.unified_exact_match(spec, instance).await,
            MetricSpec::BleuSpec(spec) => self.unified_bleu(spec, instance, call.details).await,
            MetricSpec::RougeSpec(spec) => self.unified_rouge(spec, instance, call.details).await,
            MetricSpec::ComputationBasedMetricSpec(spec) => {
                let parameters = Parameters(spec.parameters.unwrap_or_default());
                let metric = spec.r#type.unwrap_or_default();
                match ComputationBasedMetricType::try_from(metric) {
                    Ok(ComputationBasedMetricType::ExactMatch) => {
                        self.unified_exact_match(parameters.exact_match()?, instance).await
                    }
                    Ok(ComputationBasedMetricType::Bleu) => {
                        self.unified_bleu(parameters.bleu()?, instance, call.details).await
                    }
                    Ok(ComputationBasedMetricType::Rouge) => {
                        self.unified_rouge(parameters.rouge()?, instance, call.details).await
                    }
                    Ok(ComputationBasedMetricType::Unspecified) | Err(_) => Err(Error::bad_request(
                        "computation_based_metric_spec.type",
                        format!("{metric} is none of EXACT_MATCH, BLEU, ROUGE"),
                    )),
                }
            }
            MetricSpec::PointwiseMetricSpec(spec) => {
                let texts = Texts::of_unified(instance)?;
                let asking = self.asking(call.autorater.as_ref(), call.deadline, call.details)?;
                let result = self.pointwise_metric(&spec, &texts, asking).await?;
                Ok(MetricResult {
                    score: result.score,
                    explanation: Some(result.explanation),
                    details: result.details,
                    ..Default::default()
                })
            }
            MetricSpec::PairwiseMetricSpec(spec) => {
                let texts = Texts::of_unified(instance)?;
                let asking = self.asking(call.autorater.as_ref(), call.deadline, call.details)?;
                let result = self.pairwise_metric(&spec, &texts, asking).await?;
                Ok(MetricResult {
                    score: share_of_win(result.pairwise_choice()),
                    explanation: Some(result.explanation),
                    details: result.details,
                    ..Default::default()
                })
            }
            MetricSpec::PredefinedMetricSpec(spec) => self.predefined(spec, instance, call).await,
            MetricSpec::LlmBasedMetricSpec(spec) => self.llm_based(spec, range, instance, call).await,
            MetricSpec::CustomCodeExecutionSpec(_) => Err(Error::new(
                Kind::Unimplemented,
                "code from requests is never run; use a rubric or a computed metric",
            )),
        }
    }

    /// A metric of the service's own, by name.
    async fn predefined(
        &self,
        spec: PredefinedMetricSpec,
        instance: &EvaluationInstance,
        call: &Call,
    ) -> Result<MetricResult, Error> {
        let named = self.rubric(&spec.metric_spec_name);
        let rubric = named.map_err(|error| error.within("predefined_metric_spec"))?;
        let texts = Texts::of_unified(instance)?;
        let asking = self.asking(call.autorater.as_ref(), call.deadline, call.details)?;
        match rubric.kind {
            rubric::Kind::Pointwise => {
                let grade = self.score_by_rubric(rubric, &texts, false, &asking).await?;
                Ok(MetricResult {
                    score: Some(narrow(grade.value)),
                    details: asking.details(&grade),
                    explanation: Some(grade.explanation),
                    ..Default::default()
                })
            }
            rubric::Kind::Pairwise => {
                let grade = self.choose_by_rubric(rubric, &texts, false, &asking).await?;
                Ok(MetricResult {
                    score: share_of_win(choice(grade.value)),
                    details: asking.details_of_choice(&grade),
                    explanation: Some(grade.explanation),
                    ..Default::default()
                })
            }
            rubric::Kind::RubricVerdicts => {
                let parameters = spec.metric_spec_parameters.unwrap_or_default();
                let key =
                    match parameters.fields.get("rubric_group_key").and_then(|value| value.kind.as_ref()) {
                        Some(JsonKind::StringValue(key)) => Some(key.as_str()),
                        _ => None,
                    };
                self.predefined_rubrics(rubric, key, instance, &texts, &asking).await
            }
        }
    }

    /// A metric of the caller's: a template, rubrics, or both.
    async fn llm_based(
        &self,
        spec: LlmBasedMetricSpec,
        range: Option<metric_metadata::ScoreRange>,
        instance: &EvaluationInstance,
        call: &Call,
    ) -> Result<MetricResult, Error> {
        if spec.result_parser_config.is_some_and(|config| config.parser.is_some()) {
            return Err(Error {
                field: String::from("llm_based_metric_spec.result_parser_config"),
                ..Error::new(
                    Kind::Unimplemented,
                    "code from requests is never run; the service reads verdicts itself",
                )
            });
        }
        let texts = Texts::of_unified(instance)?;
        let autorater = spec.judge_autorater_config.as_ref().or(call.autorater.as_ref());
        let asking = self.asking(autorater, call.deadline, call.details)?;
        let system = spec.system_instruction.as_deref().unwrap_or_default();
        let rubrics = self.rubrics_of(spec.rubrics_source.as_ref(), instance, &texts, &asking).await?;
        let text = spec.metric_prompt_template.as_deref().filter(|text| !text.is_empty());
        if let Some(rubrics) = rubrics {
            let template = text.map(|text| Template::parse(text, Names::Paths));
            return self.rubrics_by_template(template.as_ref(), system, rubrics, &texts, &asking).await;
        }
        let text = required(text, "llm_based_metric_spec.metric_prompt_template")?;
        let scale = match range {
            Some(metric_metadata::ScoreRange { min: Some(lo), max: Some(hi), .. }) if lo < hi => {
                Scale::Range { lo, hi }
            }
            _ => Scale::Open,
        };
        let grade = self
            .score_by_template(&Template::parse(text, Names::Paths), system, &scale, &texts, &asking)
            .await?;
        Ok(MetricResult {
            score: Some(narrow(grade.value)),
            details: asking.details(&grade),
            explanation: Some(grade.explanation),
            ..Default::default()
        })
    }

    async fn unified_exact_match(
        &self,
        spec: ExactMatchSpec,
        instance: &EvaluationInstance,
    ) -> Result<MetricResult, Error> {
        let (prediction, reference) = texts(instance)?;
        let instances = vec![ExactMatchInstance { prediction: Some(prediction), reference: Some(reference) }];
        let results = self.exact_match(ExactMatchInput { metric_spec: Some(spec), instances }).await?;
        Ok(scored(results.exact_match_metric_values.first().and_then(|value| value.score)))
    }

    async fn unified_bleu(
        &self,
        spec: BleuSpec,
        instance: &EvaluationInstance,
        details: bool,
    ) -> Result<MetricResult, Error> {
        let (prediction, reference) = texts(instance)?;
        let instances = vec![BleuInstance { prediction: Some(prediction), reference: Some(reference) }];
        let results = self.bleu(BleuInput { metric_spec: Some(spec), instances }, details).await?;
        Ok(scored(results.bleu_metric_values.first().and_then(|value| value.score)))
    }

    async fn unified_rouge(
        &self,
        spec: RougeSpec,
        instance: &EvaluationInstance,
        details: bool,
    ) -> Result<MetricResult, Error> {
        let (prediction, reference) = texts(instance)?;
        let instances = vec![RougeInstance { prediction: Some(prediction), reference: Some(reference) }];
        let results = self.rouge(RougeInput { metric_spec: Some(spec), instances }, details).await?;
        Ok(scored(results.rouge_metric_values.first().and_then(|value| value.score)))
    }
}

fn scored(score: Option<f32>) -> MetricResult {
    MetricResult { score, ..Default::default() }
}

fn failed(error: Error) -> MetricResult {
    MetricResult { error: Some(error.into()), ..Default::default() }
}

/// The answer under evaluation and what it is compared with.
fn texts(instance: &EvaluationInstance) -> Result<(String, String), Error> {
    Ok((
        text(instance.response.as_ref(), "instance.response")?,
        text(instance.reference.as_ref(), "instance.reference")?,
    ))
}

fn text(data: Option<&InstanceData>, field: &'static str) -> Result<String, Error> {
    required(data_text(data).map_err(|error| error.within(field))?, field)
}

/// The `parameters` of a computation-based metric: the fields of the metric's own spec, by name.
struct Parameters(Struct);

impl Parameters {
    fn exact_match(&self) -> Result<ExactMatchSpec, Error> {
        let mut spec = ExactMatchSpec::default();
        self.read(|name, value| {
            match (name, value) {
                ("trim_whitespace", JsonKind::BoolValue(on)) => spec.trim_whitespace = *on,
                ("ignore_case", JsonKind::BoolValue(on)) => spec.ignore_case = *on,
                ("ignore_punctuation", JsonKind::BoolValue(on)) => spec.ignore_punctuation = *on,
                _ => return false,
            }
            true
        })?;
        Ok(spec)
    }

    fn bleu(&self) -> Result<BleuSpec, Error> {
        let mut spec = BleuSpec::default();
        self.read(|name, value| {
            match (name, value) {
                ("use_effective_order", JsonKind::BoolValue(on)) => spec.use_effective_order = *on,
                ("lowercase", JsonKind::BoolValue(on)) => spec.lowercase = *on,
                _ => return false,
            }
            true
        })?;
        Ok(spec)
    }

    fn rouge(&self) -> Result<RougeSpec, Error> {
        let mut spec = RougeSpec::default();
        self.read(|name, value| {
            match (name, value) {
                ("rouge_type", JsonKind::StringValue(kind)) => spec.rouge_type.clone_from(kind),
                ("use_stemmer", JsonKind::BoolValue(on)) => spec.use_stemmer = *on,
                ("split_summaries", JsonKind::BoolValue(on)) => spec.split_summaries = *on,
                ("language", JsonKind::StringValue(language)) => spec.language.clone_from(language),
                _ => return false,
            }
            true
        })?;
        Ok(spec)
    }

    fn read(&self, mut take: impl FnMut(&str, &JsonKind) -> bool) -> Result<(), Error> {
        for (name, value) in &self.0.fields {
            let known = match value.kind.as_ref() {
                None | Some(JsonKind::NullValue(_)) => true,
                Some(value) => take(name, value),
            };
            if !known {
                let field =
                    format!("computation_based_metric_spec.parameters.{}", crate::error::quoted(name));
                return Err(Error::bad_request(
                    field,
                    "is no parameter of this metric, or has the wrong type",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json;
    use crate::wire::v1::EvaluateInstancesResponse;

    #[test]
    fn a_failed_metric_can_be_written_as_json_with_its_details() {
        let result = failed(Error::bad_request("rouge_spec.rouge_type", "is unknown"));
        let response = EvaluateInstancesResponse { metric_results: vec![result], ..Default::default() };
        let json: serde_json::Value = serde_json::from_str(&json::write(&response).unwrap()).unwrap();
        assert_eq!(
            json["metricResults"][0]["error"]["details"],
            serde_json::json!([{
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{ "field": "rouge_spec.rouge_type", "description": "is unknown" }],
            }])
        );
    }
}
