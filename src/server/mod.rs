//! The doors: one port for callers, one for operators.

pub mod admission;
pub mod caller;
pub mod codec;
pub mod cors;
pub mod deadline;
pub mod door;
mod framing;
pub mod grpc;
pub mod health;
pub mod keys;
pub mod listen;
pub mod observe;
pub mod openapi;
pub mod page;
pub mod probe;
pub mod rest;
pub mod service;
pub mod stream;
pub mod tls;
pub mod transcoding;
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
use crate::server::keys::{Keys, ask};
use crate::server::listen::Connections;
use crate::server::openapi::Keyed;
use crate::server::service::Service;
use crate::server::tls::Tls;

/// A service whose ports are open.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    admin: Option<TcpListener>,
    settings: Settings,
    evaluator: Arc<Evaluator>,
    health: Health,
    tls: Option<Arc<Tls>>,
    keys: Option<Keys>,
}

impl Server {
    /// Opens the ports. Callers who connect from now on are answered once [`Server::run`] goes.
    ///
    /// # Errors
    /// A port is taken, or the files of TLS or keys cannot be used.
    pub async fn bind(settings: Settings, evaluator: Arc<Evaluator>) -> std::io::Result<Self> {
        let tls = settings.tls().map_err(std::io::Error::other)?.map(Arc::new);
        let keys = settings.keys().map_err(std::io::Error::other)?;
        let listener = bind(settings.server.listen).await?;
        let admin = match settings.server.admin_listen {
            AdminListen::Off => None,
            AdminListen::At(address) => Some(bind(address).await?),
        };
        Ok(Self { listener, admin, settings, evaluator, health: Health::default(), tls, keys })
    }

    /// Where callers reach the service.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Whether callers have to speak TLS.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether callers need an API key.
    pub fn asks_for_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Where operators reach the service.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop`; then says "not ready", lets calls in flight end, and returns.
    pub async fn run(self, stop: CancellationToken) {
        let Self { listener, admin, settings, evaluator, health, tls, keys } = self;
        let close = CancellationToken::new();
        let connections = Connections {
            limit: settings.limits.connections,
            max_age: seconds(settings.server.max_connection_age_seconds),
            drain: Duration::from_secs(settings.server.drain_seconds),
            tls: tls.clone(),
        };
        let router = callers(&settings, evaluator, &health, keys.as_ref());
        health.set_ready(true).await;
        let turn_away = async {
            stop.cancelled().await;
            health.set_ready(false).await;
            tokio::time::sleep(Duration::from_secs(settings.server.not_ready_seconds)).await;
            close.cancel();
        };
        let operators = admin.map(|listener| tokio::spawn(health::serve_admin(listener, health.clone())));
        let renewal = tls.map(|tls| tokio::spawn(async move { tls.follow().await }));
        tokio::join!(listen::serve(listener, router, connections, close.clone()), turn_away);
        for task in operators.into_iter().chain(renewal) {
            task.abort();
        }
    }
}

/// What callers reach: the evaluation service by gRPC under its three names and by REST, graders of OpenAI's API,
/// health, reflection, and a page for people.
fn callers(settings: &Settings, evaluator: Arc<Evaluator>, health: &Health, keys: Option<&Keys>) -> Router {
    let Settings { server, limits, .. } = settings;
    let keys_unless = |open: bool| keys.filter(|_| !open);
    let page_keys = keys_unless(server.open_page);
    let who = Keyed { calls: keys.is_some(), pages: page_keys.is_some() };
    let people = keyed(page::routes(Arc::clone(&evaluator), who), Door::Rest, page_keys);
    let service = Service::new(evaluator);
    // One budget for both doors.
    let admission = Admission::new(limits);

    let evaluation = grpc::routes(service.clone(), limits);
    let mut services = guarded(evaluation, Door::Grpc, settings, &admission, keys).merge(keyed(
        Routes::from(Router::new()).add_service(health.service()).into_axum_router(),
        Door::Grpc,
        keys_unless(server.open_health),
    ));
    if server.reflection {
        let reflection = grpc::with_reflection(Routes::from(Router::new())).into_axum_router();
        services = services.merge(keyed(reflection, Door::Grpc, keys_unless(server.open_reflection)));
    }
    // gRPC-Web becomes gRPC before anything looks at it.
    let services = services.layer(GrpcWebLayer::new());

    let origins: Arc<[String]> = server.cors_origins.as_slice().into();
    let keep_out = from_fn_with_state(origins, cors::keep_out);
    let graders = rest::graders::routes(service.clone(), limits);
    let graders = guarded(graders, Door::OpenAi, settings, &admission, keys).layer(keep_out.clone());
    let rest = guarded(rest::routes(service, limits), Door::Rest, settings, &admission, keys).layer(keep_out);

    let all = services.merge(people).merge(graders).fallback_service(rest);
    match cors::layer(&server.cors_origins) {
        Some(cors) => all.layer(cors),
        None => all,
    }
}

/// From the outside in: telemetry sees every call and its answer; who has no key is turned away before it costs a place or a timer; the deadline covers
/// all that comes after; a panic is caught inside the deadline, and the place taken by a call is given back after it.
fn guarded(
    routes: Router,
    door: Door,
    settings: &Settings,
    admission: &Admission,
    keys: Option<&Keys>,
) -> Router {
    let answering = routes.layer(
        ServiceBuilder::new()
            .layer(from_fn_with_state((door, settings.limits.request_time()), deadline::keep))
            .layer(from_fn_with_state((door, admission.clone()), admit))
            .layer(from_fn_with_state(door, caller::serve))
            .layer(from_fn_with_state(door, catch_panic)),
    );
    keyed(answering, door, keys).layer(from_fn_with_state(door, observe::watch))
}

/// Asks every caller for one of these keys, if there are any.
fn keyed(routes: Router, door: Door, keys: Option<&Keys>) -> Router {
    match keys {
        Some(keys) => routes.layer(from_fn_with_state((door, keys.clone()), ask)),
        None => routes,
    }
}

async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| std::io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))
}

fn seconds(setting: u64) -> Option<Duration> {
    (setting > 0).then(|| Duration::from_secs(setting))
}
