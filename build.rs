//! Turns `proto/` into Rust, without protoc. Without the feature `server` there is nothing to do.

#[cfg(feature = "server")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use prost::Message;

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=proto");
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true).open_file("rapideval/v1/service.proto")?;
    let schema = compiler.file_descriptor_set();
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors::embedded(&schema).encode_to_vec())?;
    std::fs::write(out.join("comments.tsv"), comments::table(&schema))?;

    // An arm of these oneofs names itself by its field: `rouge_input`, `rouge_results`, `rouge_spec`.
    const NAMED: &str =
        "#[derive(strum::IntoStaticStr, strum::VariantNames)] #[strum(serialize_all = \"snake_case\")]";
    let mut messages = tonic_prost_build::Config::new();
    messages.enable_type_names();
    // Comments of the schema become documentation of the Rust modules.
    tonic_prost_build::configure()
        .generate_default_stubs(true)
        .codec_path("crate::server::codec::RequestCodec")
        .enum_attribute(".rapideval.v1.EvaluateInstancesRequest.metric_inputs", NAMED)
        .enum_attribute(".rapideval.v1.EvaluateInstancesResponse.evaluation_results", NAMED)
        .enum_attribute(".rapideval.v1.Metric.metric_spec", NAMED)
        // The largest message of all, and rarely sent: without the box it would swell every request.
        .boxed(".rapideval.v1.AutoraterConfig.generation_config")
        .compile_fds_with_config(schema, messages)?;
    Ok(())
}

#[cfg(not(feature = "server"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}

#[cfg(feature = "server")]
mod comments {
    //! The comments of the schema by full name, for the OpenAPI document: the descriptors embedded leave
    //! them out.

    use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

    /// A line per commented message, field, enum, enum value, service and method: its full name, a tab, the
    /// comment as one paragraph.
    pub(crate) fn table(schema: &FileDescriptorSet) -> String {
        let mut table = String::new();
        for file in schema.file.iter().filter(|file| file.name().starts_with("rapideval/")) {
            for location in file.source_code_info.iter().flat_map(|info| &info.location) {
                if let (Some(name), Some(comment)) = (name(file, &location.path), &location.leading_comments)
                {
                    let words: Vec<&str> = comment.split_whitespace().collect();
                    table += &format!("{name}\t{}\n", words.join(" "));
                }
            }
        }
        table
    }

    /// What a path of descriptor.proto's field numbers leads to.
    fn name(file: &FileDescriptorProto, path: &[i32]) -> Option<String> {
        let package = file.package();
        Some(match *path {
            [4, at, ref rest @ ..] => {
                let message = file.message_type.get(at as usize)?;
                format!("{package}.{}", name_in(message, rest)?)
            }
            [5, at] => format!("{package}.{}", file.enum_type.get(at as usize)?.name()),
            [5, at, 2, value] => {
                let named = file.enum_type.get(at as usize)?;
                format!("{package}.{}.{}", named.name(), named.value.get(value as usize)?.name())
            }
            [6, at] => format!("{package}.{}", file.service.get(at as usize)?.name()),
            [6, at, 2, method] => {
                let service = file.service.get(at as usize)?;
                format!("{package}.{}.{}", service.name(), service.method.get(method as usize)?.name())
            }
            _ => return None,
        })
    }

    fn name_in(message: &DescriptorProto, path: &[i32]) -> Option<String> {
        let inside = match *path {
            [] => return Some(message.name().to_owned()),
            [2, at] => message.field.get(at as usize)?.name().to_owned(),
            [3, at, ref rest @ ..] => name_in(message.nested_type.get(at as usize)?, rest)?,
            [4, at] => message.enum_type.get(at as usize)?.name().to_owned(),
            [4, at, 2, value] => {
                let named = message.enum_type.get(at as usize)?;
                format!("{}.{}", named.name(), named.value.get(value as usize)?.name())
            }
            _ => return None,
        };
        Some(format!("{}.{inside}", message.name()))
    }
}

#[cfg(feature = "server")]
mod descriptors {
    //! The descriptors that reflection and the JSON mapping read at run time.
    //!
    //! The schema is written once, in package `rapideval.v1`. The two packages of Google whose clients
    //! the service answers are derived from it here: renamed, and without what Google does not have.
    //! `tests/contract.rs` holds all three against the facts.

    use std::collections::{HashMap, HashSet};

    use prost_types::{
        DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    };

    /// Fields and arms numbered from here up are ours.
    const FIRST_OWN_NUMBER: i32 = 1001;

