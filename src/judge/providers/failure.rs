//! What went wrong, read from a status and a body: one reading for all wires.
//!
//! Servers that speak somebody's protocol seldom speak his errors. So nothing here asks which provider it is:
//! a body is boiled down to its code words and its sentence, in whatever shape, and the rules below go from
//! the sure signs (codes) to the unsure ones (words of the sentence, then the status).

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::patience;
use crate::judge::{Field, JudgeError, JudgeErrorKind};

/// Most characters of somebody else's text in a message.
const LONGEST_QUOTE: usize = 200;
/// Overloaded, in Anthropic's words.
const OVERLOADED: u16 = 529;

/// The error that an unsuccessful response means.
pub(crate) fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> JudgeError {
    let value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let complaint = Complaint::from_body(&value).unwrap_or_default();
    error(status.as_u16(), headers, &value, &complaint, body)
}

/// The error inside a response that calls itself a success, if there is one.
pub(crate) fn inside(headers: &HeaderMap, value: &Value) -> Option<JudgeError> {
    let error_of = |value: &Value| value.get("error").is_some_and(|error| !error.is_null() && error != "");
    if !error_of(value) && !value.get(0).is_some_and(error_of) && value.get("type")? != "error" {
        return None;
    }
    let complaint = Complaint::from_body(value)?;
    Some(error(complaint.meant_status(), headers, value, &complaint, b""))
}

/// `text` on one line and not too long.
pub(crate) fn shorten(text: &str) -> String {
    let mut short = String::new();
    // A word that the sender itself half masked is what is left of somebody's key.
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(if word.contains("***") { "***" } else { word });
        if short.len() > 4 * LONGEST_QUOTE {
            break;
        }
    }
    match short.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => {
            short.truncate(end);
            short.push('…');
            short
        }
        None => short,
    }
}

/// What a body complains of, whatever its shape.
#[derive(Debug, Default)]
struct Complaint {
    /// The sentence for people.
    message: String,
    /// Types, codes and reasons, lower case, one per word.
    codes: Vec<String>,
    /// The field complained of, lower case; empty when not said.
    param: String,
}

impl Complaint {
    fn from_body(body: &Value) -> Option<Self> {
        let body = if body.is_array() { body.get(0)? } else { body };
        let mut complaint = Self::default();
        let error = body.get("error").unwrap_or(body);
        let sentence = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(_) => Some(value.to_string()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        };
        complaint.message = [error.get("message"), Some(error), body.get("message"), error.get("detail")]
            .into_iter()
            .flatten()
            .find_map(sentence)?;
        // A gateway's sentence says less than that of the provider behind it.
        if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
            complaint.message = format!("{}: {raw}", complaint.message);
        }
        let mut add = |value: Option<&Value>| match value {
            Some(Value::String(code)) => complaint.codes.push(code.to_ascii_lowercase()),
            Some(Value::Number(code)) => complaint.codes.push(code.to_string()),
            _ => {}
        };
        for key in ["code", "type", "status", "error_type"] {
            add(error.get(key));
        }
        add(body.get("type"));
        add(error.pointer("/innererror/code"));
        for detail in super::list_at(error, "/details") {
            add(detail.get("reason"));
            for violation in super::list_at(detail, "/violations") {
                add(violation.get("quotaId"));
            }
        }
        complaint.param = super::text_at(error, "/param").to_ascii_lowercase();
        Some(complaint)
    }

    fn has_code(&self, wanted: &[&str]) -> bool {
        self.codes.iter().any(|code| wanted.contains(&code.as_str()))
    }

    /// The status that a body without an honest one means; 200 = it does not say.
    fn meant_status(&self) -> u16 {
        let mut numeric = self.codes.iter().filter_map(|code| code.parse().ok());
        if let Some(status) = numeric.find(|status| (400..600).contains(status)) {
            return status;
        }
        let words: &[(u16, &[&str])] = &[
            (429, &["rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "tokens", "requests"]),
            (OVERLOADED, &["overloaded_error", "engine_overloaded_error"]),
            (500, &["server_error", "api_error", "internal", "internal_error", "internal_server_error"]),
            (503, &["unavailable", "unavailable_error"]),
            (504, &["timeout_error", "deadline_exceeded"]),
            (401, &["authentication_error", "unauthenticated", "invalid_api_key"]),
            (403, &["permission_error", "permission_denied"]),
            (404, &["not_found_error", "not_found"]),
            (400, &["invalid_request_error", "invalid_argument"]),
        ];
        words.iter().find(|(_, codes)| self.has_code(codes)).map_or(200, |(status, _)| *status)
    }
}

fn error(status: u16, headers: &HeaderMap, body: &Value, complaint: &Complaint, raw: &[u8]) -> JudgeError {
    let kind = kind(status, complaint);
    let said = if !complaint.message.is_empty() {
        shorten(&complaint.message)
    } else if raw.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<') {
        "an HTML page".to_owned()
    } else {
        shorten(&String::from_utf8_lossy(raw))
    };
    let what = describe(kind);
    let message = match (status, said.is_empty()) {
        (200, _) => format!("{what}: {said}"),
        (_, true) => format!("{what}: HTTP {status}"),
        (_, false) => format!("{what}: HTTP {status}: {said}"),
    };
    let mut error = JudgeError::new(kind, message);
    if kind.is_transient() {
        error.retry_after = patience::wait(headers, body, SystemTime::now());
    }
    // A provider's word on transient failures is worth having; it cannot lift a quota or mend a key.
    if kind.is_transient() || kind == JudgeErrorKind::BadRequest {
        error.should_retry = patience::should_retry(headers);
    }
    error
}

