//! What can go wrong with a request, and the only place that knows gRPC codes and HTTP statuses.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tonic_types::{ErrorDetails, StatusExt};

use crate::metrics::Unscored;

/// The domain that names this service in `google.rpc.ErrorInfo`.
pub const ERROR_DOMAIN: &str = "rapid-eval";

/// A caller's own words are quoted up to this many bytes: status text travels in a header that clients
/// and proxies cap at about 8 KiB for all headers together.
const QUOTED_BYTES: usize = 120;

/// What went wrong, as the caller sees it.
#[derive(Debug)]
pub struct Error {
    /// The sort of failure; decides the gRPC code and the HTTP status.
    pub kind: Kind,
    /// For the caller: lower case, no full stop, with the fact.
    pub message: String,
    /// The request field that is wrong, as a path such as `rouge_input.instances[2].prediction`; empty = none.
    pub field: String,
    /// The message says by itself where the fault is, so [`Error::text`] does not put the field in front.
    pub says_where: bool,
    /// When asking again makes sense.
    pub retry_after: Option<Duration>,
    /// A stable upper-case word for programs and facts beside it, sent as `google.rpc.ErrorInfo`.
    pub reason: Option<Box<Reason>>,
    /// For the log, never for the caller.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A machine-readable reason with its facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reason {
    /// Such as `JUDGE_UNREACHABLE`.
    pub word: &'static str,
    /// Facts by name, such as the endpoint asked and the attempts made.
    pub facts: Vec<(String, String)>,
}

/// The sorts of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Kind {
    /// The request is wrong; sending it again cannot help.
    InvalidArgument,
    /// The service lacks what the request needs, such as a judge; an operator can help.
    FailedPrecondition,
    /// Something named in the request does not exist.
    NotFound,
    /// No valid key was sent.
    Unauthenticated,
    /// The key is valid but does not allow this.
    PermissionDenied,
    /// Too much is going on or a quota is used up; later it may pass.
    ResourceExhausted,
    /// The request is larger than a limit; sending it again cannot help.
    #[strum(serialize = "RESOURCE_EXHAUSTED")]
    TooLarge,
    /// Not offered.
    Unimplemented,
    /// A passing failure of something this service relies on.
    Unavailable,
    /// The caller's deadline passed.
    DeadlineExceeded,
    /// The caller gave up.
    Cancelled,
    /// A fault of this service.
    Internal,
}

impl Kind {
    /// The gRPC code.
    pub fn grpc(self) -> tonic::Code {
        match self {
            Self::InvalidArgument => tonic::Code::InvalidArgument,
            Self::FailedPrecondition => tonic::Code::FailedPrecondition,
            Self::NotFound => tonic::Code::NotFound,
            Self::Unauthenticated => tonic::Code::Unauthenticated,
            Self::PermissionDenied => tonic::Code::PermissionDenied,
            Self::ResourceExhausted | Self::TooLarge => tonic::Code::ResourceExhausted,
            Self::Unimplemented => tonic::Code::Unimplemented,
            Self::Unavailable => tonic::Code::Unavailable,
            Self::DeadlineExceeded => tonic::Code::DeadlineExceeded,
            Self::Cancelled => tonic::Code::Cancelled,
            Self::Internal => tonic::Code::Internal,
        }
    }

    /// The HTTP status that Google's REST doors use for this code, but 413 for what is too large: clients send
    /// again what met a 429.
    pub fn http(self) -> http::StatusCode {
        match self {
            Self::InvalidArgument | Self::FailedPrecondition => http::StatusCode::BAD_REQUEST,
            Self::NotFound => http::StatusCode::NOT_FOUND,
            Self::Unauthenticated => http::StatusCode::UNAUTHORIZED,
            Self::PermissionDenied => http::StatusCode::FORBIDDEN,
            Self::ResourceExhausted => http::StatusCode::TOO_MANY_REQUESTS,
            Self::TooLarge => http::StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unimplemented => http::StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable => http::StatusCode::SERVICE_UNAVAILABLE,
            Self::DeadlineExceeded => http::StatusCode::GATEWAY_TIMEOUT,
            Self::Cancelled => http::StatusCode::from_u16(499)
                .expect("499 is between 100 and 999, all that is asked of a status"),
            Self::Internal => http::StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The name of the code, as in Google's JSON errors.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Error {
    /// An error of this kind about no field in particular.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            field: String::new(),
            says_where: false,
            retry_after: None,
            reason: None,
            source: None,
        }
    }

