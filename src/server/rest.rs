//! The REST door: the paths, the JSON and the errors of Vertex AI's evaluation service.
//!
//! What a call asks for stands in its path (`target.rs`); the body is the request message in JSON, perhaps
//! gzipped (`body.rs`); query parameters change at most how enums are written (`query.rs`); errors have
//! Google's form (`refusal.rs`).
//!
//! Beside it the graders of OpenAI's API, with the conventions of that one (`graders.rs`).

mod body;
pub mod graders;
mod query;
mod refusal;
mod target;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, header};
use prost::{Message, Name};
use tokio::time::Instant;

use crate::config::Limits;
use crate::error::{Error, Kind, quoted};
use crate::server::admission::Held;
use crate::server::deadline::Deadline;
use crate::server::grpc;
use crate::server::rest::body::off_the_loop;
use crate::server::rest::target::{Rpc, Target};
use crate::server::service::Service;
use crate::wire::json::{self, Enums};
use crate::wire::v1::{EvaluateDatasetRequest, EvaluateInstancesRequest, GenerateInstanceRubricsRequest};

pub use refusal::{method_not_allowed, refuse};

/// The media type of every JSON answer.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=UTF-8");

/// A response with fewer bytes than this on the gRPC wire is written where it is.
const WRITTEN_ELSEWHERE_FROM_BYTES: usize = 64 * 1024;

/// All paths of the door, and an answer to every other path.
pub fn routes(service: Service, limits: &Limits) -> Router {
    Router::new().fallback(answer).with_state(Arc::new(Rest { service, request_bytes: limits.request_bytes }))
}

/// The path with placeholders; `None` = nothing is there.
pub fn route(path: &str) -> Option<&'static str> {
    Target::of(path).map(|target| target.route())
}

#[derive(Debug)]
struct Rest {
    service: Service,
    request_bytes: usize,
}

async fn answer(State(rest): State<Arc<Rest>>, request: Request) -> Response {
    let Some(target) = Target::of(request.uri().path()) else {
        if grpc::is_grpc(request.headers()) {
            return grpc::unknown(request.uri());
        }
        let path = quoted(request.uri().path()).into_owned();
        return refuse(Error::new(
            Kind::NotFound,
            format!("{path} is not here; /openapi.json lists the paths of this service"),
        ));
    };
    if request.method() != Method::POST {
        return method_not_allowed("POST");
    }
    let answered = match target.rpc {
        Rpc::EvaluateInstances => {
            rest.call(target, request, |service, request, deadline| async move {
                service.evaluate_instances(request, deadline).await
            })
            .await
        }
        Rpc::GenerateInstanceRubrics => {
            rest.call(target, request, |service, request, deadline| async move {
                service.generate_instance_rubrics(request, deadline).await
            })
            .await
        }
        Rpc::EvaluateDataset => {
            rest.call(target, request, |service, request, _| async move {
                service.evaluate_dataset(request).await
            })
            .await
        }
    };
    answered.unwrap_or_else(refuse)
}

impl Rest {
    async fn call<Q, A, F>(
        &self,
        target: Target,
        request: Request,
        method: impl FnOnce(Service, Q, Option<Instant>) -> F,
    ) -> Result<Response, Error>
    where
        Q: Message + Name + Default + Located + 'static,
        A: Message + Name + 'static,
        F: Future<Output = Result<A, Error>>,
    {
        let enums = query::enums(request.uri().query().unwrap_or_default())?;
        let (parts, body) = request.into_parts();
        let held = parts.extensions.get::<Held>().cloned();
        let held = held.ok_or_else(|| Error::internal("a call came in past admission"))?;
        let packing = body::Packing::of(&parts.headers)?;
        let body = body::receive(body, &held, self.request_bytes).await?;
        let mut message: Q = body::read(body, packing, held, self.request_bytes).await?;
        if let Some(location) = target.location {
            *message.location() = location;
        }
        let response = method(self.service.clone(), message, Deadline::of(&parts.extensions)).await?;
        write(response, enums).await
    }
}

async fn write<A: Message + Name + 'static>(response: A, enums: Enums) -> Result<Response, Error> {
    let large = response.encoded_len() >= WRITTEN_ELSEWHERE_FROM_BYTES;
    let text = off_the_loop(large, move || {
        json::write_with(&response, enums).map(|mut text| {
            text.push('\n');
            text
        })
    })
    .await?;
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, JSON)], text).into_response())
}

/// A request whose `location` the path can overrule.
trait Located {
    fn location(&mut self) -> &mut String;
}

macro_rules! located {
    ($($request:ident),*) => {$(
        impl Located for $request {
            fn location(&mut self) -> &mut String {
                &mut self.location
            }
        }
    )*};
}

located!(EvaluateInstancesRequest, GenerateInstanceRubricsRequest, EvaluateDatasetRequest);
