//! Graders of OpenAI's and Azure's APIs: what they ask for, and the texts that they make of a row and a sample.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `grader.rs` | the types of graders, checked when they are made |
//! | `template.rs` | `{{item.…}}` and `{{sample.…}}` |
//! | `scope.rs` | the row and the sample that templates read |
//! | `openai.rs` | graders in the JSON of those APIs |
//!
//! Running them is `evaluate/graders.rs`. A grader of type `python` is none of ours: a request names no code
//! to run.

pub mod openai;
pub mod scope;
pub mod template;

use std::fmt;
use std::str::FromStr;

use crate::judge::Sampling;
use crate::judge::prompt::Role;
use crate::metrics::formula::Formula;
use crate::metrics::rouge;
use crate::metrics::string_check::Operation;
use template::{Template, TemplateError};

/// So many graders one multi grader may have.
pub const MOST_GRADERS: usize = 100;

/// So many labels a judge is given to choose from.
pub const MOST_LABELS: usize = 1000;

/// So many bytes a label has at most.
const LONGEST_LABEL: usize = 1000;

/// What is wrong with a grader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongGrader {
    /// The field, as a path inside of the grader.
    pub field: String,
    /// Why.
    pub reason: String,
    /// Whether it is the formula that cannot be read.
    pub is_formula: bool,
}

impl WrongGrader {
    /// This field, for this reason.
    pub fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into(), is_formula: false }
    }

    /// The same inside of `parent`.
    #[must_use]
    pub fn within(mut self, parent: impl fmt::Display) -> Self {
        self.field =
            if self.field.is_empty() { parent.to_string() } else { format!("{parent}.{}", self.field) };
        self
    }
}

impl fmt::Display for WrongGrader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.reason);
        }
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for WrongGrader {}

/// A grader that gives one score by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Grader {
    /// Compares two texts by an operation.
    StringCheck(StringCheck),
    /// Measures how much one text is like another.
    TextSimilarity(TextSimilarity),
    /// Has a judge pick a label.
    LabelModel(LabelModel),
    /// Has a judge give a number.
    ScoreModel(ScoreModel),
}

impl Grader {
    /// Its templates.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::StringCheck(grader) => vec![&grader.input, &grader.reference],
            Self::TextSimilarity(grader) => vec![&grader.input, &grader.reference],
            Self::LabelModel(LabelModel { ask, .. }) | Self::ScoreModel(ScoreModel { ask, .. }) => {
                ask.messages.iter().map(|message| &message.content).collect()
            }
        }
    }
}

/// `string_check`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringCheck {
    /// What is checked.
    pub input: Template,
    /// What it is checked against.
    pub reference: Template,
    /// How.
    pub operation: Operation,
}

impl StringCheck {
    /// One of these texts.
    ///
    /// # Errors
    /// A text is no template, or there is no such operation.
    pub fn new(input: &str, reference: &str, operation: &str) -> Result<Self, WrongGrader> {
        Ok(Self {
            input: template("input", input)?,
            reference: template("reference", reference)?,
            operation: named("operation", operation)?,
        })
    }
}

/// `text_similarity`.
#[derive(Debug, Clone, PartialEq)]
pub struct TextSimilarity {
    /// What is graded.
    pub input: Template,
    /// What it is measured against.
    pub reference: Template,
    /// By which metric.
    pub metric: Similarity,
    /// From which score on it passes.
    pub pass_threshold: Option<f64>,
}

impl TextSimilarity {
    /// One of these texts.
    ///
    /// # Errors
    /// A text is no template, there is no such metric, or the threshold is no number.
    pub fn new(
        input: &str,
        reference: &str,
        metric: &str,
        pass_threshold: Option<f64>,
    ) -> Result<Self, WrongGrader> {
        Ok(Self {
            input: template("input", input)?,
            reference: template("reference", reference)?,
            metric: named("evaluation_metric", metric)?,
            pass_threshold: threshold(pass_threshold, (f64::MIN, f64::MAX))?,
        })
    }
}

