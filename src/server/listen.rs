//! Connections: accepted up to a limit, with TLS where it is set up, spoken to in HTTP/2 or HTTP/1.1, closed gracefully.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::server::caller::CallerId;
use crate::server::tls::Tls;

/// A connection that says nothing for this long after it was made is closed.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(30);

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
        let connection = protocol.serve_connection(TokioIo::new(stream), TowerToHyperService::new(known));
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
