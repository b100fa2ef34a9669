//! The judged metrics' arms: read the spec and the texts, ask the judge, write the verdict.

mod details;
mod instance;

use std::borrow::Cow;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, Kind, Reason, quoted};
use crate::evaluate::Evaluator;
use crate::judge::autorater::{self, Cause, Grade, RubricGrade, Samples, Ungraded};
use crate::judge::caller::Caller;
use crate::judge::consensus::Choice;
use crate::judge::prompt::{Inputs, PairPrompt, Prompt, PromptError};
use crate::judge::roster::NoJudge;
use crate::judge::rubric::Rubric;
use crate::judge::stack::ConfiguredJudge;
use crate::judge::template::{Field, Names, Template};
use crate::judge::verdict::{Scale, WrittenRubric};
use crate::wire::required;
use crate::wire::v1::*;

pub(super) use details::{choice, narrow};
pub(super) use instance::{Texts, data_text, fields};

/// How one request wants its judge asked.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub(super) judge: &'a ConfiguredJudge,
    pub(super) samples: Samples,
    pub(super) details: bool,
}

impl Evaluator {
    /// The judge that the request asks for, and how.
    pub(super) fn asking(
        &self,
        autorater: Option<&AutoraterConfig>,
        deadline: Option<Instant>,
        details: bool,
    ) -> Result<Asking<'_>, Error> {
        let caller = Caller::current();
        let autorater = autorater.cloned().unwrap_or_default();
        let judge =
            self.roster.pick(&autorater.autorater_model).map_err(|no| self.no_judge(no, &autorater))?;
        let count = match autorater.sampling_count {
            None => self.judging.sampling_count,
            Some(count) => {
                u32::try_from(count).ok().filter(|count| (1..=32).contains(count)).ok_or_else(|| {
                    Error::bad_request(
                        "autorater_config.sampling_count",
                        format!("{count} is not from 1 to 32"),
                    )
                })?
            }
        };
        Ok(Asking {
            judge,
            samples: Samples {
                count,
                flip: autorater.flip_enabled.unwrap_or(true),
                early_stop: false,
                readout: self.judging.readout.into(),
                sampling: instance::sampling(autorater.generation_config.as_deref())?,
                deadline,
                caller: caller.id,
                reuse: caller.reuse,
            },
            details,
        })
    }

    fn no_judge(&self, no: NoJudge, autorater: &AutoraterConfig) -> Error {
        match no {
            NoJudge::Unconfigured => Error {
                reason: Some(Box::new(Reason { word: "NO_JUDGE", facts: Vec::new() })),
                ..Error::new(
                    Kind::FailedPrecondition,
                    "this metric asks a judge LLM and none is configured; start the service with a judge, such as \
                     --judge openai:http://127.0.0.1:11434/v1#MODEL",
                )
            },
            NoJudge::Unknown => {
                let known: Vec<&str> = self.roster.names().collect();
                Error::bad_request(
                    "autorater_config.autorater_model",
                    format!(
                        "no judge {:?}; there is {}",
                        quoted(&autorater.autorater_model),
                        known.join(", ")
                    ),
                )
            }
        }
    }

    /// A built-in pointwise metric.
    pub(super) async fn score_by_rubric(
        &self,
        rubric: &Rubric,
        texts: &Texts,
        use_reference: bool,
        asking: &Asking<'_>,
    ) -> Result<Grade<f64>, Error> {
        self.check_texts(texts)?;
        let prompt = Prompt::for_rubric(rubric, &inputs(texts), use_reference).map_err(prompt_error)?;
        autorater::grade(asking.judge, &prompt, &rubric.score_scale(), &asking.samples)
            .await
            .map_err(|ungraded| ungraded_error(ungraded, asking.judge))
    }

    /// A built-in pairwise metric.
    pub(super) async fn choose_by_rubric(
        &self,
        rubric: &Rubric,
        texts: &Texts,
        use_reference: bool,
        asking: &Asking<'_>,
    ) -> Result<Grade<Choice>, Error> {
        self.check_texts(texts)?;
        let prompt = PairPrompt::for_rubric(rubric, &inputs(texts), use_reference).map_err(prompt_error)?;
        autorater::grade_pairwise(asking.judge, &prompt, &asking.samples)
            .await
            .map_err(|ungraded| ungraded_error(ungraded, asking.judge))
    }

    /// `pointwise_metric_input`: a template of the caller's. Its result has no confidence, so samples that
    /// cannot change the score are left out.
    pub(super) async fn pointwise_metric(
        &self,
        spec: &PointwiseMetricSpec,
        texts: &Texts,
        asking: Asking<'_>,
    ) -> Result<PointwiseMetricResult, Error> {
        self.check_texts(texts)?;
        let template = template(spec.metric_prompt_template.as_deref())?;
        let system = spec.system_instruction.as_deref().unwrap_or_default();
        if wants_raw_output(spec.custom_output_format_config.as_ref()) {
            let prompt =
                Prompt::for_template(&template, system, |name| field(texts, name)).map_err(prompt_error)?;
            let custom_output = Some(raw_outputs(&prompt, &asking).await?);
            return Ok(PointwiseMetricResult { custom_output, ..Default::default() });
        }
        let asking = asking.stopping_early();
        let grade = self.score_by_template(&template, system, &Scale::Open, texts, &asking).await?;
        Ok(PointwiseMetricResult {
            score: Some(details::narrow(grade.value)),
            details: asking.details(&grade),
            explanation: grade.explanation,
            custom_output: None,
        })
    }

    /// A template of the caller's, as a score.
    pub(super) async fn score_by_template(
        &self,
        template: &Template,
        system: &str,
        scale: &Scale,
        texts: &Texts,
        asking: &Asking<'_>,
    ) -> Result<Grade<f64>, Error> {
        self.check_texts(texts)?;
        let prompt =
            Prompt::for_template(template, system, |name| field(texts, name)).map_err(prompt_error)?;
        autorater::grade(asking.judge, &prompt, scale, &asking.samples)
            .await
            .map_err(|ungraded| ungraded_error(ungraded, asking.judge))
    }

    /// `pairwise_metric_input`: a template of the caller's that shows two answers.
    pub(super) async fn pairwise_metric(
        &self,
        spec: &PairwiseMetricSpec,
        texts: &Texts,
        asking: Asking<'_>,
    ) -> Result<PairwiseMetricResult, Error> {
        self.check_texts(texts)?;
        let template = template(spec.metric_prompt_template.as_deref())?;
        let system = spec.system_instruction.as_deref().unwrap_or_default();
        if wants_raw_output(spec.custom_output_format_config.as_ref()) {
            let prompt =
                Prompt::for_template(&template, system, |name| field(texts, name)).map_err(prompt_error)?;
            let custom_output = Some(raw_outputs(&prompt, &asking).await?);
            return Ok(PairwiseMetricResult { custom_output, ..Default::default() });
        }
        // The GA client leaves the names out.
        let named = |name: &'_ str, default| if name.is_empty() { default } else { name.to_owned() };
        let candidate = named(&spec.candidate_response_field_name, String::from("response"));
        let baseline = named(&spec.baseline_response_field_name, String::from("baseline_model_response"));
        let text = |name: &str| texts.get(name);
        let prompt =
            PairPrompt::for_template(&template, system, &candidate, &baseline, text).map_err(prompt_error)?;
        let asking = asking.stopping_early();
        let grade = autorater::grade_pairwise(asking.judge, &prompt, &asking.samples)
            .await
            .map_err(|ungraded| ungraded_error(ungraded, asking.judge))?;
        Ok(PairwiseMetricResult {
            pairwise_choice: details::choice(grade.value).into(),
            details: asking.details_of_choice(&grade),
            explanation: grade.explanation,
            custom_output: None,
        })
    }

    /// Rubrics written for an item by the judge.
    pub(super) async fn write_rubrics(
        &self,
        rubric: &Rubric,
        texts: &Texts,
        asking: &Asking<'_>,
    ) -> Result<Vec<WrittenRubric>, Error> {
        self.check_texts(texts)?;
        let Some(generate) = &rubric.generate else { return Ok(rubric.fixed_rubrics()) };
        let prompt = Prompt::for_generation(rubric, &inputs(texts)).map_err(prompt_error)?;
        autorater::generate_rubrics(asking.judge, &prompt, generate.may_be_empty, &asking.samples)
            .await
            .map(|generated| generated.rubrics)
            .map_err(|ungraded| ungraded_error(ungraded, asking.judge))
    }

    /// A verdict on each of these rubrics.
    pub(super) async fn judge_rubrics(
        &self,
        rubric: &Rubric,
        list: &[WrittenRubric],
        texts: &Texts,
        asking: &Asking<'_>,
    ) -> Result<RubricGrade, Error> {
        let prompt = Prompt::for_verdicts(rubric, list, &inputs(texts)).map_err(prompt_error)?;
        autorater::judge_rubrics(asking.judge, &prompt, list.len(), &asking.samples)
            .await
            .map_err(|ungraded| ungraded_error(ungraded, asking.judge))
    }

    /// `rubric_based_instruction_following_input`.
    pub(super) async fn instruction_following(
        &self,
        texts: &Texts,
        asking: &Asking<'_>,
    ) -> Result<RubricBasedInstructionFollowingResult, Error> {
        let rubric = self.rubric("rubric_based_instruction_following")?;
        let list = self.write_rubrics(rubric, texts, asking).await?;
        let grade = self.judge_rubrics(rubric, &list, texts, asking).await?;
        let critique = |(rubric, verdict): (&WrittenRubric, &crate::judge::verdict::RubricVerdict)| {
            RubricCritiqueResult { rubric: rubric.text.clone(), verdict: verdict.satisfied }
        };
        Ok(RubricBasedInstructionFollowingResult {
            score: grade.score.map(details::narrow),
            rubric_critique_results: list.iter().zip(&grade.verdicts).map(critique).collect(),
            details: asking.details_of_rubrics(&grade),
        })
    }

    fn check_texts(&self, texts: &Texts) -> Result<(), Error> {
        texts.check(self.limits.text_bytes)
    }
}

