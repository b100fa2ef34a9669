//! Errors in the form of Google's REST doors: `{"error": {"code", "message", "status", "details"}}`, where
//! `code` is the HTTP status.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::error::{ERROR_DOMAIN, Error, Kind};
use crate::server::rest::JSON;

/// When to ask again if the error does not say.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// An answer that is only this error.
pub fn refuse(error: Error) -> Response {
    let status = error.kind.http();
    let mut response = shaped(status, &error.text(), error.kind.name(), details(&error));
    let passing = error.kind == Kind::Unavailable;
    if let Some(after) = error.retry_after.or(passing.then_some(RETRY_AFTER)) {
        // Whole seconds, never early.
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The answer to a method that a path does not have.
pub fn method_not_allowed(allowed: &'static str) -> Response {
    let message = format!("this path takes {allowed} only");
    let mut response = shaped(StatusCode::METHOD_NOT_ALLOWED, &message, "UNIMPLEMENTED", Vec::new());
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

fn shaped(code: StatusCode, message: &str, status: &str, details: Vec<Value>) -> Response {
    let mut error = json!({ "code": code.as_u16(), "message": message, "status": status });
    if !details.is_empty()
        && let Some(error) = error.as_object_mut()
    {
        error.insert(String::from("details"), Value::Array(details));
    }
    let body = format!("{:#}\n", json!({ "error": error }));
    (code, [(header::CONTENT_TYPE, JSON)], body).into_response()
}

/// What gRPC carries in `grpc-status-details-bin`, in JSON.
fn details(error: &Error) -> Vec<Value> {
    let mut details = Vec::new();
    if !error.field.is_empty() || error.says_where {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{ "field": error.field, "description": error.message }],
        }));
    }
    if let Some(after) = error.retry_after {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{}s", after.as_secs_f64()),
        }));
    }
    if let Some(reason) = &error.reason {
        let facts: serde_json::Map<String, Value> =
            reason.facts.iter().map(|(name, fact)| (name.clone(), Value::from(fact.as_str()))).collect();
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason.word,
            "domain": ERROR_DOMAIN,
            "metadata": facts,
        }));
    }
    details
}
