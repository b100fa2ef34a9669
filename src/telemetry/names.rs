//! Every name that leaves the service in a trace, a metric or an event.
//!
//! Those of RPC, HTTP and GenAI follow OpenTelemetry's semantic conventions 1.37 (GenAI: the conventions that moved
//! to a repository of their own, all "development"; RPC: durations in seconds, status as text). What no convention
//! covers begins with `eval.` as an attribute and with `rapid_eval.` as a metric.
//!
//! Prometheus shows a metric with `_` for `.`, and with its unit and `_total` behind: [`in_prometheus`].

/// The scope of all spans, metrics and events, and the default name of the service.
pub const SCOPE: &str = "rapid-eval";

/// Attributes.
pub mod attribute {
    /// `grpc`.
    pub const RPC_SYSTEM_NAME: &str = "rpc.system.name";
    /// `package.Service/Method`, or [`super::OTHER`].
    pub const RPC_METHOD: &str = "rpc.method";
    /// A gRPC code in words: `OK`, `DEADLINE_EXCEEDED`.
    pub const RPC_STATUS: &str = "rpc.response.status_code";
    /// `POST`, or [`super::OTHER`].
    pub const HTTP_METHOD: &str = "http.request.method";
    /// The path with placeholders, or [`super::OTHER`].
    pub const HTTP_ROUTE: &str = "http.route";
    /// A number.
    pub const HTTP_STATUS: &str = "http.response.status_code";
    /// Which sort of failure: a gRPC code, an HTTP status, or the word of a judge's failure.
    pub const ERROR_TYPE: &str = "error.type";
    /// The judge's host.
    pub const SERVER_ADDRESS: &str = "server.address";
    /// The judge's port.
    pub const SERVER_PORT: &str = "server.port";
    /// How often a question was sent before; absent = never.
    pub const RESEND_COUNT: &str = "http.request.resend_count";

    /// A metric, as `rapid-eval metrics` prints it.
    pub const METRIC: &str = "eval.metric";
    /// Instances of one evaluation.
    pub const INSTANCES: &str = "eval.instances";
    /// A gRPC code in words: how an evaluation ended.
    pub const OUTCOME: &str = "eval.outcome";
    /// Mean of the scores of one evaluation.
    pub const SCORE_MEAN: &str = "eval.score.mean";
    /// Lowest of the scores of one evaluation.
    pub const SCORE_MIN: &str = "eval.score.min";
    /// Highest of the scores of one evaluation.
    pub const SCORE_MAX: &str = "eval.score.max";
    /// Share of the samples that agree, 0 to 1.
    pub const CONFIDENCE: &str = "eval.confidence";
    /// Samples asked.
    pub const SAMPLES: &str = "eval.samples";
    /// Samples that gave a verdict.
    pub const VERDICTS: &str = "eval.verdicts";
    /// Samples that agree with the consensus.
    pub const VOTES: &str = "eval.votes";
    /// Whether samples were left out because they could not change the answer.
    pub const STOPPED_EARLY: &str = "eval.stopped_early";
    /// The configured name of a judge.
    pub const JUDGE: &str = "eval.judge";
    /// One endpoint of several that are asked as one judge, by its configured name.
    pub const ENDPOINT: &str = "eval.judge.endpoint";
    /// Where an answer comes from: `endpoint`, `memory`, `shared`, `in_flight`.
    pub const SOURCE: &str = "eval.judge.source";
    /// Answers of one evaluation that no call of its own was made for.
    pub const REUSED: &str = "eval.judge.reused";
    /// What happened to a call: `hedge`, `hedge_won`, `retry_refused`, `over_budget`, `abandoned`.
    pub const EVENT: &str = "eval.judge.event";
    /// Which sample of an item a judge was asked for, from 0.
    pub const SAMPLE: &str = "eval.sample";
    /// Request fields that were left out because the endpoint refuses them.
    pub const LEFT_OUT: &str = "eval.judge.left_out";

    /// What is evaluated.
    pub const EVALUATION_NAME: &str = "gen_ai.evaluation.name";
    /// A score as a number.
    pub const EVALUATION_SCORE: &str = "gen_ai.evaluation.score.value";
    /// A score in words.
    pub const EVALUATION_LABEL: &str = "gen_ai.evaluation.score.label";
    /// A judge's reason; only where texts are recorded.
    pub const EVALUATION_EXPLANATION: &str = "gen_ai.evaluation.explanation";

