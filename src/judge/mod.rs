//! Judges: LLMs that are asked for a verdict on a text.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `settings.rs` | what a configuration says of a judge, and the one-flag form `provider:base_url#model` |
//! | `providers/` | what to send and what came back, per wire; no network |
//! | `http.rs` | the only place that opens connections |
//! | `endpoint.rs` | one provider over one connection, as a judge |
//! | `secret.rs` | keys, and how they stay out of sight |
//! | `layers/` | wraps around a judge that are judges themselves |
//! | `pool/` | several endpoints as one judge: which is asked, when, and who waits |
//! | `cache/` | equal questions asked once: in flight, in memory, in Redis |
//! | `caller.rs` | on whose behalf a judge is asked |
//! | `shared.rs` | the Redis that processes share, on which nothing depends |
//! | `counters.rs` | what a judge has cost and how it fared, as plain numbers |
//! | `roster.rs` | all judges by name, and the rubrics to ask with |
//! | `stack.rs` | from settings to a judge: which layers, in which order |
//! | `rubric.rs`, `rubrics/` | criteria, scale and task of each judged metric, as data |
//! | `template.rs` | placeholders filled once; graded text between markers |
//! | `prompt.rs` | a rubric or a caller's template turned into what a judge reads |
//! | `verdict/` | what is asked of a reply; a reply read as a verdict, or the reason why not |
//! | `consensus.rs` | votes counted |
//! | `autorater/` | samples, flipping, repair: many questions, one grade |
//!
//! A judge that failed is an error. It never becomes a number.

pub mod autorater;
pub mod cache;
pub mod caller;
pub mod consensus;
pub mod counters;
pub mod endpoint;
pub mod http;
pub mod layers;
pub mod pool;
pub mod prompt;
pub mod providers;
pub mod roster;
pub mod rubric;
pub mod secret;
pub mod settings;
mod shared;
pub mod stack;
pub mod template;
pub mod verdict;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::SpanContext;
use tokio::time::Instant;

/// One question to a judge: a conversation, and the form wanted for the answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// Rules for the judge, apart from the conversation; empty = none.
    pub system: String,
    /// The conversation, oldest turn first; the last one is the user's.
    pub turns: Vec<Turn>,
    /// The form of the answer.
    pub form: ReplyForm,
    /// What the caller asked for; what is absent is the endpoint's setting.
    pub sampling: Sampling,
    /// Which of the samples of one item this is, from 0. Part of every cache key: samples of one item
    /// must never collapse into one.
    pub sample: u32,
    /// Whether other samples of the item are asked for at the same moment.
    pub has_siblings: bool,
    /// How many answers more are wanted in the same call. Filled in by the layer that asks for samples together;
    /// others read the first answer alone.
    pub more_choices: u32,
    /// When the caller stops waiting; absent = never. No part of a cache key. The layers give up in time for
    /// it and start no call that it leaves no room for.
    pub deadline: Option<Instant>,
    /// Request fields to leave out, whatever `sampling` and the settings say. Filled in by the layer that
    /// learns what an endpoint refuses; empty for everybody else.
    pub without: BTreeSet<Field>,
    /// On whose behalf. Those who wait for one judge are served in turns, caller by caller. No part of a cache key.
    pub caller: u64,
    /// Whether an answer to an equal question may stand for this one.
    pub reuse: Reuse,
    /// Endpoints that have failed this question; others are preferred. Filled in by the layer that asks again.
    pub failed_at: Vec<Arc<str>>,
}

/// Whether an answer to an equal question may stand for a new one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Reuse {
    /// Yes: one that is kept, or one that is on its way to somebody else.
    #[default]
    Allowed,
    /// No: the judge is asked, and the answer is not kept.
    Refused,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Who speaks.
    pub speaker: Speaker,
    /// What is said.
    pub text: String,
}

/// Who speaks in a [`Turn`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Speaker {
    /// The one who asks.
    User,
    /// The judge itself, shown its own earlier reply.
    Judge,
}

/// The form wanted for an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ReplyForm {
    /// Free text.
    #[default]
    Text,
    /// A JSON object that this schema admits. Every property is required and no other is allowed, so that
    /// the strict modes of all providers accept it.
    Json {
        /// Short name of the schema, `[a-z_]+`.
        name: &'static str,
        /// JSON Schema, the subset that all providers share: object, string, number, integer, boolean,
        /// array, enum.
        schema: serde_json::Value,
    },
    /// One token out of a few labels, with the probabilities of its alternatives.
    Label {
        /// What the token may be.
        labels: Vec<String>,
    },
}

/// Sampling parameters; what is absent is left to the endpoint's settings, then to the provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// 0 to 2.
    pub temperature: Option<f64>,
    /// 0 to 1.
    pub top_p: Option<f64>,
    /// Best effort only, on every provider.
    pub seed: Option<i64>,
    /// Upper bound of output tokens, reasoning included where the provider counts it so.
    pub max_tokens: Option<u32>,
    /// `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`; not every model takes every value.
    pub reasoning_effort: Option<String>,
}

/// What a judge answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The visible text; for a forced tool call its arguments.
    pub text: String,
    /// The model that answered, as it names itself; empty = it did not say.
    pub model: String,
    /// The provider's own id of the answer; empty = none.
    pub id: String,
    /// True when the answer was cut off by a token limit.
    pub truncated: bool,
    /// Tokens counted by the provider.
    pub usage: Usage,
    /// Per output token the alternatives that were in play, most likely first. Their joined text need not
    /// equal `text`. Empty = not reported.
    pub alternatives: Vec<Vec<TokenChance>>,
    /// Further answers of the same call, where they were asked for: at most as many, in no order, and free of charge.
    pub more_choices: Vec<Result<Reply, JudgeError>>,
    /// How it was got.
    pub journey: Journey,
}

