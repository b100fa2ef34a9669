//! `EvaluateInstancesStream`: many requests on one call, each answered by itself when it is ready.
//!
//! A stream holds one place of `limits.concurrent_requests` for as long as it lasts and answers at least one
//! request at a time; it answers up to `limits.stream_requests` while there are places that nobody else wants. It
//! reads on only when a request that is read can be answered, and answers wait for a slow reader in a bounded
//! queue, so that flow control reaches the caller and no memory fills. Each request counts its bytes, and has
//! `limits.request_seconds` of its own.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use opentelemetry::Context;
use opentelemetry::trace::FutureExt as _;
use prost::Message;
use tokio::sync::mpsc::{self, Sender};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status, Streaming};

use crate::error::{Error, Kind};
use crate::judge::caller::Caller;
use crate::server::admission::{Held, Place};
use crate::server::deadline::StreamTime;
use crate::server::service::Service;
use crate::telemetry::{names, traces};
use crate::wire::required;
use crate::wire::v1::evaluate_instances_stream_response::Outcome;
use crate::wire::v1::{
    EvaluateInstancesResponse, EvaluateInstancesStreamRequest, EvaluateInstancesStreamResponse,
};
use crate::workers::panic_text;

/// The answers of one stream.
pub(super) type Answers = ReceiverStream<Result<EvaluateInstancesStreamResponse, Status>>;

/// Begins to answer, `most` requests at one time.
pub(super) fn answer(
    service: Service,
    request: Request<Streaming<EvaluateInstancesStreamRequest>>,
    most: usize,
) -> Result<Answers, Error> {
    let extensions = request.extensions();
    let past = || Error::internal("a stream came in past admission");
    let held = extensions.get::<Held>().cloned().ok_or_else(past)?;
    let place = extensions.get::<Place>().cloned().ok_or_else(past)?;
    let time = extensions.get::<StreamTime>().copied().unwrap_or_default();
    let (send, receive) = mpsc::channel(most);
    let on_behalf = (Caller::current(), Context::current());
    let stream = Stream { service, held, place, time, most, send, on_behalf };
    tokio::spawn(stream.run(request.into_inner()));
    Ok(ReceiverStream::new(receive))
}

/// One call.
struct Stream {
    service: Service,
    held: Held,
    place: Place,
    time: StreamTime,
    most: usize,
    send: Sender<Result<EvaluateInstancesStreamResponse, Status>>,
    /// Who calls, and under which span: a new task knows neither.
    on_behalf: (Caller, Context),
}

impl Stream {
    /// Until all is answered, or its time is up, or nobody listens any more: dropping the tasks ends them.
    async fn run(self, requests: Streaming<EvaluateInstancesStreamRequest>) {
        let end = async {
            match self.time.until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.send.closed() => {}
            () = end => self.end(Error::new(Kind::DeadlineExceeded, "the caller's deadline of the stream has passed")),
            () = self.answer_all(requests) => {}
        }
    }

    /// The last word, if it can be said at once.
    fn end(&self, error: Error) {
        // A queue that is full belongs to a reader that has stopped reading.
        let _ = self.send.try_send(Err(error.into()));
    }

    async fn answer_all(&self, mut requests: Streaming<EvaluateInstancesStreamRequest>) {
        let mut working = JoinSet::new();
        let broken = loop {
            let request = match requests.message().await {
                Ok(Some(request)) => request,
                Ok(None) => break None,
                Err(status) => break Some(status),
            };
            while working.try_join_next().is_some() {}
            // The first one has the place of the stream.
            let mut place = None;
            while working.len() >= self.most || !working.is_empty() && place.is_none() {
                place = self.place.another().filter(|_| working.len() < self.most);
                if place.is_none() {
                    working.join_next().await;
                }
            }
            let held = self.held.apart();
            let counted = held.grow_to(request.encoded_len());
            self.held.release();
            let (service, due, send) = (self.service.clone(), self.time.of_one(), self.send.clone());
            let (caller, context) = self.on_behalf.clone();
            working.spawn(async move {
                let EvaluateInstancesStreamRequest { id, request } = request;
                let answered = match (counted, required(request, "request")) {
                    (Err(error), _) | (Ok(()), Err(error)) => Err(error),
                    (Ok(()), Ok(request)) => {
                        let answer = Box::pin(caller.on_behalf(service.evaluate_instances(request, due)));
                        let context = traces::under(context, names::STREAM_ITEM);
                        within(due, answer.with_context(context)).await
                    }
                };
                let outcome = match answered {
                    Ok(response) => Outcome::Response(response),
                    Err(error) => Outcome::Error(error.into()),
                };
                drop((held, place));
                // Without a reader, the whole is about to end.
                let _ = send.send(Ok(EvaluateInstancesStreamResponse { id, outcome: Some(outcome) })).await;
            });
        };
        while working.join_next().await.is_some() {}
        if let Some(status) = broken {
            // Without a reader there is nobody to tell.
            let _ = self.send.send(Err(status)).await;
        }
    }
}

/// The answer, or what kept it from coming.
async fn within(
    due: Option<Instant>,
    answer: impl Future<Output = Result<EvaluateInstancesResponse, Error>>,
) -> Result<EvaluateInstancesResponse, Error> {
    let answer = AssertUnwindSafe(answer).catch_unwind();
    let answered = match due {
        None => answer.await,
        Some(due) => tokio::time::timeout_at(due, answer).await.unwrap_or_else(|_| {
            Ok(Err(Error::new(
                Kind::DeadlineExceeded,
                "not answered within limits.request_seconds or the caller's deadline",
            )))
        }),
    };
    answered.unwrap_or_else(|panic| {
        let error = Error::internal(panic_text(panic.as_ref()));
        tracing::error!(source = error.source.as_deref(), "{error}");
        Err(error)
    })
}
