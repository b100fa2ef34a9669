//! Turns `proto/` into Rust, without protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_SERVER").is_none() {
        return Ok(());
    }
    println!("cargo::rerun-if-changed=proto");

    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_file("rapideval/v1/service.proto")?;
    tonic_prost_build::configure()
        .generate_default_stubs(true)
        .codec_path("crate::server::codec::RequestCodec")
        .enum_attribute(
            ".rapideval.v1.EvaluateInstancesRequest.metric_inputs",
            "#[derive(strum::IntoStaticStr)] #[strum(serialize_all = \"snake_case\")]",
        )
        .enum_attribute(
            ".rapideval.v1.EvaluateInstancesResponse.evaluation_results",
            "#[derive(strum::IntoStaticStr)] #[strum(serialize_all = \"snake_case\")]",
        )
        // The largest message of all, and rarely sent: without the box it would swell every request.
        .boxed(".rapideval.v1.AutoraterConfig.generation_config")
        .compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
