//! What is too much, or not a request at all: refused by name, in bounded memory, and nobody else notices.
#![cfg(feature = "server")]

mod world;

use std::io::Write;

use flate2::{Compress, Compression, FlushCompress};
use prost::Message;
use rapid_eval::config::Limits;
use rapid_eval::wire::v1::evaluate_instances_request::MetricInputs;
use rapid_eval::wire::v1::{
    EvaluateInstancesRequest, EvaluateInstancesResponse, ExactMatchInput, ExactMatchInstance,
};
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt;
use world::http::{Answer, field, frame_of, framed, grpc};
use world::process::Process;
use world::{Caller, SERVICES, World, message, scores};

const MIB: usize = 1 << 20;

fn exact_match(prediction: &str, reference: &str) -> Value {
    pair("exact_match_input", prediction, reference)
}

fn pair(arm: &str, prediction: &str, reference: &str) -> Value {
    json!({arm: {"instances": [{"prediction": prediction, "reference": reference}]}})
}

/// A call with a text that JSON would not carry as it is.
fn exact_match_of(prediction: Vec<u8>) -> Vec<u8> {
    let instance = [field(1, &prediction), field(2, b"x")].concat();
    field(2, &field(2, &instance))
}

async fn is_well(caller: &Caller) {
    let answer = caller.evaluate(exact_match("a", "a")).await.unwrap();
    assert_eq!(scores(&answer), [1.0]);
}

/// The status of a raw answer, and the scores when it is OK.
fn outcome(answer: &Answer) -> Result<Vec<f64>, Status> {
    let status = answer.grpc_status();
    if status.code() != Code::Ok {
        return Err(status);
    }
    let response = EvaluateInstancesResponse::decode(&answer.body[5..]).unwrap();
    Ok(scores(&response))
}

#[tokio::test]
async fn five_mebibytes_pass_with_the_limits_that_ship() {
    let world = World::new().start().await;
    let text = "0123456789abcdef".repeat(327_680);
    assert_eq!(scores(&world.evaluate(exact_match(&text, "x")).await.unwrap()), [0.0]);
    is_well(world.caller()).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_with_the_size_the_limit_and_the_name() {
    let world = World::new().start().await;
    let request =
        ExactMatchInstance { prediction: Some("x".repeat(100 * MIB)), reference: Some(String::new()) };
    let request =
        MetricInputs::ExactMatchInput(ExactMatchInput { metric_spec: None, instances: vec![request] });
    let request = EvaluateInstancesRequest { metric_inputs: Some(request), ..Default::default() };
    let refused = world.caller().evaluate_as(SERVICES[0], request).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    for piece in ["104857", "limits.request_bytes", "67108864"] {
        assert!(refused.message().contains(piece), "{piece}: {refused}");
    }
    is_well(world.caller()).await;
}

#[tokio::test]
async fn the_limit_of_a_message_is_a_setting() {
    let raised = World::new()
        .set(|settings| {
            settings.limits.request_bytes = 128 * MIB;
            settings.limits.text_bytes = 128 * MIB;
        })
        .start()
        .await;
    let large = framed(false, &exact_match_of(vec![b'x'; 100 * MIB]));
    assert_eq!(outcome(&grpc(raised.address, large, &[]).await).unwrap(), [0.0]);

    let lowered = World::new().set(|settings| settings.limits.request_bytes = 1000).start().await;
    let refused = lowered.evaluate(exact_match(&"x".repeat(1000), "x")).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    is_well(lowered.caller()).await;
}

#[tokio::test]
async fn a_text_over_the_limit_is_refused_by_field_and_name() {
    let world = World::new().start().await;
    let limit = Limits::default().text_bytes;
    let longest = "x".repeat(limit);
    assert_eq!(scores(&world.evaluate(exact_match(&longest, "x")).await.unwrap()), [0.0]);

    let refused = world.evaluate(exact_match("x", &(longest + "x"))).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    for piece in ["exact_match_input.instances[0].reference", "8388609", "limits.text_bytes", "8388608"] {
        assert!(refused.message().contains(piece), "{piece}: {refused}");
    }
}

#[tokio::test]
async fn instances_over_the_limit_are_refused_by_name() {
    let world = World::new().set(|settings| settings.limits.instances = 3).start().await;
    let of = |count| json!({"exact_match_input": {"instances": vec![json!({"prediction": "", "reference": ""}); count]}});
    assert_eq!(scores(&world.evaluate(of(3)).await.unwrap()), [1.0; 3]);
    let refused = world.evaluate(of(4)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("limits.instances = 3"), "{refused}");

    let metrics = json!({
        "instance": {"response": {"text": "a"}, "reference": {"text": "a"}},
        "metrics": vec![json!({"exact_match_spec": {}}); 4],
    });
    let refused = world.evaluate(metrics).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("limits.instances = 3"), "{refused}");
}

