//! Reading requests off the wire: what cannot be read is the caller's error, and what would unfold into far
//! more memory than it has bytes is refused before it does.

use std::marker::PhantomData;

use bytes::Buf;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstEncoder};

use crate::wire::MAX_PARTS;
use crate::wire::json::pool;

/// Requests shorter than this cannot hold enough parts to matter.
const COUNTED_FROM_BYTES: usize = 256 * 1024;

/// As deep as prost goes.
const MAX_DEPTH: usize = 100;

/// The protobuf codec of tonic with [`RequestDecoder`] on the way in.
#[derive(Debug)]
pub struct RequestCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for RequestCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for RequestCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + prost::Name + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = RequestDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(tonic::codec::BufferSettings::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        RequestDecoder(PhantomData)
    }
}

/// Reads one message; what is malformed is INVALID_ARGUMENT with the path of the field, where tonic's own
/// decoder says INTERNAL.
#[derive(Debug)]
pub struct RequestDecoder<U>(PhantomData<U>);

impl<U: Message + prost::Name + Default> Decoder for RequestDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        if buf.remaining() >= COUNTED_FROM_BYTES {
            // The buffer of a whole message is one piece.
            check_parts(&U::full_name(), buf.chunk())?;
        }
        U::decode(buf).map(Some).map_err(|error| {
            Status::invalid_argument(format!("the request is not a valid {}: {error}", U::NAME))
        })
    }
}

fn check_parts(name: &str, bytes: &[u8]) -> Result<(), Status> {
    let Some(message) = pool().get_message_by_name(name) else { return Ok(()) };
    match count_parts(&message, bytes) {
        Some(parts) if parts > MAX_PARTS => Err(Status::resource_exhausted(format!(
            "the request has more than {MAX_PARTS} messages and list items inside; split it"
        ))),
        // What is malformed is left to the decoder, which says where.
        _ => Ok(()),
    }
}

/// Messages and items of lists inside `bytes`, counted no further than just over [`MAX_PARTS`]; `None` when malformed.
fn count_parts(message: &MessageDescriptor, bytes: &[u8]) -> Option<usize> {
    let mut parts = 0;
    let mut open = vec![(message.clone(), bytes)];
    while let Some((message, rest)) = open.last_mut() {
        if !rest.has_remaining() {
            open.pop();
            continue;
        }
        let (number, wire_type) = decode_key(rest).ok()?;
        let field = message.get_field(number);
        let in_list = field.as_ref().is_some_and(FieldDescriptor::is_list);
        let mut inside = None;
        match wire_type {
            WireType::Varint => {
                decode_varint(rest).ok()?;
            }
            WireType::SixtyFourBit => *rest = rest.get(8..)?,
            WireType::ThirtyTwoBit => *rest = rest.get(4..)?,
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
                let (content, after) = rest.split_at_checked(length)?;
                *rest = after;
                inside = Some(content);
            }
            WireType::StartGroup | WireType::EndGroup => return None,
        }
        let kind = field.map(|field| field.kind());
        match (kind, inside) {
            (Some(Kind::Message(part)), Some(inside)) => {
                parts += 1;
                if open.len() > MAX_DEPTH {
                    return Some(parts);
                }
                open.push((part, inside));
            }
            (Some(Kind::String | Kind::Bytes), _) | (_, None) => parts += usize::from(in_list),
            // A packed list of numbers: each ends with a byte below 128, or is of fixed size and no smaller in memory.
            (_, Some(packed)) if in_list => parts += packed.iter().filter(|byte| **byte < 0x80).count(),
            (_, Some(_)) => {}
        }
        if parts > MAX_PARTS {
            return Some(parts);
        }
    }
    Some(parts)
}
