//! The doors: one port for callers, one for operators.

pub mod admission;
pub mod codec;
pub mod cors;
pub mod deadline;
pub mod door;
mod framing;
pub mod grpc;
pub mod health;
pub mod listen;
pub mod openapi;
pub mod page;
pub mod rest;
pub mod service;
mod unpack;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_web::GrpcWebLayer;
use tower::ServiceBuilder;

use crate::config::{AdminListen, Settings};
use crate::evaluate::Evaluator;
use crate::server::admission::{Admission, admit};
use crate::server::door::{Door, catch_panic};
use crate::server::health::Health;
use crate::server::listen::Connections;
use crate::server::service::Service;

/// A service whose ports are open.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    admin: Option<TcpListener>,
    settings: Settings,
    evaluator: Arc<Evaluator>,
    health: Health,
}

impl Server {
    /// Opens the ports. Callers who connect from now on are answered once [`Server::run`] goes.
    pub async fn bind(settings: Settings, evaluator: Arc<Evaluator>) -> std::io::Result<Self> {
        let listener = bind(settings.server.listen).await?;
        let admin = match settings.server.admin_listen {
            AdminListen::Off => None,
            AdminListen::At(address) => Some(bind(address).await?),
        };
        Ok(Self { listener, admin, settings, evaluator, health: Health::default() })
    }

    /// Where callers reach the service.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where operators reach the service.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop`; then says "not ready", lets calls in flight end, and returns.
    pub async fn run(self, stop: CancellationToken) {
        let Self { listener, admin, settings, evaluator, health } = self;
        let close = CancellationToken::new();
        let connections = Connections {
            limit: settings.limits.connections,
            max_age: seconds(settings.server.max_connection_age_seconds),
            drain: Duration::from_secs(settings.server.drain_seconds),
        };
        let router = callers(&settings, evaluator, &health);
        health.set_ready(true).await;
        let turn_away = async {
            stop.cancelled().await;
            health.set_ready(false).await;
            tokio::time::sleep(Duration::from_secs(settings.server.not_ready_seconds)).await;
            close.cancel();
        };
        let operators = admin.map(|listener| tokio::spawn(health::serve_admin(listener, health.clone())));
        tokio::join!(listen::serve(listener, router, connections, close.clone()), turn_away);
        if let Some(operators) = operators {
            operators.abort();
        }
    }
}

/// What callers reach: the evaluation service by gRPC under its three names and by REST, health, reflection,
/// and a page for people.
fn callers(settings: &Settings, evaluator: Arc<Evaluator>, health: &Health) -> Router {
    let people = page::routes(evaluator.roster());
    let service = Service::new(evaluator);
    // One budget for both doors.
    let admission = Admission::new(&settings.limits);

    let evaluation = grpc::routes(service.clone(), settings.limits.request_bytes);
    let mut services =
        Routes::from(guarded(evaluation, Door::Grpc, settings, &admission)).add_service(health.service());
    if settings.server.reflection {
        services = grpc::with_reflection(services);
    }
    // gRPC-Web becomes gRPC before anything looks at it.
    let services = services.into_axum_router().layer(GrpcWebLayer::new());

    let origins: Arc<[String]> = settings.server.cors_origins.as_slice().into();
    let rest = guarded(rest::routes(service, &settings.limits), Door::Rest, settings, &admission)
        .layer(from_fn_with_state(origins, cors::keep_out));

    let all = services.merge(people).fallback_service(rest);
    match cors::layer(&settings.server.cors_origins) {
        Some(cors) => all.layer(cors),
        None => all,
    }
}

/// From the outside in: the deadline covers all that comes after; a panic is caught inside the deadline, and
/// the place taken by a call is given back after it.
fn guarded(routes: Router, door: Door, settings: &Settings, admission: &Admission) -> Router {
    routes.layer(
        ServiceBuilder::new()
            .layer(from_fn_with_state((door, settings.limits.request_time()), deadline::keep))
            .layer(from_fn_with_state((door, admission.clone()), admit))
            .layer(from_fn_with_state(door, catch_panic)),
    )
}

async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| std::io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))
}

fn seconds(setting: u64) -> Option<Duration> {
    (setting > 0).then(|| Duration::from_secs(setting))
}
