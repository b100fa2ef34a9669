//! TLS at the callers' port: rustls with ring, TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1 by ALPN; with client
//! certificates (mTLS) where `server.tls.client_ca_file` names who may sign them.
//!
//! The files are read again every two seconds, so that a renewed certificate is served without a restart.
//! Their content is compared, not their time: renames, links that move and clocks that stand still all work. New files
//! that cannot be used are logged once and the old ones stay. Connections keep what they were made with.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest, Sha256};
use tokio::io::AsyncBufReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::{TlsFiles, WrongSettings};

/// From the first byte of a handshake to the first byte that it protects.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// How often the files are looked at.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(2);

/// What peers may choose from, the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificate and key that are served, and who may call.
pub struct Tls {
    files: TlsFiles,
    current: ArcSwap<ServerConfig>,
    first: Content,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A sentence that names the setting whose file cannot be used.
    pub fn load(files: &TlsFiles) -> Result<Self, WrongSettings> {
        let first = Content::read(files)?;
        let current = ArcSwap::from_pointee(first.config(files)?);
        Ok(Self { files: files.clone(), current, first })
    }

    /// Shakes hands, and waits until the peer has said something: silence costs it the connection.
    ///
    /// # Errors
    /// The peer speaks no TLS, has no certificate that is asked for, or takes too long.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(self.current.load_full());
        let accepted = async {
            let mut stream = acceptor.accept(stream).await?;
            stream.fill_buf().await?;
            Ok(stream)
        };
        tokio::time::timeout(HANDSHAKE_WITHIN, accepted).await?
    }

    /// Takes up new files as they come; never ends.
    pub async fn follow(&self) {
        let mut seen = self.first.fingerprint();
        loop {
            tokio::time::sleep(LOOKED_AT_EVERY).await;
            let files = self.files.clone();
            let read = tokio::task::spawn_blocking(move || Content::read(&files));
            let Ok(read) = read.await else { continue };
            let now = read
                .as_ref()
                .map_or_else(|wrong| Fingerprint::of([wrong.0.as_bytes()]), Content::fingerprint);
            if now == seen {
                continue;
            }
            seen = now;
            match read.and_then(|content| content.config(&self.files)) {
                Ok(config) => {
                    self.current.store(Arc::new(config));
                    tracing::info!("new connections get the new certificate");
                }
                Err(wrong) => tracing::warn!("the old certificate stays: {wrong}"),
            }
        }
    }
}

impl fmt::Debug for Tls {
    /// Without what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

/// What is in the files, unread.
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// Tells contents apart without keeping them.
#[derive(PartialEq, Eq)]
struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

impl Content {
    fn read(files: &TlsFiles) -> Result<Self, WrongSettings> {
        let read = |setting: &str, path: &Path| {
            std::fs::read(path)
                .map_err(|error| wrong(setting, format_args!("{} cannot be read: {error}", path.display())))
        };
        let with_client_ca = !files.client_ca_file.as_os_str().is_empty();
        Ok(Self {
            certificate: read("certificate_file", &files.certificate_file)?,
            key: read("key_file", &files.key_file)?,
            client_ca: with_client_ca.then(|| read("client_ca_file", &files.client_ca_file)).transpose()?,
        })
    }

    fn fingerprint(&self) -> Fingerprint {
        let parts = [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()];
        Fingerprint::of(parts.into_iter().flatten().map(Vec::as_slice))
    }

    fn config(&self, files: &TlsFiles) -> Result<ServerConfig, WrongSettings> {
        let provider = Arc::new(ring::default_provider());
        let chain = certificates(&self.certificate, "certificate_file", &files.certificate_file)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| {
            // What the parser says may quote the file.
            let path = files.key_file.display();
            wrong("key_file", format_args!("{path} holds no private key in PEM without a password"))
        })?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("certificate_file", format_args!("TLS cannot be set up: {error}")))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let roots = certificates(pem, "client_ca_file", &files.client_ca_file)?;
                builder.with_client_cert_verifier(verifier(roots, provider, &files.client_ca_file)?)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| {
            let (certificate, key) = (files.certificate_file.display(), files.key_file.display());
            if matches!(error, rustls::Error::InconsistentKeys(_)) {
                return wrong(
                    "key_file",
                    format_args!("{key} is not the key of the first certificate in {certificate}"),
                );
            }
            wrong("certificate_file", format_args!("{certificate} with {key} cannot be used: {error}"))
        })?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(config)
    }
}

fn certificates(
    pem: &[u8],
    setting: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, WrongSettings> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    found
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or_else(|| wrong(setting, format_args!("{} holds no certificate in PEM", path.display())))
}

fn verifier(
    authorities: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
    path: &Path,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, WrongSettings> {
    let unusable = |error: &dyn fmt::Display| {
        wrong("client_ca_file", format_args!("{} cannot be used: {error}", path.display()))
    };
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| unusable(&error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| unusable(&error))
}

fn wrong(setting: &str, what: fmt::Arguments<'_>) -> WrongSettings {
    WrongSettings(format!("server.tls.{setting}: {what}"))
}