impl Asking<'_> {
    /// For results without a confidence: the score of a run that stops early is the score of the full run.
    fn stopping_early(mut self) -> Self {
        self.samples.early_stop = !self.details;
        self
    }
}

fn inputs(texts: &Texts) -> Box<Inputs<'_>> {
    Box::new(|name| texts.get(name))
}

/// A value for a template's placeholder.
pub(super) fn field<'t>(texts: &'t Texts, name: &str) -> Option<Field<'t>> {
    texts.get(name).map(|text| Field { marker: Cow::Owned(name.to_owned()), text })
}

fn template(text: Option<&str>) -> Result<Template, Error> {
    let text = required(text, "metric_spec.metric_prompt_template")?;
    if text.trim().is_empty() {
        return Err(Error::bad_request("metric_spec.metric_prompt_template", "is empty"));
    }
    Ok(Template::parse(text, Names::Plain))
}

fn wants_raw_output(config: Option<&CustomOutputFormatConfig>) -> bool {
    use custom_output_format_config::CustomOutputFormatConfig::ReturnRawOutput;
    matches!(
        config.and_then(|config| config.custom_output_format_config.as_ref()),
        Some(ReturnRawOutput(true))
    )
}

async fn raw_outputs(prompt: &Prompt, asking: &Asking<'_>) -> Result<CustomOutput, Error> {
    let raw = autorater::ask_raw(asking.judge, prompt, &asking.samples)
        .await
        .map_err(|ungraded| ungraded_error(ungraded, asking.judge))?;
    let raw = custom_output::CustomOutput::RawOutputs(RawOutput { raw_output: raw.outputs });
    Ok(CustomOutput { custom_output: Some(raw) })
}

