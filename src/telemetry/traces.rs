//! Spans: begun under the caller's trace, carried along awaits, handed on to judges.
//!
//! Where nothing exports traces, no span is made, and a caller's trace is handed on to judges as it came.

use std::borrow::Cow;
use std::sync::OnceLock;

use http::HeaderMap;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{
    FutureExt, SpanBuilder, SpanKind, TraceContextExt, Tracer, TracerProvider, WithContext,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use crate::telemetry::names;

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// From now on spans are made. The first provider stays.
pub(super) fn install(provider: &SdkTracerProvider) {
    let _ = TRACER.set(provider.tracer(names::SCOPE));
}

/// A server span under the trace that the caller's `traceparent` names, or the first of a trace of its own. Where no
/// traces are exported, the caller's span if he names one, otherwise `None`.
pub(crate) fn server(headers: &HeaderMap, name: impl FnOnce() -> Cow<'static, str>) -> Option<Context> {
    let tracer = TRACER.get();
    if tracer.is_none() && !headers.contains_key("traceparent") {
        return None;
    }
    let parent =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers));
    let Some(tracer) = tracer else { return Some(parent) };
    let span = tracer.build_with_context(builder(name(), SpanKind::Server), &parent);
    Some(parent.with_span(span))
}

/// A span under the current one, if that is recorded.
pub(crate) fn child(name: impl FnOnce() -> String, kind: SpanKind) -> Option<Context> {
    let tracer = TRACER.get()?;
    let parent = Context::current();
    parent.span().is_recording().then(|| {
        let span = tracer.build_with_context(builder(Cow::Owned(name()), kind), &parent);
        parent.with_span(span)
    })
}

/// A span under `parent` if that is recorded, otherwise `parent`.
pub(crate) fn under(parent: Context, name: &'static str) -> Context {
    match TRACER.get() {
        Some(tracer) if parent.span().is_recording() => {
            let span = tracer.build_with_context(builder(Cow::Borrowed(name), SpanKind::Internal), &parent);
            parent.with_span(span)
        }
        _ => parent,
    }
}

fn builder(name: Cow<'static, str>, kind: SpanKind) -> SpanBuilder {
    SpanBuilder::from_name(name).with_kind(kind)
}

/// Adds to the current span, if it is recorded.
pub(crate) fn annotate<A: IntoIterator<Item = KeyValue>>(attributes: impl FnOnce() -> A) {
    with_current(|current| current.span().set_attributes(attributes()));
}

/// Does this with the current span, if it is recorded.
pub(crate) fn with_current(act: impl FnOnce(&Context)) {
    if TRACER.get().is_none() {
        return;
    }
    // Outside of `map_current`, so that what is done may look at the context itself.
    let current = Context::current();
    if current.span().is_recording() {
        act(&current);
    }
}

/// Keeps `work` in the current span, whoever polls it.
pub(crate) fn carry<F>(work: F) -> WithContext<F> {
    work.with_current_context()
}

/// Names the current span to whoever gets these headers.
pub(crate) fn hand_on(headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(&Context::current(), &mut HeaderInjector(headers));
}

/// The ids of the current trace and span, for a log line.
pub(super) fn current_ids() -> Option<(String, String)> {
    TRACER.get()?;
    Context::map_current(|current| {
        let span = current.span();
        let ids = span.span_context();
        ids.is_valid().then(|| (ids.trace_id().to_string(), ids.span_id().to_string()))
    })
}
