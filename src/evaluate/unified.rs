//! The unified form: one instance, a list of metrics, one result each. A metric that fails carries its own
//! error and hurts no other.

use prost::Message;
use prost_types::Struct;
use prost_types::value::Kind as JsonKind;

use crate::error::{Error, Kind};
use crate::evaluate::{Evaluator, no_judge};
use crate::wire::required;
use crate::wire::v1::computation_based_metric_spec::ComputationBasedMetricType;
use crate::wire::v1::evaluation_instance::{InstanceData, instance_data};
use crate::wire::v1::metric::MetricSpec;
use crate::wire::v1::metric_source::MetricSource as Source;
use crate::wire::v1::*;

impl Evaluator {
    pub(super) async fn unified(
        &self,
        metrics: Vec<Metric>,
        metric_sources: Vec<MetricSource>,
        instance: Option<EvaluationInstance>,
        details: bool,
    ) -> Result<Vec<MetricResult>, Error> {
        let instance = required(instance, "instance")?;
        let count = metrics.len() + metric_sources.len();
        if count > self.limits.instances {
            return Err(Error {
                field: String::from("metrics"),
                ..Error::new(
                    Kind::ResourceExhausted,
                    format!("{count} metrics are over limits.instances = {}", self.limits.instances),
                )
            });
        }
        let mut results = Vec::with_capacity(count);
        for (index, metric) in metrics.into_iter().enumerate() {
            let result = self.metric_of(metric, &instance, details).await;
            results
                .push(result.unwrap_or_else(|error| failed(error.within(format_args!("metrics[{index}]")))));
        }
        for (index, source) in metric_sources.into_iter().enumerate() {
            let result = match source.metric_source {
                Some(Source::Metric(metric)) => self.metric_of(metric, &instance, details).await,
                Some(Source::MetricResourceName(_)) => Err(Error {
                    field: String::from("metric_resource_name"),
                    ..Error::new(
                        Kind::Unimplemented,
                        "this service stores no metrics; send the metric itself",
                    )
                }),
                None => Err(Error::bad_request("metric_source", "is not set")),
            };
            results.push(
                result.unwrap_or_else(|error| failed(error.within(format_args!("metric_sources[{index}]")))),
            );
        }
        Ok(results)
    }

    async fn metric_of(
        &self,
        metric: Metric,
        instance: &EvaluationInstance,
        details: bool,
    ) -> Result<MetricResult, Error> {
        match required(metric.metric_spec, "metric_spec")? {
            MetricSpec::ExactMatchSpec(spec) => self.unified_exact_match(spec, instance).await,
            MetricSpec::BleuSpec(spec) => self.unified_bleu(spec, instance, details).await,
            MetricSpec::RougeSpec(spec) => self.unified_rouge(spec, instance, details).await,
            MetricSpec::ComputationBasedMetricSpec(spec) => {
                let parameters = Parameters(spec.parameters.unwrap_or_default());
                let metric = spec.r#type.unwrap_or_default();
                match ComputationBasedMetricType::try_from(metric) {
                    Ok(ComputationBasedMetricType::ExactMatch) => {
                        self.unified_exact_match(parameters.exact_match()?, instance).await
                    }
                    Ok(ComputationBasedMetricType::Bleu) => {
                        self.unified_bleu(parameters.bleu()?, instance, details).await
                    }
                    Ok(ComputationBasedMetricType::Rouge) => {
                        self.unified_rouge(parameters.rouge()?, instance, details).await
                    }
                    Ok(ComputationBasedMetricType::Unspecified) | Err(_) => Err(Error::bad_request(
                        "computation_based_metric_spec.type",
                        format!("{metric} is none of EXACT_MATCH, BLEU, ROUGE"),
                    )),
                }
            }
            MetricSpec::PointwiseMetricSpec(_)
            | MetricSpec::PairwiseMetricSpec(_)
            | MetricSpec::PredefinedMetricSpec(_)
            | MetricSpec::LlmBasedMetricSpec(_) => Err(no_judge()),
            MetricSpec::CustomCodeExecutionSpec(_) => Err(Error::new(
                Kind::Unimplemented,
                "code from requests is never run; use a rubric or a computed metric",
            )),
        }
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
    let status = tonic::Status::from(error);
    // The rich form of a status is google.rpc.Status, which ours equals on the wire.
    let error = Status::decode(status.details()).unwrap_or_else(|_| Status {
        code: status.code().into(),
        message: status.message().to_owned(),
        ..Default::default()
    });
    MetricResult { error: Some(error), ..Default::default() }
}

/// The answer under evaluation and what it is compared with.
fn texts(instance: &EvaluationInstance) -> Result<(String, String), Error> {
    Ok((
        text(instance.response.as_ref(), "instance.response")?,
        text(instance.reference.as_ref(), "instance.reference")?,
    ))
}

/// The text of one part of the instance; several contents are joined by line breaks.
fn text(data: Option<&InstanceData>, field: &'static str) -> Result<String, Error> {
    match required(data.and_then(|data| data.data.as_ref()), field)? {
        instance_data::Data::Text(text) => Ok(text.clone()),
        instance_data::Data::Contents(contents) => {
            let parts = contents.contents.iter().flat_map(|content| &content.parts);
            let texts: Vec<&str> = parts.filter_map(|part| crate::wire::part_text(part)).collect();
            Ok(texts.join("\n"))
        }
    }
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
