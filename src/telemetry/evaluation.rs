//! One metric in one request: the span `evaluate {metric}`, its metrics, and an event for each result.

use std::borrow::Cow;
use std::future::Future;
use std::time::{Instant, SystemTime};

use opentelemetry::logs::{AnyValue, LogRecord, Logger, Severity};
use opentelemetry::trace::{FutureExt, SpanKind, Status, TraceContextExt};
use opentelemetry::{Context, KeyValue};

use crate::error::{Error, Kind};
use crate::telemetry::judge::Reused;
use crate::telemetry::names::{EVALUATION_RESULT, attribute};
use crate::telemetry::{EVENTS, RECORDED, metrics, recorded_text, traces};

/// Events of one evaluation, at most: the first results speak, the span and the metrics have them all.
const EVENTS_OF_ONE: usize = 100;

/// What is told of one result.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Told<'r> {
    /// The score; of a comparison 1 for the candidate, 0 for the baseline, 0.5 for a tie.
    pub score: Option<f32>,
    /// A verdict in words; empty = a number says it.
    pub label: &'static str,
    /// The judge's reason; empty = none.
    pub explanation: &'r str,
}

/// Watches the evaluation of `metric`, a name that callers cannot make up. `tell` calls back with each result.
///
/// # Errors
/// Those of `work`.
pub async fn watch<T>(
    metric: impl Into<Cow<'static, str>>,
    work: impl Future<Output = Result<T, Error>>,
    tell: impl for<'r> Fn(&'r T, &mut dyn FnMut(Told<'r>)),
) -> Result<T, Error> {
    let metric = metric.into();
    let span = traces::child(|| format!("evaluate {metric}"), SpanKind::Internal);
    let span = span.map(|span| span.with_value(Reused::default()));
    let mut evaluation =
        Evaluation { metric, results: 0, span, began: Instant::now(), outcome: Kind::Cancelled.name() };
    let answer = match &evaluation.span {
        Some(span) => work.with_context(span.clone()).await,
        None => work.await,
    };
    match &answer {
        Ok(results) => evaluation.told(|each| tell(results, each)),
        Err(error) => evaluation.failed(error),
    }
    answer
}

/// An evaluation under way; what drops it before its end cancels it.
struct Evaluation {
    metric: Cow<'static, str>,
    results: usize,
    span: Option<Context>,
    began: Instant,
    outcome: &'static str,
}

impl Evaluation {
    fn metric(&self) -> opentelemetry::Value {
        match &self.metric {
            Cow::Borrowed(name) => (*name).into(),
            Cow::Owned(name) => name.clone().into(),
        }
    }

    fn told<'r>(&mut self, tell: impl Fn(&mut dyn FnMut(Told<'r>))) {
        self.outcome = "OK";
        let mut scores = Vec::new();
        let mut results = 0;
        tell(&mut |told| {
            scores.extend(told.score.map(f64::from));
            if results < EVENTS_OF_ONE {
                self.event(told, None);
            }
            results += 1;
        });
        self.results = results;
        metrics::scores(self.metric(), scores.len(), scores.iter().copied());
        let Some(span) = &self.span else { return };
        let (Some(min), Some(max)) =
            (scores.iter().copied().reduce(f64::min), scores.iter().copied().reduce(f64::max))
        else {
            return;
        };
        #[expect(clippy::cast_precision_loss, reason = "a request has at most limits.instances instances")]
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        span.span().set_attributes([
            KeyValue::new(attribute::SCORE_MEAN, mean),
            KeyValue::new(attribute::SCORE_MIN, min),
            KeyValue::new(attribute::SCORE_MAX, max),
        ]);
    }

    fn failed(&mut self, error: &Error) {
        self.outcome = error.kind.name();
        self.event(Told::default(), Some(self.outcome));
        if let Some(span) = &self.span {
            span.span().set_attribute(KeyValue::new(attribute::ERROR_TYPE, self.outcome));
            span.span().set_status(Status::error(self.outcome));
        }
    }

    /// A log record under this span; by setting, an event of the span too.
    fn event(&self, told: Told<'_>, error: Option<&'static str>) {
        let on_span =
            self.span.as_ref().filter(|_| RECORDED.get().is_some_and(|settings| settings.span_events));
        let log = EVENTS.get();
        if log.is_none() && on_span.is_none() {
            return;
        }
        let mut facts = vec![KeyValue::new(attribute::EVALUATION_NAME, self.metric())];
        facts.extend(told.score.map(|score| KeyValue::new(attribute::EVALUATION_SCORE, f64::from(score))));
        if !told.label.is_empty() {
            facts.push(KeyValue::new(attribute::EVALUATION_LABEL, told.label));
        }
        let explanation = recorded_text(told.explanation).filter(|text| !text.is_empty());
        facts.extend(
            explanation.map(|text| KeyValue::new(attribute::EVALUATION_EXPLANATION, text.to_owned())),
        );
        facts.extend(error.map(|error| KeyValue::new(attribute::ERROR_TYPE, error)));
        if let Some(log) = log {
            let mut record = log.create_log_record();
            record.set_event_name(EVALUATION_RESULT);
            record.set_timestamp(SystemTime::now());
            record.set_severity_number(if error.is_some() { Severity::Warn } else { Severity::Info });
            record.add_attributes(facts.iter().map(|fact| (fact.key.clone(), any(&fact.value))));
            let inside = self.span.clone().map(Context::attach);
            log.emit(record);
            drop(inside);
        }
        if let Some(span) = on_span {
            span.span().add_event(EVALUATION_RESULT, facts);
        }
    }
}

impl Drop for Evaluation {
    fn drop(&mut self) {
        let instances = i64::try_from(self.results).unwrap_or(i64::MAX);
        if let Some(span) = &self.span {
            span.span().set_attributes([
                KeyValue::new(attribute::METRIC, self.metric()),
                KeyValue::new(attribute::INSTANCES, instances),
                KeyValue::new(attribute::OUTCOME, self.outcome),
            ]);
            if let Some(reused) = span.get::<Reused>().map(Reused::count).filter(|count| *count > 0) {
                span.span().set_attribute(KeyValue::new(attribute::REUSED, i64::from(reused)));
            }
            span.span().end();
        }
        metrics::evaluation(self.metric(), self.outcome, self.began.elapsed(), self.results);
    }
}

fn any(value: &opentelemetry::Value) -> AnyValue {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library's type has no last variant; facts are numbers and texts"
    )]
    match value {
        opentelemetry::Value::F64(number) => AnyValue::Double(*number),
        opentelemetry::Value::String(text) => AnyValue::String(text.clone()),
        other => AnyValue::String(other.to_string().into()),
    }
}

/// What a consensus is made of, for the span of its evaluation.
pub(crate) fn graded(
    confidence: f64,
    votes: Option<usize>,
    verdicts: usize,
    samples: usize,
    stopped_early: bool,
) {
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    traces::annotate(|| {
        let mut facts = vec![
            KeyValue::new(attribute::CONFIDENCE, confidence),
            KeyValue::new(attribute::SAMPLES, count(samples)),
            KeyValue::new(attribute::VERDICTS, count(verdicts)),
            KeyValue::new(attribute::STOPPED_EARLY, stopped_early),
        ];
        facts.extend(votes.map(|votes| KeyValue::new(attribute::VOTES, count(votes))));
        facts
    });
}
