//! The REST door described in OpenAPI 3.1, made from the descriptors of the schema and its comments.
//!
//! Schemas show what the service writes, and the well-formed half of what it reads: proto-JSON with
//! camelCase keys. Whatever more its reader forgives is in no schema.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use http::HeaderName;
use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use serde_json::{Map, Value, json};

use crate::server::keys::KEY_HEADERS;
use crate::wire::json::pool;

/// The schema's package; names in the document leave it out.
const PACKAGE: &str = "rapideval.v1.";

const COMMENTS: &str = include_str!(concat!(env!("OUT_DIR"), "/comments.tsv"));

/// What a caller needs an API key for.
#[derive(Debug, Clone, Copy)]
pub struct Keyed {
    /// Evaluations.
    pub calls: bool,
    /// The pages that people and tools read.
    pub pages: bool,
}

/// The document, in JSON.
pub fn document(keyed: Keyed) -> String {
    let comments: HashMap<&str, &str> = COMMENTS.lines().filter_map(|line| line.split_once('\t')).collect();
    let mut writer = Writer { comments, schemas: BTreeMap::new(), open: Vec::new(), seen: BTreeSet::new() };
    let mut paths = Map::new();
    for service in pool().services().filter(|service| service.full_name().starts_with(PACKAGE)) {
        let is_unary =
            |method: &MethodDescriptor| !method.is_client_streaming() && !method.is_server_streaming();
        for method in service.methods().filter(is_unary) {
            writer.add_paths(&method, &mut paths);
        }
    }
    for (path, id, summary) in [
        ("/info.json", "info", "What runs here: version, judges, metrics with their scales"),
        ("/openapi.json", "openapi", "This document"),
    ] {
        let mut operation = json!({
            "operationId": id,
            "summary": summary,
            "tags": ["About"],
            "responses": { "200": {
                "description": "The facts.",
                "content": { "application/json": { "schema": { "type": "object" } } },
            } },
        });
        if keyed.calls && !keyed.pages {
            operation["security"] = json!([]);
        }
        paths.insert(path.to_owned(), json!({ "get": operation }));
    }
    paths.extend(grader_paths());
    writer.close();
    writer.schemas.insert(String::from("Error"), error_schema());
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": env!("CARGO_PKG_NAME"),
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Evaluation of outputs of language models",
            "description": "The REST door; gRPC is on the same port and gives the same answers. Requests may have \
                            snake_case keys, enums by number, and Google's system query parameters such as \
                            `$alt`; `$alt=json;enum-encoding=int` has enums answered by number.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": [
            { "name": "Evaluation", "description": writer.comment("rapideval.v1.EvaluationService") },
            { "name": "Graders", "description": "The graders of OpenAI's API, with the conventions of that API." },
            { "name": "About" },
        ],
        "paths": paths,
        "components": {
            "schemas": writer.schemas,
            "responses": { "Error": {
                "description": "What went wrong. 400: the request is wrong, or the service lacks what it needs. \
                                401: the service asks for an API key, in `X-Goog-Api-Key`, `Api-Key`, \
                                `Authorization: Bearer` or the query parameter `key`. 429 and 503, with \
                                Retry-After: try again. 501: not offered. 504: the deadline passed.",
                "headers": { "Retry-After": {
                    "description": "Seconds after which asking again makes sense.",
                    "schema": { "type": "integer" },
                } },
                "content": { "application/json": { "schema": reference("Error") } },
            } },
            "parameters": {
                "project": path_parameter("project", "Any name; nothing depends on it."),
                "location": path_parameter("location", "Any name, such as `global`; nothing depends on it."),
                "timeout": {
                    "name": "X-Server-Timeout",
                    "in": "header",
                    "description": "Seconds after which the caller stops waiting.",
                    "schema": { "type": "number", "exclusiveMinimum": 0 },
                },
            },
        },
    });
    if keyed.calls {
        let schemes = security_schemes();
        document["security"] = schemes.keys().map(|name| json!({ (name.as_str()): [] })).collect();
        document["components"]["securitySchemes"] = Value::Object(schemes);
    }
    format!("{document:#}\n")
}

