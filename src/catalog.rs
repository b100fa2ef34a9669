//! The metrics this service answers: what `rapid-eval metrics` prints.

use std::borrow::Cow;

use crate::judge::rubric::{self, Rubric, Rubrics};

/// One metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The request arm without `_input`, or the name of a predefined metric of the unified form.
    pub name: Cow<'static, str>,
    /// Who finds the value.
    pub kind: Kind,
    /// The values it can have.
    pub scale: Cow<'static, str>,
    /// The fields of an instance; `?` = may be left out.
    pub inputs: Cow<'static, str>,
    /// The implementation or definition it follows.
    pub reference: Cow<'static, str>,
}

impl Metric {
    /// A row of the table.
    pub fn cells(self) -> [String; 5] {
        let kind = self.kind.name().to_owned();
        [
            self.name.into_owned(),
            kind,
            self.scale.into_owned(),
            self.inputs.into_owned(),
            self.reference.into_owned(),
        ]
    }
}

/// Computed metrics in the order of the request's arms, then the judged ones that have a rubric, then those that
/// take the caller's template.
pub fn metrics(rubrics: &Rubrics) -> impl Iterator<Item = Metric> {
    COMPUTED.iter().chain(TEMPLATED).cloned().chain(rubrics.iter().map(judged))
}

fn judged(rubric: &Rubric) -> Metric {
    let scale = match (rubric.kind, rubric.scale.first(), rubric.scale.last()) {
        (rubric::Kind::Pointwise, Some(lo), Some(hi)) if rubric.scale.len() > 2 => {
            format!("{}..{}", lo.value, hi.value)
        }
        (rubric::Kind::Pointwise, Some(lo), Some(hi)) => format!("{} or {}", lo.value, hi.value),
        (rubric::Kind::Pointwise, ..) => String::new(),
        (rubric::Kind::Pairwise, ..) => String::from("BASELINE, CANDIDATE or TIE"),
        (rubric::Kind::RubricVerdicts, ..) => String::from("0..1"),
    };
    let input = |input: &rubric::Input| format!("{}{}", input.name, if input.required { "" } else { "?" });
    let inputs: Vec<String> = rubric.inputs.iter().map(input).collect();
    Metric {
        name: Cow::Owned(rubric.name.clone()),
        kind: Kind::Judged,
        scale: Cow::Owned(scale),
        inputs: Cow::Owned(inputs.join(", ")),
        reference: Cow::Owned(rubric.summary.clone()),
    }
}

/// Who finds a metric's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The service itself.
    Computed,
    /// A judge LLM.
    Judged,
}

impl Kind {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Computed => "computed",
            Self::Judged => "judged",
        }
    }
}

const PAIR: &str = "prediction, reference";
const TRAJECTORIES: &str = "predicted_trajectory, reference_trajectory";
const ROW: &str = "item?, sample?";
const VERTEX: &str = "Vertex AI's definition";

/// The computed metrics, in the order of the request's arms.
pub const COMPUTED: &[Metric] = &[
    computed("exact_match", "0 or 1", PAIR, "byte equality"),
    computed("bleu", "0..1", PAIR, "sacrebleu 2.6.0 sentence BLEU / 100, tokenizer intl, smoothing exp"),
    computed("rouge", "0..1", PAIR, "rouge_score 0.1.2 F-measure; Unicode words beyond ASCII"),
    computed("tool_call_valid", "0 or 1", PAIR, VERTEX),
    computed("tool_name_match", "0 or 1", PAIR, VERTEX),
    computed("tool_parameter_key_match", "0..1", PAIR, "matches / union of parameter names"),
    computed("tool_parameter_kv_match", "0..1", PAIR, "matches / union of parameter names"),
    computed("trajectory_exact_match", "0 or 1", TRAJECTORIES, VERTEX),
    computed("trajectory_in_order_match", "0 or 1", TRAJECTORIES, VERTEX),
    computed("trajectory_any_order_match", "0 or 1", TRAJECTORIES, VERTEX),
    computed("trajectory_precision", "0..1", TRAJECTORIES, "one-to-one matching"),
    computed("trajectory_recall", "0..1", TRAJECTORIES, "one-to-one matching"),
    computed("trajectory_single_tool_use", "0 or 1", "predicted_trajectory", VERTEX),
    computed("string_check", "0 or 1", ROW, "OpenAI's string_check grader"),
    computed(
        "text_similarity",
        "0..1",
        ROW,
        "RapidFuzz, NLTK 3.9.1, rouge_score 0.1.2, cosine of embeddings or word counts",
    ),
    computed("keyword_match", "0..1", "prediction, keywords", "share of keywords at Unicode word boundaries"),
    computed("semantic_similarity", "0..1", PAIR, "cosine of embeddings or word counts"),
];

const fn computed(
    name: &'static str,
    scale: &'static str,
    inputs: &'static str,
    reference: &'static str,
) -> Metric {
    metric(name, Kind::Computed, scale, inputs, reference)
}

const fn metric(
    name: &'static str,
    kind: Kind,
    scale: &'static str,
    inputs: &'static str,
    reference: &'static str,
) -> Metric {
    Metric {
        name: Cow::Borrowed(name),
        kind,
        scale: Cow::Borrowed(scale),
        inputs: Cow::Borrowed(inputs),
        reference: Cow::Borrowed(reference),
    }
}

/// The judged metrics that take the caller's template.
const TEMPLATED: &[Metric] = &[
    metric(
        "pointwise_metric",
        Kind::Judged,
        "the template's",
        "what the template names",
        "the caller's template",
    ),
    metric(
        "pairwise_metric",
        Kind::Judged,
        "BASELINE, CANDIDATE or TIE",
        "what the template names",
        "the caller's template",
    ),
    metric("label_model", Kind::Judged, "0 or 1", ROW, "OpenAI's label_model grader"),
    metric("score_model", Kind::Judged, "the grader's range", ROW, "OpenAI's score_model grader"),
    metric("multi_grader", Kind::Judged, "the formula's", ROW, "OpenAI's multi grader"),
];