fn describe(kind: JudgeErrorKind) -> &'static str {
    match kind {
        JudgeErrorKind::Unreachable => "the provider cannot answer now",
        JudgeErrorKind::TimedOut => "the provider gave up waiting",
        JudgeErrorKind::Throttled => "the provider wants fewer requests",
        JudgeErrorKind::Exhausted => "quota or credit is used up",
        JudgeErrorKind::Credentials => "the provider refuses the key",
        JudgeErrorKind::UnknownModel => "the provider does not know the model or the address",
        JudgeErrorKind::PromptTooLong => "the prompt is too long for the model",
        JudgeErrorKind::Unsupported(_) => "the provider refuses a request field",
        JudgeErrorKind::Refused => "the provider blocked the prompt",
        JudgeErrorKind::BadRequest => "the provider refuses the request",
        JudgeErrorKind::Unreadable => "the answer is an error",
        JudgeErrorKind::OutOfTime => "the caller's deadline ran out",
        JudgeErrorKind::OverBudget => "the judge's budget is spent",
    }
}

fn kind(status: u16, complaint: &Complaint) -> JudgeErrorKind {
    let message = complaint.message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if status >= 400 {
        if is_exhausted(status, complaint) || (status < 500 && says(&["credit balance is too low"])) {
            return JudgeErrorKind::Exhausted;
        }
        if complaint.has_code(&["content_filter", "responsibleaipolicyviolation", "content_policy_violation"])
        {
            return JudgeErrorKind::Refused;
        }
        if complaint.has_code(&["invalid_api_key", "api_key_invalid", "api_key_service_blocked"]) {
            return JudgeErrorKind::Credentials;
        }
        if complaint.has_code(&["model_not_found", "deploymentnotfound", "unknown_model"]) {
            return JudgeErrorKind::UnknownModel;
        }
        if complaint.has_code(&[
            "context_length_exceeded",
            "exceed_context_size_error",
            "string_above_max_length",
        ]) {
            return JudgeErrorKind::PromptTooLong;
        }
    }
    match status {
        400 | 422 if is_too_long(&message) => JudgeErrorKind::PromptTooLong,
        // Servers on top of llama.cpp and of older runtimes answer 500 to it; asking again would not help.
        500 if says(&["exceeds the available context", "maximum context length"]) => {
            JudgeErrorKind::PromptTooLong
        }
        400 | 422 if says(&["api key not valid", "invalid api key", "incorrect api key"]) => {
            JudgeErrorKind::Credentials
        }
        400 | 422 => match refused_field(complaint, &message) {
            Some(field) => JudgeErrorKind::Unsupported(field),
            None if is_unknown_model(&message) => JudgeErrorKind::UnknownModel,
            None => JudgeErrorKind::BadRequest,
        },
        // OpenAI forbids log-probabilities of some models, with the status of a bad key.
        403 if message.contains("logprobs") => JudgeErrorKind::Unsupported(Field::LogProbs),
        401 | 403 | 407 => JudgeErrorKind::Credentials,
        402 => JudgeErrorKind::Exhausted,
        404 | 405 | 410 => JudgeErrorKind::UnknownModel,
        408 | 504 | 524 => JudgeErrorKind::TimedOut,
        413 => JudgeErrorKind::PromptTooLong,
        429 => JudgeErrorKind::Throttled,
        501 | 505 => JudgeErrorKind::BadRequest,
        409 | 425 | 500..=599 => JudgeErrorKind::Unreachable,
        0..=299 => JudgeErrorKind::Unreadable,
        _ => JudgeErrorKind::BadRequest,
    }
}

