//! Evaluation of summaries, section by section: accuracy, adherence, completeness.
//!
//! Each metric has the judge write questions for a section and then answer them; a section's score is the
//! share of questions answered with yes, in per cent, and the score of the whole is the mean over the sections
//! that have one.

use crate::error::{Error, quoted};
use crate::evaluate::judged::{Asking, Texts};
use crate::evaluate::{Call, Evaluator};
use crate::judge::autorater::RubricGrade;
use crate::judge::verdict::{RubricVerdict, WrittenRubric};
use crate::wire::required;
use crate::wire::v1::*;

use futures_util::future::try_join_all;

/// So many sections a summary may have.
const MOST_SECTIONS: usize = 100;

/// So many sections are judged at one time: each of their prompts holds the whole conversation.
const AT_ONCE: usize = 4;

/// The question that a categorical section answers by itself.
const CATEGORICAL: &str = "Does the summary consist of one of the allowed values and nothing else?";

/// What became of a section.
#[derive(Debug, Default)]
struct Judged {
    /// In per cent.
    score: Option<f64>,
    questions: Vec<(WrittenRubric, RubricVerdict)>,
    /// Why there is no score.
    not_applicable: String,
    details: Option<JudgeDetails>,
}

/// A conversation and the sections of its summary, checked.
struct Summary {
    transcript: String,
    sections: Vec<Section>,
}

struct Section {
    key: String,
    definition: String,
    kind: SummarySectionType,
    allowed_values: Vec<String>,
    text: String,
}

impl Evaluator {
    pub(super) async fn summarization_accuracy(
        &self,
        input: SummarizationAccuracyInput,
        call: &Call,
    ) -> Result<SummarizationAccuracyResult, Error> {
        let summary = self.summary(input.instance)?;
        let judged = self.sections(&summary, call, "summarization_accuracy", |section| {
            section.text.trim().is_empty().then(|| Judged::not_applicable("the section is empty"))
        });
        let judged = judged.await?;
        let score = mean(&judged);
        let sections = summary.sections.into_iter().zip(judged).map(|(section, judged)| AccuracySection {
            section: section.key,
            score: judged.score,
            decomposition: judged.questions.into_iter().map(point).collect(),
            not_applicable_reason: judged.not_applicable,
            details: judged.details,
        });
        Ok(SummarizationAccuracyResult { score, sections: sections.collect() })
    }

    pub(super) async fn summarization_adherence(
        &self,
        input: SummarizationAdherenceInput,
        call: &Call,
    ) -> Result<SummarizationAdherenceResult, Error> {
        let summary = self.summary(input.instance)?;
        let judged = self.sections(&summary, call, "summarization_adherence", |section| {
            if section.is_built_in() {
                return Some(Judged::not_applicable(
                    "a built-in section has no definition of the customer's",
                ));
            }
            section.is_categorical().then(|| section.categorical())
        });
        let judged = judged.await?;
        let score = mean(&judged);
        let sections = summary.sections.into_iter().zip(judged).map(|(section, judged)| AdherenceSection {
            section: section.key,
            score: judged.score,
            rubrics: judged.questions.into_iter().map(instruction).collect(),
            not_applicable_reason: judged.not_applicable,
            details: judged.details,
        });
        Ok(SummarizationAdherenceResult { score, sections: sections.collect() })
    }

    pub(super) async fn summarization_completeness(
        &self,
        input: SummarizationCompletenessInput,
        call: &Call,
    ) -> Result<SummarizationCompletenessResult, Error> {
        let summary = self.summary(input.instance)?;
        let judged = self.sections(&summary, call, "summarization_completeness", |section| {
            section
                .is_categorical()
                .then(|| Judged::not_applicable("a categorical section has no information to be complete"))
        });
        let judged = judged.await?;
        let score = mean(&judged);
        let sections =
            summary.sections.into_iter().zip(judged).map(|(section, judged)| CompletenessSection {
                section: section.key,
                score: judged.score,
                rubrics: judged.questions.into_iter().map(information).collect(),
                not_applicable_reason: judged.not_applicable,
                details: judged.details,
            });
        Ok(SummarizationCompletenessResult { score, sections: sections.collect() })
    }

