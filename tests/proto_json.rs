//! The JSON reader: as lenient as Google's doors, and no different from the strict mapping where a text is
//! well formed.
#![cfg(feature = "server")]

use proptest::prelude::*;
use prost::{Message, Name};
use prost_reflect::{DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};
use rapid_eval::error::Error;
use rapid_eval::wire::json;
use rapid_eval::wire::v1::EvaluateInstancesRequest;

fn read(text: &str) -> Result<EvaluateInstancesRequest, Error> {
    json::read(text)
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

/// A random value of a field's type; `depth` bounds what is inside.
fn value(kind: Kind, depth: u32) -> BoxedStrategy<Value> {
    match kind {
        Kind::Double => any::<f64>().prop_map(Value::F64).boxed(),
        Kind::Float => any::<f32>().prop_map(Value::F32).boxed(),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => any::<i32>().prop_map(Value::I32).boxed(),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => any::<i64>().prop_map(Value::I64).boxed(),
        Kind::Uint32 | Kind::Fixed32 => any::<u32>().prop_map(Value::U32).boxed(),
        Kind::Uint64 | Kind::Fixed64 => any::<u64>().prop_map(Value::U64).boxed(),
        Kind::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Kind::String => any::<String>().prop_map(Value::String).boxed(),
        Kind::Bytes => any::<Vec<u8>>().prop_map(|bytes| Value::Bytes(bytes.into())).boxed(),
        Kind::Enum(kind) => {
            let numbers: Vec<i32> = kind.values().map(|value| value.number()).collect();
            prop::sample::select(numbers).prop_map(Value::EnumNumber).boxed()
        }
        Kind::Message(message) => self::message(message, depth).prop_map(Value::Message).boxed(),
    }
}

fn free_form(depth: u32) -> BoxedStrategy<prost_types::Value> {
    use prost_types::value::Kind as Free;
    let leaf = prop_oneof![
        Just(Free::NullValue(0)),
        any::<bool>().prop_map(Free::BoolValue),
        (-1e9..1e9).prop_map(Free::NumberValue),
        any::<String>().prop_map(Free::StringValue),
    ];
    let leaf = leaf.prop_map(|kind| prost_types::Value { kind: Some(kind) });
    leaf.prop_recursive(depth, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|values| Free::ListValue(prost_types::ListValue { values })),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|fields| Free::StructValue(prost_types::Struct { fields })),
        ]
        .prop_map(|kind| prost_types::Value { kind: Some(kind) })
    })
    .boxed()
}

fn well_known(name: &str) -> Option<BoxedStrategy<Vec<u8>>> {
    Some(match name {
        "google.protobuf.Value" => free_form(2).prop_map(|value| value.encode_to_vec()).boxed(),
        "google.protobuf.Struct" => prop::collection::btree_map(any::<String>(), free_form(2), 0..4)
            .prop_map(|fields| prost_types::Struct { fields }.encode_to_vec())
            .boxed(),
        "google.protobuf.Timestamp" => (0..2_000_000_000_i64, 0..1_000_000_000_i32)
            .prop_map(|(seconds, nanos)| prost_types::Timestamp { seconds, nanos }.encode_to_vec())
            .boxed(),
        "google.protobuf.Duration" => (0..1_000_000_i64, 0..1_000_000_000_i32)
            .prop_map(|(seconds, nanos)| prost_types::Duration { seconds, nanos }.encode_to_vec())
            .boxed(),
        "google.protobuf.Any" => Just(Vec::new()).boxed(),
        _ => return None,
    })
}

/// A random message: few fields of it, one of each oneof at most.
fn message(descriptor: MessageDescriptor, depth: u32) -> BoxedStrategy<DynamicMessage> {
    if let Some(bytes) = well_known(descriptor.full_name()) {
        return bytes
            .prop_map(move |bytes| DynamicMessage::decode(descriptor.clone(), bytes.as_slice()).unwrap())
            .boxed();
    }
    let fields: Vec<FieldDescriptor> = descriptor.fields().filter(|field| usable(field, depth)).collect();
    let most = fields.len().min(3);
    prop::sample::subsequence(fields, 0..=most)
        .prop_flat_map(move |chosen| {
            let descriptor = descriptor.clone();
            let values: Vec<_> =
                chosen.iter().map(|field| field_value(field, depth.saturating_sub(1))).collect();
            values.prop_map(move |values| {
                let mut message = DynamicMessage::new(descriptor.clone());
                for (field, value) in chosen.iter().zip(values) {
                    message.set_field(field, value);
                }
                message
            })
        })
        .boxed()
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

fn field_value(field: &FieldDescriptor, depth: u32) -> BoxedStrategy<Value> {
    let kind = field.kind();
    if field.is_map() {
        let value = kind.as_message().unwrap().map_entry_value_field().kind();
        return prop::collection::hash_map(
            any::<String>().prop_map(prost_reflect::MapKey::String),
            self::value(value, depth),
            0..3,
        )
        .prop_map(Value::Map)
        .boxed();
    }
    if field.is_list() {
        return prop::collection::vec(value(kind, depth), 0..3).prop_map(Value::List).boxed();
    }
    value(kind, depth)
}

fn request() -> BoxedStrategy<DynamicMessage> {
    let descriptor = json::pool().get_message_by_name(&EvaluateInstancesRequest::full_name()).unwrap();
    message(descriptor, 3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn leniency_never_changes_a_well_formed_message(message in request(), camel in any::<bool>()) {
        let options = prost_reflect::SerializeOptions::new().use_proto_field_name(!camel);
        let mut text = Vec::new();
        message.serialize_with_options(&mut serde_json::Serializer::new(&mut text), &options).unwrap();
        let text = String::from_utf8(text).unwrap();
        let expected = strictly(&text);
        let found = read(&text);
        prop_assert!(expected.is_some(), "{text}");
        // By bytes: NaN is not equal to itself.
        prop_assert_eq!(
            found.unwrap().encode_to_vec(), expected.unwrap().encode_to_vec(), "{}", text
        );
    }

    #[test]
    fn no_text_is_a_panic(text in "[\\[\\]{}:,\"'a-z0-9.eE+ \\\\-]{0,200}") {
        let _ = read(&text);
    }
}
