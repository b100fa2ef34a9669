//! A collector that a test looks into: OTLP over gRPC and over HTTP on one port of this machine.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

/// What came in.
#[derive(Debug, Default)]
struct Shelf {
    spans: Vec<Span>,
    logs: Vec<LogRecord>,
    metrics: Vec<String>,
    by_http: usize,
    everything: Vec<u8>,
}

/// The collector's server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Collector {
    shelf: Arc<Mutex<Shelf>>,
    address: Option<SocketAddr>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let collector = Self { address: Some(listener.local_addr().unwrap()), ..Self::default() };
        let routes = Routes::new(TraceServiceServer::new(collector.clone()))
            .add_service(LogsServiceServer::new(collector.clone()))
            .add_service(MetricsServiceServer::new(collector.clone()));
        let by_http = Router::new()
            .route(
                "/v1/traces",
                post(|State(it): State<Self>, body: Bytes| async move { it.read(body, Self::traces) }),
            )
            .route(
                "/v1/logs",
                post(|State(it): State<Self>, body: Bytes| async move { it.read(body, Self::logs) }),
            )
            .route(
                "/v1/metrics",
                post(|State(it): State<Self>, body: Bytes| async move { it.read(body, Self::metrics) }),
            )
            .with_state(collector.clone());
        let router = routes.into_axum_router().merge(by_http);
        tokio::spawn(async move { axum::serve(listener, router).await });
        collector
    }

    /// The variables that make a service export to this collector, soon.
    pub(crate) fn environment(&self, protocol: &'static str) -> Vec<(&'static str, String)> {
        vec![
            ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", self.address.unwrap())),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", String::from(protocol)),
            ("OTEL_BSP_SCHEDULE_DELAY", String::from("50")),
            ("OTEL_BLRP_SCHEDULE_DELAY", String::from("50")),
            ("OTEL_METRIC_EXPORT_INTERVAL", String::from("100")),
        ]
    }

    fn read<M: Message + Default>(&self, body: Bytes, keep: impl FnOnce(&Self, M)) {
        self.shelf.lock().unwrap().by_http += 1;
        keep(self, M::decode(body).unwrap());
    }

    fn traces(&self, request: ExportTraceServiceRequest) {
        let mut shelf = self.shelf.lock().unwrap();
        shelf.everything.extend(request.encode_to_vec());
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        shelf.spans.extend(scopes.flat_map(|scope| scope.spans));
    }

    fn logs(&self, request: ExportLogsServiceRequest) {
        let mut shelf = self.shelf.lock().unwrap();
        shelf.everything.extend(request.encode_to_vec());
        let scopes = request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
        shelf.logs.extend(scopes.flat_map(|scope| scope.log_records));
    }

    fn metrics(&self, request: ExportMetricsServiceRequest) {
        let mut shelf = self.shelf.lock().unwrap();
        shelf.everything.extend(request.encode_to_vec());
        let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
        shelf.metrics.extend(scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name));
    }

    /// All spans, once there are `count`.
    pub(crate) async fn spans(&self, count: usize) -> Vec<Span> {
        self.wait(|shelf| (shelf.spans.len() >= count).then(|| shelf.spans.clone())).await
    }

    /// All log records, once there are `count`.
    pub(crate) async fn log_records(&self, count: usize) -> Vec<LogRecord> {
        self.wait(|shelf| (shelf.logs.len() >= count).then(|| shelf.logs.clone())).await
    }

    /// Returns when a metric of this name has come in.
    pub(crate) async fn metric(&self, name: &str) {
        self.wait(|shelf| shelf.metrics.iter().any(|metric| metric == name).then_some(())).await;
    }

    /// How many exports came by HTTP.
    pub(crate) fn by_http(&self) -> usize {
        self.shelf.lock().unwrap().by_http
    }

    /// Whether these bytes were in anything that came in.
    pub(crate) fn has_seen(&self, text: &str) -> bool {
        self.shelf.lock().unwrap().everything.windows(text.len()).any(|window| window == text.as_bytes())
    }

    async fn wait<T>(&self, ready: impl Fn(&Shelf) -> Option<T>) -> T {
        for _ in 0..1200 {
            if let Some(found) = ready(&self.shelf.lock().unwrap()) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("not exported within a minute; so far {:?}", self.shelf.lock().unwrap());
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.traces(request.into_inner());
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Collector {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        self.logs(request.into_inner());
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.metrics(request.into_inner());
        Ok(Response::new(Default::default()))
    }
}

/// An attribute as text; empty = it is not there.
pub(crate) fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    found.and_then(|attribute| attribute.value.as_ref()).map(text).unwrap_or_default()
}

fn text(value: &AnyValue) -> String {
    use any_value::Value;
    match value.value.as_ref() {
        None => String::new(),
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::BoolValue(value)) => value.to_string(),
        Some(Value::IntValue(value)) => value.to_string(),
        Some(Value::DoubleValue(value)) => value.to_string(),
        Some(Value::ArrayValue(list)) => list.values.iter().map(text).collect::<Vec<_>>().join(","),
        Some(other) => format!("{other:?}"),
    }
}

/// The spans below the one with this id as a tree, two spaces a level, in the order of their begin, with these
/// attributes where a span has them.
pub(crate) fn tree(spans: &[Span], parent: &[u8], shown: &[&str]) -> String {
    let mut tree = String::new();
    branch(spans, parent, shown, 0, &mut tree);
    tree
}

fn branch(spans: &[Span], parent: &[u8], shown: &[&str], depth: usize, tree: &mut String) {
    let mut children: Vec<&Span> = spans.iter().filter(|span| span.parent_span_id == parent).collect();
    children.sort_by_key(|span| {
        // Calls that begin in one instant are told apart by what they are.
        let number = |key| attribute(&span.attributes, key).parse::<u32>().unwrap_or_default();
        (number("eval.sample"), number("http.request.resend_count"), span.start_time_unix_nano)
    });
    for span in children {
        write!(tree, "{:1$}{2}", "", depth * 2, span.name).unwrap();
        for key in shown {
            let value = attribute(&span.attributes, key);
            if !value.is_empty() {
                write!(tree, " {key}={value}").unwrap();
            }
        }
        tree.push('\n');
        branch(spans, &span.span_id, shown, depth + 1, tree);
    }
}
