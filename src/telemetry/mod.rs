//! What operators see: spans, metrics, events and log lines.
//!
//! | file | what it knows |
//! | --- | --- |
//! | `names.rs` | every name that leaves the service |
//! | `otlp.rs` | what the standard `OTEL_*` variables ask for, and the exporters |
//! | `traces.rs` | spans, and the caller's trace |
//! | `metrics.rs` | instruments, and their text for Prometheus |
//! | `logs.rs` | log lines on stderr |
//! | `evaluation.rs` | one metric in one request: its span, its metrics, its events |
//! | `judge.rs` | one call of a judge: its span and its metrics |
//!
//! The span and the metrics of a call of the service are `server/observe.rs`.
//!
//! Nothing is exported unless `OTEL_EXPORTER_OTLP_ENDPOINT` or its like says where to; the admin port shows the
//! metrics. Exporters have threads and bounded queues of their own: a collector that is slow, dead or restarting
//! costs what did not fit the queue (`OTEL_BSP_MAX_QUEUE_SIZE`, 2,048 spans), and at most one log line a minute.

pub mod evaluation;
pub mod judge;
pub mod logs;
pub mod metrics;
pub mod names;
pub mod otlp;
pub mod traces;

use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::logs::LoggerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;

use crate::config::{Settings, Telemetry as TelemetrySettings};
use crate::telemetry::otlp::{Exports, WrongVariable};

/// What may be recorded beside numbers; unset = the defaults.
static RECORDED: OnceLock<TelemetrySettings> = OnceLock::new();
static EVENTS: OnceLock<SdkLogger> = OnceLock::new();

/// What exports; stop it before the process ends.
#[derive(Debug)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    events: Option<SdkLoggerProvider>,
    metrics: Option<SdkMeterProvider>,
    flush: Duration,
}

impl Telemetry {
    /// Sets up for the whole process what the settings and the environment ask for, inside a Tokio runtime. The first
    /// start counts.
    ///
    /// # Errors
    /// A variable that cannot be used.
    pub fn start(settings: &Settings, exports: &Exports) -> Result<Self, WrongVariable> {
        let _ = RECORDED.set(settings.telemetry.clone());
        let traces = exports.traces.as_ref().map(|way| -> Result<_, WrongVariable> {
            let provider = SdkTracerProvider::builder()
                .with_batch_exporter(way.span_exporter()?)
                .with_resource(resource())
                .build();
            traces::install(&provider);
            Ok(provider)
        });
        let events = exports.logs.as_ref().map(|way| -> Result<_, WrongVariable> {
            let provider = SdkLoggerProvider::builder()
                .with_batch_exporter(way.log_exporter()?)
                .with_resource(resource())
                .build();
            let _ = EVENTS.set(provider.logger(names::SCOPE));
            Ok(provider)
        });
        let (traces, events) = (traces.transpose()?, events.transpose()?);
        let metrics = start_metrics(settings, exports)?;
        Ok(Self { traces, events, metrics, flush: Duration::from_secs(settings.telemetry.flush_seconds) })
    }

    /// Sends what is left, for at most `telemetry.flush_seconds`.
    pub async fn stop(self) {
        let Self { traces, events, metrics, flush } = self;
        let (done, sent) = tokio::sync::oneshot::channel();
        // On a thread of its own, which the end of the process does not wait for.
        let flushing = std::thread::Builder::new().name(String::from("telemetry-flush")).spawn(move || {
            let failed = [
                traces.and_then(|traces| traces.shutdown_with_timeout(flush).err()),
                events.and_then(|events| events.shutdown_with_timeout(flush).err()),
                metrics.and_then(|metrics| metrics.shutdown_with_timeout(flush).err()),
            ];
            // Nobody waits any more when it took too long.
            let _ = done.send(failed.into_iter().flatten().next());
        });
        if flushing.is_err() {
            return;
        }
        match tokio::time::timeout(flush, sent).await {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(error))) => tracing::warn!("the last telemetry was lost: {error}"),
            Ok(Err(_)) | Err(_) => tracing::warn!("the last telemetry was not sent within {flush:?}"),
        }
    }
}

fn start_metrics(settings: &Settings, exports: &Exports) -> Result<Option<SdkMeterProvider>, WrongVariable> {
    let shown = settings.server.admin_listen != crate::config::AdminListen::Off;
    if !shown && exports.metrics.is_none() {
        return Ok(None);
    }
    let mut provider = SdkMeterProvider::builder().with_resource(resource());
    let mut registry = None;
    if shown {
        let new = prometheus::Registry::new();
        let reader = opentelemetry_prometheus::exporter()
            .with_registry(new.clone())
            .scope_info_enabled(false)
            .build()
            .expect("a new registry has nothing that the exporter could collide with");
        provider = provider.with_reader(reader);
        registry = Some(new);
    }
    if let Some(way) = &exports.metrics {
        provider = provider.with_periodic_exporter(way.metric_exporter()?);
    }
    let provider = provider.build();
    metrics::install(&provider, registry);
    Ok(Some(provider))
}

/// Who we are: the standard variables, or else our own name.
fn resource() -> Resource {
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let found = Resource::builder().with_attribute(version.clone()).build();
    let named = found.get(&opentelemetry::Key::from_static_str("service.name"));
    if named.is_none_or(|name| name.as_str().starts_with("unknown_service")) {
        return Resource::builder().with_attribute(version).with_service_name(names::SCOPE).build();
    }
    found
}

/// Up to `telemetry.text_bytes` of a caller's or judge's text, if texts are recorded at all.
fn recorded_text(text: &str) -> Option<&str> {
    let settings = RECORDED.get().filter(|settings| settings.texts)?;
    Some(&text[..text.floor_char_boundary(settings.text_bytes)])
}
