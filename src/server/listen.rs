//! Connections: accepted up to a limit, with TLS where it is set up, spoken to in HTTP/2 or HTTP/1.1, closed gracefully.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::server::caller::CallerId;
use crate::server::tls::Tls;

/// A connection that says nothing for this long after it was made is closed.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(30);

/// Bytes that tell HTTP/2 from HTTP/1.1.
const PREFACE_BYTES: usize = 24;

/// A peer that does not answer a ping of ours is taken for dead after this and [`PING_WITHIN`].
const PING_EVERY: Duration = Duration::from_secs(60);

/// How long a peer has to answer a ping of ours.
const PING_WITHIN: Duration = Duration::from_secs(20);

/// Calls that one connection may have open at one time.
const STREAMS: u32 = 1024;

/// Bytes that a peer may send ahead, per call and per connection.
const WINDOW_BYTES: (u32, u32) = (1 << 20, 4 << 20);

/// Bytes of all headers of one request.
const HEADER_BYTES: u32 = 64 * 1024;

/// How connections are kept.
#[derive(Debug, Clone)]
pub struct Connections {
    /// More wait to be accepted.
    pub limit: usize,
    /// A connection is asked to go after this long.
    pub max_age: Option<Duration>,
    /// After the stop, calls in flight may go on for this long.
    pub drain: Duration,
    /// Without it, everything is sent as it is.
    pub tls: Option<Arc<Tls>>,
}

/// Serves until `stop`, then lets calls in flight end, for at most the drain time.
pub async fn serve(listener: TcpListener, router: Router, connections: Connections, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(connections.limit.min(Semaphore::MAX_PERMITS)));
    let open = TaskTracker::new();
    let protocol = Arc::new(protocol());
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, slot) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: others have to close first.
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let talk = Talk {
            protocol: Arc::clone(&protocol),
            router: router.clone(),
            max_age: connections.max_age,
            stop: stop.clone(),
        };
        let tls = connections.tls.clone();
        open.spawn(async move {
            talk.begin(stream, tls).await;
            drop(slot);
        });
    }
    drop(listener);
    open.close();
    if tokio::time::timeout(connections.drain, open.wait()).await.is_err() {
        tracing::warn!("calls were still in flight {:?} after the stop", connections.drain);
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Answers are small; waiting to fill a packet would only delay them.
    stream.set_nodelay(true)?;
    Ok((stream, slot))
}

fn protocol() -> auto::Builder<TokioExecutor> {
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    protocol.http1().timer(TokioTimer::new()).header_read_timeout(FIRST_BYTE_WITHIN);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WITHIN)
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW_BYTES.0)
        .initial_connection_window_size(WINDOW_BYTES.1)
        .max_header_list_size(HEADER_BYTES);
    protocol
}

/// What one connection is spoken to with.
struct Talk {
    protocol: Arc<auto::Builder<TokioExecutor>>,
    router: Router,
    max_age: Option<Duration>,
    stop: CancellationToken,
}

impl Talk {
    async fn begin(self, stream: TcpStream, tls: Option<Arc<Tls>>) {
        let stop = self.stop.clone();
        let mut first_byte = [0];
        tokio::select! {
            first = tokio::time::timeout(FIRST_BYTE_WITHIN, stream.peek(&mut first_byte)) => match first {
                Ok(Ok(1..)) => {}
                Ok(Ok(0) | Err(_)) | Err(_) => return,
            },
            () = stop.cancelled() => return,
        }
        let Some(tls) = tls else { return self.hold(stream).await };
        let accepted = tokio::select! {
            accepted = tls.accept(stream) => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok(stream) => self.hold(stream).await,
            Err(error) => tracing::debug!("a TLS handshake failed: {error}"),
        }
    }

    async fn hold(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Self { protocol, router, max_age, stop } = self;
        let id = CallerId::of_connection();
        let known = router.map_request(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(id);
            request
        });
        let connection =
            protocol.serve_connection(TokioIo::new(Opening::new(stream)), TowerToHyperService::new(known));
        let mut connection = pin!(connection);
        let aged = async {
            match max_age {
                Some(max_age) => tokio::time::sleep(max_age).await,
                None => std::future::pending().await,
            }
        };
        let asked_to_go = async {
            tokio::select! {
                () = aged => {}
                () = stop.cancelled() => {}
            }
        };
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = asked_to_go => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            // Peers break off all the time.
            tracing::debug!("a connection ended with {error}");
        }
    }
}

/// A connection that fails when its first bytes, too few to tell what it speaks, are long in coming: whoever tells the
/// protocols apart waits for ever.
struct Opening<S> {
    stream: S,
    /// Bytes still to come, and how long they may take; absent once they are there.
    missing: Option<(usize, Pin<Box<Sleep>>)>,
}

impl<S> Opening<S> {
    fn new(stream: S) -> Self {
        Self { stream, missing: Some((PREFACE_BYTES, Box::pin(sleep(FIRST_BYTE_WITHIN)))) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Opening<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, missing } = self.get_mut();
        let filled = buffer.filled().len();
        let read = Pin::new(stream).poll_read(cx, buffer);
        let Some((bytes, patience)) = missing else { return read };
        if read.is_pending() {
            ready!(patience.as_mut().poll(cx));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        *bytes = bytes.saturating_sub(buffer.filled().len() - filled);
        if *bytes == 0 {
            *missing = None;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Opening<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_stops_within_the_preface_is_not_waited_for_and_who_has_said_it_is() {
        for (said, outcome) in
            [("PRI * HTTP/2", Some(io::ErrorKind::TimedOut)), ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None)]
        {
            let (mut peer, here) = duplex(64);
            let mut here = Opening::new(here);
            peer.write_all(said.as_bytes()).await.unwrap();
            let mut heard = vec![0; said.len()];
            here.read_exact(&mut heard).await.unwrap();
            assert_eq!(heard, said.as_bytes());
            let began = Instant::now();
            let more = tokio::time::timeout(10 * FIRST_BYTE_WITHIN, here.read_u8()).await;
            assert_eq!(more.ok().map(|read| read.unwrap_err().kind()), outcome, "{said}");
            let waited = if outcome.is_some() { FIRST_BYTE_WITHIN } else { 10 * FIRST_BYTE_WITHIN };
            assert_eq!(began.elapsed(), waited);
        }
    }
}
