//! Log lines on stderr: JSON for programs, pretty for people, with the ids of the trace that they belong to.

use std::fmt;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::config::{Log, LogFormat};
use crate::telemetry::traces;

/// Who speaks about export; to a dead collector each batch would be a line.
const EXPORTERS: &str = "opentelemetry";

/// The exporters get a word in this often.
const COMPLAINTS_EVERY: Duration = Duration::from_secs(60);

/// Log lines go to stderr from now on.
pub fn install(settings: &Log) {
    let json = match settings.format {
        LogFormat::Auto => !std::io::stderr().is_terminal(),
        LogFormat::Pretty => false,
        LogFormat::Json => true,
    };
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&settings.filter))
        .with_writer(std::io::stderr);
    if json {
        lines.json().map_event_format(|line| Lines::new(line, Ids::FirstInJson)).init();
    } else {
        lines.map_event_format(|line| Lines::new(line, Ids::LastInText)).init();
    }
}

/// Where the ids of the trace stand in a line.
#[derive(Debug, Clone, Copy)]
enum Ids {
    FirstInJson,
    LastInText,
}

/// Lines of another format, with the ids of the trace, and few about export.
#[derive(Debug)]
struct Lines<F> {
    inner: F,
    ids: Ids,
    complained: Mutex<Option<Instant>>,
}

impl<F> Lines<F> {
    fn new(inner: F, ids: Ids) -> Self {
        Self { inner, ids, complained: Mutex::new(None) }
    }

    fn is_wanted(&self, event: &Event<'_>, now: Instant) -> bool {
        if !event.metadata().target().starts_with(EXPORTERS) {
            return true;
        }
        if *event.metadata().level() > Level::WARN {
            return false;
        }
        let mut last = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = last.is_none_or(|last| now.duration_since(last) >= COMPLAINTS_EVERY);
        if wanted {
            *last = Some(now);
        }
        wanted
    }
}

impl<S, N, F> FormatEvent<S, N> for Lines<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if !self.is_wanted(event, Instant::now()) {
            return Ok(());
        }
        let Some((trace, span)) = traces::current_ids() else {
            return self.inner.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        match (self.ids, line.strip_prefix('{')) {
            (Ids::FirstInJson, Some(rest)) => {
                write!(writer, "{{\"trace_id\":\"{trace}\",\"span_id\":\"{span}\",{rest}")
            }
            (Ids::FirstInJson, None) | (Ids::LastInText, _) => {
                writeln!(writer, "{} trace_id={trace} span_id={span}", line.trim_end_matches('\n'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use opentelemetry::Context;
    use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
    use opentelemetry_sdk::trace::SdkTracerProvider;

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(ids: Ids, speak: impl FnOnce()) -> String {
        let paper = Paper::default();
        let writer = paper.clone();
        let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
        match ids {
            Ids::FirstInJson => tracing::subscriber::with_default(
                lines.json().map_event_format(|line| Lines::new(line, ids)).finish(),
                speak,
            ),
            Ids::LastInText => tracing::subscriber::with_default(
                lines.map_event_format(|line| Lines::new(line, ids)).finish(),
                speak,
            ),
        }
        let bytes = paper.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// The example of the W3C's recommendation.
    fn in_a_trace(speak: impl FnOnce()) {
        traces::install(&SdkTracerProvider::builder().build());
        let trace = TraceId::from_hex("4bf92f3577b34da6a3ce929d0e0e4736").unwrap();
        let span = SpanId::from_hex("00f067aa0ba902b7").unwrap();
        let span = SpanContext::new(trace, span, TraceFlags::SAMPLED, true, TraceState::default());
        let _inside = Context::new().with_remote_span_context(span).attach();
        speak();
    }

    #[test]
    fn a_line_in_json_carries_the_ids_of_its_trace() {
        let line = written(Ids::FirstInJson, || in_a_trace(|| tracing::warn!(judge = "j", "slow")));
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(line["span_id"], "00f067aa0ba902b7");
        assert_eq!(line["fields"], serde_json::json!({"message": "slow", "judge": "j"}));
        assert_eq!(line["level"], "WARN");
        let line = written(Ids::FirstInJson, || tracing::warn!("alone"));
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line.get("trace_id"), None);
    }

    #[test]
    fn a_line_for_people_ends_with_the_ids_of_its_trace() {
        let line = written(Ids::LastInText, || in_a_trace(|| tracing::warn!("slow")));
        let ids = " trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7\n";
        assert!(line.contains("slow") && line.ends_with(ids), "{line}");
    }

    #[test]
    fn exporters_complain_once_a_minute() {
        let lines = written(Ids::LastInText, || {
            for _ in 0..50 {
                tracing::warn!(target: "opentelemetry_sdk", "export failed");
                tracing::info!(target: "opentelemetry_sdk", "started");
                tracing::warn!(target: "rapid_eval", "something else");
            }
        });
        assert_eq!(lines.lines().filter(|line| line.contains("export failed")).count(), 1);
        assert_eq!(lines.lines().filter(|line| line.contains("started")).count(), 0);
        assert_eq!(lines.lines().filter(|line| line.contains("something else")).count(), 50);
    }
}