pub(super) fn prompt_error(error: PromptError) -> Error {
    let field = match &error {
        PromptError::NoInput { input, .. } => format!("instance.{input}"),
        PromptError::Fill(_) | PromptError::NotShown { .. } => {
            String::from("metric_spec.metric_prompt_template")
        }
        PromptError::OtherKind { .. } => String::from("metric_spec"),
    };
    Error::bad_request(field, error.to_string())
}

/// What the judge did wrong, as an error that says whether asking again can help.
pub(super) fn ungraded_error(ungraded: Ungraded, judge: &ConfiguredJudge) -> Error {
    let word = match ungraded.cause {
        Cause::Unavailable => "JUDGE_UNAVAILABLE",
        Cause::OutOfTime => "JUDGE_OUT_OF_TIME",
        Cause::OverBudget => "JUDGE_OVER_BUDGET",
        Cause::TooLong => "PROMPT_TOO_LONG",
        Cause::Misconfigured => "JUDGE_MISCONFIGURED",
        Cause::Refused => "JUDGE_REFUSED",
        Cause::NoVerdict => "NO_VERDICT",
    };
    let facts = vec![(String::from("judge"), judge.name().to_owned())];
    failed(ungraded.cause, ungraded.retry_after, Reason { word, facts }, ungraded.message)
}

/// The error of an endpoint that failed for this cause.
pub(super) fn failed(cause: Cause, rest: Option<Duration>, reason: Reason, message: String) -> Error {
    let kind = match cause {
        Cause::Unavailable => Kind::Unavailable,
        Cause::OutOfTime => Kind::DeadlineExceeded,
        Cause::OverBudget => Kind::ResourceExhausted,
        Cause::TooLong => Kind::InvalidArgument,
        Cause::Misconfigured | Cause::Refused | Cause::NoVerdict => Kind::FailedPrecondition,
    };
    Error {
        retry_after: rest.or((kind == Kind::Unavailable).then_some(Duration::from_secs(1))),
        reason: Some(Box::new(reason)),
        ..Error::new(kind, message)
    }
}
