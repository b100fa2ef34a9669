//! The metrics this service answers: what `rapid-eval metrics` prints.

/// One metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The request arm without `_input`.
    pub name: &'static str,
    /// Who finds the value.
    pub kind: Kind,
    /// The values it can have.
    pub scale: &'static str,
    /// The fields of an instance; `?` = may be left out.
    pub inputs: &'static str,
    /// The implementation or definition it follows.
    pub reference: &'static str,
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
];

const fn computed(
    name: &'static str,
    scale: &'static str,
    inputs: &'static str,
    reference: &'static str,
) -> Metric {
    Metric { name, kind: Kind::Computed, scale, inputs, reference }
}
