//! Proto-JSON of the wire's messages, both ways.

use std::sync::LazyLock;

use prost::{Message, Name};
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, SerializeOptions,
};
use prost_types::FileDescriptorSet;

use crate::error::{Error, quoted};
use crate::wire::DESCRIPTORS;

/// The descriptors of all three packages, and of `google.rpc`'s error details.
pub fn pool() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
        let mut pool = DescriptorPool::decode(DESCRIPTORS)
            .expect("the build made these descriptors, and a test reads them");
        // The details of an error are of types that only their own names tell. tonic's set also has what ours
        // already has, under other file names.
        let mut details = FileDescriptorSet::decode(tonic_types::pb::FILE_DESCRIPTOR_SET)
            .expect("tonic made these descriptors, and a test reads them");
        details.file.retain(|file| {
            let full = |name: &str| format!("{}.{name}", file.package());
            !file.message_type.iter().any(|message| pool.get_message_by_name(&full(message.name())).is_some())
        });
        pool.add_file_descriptor_protos(details.file)
            .expect("tonic made these descriptors, and a test reads them");
        pool
    });
    &POOL
}

/// Reads a message: camelCase and snake_case keys, enums by name or number, `null` = not set. Unknown keys and
/// two members of one oneof are errors.
pub fn read<M: Message + Name + Default>(json: &str) -> Result<M, Error> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let message =
        DynamicMessage::deserialize_with_options(descriptor::<M>(), &mut reader, &DeserializeOptions::new())
            .and_then(|message| reader.end().map(|()| message))
            .map_err(|error| {
                Error::bad_request("", format!("not a {} in JSON: {}", M::NAME, quoted(&error.to_string())))
            })?;
    message.transcode_to().map_err(Error::internal)
}

/// Writes a message: camelCase keys, enums by name, a score of 0 printed, what is not set left out.
pub fn write<M: Message + Name>(message: &M) -> Result<String, Error> {
    let dynamic = dynamic(message)?;
    let mut json = Vec::new();
    let mut writer = serde_json::Serializer::pretty(&mut json);
    dynamic.serialize_with_options(&mut writer, &SerializeOptions::new()).map_err(Error::internal)?;
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
