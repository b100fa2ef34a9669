//! The schema for proxies that turn JSON into gRPC, such as Envoy's gRPC-JSON transcoder: the descriptors of the
//! service, with `google.api.http` rules for the paths of Vertex AI.
//!
//! The rules are added here and not in `proto/`, where every generated client would need `google/api` for them. A
//! method's options are one message: what is written behind it in the encoding is merged into it, so the rules need
//! no type of their own in the descriptors.

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use prost_types::{FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto};

use crate::server::grpc::google_methods;
use crate::wire::json;

/// `FileDescriptorSet.file`.
const FILE: u32 = 1;
/// `FileDescriptorProto.service`.
const SERVICE: u32 = 6;
/// `ServiceDescriptorProto.method`.
const METHOD: u32 = 2;
/// `MethodDescriptorProto.options`.
const OPTIONS: u32 = 4;
/// `google.api.http`, of `MethodOptions`.
const HTTP: u32 = 72_295_728;
/// `HttpRule.post`.
const POST: u32 = 4;
/// `HttpRule.body`.
const BODY: u32 = 7;
/// `HttpRule.additional_bindings`.
const ADDITIONAL: u32 = 11;

/// An encoded `google.protobuf.FileDescriptorSet`.
pub fn descriptors() -> Vec<u8> {
    let mut set = Vec::new();
    for file in json::pool().file_descriptor_protos() {
        put(&mut set, FILE, &with_rules(file.clone()));
    }
    set
}

fn with_rules(mut file: FileDescriptorProto) -> Vec<u8> {
    let services = std::mem::take(&mut file.service);
    let package = file.package().to_owned();
    let mut bytes = file.encode_to_vec();
    for service in services {
        put(&mut bytes, SERVICE, &service_with_rules(&package, service));
    }
    bytes
}

fn service_with_rules(package: &str, mut service: ServiceDescriptorProto) -> Vec<u8> {
    let methods = std::mem::take(&mut service.method);
    let name = format!("{package}.{}", service.name());
    let mut bytes = service.encode_to_vec();
    for method in methods {
        put(&mut bytes, METHOD, &method_with_rule(&name, &method));
    }
    bytes
}

fn method_with_rule(service: &str, method: &MethodDescriptorProto) -> Vec<u8> {
    let mut bytes = method.encode_to_vec();
    if google_methods(service).contains(&method.name()) {
        let version = service.split('.').rev().nth(1).unwrap_or_default();
        let mut verb = method.name().to_owned();
        if let Some(first) = verb.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        let mut rule = post(&format!("/{version}/{{location=projects/*/locations/*}}:{verb}"));
        if version != "v1" {
            put(&mut rule, ADDITIONAL, &post(&format!("/{version}:{verb}")));
        }
        let mut options = Vec::new();
        put(&mut options, HTTP, &rule);
        put(&mut bytes, OPTIONS, &options);
    }
    bytes
}

/// An `HttpRule`: the whole message is the body.
fn post(path: &str) -> Vec<u8> {
    let mut rule = Vec::new();
    put(&mut rule, POST, path.as_bytes());
    put(&mut rule, BODY, b"*");
    rule
}

/// A field that has a length.
fn put(message: &mut Vec<u8>, field: u32, value: &[u8]) {
    encode_key(field, WireType::LengthDelimited, message);
    encode_varint(value.len() as u64, message);
    message.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn nothing_but_rules_is_added_to_the_descriptors() {
        // prost drops the options that it does not know.
        let mut set = FileDescriptorSet::decode(descriptors().as_slice()).unwrap();
        for method in
            set.file.iter_mut().flat_map(|file| &mut file.service).flat_map(|service| &mut service.method)
        {
            method.options = None;
        }
        let plain: Vec<_> = json::pool().file_descriptor_protos().cloned().collect();
        assert_eq!(set.file, plain);
    }

    #[test]
    fn each_method_of_google_has_its_path() {
        let bytes = descriptors();
        let has = |path: &str| bytes.windows(path.len()).any(|window| window == path.as_bytes());
        assert!(has("/v1beta1/{location=projects/*/locations/*}:evaluateInstances"));
        assert!(has("/v1beta1/{location=projects/*/locations/*}:generateInstanceRubrics"));
        assert!(has("/v1beta1:evaluateInstances"));
        assert!(has("/v1/{location=projects/*/locations/*}:evaluateInstances"));
        assert!(!has("/v1/{location=projects/*/locations/*}:generateInstanceRubrics"));
    }
}
