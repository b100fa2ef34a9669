//! Messages compressed with gzip, unpacked on their way in.
//!
//! tonic could unpack them too, but only a whole message at once, into memory that nobody counts. Here every byte that comes
//! out is counted against the limits before there are more.

use std::collections::VecDeque;
use std::io::{self, Write};

use bytes::{Bytes, BytesMut};
use flate2::write::GzDecoder;

use crate::error::{Error, Kind};
use crate::server::admission::Held;
use crate::server::framing::Piece;

/// Unpacked bytes are handed on in pieces of about this size.
const PIECE_BYTES: usize = 64 * 1024;

/// Turns a body with compressed messages into one without.
#[derive(Debug)]
pub(super) struct Unpacker {
    held: Held,
    message: Option<GzDecoder<Unpacked>>,
    ready: VecDeque<Bytes>,
}

impl Unpacker {
    pub(super) fn new(held: Held) -> Self {
        Self { held, message: None, ready: VecDeque::new() }
    }

    /// Takes what came in.
    pub(super) fn take(&mut self, piece: Piece<'_>) -> Result<(), Error> {
        match (piece, &mut self.message) {
            (Piece::Start { compressed: true, .. }, _) => {
                self.message = Some(GzDecoder::new(Unpacked::new(self.held.clone())));
            }
            (Piece::Start { compressed: false, bytes }, _) => self.ready.push_back(prefix(bytes)?),
            (Piece::Content(content), Some(message)) => {
                message.write_all(content).map_err(|error| message.get_mut().refusal(&error))?;
            }
            (Piece::Content(content), None) => self.ready.push_back(Bytes::copy_from_slice(content)),
            (Piece::End, Some(message)) => {
                message.try_finish().map_err(|error| message.get_mut().refusal(&error))?;
                let unpacked = message.get_mut();
                self.ready.push_back(prefix(unpacked.bytes)?);
                self.ready.append(&mut unpacked.pieces);
                self.ready.push_back(unpacked.last.split().freeze());
                self.message = None;
            }
            (Piece::End, None) => {}
        }
        Ok(())
    }

    /// The next bytes of the body without compression, as far as they are known.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.ready.pop_front()
    }

    /// Whether [`Unpacker::next`] has something.
    pub(super) fn has_more(&self) -> bool {
        !self.ready.is_empty()
    }
}

/// The flag "not compressed", and the length.
fn prefix(bytes: usize) -> Result<Bytes, Error> {
    let length = u32::try_from(bytes).map_err(Error::internal)?;
    let mut prefix = BytesMut::zeroed(1);
    prefix.extend_from_slice(&length.to_be_bytes());
    Ok(prefix.freeze())
}

/// What has come out of one message.
#[derive(Debug)]
struct Unpacked {
    held: Held,
    bytes: usize,
    pieces: VecDeque<Bytes>,
    last: BytesMut,
    over: Option<Error>,
}

impl Unpacked {
    fn new(held: Held) -> Self {
        Self { held, bytes: 0, pieces: VecDeque::new(), last: BytesMut::new(), over: None }
    }

    /// Why the message cannot be read.
    fn refusal(&mut self, error: &io::Error) -> Error {
        self.over.take().unwrap_or_else(|| {
            Error::new(Kind::InvalidArgument, format!("the request message is not valid gzip: {error}"))
        })
    }
}

impl Write for Unpacked {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        self.bytes += more.len();
        if let Err(over) = self.held.unpacked(self.bytes) {
            self.over = Some(over);
            return Err(io::Error::other("over a limit"));
        }
        self.last.extend_from_slice(more);
        if self.last.len() >= PIECE_BYTES {
            self.pieces.push_back(self.last.split().freeze());
        }
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
