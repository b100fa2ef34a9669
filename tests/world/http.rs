//! HTTP without a gRPC client in between: gRPC-Web, malformed messages, wrong frames.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_stream::StreamExt;
use tonic::Status;

use super::SERVICES;

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl Answer {
    /// The gRPC status, from wherever it came.
    pub(crate) fn grpc_status(&self) -> Status {
        [&self.trailers, &self.headers]
            .into_iter()
            .find_map(Status::from_header_map)
            .unwrap_or_else(|| panic!("no grpc-status in {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// One request over HTTP/1.1, on a connection of its own.
pub(crate) async fn http1(address: SocketAddr, request: Request<Full<Bytes>>) -> Answer {
    http1_over(TcpStream::connect(address).await.unwrap(), request).await
}

/// One request over HTTP/1.1, on this connection.
pub(crate) async fn http1_over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Answer {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    whole(sender.send_request(request).await.unwrap()).await
}

/// One request over HTTP/2 without TLS, on a connection of its own.
pub(crate) async fn http2<B>(address: SocketAddr, request: Request<B>) -> Answer
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + Unpin + 'static,
{
    http2_over(TcpStream::connect(address).await.unwrap(), request).await
}

/// One request over HTTP/2, on this connection.
pub(crate) async fn http2_over<B>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<B>,
) -> Answer
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + Unpin + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    whole(sender.send_request(request).await.unwrap()).await
}

async fn whole(response: http::Response<hyper::body::Incoming>) -> Answer {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().cloned().unwrap_or_default();
    Answer { status: parts.status, headers: parts.headers, body: body.to_bytes(), trailers }
}

/// A plain GET, over HTTP/1.1.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    http1(address, Request::get(path).header("host", address.to_string()).body(Full::default()).unwrap())
        .await
}

/// Sends these bytes as the body of a gRPC call of `EvaluateInstances`: a flag, a length, a message.
pub(crate) async fn grpc(address: SocketAddr, body: Vec<u8>, headers: &[(&str, &str)]) -> Answer {
    http2(address, grpc_request(&evaluate_at(address), Full::new(body.into()), headers)).await
}

/// As [`grpc`], and never says that this was all.
pub(crate) async fn grpc_without_end(address: SocketAddr, body: Vec<u8>, headers: &[(&str, &str)]) -> Answer {
    let sent = tokio_stream::once(Ok::<_, Infallible>(Frame::data(Bytes::from(body))));
    let body = StreamBody::new(sent.chain(tokio_stream::pending()));
    http2(address, grpc_request(&evaluate_at(address), body, headers)).await
}

fn evaluate_at(address: SocketAddr) -> String {
    format!("http://{address}/{}/EvaluateInstances", SERVICES[0])
}

/// A gRPC call of any method.
pub(crate) fn grpc_request<B>(uri: &str, body: B, headers: &[(&str, &str)]) -> Request<B> {
    let mut request = Request::post(uri).header("content-type", "application/grpc").header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body).unwrap()
}

/// The flag and the length that go before a message.
pub(crate) fn framed(compressed: bool, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![u8::from(compressed)];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    frame
}

/// The messages in a body, each with its flag.
pub(crate) fn frames(mut body: &[u8]) -> Vec<(u8, &[u8])> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = body.split_at_checked(5) {
        let length = u32::from_be_bytes(head[1..].try_into().unwrap());
        let (message, after) = rest.split_at(length as usize);
        frames.push((head[0], message));
        body = after;
    }
    assert!(body.is_empty(), "half a frame");
    frames
}

/// A length-delimited field of a protobuf message, written by hand.
pub(crate) fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 10);
    prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut bytes);
    prost::encoding::encode_varint(content.len() as u64, &mut bytes);
    bytes.extend(content);
    bytes
}

/// A message of the schema as a frame.
pub(crate) fn frame_of(message: &impl Message) -> Vec<u8> {
    framed(false, &message.encode_to_vec())
}
