//! TLS at the callers' port: both protocols, client certificates, renewed files, and peers that speak no TLS.
#![cfg(feature = "server")]

mod world;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rapid_eval::config::TlsFiles;
use rapid_eval::server::tls::Tls;
use rapid_eval::wire::v1::EvaluateInstancesResponse;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use world::http::{frame_of, frames, grpc_request, http1_over, http2_over};
use world::process::run;
use world::{Running, SERVICES, World, message, scores};

/// Ends a test that would hang; nothing here comes near it.
const FOR_EVER: Duration = Duration::from_secs(300);

struct Authority {
    certificate: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
struct Identity {
    certificate: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signed = params.self_signed(&key).unwrap();
        Self { certificate: signed.der().clone(), pem: signed.pem(), issuer: Issuer::new(params, key) }
    }

    fn identity(&self) -> Identity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![String::from("localhost")]).unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate: signed.der().clone(), pem: signed.pem(), key }
    }
}

/// Files of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn identity(&self, identity: &Identity) -> TlsFiles {
        TlsFiles {
            certificate_file: self.write("service.pem", &identity.pem),
            key_file: self.write("service.key", &identity.key.serialize_pem()),
            client_ca_file: PathBuf::new(),
        }
    }
}

async fn start(files: TlsFiles) -> Running {
    World::new().set(|settings| settings.server.tls = files).start().await
}