/// The headers that may hold a key, by name; one of them is enough.
fn security_schemes() -> Map<String, Value> {
    let bearer = json!({ "type": "http", "scheme": "bearer", "description": "An API key of this service." });
    let header = |name: HeaderName| {
        let scheme = json!({
            "type": "apiKey", "in": "header", "name": name.as_str(), "description": "An API key of this service.",
        });
        (name.as_str().to_owned(), scheme)
    };
    let headers = KEY_HEADERS.into_iter().map(header);
    [(String::from("bearer"), bearer)].into_iter().chain(headers).collect()
}

/// The paths of OpenAI's API. What a grader may hold is that API's to say.
fn grader_paths() -> Vec<(String, Value)> {
    let object = || json!({ "type": "object" });
    let grader = json!({ "grader": { "type": "object", "description": "A grader in OpenAI's JSON." } });
    let mut run = grader.clone();
    run["model_sample"] = json!({ "type": "string", "description": "What the model under test said." });
    run["item"] = json!({ "type": "object", "description": "The row that templates read." });
    let error = json!({
        "type": "object",
        "properties": { "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": { "type": "string" },
                "type": { "type": "string" },
                "param": { "type": ["string", "null"] },
                "code": { "type": ["string", "null"] },
            },
        } },
    });
    let path = |verb: &str, summary: &str, sent: &Value, required: Value, told: &str| {
        let body = json!({ "type": "object", "required": required, "properties": sent });
        let operation = json!({
            "operationId": format!("{verb}Grader"),
            "summary": summary,
            "tags": ["Graders"],
            "requestBody": { "required": true, "content": { "application/json": { "schema": body } } },
            "responses": {
                "200": { "description": told, "content": { "application/json": { "schema": object() } } },
                "default": {
                    "description": "What went wrong. With `x-should-retry: false` asking again cannot help.",
                    "content": { "application/json": { "schema": error } },
                },
            },
        });
        (format!("/v1/fine_tuning/alpha/graders/{verb}"), json!({ "post": operation }))
    };
    vec![
        path(
            "run",
            "Grades one output of a model.",
            &run,
            json!(["grader", "model_sample"]),
            "The reward; 0 with a flag in `metadata.errors` where there is none.",
        ),
        path("validate", "Checks a grader.", &grader, json!(["grader"]), "The grader, as it came."),
    ]
}

fn path_parameter(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": { "type": "string" } })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "description": "An error as Google's REST doors write it.",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message", "status"],
            "properties": {
                "code": { "type": "integer", "description": "The HTTP status." },
                "message": { "type": "string", "description": "The field that is wrong, and why." },
                "status": { "type": "string", "description": "The name of the gRPC code." },
                "details": {
                    "type": "array",
                    "description": "`google.rpc` details: BadRequest, RetryInfo, ErrorInfo.",
                    "items": {
                        "type": "object",
                        "required": ["@type"],
                        "properties": { "@type": { "type": "string" } },
                    },
                },
            },
        } },
    })
}

struct Writer {
    comments: HashMap<&'static str, &'static str>,
    schemas: BTreeMap<String, Value>,
    /// Messages and enums that a schema refers to and that are not written yet.
    open: Vec<Kind>,
    /// All that were ever open.
    seen: BTreeSet<String>,
}

