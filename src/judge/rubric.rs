//! Rubrics: criteria, scale, inputs and task of each judged metric, as data.
//!
//! One TOML file a metric, under `rubrics/`. A configuration can replace any of them and add others
//! ([`Rubrics::with_files`]). Names, scales and inputs are those of Vertex AI's evaluation service; all
//! wording is our own, since Google's rubrics are not public.
//!
//! ```toml
//! name = "politeness"
//! kind = "pointwise"
//! summary = "Whether a text is polite"
//! task = "Judge how polite the text is."
//! criteria = [{ name = "Tone", text = "The text is friendly." }]
//! scale = [
//!     { value = 0, word = "rude", text = "Some of it is not." },
//!     { value = 1, word = "polite", text = "All of it is." },
//! ]
//! inputs = [{ name = "prediction", title = "Text", required = true }]
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

use super::verdict::{Importance, Scale, WrittenRubric};

/// A judged metric.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rubric {
    /// Its name: small letters, digits, `_`.
    pub name: String,
    /// Other names it answers to.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What is asked of the judge.
    pub kind: Kind,
    /// What it measures, in one line, for people.
    pub summary: String,
    /// What the judge is to do.
    pub task: String,
    /// What makes a text good.
    #[serde(default)]
    pub criteria: Vec<Criterion>,
    /// The scores, ascending; pointwise only.
    #[serde(default)]
    pub scale: Vec<Level>,
    /// Whether numbers between the levels of the scale are scores, too.
    #[serde(default)]
    pub between: bool,
    /// The texts of an item, in the order in which the judge sees them.
    pub inputs: Vec<Input>,
    /// When the judge sees the input `reference`.
    #[serde(default)]
    pub reference: ReferenceUse,
    /// How rubrics for an item are written.
    #[serde(default)]
    pub generate: Option<Generate>,
    /// Rubrics that are the same for every item.
    #[serde(default)]
    pub checks: Vec<Check>,
}

/// What is asked of the judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One score.
    Pointwise,
    /// Which of two texts is better.
    Pairwise,
    /// A verdict on each of several rubrics; the score is the share that is satisfied.
    RubricVerdicts,
}

/// One thing that makes a text good.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criterion {
    /// A word or two.
    pub name: String,
    /// When it is met.
    pub text: String,
}

/// A score and what it stands for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// The score.
    pub value: f64,
    /// Its name.
    pub word: String,
    /// When it is given.
    pub text: String,
}

/// A text of an item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The name of the field.
    pub name: String,
    /// What the judge is told it is.
    pub title: String,
    /// Whether there is no question without it.
    #[serde(default)]
    pub required: bool,
}

/// When a judge sees the reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceUse {
    /// When the caller sets `use_reference`.
    #[default]
    OnRequest,
    /// Whenever there is one.
    WhenGiven,
}

/// How rubrics for an item are written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generate {
    /// What the writer is to do.
    pub task: String,
    /// The inputs it sees.
    pub inputs: Vec<String>,
    /// Whether there may be nothing to write, as with an answer that claims nothing.
    #[serde(default)]
    pub may_be_empty: bool,
}

/// A rubric that is the same for every item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The property, one sentence.
    pub text: String,
    /// What sort of property it is.
    #[serde(default, rename = "type")]
    pub kind: String,
}

impl Rubric {
    /// The scores a judge may give.
    pub fn score_scale(&self) -> Scale {
        match (self.scale.first(), self.scale.last()) {
            (Some(lowest), Some(highest)) if self.between => {
                Scale::Range { lo: lowest.value, hi: highest.value }
            }
            _ => Scale::Levels(self.scale.iter().map(|level| level.value).collect()),
        }
    }

    /// The rubrics that are the same for every item.
    pub fn fixed_rubrics(&self) -> Vec<WrittenRubric> {
        let important = |check: &Check| WrittenRubric {
            text: check.text.clone(),
            kind: check.kind.clone(),
            importance: Some(Importance::High),
        };
        self.checks.iter().map(important).collect()
    }