/// How an answer was got: for telemetry, and for nobody's decisions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Journey {
    /// Where it comes from.
    pub source: Source,
    /// The endpoint that answered, by its configured name; empty where a judge has one endpoint only.
    pub endpoint: Arc<str>,
    /// How often the question was sent, 0 when it was not.
    pub attempts: u32,
    /// How long it waited for a place and for the endpoint's rate, in the attempt that was answered.
    pub queued: Duration,
    /// How long the endpoint took, in the attempt that was answered.
    pub took: Duration,
    /// Whether a second copy was sent because the first took long.
    pub hedged: bool,
    /// The span of the call that was answered, where it was traced: whoever reuses the answer is linked to it.
    pub call: Option<SpanContext>,
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Source {
    /// The endpoint, asked for this question.
    #[default]
    Endpoint,
    /// The memory of this process.
    Memory,
    /// The store that several processes share.
    Shared,
    /// An equal question that was being asked already. The tokens are accounted there.
    InFlight,
}

/// One candidate for one output token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenChance {
    /// The token.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f64,
}

/// Tokens of one or several answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// The part of the prompt that a provider's cache held.
    pub cached_input_tokens: u64,
    /// The part of the output that was reasoning.
    pub reasoning_tokens: u64,
}

impl Usage {
    /// Input and output tokens together.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_input_tokens += other.cached_input_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
    }
}

/// Somebody who can be asked: an endpoint, or a layer around one.
pub trait Judge: Send + Sync {
    /// Asks once. Dropping the future gives up the call and closes its connection or stream.
    fn ask(&self, question: &Question) -> impl Future<Output = Result<Reply, JudgeError>> + Send;

    /// The reply to `question` turned out to be of no use, and is not to be given to anybody else.
    fn disown(&self, _question: &Question) {}
}

/// Why a judge gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeError {
    /// What sort of failure it is; decides whether asking again can help.
    pub kind: JudgeErrorKind,
    /// What happened, for the caller: lower case, no full stop, no secrets, text of the judge shortened.
    pub message: String,
    /// The endpoint asked, by its configured name; empty until known.
    pub endpoint: String,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
    /// What the provider itself says about asking again; absent = the kind decides.
    pub should_retry: Option<bool>,
    /// How often the question was sent, 0 when it never was.
    pub attempts: u32,
    /// True when another endpoint of the same judge may answer at once what this one did not.
    pub elsewhere: bool,
}

/// The sorts of failure, by what can be done about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum JudgeErrorKind {
    /// No connection, reset, 5xx, overloaded: asking again may help.
    Unreachable,
    /// The provider's own time limit for one call, or ours for the endpoint, ran out.
    TimedOut,
    /// Too many requests: asking again later helps.
    Throttled,
    /// Quota, credit or spend limit used up: asking again does not help.
    Exhausted,
    /// The key is missing, wrong or not allowed to use this model.
    Credentials,
    /// The endpoint does not know the model, or is no such endpoint.
    UnknownModel,
    /// The prompt is longer than the model takes.
    PromptTooLong,
    /// A request field that this endpoint refuses; the layer that learns capabilities drops it.
    Unsupported(Field),
    /// The provider blocked the prompt or the answer, or the model declined.
    Refused,
    /// The provider calls the request malformed, for no reason that is known here.
    BadRequest,
    /// An answer came that is not what the wire promises: not JSON, no choices, empty.
    Unreadable,
    /// The caller's own deadline leaves no time to ask.
    OutOfTime,
    /// What the configuration lets this judge cost in a time is spent.
    OverBudget,
}

/// Request fields that some endpoints refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// `temperature`.
    Temperature,
    /// `top_p`.
    TopP,
    /// `seed`.
    Seed,
    /// The name of the token limit (`max_tokens` or `max_completion_tokens`): the other one is used.
    TokenLimitName,
    /// Schema-bound output.
    Schema,
    /// Log-probabilities.
    LogProbs,
    /// Reasoning effort.
    ReasoningEffort,
    /// A separate system text.
    System,
}

impl JudgeErrorKind {
    /// One word in snake case, for labels.
    pub fn word(self) -> &'static str {
        self.into()
    }

    /// Whether the same question may be answered if asked again, here or elsewhere.
    pub fn is_transient(self) -> bool {
        match self {
            Self::Unreachable | Self::TimedOut | Self::Throttled => true,
            Self::Exhausted
            | Self::Credentials
            | Self::UnknownModel
            | Self::PromptTooLong
            | Self::Unsupported(_)
            | Self::Refused
            | Self::BadRequest
            | Self::Unreadable
            | Self::OutOfTime
            | Self::OverBudget => false,
        }
    }
}

impl JudgeError {
    /// An error of this kind; endpoint and attempts are filled in on the way out.
    pub fn new(kind: JudgeErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            endpoint: String::new(),
            retry_after: None,
            should_retry: None,
            attempts: 0,
            elsewhere: false,
        }
    }

    /// Whether asking the same endpoint again may help: its own word first, then the kind of failure.
    pub fn is_transient(&self) -> bool {
        self.should_retry.unwrap_or(self.kind.is_transient())
    }
}

impl fmt::Display for JudgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.endpoint.is_empty() {
            write!(f, "judge {}: ", self.endpoint)?;
        }
        f.write_str(&self.message)?;
        if self.attempts > 1 {
            write!(f, " ({} attempts)", self.attempts)?;
        }
        Ok(())
    }
}

impl std::error::Error for JudgeError {}
