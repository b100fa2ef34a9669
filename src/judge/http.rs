//! The only place that opens connections.
//!
//! TLS by rustls with ring; the system's certificate authorities (or those that `SSL_CERT_FILE` and
//! `SSL_CERT_DIR` name) and those of the setting `ca_file`. HTTP/2 where a server offers it over TLS. Proxies
//! from the environment, never for a loopback address. No redirect is followed: it would carry prompts, and
//! perhaps the key, to a host that nobody configured. Nothing here watches the clock but the connection set-up:
//! `layers/deadline.rs` does, and dropping the future closes the stream.

use std::error::Error;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response, Uri};

use super::providers::{failure, unreadable};
use super::{JudgeError, JudgeErrorKind};
use crate::telemetry;

/// Longest answer that is read where nobody says otherwise, in bytes. Verdicts have a few kilobytes; with all
/// log-probabilities some hundred.
const LONGEST_ANSWER: usize = 4 * 1024 * 1024;
/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections to one endpoint, kept open between calls.
#[derive(Debug, Clone)]
pub struct Http {
    client: reqwest::Client,
    longest_answer: usize,
}

impl Http {
    /// For the endpoint at `base`, trusting also the authorities in `ca_file`.
    ///
    /// # Errors
    /// A sentence: the file cannot be used, or the system has no certificate authorities.
    pub fn new(base: &Uri, ca_file: Option<&Path>) -> Result<Self, String> {
        // Somebody else in the process may have installed it before; there is only one choice here.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("rapid-eval/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(Duration::from_secs(60))
            .http2_keep_alive_interval(Duration::from_secs(30));
        if is_loopback(base) {
            builder = builder.no_proxy();
        }
        if let Some(path) = ca_file {
            let pem = std::fs::read(path).map_err(|error| format!("cannot be read: {}", error.kind()))?;
            let authorities = reqwest::Certificate::from_pem_bundle(&pem)
                .ok()
                .filter(|authorities| !authorities.is_empty())
                .ok_or("holds no PEM certificates")?;
            builder = builder.tls_certs_merge(authorities);
        } else if base.scheme_str() == Some("http") {
            // Plain HTTP must work on systems without any certificate authorities.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| root_cause(&error))?;
        Ok(Self { client, longest_answer: LONGEST_ANSWER })
    }

    /// The same for longer answers.
    #[must_use]
    pub fn with_longest_answer(self, bytes: usize) -> Self {
        Self { longest_answer: bytes, ..self }
    }

    /// Sends `request` and reads the whole answer.
    ///
    /// # Errors
    /// `Unreachable` for every failure of the network, `Unreadable` for an answer that is too long, of more than 4 MiB by default.
    pub async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, JudgeError> {
        telemetry::traces::hand_on(request.headers_mut());
        let request = reqwest::Request::try_from(request).map_err(|error| {
            JudgeError::new(
                JudgeErrorKind::BadRequest,
                format!("the address is not usable: {}", root_cause(&error)),
            )
        })?;
        let mut answer = self.client.execute(request).await.map_err(|error| {
            let what = if error.is_connect() { "no connection" } else { "the connection broke" };
            unreachable(what, &error)
        })?;
        let mut body = BytesMut::new();
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > self.longest_answer => {
                    let most = self.longest_answer >> 20;
                    return Err(unreadable(format!("the answer is longer than {most} MiB")));
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Err(unreachable("the answer broke off", &error)),
            }
        }
        let mut response = Response::new(body.freeze());
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

fn is_loopback(base: &Uri) -> bool {
    let host = base.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn unreachable(what: &str, error: &reqwest::Error) -> JudgeError {
    JudgeError::new(JudgeErrorKind::Unreachable, format!("{what}: {}", root_cause(error)))
}

/// The innermost reason; the outer ones repeat the address.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    failure::shorten(&cause.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_the_rest_of_the_world() {
        for (base, expected) in [
            ("http://127.0.0.1:11434/v1", true),
            ("http://[::1]:8000", true),
            ("http://localhost", true),
            ("http://127.example.com", false),
            ("https://api.openai.com", false),
        ] {
            assert_eq!(is_loopback(&base.parse().unwrap()), expected, "{base}");
        }
    }

    #[test]
    fn a_file_without_authorities_is_refused() {
        let base: Uri = "https://h".parse().unwrap();
        assert!(Http::new(&base, Some(Path::new("/does/not/exist"))).unwrap_err().contains("cannot be read"));
        let message = Http::new(&base, Some(Path::new("Cargo.toml"))).unwrap_err();
        assert_eq!(message, "holds no PEM certificates");
    }
}