    /// What one of Google's packages has of the schema.
    struct Edition {
        package: &'static str,
        methods: &'static [&'static str],
        /// Messages that travel only inside `google.protobuf.Any`.
        inside_any: &'static [&'static str],
        /// Fields numbered below [`FIRST_OWN_NUMBER`] that only the other package has.
        lacks: &'static [&'static str],
    }

    const V1BETA1: Edition = Edition {
        package: "google.cloud.aiplatform.v1beta1",
        methods: &["EvaluateInstances", "GenerateInstanceRubrics", "EvaluateDataset"],
        inside_any: &["EvaluateDatasetResponse", "EvaluateDatasetOperationMetadata"],
        lacks: &["Part.media_resolution", "VideoMetadata.fps"],
    };

    const V1: Edition = Edition {
        package: "google.cloud.aiplatform.v1",
        methods: &["EvaluateInstances"],
        inside_any: &[],
        lacks: &[
            "EvaluateInstancesRequest.autorater_config",
            "EvaluateInstancesRequest.trajectory_exact_match_input",
            "EvaluateInstancesRequest.trajectory_in_order_match_input",
            "EvaluateInstancesRequest.trajectory_any_order_match_input",
            "EvaluateInstancesRequest.trajectory_precision_input",
            "EvaluateInstancesRequest.trajectory_recall_input",
            "EvaluateInstancesRequest.trajectory_single_tool_use_input",
            "EvaluateInstancesRequest.rubric_based_instruction_following_input",
            "EvaluateInstancesRequest.metrics",
            "EvaluateInstancesRequest.instance",
            "EvaluateInstancesRequest.metric_sources",
            "EvaluateInstancesResponse.trajectory_exact_match_results",
            "EvaluateInstancesResponse.trajectory_in_order_match_results",
            "EvaluateInstancesResponse.trajectory_any_order_match_results",
            "EvaluateInstancesResponse.trajectory_precision_results",
            "EvaluateInstancesResponse.trajectory_recall_results",
            "EvaluateInstancesResponse.trajectory_single_tool_use_results",
            "EvaluateInstancesResponse.rubric_based_instruction_following_result",
            "FunctionCall.id",
            "FunctionResponse.id",
            "MetricResult.rubric_verdicts",
        ],
    };

    /// One descriptor set with our package, both of Google's, and `google/protobuf/*` once.
    ///
    /// Comments are left out: they are three quarters of the bytes, and no reader of the set needs them.
    pub(crate) fn embedded(schema: &FileDescriptorSet) -> FileDescriptorSet {
        let mut all = schema.clone();
        for file in &mut all.file {
            file.source_code_info = None;
        }
        let (ours, imported): (Vec<_>, Vec<_>) = all.file.into_iter().partition(|file| is_ours(file.name()));
        let (common, versioned): (Vec<_>, Vec<_>) =
            ours.iter().cloned().partition(|file| google_file_name("", file.name()).starts_with("google/"));

        let mut file = imported;
        file.extend(ours);
        file.extend(common.into_iter().map(|common| renamed(common, "")));
        for edition in [V1BETA1, V1] {
            file.extend(derived(versioned.clone(), &edition));
        }
        FileDescriptorSet { file }
    }

    /// Our files as `edition` has them: renamed, stripped, and only what its service reaches.
    fn derived(ours: Vec<FileDescriptorProto>, edition: &Edition) -> Vec<FileDescriptorProto> {
        let scope = format!(".{}", edition.package);
        let mut files: Vec<_> = ours.into_iter().map(|file| renamed(file, edition.package)).collect();
        for file in &mut files {
            for service in &mut file.service {
                service.method.retain(|method| edition.methods.contains(&method.name()));
            }
            for message in &mut file.message_type {
                strip(message.name().to_owned(), message, edition);
            }
        }
        let reachable = reachable(&scope, &files, edition);
        for file in &mut files {
            prune(&scope, &mut file.message_type, &mut file.enum_type, &reachable);
        }
        files.retain(|file| {
            !(file.message_type.is_empty() && file.enum_type.is_empty() && file.service.is_empty())
        });
        let kept: HashSet<String> = files.iter().map(|file| file.name().to_owned()).collect();
        for file in &mut files {
            let prefix = edition.package.replace('.', "/") + "/";
            file.dependency.retain(|import| !import.starts_with(&prefix) || kept.contains(import));
        }
        files
    }

    fn is_ours(file_name: &str) -> bool {
        file_name.starts_with("rapideval/v1/")
    }

    /// Where Google keeps the counterpart of a file of ours. Two are common to all of its packages.
    fn google_file_name(package: &str, ours: &str) -> String {
        match ours {
            "rapideval/v1/status.proto" => "google/rpc/status.proto".to_owned(),
            "rapideval/v1/operation.proto" => "google/longrunning/operations.proto".to_owned(),
            _ => ours.replace("rapideval/v1", &package.replace('.', "/")),
        }
    }

    fn google_type_name(package: &str, ours: &str) -> String {
        match ours {
            ".rapideval.v1.Status" => ".google.rpc.Status".to_owned(),
            ".rapideval.v1.Operation" => ".google.longrunning.Operation".to_owned(),
            _ => ours.replace(".rapideval.v1.", &format!(".{package}.")),
        }
    }

    /// Moves a file into Google's `package`, references included.
    fn renamed(mut file: FileDescriptorProto, package: &str) -> FileDescriptorProto {
        fn each_field(message: &mut DescriptorProto, change: &impl Fn(&mut FieldDescriptorProto)) {
            message.field.iter_mut().for_each(change);
            message.nested_type.iter_mut().for_each(|nested| each_field(nested, change));
        }
        let name = google_file_name(package, file.name());
        file.package = Some(match name.as_str() {
            "google/rpc/status.proto" => "google.rpc".to_owned(),
            "google/longrunning/operations.proto" => "google.longrunning".to_owned(),
            _ => package.to_owned(),
        });
        file.name = Some(name);
        for import in &mut file.dependency {
            *import = google_file_name(package, import);
        }
        for message in &mut file.message_type {
            each_field(message, &|field| {
                field.type_name = field.type_name.take().map(|name| google_type_name(package, &name));
            });
        }
        for method in file.service.iter_mut().flat_map(|service| &mut service.method) {
            for name in [&mut method.input_type, &mut method.output_type] {
                *name = name.take().map(|name| google_type_name(package, &name));
            }
        }
        file
    }

    /// Removes the fields that `edition` lacks, and oneofs left without a field.
    fn strip(name: String, message: &mut DescriptorProto, edition: &Edition) {
        message.field.retain(|field| {
            field.number() < FIRST_OWN_NUMBER
                && !edition.lacks.contains(&format!("{name}.{}", field.name()).as_str())
        });
        let mut oneofs = Vec::new();
        for (old, oneof) in std::mem::take(&mut message.oneof_decl).into_iter().enumerate() {
            let new = oneofs.len() as i32;
            let mut used = false;
            for field in message.field.iter_mut().filter(|field| field.oneof_index == Some(old as i32)) {
                field.oneof_index = Some(new);
                used = true;
            }
            if used {
                oneofs.push(oneof);
            }
        }
        message.oneof_decl = oneofs;
        for nested in &mut message.nested_type {
            strip(format!("{name}.{}", nested.name()), nested, edition);
        }
    }

    /// Full names of all types that the methods of the service lead to.
    fn reachable(scope: &str, files: &[FileDescriptorProto], edition: &Edition) -> HashSet<String> {
        fn collect(scope: &str, message: &DescriptorProto, references: &mut HashMap<String, Vec<String>>) {
            let name = format!("{scope}.{}", message.name());
            message.nested_type.iter().for_each(|nested| collect(&name, nested, references));
            let types = message.field.iter().filter_map(|field| field.type_name.clone());
            references.insert(name, types.collect());
        }
        let mut references = HashMap::new();
        for message in files.iter().flat_map(|file| &file.message_type) {
            collect(scope, message, &mut references);
        }
        let methods = files.iter().flat_map(|file| &file.service).flat_map(|service| &service.method);
        let mut open: Vec<String> = methods
            .flat_map(|method| [method.input_type().to_owned(), method.output_type().to_owned()])
            .chain(edition.inside_any.iter().map(|name| format!("{scope}.{name}")))
            .collect();
        let mut seen = HashSet::new();
        while let Some(name) = open.pop() {
            open.extend(references.remove(&name).unwrap_or_default());
            seen.insert(name);
        }
        seen
    }

    /// Removes types that are not reachable; a message stays as long as one nested in it does.
    fn prune(
        scope: &str,
        messages: &mut Vec<DescriptorProto>,
        enums: &mut Vec<EnumDescriptorProto>,
        reachable: &HashSet<String>,
    ) {
        enums.retain(|kept| reachable.contains(&format!("{scope}.{}", kept.name())));
        messages.retain_mut(|message| {
            let name = format!("{scope}.{}", message.name());
            prune(&name, &mut message.nested_type, &mut message.enum_type, reachable);
            reachable.contains(&name) || !message.nested_type.is_empty() || !message.enum_type.is_empty()
        });
    }
}
