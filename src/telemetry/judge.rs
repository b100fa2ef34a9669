//! One call of a judge: the client span `chat {model}`, and what it took.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use opentelemetry::trace::{FutureExt, SpanKind, Status, TraceContextExt, WithContext};
use opentelemetry::{Array, Context, KeyValue, StringValue, Value};
use serde_json::json;

use crate::judge::providers::embeddings::Embedded;
use crate::judge::settings::{JudgeSettings, ProviderKind};
use crate::judge::{JudgeError, Question, Reply, ReplyForm, Sampling, Source, Speaker, Usage};
use crate::telemetry::names::{ANSWER_REUSED, attribute};
use crate::telemetry::{metrics, recorded_text, traces};

/// Who is called. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Callee {
    /// Judge, provider and model: few values, as configured.
    labels: Vec<KeyValue>,
    /// Host and port, for spans alone.
    address: Vec<KeyValue>,
    model: String,
    sampling: Sampling,
}

impl Callee {
    /// The endpoint with these settings, one of the judge's; its name is empty where there is only one.
    pub fn of(judge: &str, endpoint: &str, settings: &JudgeSettings) -> Self {
        let provider = match settings.provider {
            ProviderKind::OpenAi => "openai",
            ProviderKind::Azure => "azure.ai.openai",
            ProviderKind::Anthropic => "anthropic",
            ProviderKind::Gemini => "gcp.gemini",
            ProviderKind::Ollama => "ollama",
            ProviderKind::Scripted => "scripted",
        };
        let model = if settings.model.is_empty() { judge } else { &settings.model }.to_owned();
        let mut labels = vec![
            KeyValue::new(attribute::JUDGE, judge.to_owned()),
            KeyValue::new(attribute::PROVIDER, provider),
            KeyValue::new(attribute::REQUEST_MODEL, model.clone()),
        ];
        if !endpoint.is_empty() {
            labels.push(KeyValue::new(attribute::ENDPOINT, endpoint.to_owned()));
        }
        let mut address = Vec::new();
        if let (true, Ok(base)) = (settings.provider != ProviderKind::Scripted, settings.base()) {
            let port = base.port_u16().unwrap_or(if base.scheme_str() == Some("http") { 80 } else { 443 });
            let host = base.host().unwrap_or_default().to_owned();
            address.push(KeyValue::new(attribute::SERVER_ADDRESS, host));
            address.push(KeyValue::new(attribute::SERVER_PORT, i64::from(port)));
        }
        let sampling = Sampling {
            temperature: settings.temperature,
            top_p: settings.top_p,
            seed: settings.seed,
            max_tokens: settings.max_tokens,
            reasoning_effort: settings.reasoning_effort.clone(),
        };
        Self { labels, address, model, sampling }
    }

    /// Watches one call.
    pub(crate) async fn watch(
        &self,
        question: &Question,
        asked: impl Future<Output = Result<Reply, JudgeError>>,
    ) -> Result<Reply, JudgeError> {
        let Attempt { resent, waited } = Attempt::sent();
        if let Some(waited) = waited {
            metrics::judge_queue(waited, &self.labels);
            if resent > 0 {
                metrics::judge_retry(&self.labels);
            }
        }
        let span = traces::child(|| format!("chat {}", self.model), SpanKind::Client);
        if let Some(span) = &span {
            span.span().set_attributes(self.asked(question, resent));
        }
        let mut call = Call { callee: self, span, began: Instant::now(), ended: false };
        let mut answer = match &call.span {
            Some(span) => asked.with_context(span.clone()).await,
            None => asked.await,
        };
        call.end(&answer, |reply| reply.usage, told);
        if let (Some(span), Ok(reply)) = (&call.span, &mut answer) {
            reply.journey.call = Some(span.span().span_context().clone());
        }
        answer
    }

