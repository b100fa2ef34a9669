//! Rubrics on the wire: written for an instance, taken from one, and judged one by one.

use std::borrow::Cow;

use crate::error::{Error, Kind, quoted};
use crate::evaluate::Evaluator;
use crate::evaluate::judged::{Asking, Texts, field, narrow, prompt_error, ungraded_error};
use crate::judge::autorater::{self, RubricGrade};
use crate::judge::prompt::{Prompt, numbered};
use crate::judge::rubric::Rubric as BuiltIn;
use crate::judge::template::{Field, Names, Template};
use crate::judge::verdict::{Importance, WrittenRubric};
use crate::wire::v1::llm_based_metric_spec::RubricsSource;
use crate::wire::v1::rubric as v1_rubric;
use crate::wire::v1::rubric::content::{ContentType, Property};
use crate::wire::v1::*;

/// The rubric that writes rubrics when a request names none.
const GENERAL: &str = "general_quality_v1";

impl Evaluator {
    /// `GenerateInstanceRubrics`.
    pub async fn generate_rubrics(
        &self,
        request: GenerateInstanceRubricsRequest,
        deadline: Option<tokio::time::Instant>,
    ) -> Result<GenerateInstanceRubricsResponse, Error> {
        let texts = Texts::of_contents(&request.contents)?;
        let rubrics = match (request.rubric_generation_spec, request.predefined_rubric_generation_spec) {
            (Some(_), Some(_)) => {
                return Err(Error::bad_request(
                    "predefined_rubric_generation_spec",
                    "is set beside rubric_generation_spec; send one of the two",
                ));
            }
            (Some(spec), None) => {
                let asking = self.asking(spec.model_config.as_ref(), deadline, false)?;
                self.write_by_template(&spec, &texts, &asking).await?
            }
            (None, predefined) => {
                let name = predefined.map_or_else(|| GENERAL.to_owned(), |spec| spec.metric_spec_name);
                let asking = self.asking(None, deadline, false)?;
                self.write_rubrics(self.rubric(&name)?, &texts, &asking).await?
            }
        };
        Ok(GenerateInstanceRubricsResponse { generated_rubrics: on_wire(&rubrics) })
    }

    /// The rubrics that an LLM-based metric wants judged; `None` when it has none.
    pub(super) async fn rubrics_of(
        &self,
        source: Option<&RubricsSource>,
        instance: &EvaluationInstance,
        texts: &Texts,
        asking: &Asking<'_>,
    ) -> Result<Option<Vec<Rubric>>, Error> {
        Ok(Some(match source {
            None => return Ok(None),
            Some(RubricsSource::RubricGroupKey(key)) => group(instance, key)?,
            Some(RubricsSource::RubricGenerationSpec(spec)) => {
                on_wire(&self.write_by_template(spec, texts, asking).await?)
            }
            Some(RubricsSource::PredefinedRubricGenerationSpec(spec)) => {
                let rubric = self.rubric(&spec.metric_spec_name)?;
                on_wire(&self.write_rubrics(rubric, texts, asking).await?)
            }
        }))
    }

    /// A predefined metric that judges rubrics: those of the instance under `group_key`, or newly written ones.
    pub(super) async fn predefined_rubrics(
        &self,
        rubric: &BuiltIn,
        group_key: Option<&str>,
        instance: &EvaluationInstance,
        texts: &Texts,
        asking: &Asking<'_>,
    ) -> Result<MetricResult, Error> {
        let rubrics = match group_key {
            Some(key) => group(instance, key)?,
            None => on_wire(&self.write_rubrics(rubric, texts, asking).await?),
        };
        let grade = self.judge_rubrics(rubric, &written(&rubrics), texts, asking).await?;
        Ok(judged(rubrics, &grade, asking))
    }

    /// Rubrics judged by a caller's template, which shows them as `{rubrics}`; without a template by the
    /// service's own.
    pub(super) async fn rubrics_by_template(
        &self,
        template: Option<&Template>,
        system: &str,
        rubrics: Vec<Rubric>,
        texts: &Texts,
        asking: &Asking<'_>,
    ) -> Result<MetricResult, Error> {
        let list = written(&rubrics);
        let Some(template) = template else {
            let grade = self.judge_rubrics(self.rubric(GENERAL)?, &list, texts, asking).await?;
            return Ok(judged(rubrics, &grade, asking));
        };
        let shown = numbered(&list);
        let prompt = Prompt::for_template(template, system, |name| match name {
            "rubrics" => {
                Some(Field { marker: Cow::Borrowed("rubrics"), text: Cow::Borrowed(shown.as_str()) })
            }
            name => field(texts, name),
        });
        let prompt = prompt.map_err(prompt_error)?;
        let grade = autorater::judge_rubrics(asking.judge, &prompt, list.len(), &asking.samples)
            .await
            .map_err(|ungraded| ungraded_error(ungraded, asking.judge))?;
        Ok(judged(rubrics, &grade, asking))
    }