async fn connect(
    address: SocketAddr,
    trusted: &Authority,
    caller: Option<&Identity>,
    protocols: &[&str],
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match caller {
        None => config.with_no_client_auth(),
        Some(caller) => {
            let key = PrivateKeyDer::Pkcs8(caller.key.serialize_der().into());
            config.with_client_auth_cert(vec![caller.certificate.clone()], key).unwrap()
        }
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

fn protocol(stream: &TlsStream<TcpStream>) -> Option<&[u8]> {
    stream.get_ref().1.alpn_protocol()
}

fn exact_match() -> Value {
    json!({"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}]}})
}

async fn by_grpc(stream: TlsStream<TcpStream>) -> EvaluateInstancesResponse {
    let uri = format!("https://localhost/{}/EvaluateInstances", SERVICES[0]);
    let answer =
        http2_over(stream, grpc_request(&uri, Full::<Bytes>::from(frame_of(&message(&exact_match()))), &[]))
            .await;
    assert_eq!(answer.grpc_status().code(), tonic::Code::Ok, "{answer:?}");
    let [(0, bytes)] = frames(&answer.body)[..] else { panic!("not one message in {answer:?}") };
    prost::Message::decode(bytes).unwrap()
}

#[tokio::test]
async fn grpc_and_rest_are_served_by_the_protocol_that_was_agreed_on() {
    let authority = Authority::new();
    let world = start(Folder::new("both").identity(&authority.identity())).await;

    let stream = connect(world.address, &authority, None, &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(protocol(&stream), Some(b"h2".as_slice()));
    assert_eq!(scores(&by_grpc(stream).await), [1.0]);

    let stream = connect(world.address, &authority, None, &["http/1.1"]).await.unwrap();
    assert_eq!(protocol(&stream), Some(b"http/1.1".as_slice()));
    let request = Request::post("/v1beta1:evaluateInstances")
        .header("host", "localhost")
        .body(Full::new(Bytes::from(exact_match().to_string())))
        .unwrap();
    let answer = http1_over(stream, request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.text().contains("exactMatchResults"), "{answer:?}");

    // Who names no protocol is understood by its first bytes.
    let stream = connect(world.address, &authority, None, &[]).await.unwrap();
    assert_eq!(protocol(&stream), None);
    assert_eq!(scores(&by_grpc(stream).await), [1.0]);

    assert!(connect(world.address, &authority, None, &["spdy/3"]).await.is_err());
    assert!(connect(world.address, &Authority::new(), None, &[]).await.is_err());
    world.stop().await;
}

#[tokio::test]
async fn a_caller_without_a_certificate_of_the_named_authority_gets_no_answer() {
    let (authority, callers) = (Authority::new(), Authority::new());
    let folder = Folder::new("mutual");
    let mut files = folder.identity(&authority.identity());
    files.client_ca_file = folder.write("callers.pem", &callers.pem);
    let world = start(files).await;

    let known = callers.identity();
    let stream = connect(world.address, &authority, Some(&known), &["h2"]).await.unwrap();
    assert_eq!(scores(&by_grpc(stream).await), [1.0]);

    for stranger in [None, Some(authority.identity())] {
        let answered = async {
            // In TLS 1.3 the caller learns only afterwards that its certificate was refused.
            let mut stream = connect(world.address, &authority, stranger.as_ref(), &["http/1.1"]).await?;
            stream
                .write_all(b"GET /info.json HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                .await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            Ok::<_, io::Error>(answer)
        };
        let answered = tokio::time::timeout(FOR_EVER, answered).await.unwrap();
        assert!(answered.is_err(), "{answered:?}");
    }
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_is_let_go_and_the_others_are_served() {
    let authority = Authority::new();
    let world = start(Folder::new("plain").identity(&authority.identity())).await;
    for said in
        [&b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0; 100]]
    {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        stream.write_all(said).await.unwrap();
        let mut answer = Vec::new();
        // An end or a reset, after an alert at most.
        let _ = tokio::time::timeout(FOR_EVER, stream.read_to_end(&mut answer)).await.unwrap();
        assert!(answer.len() < 10, "{answer:?}");
    }
    let stream = connect(world.address, &authority, None, &["h2"]).await.unwrap();
    assert_eq!(scores(&by_grpc(stream).await), [1.0]);
}

#[tokio::test]
async fn a_handshake_that_does_not_go_on_is_given_up_and_holds_up_nobody() {
    let authority = Authority::new();
    let files = Folder::new("silent").identity(&authority.identity());
    let world = start(files.clone()).await;
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(world.address).await.unwrap();
        // The first byte of a handshake.
        stream.write_all(&[0x16]).await.unwrap();
        silent.push(stream);
    }
    let stream = connect(world.address, &authority, None, &["h2"]).await.unwrap();
    assert_eq!(scores(&by_grpc(stream).await), [1.0]);

    let tls = Tls::load(&files).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    tokio::time::pause();
    let error = tls.accept(stream).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

/// The certificate that is served to the next connection.
async fn served(tls: &Tls, authority: &Authority) -> CertificateDer<'static> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = async { tls.accept(listener.accept().await.unwrap().0).await.map(drop) };
    let connected = async {
        let mut stream = connect(address, authority, None, &[]).await.unwrap();
        stream.write_all(b"?").await.unwrap();
        shown(&stream)
    };
    tokio::join!(accepted, connected).1
}

fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

#[tokio::test(start_paused = true)]
async fn files_that_cannot_be_used_leave_the_old_certificate_in_place() {
    let authority = Authority::new();
    let (old, new) = (authority.identity(), authority.identity());
    let folder = Folder::new("broken");
    let tls = Arc::new(Tls::load(&folder.identity(&old)).unwrap());
    let following = Arc::clone(&tls);
    tokio::spawn(async move { following.follow().await });
    // Longer than it takes to look; the clock stands still while files are read.
    let looked = async || {
        tokio::time::sleep(Duration::from_secs(60)).await;
        tokio::time::resume();
        let served = served(&tls, &authority).await;
        tokio::time::pause();
        served
    };

    folder.write("service.pem", "no certificate");
    assert_eq!(looked().await, old.certificate);
    // Of another key: one of two files was written.
    folder.write("service.pem", &new.pem);
    assert_eq!(looked().await, old.certificate);
    std::fs::remove_file(folder.0.join("service.key")).unwrap();
    assert_eq!(looked().await, old.certificate);
    folder.write("service.key", &new.key.serialize_pem());
    assert_eq!(looked().await, new.certificate);
}

#[tokio::test]
async fn a_renewed_certificate_is_served_without_a_restart() {
    let authority = Authority::new();
    let (old, new) = (authority.identity(), authority.identity());
    let folder = Folder::new("renewed");
    let world = start(folder.identity(&old)).await;
    let connected = async || connect(world.address, &authority, None, &["h2"]).await.unwrap();
    assert_eq!(shown(&connected().await), old.certificate);

    folder.identity(&new);
    let renewed = async {
        while shown(&connected().await) != new.certificate {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(FOR_EVER, renewed).await.unwrap();
    assert_eq!(scores(&by_grpc(connected().await).await), [1.0]);
}

#[test]
fn files_that_cannot_be_used_are_named_with_their_setting() {
    let authority = Authority::new();
    let (identity, other) = (authority.identity(), authority.identity());
    let folder = Folder::new("wrong");
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let certificate = text(folder.write("good.pem", &identity.pem));
    let key = text(folder.write("good.key", &identity.key.serialize_pem()));
    let other_key = text(folder.write("other.key", &other.key.serialize_pem()));
    let (missing, this) = (text(folder.0.join("missing.pem")), String::from(file!()));
    let wrong = [
        ([&missing, &key, ""], "certificate_file", "cannot be read"),
        ([&this, &key, ""], "certificate_file", "holds no certificate"),
        ([&certificate, &missing, ""], "key_file", "cannot be read"),
        ([&certificate, &certificate, ""], "key_file", "holds no private key"),
        ([&certificate, &other_key, ""], "key_file", "is not the key of"),
        ([&certificate, "", ""], "key_file", "is not set"),
        (["", "", &certificate], "certificate_file", "is not set"),
        ([&certificate, &key, &missing], "client_ca_file", "cannot be read"),
        ([&certificate, &key, &key], "client_ca_file", "holds no certificate"),
    ];
    for ([certificate, key, client_ca], named, why) in wrong {
        let settings = [
            ("server.tls.certificate_file", certificate),
            ("server.tls.key_file", key),
            ("server.tls.client_ca_file", client_ca),
        ];
        for verb in ["check-config", "serve"] {
            let output = run(&[verb], &settings, "");
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(64), "{settings:?}: {said}");
            assert!(said.starts_with(&format!("rapid-eval: server.tls.{named}: ")), "{said}");
            assert!(said.contains(why) && said.lines().count() == 1, "{said}");
        }
    }
    let good = [("server.tls.certificate_file", certificate.as_str()), ("server.tls.key_file", &key)];
    assert_eq!(run(&["check-config"], &good, "").status.code(), Some(0));
}