    /// Watches one call for embeddings, which was made `resent` times before.
    pub(crate) async fn watch_embeddings(
        &self,
        resent: u32,
        asked: impl Future<Output = Result<Embedded, JudgeError>>,
    ) -> Result<Embedded, JudgeError> {
        if resent > 0 {
            metrics::judge_retry(&self.labels);
        }
        let span = traces::child(|| format!("embeddings {}", self.model), SpanKind::Client);
        if let Some(span) = &span {
            let mut facts = self.labels.clone();
            facts.extend_from_slice(&self.address);
            facts.push(KeyValue::new(attribute::OPERATION, "embeddings"));
            facts.extend((resent > 0).then(|| KeyValue::new(attribute::RESEND_COUNT, i64::from(resent))));
            span.span().set_attributes(facts);
        }
        let mut call = Call { callee: self, span, began: Instant::now(), ended: false };
        let answer = match &call.span {
            Some(span) => asked.with_context(span.clone()).await,
            None => asked.await,
        };
        let told = |answer: &Embedded| {
            let tokens = i64::try_from(answer.usage.input_tokens).unwrap_or(i64::MAX);
            vec![KeyValue::new(attribute::INPUT_TOKENS, tokens)]
        };
        call.end(&answer, |answer| answer.usage, told);
        answer
    }

    fn asked(&self, question: &Question, resent: u32) -> Vec<KeyValue> {
        let (asked, own) = (&question.sampling, &self.sampling);
        let output = match question.form {
            ReplyForm::Json { .. } => "json",
            ReplyForm::Text | ReplyForm::Label { .. } => "text",
        };
        let mut facts = self.labels.clone();
        facts.extend_from_slice(&self.address);
        facts.extend([
            KeyValue::new(attribute::OPERATION, "chat"),
            KeyValue::new(attribute::OUTPUT_TYPE, output),
            KeyValue::new(attribute::SAMPLE, i64::from(question.sample)),
        ]);
        let mut add = |key, value: Option<Value>| facts.extend(value.map(|value| KeyValue::new(key, value)));
        let choices = i64::from(question.more_choices) + 1;
        add(attribute::CHOICES, (choices > 1).then(|| choices.into()));
        add(attribute::RESEND_COUNT, (resent > 0).then(|| i64::from(resent).into()));
        add(attribute::TEMPERATURE, asked.temperature.or(own.temperature).map(Value::from));
        add(attribute::TOP_P, asked.top_p.or(own.top_p).map(Value::from));
        add(attribute::SEED, asked.seed.or(own.seed).map(Value::from));
        add(attribute::MAX_TOKENS, asked.max_tokens.or(own.max_tokens).map(|max| i64::from(max).into()));
        let left_out: Vec<StringValue> =
            question.without.iter().map(|field| format!("{field:?}").into()).collect();
        add(attribute::LEFT_OUT, (!left_out.is_empty()).then_some(Value::Array(Array::String(left_out))));
        add(attribute::SYSTEM_INSTRUCTIONS, text(&question.system));
        let turns = question.turns.iter().map(|turn| {
            let role = match turn.speaker {
                Speaker::User => "user",
                Speaker::Judge => "assistant",
            };
            recorded_text(&turn.text).map(|text| message(role, text))
        });
        let turns: Option<Vec<serde_json::Value>> = turns.collect();
        add(attribute::INPUT_MESSAGES, turns.map(|turns| json!(turns).to_string().into()));
        facts
    }
}

fn text(text: &str) -> Option<Value> {
    let text = recorded_text(text).filter(|text| !text.is_empty())?;
    Some(json!([{"type": "text", "content": text}]).to_string().into())
}

fn message(role: &str, text: &str) -> serde_json::Value {
    json!({"role": role, "parts": [{"type": "text", "content": text}]})
}

/// A question was answered: by a call of its own, whose span tells of it, or without one.
pub(crate) fn answered(judge: &str, question: &Question, answer: &Result<Reply, JudgeError>) {
    let Ok(Reply { journey, .. }) = answer else { return };
    let source: &'static str = journey.source.into();
    metrics::judge_question(&[
        KeyValue::new(attribute::JUDGE, judge.to_owned()),
        KeyValue::new(attribute::SOURCE, source),
    ]);
    if journey.source == Source::Endpoint {
        return;
    }
    traces::with_current(|current| {
        if let Some(reused) = current.get::<Reused>() {
            reused.0.fetch_add(1, Ordering::Relaxed);
        }
        let facts = vec![
            KeyValue::new(attribute::JUDGE, judge.to_owned()),
            KeyValue::new(attribute::SOURCE, source),
            KeyValue::new(attribute::SAMPLE, i64::from(question.sample)),
        ];
        if let Some(call) = &journey.call {
            current.span().add_link(call.clone(), facts.clone());
        }
        current.span().add_event(ANSWER_REUSED, facts);
    });
}