    fn check(&self) -> Result<(), String> {
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        for name in self.aliases.iter().chain([&self.name]) {
            if !is_name(name) {
                return Err(format!("name: {name:?} is not made of small letters, digits and _"));
            }
        }
        let mut inputs = BTreeSet::new();
        for input in &self.inputs {
            if !is_name(&input.name) {
                return Err(format!("inputs: {:?} is not made of small letters, digits and _", input.name));
            }
            if !inputs.insert(input.name.as_str()) {
                return Err(format!("inputs: {} is there twice", input.name));
            }
        }
        if inputs.is_empty() {
            return Err("inputs: there is none".to_owned());
        }
        match self.kind {
            Kind::Pointwise => {
                let values: Vec<f64> = self.scale.iter().map(|level| level.value).collect();
                let is_ascending = values.is_sorted_by(|a, b| a < b) && values.iter().all(|v| v.is_finite());
                if values.len() < 2 || !is_ascending {
                    return Err("scale: at least two levels, ascending".to_owned());
                }
            }
            Kind::Pairwise => {
                for answer in ["prediction", "baseline_prediction"] {
                    if !self.inputs.iter().any(|input| input.name == answer && input.required) {
                        return Err(format!("inputs: a pairwise rubric requires {answer}"));
                    }
                }
            }
            Kind::RubricVerdicts => {
                if self.generate.is_some() != self.checks.is_empty() {
                    return Err("checks: a rubric of this kind has either checks or generate".to_owned());
                }
            }
        }
        if self.kind != Kind::Pointwise && !self.scale.is_empty() {
            return Err("scale: only a pointwise rubric has one".to_owned());
        }
        if self.kind != Kind::RubricVerdicts && (self.generate.is_some() || !self.checks.is_empty()) {
            return Err("generate: only a rubric of kind rubric_verdicts has it, or checks".to_owned());
        }
        for input in self.generate.iter().flat_map(|generate| &generate.inputs) {
            if !inputs.contains(input.as_str()) {
                return Err(format!("generate.inputs: there is no input {input}"));
            }
        }
        Ok(())
    }
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("rubrics/", $name, ".toml")))),*] };
}

/// Name and text of every file that comes with the service.
const BUILT_IN: &[(&str, &str)] = built_in![
    "coherence",
    "fluency",
    "safety",
    "groundedness",
    "fulfillment",
    "summarization_quality",
    "summarization_helpfulness",
    "summarization_verbosity",
    "question_answering_quality",
    "question_answering_helpfulness",
    "question_answering_relevance",
    "question_answering_correctness",
    "pairwise_summarization_quality",
    "pairwise_question_answering_quality",
    "rubric_based_instruction_following",
    "general_quality_v1",
    "text_quality_v1",
    "instruction_following_v1",
    "grounding_v1",
    "safety_v1",
    "hallucination_v1",
    "final_response_match_v2",
    "final_response_reference_free_v1",
    "final_response_quality_v1",
    "tool_use_quality_v1",
    "compare_meaning",
    "general_quality",
    "summarization_accuracy",
    "summarization_adherence",
    "summarization_completeness",
];

/// All rubrics that are known.
#[derive(Debug, Clone, PartialEq)]
pub struct Rubrics {
    by_name: BTreeMap<String, Rubric>,
    aliases: BTreeMap<String, String>,
}

/// A rubric file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RubricFileError {
    /// The file, as it was named.
    pub file: String,
    /// What is wrong with it; names the key.
    pub reason: String,
}

impl fmt::Display for RubricFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)
    }
}

impl std::error::Error for RubricFileError {}

/// No rubric has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRubric {
    /// The name.
    pub name: String,
    /// Why, when there is a reason.
    pub why: &'static str,
    /// The names there are.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownRubric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = super::verdict::shorten(&self.name, 100);
        write!(f, "no judged metric {name:?}{}; there is {}", self.why, self.known.join(", "))
    }
}

impl std::error::Error for UnknownRubric {}

impl Rubrics {
    /// Those that come with the service.
    pub fn built_in() -> Self {
        let files = BUILT_IN.iter().map(|(name, text)| (*name, *text));
        let empty = Self { by_name: BTreeMap::new(), aliases: BTreeMap::new() };
        empty.and(files).expect("a test reads every file that comes with the service")
    }