/// How alike two texts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Similarity {
    /// `fuzzy_match`.
    FuzzyMatch,
    /// `bleu`, as NLTK has it.
    Bleu,
    /// `gleu`.
    Gleu,
    /// `meteor`.
    Meteor,
    /// `cosine`.
    Cosine,
    /// `rouge_1` to `rouge_5`, `rouge_l`.
    Rouge(rouge::Kind),
}

/// A name that no [`Similarity`] has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSimilarity(String);

impl fmt::Display for UnknownSimilarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown metric {:?}: choose one of fuzzy_match, bleu, gleu, meteor, cosine, rouge_1, rouge_2, rouge_3, \
             rouge_4, rouge_5, rouge_l",
            self.0
        )
    }
}

impl std::error::Error for UnknownSimilarity {}

impl FromStr for Similarity {
    type Err = UnknownSimilarity;

    fn from_str(name: &str) -> Result<Self, UnknownSimilarity> {
        Ok(match name {
            "fuzzy_match" => Self::FuzzyMatch,
            "bleu" => Self::Bleu,
            "gleu" => Self::Gleu,
            "meteor" => Self::Meteor,
            "cosine" => Self::Cosine,
            "rouge_1" => Self::Rouge(rouge::Kind::N(1)),
            "rouge_2" => Self::Rouge(rouge::Kind::N(2)),
            "rouge_3" => Self::Rouge(rouge::Kind::N(3)),
            "rouge_4" => Self::Rouge(rouge::Kind::N(4)),
            "rouge_5" => Self::Rouge(rouge::Kind::N(5)),
            "rouge_l" => Self::Rouge(rouge::Kind::L),
            unknown => return Err(UnknownSimilarity(unknown.chars().take(40).collect())),
        })
    }
}

/// What a judge is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The judge, by name; empty = the default.
    pub model: String,
    /// What it reads; not empty.
    pub messages: Vec<Message>,
    /// How it samples.
    pub sampling: Sampling,
}

impl Ask {
    /// These messages for this judge.
    ///
    /// # Errors
    /// There are none, or a sampling parameter is out of its range.
    pub fn new(model: &str, messages: Vec<Message>, sampling: Sampling) -> Result<Self, WrongGrader> {
        if messages.is_empty() {
            return Err(WrongGrader::new("input", "is empty; the judge would have nothing to read"));
        }
        let within = |name: &str, value: Option<f64>, most: f64| match value {
            Some(value) if !(0.0..=most).contains(&value) => Err(WrongGrader::new(
                format!("sampling_params.{name}"),
                format!("{value} is not from 0 to {most}"),
            )),
            Some(_) | None => Ok(()),
        };
        within("temperature", sampling.temperature, 2.0)?;
        within("top_p", sampling.top_p, 1.0)?;
        if sampling.max_tokens == Some(0) {
            return Err(WrongGrader::new("sampling_params.max_completions_tokens", "0 is not positive"));
        }
        const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
        if let Some(effort) = sampling.reasoning_effort.as_deref().filter(|effort| !EFFORTS.contains(effort))
        {
            let effort: String = effort.chars().take(40).collect();
            return Err(WrongGrader::new(
                "sampling_params.reasoning_effort",
                format!("{effort:?} is none of {}", EFFORTS.join(", ")),
            ));
        }
        Ok(Self { model: model.to_owned(), messages, sampling })
    }
}

/// A message to a judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Template,
}

impl Message {
    /// What this role says. Without a role it is the user's.
    ///
    /// # Errors
    /// There is no such role, or the text is no template.
    pub fn new(role: &str, content: &str) -> Result<Self, WrongGrader> {
        let role = match role {
            "system" | "developer" => Role::System,
            "user" | "" => Role::User,
            "assistant" => Role::Assistant,
            other => {
                let other: String = other.chars().take(40).collect();
                let reason = format!("{other:?} is none of user, assistant, system, developer");
                return Err(WrongGrader::new("role", reason));
            }
        };
        Ok(Self { role, content: template("content", content)? })
    }
}

/// `label_model`.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelModel {
    /// What the judge is asked.
    pub ask: Ask,
    /// What it may answer.
    pub labels: Vec<String>,
    /// The answers that pass.
    pub passing: Vec<String>,
}

