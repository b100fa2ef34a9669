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
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    std::fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
    let mut config = tonic_prost_build::Config::new();
    config.enable_type_names();
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
        .compile_fds_with_config(compiler.file_descriptor_set(), config)?;
    Ok(())
}
