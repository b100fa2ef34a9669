//! Receiving a body, unpacking it, and reading the message in it, each within the limits.

use std::io::Read;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use prost::{Message, Name};

use crate::error::{Error, Kind, quoted};
use crate::server::admission::Held;
use crate::wire::json::Document;

/// A body of more bytes than this is read on a thread where it holds up nobody.
const READ_ELSEWHERE_FROM_BYTES: usize = 64 * 1024;

/// A body is unpacked in pieces of this many bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// How a body is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    Gzip,
}

impl Packing {
    /// As `Content-Encoding` says.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Error> {
        let Some(encoding) = headers.get(header::CONTENT_ENCODING) else { return Ok(Self::None) };
        match encoding.as_bytes().to_ascii_lowercase().as_slice() {
            b"" | b"identity" => Ok(Self::None),
            b"gzip" | b"x-gzip" => Ok(Self::Gzip),
            other => Err(Error::bad_request(
                "content-encoding",
                format!(
                    "{} is not understood; send gzip or nothing",
                    quoted(&String::from_utf8_lossy(other))
                ),
            )),
        }
    }
}

/// The whole body as it comes over the wire.
pub(super) async fn receive(mut body: Body, held: &Held, limit: usize) -> Result<Bytes, Error> {
    if let Some(announced) = http_body::Body::size_hint(&body).exact() {
        let announced = usize::try_from(announced).unwrap_or(usize::MAX);
        within(announced, limit)?;
        held.grow_to(announced)?;
    }
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Error {
            source: Some(error.into()),
            ..Error::new(Kind::Cancelled, "the body broke off")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.is_empty() && http_body::Body::is_end_stream(&body) {
            within(data.len(), limit)?;
            held.grow_to(data.len())?;
            return Ok(data);
        }
        within(whole.len() + data.len(), limit)?;
        held.grow_to(whole.len() + data.len())?;
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn within(bytes: usize, limit: usize) -> Result<(), Error> {
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::new(
        Kind::TooLarge,
        format!("the request has {bytes} bytes or more, over limits.request_bytes = {limit}"),
    ))
}

/// The message in a body. No body at all is a message with nothing set.
pub(super) async fn read<Q>(body: Bytes, packing: Packing, held: Held, limit: usize) -> Result<Q, Error>
where
    Q: Message + Name + Default + 'static,
{
    read_with(body, packing, held, limit, |text, held| {
        if text.is_empty() {
            return Ok(Q::default());
        }
        let document = Document::parse::<Q>(text)?;
        held.grow_to(text.len().saturating_add(document.memory_bytes()))?;
        document.into_message()
    })
    .await
}

/// What `parse` makes of the text of a body.
pub(super) async fn read_with<T: Send + 'static>(
    body: Bytes,
    packing: Packing,
    held: Held,
    limit: usize,
    parse: impl FnOnce(&str, &Held) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let large = packing != Packing::None || body.len() >= READ_ELSEWHERE_FROM_BYTES;
    off_the_loop(large, move || {
        let body = match packing {
            Packing::None => body,
            Packing::Gzip => unpack(&body, &held, limit)?,
        };
        let text = std::str::from_utf8(&body).map_err(|error| {
            Error::bad_request(
                "",
                format!(
                    "Invalid JSON payload received. It is not UTF-8 from byte {} on.",
                    error.valid_up_to()
                ),
            )
        })?;
        parse(text, &held)
    })
    .await
}

fn unpack(packed: &[u8], held: &Held, limit: usize) -> Result<Bytes, Error> {
    let mut reader = MultiGzDecoder::new(packed);
    let mut whole = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let bytes = reader.read(&mut piece).map_err(|error| {
            Error::bad_request("content-encoding", format!("the body is not gzip: {error}"))
        })?;
        let Some(piece) = piece.get(..bytes).filter(|piece| !piece.is_empty()) else {
            return Ok(whole.into());
        };
        within(whole.len() + bytes, limit)?;
        held.grow_to(packed.len() + whole.len() + bytes)?;
        whole.extend_from_slice(piece);
    }
}

/// Runs work here, or, when it is long, where no other call waits for it.
pub(super) async fn off_the_loop<T: Send + 'static>(
    long: bool,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    if !long {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // The layer outside answers for panics.
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(ended) => Err(Error::internal(ended)),
        },
    }
}
