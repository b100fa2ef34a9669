//! Pages of other origins: let in where the configuration names them, kept out where it does not.
//!
//! A browser sends a plain POST of any page to any address before it asks whether it may, so that a page
//! could spend a judge's money without ever seeing an answer. The check is the one of Go's
//! `http.CrossOriginProtection`: `Sec-Fetch-Site` where a browser sends it, else `Origin` against `Host`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::error::{Error, Kind};
use crate::server::rest;

/// Every page.
pub const ANY: &str = "*";

/// How long a browser may remember what it was allowed.
const REMEMBERED: std::time::Duration = std::time::Duration::from_secs(600);

/// Answers preflights and marks responses for these origins; `None` when there are none.
pub fn layer(origins: &[String]) -> Option<CorsLayer> {
    let allowed = if origins.iter().any(|origin| origin == ANY) {
        AllowOrigin::any()
    } else {
        // What is no header value was refused with the configuration.
        AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    (!origins.is_empty()).then(|| {
        CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods([Method::GET, Method::POST])
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers([
                HeaderName::from_static("grpc-status"),
                HeaderName::from_static("grpc-message"),
                HeaderName::from_static("grpc-status-details-bin"),
                header::RETRY_AFTER,
            ])
            .max_age(REMEMBERED)
    })
}

/// Refuses what a page of an origin that nobody named sends.
pub async fn keep_out(State(origins): State<Arc<[String]>>, request: Request, next: Next) -> Response {
    let safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if safe || !is_foreign(request.headers(), request.uri().authority().map(|host| host.as_str()), &origins) {
        return next.run(request).await;
    }
    rest::refuse(Error::new(
        Kind::PermissionDenied,
        "a page of another origin sent this; server.cors_origins can let that origin in",
    ))
}

fn is_foreign(headers: &HeaderMap, authority: Option<&str>, origins: &[String]) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = text(header::ORIGIN);
    if origins.iter().any(|allowed| allowed == ANY || Some(allowed.as_str()) == origin) {
        return false;
    }
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = origin else { return headers.contains_key(header::ORIGIN) };
    let host = origin.split_once("://").map(|(_, host)| host);
    host.is_none() || host != authority.or_else(|| text(header::HOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(headers: &[(&'static str, &'static str)], origins: &[&str]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let origins: Vec<String> = origins.iter().map(|origin| String::from(*origin)).collect();
        is_foreign(&headers, None, &origins)
    }

    #[test]
    fn programs_and_the_servers_own_page_are_let_in() {
        assert!(!foreign(&[("host", "h:1")], &[]));
        assert!(!foreign(&[("host", "h:1"), ("origin", "http://h:1")], &[]));
        assert!(!foreign(
            &[("host", "inside"), ("origin", "https://h"), ("sec-fetch-site", "same-origin")],
            &[]
        ));
        assert!(!foreign(&[("sec-fetch-site", "none")], &[]));
    }

    #[test]
    fn other_pages_are_let_in_only_by_name() {
        let page = [("host", "h:1"), ("origin", "http://other"), ("sec-fetch-site", "cross-site")];
        assert!(foreign(&page, &[]));
        assert!(foreign(&page, &["http://another"]));
        assert!(!foreign(&page, &["http://another", "http://other"]));
        assert!(!foreign(&page, &["*"]));
        assert!(foreign(&[("host", "h:1"), ("origin", "http://h:2")], &[]));
        assert!(foreign(&[("host", "h:1"), ("origin", "null")], &[]));
        assert!(foreign(&[("host", "h:1"), ("origin", "http://h:2"), ("sec-fetch-site", "same-site")], &[]));
    }
}
