//! The wire contract: the schema, and the two descriptor sets derived from it, against what Google's
//! packages have on the wire (`contract/wire/*.json`, which say where they come from).
//!
//! Held: methods; names of messages, fields and enum values; numbers, JSON names, types, labels,
//! presence and oneofs. Left out on purpose, as none of it is on the wire: `deprecated` marks, Google's
//! HTTP bindings and field-behaviour annotations, order of declarations, and division into files.
//! `google.protobuf.*` comes from the library and is not compared.
#![cfg(feature = "server")]

use std::collections::BTreeMap;

use prost_reflect::{DescriptorPool, FieldDescriptor, Kind};
use rapid_eval::wire::{DESCRIPTORS, v1};
use strum::VariantNames;

/// Numbers of ours start here; Google's packages use none as high.
const FIRST_OWN_NUMBER: u32 = 1001;

/// Members of a type, by name: a field or an enum value each.
type Members = BTreeMap<String, String>;

/// A package as comparable text: `message Name`, `enum Name` and `service` with their members.
type Package = BTreeMap<String, Members>;

#[test]
fn the_schema_has_everything_that_google_has() {
    let ours = described("rapideval.v1");
    let mut differences = Vec::new();
    for edition in [V1BETA1, V1] {
        for (name, members) in google_names_as_ours(facts(edition)) {
            let Some(own) = ours.get(&name) else {
                differences.push(format!("{edition} has {name}, the schema lacks it"));
                continue;
            };
            for (member, declaration) in members {
                match own.get(&member) {
                    Some(same) if *same == declaration => {}
                    other => differences.push(differing(edition, &name, &member, &declaration, other)),
                }
            }
        }
    }
    none(differences);
}

#[test]
fn what_only_we_have_is_numbered_from_1001_up_or_in_a_type_of_ours() {
    let google: Vec<Package> = [V1BETA1, V1].map(|edition| google_names_as_ours(facts(edition))).into();
    let mut differences = Vec::new();
    for message in pool().all_messages().filter(|message| message.package_name() == "rapideval.v1") {
        let name = format!("message {}", relative(message.full_name(), "rapideval.v1"));
        if google.iter().all(|package| !package.contains_key(&name)) {
            continue;
        }
        for field in message.fields().filter(|field| field.number() < FIRST_OWN_NUMBER) {
            let known = |package: &Package| {
                package.get(&name).is_some_and(|members| members.contains_key(field.name()))
            };
            if !google.iter().any(known) {
                differences.push(format!(
                    "{name}.{} is ours and has number {}",
                    field.name(),
                    field.number()
                ));
            }
        }
    }
    let ours = described("rapideval.v1");
    for (name, members) in ours.iter().filter(|(name, _)| name.starts_with("enum ")) {
        let values: Vec<_> = google.iter().filter_map(|package| package.get(name)).collect();
        for member in members.keys().filter(|_| !values.is_empty()) {
            if !values.iter().any(|known| known.contains_key(member)) {
                differences.push(format!("{name} is Google's and has a value {member} of ours"));
            }
        }
    }
    none(differences);
}

#[test]
fn the_derived_v1beta1_is_what_google_has() {
    none(differences_of_derived(V1BETA1));
}

#[test]
fn the_derived_v1_is_what_google_has() {
    none(differences_of_derived(V1));
}

#[test]
fn the_derived_packages_hold_nothing_of_ours() {
    let mut differences = Vec::new();
    for message in pool().all_messages().filter(|message| message.package_name().starts_with("google.")) {
        for field in message.fields() {
            let type_name = full_name(&field.kind()).unwrap_or_default();
            if field.number() >= FIRST_OWN_NUMBER || type_name.starts_with("rapideval.") {
                differences.push(format!("{} is ours", field.full_name()));
            }
        }
    }
    none(differences);
}

#[test]
fn the_schema_imports_nothing_but_the_library_of_protobuf() {
    let pool = pool();
    let files = pool.files().filter(|file| file.package_name() == "rapideval.v1");
    let imports: Vec<String> = files
        .flat_map(|file| file.dependencies().map(|import| import.name().to_owned()).collect::<Vec<_>>())
        .filter(|import| !import.starts_with("rapideval/v1/") && !import.starts_with("google/protobuf/"))
        .collect();
    assert_eq!(imports, Vec::<String>::new());
}