fn is_exhausted(status: u16, complaint: &Complaint) -> bool {
    let for_money = complaint.has_code(&[
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "enforced_spend_limit_reached",
        "insufficient_credits",
    ]);
    // Google calls a spent day and a busy minute by one status; the quota's name tells them apart.
    let for_the_day = status == 429 && complaint.codes.iter().any(|code| code.contains("perday"));
    for_money || for_the_day
}

fn is_too_long(message: &str) -> bool {
    let words = [
        "maximum context length",
        "context length exceeded",
        "exceeds the context length",
        "exceeds the available context",
        "context window",
        "prompt is too long",
        "input is too long",
        "too many tokens",
        "maximum number of tokens",
        "longer than the maximum model length",
        "please reduce the length",
    ];
    words.iter().any(|word| message.contains(word))
}

fn is_unknown_model(message: &str) -> bool {
    message.contains("model")
        && [
            "not found",
            "does not exist",
            "unknown model",
            "invalid model",
            "not a valid model",
            "no such model",
        ]
        .iter()
        .any(|word| message.contains(word))
}

/// Names of request fields on all wires.
const FIELDS: [(Field, &[&str]); 8] = [
    (Field::LogProbs, &["logprobs", "logprob", "log probabilities"]),
    (
        Field::ReasoningEffort,
        &["reasoning_effort", "reasoning.effort", "effort", "thinking", "reasoning effort"],
    ),
    (
        Field::Schema,
        &[
            "response_format",
            "json_schema",
            "json schema",
            "json_object",
            "json mode",
            "output_config",
            "output_format",
            "response_schema",
            "responseschema",
            "response_json_schema",
            "responsejsonschema",
            "response_mime_type",
            "responsemimetype",
            "structured output",
            "grammar",
            "tool_choice",
            "tools",
            "function calling",
            "invalid schema",
        ],
    ),
    (Field::TokenLimitName, &["max_completion_tokens", "max_tokens"]),
    (Field::Temperature, &["temperature"]),
    (Field::TopP, &["top_p", "topp"]),
    (Field::Seed, &["seed"]),
    (
        Field::System,
        &[
            "system role",
            "system message",
            "system instruction",
            "developer instruction",
            "`system`",
            "'system'",
        ],
    ),
];

