//! Whether the service is well: grpc.health.v1 for callers; `/livez`, `/readyz` and `/metrics` on the admin port.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;
use tokio::net::TcpListener;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use crate::server::grpc::service_names;
use crate::telemetry;

/// The state of the service, shared by both ports.
#[derive(Debug, Clone, Default)]
pub struct Health {
    reporter: HealthReporter,
    ready: Arc<AtomicBool>,
}

impl Health {
    /// Tells everybody who asks from now on.
    pub async fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        for name in service_names().chain([""]) {
            self.reporter.set_service_status(name, status).await;
        }
    }

    /// The gRPC health service.
    pub fn service(&self) -> HealthServer<HealthService> {
        HealthServer::new(HealthService::from_health_reporter(self.reporter.clone()))
    }
}

/// Serves the admin port for ever.
pub async fn serve_admin(listener: TcpListener, health: Health) {
    let ready = |State(health): State<Health>| async move {
        if health.ready.load(Ordering::Acquire) {
            (StatusCode::OK, "ready\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
        }
    };
    let metrics = || async {
        let form = [(http::header::CONTENT_TYPE, prometheus::TEXT_FORMAT)];
        match telemetry::metrics::text() {
            Some(text) => (StatusCode::OK, form, text),
            None => (StatusCode::NOT_FOUND, form, String::from("# no metrics are kept\n")),
        }
    };
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .with_state(health);
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!("the admin port closed: {error}");
    }
}