    async fn write_by_template(
        &self,
        spec: &RubricGenerationSpec,
        texts: &Texts,
        asking: &Asking<'_>,
    ) -> Result<Vec<WrittenRubric>, Error> {
        if spec.prompt_template.is_empty() {
            return self.write_rubrics(self.rubric(GENERAL)?, texts, asking).await;
        }
        let template = Template::parse(&spec.prompt_template, Names::Paths);
        let prompt = Prompt::for_template(&template, "", |name| field(texts, name)).map_err(|error| {
            Error::bad_request("rubric_generation_spec.prompt_template", error.to_string())
        })?;
        autorater::generate_rubrics(asking.judge, &prompt, false, &asking.samples)
            .await
            .map(|generated| generated.rubrics)
            .map_err(|ungraded| ungraded_error(ungraded, asking.judge))
    }

    /// The rubric under this name, which a request names as its metric.
    pub(super) fn rubric(&self, name: &str) -> Result<&BuiltIn, Error> {
        self.roster
            .rubrics()
            .get(name)
            .map_err(|unknown| Error::bad_request("metric_spec_name", unknown.to_string()))
    }
}

fn group(instance: &EvaluationInstance, key: &str) -> Result<Vec<Rubric>, Error> {
    let group = instance.rubric_groups.get(key).ok_or_else(|| {
        Error::new(Kind::InvalidArgument, format!("there is no group {:?}", quoted(key)))
            .within("instance.rubric_groups")
    })?;
    if group.rubrics.is_empty() {
        let field = format!("instance.rubric_groups.{}.rubrics", quoted(key));
        return Err(Error::bad_request(field, "is empty"));
    }
    Ok(group.rubrics.clone())
}

fn written(rubrics: &[Rubric]) -> Vec<WrittenRubric> {
    let text =
        |rubric: &Rubric| match rubric.content.as_ref().and_then(|content| content.content_type.as_ref()) {
            Some(ContentType::Property(property)) => property.description.clone(),
            None => String::new(),
        };
    let importance = |rubric: &Rubric| match rubric.importance() {
        v1_rubric::Importance::High => Some(Importance::High),
        v1_rubric::Importance::Medium => Some(Importance::Medium),
        v1_rubric::Importance::Low => Some(Importance::Low),
        v1_rubric::Importance::Unspecified => None,
    };
    rubrics
        .iter()
        .map(|rubric| WrittenRubric {
            text: text(rubric),
            kind: rubric.r#type.clone().unwrap_or_default(),
            importance: importance(rubric),
        })
        .collect()
}

fn on_wire(rubrics: &[WrittenRubric]) -> Vec<Rubric> {
    let importance = |importance| match importance {
        Importance::High => v1_rubric::Importance::High,
        Importance::Medium => v1_rubric::Importance::Medium,
        Importance::Low => v1_rubric::Importance::Low,
    };
    rubrics
        .iter()
        .enumerate()
        .map(|(index, rubric)| Rubric {
            rubric_id: format!("rubric-{}", index + 1),
            content: Some(v1_rubric::Content {
                content_type: Some(ContentType::Property(Property { description: rubric.text.clone() })),
            }),
            r#type: (!rubric.kind.is_empty()).then(|| rubric.kind.clone()),
            importance: rubric.importance.map(|rank| importance(rank).into()),
        })
        .collect()
}

fn judged(rubrics: Vec<Rubric>, grade: &RubricGrade, asking: &Asking<'_>) -> MetricResult {
    let verdicts = rubrics.into_iter().zip(&grade.verdicts).map(|(rubric, verdict)| RubricVerdict {
        evaluated_rubric: Some(rubric),
        verdict: verdict.satisfied,
        reasoning: (!verdict.explanation.is_empty()).then(|| verdict.explanation.clone()),
    });
    MetricResult {
        score: grade.score.map(narrow),
        rubric_verdicts: verdicts.collect(),
        details: asking.details_of_rubrics(grade),
        ..Default::default()
    }
}
