//! What people see in a browser: a page that says what runs here and tries it out, and the JSON behind it.
//! Everything comes from the binary, and the page may load and send nothing to anywhere else.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Map, Value, json};

use crate::catalog;
use crate::evaluate::Evaluator;
use crate::judge::roster::Roster;
use crate::server::grpc::service_names;
use crate::server::openapi::{self, Keyed};
use crate::server::rest::{self, JSON};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");
const SCRIPT: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
const SVG: HeaderValue = HeaderValue::from_static("image/svg+xml");

/// The page is made of its own files and talks to its own server.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Every path that a person or a tool reads and nobody calls.
pub fn routes(evaluator: Arc<Evaluator>, keyed: Keyed) -> Router {
    let facts = facts(evaluator.roster());
    let info = move || async move { with_policy(JSON, Bytes::from(info(&facts, evaluator.roster()))) };
    Router::new()
        .route("/", asset(HTML, Bytes::from_static(include_bytes!("page/index.html"))))
        .route("/page.css", asset(CSS, Bytes::from_static(include_bytes!("page/page.css"))))
        .route("/page.js", asset(SCRIPT, Bytes::from_static(include_bytes!("page/page.js"))))
        .route("/icon.svg", asset(SVG, Bytes::from_static(include_bytes!("page/icon.svg"))))
        .route("/info.json", only_get(info))
        .route("/openapi.json", asset(JSON, Bytes::from(openapi::document(keyed))))
}

fn asset(kind: HeaderValue, content: Bytes) -> MethodRouter {
    only_get(|| async move { with_policy(kind, content) })
}

fn only_get<H: Handler<T, ()>, T: 'static>(handler: H) -> MethodRouter {
    get(handler).fallback(|| async { rest::method_not_allowed("GET, HEAD") })
}

fn with_policy(kind: HeaderValue, content: Bytes) -> Response {
    let headers: [(HeaderName, HeaderValue); 5] = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        // A newer server has a newer page.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, content).into_response()
}

/// What runs here, for programs: the facts, and how the judges fare.
fn info(facts: &Map<String, Value>, roster: &Roster) -> String {
    let judges: Vec<_> = roster
        .judges()
        .map(|judge| json!({ "name": judge.name(), "model": judge.model(), "state": <&str>::from(judge.state()) }))
        .collect();
    let mut info = facts.clone();
    info.insert(String::from("judges"), Value::Array(judges));
    format!("{:#}\n", Value::Object(info))
}

fn facts(roster: &Roster) -> Map<String, Value> {
    let metrics: Vec<_> = catalog::metrics(roster.rubrics())
        .map(|metric| {
            json!({
                "name": metric.name,
                "kind": metric.kind.name(),
                "scale": metric.scale,
                "inputs": metric.inputs,
                "reference": metric.reference,
            })
        })
        .collect();
    let facts = [
        ("name", json!(env!("CARGO_PKG_NAME"))),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
        ("services", json!(service_names().collect::<Vec<_>>())),
        ("metrics", json!(metrics)),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}