    /// Those that come with the service, and these files on top: (file name, text). A file replaces the rubric
    /// of the same name, or adds one.
    ///
    /// # Errors
    ///
    /// The first file that is no rubric, with the key that is wrong.
    pub fn with_files<'f>(
        files: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, RubricFileError> {
        Self::built_in().and(files)
    }

    fn and<'f>(
        mut self,
        files: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<Self, RubricFileError> {
        for (file, text) in files {
            let wrong = |reason| RubricFileError { file: file.to_owned(), reason };
            let rubric = parse(text).map_err(wrong)?;
            self.aliases.retain(|alias, name| *name != rubric.name && *alias != rubric.name);
            for alias in &rubric.aliases {
                if self.by_name.contains_key(alias) {
                    return Err(wrong(format!("aliases: {alias} is the name of another rubric")));
                }
                if self.aliases.insert(alias.clone(), rubric.name.clone()).is_some() {
                    return Err(wrong(format!("aliases: {alias} is an alias of another rubric")));
                }
            }
            self.by_name.insert(rubric.name.clone(), rubric);
        }
        Ok(self)
    }

    /// The rubric of this name or alias.
    ///
    /// # Errors
    ///
    /// There is none; the error lists those there are.
    pub fn get(&self, name: &str) -> Result<&Rubric, UnknownRubric> {
        let canonical = self.aliases.get(name).map_or(name, String::as_str);
        self.by_name.get(canonical).ok_or_else(|| UnknownRubric {
            name: name.to_owned(),
            why: match name {
                _ if name.starts_with("multi_turn_") => " (conversations of several turns are not judged)",
                _ if name.starts_with("gecko_") => " (images and video are not judged)",
                _ => "",
            },
            known: self.by_name.keys().cloned().collect(),
        })
    }

    /// Every rubric, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Rubric> {
        self.by_name.values()
    }
}

