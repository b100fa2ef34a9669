//! Errors in the form of OpenAI's API: `{"error": {"message", "type", "param", "code"}}`.
//!
//! Its clients ask again after 408, 409, 429 and 5xx unless `x-should-retry` is `false`, which it is whenever
//! asking again cannot help.

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::json;

use crate::error::{Error, Kind};
use crate::server::rest::JSON;

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The same as `retry-after`, in milliseconds.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// An answer that is only this error.
pub fn refuse(error: Error) -> Response {
    let passes = match error.kind {
        Kind::Unavailable
        | Kind::Internal
        | Kind::DeadlineExceeded
        | Kind::Cancelled
        | Kind::ResourceExhausted => true,
        Kind::InvalidArgument
        | Kind::TooLarge
        | Kind::FailedPrecondition
        | Kind::NotFound
        | Kind::Unauthenticated
        | Kind::PermissionDenied
        | Kind::Unimplemented => false,
    };
    let word = match error.kind {
        Kind::Unauthenticated => "authentication_error",
        Kind::PermissionDenied => "permission_error",
        Kind::ResourceExhausted => "rate_limit_error",
        Kind::InvalidArgument
        | Kind::TooLarge
        | Kind::FailedPrecondition
        | Kind::NotFound
        | Kind::Unimplemented => "invalid_request_error",
        Kind::Unavailable | Kind::DeadlineExceeded | Kind::Cancelled | Kind::Internal => "server_error",
    };
    let param = (!error.field.is_empty()).then_some(error.field.as_str());
    let code = (error.kind == Kind::Unauthenticated).then_some("invalid_api_key");
    let mut response = shaped(error.kind.http(), &error.text(), word, param, code);
    let headers = response.headers_mut();
    if !passes {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    if let Some(after) = error.retry_after {
        headers
            .insert(RETRY_AFTER_MS, HeaderValue::from(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)));
    }
    response
}

/// The answer to a method that these paths do not have.
pub fn method_not_allowed() -> Response {
    let message = "this path takes POST only";
    let mut response = shaped(StatusCode::METHOD_NOT_ALLOWED, message, "invalid_request_error", None, None);
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
    headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    response
}

fn shaped(
    status: StatusCode,
    message: &str,
    word: &str,
    param: Option<&str>,
    code: Option<&str>,
) -> Response {
    let error = json!({ "error": { "message": message, "type": word, "param": param, "code": code } });
    (status, [(header::CONTENT_TYPE, JSON)], format!("{error:#}\n")).into_response()
}
