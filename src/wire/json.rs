//! Proto-JSON of the wire's messages, both ways.
//!
//! The mapping is prost-reflect's. In front of it stands a reader that is as lenient as Google's REST doors:
//!
//! - commas before a closing bracket, strings in single quotes, keys without quotes (`lexer.rs`);
//! - one value where a list is expected, and the key of a repeated field given several times, which appends;
//! - `null` for "not set"; camelCase and snake_case keys, enums by name or number, numbers as texts.
//!
//! A message that is well formed without this leniency is read as ever. Unlike at Google, where the last one
//! wins, a field that is not repeated and set twice is an error. Not read: more than 128 objects and lists
//! inside one another, or more than a million messages.

mod fault;
mod feed;
mod lexer;
mod tree;
mod values;

use std::sync::LazyLock;

use prost::{Message, Name};
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions,
};

use crate::error::Error;
use crate::wire::DESCRIPTORS;

pub use values::object;

/// The file of `google.rpc.BadRequest` and its like, as tonic-types names it.
const ERROR_DETAILS: &str = "error_details.proto";

/// The descriptors of all three packages, and of the details that errors carry in `google.protobuf.Any`.
pub fn pool() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
        let mut pool = DescriptorPool::decode(DESCRIPTORS)
            .expect("the build made these descriptors, and a test reads them");
        let details = DescriptorPool::decode(tonic_types::pb::FILE_DESCRIPTOR_SET)
            .expect("the library made these descriptors, and a test reads them");
        // The other files are in both.
        let new = details.file_descriptor_protos().filter(|file| file.name() == ERROR_DETAILS).cloned();
        pool.add_file_descriptor_protos(new)
            .expect("the details import google/protobuf/duration.proto alone");
        pool
    });
    &POOL
}

/// Reads a message; unknown keys and two members of one oneof are errors.
pub fn read<M: Message + Name + Default>(json: &str) -> Result<M, Error> {
    Document::parse::<M>(json)?.into_message()
}

/// A text that was read as far as its form goes.
#[derive(Debug)]
pub struct Document<'a> {
    tree: tree::Tree<'a>,
    descriptor: MessageDescriptor,
}

impl<'a> Document<'a> {
    /// Reads a text that is to become an `M`.
    pub fn parse<M: Name>(json: &'a str) -> Result<Self, Error> {
        let descriptor = descriptor::<M>();
        Ok(Self { tree: tree::read(json, &descriptor)?, descriptor })
    }

    /// What it takes in memory to make the message, about, beside the bytes of the text.
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes()
    }

    /// The message; `M` is that of [`Document::parse`].
    pub fn into_message<M: Message + Default>(self) -> Result<M, Error> {
        let message = DynamicMessage::deserialize_with_options(
            self.descriptor,
            self.tree.root,
            &DeserializeOptions::new(),
        )?;
        // The only thing that can be wrong with the bytes of a message that was just made.
        message.transcode_to().map_err(|_| Error::bad_request("", fault::NESTED))
    }
}

/// How enums are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Enums {
    /// By name.
    #[default]
    Names,
    /// By number.
    Numbers,
}

/// Writes a message: camelCase keys, enums by name, a score of 0 printed, what is not set left out.
pub fn write<M: Message + Name>(message: &M) -> Result<String, Error> {
    write_with(message, Enums::Names)
}

/// As [`write()`], with enums as told.
pub fn write_with<M: Message + Name>(message: &M, enums: Enums) -> Result<String, Error> {
    let dynamic = dynamic(message)?;
    let mut json = Vec::new();
    let mut writer = serde_json::Serializer::pretty(&mut json);
    let options = SerializeOptions::new().use_enum_numbers(enums == Enums::Numbers);
    dynamic.serialize_with_options(&mut writer, &options).map_err(Error::internal)?;
    String::from_utf8(json).map_err(Error::internal)
}

/// A message whose fields can be read by name.
pub fn dynamic<M: Message + Name>(message: &M) -> Result<DynamicMessage, Error> {
    let mut dynamic = DynamicMessage::new(descriptor::<M>());
    dynamic.transcode_from(message).map_err(Error::internal)?;
    Ok(dynamic)
}

fn descriptor<M: Name>() -> MessageDescriptor {
    pool().get_message_by_name(&M::full_name()).expect("every message of the crate is in its own descriptors")
}
