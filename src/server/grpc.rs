//! The gRPC door: one implementation under three service names.

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, Uri, header};
use prost::Message;
use tonic::codec::CompressionEncoding;
use tonic::codegen::BoxStream;
use tonic::service::Routes;
use tower::ServiceExt;

use crate::config::Limits;
use crate::error::{Error, Kind, quoted};
use crate::server::admission::Held;
use crate::server::deadline::Deadline;
use crate::server::service::Service;
use crate::server::stream;
use crate::wire::v1::evaluation_service_server::{EvaluationService, EvaluationServiceServer};
use crate::wire::v1::{
    EvaluateDatasetRequest, EvaluateInstancesRequest, EvaluateInstancesResponse,
    EvaluateInstancesStreamRequest, EvaluateInstancesStreamResponse, GenerateInstanceRubricsRequest,
    GenerateInstanceRubricsResponse, Operation,
};

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

/// The methods that a service with one of Google's names has.
pub fn google_methods(service: &str) -> &'static [&'static str] {
    GOOGLE_NAMES.iter().find(|(name, _)| *name == service).map_or(&[], |(_, methods)| methods)
}

/// Routes of the evaluation service under all its names.
pub fn routes(service: Service, limits: &Limits) -> Router {
    let handlers = Handlers { service, stream_requests: limits.stream_requests };
    let request_bytes = limits.request_bytes;
    let service = EvaluationServiceServer::new(handlers)
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
    service: Service,
    stream_requests: usize,
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
        let deadline = Deadline::of(request.extensions());
        Ok(tonic::Response::new(self.service.evaluate_instances(request.into_inner(), deadline).await?))
    }

    async fn evaluate_instances_stream(
        &self,
        request: tonic::Request<tonic::Streaming<EvaluateInstancesStreamRequest>>,
    ) -> Result<tonic::Response<BoxStream<EvaluateInstancesStreamResponse>>, tonic::Status> {
        let answers = stream::answer(self.service.clone(), request, self.stream_requests)?;
        Ok(tonic::Response::new(Box::pin(answers)))
    }

    async fn generate_instance_rubrics(
        &self,
        request: tonic::Request<GenerateInstanceRubricsRequest>,
    ) -> Result<tonic::Response<GenerateInstanceRubricsResponse>, tonic::Status> {
        let deadline = Deadline::of(request.extensions());
        Ok(tonic::Response::new(
            self.service.generate_instance_rubrics(request.into_inner(), deadline).await?,
        ))
    }

    async fn evaluate_dataset(
        &self,
        request: tonic::Request<EvaluateDatasetRequest>,
    ) -> Result<tonic::Response<Operation>, tonic::Status> {
        Ok(tonic::Response::new(self.service.evaluate_dataset(request.into_inner()).await?))
    }
}

/// An answer that is only this error.
pub fn refuse(error: Error) -> Response {
    tonic::Status::from(error).into_http()
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

/// Whether a request is a call of gRPC or gRPC-Web.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The answer to a call of a method that no service has.
pub fn unknown(uri: &Uri) -> Response {
    let names: Vec<&str> = service_names().collect();
    refuse(Error::new(
        Kind::Unimplemented,
        format!("no method {}; the services are {}", quoted(uri.path()), names.join(", ")),
    ))
}
