//! A running service, and callers of it. Every world has its own ports and its own threads, so any number of them
//! run beside each other.
//!
//! [`World`] runs the library's server inside the test; [`process::Process`] runs the built binary, where the
//! process itself matters: signals, exit codes, memory.

#![allow(dead_code, reason = "each test file uses its own part of this one")]

pub(crate) mod collector;
pub(crate) mod http;
pub(crate) mod judge;
pub(crate) mod process;

use std::fmt::Write;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use ::http::uri::PathAndQuery;
use prost::Message;
use rapid_eval::config::{AdminListen, Settings};
use rapid_eval::evaluate::Evaluator;
use rapid_eval::server::Server;
use rapid_eval::wire::json;
use rapid_eval::wire::v1::{EvaluateInstancesRequest, EvaluateInstancesResponse};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::codec::CompressionEncoding;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_prost::ProstCodec;

use judge::{Conduct, StubJudge};

/// The names of the service, ours first.
pub(crate) const SERVICES: [&str; 3] = [
    "rapideval.v1.EvaluationService",
    "google.cloud.aiplatform.v1beta1.EvaluationService",
    "google.cloud.aiplatform.v1.EvaluationService",
];

/// A service about to start.
#[derive(Debug)]
pub(crate) struct World {
    settings: Settings,
}

impl World {
    /// The default settings, on free ports of this machine.
    pub(crate) fn new() -> Self {
        let mut settings = Settings::default();
        settings.server.listen = any_port();
        settings.server.admin_listen = AdminListen::At(any_port());
        settings.server.workers = 2;
        Self { settings }
    }

    /// Other settings.
    pub(crate) fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// A judge that answers every question with these texts, the last one repeated.
    pub(crate) async fn judge_replies<'t>(
        self,
        texts: impl IntoIterator<Item = &'t str>,
    ) -> (Self, StubJudge) {
        let replies = texts.into_iter().map(|text| serde_json::json!({"text": text})).collect();
        self.judge(Conduct::Replies(replies)).await
    }

    /// A judge of this conduct.
    pub(crate) async fn judge(self, conduct: Conduct) -> (Self, StubJudge) {
        let judge = StubJudge::start(conduct).await;
        let settings = judge.settings();
        (self.set(|all| all.judges.push(settings)), judge)
    }

    /// Opens the ports and serves.
    pub(crate) async fn start(self) -> Running {
        let Settings { limits, server, judge, .. } = &self.settings;
        let roster = self.settings.roster().unwrap();
        let evaluator = Evaluator::start(limits.clone(), server.workers, roster, judge.clone()).unwrap();
        let evaluator = evaluator
            .with_synonyms(self.settings.wordnet().unwrap())
            .with_embeddings(self.settings.embedder().unwrap());
        let server = Server::bind(self.settings, Arc::new(evaluator)).await.unwrap();
        let (address, admin) = (server.address().unwrap(), server.admin_address());
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.run(stop.clone()));
        Running { address, admin, caller: Caller::of(address), stop, serving }
    }
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A service that answers.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) admin: Option<SocketAddr>,
    caller: Caller,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Running {
    /// Sends one request, in proto-JSON.
    pub(crate) async fn evaluate(&self, request: Value) -> Result<EvaluateInstancesResponse, Status> {
        self.caller.evaluate(request).await
    }

    /// The caller that the world itself uses.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// A caller with a connection of its own.
    pub(crate) fn new_caller(&self) -> Caller {
        Caller::of(self.address)
    }

    /// Asks the service to stop, as SIGTERM does, and waits until it has.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
    }
}

/// A gRPC client with one connection, made when first needed.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    channel: Channel,
}

impl Caller {
    pub(crate) fn of(address: SocketAddr) -> Self {
        Self::with(endpoint(address))
    }

