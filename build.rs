//! Turns `proto/` into Rust, without protoc. Without the feature `server` there is nothing to do.

#[cfg(feature = "server")]
#[path = "build/codegen.rs"]
mod codegen;
#[cfg(feature = "server")]
#[path = "build/descriptors.rs"]
mod descriptors;

#[cfg(feature = "server")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use prost::Message;

    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_file("rapideval/v1/service.proto")?;
    let schema = compiler.file_descriptor_set();
    let path = std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(path, descriptors::embedded(&schema).encode_to_vec())?;
    codegen::generate(schema)
}

#[cfg(not(feature = "server"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