    /// `chat` or `embeddings`.
    pub const OPERATION: &str = "gen_ai.operation.name";
    /// Such as `openai` or `azure.ai.openai`.
    pub const PROVIDER: &str = "gen_ai.provider.name";
    /// The model that a judge's settings name.
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    /// The sampling parameter.
    pub const TEMPERATURE: &str = "gen_ai.request.temperature";
    /// The sampling parameter.
    pub const TOP_P: &str = "gen_ai.request.top_p";
    /// The sampling parameter.
    pub const SEED: &str = "gen_ai.request.seed";
    /// The sampling parameter.
    pub const MAX_TOKENS: &str = "gen_ai.request.max_tokens";
    /// Answers wanted of one call, where it is more than one.
    pub const CHOICES: &str = "gen_ai.request.choice.count";
    /// `text` or `json`.
    pub const OUTPUT_TYPE: &str = "gen_ai.output.type";
    /// The provider's id of an answer.
    pub const RESPONSE_ID: &str = "gen_ai.response.id";
    /// The model that answered.
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    /// Of each answer of a call: `stop`, `length` when it was cut off, `error` when it is of no use.
    pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    /// Prompt tokens, cached ones included.
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    /// Output tokens, reasoning included.
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    /// Prompt tokens that the provider had in its cache.
    pub const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
    /// Output tokens spent on reasoning.
    pub const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
    /// What a judge was asked; only where texts are recorded.
    pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
    /// What a judge answered; only where texts are recorded.
    pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
    /// A judge's rules; only where texts are recorded.
    pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
}

/// The value of a label that a caller could make up.
pub const OTHER: &str = "_OTHER";

/// The span of one request of a stream.
pub const STREAM_ITEM: &str = "EvaluateInstancesStream item";

/// The event of one result.
pub const EVALUATION_RESULT: &str = "gen_ai.evaluation.result";

/// The event of an answer that no call was made for. Its span is linked to the call that was made, where this process made
/// it.
pub const ANSWER_REUSED: &str = "eval.judge.answer_reused";

/// A metric: its name and its unit (UCUM).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// With dots.
    pub name: &'static str,
    /// `s`, `1`, or a thing in braces.
    pub unit: &'static str,
    /// What it counts or measures.
    pub kind: Kind,
    /// One sentence.
    pub about: &'static str,
}

/// What a metric does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size.
    Histogram,
}

/// Metrics.
pub mod metric {
    use super::Kind::{Counter, Gauge, Histogram};
    use super::Metric;

    macro_rules! metrics {
        ($($constant:ident: $kind:ident $name:literal, $unit:literal, $about:literal;)*) => {
            $(
                #[doc = $about]
                pub const $constant: Metric = Metric { name: $name, unit: $unit, kind: $kind, about: $about };
            )*

            /// All of them.
            pub const ALL: &[Metric] = &[$($constant),*];
        };
    }

    metrics! {
        RPC_DURATION: Histogram "rpc.server.call.duration", "s", "Time from a gRPC call's first byte to the end of its answer.";
        HTTP_DURATION: Histogram "http.server.request.duration", "s", "Time from a REST call's first byte to the end of its answer.";
        CALLS_OPEN: Gauge "rapid_eval.calls.open", "{call}", "Calls of both doors that are being received or answered.";
        EVALUATION_DURATION: Histogram "rapid_eval.evaluation.duration", "s", "Time of one metric in one request, by outcome.";
        INSTANCES: Counter "rapid_eval.instances", "{instance}", "Instances that were evaluated.";
        SCORE: Histogram "rapid_eval.score", "{score}", "Scores; of a request with many instances, evenly spaced ones.";
        WORKER_THREADS: Gauge "rapid_eval.workers.threads", "{thread}", "Threads for computed metrics.";
        WORKER_BUSY: Counter "rapid_eval.workers.busy", "s", "Time that these threads spent at work, all added up.";
        WORKER_QUEUE: Histogram "rapid_eval.workers.queue.duration", "s", "Time that large requests waited for a first thread.";
        JUDGE_DURATION: Histogram "gen_ai.client.inference.duration", "s", "Time of one call of a judge; a retry is a call of its own.";
        JUDGE_QUESTIONS: Counter "rapid_eval.judge.questions", "{question}", "Questions that were answered, by where the answer comes from.";
        JUDGE_RETRIES: Counter "rapid_eval.judge.retries", "{call}", "Calls that asked a judge again.";
        JUDGE_EVENTS: Counter "rapid_eval.judge.events", "{event}", "Second copies sent and those that were first, retries and calls that a budget refused, calls dropped before their answer.";
        JUDGE_QUEUE: Histogram "rapid_eval.judge.queue.duration", "s", "Time that questions waited for one of a judge's places.";
        INPUT_TOKENS: Counter "gen_ai.client.inference.usage.input_tokens", "{token}", "Prompt tokens, cached ones included.";
        OUTPUT_TOKENS: Counter "gen_ai.client.inference.usage.output_tokens", "{token}", "Output tokens, reasoning included.";
        CACHED_TOKENS: Counter "gen_ai.client.inference.usage.cache_read.input_tokens", "{token}", "Prompt tokens that the provider had in its cache.";
        REASONING_TOKENS: Counter "gen_ai.client.inference.usage.reasoning.output_tokens", "{token}", "Output tokens spent on reasoning.";
    }
}

/// The family that Prometheus sees.
pub fn in_prometheus(metric: Metric) -> String {
    let name = metric.name.replace('.', "_");
    let unit = match metric.unit {
        "s" => "_seconds",
        // A dimensionless gauge is a ratio to the exporter; nothing here is one.
        _ => "",
    };
    let total = if metric.kind == Kind::Counter { "_total" } else { "" };
    format!("{name}{unit}{total}")
}