/// The field that an endpoint refuses to know, if its complaint is of that sort. A value out of range is not.
fn refused_field(complaint: &Complaint, message: &str) -> Option<Field> {
    let codes = ["unsupported_parameter", "unsupported_value", "unknown_parameter", "unsupported_model"];
    let words = [
        "unsupported",
        "not support",
        "n't support",
        "only supported",
        "may only be set",
        "unrecognized",
        "unknown",
        "unexpected",
        "not permitted",
        "not allowed",
        "not enabled",
        "not available",
        "not accepted",
        "deprecated",
        "cannot be used",
        "cannot both be",
        "cannot find field",
        "incompatible",
        "invalid schema",
        "parse grammar",
        "failed to initialize samplers",
    ];
    if !complaint.has_code(&codes) && !words.iter().any(|word| message.contains(word)) {
        return None;
    }
    // A sentence names what it refuses before what it is refused for.
    let named_in = |text: &str| {
        let places = FIELDS.iter().filter_map(|(field, names)| {
            Some((names.iter().filter_map(|name| text.find(name)).min()?, *field))
        });
        places.min_by_key(|(place, _)| *place).map(|(_, field)| field)
    };
    named_in(&complaint.param).or_else(|| named_in(message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind_of(status: u16, body: Value) -> JudgeErrorKind {
        read(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), body.to_string().as_bytes()).kind
    }

    #[test]
    fn statuses_alone_decide_when_the_body_says_nothing() {
        use JudgeErrorKind::*;
        for (status, expected) in [
            (301, BadRequest),
            (400, BadRequest),
            (401, Credentials),
            (402, Exhausted),
            (403, Credentials),
            (404, UnknownModel),
            (408, TimedOut),
            (409, Unreachable),
            (413, PromptTooLong),
            (429, Throttled),
            (500, Unreachable),
            (501, BadRequest),
            (502, Unreachable),
            (503, Unreachable),
            (504, TimedOut),
            (529, Unreachable),
        ] {
            assert_eq!(kind_of(status, json!({})), expected, "{status}");
        }
    }

    #[test]
    fn refused_fields_are_told_from_wrong_values() {
        use JudgeErrorKind::*;
        let say = |message: &str| json!({"error": {"message": message}});
        for (message, expected) in [
            ("Unsupported parameter: 'top_p' is not supported with this model.", Unsupported(Field::TopP)),
            (
                "`temperature` and `top_p` cannot both be specified for this model",
                Unsupported(Field::Temperature),
            ),
            ("output_config: Extra inputs are not permitted", Unsupported(Field::Schema)),
            ("\"llama3\" does not support thinking", Unsupported(Field::ReasoningEffort)),
            ("System role not supported", Unsupported(Field::System)),
            ("Logprobs is not enabled for models/m", Unsupported(Field::LogProbs)),
            ("`temperature` may only be set to 1 when thinking is enabled", Unsupported(Field::Temperature)),
            ("max_tokens is too large: 9. This model supports at most 5 tokens", BadRequest),
            ("Invalid 'temperature': decimal above maximum value", BadRequest),
            ("temperature: must be at most 1", BadRequest),
            ("max_tokens is too large: 99999", BadRequest),
        ] {
            assert_eq!(kind_of(400, say(message)), expected, "{message}");
        }
    }

    #[test]
    fn errors_are_found_in_every_shape_of_body() {
        let shapes = [
            json!({"error": {"message": "the model `x` does not exist"}}),
            json!([{"error": {"message": "the model `x` does not exist"}}]),
            json!({"error": "model \"x\" not found, try pulling it first"}),
            json!({"object": "error", "message": "The model `x` does not exist.", "code": 400}),
            json!({"detail": "model x not found"}),
        ];
        for body in shapes {
            assert_eq!(kind_of(400, body.clone()), JudgeErrorKind::UnknownModel, "{body}");
        }
    }

    #[test]
    fn a_wait_is_kept_and_a_providers_no_is_obeyed() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "7".parse().unwrap());
        headers.insert("x-should-retry", "false".parse().unwrap());
        let error = read(StatusCode::SERVICE_UNAVAILABLE, &headers, b"");
        assert_eq!(error.retry_after, Some(std::time::Duration::from_secs(7)));
        assert!(!error.is_transient());
    }

    #[test]
    fn quotes_are_short_on_one_line_and_without_masked_keys() {
        let long = format!("Incorrect API key provided: sk-ab***yz.\n{}", "é".repeat(500));
        let short = shorten(&long);
        assert!(short.starts_with("Incorrect API key provided: *** é"), "{short}");
        assert_eq!(short.chars().count(), LONGEST_QUOTE + 1);
    }

    #[test]
    fn an_html_page_is_named_not_quoted() {
        let error = read(StatusCode::BAD_GATEWAY, &HeaderMap::new(), b"<html><h1>502</h1>");
        assert_eq!(error.message, "the provider cannot answer now: HTTP 502: an HTML page");
    }
}
