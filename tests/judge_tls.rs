//! A judge behind a private certificate authority: trusted when `ca_file` names it, and only then.
#![cfg(feature = "server")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rapid_eval::judge::settings::JudgeSettings;
use rapid_eval::judge::stack::connect_in;
use rapid_eval::judge::{Judge, JudgeError, JudgeErrorKind, Question, Reply, Speaker, Turn};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const GOOD: &str = r#"{"choices":[{"message":{"content":"fine"},"finish_reason":"stop"}]}"#;

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn authority() -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Authority { pem: params.self_signed(&key).unwrap().pem(), issuer: Issuer::new(params, key) }
}

/// A server for `localhost` with a certificate of `authority`; gives its port.
async fn serve(authority: &Authority) -> u16 {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &authority.issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let Ok(mut socket) = acceptor.accept(socket).await else { continue };
            let mut request = [0; 16 * 1024];
            let _ = socket.read(&mut request).await;
            let length = GOOD.len();
            let answer =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{GOOD}");
            let _ = socket.write_all(answer.as_bytes()).await;
            let _ = socket.shutdown().await;
        }
    });
    port
}

async fn ask(port: u16, ca_file: &Path) -> Result<Reply, JudgeError> {
    let mut settings: JudgeSettings = format!("openai:https://localhost:{port}/v1#m").parse().unwrap();
    settings.ca_file = Some(ca_file.to_owned());
    settings.attempts = 1;
    let turns = vec![Turn { speaker: Speaker::User, text: "rate it".to_owned() }];
    connect_in(&settings, &|_| None).unwrap().ask(&Question { turns, ..Question::default() }).await
}

fn stored(name: &str, pem: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, pem).unwrap();
    path
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_named() {
    let ours = authority();
    let port = serve(&ours).await;
    assert_eq!(ask(port, &stored("ours.pem", &ours.pem)).await.unwrap().text, "fine");
}

#[tokio::test]
async fn a_certificate_of_somebody_else_is_refused() {
    let port = serve(&authority()).await;
    let error = ask(port, &stored("others.pem", &authority().pem)).await.unwrap_err();
    assert_eq!(error.kind, JudgeErrorKind::Unreachable);
    assert!(error.message.contains("certificate"), "{error}");
}