fn parse(text: &str) -> Result<Rubric, String> {
    let rubric: Rubric = toml::from_str(text).map_err(|error| {
        let line =
            error.span().and_then(|span| text.get(..span.start)).map(|before| before.lines().count().max(1));
        match line {
            Some(line) => format!("line {line}: {}", error.message()),
            None => error.message().to_owned(),
        }
    })?;
    rubric.check().map(|()| rubric)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLITE: &str = r#"
name = "politeness"
kind = "pointwise"
summary = "Whether a text is polite"
task = "Judge how polite the text is."
scale = [{ value = 0, word = "rude", text = "No." }, { value = 1, word = "polite", text = "Yes." }]
inputs = [{ name = "prediction", title = "Text", required = true }]
"#;

    fn load(text: &str) -> Result<Rubrics, RubricFileError> {
        Rubrics::with_files([("polite.toml", text)])
    }

    #[test]
    fn every_file_that_comes_with_the_service_is_a_rubric_of_that_name() {
        for (name, text) in BUILT_IN {
            assert_eq!(&parse(text).unwrap().name, name);
        }
        assert_eq!(Rubrics::built_in().iter().count(), BUILT_IN.len());
    }

    #[test]
    fn scales_and_inputs_are_those_of_vertex() {
        /// Name, lowest, highest, levels, required, optional.
        type Row = (&'static str, f64, f64, usize, &'static [&'static str], &'static [&'static str]);
        let table: [Row; 12] = [
            ("coherence", 1.0, 5.0, 5, &["prediction"], &[]),
            ("fluency", 1.0, 5.0, 5, &["prediction"], &[]),
            ("safety", 0.0, 1.0, 2, &["prediction"], &[]),
            ("groundedness", 0.0, 1.0, 2, &["context", "prediction"], &[]),
            ("fulfillment", 1.0, 5.0, 5, &["instruction", "prediction"], &[]),
            ("summarization_quality", 1.0, 5.0, 5, &["instruction", "context", "prediction"], &["reference"]),
            (
                "summarization_helpfulness",
                1.0,
                5.0,
                5,
                &["context", "prediction"],
                &["instruction", "reference"],
            ),
            (
                "summarization_verbosity",
                -2.0,
                2.0,
                5,
                &["context", "prediction"],
                &["instruction", "reference"],
            ),
            (
                "question_answering_quality",
                1.0,
                5.0,
                5,
                &["instruction", "context", "prediction"],
                &["reference"],
            ),
            (
                "question_answering_helpfulness",
                1.0,
                5.0,
                5,
                &["instruction", "prediction"],
                &["context", "reference"],
            ),
            (
                "question_answering_relevance",
                1.0,
                5.0,
                5,
                &["instruction", "prediction"],
                &["context", "reference"],
            ),
            (
                "question_answering_correctness",
                0.0,
                1.0,
                2,
                &["instruction", "prediction"],
                &["context", "reference"],
            ),
        ];
        let rubrics = Rubrics::built_in();
        for (name, lo, hi, levels, required, optional) in table {
            let rubric = rubrics.get(name).unwrap();
            let names = |required: bool| {
                let inputs = rubric.inputs.iter().filter(move |input| input.required == required);
                inputs.map(|input| input.name.as_str()).collect::<Vec<_>>()
            };
            assert_eq!(rubric.score_scale().bounds(), Some((lo, hi)), "{name}");
            assert_eq!(rubric.scale.len(), levels, "{name}");
            assert_eq!(names(true), required, "{name}");
            assert_eq!(names(false), optional, "{name}");
            assert!(!rubric.criteria.is_empty(), "{name}");
        }
        for name in ["pairwise_summarization_quality", "pairwise_question_answering_quality"] {
            assert_eq!(rubrics.get(name).unwrap().kind, Kind::Pairwise);
        }
    }

    #[test]
    fn higher_versions_are_served_by_the_same_rubric() {
        let rubrics = Rubrics::built_in();
        for name in ["general_quality_v2", "safety_v3", "final_response_match_v3", "hallucination_v2"] {
            assert!(rubrics.get(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_is_not_judged_is_refused_with_what_there_is() {
        let rubrics = Rubrics::built_in();
        for (name, why) in [
            ("multi_turn_general_quality_v1", "conversations"),
            ("gecko_text2image_v1", "images"),
            ("beauty_v1", "no judged metric \"beauty_v1\";"),
        ] {
            let error = rubrics.get(name).unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains("fluency") && error.contains("safety_v1"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_file_adds_a_rubric_or_replaces_one() {
        assert!(load(POLITE).unwrap().get("politeness").is_ok());
        let replaced = load(&POLITE.replace("\"politeness\"", "\"fluency\"")).unwrap();
        assert_eq!(replaced.get("fluency").unwrap().summary, "Whether a text is polite");
        assert_eq!(replaced.iter().count(), BUILT_IN.len());
        let instead = load(&POLITE.replace("\"politeness\"", "\"safety_v3\"")).unwrap();
        assert_eq!(instead.get("safety_v3").unwrap().name, "safety_v3");
    }

    #[test]
    fn a_wrong_file_is_named_with_its_key() {
        for (wrong, mentions) in [
            (POLITE.replace("task =", "tasks ="), "tasks"),
            (POLITE.replace("summary = \"Whether a text is polite\"", ""), "summary"),
            (POLITE.replace("\"pointwise\"", "\"guess\""), "guess"),
            (POLITE.replace("value = 1", "value = 0"), "scale"),
            (POLITE.replace("value = 1", "value = nan"), "scale"),
            (POLITE.replace("\"pointwise\"", "\"pairwise\""), "baseline_prediction"),
            (POLITE.replace("\"pointwise\"", "\"rubric_verdicts\""), "checks"),
            (POLITE.replace("\"politeness\"", "\"Polite ness\""), "Polite ness"),
            (format!("aliases = [\"fluency\"]\n{POLITE}"), "fluency"),
            (format!("aliases = [\"safety_v3\"]\n{POLITE}"), "safety_v3"),
            ("name = ".to_owned(), "line 1"),
        ] {
            let error = load(&wrong).unwrap_err().to_string();
            assert!(error.starts_with("polite.toml: ") && error.contains(mentions), "{mentions}: {error}");
        }
    }
}