impl Writer {
    fn comment(&self, full_name: &str) -> &'static str {
        self.comments.get(full_name).copied().unwrap_or_default()
    }

    fn described(&self, mut schema: Value, full_name: &str) -> Value {
        let comment = self.comment(full_name);
        if !comment.is_empty()
            && let Some(schema) = schema.as_object_mut()
        {
            schema.insert(String::from("description"), Value::from(comment));
        }
        schema
    }

    fn add_paths(&mut self, method: &MethodDescriptor, paths: &mut Map<String, Value>) {
        let verb = lower_first(method.name());
        let located = "/projects/{project}/locations/{location}";
        let mut forms = vec![("v1beta1", located), ("v1beta1", "")];
        if verb == "evaluateInstances" {
            forms.insert(0, ("v1", located));
        }
        for (version, place) in forms {
            let parameter = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
            let mut parameters = vec![parameter("timeout")];
            if !place.is_empty() {
                parameters.extend([parameter("project"), parameter("location")]);
            }
            let suffix = if place.is_empty() { "_unlocated" } else { "" };
            let comment = self.comment(method.full_name());
            let operation = json!({
                "operationId": format!("{verb}_{version}{suffix}"),
                "summary": comment.split_inclusive(". ").next().unwrap_or(&verb).trim(),
                "description": comment,
                "tags": ["Evaluation"],
                "parameters": parameters,
                "requestBody": {
                    "required": true,
                    "content": { "application/json": { "schema": self.refer(Kind::Message(method.input())) } },
                },
                "responses": {
                    "200": {
                        "description": "The answer.",
                        "content": { "application/json": { "schema": self.refer(Kind::Message(method.output())) } },
                    },
                    "default": { "$ref": "#/components/responses/Error" },
                },
            });
            paths.insert(format!("/{version}{place}:{verb}"), json!({ "post": operation }));
        }
    }

    /// Writes all that is referred to.
    fn close(&mut self) {
        while let Some(kind) = self.open.pop() {
            if let Some(message) = kind.as_message() {
                let schema = self.message(message);
                self.schemas.insert(short(message.full_name()), schema);
            } else if let Some(named) = kind.as_enum() {
                let schema = self.enumeration(named);
                self.schemas.insert(short(named.full_name()), schema);
            }
        }
    }

    fn message(&mut self, message: &MessageDescriptor) -> Value {
        let mut properties = Map::new();
        for field in message.fields() {
            let schema = self.field(&field);
            properties.insert(field.json_name().to_owned(), self.described(schema, field.full_name()));
        }
        let schema = json!({ "type": "object", "properties": properties });
        self.described(schema, message.full_name())
    }

    fn enumeration(&self, named: &EnumDescriptor) -> Value {
        let names: Vec<_> = named.values().map(|value| value.name().to_owned()).collect();
        self.described(json!({ "type": "string", "enum": names }), named.full_name())
    }

    fn field(&mut self, field: &FieldDescriptor) -> Value {
        let kind = field.kind();
        let mut schema = match kind.as_message().filter(|_| field.is_map()) {
            Some(entry) => {
                let value = self.refer(entry.map_entry_value_field().kind());
                json!({ "type": "object", "additionalProperties": value })
            }
            None if field.is_list() => json!({ "type": "array", "items": self.refer(kind) }),
            None => self.refer(kind),
        };
        let oneof = field.containing_oneof().filter(|oneof| !oneof.is_synthetic());
        if let (Some(oneof), Some(schema)) = (oneof, schema.as_object_mut()) {
            schema.insert(String::from("x-oneof"), Value::from(oneof.name()));
        }
        schema
    }

    /// The schema of a value, or a reference to it.
    fn refer(&mut self, kind: Kind) -> Value {
        let name = match &kind {
            Kind::Message(message) => match well_known(message.full_name()) {
                Some(schema) => return schema,
                None => message.full_name(),
            },
            Kind::Enum(named) if named.full_name() == "google.protobuf.NullValue" => {
                return json!({ "type": "null" });
            }
            Kind::Enum(named) => named.full_name(),
            Kind::Double | Kind::Float => return json!({ "type": "number" }),
            Kind::Bool => return json!({ "type": "boolean" }),
            Kind::String => return json!({ "type": "string" }),
            Kind::Bytes => return json!({ "type": "string", "contentEncoding": "base64" }),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 | Kind::Uint32 | Kind::Fixed32 => {
                return json!({ "type": "integer" });
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 | Kind::Uint64 | Kind::Fixed64 => {
                return json!({ "type": "string", "pattern": "^-?[0-9]+$" });
            }
        };
        let name = name.to_owned();
        if self.seen.insert(name.clone()) {
            self.open.push(kind);
        }
        reference(&short(&name))
    }
}

/// The JSON of the messages that have one of their own.
fn well_known(full_name: &str) -> Option<Value> {
    Some(match full_name.strip_prefix("google.protobuf.")? {
        "Struct" | "Empty" => json!({ "type": "object" }),
        "Value" => json!({}),
        "ListValue" => json!({ "type": "array" }),
        "Any" => {
            json!({ "type": "object", "required": ["@type"], "properties": { "@type": { "type": "string" } } })
        }
        "Timestamp" => json!({ "type": "string", "format": "date-time" }),
        "Duration" => json!({ "type": "string", "pattern": "^-?[0-9]+(\\.[0-9]+)?s$" }),
        "FieldMask" => json!({ "type": "string" }),
        _ => return None,
    })
}

fn short(full_name: &str) -> String {
    full_name.strip_prefix(PACKAGE).unwrap_or(full_name).to_owned()
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