#[tokio::test]
async fn an_error_repeats_only_a_short_piece_of_what_was_sent() {
    let world = World::new().start().await;
    let long = "rougeX".repeat(20_000);
    let wrong = [
        json!({"rouge_input": {"metric_spec": {"rouge_type": long}, "instances": [{"prediction": "a", "reference": "a"}]}}),
        json!({"rouge_input": {"metric_spec": {"use_stemmer": true, "language": long},
            "instances": [{"prediction": "a", "reference": "a"}]}}),
    ];
    for request in wrong {
        let refused = world.evaluate(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().len() + refused.details().len() <= 4096, "{}", refused.message().len());
        assert!(refused.message().contains("rougeXrougeX"), "{refused}");
    }
    // Inside an answer too: it is the caller's own words that would come back ten thousand times.
    let parameters = json!({
        "instance": {"response": {"text": "a"}, "reference": {"text": "a"}},
        "metrics": [{"computation_based_metric_spec": {"type": "ROUGE", "parameters": {long: true}}}],
    });
    let answer = world.evaluate(parameters).await.unwrap();
    assert!(answer.encoded_len() <= 4096, "{}", answer.encoded_len());
}

#[tokio::test]
async fn compressed_bytes_count_unpacked_and_never_fill_memory() {
    let process = Process::start(&[]);
    is_well(&process.caller()).await;
    let before = process.peak_memory();

    let bomb = gzip_of_zeros(1024);
    assert!(bomb.len() < 2 * MIB);
    let answer = grpc(process.address, framed(true, &bomb), &[("grpc-encoding", "gzip")]).await;
    let refused = outcome(&answer).unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("limits.request_bytes = 67108864"), "{refused}");

    let grown = process.peak_memory() - before;
    assert!(grown < 2 * Limits::default().request_bytes, "{} MiB", grown / MIB);
    is_well(&process.caller()).await;
}

#[tokio::test]
async fn a_compressed_message_within_the_limit_is_answered() {
    let world = World::new().start().await;
    let request = message(&exact_match(&"x".repeat(MIB), "x")).encode_to_vec();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&request).unwrap();
    let body = framed(true, &packed.finish().unwrap());
    let answer = grpc(world.address, body.clone(), &[("grpc-encoding", "gzip")]).await;
    assert_eq!(outcome(&answer).unwrap(), [0.0]);

    let unknown = grpc(world.address, body, &[("grpc-encoding", "br")]).await;
    assert_eq!(outcome(&unknown).unwrap_err().code(), Code::Unimplemented);
    assert!(unknown.headers.get("grpc-accept-encoding").unwrap().to_str().unwrap().contains("gzip"));
}

/// So many MiB of zeros in gzip: one MiB, packed once, its block repeated.
fn gzip_of_zeros(mebibytes: usize) -> Vec<u8> {
    let mut packer = Compress::new(Compression::best(), false);
    let mut block = Vec::with_capacity(64 * 1024);
    packer.compress_vec(&vec![0; MIB], &mut block, FlushCompress::Sync).unwrap();
    assert_eq!(packer.total_in(), MIB as u64);
    // Magic number, deflate, no flags, no time, no hints, unknown system.
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    gzip.extend(block.repeat(mebibytes));
    // An empty last block. Whoever gets as far as the checksum has unpacked too much.
    gzip.extend([3, 0]);
    gzip.extend([0; 8]);
    gzip
}

#[tokio::test]
async fn what_is_no_message_is_the_callers_error() {
    let world = World::new().start().await;
    let whole = message(&exact_match("prediction", "reference")).encode_to_vec();
    let wrong = [
        ("cut off", whole[..whole.len() - 3].to_vec()),
        ("not UTF-8", exact_match_of(b"\xff\xfe".to_vec())),
        ("a lone surrogate", exact_match_of(b"\xed\xa0\x80".to_vec())),
        ("a group", vec![0x0b, 0x0c]),
        ("field 0", vec![0, 0]),
        ("a wrong wire type", vec![0x10, 1]),
        ("noise", b"hello, server".to_vec()),
        ("nested 1000 deep", nested_parameters(1000)),
        ("nested 300,000 deep", nested_parameters(300_000)),
    ];
    for (what, bytes) in wrong {
        let refused = outcome(&grpc(world.address, framed(false, &bytes), &[]).await).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{what}: {refused}");
        assert!(refused.message().contains("EvaluateInstancesRequest"), "{what}: {refused}");
        assert!(refused.message().len() <= 4096, "{what}");
    }
    is_well(world.caller()).await;
}

/// `metrics[0].computation_based_metric_spec.parameters` with a list in a list in a list, this deep.
fn nested_parameters(depth: usize) -> Vec<u8> {
    // Written from the end: a length needs to know only what comes after it.
    let mut reversed: Vec<u8> = Vec::new();
    let mut wrap = |number: u32| {
        let mut head = Vec::new();
        prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut head);
        prost::encoding::encode_varint(reversed.len() as u64, &mut head);
        reversed.extend(head.iter().rev());
    };
    for _ in 0..depth {
        wrap(1); // ListValue.values
        wrap(6); // Value.list_value
    }
    for number in [2, 1, 2, 9, 49] {
        // The map's value, the map's entry, parameters, the spec, metrics.
        wrap(number);
    }
    reversed.reverse();
    reversed
}