    fn summary(&self, instance: Option<SummaryInstance>) -> Result<Summary, Error> {
        let SummaryInstance { transcript, sections } = required(instance, "instance")?;
        if transcript.iter().all(|entry| entry.text.trim().is_empty()) {
            return Err(Error::bad_request("instance.transcript", "is empty; nothing was said"));
        }
        if sections.is_empty() || sections.len() > MOST_SECTIONS {
            return Err(Error::bad_request(
                "instance.sections",
                format!("has {} sections, not 1 to {MOST_SECTIONS}", sections.len()),
            ));
        }
        let lines =
            transcript.into_iter().map(
                |TranscriptEntry { role, text }| {
                    if role.is_empty() { text } else { format!("{role}: {text}") }
                },
            );
        let sections = sections.into_iter().enumerate().map(|(index, section)| {
            let text = required(section.summary, "summary")
                .map_err(|error| error.within(format_args!("instance.sections[{index}]")))?;
            let kind = SummarySectionType::try_from(section.r#type).map_err(|unknown| {
                super::computed::unknown_value(&format!("instance.sections[{index}].type"), unknown.0)
            })?;
            let definition = match section.definition.trim() {
                "" => built_in_definition(kind).to_owned(),
                _ => section.definition,
            };
            Ok(Section { key: section.key, definition, kind, allowed_values: section.allowed_values, text })
        });
        Ok(Summary {
            transcript: lines.collect::<Vec<_>>().join("\n"),
            sections: sections.collect::<Result<_, Error>>()?,
        })
    }

    /// Each section, settled without a judge or by this rubric, in order.
    async fn sections(
        &self,
        summary: &Summary,
        call: &Call,
        rubric: &str,
        settled: impl Fn(&Section) -> Option<Judged>,
    ) -> Result<Vec<Judged>, Error> {
        let mut judged = Vec::with_capacity(summary.sections.len());
        for (chunk, sections) in summary.sections.chunks(AT_ONCE).enumerate() {
            let sections = sections.iter().enumerate().map(|(index, section)| {
                let settled = settled(section);
                async move {
                    let outcome = match settled {
                        Some(judged) => Ok(judged),
                        None => self.section(&summary.transcript, section, call, rubric).await,
                    };
                    outcome.map_err(|error: Error| {
                        let place = format!("instance.sections[{}]", chunk * AT_ONCE + index);
                        error.of_part(place, format_args!("section {:?}", quoted(&section.key)))
                    })
                }
            });
            judged.extend(try_join_all(sections).await?);
        }
        Ok(judged)
    }

    async fn section(
        &self,
        transcript: &str,
        section: &Section,
        call: &Call,
        rubric: &str,
    ) -> Result<Judged, Error> {
        let rubric = self.rubric(rubric)?;
        let needs_definition = rubric.inputs.iter().any(|input| input.required && input.name == "definition");
        if needs_definition && section.definition.is_empty() {
            return Err(Error::bad_request(
                "definition",
                "is empty; it says what the section has to contain",
            ));
        }
        let asking: Asking<'_> = self.asking_of(call)?;
        let texts = Texts::of([
            (String::from("definition"), section.definition.clone()),
            (String::from("transcript"), transcript.to_owned()),
            (String::from("summary"), section.text.clone()),
        ]);
        let list = self.write_rubrics(rubric, &texts, &asking).await?;
        if list.is_empty() {
            return Ok(Judged::not_applicable("the judge found nothing to ask of this section"));
        }
        let grade: RubricGrade = self.judge_rubrics(rubric, &list, &texts, &asking).await?;
        Ok(Judged {
            score: grade.per_cent(),
            details: asking.details_of_rubrics(&grade),
            questions: list.into_iter().zip(grade.verdicts).collect(),
            not_applicable: String::new(),
        })
    }
}

impl Judged {
    fn not_applicable(reason: &str) -> Self {
        Self { not_applicable: reason.to_owned(), ..Self::default() }
    }
}

impl Section {
    fn is_built_in(&self) -> bool {
        match self.kind {
            SummarySectionType::Unspecified | SummarySectionType::CustomerDefined => false,
            SummarySectionType::Situation
            | SummarySectionType::Action
            | SummarySectionType::Resolution
            | SummarySectionType::ReasonForCancellation
            | SummarySectionType::CustomerSatisfaction
            | SummarySectionType::Entities => true,
        }
    }

    fn is_categorical(&self) -> bool {
        !self.allowed_values.is_empty()
    }

    /// Whether the section says an allowed value and nothing else: the list knows better than a judge.
    fn categorical(&self) -> Judged {
        let satisfied = self.allowed_values.iter().any(|value| value.trim() == self.text.trim());
        let explanation = if satisfied {
            "The summary is one of the allowed values."
        } else {
            "The summary is none of the allowed values, or says more than one of them."
        };
        let question = WrittenRubric { text: CATEGORICAL.to_owned(), kind: String::new(), importance: None };
        let verdict = RubricVerdict { satisfied, explanation: explanation.to_owned() };
        let score = Some(if satisfied { 100.0 } else { 0.0 });
        Judged { score, questions: vec![(question, verdict)], ..Judged::default() }
    }
}

/// What a built-in section has to contain.
fn built_in_definition(kind: SummarySectionType) -> &'static str {
    match kind {
        SummarySectionType::Situation => "What the customer needs help with or has a question about.",
        SummarySectionType::Action => "What the agent did to help the customer.",
        SummarySectionType::Resolution => {
            "What came out of the conversation: whether the customer's matter is settled, and how."
        }
        SummarySectionType::ReasonForCancellation => {
            "Why the customer wants to cancel; that there is no such wish, if there is none."
        }
        SummarySectionType::CustomerSatisfaction => "How satisfied the customer is at the end.",
        SummarySectionType::Entities => {
            "The names, numbers, dates, products and places that matter to the customer's request."
        }
        SummarySectionType::Unspecified | SummarySectionType::CustomerDefined => "",
    }
}

/// The mean of the scores that there are.
fn mean(judged: &[Judged]) -> Option<f64> {
    let scores: Vec<f64> = judged.iter().filter_map(|judged| judged.score).collect();
    #[expect(clippy::cast_precision_loss, reason = "there are at most 100 sections")]
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

fn point((rubric, verdict): (WrittenRubric, RubricVerdict)) -> AccuracyDecomposition {
    AccuracyDecomposition {
        point: rubric.text,
        accuracy_reasoning: verdict.explanation,
        is_accurate: Some(verdict.satisfied),
    }
}

fn instruction((rubric, verdict): (WrittenRubric, RubricVerdict)) -> AdherenceRubric {
    AdherenceRubric {
        question: rubric.text,
        reasoning: verdict.explanation,
        is_addressed: Some(verdict.satisfied),
    }
}

fn information((rubric, verdict): (WrittenRubric, RubricVerdict)) -> CompletenessRubric {
    CompletenessRubric { question: rubric.text, is_addressed: Some(verdict.satisfied) }
}
