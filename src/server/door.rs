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
    /// JSON over HTTP.
    Rest,
}

impl Door {
    /// An answer that is only this error.
    pub fn refuse(self, error: Error) -> Response {
        match self {
            Self::Grpc => grpc::refuse(error),
            Self::Rest => rest::refuse(error),
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
