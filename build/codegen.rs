//! The Rust side of the schema: messages, and server and client of the service.

use std::error::Error;

use prost_types::FileDescriptorSet;

/// Writes the Rust modules. Comments of the schema become their documentation.
pub(crate) fn generate(schema: FileDescriptorSet) -> Result<(), Box<dyn Error>> {
    // An arm of these two oneofs names itself by its field: `rouge_input`, `rouge_results`.
    const NAMED: &str =
        "#[derive(strum::IntoStaticStr, strum::VariantNames)] #[strum(serialize_all = \"snake_case\")]";
    tonic_prost_build::configure()
        .generate_default_stubs(true)
        .enum_attribute(".rapideval.v1.EvaluateInstancesRequest.metric_inputs", NAMED)
        .enum_attribute(".rapideval.v1.EvaluateInstancesResponse.evaluation_results", NAMED)
        // The largest message of all, and rarely sent: without the box it would swell every request.
        .boxed(".rapideval.v1.AutoraterConfig.generation_config")
        .compile_fds(schema)?;
    Ok(())
}