#[test]
fn every_service_name_answers_its_methods() {
    let paths: Vec<String> = pool()
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        .map(|method| method.full_name().to_owned())
        .collect();
    let expected = [
        "rapideval.v1.EvaluationService.EvaluateInstances",
        "rapideval.v1.EvaluationService.EvaluateInstancesStream",
        "rapideval.v1.EvaluationService.GenerateInstanceRubrics",
        "rapideval.v1.EvaluationService.EvaluateDataset",
        "google.cloud.aiplatform.v1beta1.EvaluationService.EvaluateInstances",
        "google.cloud.aiplatform.v1beta1.EvaluationService.GenerateInstanceRubrics",
        "google.cloud.aiplatform.v1beta1.EvaluationService.EvaluateDataset",
        "google.cloud.aiplatform.v1.EvaluationService.EvaluateInstances",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn the_arms_of_the_oneofs_name_themselves_as_the_schema_does() {
    let arms = |message: &str| -> Vec<String> {
        let message = pool().get_message_by_name(message).expect("the schema has this message");
        let mut oneofs = message.oneofs().filter(|oneof| !oneof.is_synthetic());
        let oneof = oneofs.next().expect("the message has a oneof");
        oneof.fields().map(|field| field.name().to_owned()).collect()
    };
    assert_eq!(
        v1::evaluate_instances_request::MetricInputs::VARIANTS,
        arms("rapideval.v1.EvaluateInstancesRequest")
    );
    assert_eq!(
        v1::evaluate_instances_response::EvaluationResults::VARIANTS,
        arms("rapideval.v1.EvaluateInstancesResponse")
    );
}

const V1BETA1: &str = "google.cloud.aiplatform.v1beta1";
const V1: &str = "google.cloud.aiplatform.v1";

fn pool() -> DescriptorPool {
    DescriptorPool::decode(DESCRIPTORS).expect("the embedded descriptors are complete")
}

/// The facts about one of Google's packages.
fn facts(package: &str) -> Package {
    let text = if package == V1 {
        include_str!("contract/wire/v1.json")
    } else {
        include_str!("contract/wire/v1beta1.json")
    };
    let facts: serde_json::Value = serde_json::from_str(text).expect("the facts are JSON");
    assert_eq!(facts["package"], package);
    let types = |of: &str, kind: &str| -> Package {
        let types = facts[of].as_object().expect("a table of types");
        let members = |members: &serde_json::Value| -> Members {
            let members = members.as_object().expect("a table of members");
            let text = |value: &serde_json::Value| value.as_str().map_or(value.to_string(), str::to_owned);
            members.iter().map(|(name, value)| (name.clone(), text(value))).collect()
        };
        types.iter().map(|(name, value)| (format!("{kind} {name}"), members(value))).collect()
    };
    let mut package = types("messages", "message");
    package.append(&mut types("enums", "enum"));
    let methods = facts["methods"].as_object().expect("a table of methods");
    let method = |value: &serde_json::Value| value.as_str().expect("request -> response").to_owned();
    package.insert(
        "service".to_owned(),
        methods.iter().map(|(name, value)| (name.clone(), method(value))).collect(),
    );
    package
}

/// The embedded descriptors of one package, with the common messages of Google that it reaches.
fn described(package: &str) -> Package {
    let pool = pool();
    let common: &[&str] = match package {
        V1BETA1 => &["google.rpc.Status", "google.longrunning.Operation"],
        V1 => &["google.rpc.Status"],
        _ => &[],
    };
    let mut described = Package::new();
    for message in pool.all_messages() {
        let wanted = message.package_name() == package || common.contains(&message.full_name());
        if message.is_map_entry() || !wanted {
            continue;
        }
        let fields = message.fields().map(|field| (field.name().to_owned(), declaration(&field, package)));
        described.insert(format!("message {}", relative(message.full_name(), package)), fields.collect());
    }
    for of in pool.all_enums().filter(|of| of.package_name() == package) {
        let values = of.values().map(|value| (value.name().to_owned(), value.number().to_string()));
        described.insert(format!("enum {}", relative(of.full_name(), package)), values.collect());
    }
    for service in pool.services().filter(|service| service.package_name() == package) {
        let methods = service.methods().map(|method| {
            let (request, response) = (method.input(), method.output());
            let streaming =
                if method.is_client_streaming() || method.is_server_streaming() { "stream " } else { "" };
            let types = format!(
                "{streaming}{} -> {}",
                relative(request.full_name(), package),
                relative(response.full_name(), package)
            );
            (method.name().to_owned(), types)
        });
        described.insert("service".to_owned(), methods.collect());
    }
    described
}

/// A field in the words of the facts: `repeated Content = 2, contents, in data`.
fn declaration(field: &FieldDescriptor, package: &str) -> String {
    let name = |kind: Kind| match full_name(&kind) {
        Some(full_name) => relative(&full_name, package),
        None => format!("{kind:?}"),
    };
    let kind = field.kind();
    let kind = if let Some(entry) = kind.as_message().filter(|_| field.is_map()) {
        let (key, value) = (entry.map_entry_key_field().kind(), entry.map_entry_value_field().kind());
        format!("map<{}, {}>", name(key), name(value))
    } else if field.is_list() {
        format!("repeated {}", name(kind))
    } else if field.field_descriptor_proto().proto3_optional() {
        format!("optional {}", name(kind))
    } else {
        name(kind)
    };
    let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
    let oneof = oneof.map(|oneof| format!(", in {}", oneof.name())).unwrap_or_default();
    format!("{kind} = {}, {}{oneof}", field.number(), field.json_name())
}

/// Full name of a message or enum; scalars have none.
fn full_name(kind: &Kind) -> Option<String> {
    let message = kind.as_message().map(|message| message.full_name().to_owned());
    message.or_else(|| kind.as_enum().map(|of| of.full_name().to_owned()))
}

fn relative(full_name: &str, package: &str) -> String {
    let inside = full_name.strip_prefix(package).and_then(|rest| rest.strip_prefix('.'));
    inside.unwrap_or(full_name).to_owned()
}

/// Our schema imports nothing but `google/protobuf/*`: it writes two common messages out itself.
fn google_names_as_ours(facts: Package) -> Package {
    let ours = |text: String| {
        text.replace("google.rpc.Status", "Status").replace("google.longrunning.Operation", "Operation")
    };
    facts
        .into_iter()
        .map(|(name, members)| {
            (ours(name), members.into_iter().map(|(member, text)| (member, ours(text))).collect())
        })
        .collect()
}

fn differences_of_derived(package: &str) -> Vec<String> {
    let (facts, derived) = (facts(package), described(package));
    let mut differences = Vec::new();
    for name in facts.keys().filter(|name| !derived.contains_key(*name)) {
        differences.push(format!("{package} has {name}, the derived package lacks it"));
    }
    for (name, members) in &derived {
        let Some(known) = facts.get(name) else {
            differences.push(format!("the derived package has {name}, {package} lacks it"));
            continue;
        };
        for (member, declaration) in known.iter().filter(|(member, text)| members.get(*member) != Some(text))
        {
            differences.push(differing(package, name, member, declaration, members.get(member)));
        }
        for member in members.keys().filter(|member| !known.contains_key(*member)) {
            differences.push(format!("the derived package has {name}.{member}, {package} lacks it"));
        }
    }
    differences
}

fn differing(package: &str, of: &str, member: &str, known: &str, found: Option<&String>) -> String {
    match found {
        Some(found) => format!("{of}.{member} is `{known}` in {package}, here `{found}`"),
        None => format!("{of}.{member}, `{known}` in {package}, is missing here"),
    }
}

#[track_caller]
fn none(differences: Vec<String>) {
    assert!(differences.is_empty(), "differences, {} in all:\n{}", differences.len(), differences.join("\n"));
}
