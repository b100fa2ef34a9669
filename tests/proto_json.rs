//! The JSON reader: as lenient as Google's doors, and no different from the strict mapping where a text is
//! well formed.
#![cfg(feature = "server")]

use proptest::prelude::*;
use prost::{Message, Name};
use prost_reflect::{DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rapid_eval::error::Error;
use rapid_eval::wire::json;
use rapid_eval::wire::v1::EvaluateInstancesRequest;

fn read(text: &str) -> Result<EvaluateInstancesRequest, Error> {
    json::read(text)
}

/// A form to compare by: NaN is not equal to itself, and the bytes of a map have no order.
fn canonical(request: &EvaluateInstancesRequest) -> serde_json::Value {
    let descriptor = json::pool().get_message_by_name(&EvaluateInstancesRequest::full_name()).unwrap();
    let mut message = DynamicMessage::new(descriptor);
    message.transcode_from(request).unwrap();
    serde_json::to_value(message).unwrap()
}

/// The library's own reading, without any leniency of ours.
fn strictly(text: &str) -> Option<EvaluateInstancesRequest> {
    let descriptor = json::pool().get_message_by_name(&EvaluateInstancesRequest::full_name()).unwrap();
    let mut reader = serde_json::Deserializer::from_str(text);
    let message =
        DynamicMessage::deserialize_with_options(descriptor, &mut reader, &DeserializeOptions::new()).ok()?;
    reader.end().ok()?;
    message.transcode_to().ok()
}

/// Both texts are read, and as the same message.
#[track_caller]
fn same(lenient: &str, well_formed: &str) {
    let expected = strictly(well_formed).unwrap_or_else(|| panic!("not well formed: {well_formed}"));
    assert_eq!(read(lenient).unwrap_or_else(|error| panic!("{error} in {lenient}")), expected);
}

#[track_caller]
fn refused(text: &str, field: &str, told: &str) {
    let error = read(text).expect_err(text);
    assert_eq!(error.field, field, "{error}");
    assert!(error.message.contains(told), "{error}");
}

const TWO: &str =
    r#"{"exactMatchInput": {"instances": [{"prediction": "a", "reference": "b"}, {"prediction": "c"}]}}"#;

#[test]
fn commas_may_stand_before_a_closing_bracket() {
    same(
        r#"{"exactMatchInput": {"instances": [{"prediction": "a", "reference": "b",}, {"prediction": "c"},],},}"#,
        TWO,
    );
    for text in ["{,}", r#"{"exactMatchInput": {"instances": [,]}}"#, r#"{"location": "a",,}"#] {
        refused(text, "", "Invalid JSON payload received.");
    }
}

#[test]
fn the_key_of_a_repeated_field_may_be_repeated() {
    same(
        r#"{"exact_match_input": {"instances": {"prediction": "a", "reference": "b"}, "instances": {"prediction": "c"}}}"#,
        TWO,
    );
    same(
        r#"{"exactMatchInput": {"instances": [], "instances": [{"prediction": "a", "reference": "b"}],
            "instances": null, "instances": {"prediction": "c"}}}"#,
        TWO,
    );
    refused(
        r#"{"exactMatchInput": {"instances": {}, "instances": {"prediction": 1}}}"#,
        "exact_match_input.instances[1].prediction",
        "expected a string",
    );
}

#[test]
fn the_key_of_a_map_may_be_repeated() {
    same(
        r#"{"instance": {"rubricGroups": {"a": {"groupId": "1"}}, "rubric_groups": {"b": {}}}}"#,
        r#"{"instance": {"rubricGroups": {"a": {"groupId": "1"}, "b": {}}}}"#,
    );
}