    /// A caller with connection settings of its own.
    pub(crate) fn with(endpoint: Endpoint) -> Self {
        Self { channel: endpoint.connect_lazy() }
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Sends one request, in proto-JSON, under our own name.
    pub(crate) async fn evaluate(&self, request: Value) -> Result<EvaluateInstancesResponse, Status> {
        self.evaluate_as(SERVICES[0], message(&request)).await.map(Response::into_inner)
    }

    /// Calls `EvaluateInstances` of one of [`SERVICES`].
    pub(crate) async fn evaluate_as(
        &self,
        service: &str,
        request: EvaluateInstancesRequest,
    ) -> Result<Response<EvaluateInstancesResponse>, Status> {
        self.call(service, "EvaluateInstances", Request::new(request)).await
    }

    /// Calls any method.
    pub(crate) async fn call<T, U>(
        &self,
        service: &str,
        method: &str,
        request: Request<T>,
    ) -> Result<Response<U>, Status>
    where
        T: Message + 'static,
        U: Message + Default + 'static,
    {
        let client = tonic::client::Grpc::new(self.channel());
        Self::unary(client, service, method, request).await
    }

    /// As [`Caller::evaluate`], with gzip both ways; also whether the answer was compressed.
    pub(crate) async fn evaluate_in_gzip(
        &self,
        request: Value,
    ) -> Result<(EvaluateInstancesResponse, bool), Status> {
        let client = tonic::client::Grpc::new(self.channel())
            .send_compressed(CompressionEncoding::Gzip)
            .accept_compressed(CompressionEncoding::Gzip);
        let request = Request::new(message(&request));
        let answer = Self::unary(client, SERVICES[0], "EvaluateInstances", request).await?;
        let compressed = answer.metadata().get("grpc-encoding").is_some_and(|encoding| encoding == "gzip");
        Ok((answer.into_inner(), compressed))
    }

    async fn unary<T, U>(
        client: tonic::client::Grpc<Channel>,
        service: &str,
        method: &str,
        request: Request<T>,
    ) -> Result<Response<U>, Status>
    where
        T: Message + 'static,
        U: Message + Default + 'static,
    {
        let mut client = client.max_decoding_message_size(usize::MAX);
        client.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let path = PathAndQuery::from_str(&format!("/{service}/{method}")).unwrap();
        client.unary(request, path, ProstCodec::default()).await
    }

    /// What `grpc.health.v1` says of a service.
    pub(crate) async fn health(&self, service: &str) -> Result<ServingStatus, Status> {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = HealthClient::new(self.channel()).check(request).await?;
        Ok(answer.into_inner().status())
    }
}

/// How [`Caller::of`] connects.
pub(crate) fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::from_shared(format!("http://{address}")).unwrap()
}

/// A request written in proto-JSON.
pub(crate) fn message(request: &Value) -> EvaluateInstancesRequest {
    json::read(&request.to_string()).unwrap_or_else(|error| panic!("{error} in {request}"))
}

/// The answer as a caller of REST or of the command line would see it.
pub(crate) fn as_json(response: &EvaluateInstancesResponse) -> Value {
    serde_json::from_str(&json::write(response).unwrap()).unwrap()
}

/// The scores of a computed metric, in the order of the answer; panics where one is not set.
pub(crate) fn scores(response: &EvaluateInstancesResponse) -> Vec<f64> {
    let answer = as_json(response);
    let results = only_member(&answer);
    let values = only_member(results).as_array().unwrap_or_else(|| panic!("no list in {answer}"));
    values.iter().map(|value| value["score"].as_f64().unwrap_or_else(|| panic!("{answer}"))).collect()
}

fn only_member(value: &Value) -> &Value {
    let members: Vec<&Value> = value.as_object().into_iter().flat_map(|object| object.values()).collect();
    let [member] = members[..] else { panic!("not one member in {value}") };
    member
}

/// The scores as text, for comparison in one `assert_eq!` at the wire's precision.
pub(crate) fn rounded(scores: &[f64]) -> String {
    let mut text = String::new();
    for score in scores {
        write!(text, "{score:.6} ").unwrap();
    }
    text
}