impl LabelModel {
    /// One of these labels.
    ///
    /// # Errors
    /// Fewer than two labels or more than [`MOST_LABELS`], a blank or endless one, the same one twice, or one that
    /// passes and is none.
    pub fn new(ask: Ask, labels: Vec<String>, passing: Vec<String>) -> Result<Self, WrongGrader> {
        if labels.len() < 2 {
            return Err(WrongGrader::new(
                "labels",
                "has fewer than two labels; there is nothing to tell apart",
            ));
        }
        if labels.len() > MOST_LABELS || labels.iter().any(|label| label.len() > LONGEST_LABEL) {
            let reason =
                format!("has more than {MOST_LABELS} labels, or one of more than {LONGEST_LABEL} bytes");
            return Err(WrongGrader::new("labels", reason));
        }
        let mut seen = std::collections::HashSet::new();
        for label in &labels {
            if label.trim().is_empty() || !seen.insert(label.as_str()) {
                let label: String = label.chars().take(40).collect();
                return Err(WrongGrader::new("labels", format!("{label:?} is blank or there twice")));
            }
        }
        if let Some(unknown) = passing.iter().find(|label| !seen.contains(label.as_str())) {
            let unknown: String = unknown.chars().take(40).collect();
            return Err(WrongGrader::new("passing_labels", format!("{unknown:?} is none of the labels")));
        }
        Ok(Self { ask, labels, passing })
    }
}

/// `score_model`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreModel {
    /// What the judge is asked.
    pub ask: Ask,
    /// The lowest and the highest score.
    pub range: (f64, f64),
    /// From which score on it passes.
    pub pass_threshold: Option<f64>,
}

impl ScoreModel {
    /// A number of this range; an empty one is 0 to 1.
    ///
    /// # Errors
    /// The range is none, or the threshold is outside of it.
    pub fn new(ask: Ask, range: &[f64], pass_threshold: Option<f64>) -> Result<Self, WrongGrader> {
        let range = match *range {
            [] => (0.0, 1.0),
            [lo, hi] if lo < hi && lo.is_finite() && hi.is_finite() => (lo, hi),
            _ => return Err(WrongGrader::new("range", "is not a lower and a higher number")),
        };
        Ok(Self { ask, range, pass_threshold: threshold(pass_threshold, range)? })
    }
}

/// `multi`: several graders and a formula over their scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Multi {
    /// The graders by the names that the formula uses, in the order of these names.
    pub graders: Vec<(String, Grader)>,
    /// What is made of their scores.
    pub formula: Formula,
}

impl Multi {
    /// These graders under this formula.
    ///
    /// # Errors
    /// There are none or more than [`MOST_GRADERS`], or the formula is none.
    pub fn new(mut graders: Vec<(String, Grader)>, formula: &str) -> Result<Self, WrongGrader> {
        if graders.is_empty() || graders.len() > MOST_GRADERS {
            let reason = format!("has {} graders, not 1 to {MOST_GRADERS}", graders.len());
            return Err(WrongGrader::new("graders", reason));
        }
        graders.sort_by(|(one, _), (other, _)| one.cmp(other));
        let names: Vec<&str> = graders.iter().map(|(name, _)| name.as_str()).collect();
        let formula = Formula::compile(formula, &names).map_err(|error| WrongGrader {
            is_formula: true,
            ..WrongGrader::new("calculate_output", error.to_string())
        })?;
        Ok(Self { graders, formula })
    }
}

fn template(field: &str, text: &str) -> Result<Template, WrongGrader> {
    text.parse().map_err(|error: TemplateError| WrongGrader::new(field, error.to_string()))
}

fn named<T: FromStr<Err: fmt::Display>>(field: &str, name: &str) -> Result<T, WrongGrader> {
    name.parse().map_err(|error: T::Err| WrongGrader::new(field, error.to_string()))
}

fn threshold(threshold: Option<f64>, (lo, hi): (f64, f64)) -> Result<Option<f64>, WrongGrader> {
    match threshold {
        Some(wrong) if !(lo..=hi).contains(&wrong) => {
            let reason = if wrong.is_finite() && lo > f64::MIN {
                format!("{wrong} is not from {lo} to {hi}")
            } else {
                String::from("is not a finite number")
            };
            Err(WrongGrader::new("pass_threshold", reason))
        }
        good => Ok(good),
    }
}