#[test]
fn a_field_that_is_not_repeated_is_set_once() {
    refused(r#"{"location": "a", "location": "b"}"#, "location", "is set twice");
    refused(r#"{"bleuInput": {}, "bleu_input": {}}"#, "bleu_input", "is set twice");
    same(r#"{"location": null, "location": "b", "location": null}"#, r#"{"location": "b"}"#);
}

#[test]
fn quotes_may_be_single_or_missing() {
    same(
        r#"{location: 'it\'s "so"', bleu_input: {instances: {'prediction': "it's"}}}"#,
        r#"{"location": "it's \"so\"", "bleuInput": {"instances": [{"prediction": "it's"}]}}"#,
    );
    refused("{location: a}", "", "expected a value");
    refused("{1: 2}", "", "expected a key");
}

#[test]
fn null_is_not_set() {
    same(
        r#"{"location": null, "bleuInput": null, "rougeInput": {"metricSpec": null, "instances": null}}"#,
        r#"{"rougeInput": {}}"#,
    );
    // Where null is a value, it stays one.
    let text = r#"{"metrics": [{"predefinedMetricSpec": {"metricSpecParameters": {"a": null}}}]}"#;
    same(text, text);
}

#[test]
fn enums_and_numbers_come_in_several_forms() {
    let well_formed = r#"{"autoraterConfig": {"samplingCount": 4}, "cometInput": {"metricSpec": {"version": "COMET_22_SRC_REF"}}}"#;
    same(
        r#"{"autorater_config": {"sampling_count": "4"}, "comet_input": {"metric_spec": {"version": 2}}}"#,
        well_formed,
    );
    same(
        r#"{"autoraterConfig": {"samplingCount": 4.0}, "cometInput": {"metricSpec": {"version": "COMET_22_SRC_REF"}}}"#,
        well_formed,
    );
    refused(
        r#"{"cometInput": {"metricSpec": {"version": "comet_22_src_ref"}}}"#,
        "comet_input.metric_spec.version",
        "unrecognized enum value",
    );
    refused(r#"{"autoraterConfig": {"samplingCount": 4.5}}"#, "autorater_config.sampling_count", "integer");
    refused(
        r#"{"autoraterConfig": {"generationConfig": {"temperature": 1e999}}}"#,
        "autorater_config.generation_config.temperature",
        "out of range",
    );
}

#[test]
fn two_members_of_one_oneof_are_refused() {
    refused(r#"{"bleuInput": {}, "rougeInput": {}}"#, "rouge_input", "is set beside bleu_input");
    same(r#"{"bleuInput": {}, "rougeInput": null}"#, r#"{"bleuInput": {}}"#);
}

#[test]
fn an_unknown_key_is_refused_with_the_path_to_it() {
    for (text, field, told) in [
        (r#"{"x": 1}"#, "", r#"Unknown name "x": Cannot find field."#),
        (
            r#"{"rougeInput": {"x": 1}}"#,
            "rouge_input",
            r#"Unknown name "x" at 'rouge_input': Cannot find field."#,
        ),
        (
            r#"{"rouge_input": {"instances": [{}, {"refrence": ""}]}}"#,
            "rouge_input.instances[1]",
            r#"Unknown name "refrence" at 'rouge_input.instances[1]': Cannot find field."#,
        ),
        (
            r#"{"instance": {"rubricGroups": {"a": {"b": 1}}}}"#,
            "instance.rubric_groups.a",
            r#"Unknown name "b" at 'instance.rubric_groups.a': Cannot find field."#,
        ),
    ] {
        refused(text, field, told);
        assert_eq!(read(text).unwrap_err().text(), format!("Invalid JSON payload received. {told}"));
    }
}

#[test]
fn what_googles_sdk_sends_beyond_the_schema_is_left_out() {
    same(
        r#"{"metrics": [{"llm_based_metric_spec": {"custom_output_format_config": {"x": [1, {"y": null}]},
            "metric_prompt_template": "t"}}], "rubricBasedMetricInput": {"z": 1}, "rubric_based_metric_input": null}"#,
        r#"{"metrics": [{"llmBasedMetricSpec": {"metricPromptTemplate": "t"}}]}"#,
    );
}

#[test]
fn nesting_has_a_limit_that_is_named() {
    let nested =
        |depth: usize| format!(r#"{{"rubricBasedMetricInput": {}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    read(&nested(127)).unwrap();
    refused(&nested(128), "", "nested deeper than 128");
    refused(&nested(1_000_000), "", "nested deeper than 128");
    refused(&"{\"a\":".repeat(1_000_000), "", "Unknown name");

    let free = |depth: usize| {
        format!(
            r#"{{"metrics": [{{"predefinedMetricSpec": {{"metricSpecParameters": {}1{}}}}}]}}"#,
            "{\"a\": ".repeat(depth),
            "}".repeat(depth)
        )
    };
    read(&free(20)).unwrap();
    refused(&free(100), "metrics[0].predefined_metric_spec.metric_spec_parameters", "more than 100 messages");
}

#[test]
fn wrong_types_are_refused_with_their_path() {
    refused(r#"{"location": 5}"#, "location", "expected a string");
    refused(r#"{"bleuInput": "x"}"#, "bleu_input", "expected a map");
    refused(r#"{"bleuInput": []}"#, "bleu_input", "expected a map");
    refused(
        r#"{"rougeInput": {"metricSpec": {"useStemmer": "true"}}}"#,
        "rouge_input.metric_spec.use_stemmer",
        "boolean",
    );
    refused(r#"{"rougeInput": {"instances": [[]]}}"#, "rouge_input.instances[0]", "expected a map");
    refused(r#"{"rougeInput": {"instances": [null]}}"#, "rouge_input.instances[0]", "is null");
    refused(r#"{"instance": {"rubricGroups": []}}"#, "instance.rubric_groups", "expected a map");
    refused(r#"{"instance": {"rubricGroups": {"a": 1}}}"#, "instance.rubric_groups.a", "expected a map");
}

/// Random messages from a seed.
struct Random(StdRng);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Letters, what JSON escapes, and the planes above the first.
    fn text(&mut self) -> String {
        (0..self.below(12))
            .map(|_| match self.below(4) {
                0 => self.pick(&[
                    '"',
                    '\\',
                    '/',
                    '\'',
                    '\n',
                    '\0',
                    '\u{7f}',
                    '\u{2028}',
                    '{',
                    ',',
                    ':',
                    '\u{10ffff}',
                ]),
                1 => self.0.random(),
                _ => self.0.random_range('a'..='z'),
            })
            .collect()
    }

    fn several<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(3)).map(|_| one(self)).collect()
    }

    fn free_form(&mut self, depth: u32) -> prost_types::Value {
        use prost_types::value::Kind as Free;
        let kind = match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Free::NullValue(0),
            1 => Free::BoolValue(self.0.random()),
            2 => Free::NumberValue(self.0.random_range(-1e9..1e9)),
            3 => Free::StringValue(self.text()),
            4 => Free::ListValue(prost_types::ListValue {
                values: self.several(|random| random.free_form(depth - 1)),
            }),
            _ => Free::StructValue(self.free_form_fields(depth - 1)),
        };
        prost_types::Value { kind: Some(kind) }
    }

    fn free_form_fields(&mut self, depth: u32) -> prost_types::Struct {
        prost_types::Struct {
            fields: self.several(|random| (random.text(), random.free_form(depth))).into_iter().collect(),
        }
    }

    fn well_known(&mut self, name: &str) -> Option<Vec<u8>> {
        let nanos = |random: &mut Self| random.0.random_range(0..1_000_000_000);
        Some(match name {
            "google.protobuf.Value" => self.free_form(2).encode_to_vec(),
            "google.protobuf.Struct" => self.free_form_fields(2).encode_to_vec(),
            "google.protobuf.Timestamp" => {
                let seconds = self.0.random_range(0..2_000_000_000);
                prost_types::Timestamp { seconds, nanos: nanos(self) }.encode_to_vec()
            }
            "google.protobuf.Duration" => {
                let seconds = self.0.random_range(0..1_000_000);
                prost_types::Duration { seconds, nanos: nanos(self) }.encode_to_vec()
            }
            _ => return None,
        })
    }

    /// Four fields at most, one of each oneof.
    fn message(&mut self, descriptor: &MessageDescriptor, depth: u32) -> DynamicMessage {
        if let Some(bytes) = self.well_known(descriptor.full_name()) {
            return DynamicMessage::decode(descriptor.clone(), bytes.as_slice()).unwrap();
        }
        let fields: Vec<FieldDescriptor> = descriptor.fields().filter(|field| usable(field, depth)).collect();
        let mut message = DynamicMessage::new(descriptor.clone());
        if !fields.is_empty() {
            for _ in 0..=self.below(4) {
                let field = self.pick(&fields);
                let value = self.field_value(&field, depth.saturating_sub(1));
                message.set_field(&field, value);
            }
        }
        message
    }

    fn field_value(&mut self, field: &FieldDescriptor, depth: u32) -> Value {
        let kind = field.kind();
        if field.is_map() {
            let value = kind.as_message().unwrap().map_entry_value_field().kind();
            let entries = self.several(|random| {
                (prost_reflect::MapKey::String(random.text()), random.value(&value, depth))
            });
            return Value::Map(entries.into_iter().collect());
        }
        if field.is_list() {
            return Value::List(self.several(|random| random.value(&kind, depth)));
        }
        self.value(&kind, depth)
    }

    fn value(&mut self, kind: &Kind, depth: u32) -> Value {
        match kind {
            Kind::Double => Value::F64(f64::from_bits(self.0.random())),
            Kind::Float => Value::F32(f32::from_bits(self.0.random())),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(self.0.random()),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(self.0.random()),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(self.0.random()),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(self.0.random()),
            Kind::Bool => Value::Bool(self.0.random()),
            Kind::String => Value::String(self.text()),
            Kind::Bytes => Value::Bytes(self.text().into()),
            Kind::Enum(kind) => {
                let numbers: Vec<i32> = kind.values().map(|value| value.number()).collect();
                Value::EnumNumber(self.pick(&numbers))
            }
            Kind::Message(message) => Value::Message(self.message(message, depth)),
        }
    }
}

fn usable(field: &FieldDescriptor, depth: u32) -> bool {
    match field.kind() {
        // It needs a type that both sides know.
        Kind::Message(message) if message.full_name() == "google.protobuf.Any" => false,
        Kind::Message(message) => depth > 0 || message.full_name().starts_with("google.protobuf."),
        Kind::Enum(kind) => kind.full_name() != "google.protobuf.NullValue",
        _ => true,
    }
}

#[test]
fn leniency_never_changes_a_well_formed_message() {
    let descriptor = json::pool().get_message_by_name(&EvaluateInstancesRequest::full_name()).unwrap();
    let mut filled = 0;
    for seed in 0..20_000 {
        let mut random = Random(StdRng::seed_from_u64(seed));
        let options = prost_reflect::SerializeOptions::new().use_proto_field_name(random.0.random());
        let mut text = Vec::new();
        random
            .message(&descriptor, 6)
            .serialize_with_options(&mut serde_json::Serializer::new(&mut text), &options)
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = strictly(&text).unwrap_or_else(|| panic!("seed {seed}: not well formed: {text}"));
        let found = read(&text).unwrap_or_else(|error| panic!("seed {seed}: {error} in {text}"));
        assert_eq!(canonical(&found), canonical(&expected), "seed {seed}: {text}");
        filled += usize::from(text.len() > 200);
    }
    assert!(filled > 3000, "only {filled} texts are of more than 200 bytes");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_is_a_panic(text in "[\\[\\]{}:,\"'a-z0-9.eE+ \\\\-]{0,200}") {
        let _ = read(&text);
    }
}
