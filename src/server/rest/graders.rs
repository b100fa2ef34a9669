//! The graders of OpenAI's API: `POST /v1/fine_tuning/alpha/graders/run` and `/validate`, and the same below the
//! base paths of Azure's clients.
//!
//! The conventions are those of that API, because its clients rely on them: a malformed grader is 400; a grader
//! that could not grade is 200 with a reward of 0 and a flag that says why (`answer.rs`); errors have the form
//! `{"error": {"message", "type", "param", "code"}}` (`refusal.rs`). How a grader is read: `grader/openai.rs`.

mod answer;
mod refusal;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http::{Method, StatusCode, header};
use serde_json::{Map, Value};

use crate::config::Limits;
use crate::error::{Error, Kind};
use crate::grader::WrongGrader;
use crate::grader::openai::{self, Named};
use crate::grader::scope::Scope;
use crate::server::admission::Held;
use crate::server::deadline::Deadline;
use crate::server::rest::{JSON, body};
use crate::server::service::Service;
use crate::wire::MAX_PARTS;

pub use refusal::{method_not_allowed, refuse};

/// Where clients look for the API: OpenAI's, then Azure's without and with a version in the path.
pub const BASES: [&str; 3] = ["/v1", "/openai", "/openai/v1"];

/// Bytes that a JSON value takes in memory beside its text, about.
const VALUE_BYTES: usize = 96;

/// The paths of this API.
pub fn routes(service: Service, limits: &Limits) -> Router {
    let graders = Arc::new(Graders { service, request_bytes: limits.request_bytes });
    let routes = BASES.iter().fold(Router::new(), |router, base| {
        router
            .route(&format!("{base}/fine_tuning/alpha/graders/run"), any(run))
            .route(&format!("{base}/fine_tuning/alpha/graders/validate"), any(validate))
    });
    routes.with_state(graders)
}

/// The path without its base, for whoever counts calls by path.
pub fn route(path: &str) -> &'static str {
    if path.ends_with("/validate") {
        "/v1/fine_tuning/alpha/graders/validate"
    } else {
        "/v1/fine_tuning/alpha/graders/run"
    }
}

#[derive(Debug)]
struct Graders {
    service: Service,
    request_bytes: usize,
}

async fn run(State(graders): State<Arc<Graders>>, request: Request) -> Response {
    graders.run(request).await.unwrap_or_else(refuse)
}

async fn validate(State(graders): State<Arc<Graders>>, request: Request) -> Response {
    graders.validate(request).await.unwrap_or_else(refuse)
}

impl Graders {
    async fn run(&self, request: Request) -> Result<Response, Error> {
        let began = Instant::now();
        if request.method() != Method::POST {
            return Ok(method_not_allowed());
        }
        let deadline = Deadline::of(request.extensions());
        let mut sent = self.receive(request).await?;
        let grader = grader(&sent.members)?;
        let named = match openai::read(grader) {
            Ok(named) => named,
            // Only validating refuses a formula.
            Err(wrong) if wrong.is_formula => {
                return Ok(ok(&answer::unread_formula(grader, &wrong, began.elapsed())));
            }
            Err(wrong) => return Err(malformed(wrong)),
        };
        let scope = scope(&mut sent)?;
        let run = self.service.run_grader(&named, scope, deadline).await?;
        Ok(ok(&answer::graded(&named, &run, began.elapsed())))
    }

    async fn validate(&self, request: Request) -> Result<Response, Error> {
        if request.method() != Method::POST {
            return Ok(method_not_allowed());
        }
        let sent = self.receive(request).await?;
        let grader = grader(&sent.members)?;
        let Named { .. } = openai::read(grader).map_err(malformed)?;
        Ok(ok(&serde_json::json!({ "grader": grader })))
    }

    /// The members of the body.
    async fn receive(&self, request: Request) -> Result<Sent, Error> {
        let (parts, body) = request.into_parts();
        let held = parts.extensions.get::<Held>().cloned();
        let held = held.ok_or_else(|| Error::internal("a call came in past admission"))?;
        let packing = body::Packing::of(&parts.headers)?;
        let body = body::receive(body, &held, self.request_bytes).await?;
        body::read_with(body, packing, held, self.request_bytes, |text, held| {
            let values = values_in(text);
            if values > MAX_PARTS {
                return Err(Error::new(
                    Kind::TooLarge,
                    format!("the request has more than {MAX_PARTS} JSON values; make it smaller"),
                ));
            }
            held.grow_to(text.len().saturating_mul(2).saturating_add(values * VALUE_BYTES))?;
            match serde_json::from_str(text) {
                Ok(Value::Object(members)) => Ok(Sent { members, bytes: text.len() }),
                Ok(_) => Err(Error::bad_request("", "the body is no JSON object")),
                Err(error) => Err(Error::bad_request("", format!("the body is not JSON: {error}"))),
            }
        })
        .await
    }
}

/// A body.
#[derive(Debug)]
struct Sent {
    members: Map<String, Value>,
    bytes: usize,
}

/// How many values a JSON text has at most: each ends at one of these, or is one.
fn values_in(text: &str) -> usize {
    let (mut values, mut in_string, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        if in_string {
            (in_string, escaped) = (escaped || byte != b'"', !escaped && byte == b'\\');
        } else {
            in_string = byte == b'"';
            values += usize::from(matches!(byte, b',' | b'[' | b'{'));
        }
    }
    values + 1
}

fn grader(members: &Map<String, Value>) -> Result<&Value, Error> {
    members.get("grader").ok_or_else(|| Error::bad_request("grader", "is missing"))
}

fn malformed(wrong: WrongGrader) -> Error {
    let wrong = wrong.within("grader");
    Error::bad_request(wrong.field, wrong.reason)
}

/// The row and the sample of a body.
fn scope(sent: &mut Sent) -> Result<Scope, Error> {
    let sample = match sent.members.remove("model_sample") {
        Some(Value::String(text)) => Value::String(text),
        None => return Err(Error::bad_request("model_sample", "is missing")),
        Some(_) => return Err(Error::bad_request("model_sample", "is no string")),
    };
    let sample = Map::from_iter([(String::from("output_text"), sample)]);
    let item = match sent.members.remove("item") {
        Some(Value::Object(item)) => item,
        None | Some(Value::Null) => match sent.members.remove("reference_answer") {
            // What older clients send in the place of an item.
            Some(Value::Object(item)) => item,
            None | Some(Value::Null) => Map::new(),
            Some(answer) => Map::from_iter([(String::from("reference_answer"), answer)]),
        },
        Some(_) => return Err(Error::bad_request("item", "is no object")),
    };
    Ok(Scope::new(item, sample, sent.bytes))
}

fn ok(answer: &Value) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, JSON)], format!("{answer:#}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        for (text, most) in
            [("1", 1), (r#"{"a": [1, 2, {}]}"#, 6), (r#""[,{\"[,{""#, 1), (r#"["\\", "\\\"["]"#, 3)]
        {
            assert_eq!(values_in(text), most, "{text}");
        }
    }
}
