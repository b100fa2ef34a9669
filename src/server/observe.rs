//! Each call of the service as telemetry sees it: a server span under the caller's trace, and its duration by method
//! and status. A call ends with the last byte of its answer, or when the caller goes away.

use std::borrow::Cow;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context as Task, Poll, ready};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode};
use http_body::{Frame, SizeHint};
use opentelemetry::trace::{FutureExt, Status, TraceContextExt};
use opentelemetry::{Context, KeyValue};

use crate::server::door::Door;
use crate::server::rest;
use crate::telemetry::metrics::OpenCall;
use crate::telemetry::names::{OTHER, attribute};
use crate::telemetry::{metrics, traces};
use crate::wire::json;

/// Tells telemetry of a call and its answer.
pub async fn watch(State(door): State<Door>, request: Request, next: Next) -> Response {
    let what = match door {
        Door::Grpc => What::Rpc { method: method(request.uri().path()), status: None },
        Door::Rest => What::Http {
            method: if request.method() == Method::POST { "POST" } else { OTHER },
            route: rest::route(request.uri().path()).unwrap_or(OTHER),
            status: None,
        },
        Door::OpenAi => What::Http {
            method: if request.method() == Method::POST { "POST" } else { OTHER },
            route: rest::graders::route(request.uri().path()),
            status: None,
        },
    };
    let span = traces::server(request.headers(), || what.name());
    let mut call = Call { what, span, began: Instant::now(), _open: OpenCall::begin() };
    let response = match &call.span {
        Some(span) => next.run(request).with_context(span.clone()).await,
        None => next.run(request).await,
    };
    call.saw(response.headers(), Some(response.status()));
    response.map(|body| Body::new(Watched { body, call }))
}

/// `package.Service/Method`, if there is such a method.
fn method(path: &str) -> &'static str {
    static METHODS: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let methods = |service: prost_reflect::ServiceDescriptor| {
            let name = service.full_name().to_owned();
            service.methods().map(move |method| format!("{name}/{}", method.name())).collect::<Vec<_>>()
        };
        json::pool().services().flat_map(methods).collect()
    });
    METHODS.get(path.trim_start_matches('/')).map_or(OTHER, String::as_str)
}

/// A call as its convention describes it.
enum What {
    /// gRPC; the status is a code in words.
    Rpc { method: &'static str, status: Option<&'static str> },
    /// REST.
    Http { method: &'static str, route: &'static str, status: Option<StatusCode> },
}

impl What {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Rpc { method, .. } => Cow::Borrowed(method),
            Self::Http { method, route, .. } => Cow::Owned(format!("{method} {route}")),
        }
    }

    /// What tells calls apart, in spans and metrics alike; last the sort of failure, if it failed.
    fn labels(&self) -> Vec<KeyValue> {
        match self {
            Self::Rpc { method, status } => {
                // Without a status the caller went away.
                let status = status.unwrap_or("CANCELLED");
                let mut labels = vec![
                    KeyValue::new(attribute::RPC_SYSTEM_NAME, "grpc"),
                    KeyValue::new(attribute::RPC_METHOD, *method),
                    KeyValue::new(attribute::RPC_STATUS, status),
                ];
                if status != "OK" {
                    labels.push(KeyValue::new(attribute::ERROR_TYPE, status));
                }
                labels
            }
            Self::Http { method, route, status } => {
                let mut labels = vec![
                    KeyValue::new(attribute::HTTP_METHOD, *method),
                    KeyValue::new(attribute::HTTP_ROUTE, *route),
                ];
                match status {
                    Some(status) => {
                        labels.push(KeyValue::new(attribute::HTTP_STATUS, i64::from(status.as_u16())));
                        if status.is_server_error() {
                            labels.push(KeyValue::new(attribute::ERROR_TYPE, status.as_u16().to_string()));
                        }
                    }
                    None => labels.push(KeyValue::new(attribute::ERROR_TYPE, "cancelled")),
                }
                labels
            }
        }
    }

    /// Whether the service failed, not its caller, as the conventions draw the line.
    fn is_fault(&self) -> bool {
        match self {
            Self::Rpc { status, .. } => matches!(
                status,
                Some(
                    "UNKNOWN"
                        | "DEADLINE_EXCEEDED"
                        | "UNIMPLEMENTED"
                        | "INTERNAL"
                        | "UNAVAILABLE"
                        | "DATA_LOSS"
                )
            ),
            Self::Http { status, .. } => status.is_some_and(|status| status.is_server_error()),
        }
    }
}

/// A call that ends when this is dropped.
struct Call {
    what: What,
    span: Option<Context>,
    began: Instant,
    _open: OpenCall,
}

impl Call {
    /// gRPC says how it went in `grpc-status`, in front when there is nothing else to say, else in the trailers.
    fn saw(&mut self, headers: &HeaderMap, answered: Option<StatusCode>) {
        match &mut self.what {
            What::Rpc { status, .. } => {
                if let Some(code) = headers.get("grpc-status") {
                    *status = Some(in_words(tonic::Code::from_bytes(code.as_bytes())));
                }
            }
            What::Http { status, .. } => *status = answered.or(*status),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let (labels, time) = (self.what.labels(), self.began.elapsed());
        match self.what {
            What::Rpc { .. } => metrics::rpc(time, &labels),
            What::Http { .. } => metrics::http(time, &labels),
        }
        if let Some(span) = &self.span {
            let span = span.span();
            if self.what.is_fault() {
                span.set_status(Status::error(""));
            }
            span.set_attributes(labels);
            span.end();
        }
    }
}

fn in_words(code: tonic::Code) -> &'static str {
    use tonic::Code;
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// An answer on its way. What it still has to do is done inside the call's span: streams are answered here.
struct Watched {
    body: Body,
    call: Call,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        task: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let inside = this.call.span.clone().map(Context::attach);
        let polled = Pin::new(&mut this.body).poll_frame(task);
        drop(inside);
        let frame = ready!(polled);
        if let Some(trailers) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.trailers_ref()) {
            this.call.saw(trailers, None);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
