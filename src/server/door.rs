//! What the doors have in common: each refuses in the form that its callers read, and outlives a panic.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;

use crate::error::Error;
use crate::server::{grpc, rest};
use crate::workers::panic_text;

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// gRPC and gRPC-Web.
    Grpc,
    /// JSON over HTTP, as Google has it.
    Rest,
    /// The graders of OpenAI's API.
    OpenAi,
}

impl Door {
    /// An answer that is only this error.
    pub fn refuse(self, error: Error) -> Response {
        match self {
            Self::Grpc => grpc::refuse(error),
            Self::Rest => rest::refuse(error),
            Self::OpenAi => rest::graders::refuse(error),
        }
    }
}

/// A panic while answering is INTERNAL for that call alone.
pub async fn catch_panic(State(door): State<Door>, request: Request, next: Next) -> Response {
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answer.unwrap_or_else(|panic: Box<dyn Any + Send>| {
        let error = Error::internal(panic_text(panic.as_ref()));
        tracing::error!(source = error.source.as_deref(), "{error}");
        door.refuse(error)
    })
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    async fn answer_to_a_panic(door: Door) -> Response {
        async fn boom() {
            panic!("a secret of the service");
        }
        let routes = Router::new().fallback(boom).layer(from_fn_with_state(door, catch_panic));
        routes.oneshot(Request::new(Body::empty())).await.unwrap()
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_error_in_the_form_of_its_door() {
        let response = answer_to_a_panic(Door::Grpc).await;
        assert_eq!(response.headers()["grpc-status"], "13");

        let response = answer_to_a_panic(Door::Rest).await;
        assert_eq!(response.status(), 500);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["status"], "INTERNAL");
        assert!(!body.to_string().contains("secret"), "{body}");
    }
}
