//! Who is let in: so many calls at one time, so many bytes in one message, so many bytes in all large ones.
//! What is over a limit is refused at once with the limit's name.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;
use crate::error::{Error, Kind};
use crate::server::door::Door;
use crate::server::framing::{Framing, Piece};
use crate::server::unpack::Unpacker;

/// Messages shorter than this are not counted against the bytes in flight.
const COUNTED_FROM_BYTES: usize = 64 * 1024;

/// The unit in which bytes in flight are counted, so that the count fits a semaphore of 32 bits.
const UNIT_BYTES: usize = 1024;

/// When to try again after an overload.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Counts the calls and the bytes that are in.
#[derive(Debug, Clone)]
pub struct Admission {
    calls: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    limits: Arc<Limits>,
}

impl Admission {
    /// Nobody is in yet.
    pub fn new(limits: &Limits) -> Self {
        let units = (limits.requests_in_flight_bytes / UNIT_BYTES).min(Semaphore::MAX_PERMITS);
        Self {
            calls: Arc::new(Semaphore::new(limits.concurrent_requests.min(Semaphore::MAX_PERMITS))),
            bytes: Arc::new(Semaphore::new(units)),
            limits: Arc::new(limits.clone()),
        }
    }
}

/// Lets a call in, or refuses it.
pub async fn admit(
    State((door, admission)): State<(Door, Admission)>,
    request: Request,
    next: Next,
) -> Response {
    let Ok(call) = Arc::clone(&admission.calls).try_acquire_owned() else {
        return door.refuse(overload(format!(
            "limits.concurrent_requests = {} are reached",
            admission.limits.concurrent_requests
        )));
    };
    let place = Place { calls: Arc::clone(&admission.calls), _own: Arc::new(call) };
    let held = Held {
        bytes: Arc::clone(&admission.bytes),
        permits: Arc::default(),
        limits: Arc::clone(&admission.limits),
    };
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(held.clone());
    parts.extensions.insert(place.clone());
    let body = match door {
        Door::Grpc => {
            let packed = parts.headers.get("grpc-encoding").is_some_and(|encoding| encoding == "gzip");
            let unpacker = packed.then(|| Unpacker::new(held.clone()));
            Body::new(Measured { inner: body, framing: Framing::default(), unpacker, held: held.clone() })
        }
        // Measured where it is received: it has no prefix that says how long it is.
        Door::Rest | Door::OpenAi => body,
    };
    let response = next.run(Request::from_parts(parts, body)).await;
    held.release();
    // A stream has a copy and goes on.
    drop(place);
    response
}

/// The place of a call among `limits.concurrent_requests`; an extension of the request. Given back when the last
/// copy is dropped.
#[derive(Debug, Clone)]
pub struct Place {
    calls: Arc<Semaphore>,
    _own: Arc<OwnedSemaphorePermit>,
}

impl Place {
    /// One more place, if there is one: for a stream that answers several requests at one time.
    pub(super) fn another(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.calls).try_acquire_owned().ok()
    }
}

fn overload(fact: String) -> Error {
    Error {
        retry_after: Some(RETRY_AFTER),
        ..Error::new(Kind::ResourceExhausted, format!("overloaded: {fact}"))
    }
}

/// The bytes that one call holds; an extension of the request.
#[derive(Debug, Clone)]
pub struct Held {
    bytes: Arc<Semaphore>,
    permits: Arc<Mutex<Vec<OwnedSemaphorePermit>>>,
    limits: Arc<Limits>,
}

impl Held {
    /// Holds so many bytes, all in all, until the call is answered. More than all there are counts as all.
    pub fn grow_to(&self, bytes: usize) -> Result<(), Error> {
        let bytes = bytes.min(self.limits.requests_in_flight_bytes / UNIT_BYTES * UNIT_BYTES);
        if bytes < COUNTED_FROM_BYTES {
            return Ok(());
        }
        let mut permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner);
        let held: usize = permits.iter().map(OwnedSemaphorePermit::num_permits).sum();
        let more = bytes.div_ceil(UNIT_BYTES).saturating_sub(held);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.bytes).try_acquire_many_owned(more).map_err(|_| {
            overload(format!(
                "limits.requests_in_flight_bytes = {} are reached",
                self.limits.requests_in_flight_bytes
            ))
        })?;
        permits.push(permit);
        Ok(())
    }

    /// Holds nothing yet, of the same budget: for one request of a stream.
    pub(super) fn apart(&self) -> Self {
        Self { bytes: Arc::clone(&self.bytes), permits: Arc::default(), limits: Arc::clone(&self.limits) }
    }

    /// Gives back all bytes.
    pub(super) fn release(&self) {
        self.permits.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// So many bytes of a compressed message have come out of it.
    pub(super) fn unpacked(&self, bytes: usize) -> Result<(), Error> {
        let limit = self.limits.request_bytes;
        if bytes > limit {
            let found = format!("the request message unpacks to more than limits.request_bytes = {limit}");
            return Err(Error::new(Kind::TooLarge, found));
        }
        self.grow_to(bytes)
    }

    fn announced(&self, bytes: usize) -> Result<(), Error> {
        let limit = self.limits.request_bytes;
        if bytes > limit {
            let found = format!("the request message has {bytes} bytes, over limits.request_bytes = {limit}");
            return Err(Error::new(Kind::TooLarge, found));
        }
        self.grow_to(bytes)
    }
}

/// A request body that knows the length of each gRPC message as soon as its five-byte prefix has come in, and that
/// hands on compressed messages unpacked.
struct Measured {
    inner: Body,
    framing: Framing,
    unpacker: Option<Unpacker>,
    held: Held,
}

impl http_body::Body for Measured {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let Self { inner, framing, unpacker, held } = &mut *self;
        loop {
            if let Some(unpacked) = unpacker.as_mut().and_then(Unpacker::next) {
                return Poll::Ready(Some(Ok(Frame::data(unpacked))));
            }
            let Some(frame) = ready!(Pin::new(&mut *inner).poll_frame(cx)) else { return Poll::Ready(None) };
            let frame = match frame {
                Ok(frame) => frame,
                // The connection or the stream is gone.
                Err(error) => return Poll::Ready(Some(Err(tonic::Status::from_error(Box::new(error))))),
            };
            let Some(data) = frame.data_ref() else { return Poll::Ready(Some(Ok(frame))) };
            let measured = framing.read(data, |piece| {
                if let Piece::Start { bytes, .. } = piece {
                    held.announced(bytes)?;
                }
                unpacker.as_mut().map_or(Ok(()), |unpacker| unpacker.take(piece))
            });
            match measured {
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
                Ok(()) if unpacker.is_none() => return Poll::Ready(Some(Ok(frame))),
                Ok(()) => {}
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream() && !self.unpacker.as_ref().is_some_and(Unpacker::has_more)
    }

    fn size_hint(&self) -> SizeHint {
        if self.unpacker.is_some() { SizeHint::default() } else { self.inner.size_hint() }
    }
}