#[tokio::test]
async fn a_frame_that_is_no_frame_hurts_nobody() {
    let world = World::new().start().await;
    let frame = frame_of(&message(&exact_match("a", "a")));
    let compressed_without_saying_how = framed(true, &frame[5..]);
    let broken =
        [frame[..3].to_vec(), frame[..frame.len() - 1].to_vec(), Vec::new(), compressed_without_saying_how];
    for body in broken {
        // The protocol itself says INTERNAL for these.
        let refused = outcome(&grpc(world.address, body, &[]).await).unwrap_err();
        assert_eq!(refused.code(), Code::Internal, "{refused}");
    }
    // A length of 4 GiB with nothing behind it.
    let refused = outcome(&grpc(world.address, vec![0, 255, 255, 255, 255], &[]).await).unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    is_well(world.caller()).await;
}

#[tokio::test]
async fn small_bytes_do_not_unfold_into_large_memory() {
    let process = Process::start(&[]);
    is_well(&process.caller()).await;
    let before = process.peak_memory();
    let limit = Limits::default().request_bytes;
    let instances = field(2, &[0x12, 0].repeat(limit / 2 - 16));
    let stop_sequences = field(30, &field(4, &[0x32, 0].repeat(limit / 2 - 32)));
    let aggregation_metrics = field(49, &field(1, &vec![1; limit - 64]));
    let unpacked_aggregation_metrics = field(49, &[0x08, 1].repeat(limit / 2 - 32));
    for request in [instances, stop_sequences, aggregation_metrics, unpacked_aggregation_metrics] {
        let refused = outcome(&grpc(process.address, framed(false, &request), &[]).await).unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert!(refused.message().contains("1000000"), "{refused}");
    }
    // The bytes themselves, and as much again for what the allocator has not given back yet.
    let grown = process.peak_memory() - before;
    assert!(grown < 3 * limit, "{} MiB", grown / MIB);
    is_well(&process.caller()).await;
}

#[tokio::test]
async fn json_inside_a_tool_call_may_be_as_deep_as_the_text_is_long() {
    let world = World::new().start().await;
    let call = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"tool_calls":[{{"name":"f","arguments":{{"a":{open}{close}}}}}]}}"#)
    };
    for depth in [200, 100_000, 4_000_000] {
        let deep = call(depth);
        let valid = world.evaluate(pair("tool_call_valid_input", &deep, "")).await.unwrap();
        assert_eq!(scores(&valid), [1.0], "{depth}");
    }
    let (deep, deeper) = (call(100_000), call(100_001));
    for (prediction, expected) in [(&deep, 1.0), (&deeper, 0.0)] {
        let answer = world.evaluate(pair("tool_parameter_kv_match_input", prediction, &deep)).await.unwrap();
        assert_eq!(scores(&answer), [expected]);
    }
    let trajectory =
        |depth: usize| json!({"tool_calls": [{"tool_name": "f", "tool_input": "[".repeat(depth)}]});
    let request = json!({"trajectory_exact_match_input": {"instances": [
        {"predicted_trajectory": trajectory(1_000_000), "reference_trajectory": trajectory(1_000_000)}]}});
    // Not JSON: compared as text.
    assert_eq!(scores(&world.evaluate(request).await.unwrap()), [1.0]);
}

#[tokio::test]
async fn odd_json_inside_a_tool_call_is_a_score_and_no_error() {
    let world = World::new().start().await;
    let call =
        |argument: &str| format!(r#"{{"tool_calls":[{{"name":"f","arguments":{{"a":{argument}}}}}]}}"#);
    // What is in the grammar of RFC 8259 is a call, what is not is none.
    let texts = [
        (r#""\ud800""#, 1.0),
        (r#""\udc00\ud800""#, 1.0),
        ("NaN", 0.0),
        ("-Infinity", 0.0),
        ("1e999999999", 1.0),
        ("01", 0.0),
        ("\"\u{0}\"", 0.0),
    ];
    for (argument, valid) in texts {
        let text = call(argument);
        for (arm, expected) in [("tool_call_valid_input", valid), ("tool_parameter_kv_match_input", valid)] {
            let answer = world.evaluate(pair(arm, &text, &text)).await.unwrap();
            assert_eq!(scores(&answer), [expected], "{arm} {argument}");
        }
    }
    // Half a surrogate pair equals itself alone.
    let answer =
        world.evaluate(pair("tool_parameter_kv_match_input", &call(r#""\ud800""#), &call(r#""\ufffd""#)));
    assert_eq!(scores(&answer.await.unwrap()), [0.0]);
}

#[tokio::test]
async fn a_refusal_for_a_limit_has_details_of_the_field() {
    let world = World::new().set(|settings| settings.limits.text_bytes = 3).start().await;
    let refused = world.evaluate(exact_match("long", "a")).await.unwrap_err();
    let violations = refused.get_details_bad_request().unwrap().field_violations;
    assert_eq!(violations[0].field, "exact_match_input.instances[0].prediction");
}
