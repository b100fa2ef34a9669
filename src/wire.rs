//! The messages on the wire, generated from `proto/`.

/// Package `rapideval.v1`: the service, its oneofs, and every message they reach.
#[expect(clippy::allow_attributes, reason = "tonic's generator writes `allow` into its services")]
#[expect(clippy::large_enum_variant, reason = "`MetricSource` is as large as the metric it holds")]
pub mod v1 {
    tonic::include_proto!("rapideval.v1");
}
