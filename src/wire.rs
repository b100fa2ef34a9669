//! The messages on the wire, generated from `proto/`.

/// Package `rapideval.v1`: the service, its oneofs, and every message they reach.
#[expect(clippy::allow_attributes, reason = "tonic's generator writes `allow` into its services")]
#[expect(clippy::large_enum_variant, reason = "`MetricSource` is as large as the metric it holds")]
pub mod v1 {
    tonic::include_proto!("rapideval.v1");
}

/// The schema as an encoded `google.protobuf.FileDescriptorSet`: package `rapideval.v1`, Google's
/// `google.cloud.aiplatform.v1beta1` and `.v1` as far as the service answers them, and what they import.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