/// Answers that an evaluation got without a call; travels with its context.
#[derive(Debug, Default)]
pub(super) struct Reused(AtomicU32);

impl Reused {
    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A call under way; what drops it before its end cancels it.
struct Call<'c> {
    callee: &'c Callee,
    span: Option<Context>,
    began: Instant,
    ended: bool,
}

impl Call<'_> {
    fn end<A>(
        &mut self,
        answer: &Result<A, JudgeError>,
        usage: impl FnOnce(&A) -> Usage,
        told: impl FnOnce(&A) -> Vec<KeyValue>,
    ) {
        self.ended = true;
        match answer {
            Ok(answer) => {
                metrics::judge(self.began.elapsed(), &self.callee.labels, Some(usage(answer)));
                if let Some(span) = &self.span {
                    span.span().set_attributes(told(answer));
                    span.span().end();
                }
            }
            Err(error) => self.fail(error.kind.word()),
        }
    }

    fn fail(&self, word: &'static str) {
        let mut labels = self.callee.labels.clone();
        labels.push(KeyValue::new(attribute::ERROR_TYPE, word));
        metrics::judge(self.began.elapsed(), &labels, None);
        if let Some(span) = &self.span {
            span.span().set_attribute(KeyValue::new(attribute::ERROR_TYPE, word));
            span.span().set_status(Status::error(word));
            span.span().end();
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.fail("cancelled");
        }
    }
}

fn told(reply: &Reply) -> Vec<KeyValue> {
    let finish = |reply: &Reply| if reply.truncated { "length" } else { "stop" };
    let of_choice = |choice: &Result<Reply, JudgeError>| choice.as_ref().map_or("error", finish);
    let finishes = std::iter::once(finish(reply)).chain(reply.more_choices.iter().map(of_choice));
    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let mut facts = vec![
        KeyValue::new(
            attribute::FINISH_REASONS,
            Value::Array(Array::String(finishes.map(Into::into).collect())),
        ),
        KeyValue::new(attribute::INPUT_TOKENS, tokens(reply.usage.input_tokens)),
        KeyValue::new(attribute::OUTPUT_TOKENS, tokens(reply.usage.output_tokens)),
        KeyValue::new(attribute::CACHED_TOKENS, tokens(reply.usage.cached_input_tokens)),
        KeyValue::new(attribute::REASONING_TOKENS, tokens(reply.usage.reasoning_tokens)),
    ];
    if !reply.model.is_empty() {
        facts.push(KeyValue::new(attribute::RESPONSE_MODEL, reply.model.clone()));
    }
    if !reply.id.is_empty() {
        facts.push(KeyValue::new(attribute::RESPONSE_ID, reply.id.clone()));
    }
    let said = recorded_text(&reply.text).map(|text| json!([message("assistant", text)]).to_string());
    facts.extend(said.map(|said| KeyValue::new(attribute::OUTPUT_MESSAGES, said)));
    facts
}

/// What the sender of a question has to know of the attempt that it is part of.
struct Attempt {
    /// Attempts before this one.
    resent: u32,
    /// How long the question waited before it was sent; `None` = it was sent in this attempt before, in other words.
    waited: Option<Duration>,
}

/// An attempt under way; travels with the context.
struct Begun {
    resent: u32,
    at: Instant,
    is_sent: AtomicBool,
}

impl Attempt {
    /// The question of the current attempt is being sent.
    fn sent() -> Self {
        Context::map_current(|current| match current.get::<Begun>() {
            None => Self { resent: 0, waited: None },
            Some(begun) => {
                let again = begun.is_sent.swap(true, Ordering::Relaxed);
                Self { resent: begun.resent, waited: (!again).then(|| begun.at.elapsed()) }
            }
        })
    }
}

/// Marks what `asked` sends as attempt number `attempt`, from 1.
pub(crate) fn attempt<F>(attempt: u32, asked: F) -> WithContext<F> {
    let begun =
        Begun { resent: attempt.saturating_sub(1), at: Instant::now(), is_sent: AtomicBool::new(false) };
    asked.with_context(Context::current_with_value(begun))
}