    /// INVALID_ARGUMENT about one field of the request.
    pub fn bad_request(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), ..Self::new(Kind::InvalidArgument, message) }
    }

    /// A fault of this service; `source` goes to the log, the caller learns only that it happened.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self {
            source: Some(source.into()),
            ..Self::new(Kind::Internal, "internal error; the log of the service says more")
        }
    }

    /// Puts `parent` in front of the field's path, for the layer above that knows where its part stands.
    #[must_use]
    pub fn within(mut self, parent: impl fmt::Display) -> Self {
        if self.kind == Kind::InvalidArgument || !self.field.is_empty() {
            self.field = match self.field.as_str() {
                "" => parent.to_string(),
                field => format!("{parent}.{field}"),
            };
        }
        self
    }

    /// The error of one of several parts: a wrong field by its path, anything else by the part's name.
    #[must_use]
    pub fn of_part(self, path: impl fmt::Display, part: impl fmt::Display) -> Self {
        if self.kind == Kind::InvalidArgument {
            return self.within(path);
        }
        Self { message: format!("{part}: {}", self.message), ..self }
    }

    /// Calls the field's first step `name` where it is `step`, for the layer above that knows it by another name.
    #[must_use]
    pub fn renamed(mut self, step: &str, name: &str) -> Self {
        if let Some(rest) = self.field.strip_prefix(step)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            self.field = format!("{name}{rest}");
        }
        self
    }

    /// What the caller reads: the field, then what is wrong with it.
    pub fn text(&self) -> String {
        match self.field.as_str() {
            "" => self.message.clone(),
            _ if self.says_where => self.message.clone(),
            field => format!("{field}: {}", self.message),
        }
    }

    /// The details of `google.rpc` that go with this error.
    pub fn details(&self) -> ErrorDetails {
        let mut details = ErrorDetails::new();
        if !self.field.is_empty() {
            details.add_bad_request_violation(self.field.clone(), self.message.clone());
        }
        if let Some(retry_after) = self.retry_after {
            details.set_retry_info(Some(retry_after));
        }
        if let Some(reason) = &self.reason {
            details.set_error_info(
                reason.word,
                ERROR_DOMAIN,
                reason.facts.iter().cloned().collect::<HashMap<_, _>>(),
            );
        }
        details
    }
}

impl From<Error> for tonic::Status {
    fn from(error: Error) -> Self {
        let code = error.kind.grpc();
        // A client whose own clock runs out while this comes in hands on the message as it was sent, percent-encoded;
        // Google's libraries then find that it is not the one in the details, and fail. No details, no quarrel.
        if code == tonic::Code::DeadlineExceeded {
            return Self::new(code, error.text());
        }
        Self::with_error_details(code, error.text(), error.details())
    }
}

impl From<Unscored> for Error {
    fn from(unscored: Unscored) -> Self {
        match unscored {
            Unscored::Stopped => {
                Self::new(Kind::Cancelled, "stopped: the caller has gone or its deadline has passed")
            }
            Unscored::OverLimit { .. } => Self::new(Kind::TooLarge, unscored.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// A caller's own words, short enough for an error message.
pub fn quoted(text: &str) -> Cow<'_, str> {
    if text.len() <= QUOTED_BYTES {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}… ({} bytes)", &text[..text.floor_char_boundary(QUOTED_BYTES)], text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_grows_from_the_inside_out() {
        let error =
            Error::bad_request("prediction", "is not set").within("instances[2]").within("rouge_input");
        assert_eq!(error.text(), "rouge_input.instances[2].prediction: is not set");
    }

    #[test]
    fn only_a_whole_step_is_renamed() {
        let renamed =
            |field| Error::bad_request(field, "is wrong").renamed("metric_spec", "rouge_spec").field;
        assert_eq!(renamed("metric_spec.rouge_type"), "rouge_spec.rouge_type");
        assert_eq!(renamed("metric_spec"), "rouge_spec");
        assert_eq!(renamed("metric_spec_name"), "metric_spec_name");
    }

    #[test]
    fn a_deadline_that_passed_has_no_details_for_a_client_to_compare() {
        let status = |kind| tonic::Status::from(Error::new(kind, "not answered within 49ms"));
        assert!(status(Kind::DeadlineExceeded).details().is_empty());
        assert!(!status(Kind::Unavailable).details().is_empty());
    }

    #[test]
    fn a_long_quotation_is_cut_between_characters() {
        let quoted = quoted(&"ä".repeat(1000)).into_owned();
        assert!(quoted.len() < 200 && quoted.ends_with("… (2000 bytes)"), "{quoted}");
    }
}
