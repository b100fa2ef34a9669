//! The messages on the wire, generated from `proto/`, and small helpers to read them.

pub mod json;

use prost::Message;
use tonic_types::StatusExt;

use crate::error::Error;
use v1::part::Data;

/// Package `rapideval.v1`: the service, its oneofs, and every message they reach.
#[expect(clippy::allow_attributes, reason = "tonic's generator writes `allow` into its services")]
#[expect(clippy::large_enum_variant, reason = "`MetricSource` is as large as the metric it holds")]
pub mod v1 {
    tonic::include_proto!("rapideval.v1");
}

/// The schema as an encoded `google.protobuf.FileDescriptorSet`: package `rapideval.v1`, Google's
/// `google.cloud.aiplatform.v1beta1` and `.v1` as far as the service answers them, and what they import.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// Messages and items of lists inside one request. An empty message takes two bytes on the wire and up to some
/// hundred in memory, an empty text of a list two and 24, a small number one and four.
pub const MAX_PARTS: usize = 1_000_000;

/// The field's value, or INVALID_ARGUMENT that names the field. Present but empty is a value.
pub fn required<T>(value: Option<T>, field: &str) -> Result<T, Error> {
    value.ok_or_else(|| Error::bad_request(field, "is required and not set"))
}

impl From<Error> for v1::Status {
    fn from(error: Error) -> Self {
        let status = tonic::Status::with_error_details(error.kind.grpc(), error.text(), error.details());
        // The rich form of a status is google.rpc.Status, which ours equals on the wire.
        Self::decode(status.details()).unwrap_or_else(|_| Self {
            code: status.code().into(),
            message: status.message().to_owned(),
            ..Default::default()
        })
    }
}

/// The text of a part, when it is text.
pub fn part_text(part: &v1::Part) -> Option<&str> {
    match part.data.as_ref()? {
        Data::Text(text) => Some(text),
        Data::InlineData(_)
        | Data::FileData(_)
        | Data::FunctionCall(_)
        | Data::FunctionResponse(_)
        | Data::ExecutableCode(_)
        | Data::CodeExecutionResult(_) => None,
    }
}

/// An instance of the metrics that compare one text with another.
pub trait Pair {
    /// The text under evaluation; `None` when not set.
    fn prediction(&self) -> Option<&str>;

    /// The text it is compared with; `None` when not set.
    fn reference(&self) -> Option<&str>;

    /// Bytes of both.
    fn bytes(&self) -> usize {
        self.prediction().map_or(0, str::len) + self.reference().map_or(0, str::len)
    }
}

macro_rules! pairs {
    ($($instance:ident),* $(,)?) => {$(
        impl Pair for v1::$instance {
            fn prediction(&self) -> Option<&str> {
                self.prediction.as_deref()
            }

            fn reference(&self) -> Option<&str> {
                self.reference.as_deref()
            }
        }
    )*};
}

pairs!(
    ExactMatchInstance,
    BleuInstance,
    RougeInstance,
    ToolCallValidInstance,
    ToolNameMatchInstance,
    ToolParameterKeyMatchInstance,
    ToolParameterKvMatchInstance,
    SemanticSimilarityInstance,
);
