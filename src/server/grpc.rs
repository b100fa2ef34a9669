//! The gRPC door: one implementation under three service names.

use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::Uri;
use prost::Message;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tower::ServiceExt;

use crate::error::{Error, Kind, quoted};
use crate::evaluate::Evaluator;
use crate::server::admission::Held;
use crate::server::deadline::Deadline;
use crate::wire::v1::evaluation_service_server::{EvaluationService, EvaluationServiceServer};
use crate::wire::v1::{
    EvaluateDatasetRequest, EvaluateInstancesRequest, EvaluateInstancesResponse,
    GenerateInstanceRubricsRequest, GenerateInstanceRubricsResponse, Operation,
};
use crate::workers::panic_text;

/// Our own name of the service.
const OUR_NAME: &str = "rapideval.v1.EvaluationService";

/// Google's names of the service and the methods that each has.
const GOOGLE_NAMES: [(&str, &[&str]); 2] = [
    (
        "google.cloud.aiplatform.v1beta1.EvaluationService",
        &["EvaluateInstances", "GenerateInstanceRubrics", "EvaluateDataset"],
    ),
    ("google.cloud.aiplatform.v1.EvaluationService", &["EvaluateInstances"]),
];

/// The names under which the service answers.
pub fn service_names() -> impl Iterator<Item = &'static str> {
    std::iter::once(OUR_NAME).chain(GOOGLE_NAMES.iter().map(|(name, _)| *name))
}

/// Routes of the evaluation service under all its names.
pub fn routes(evaluator: Arc<Evaluator>, request_bytes: usize) -> Router {
    let service = EvaluationServiceServer::new(Handlers { evaluator })
        .accept_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(request_bytes)
        .max_encoding_message_size(usize::MAX);
    let service = service.map_request(|mut request: Request| {
        // Many clients accept gzip without asking for it; small answers are only slower with it. Who
        // compresses requests gets compressed answers.
        if !request.headers().contains_key("grpc-encoding") {
            request.headers_mut().remove("grpc-accept-encoding");
        }
        request.map(tonic::body::Body::new)
    });
    let ours = Router::new().route_service(&format!("/{OUR_NAME}/{{method}}"), service.clone());
    GOOGLE_NAMES.iter().fold(ours, |router, (name, methods)| {
        let renamed = service.clone().map_request(move |mut request: Request| {
            // Numbers and types agree, so the same bytes mean the same under our own name.
            let method = request.uri().path().rsplit('/').next().unwrap_or_default();
            if methods.contains(&method)
                && let Ok(uri) = Uri::try_from(format!("/{OUR_NAME}/{method}"))
            {
                *request.uri_mut() = uri;
            }
            request
        });
        router.route_service(&format!("/{name}/{{method}}"), renamed)
    })
}

#[derive(Debug)]
struct Handlers {
    evaluator: Arc<Evaluator>,
}

#[tonic::async_trait]
impl EvaluationService for Handlers {
    async fn evaluate_instances(
        &self,
        request: tonic::Request<EvaluateInstancesRequest>,
    ) -> Result<tonic::Response<EvaluateInstancesResponse>, tonic::Status> {
        if let Some(held) = request.extensions().get::<Held>() {
            // A compressed message was admitted by its length on the wire.
            held.grow_to(request.get_ref().encoded_len())?;
        }
        let deadline = request.extensions().get::<Deadline>().map(|deadline| deadline.0);
        match self.evaluator.evaluate(request.into_inner(), deadline).await {
            Ok(response) => Ok(tonic::Response::new(response)),
            Err(error) => {
                if error.kind == Kind::Internal {
                    tracing::error!(source = error.source.as_deref(), "{error}");
                }
                Err(error.into())
            }
        }
    }

    async fn generate_instance_rubrics(
        &self,
        request: tonic::Request<GenerateInstanceRubricsRequest>,
    ) -> Result<tonic::Response<GenerateInstanceRubricsResponse>, tonic::Status> {
        let deadline = request.extensions().get::<Deadline>().map(|deadline| deadline.0);
        Ok(tonic::Response::new(self.evaluator.generate_rubrics(request.into_inner(), deadline).await?))
    }

    async fn evaluate_dataset(
        &self,
        _: tonic::Request<EvaluateDatasetRequest>,
    ) -> Result<tonic::Response<Operation>, tonic::Status> {
        Err(Error::new(
            Kind::Unimplemented,
            "data sets live with the caller: send their rows to EvaluateInstances, many instances in one request",
        )
        .into())
    }
}

/// An answer that is only this error.
pub fn refuse(error: Error) -> Response {
    tonic::Status::from(error).into_http()
}

/// A panic while answering is INTERNAL for that call alone.
pub async fn catch_panic(request: Request, next: Next) -> Response {
    let answer = std::panic::AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answer.unwrap_or_else(|panic: Box<dyn Any + Send>| {
        let error = Error::internal(panic_text(panic.as_ref()));
        tracing::error!(source = error.source.as_deref(), "{error}");
        refuse(error)
    })
}

/// Adds gRPC reflection in both versions: what grpcurl, buf and their like read the schema from.
pub fn with_reflection(services: Routes) -> Routes {
    let builder = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(crate::wire::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
    };
    let readable = "the build made these descriptors, and a test reads them";
    services
        .add_service(builder().build_v1().expect(readable))
        .add_service(builder().build_v1alpha().expect(readable))
}

/// A path that no service has.
pub async fn unknown(request: Request) -> Response {
    let path = quoted(request.uri().path()).into_owned();
    if request
        .headers()
        .get(http::header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
    {
        let names: Vec<&str> = service_names().collect();
        return refuse(Error::new(
            Kind::Unimplemented,
            format!("no method {path}; the services are {}", names.join(", ")),
        ));
    }
    (http::StatusCode::NOT_FOUND, format!("{path} is not here; this port speaks gRPC and gRPC-Web\n"))
        .into_response()
}
