//! Export by OTLP, gRPC or HTTP, as the standard variables say.
//!
//! Read here: `OTEL_SDK_DISABLED`, `OTEL_{TRACES,METRICS,LOGS}_EXPORTER` (`otlp`, `none`; unset = `otlp` once there is
//! an endpoint) and `OTEL_EXPORTER_OTLP_[SIGNAL_]{ENDPOINT,PROTOCOL}` (`http/protobuf`, the default of the
//! specification, or `grpc`). The SDK reads the rest: headers, timeouts, compression, `OTEL_TRACES_SAMPLER`, queues
//! and intervals, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`.

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use tokio::runtime::Handle;

/// A variable that cannot be used: one sentence that names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongVariable(String);

impl From<ExporterBuildError> for WrongVariable {
    fn from(error: ExporterBuildError) -> Self {
        Self(format!("OTEL_EXPORTER_OTLP_ENDPOINT and its like: {error}"))
    }
}

/// Which signals go out, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exports {
    /// Spans.
    pub traces: Option<Way>,
    /// Metrics, besides the admin port.
    pub metrics: Option<Way>,
    /// Events.
    pub logs: Option<Way>,
}

/// How a signal goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// OTLP over gRPC.
    Grpc,
    /// OTLP over HTTP, in protobuf.
    Http,
}

impl Exports {
    /// What the environment asks for.
    ///
    /// # Errors
    /// A value that is not known here.
    pub fn from_environment() -> Result<Self, WrongVariable> {
        Self::asked_by(&|name| std::env::var(name).ok())
    }

    fn asked_by(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, WrongVariable> {
        // To the specification an empty variable is an unset one.
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(Self::default());
        }
        let way = |signal: &str| {
            let either = |end: &str| {
                variable(&format!("OTEL_EXPORTER_OTLP_{signal}_{end}"))
                    .or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{end}")))
            };
            let chosen = format!("OTEL_{signal}_EXPORTER");
            let asked = match variable(&chosen).as_deref() {
                None => either("ENDPOINT").is_some(),
                Some("otlp") => true,
                Some("none") => false,
                Some(other) => {
                    return Err(WrongVariable(format!(
                        "{chosen}: {other:?} is neither \"otlp\" nor \"none\""
                    )));
                }
            };
            match either("PROTOCOL").as_deref() {
                _ if !asked => Ok(None),
                None | Some("http/protobuf") => Ok(Some(Way::Http)),
                Some("grpc") => Ok(Some(Way::Grpc)),
                Some(other) => Err(WrongVariable(format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL: {other:?} is neither \"grpc\" nor \"http/protobuf\""
                ))),
            }
        };
        Ok(Self { traces: way("TRACES")?, metrics: way("METRICS")?, logs: way("LOGS")? })
    }
}

/// The three exporters are built alike, but have no trait in common.
macro_rules! built {
    ($exporter:ident, $way:expr) => {
        match $way {
            Way::Grpc => $exporter::builder().with_tonic().with_protocol(Protocol::Grpc).build()?,
            Way::Http => $exporter::builder()
                .with_http()
                .with_protocol(Protocol::HttpBinary)
                .with_http_client(OnRuntime::new()?)
                .build()?,
        }
    };
}

impl Way {
    pub(super) fn span_exporter(self) -> Result<SpanExporter, WrongVariable> {
        Ok(built!(SpanExporter, self))
    }

    pub(super) fn metric_exporter(self) -> Result<MetricExporter, WrongVariable> {
        Ok(built!(MetricExporter, self))
    }

    pub(super) fn log_exporter(self) -> Result<LogExporter, WrongVariable> {
        Ok(built!(LogExporter, self))
    }
}

/// The exporters' threads have no runtime; what they send goes over that of the service.
#[derive(Debug)]
struct OnRuntime {
    client: reqwest::Client,
    runtime: Handle,
}

impl OnRuntime {
    fn new() -> Result<Self, WrongVariable> {
        // Somebody else in the process may have installed it before; there is only one choice here.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
        let client = client.map_err(|error| WrongVariable(format!("no HTTP client for OTLP: {error}")))?;
        Ok(Self { client, runtime: Handle::current() })
    }
}

#[async_trait]
impl HttpClient for OnRuntime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let mut answer = client.execute(request).await?;
            let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
            let mut response = Response::new(answer.bytes().await?);
            (*response.status_mut(), *response.headers_mut()) = (status, headers);
            Ok::<_, reqwest::Error>(response)
        });
        Ok(sent.await??)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(variables: &[(&str, &str)]) -> Result<Exports, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Exports::asked_by(&variable).map_err(|wrong| wrong.0)
    }

    #[test]
    fn nothing_is_exported_unless_somebody_says_where_to() {
        assert_eq!(asked(&[]), Ok(Exports::default()));
        assert_eq!(asked(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")]), Ok(Exports::default()));
        let all = Exports { traces: Some(Way::Http), metrics: Some(Way::Http), logs: Some(Way::Http) };
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        assert_eq!(asked(&[endpoint]), Ok(all));
        assert_eq!(asked(&[endpoint, ("OTEL_SDK_DISABLED", "true")]), Ok(Exports::default()));
    }

    #[test]
    fn each_signal_has_its_own_say() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:4317"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_LOGS_EXPORTER", "none"),
        ];
        assert_eq!(
            asked(&variables),
            Ok(Exports { traces: Some(Way::Grpc), metrics: Some(Way::Http), logs: None })
        );
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let wrong = asked(&[("OTEL_TRACES_EXPORTER", "zipkin")]).unwrap_err();
        assert!(wrong.starts_with("OTEL_TRACES_EXPORTER: \"zipkin\""), "{wrong}");
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        let wrong = asked(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]).unwrap_err();
        assert!(wrong.starts_with("OTEL_EXPORTER_OTLP_PROTOCOL: \"http/json\""), "{wrong}");
    }
}
