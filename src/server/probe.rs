//! Asks a running service whether it is ready: what `rapid-eval health` does, for containers that have no other client.
//!
//! At the admin port, if there is one: it has no TLS and asks for no key. Otherwise by `grpc.health.v1`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::config::{AdminListen, Settings};

/// Longer waits nobody who has to decide whether a container lives.
const WITHIN: Duration = Duration::from_secs(3);

/// A word for the service that has these settings, when it is ready.
///
/// # Errors
/// It is not ready, or does not answer.
pub async fn ask(settings: &Settings) -> io::Result<String> {
    let asked = async {
        match settings.server.admin_listen {
            AdminListen::At(address) => by_http(reachable(address)).await,
            AdminListen::Off if settings.server.tls.certificate_file.as_os_str().is_empty() => {
                by_grpc(reachable(settings.server.listen)).await
            }
            AdminListen::Off => Err(io::Error::other(
                "server.admin_listen is off and server.listen speaks TLS; health is asked at the admin port",
            )),
        }
    };
    tokio::time::timeout(WITHIN, asked)
        .await
        .unwrap_or_else(|_| Err(io::Error::other(format!("no answer within {WITHIN:?}"))))
}

/// From this machine: an address that stands for all of them is no place to call.
fn reachable(address: SocketAddr) -> SocketAddr {
    let own = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(own, address.port())
}

async fn by_http(address: SocketAddr) -> io::Result<String> {
    let at = |error: io::Error| io::Error::new(error.kind(), format!("http://{address}/readyz: {error}"));
    let mut stream = TcpStream::connect(address).await.map_err(at)?;
    let request = format!("GET /readyz HTTP/1.0\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(at)?;
    let mut answer = Vec::new();
    // The answer is a line; whoever sends more is somebody else.
    stream.take(4096).read_to_end(&mut answer).await.map_err(at)?;
    let answer = String::from_utf8_lossy(&answer);
    let mut status = answer.split_ascii_whitespace();
    match (status.next(), status.next()) {
        (Some(version), Some("200")) if version.starts_with("HTTP/1.") => Ok(String::from("ready")),
        (Some(version), Some("503")) if version.starts_with("HTTP/1.") => Err(io::Error::other("not ready")),
        _ => Err(io::Error::other(format!("http://{address}/readyz gives no answer of rapid-eval"))),
    }
}

async fn by_grpc(address: SocketAddr) -> io::Result<String> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(io::Error::other)?;
    let channel = endpoint.connect().await.map_err(|error| {
        let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        io::Error::other(format!("{address}: {cause}"))
    })?;
    let answer = HealthClient::new(channel).check(HealthCheckRequest::default()).await;
    match answer.map(|answer| answer.into_inner().status()) {
        Ok(ServingStatus::Serving) => Ok(String::from("ready")),
        Ok(ServingStatus::NotServing | ServingStatus::Unknown | ServingStatus::ServiceUnknown) => {
            Err(io::Error::other("not ready"))
        }
        Err(status) => Err(io::Error::other(format!("{address}: {}", status.message()))),
    }
}
