//! The service as gRPC callers meet it: three names, every arm, errors, health, reflection, gRPC-Web.
#![cfg(feature = "server")]

mod world;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use prost::Message;
use prost_reflect::FieldDescriptor;
use rapid_eval::catalog;
use rapid_eval::wire::json;
use rapid_eval::wire::v1::evaluate_instances_request::MetricInputs;
use rapid_eval::wire::v1::{
    EvaluateDatasetRequest, EvaluateInstancesResponse, GenerateInstanceRubricsRequest,
    GenerateInstanceRubricsResponse, Operation,
};
use serde_json::{Value, json};
use strum::VariantNames;
use tonic::{Code, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_types::StatusExt;
use world::http::{frame_of, frames, http1};
use world::{SERVICES, World, as_json, message, rounded, scores};

/// A request of every computed metric, two instances each, the second worth 0.
fn computed() -> Vec<(Value, f64)> {
    let call = |name: &str, arguments: Value| {
        json!({"content": "", "tool_calls": [{"name": name, "arguments": arguments}]}).to_string()
    };
    let none = "Sure, I will book it.";
    let oslo = call("book", json!({"city": "Oslo", "nights": 2}));
    let rome = call("book", json!({"city": "Rome", "nights": 2}));
    let city = call("book", json!({"city": "Oslo"}));
    let other = call("cancel", json!({}));
    let pairs = |arm: &str, spec: Value, pairs: [[&str; 2]; 2]| {
        let instances =
            pairs.map(|[prediction, reference]| json!({"prediction": prediction, "reference": reference}));
        json!({arm: {"metric_spec": spec, "instances": instances}})
    };
    let calls = |names: &str| {
        let calls: Vec<Value> =
            names.chars().map(|name| json!({"tool_name": name, "tool_input": "{}"})).collect();
        json!({"tool_calls": calls})
    };
    let trajectories = |arm: &str, spec: Value, pairs: [[&str; 2]; 2]| {
        let instances = pairs.map(|[predicted, reference]| {
            if reference.is_empty() {
                return json!({"predicted_trajectory": calls(predicted)});
            }
            json!({"predicted_trajectory": calls(predicted), "reference_trajectory": calls(reference)})
        });
        json!({arm: {"metric_spec": spec, "instances": instances}})
    };
    vec![
        (pairs("exact_match_input", json!({}), [["Rome", "Rome"], ["Rome", "Paris"]]), 1.0),
        (pairs("bleu_input", json!({}), [["a b c d e", "a b c d e"], ["red", "blue"]]), 1.0),
        // Precision 2/2, recall 2/3: F = 2 · 2/3 / (5/3) = 0.8.
        (
            pairs(
                "rouge_input",
                json!({"rouge_type": "rougeL"}),
                [["the cat", "the cat sat"], ["cat", "dog"]],
            ),
            0.8,
        ),
        (pairs("tool_call_valid_input", json!({}), [[&oslo, &oslo], [none, &oslo]]), 1.0),
        (pairs("tool_name_match_input", json!({}), [[&oslo, &rome], [&other, &oslo]]), 1.0),
        // One name of two.
        (pairs("tool_parameter_key_match_input", json!({}), [[&city, &oslo], [none, &oslo]]), 0.5),
        // `nights` of two.
        (pairs("tool_parameter_kv_match_input", json!({}), [[&rome, &oslo], [none, &oslo]]), 0.5),
        (trajectories("trajectory_exact_match_input", json!({}), [["ab", "ab"], ["ba", "ab"]]), 1.0),
        (trajectories("trajectory_in_order_match_input", json!({}), [["axb", "ab"], ["ba", "ab"]]), 1.0),
        (trajectories("trajectory_any_order_match_input", json!({}), [["ba", "ab"], ["a", "ab"]]), 1.0),
        (trajectories("trajectory_precision_input", json!({}), [["ax", "ab"], ["x", "ab"]]), 0.5),
        (trajectories("trajectory_recall_input", json!({}), [["a", "ab"], ["x", "ab"]]), 0.5),
        (
            trajectories(
                "trajectory_single_tool_use_input",
                json!({"tool_name": "a"}),
                [["xa", ""], ["x", ""]],
            ),
            1.0,
        ),
        (
            rows(
                "string_check_input",
                json!({"operation": "like"}),
                [["Rome, Italy", "Rome"], ["Oslo", "Rome"]],
            ),
            1.0,
        ),
        // 2 · 1 common letter / 3 letters.
        (
            rows(
                "text_similarity_input",
                json!({"evaluation_metric": "fuzzy_match"}),
                [["a", "ab"], ["a", "b"]],
            ),
            2.0 / 3.0,
        ),
        (
            json!({"keyword_match_input": {"instances": [
                {"prediction": "A refund is due.", "keywords": ["refund", "voucher"]},
                {"prediction": "No.", "keywords": ["refund"]}]}}),
            0.5,
        ),
        // One word of one in common with one of two: 1 / (1 · √2).
        (pairs("semantic_similarity_input", json!({}), [["cat", "the cat"], ["cat", "dog"]]), 0.5_f64.sqrt()),
    ]
}

/// A grader's input whose templates read each pair from its row.
fn rows(arm: &str, mut spec: Value, pairs: [[&str; 2]; 2]) -> Value {
    spec["input"] = json!("{{ sample.output_text }}");
    spec["reference"] = json!("{{item.truth}}");
    let instances =
        pairs.map(|[output, truth]| json!({"item": {"truth": truth}, "sample": {"output_text": output}}));
    json!({arm: {"metric_spec": spec, "instances": instances}})
}

fn rouge(rouge_type: &str, prediction: &str, reference: &str) -> Value {
    json!({"rouge_input": {"metric_spec": {"rouge_type": rouge_type},
        "instances": [{"prediction": prediction, "reference": reference}]}})
}

fn exact_match(instances: Value) -> Value {
    json!({"exact_match_input": {"instances": instances}})
}

/// The fields that a refusal is about.
fn fields(status: &Status) -> Vec<String> {
    let violations = status.get_details_bad_request().map(|bad| bad.field_violations).unwrap_or_default();
    violations.into_iter().map(|violation| violation.field).collect()
}

#[test]
fn the_table_of_this_file_has_every_computed_metric() {
    let mut here: Vec<String> = computed()
        .iter()
        .map(|(request, _)| request.as_object().unwrap().keys().next().unwrap().clone())
        .collect();
    let mut listed: Vec<String> =
        catalog::COMPUTED.iter().map(|metric| format!("{}_input", metric.name)).collect();
    here.sort();
    listed.sort();
    assert_eq!(here, listed);
}

#[tokio::test]
async fn every_computed_metric_answers_alike_under_all_three_names() {
    let world = World::new().start().await;
    for (request, first) in computed() {
        for service in SERVICES {
            let answer = world.caller().evaluate_as(service, message(&request)).await;
            let answer = answer.unwrap_or_else(|status| panic!("{service} {request}: {status}")).into_inner();
            // `scores` panics where a score is not set: the 0 is on the wire.
            assert_eq!(rounded(&scores(&answer)), rounded(&[first, 0.0]), "{service} {request}");
        }
    }
}

#[tokio::test]
async fn an_answer_has_one_value_per_instance_in_order() {
    let world = World::new().start().await;
    let instances: Vec<Value> = (0..1000)
        .map(|number| json!({"prediction": format!("{number}"), "reference": format!("{}", number / 3 * 3)}))
        .collect();
    let answer = world.evaluate(exact_match(json!(instances))).await.unwrap();
    let expected: Vec<f64> = (0..1000).map(|number| if number % 3 == 0 { 1.0 } else { 0.0 }).collect();
    assert_eq!(scores(&answer), expected);
}

#[tokio::test]
async fn an_empty_text_is_scored_and_an_absent_one_is_refused_by_name() {
    let world = World::new().start().await;
    let empty = world.evaluate(exact_match(json!([{"prediction": "", "reference": ""}]))).await.unwrap();
    assert_eq!(scores(&empty), [1.0]);

    let absent = exact_match(json!([{"prediction": "", "reference": ""}, {"prediction": "x"}]));
    let refused = world.evaluate(absent).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(fields(&refused), ["exact_match_input.instances[1].reference"]);
    assert!(refused.message().starts_with("exact_match_input.instances[1].reference: "), "{refused}");
}

#[tokio::test]
async fn what_is_wrong_is_named_by_its_field() {
    let world = World::new().start().await;
    let pair = json!([{"prediction": "a", "reference": "a"}]);
    let trajectory = json!({"tool_calls": [{"tool_name": "a"}]});
    let wrong = [
        (json!({}), "metric_inputs"),
        (rouge("rougeX", "a", "a"), "rouge_input.metric_spec.rouge_type"),
        (rouge("rouge0", "a", "a"), "rouge_input.metric_spec.rouge_type"),
        (
            json!({"rouge_input": {"metric_spec": {"tokenizer": 77}, "instances": pair}}),
            "rouge_input.metric_spec.tokenizer",
        ),
        (
            json!({"rouge_input": {"metric_spec": {"use_stemmer": true, "language": "klingon"}, "instances": pair}}),
            "rouge_input.metric_spec.language",
        ),
        (
            json!({"bleu_input": {"metric_spec": {"tokenizer": 77}, "instances": pair}}),
            "bleu_input.metric_spec.tokenizer",
        ),
        (
            json!({"bleu_input": {"metric_spec": {"max_order": 9}, "instances": pair}}),
            "bleu_input.metric_spec.max_order",
        ),
        (
            json!({"bleu_input": {"metric_spec": {"max_order": 0}, "instances": pair}}),
            "bleu_input.metric_spec.max_order",
        ),
        (
            json!({"exact_match_input": {"metric_spec": {"unicode_normalization": -1}, "instances": pair}}),
            "exact_match_input.metric_spec.unicode_normalization",
        ),
        (
            json!({"trajectory_single_tool_use_input": {"instances": [{"predicted_trajectory": trajectory}]}}),
            "trajectory_single_tool_use_input.metric_spec.tool_name",
        ),
        (
            json!({"trajectory_recall_input": {"instances": [{"predicted_trajectory": trajectory}]}}),
            "trajectory_recall_input.instances[0].reference_trajectory",
        ),
        (
            json!({"trajectory_recall_input": {"instances": [
                {"reference_trajectory": {"tool_calls": [{"tool_name": "a"}, {"tool_input": "{}"}]}}]}}),
            "trajectory_recall_input.instances[0].reference_trajectory.tool_calls[1].tool_name",
        ),
        (json!({"exact_match_input": {"instances": pair}, "metrics": [{"exact_match_spec": {}}]}), "metrics"),
        (json!({"metrics": [{"exact_match_spec": {}}]}), "instance"),
    ];
    for (request, field) in wrong {
        let refused = world.evaluate(request.clone()).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{request}: {refused}");
        assert_eq!(fields(&refused), [field], "{request}: {refused}");
    }
}

#[tokio::test]
async fn no_instances_are_refused_whatever_the_metric() {
    let world = World::new().start().await;
    for (mut request, _) in computed() {
        let (arm, input) = request.as_object_mut().unwrap().iter_mut().next().unwrap();
        let arm = arm.clone();
        input["instances"] = json!([]);
        let refused = world.evaluate(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert_eq!(fields(&refused), [format!("{arm}.instances")]);
    }
}

#[tokio::test]
async fn a_predicted_trajectory_that_is_not_set_is_an_empty_one() {
    let world = World::new().start().await;
    let request = json!({"trajectory_recall_input": {"instances": [
        {"reference_trajectory": {"tool_calls": [{"tool_name": "a"}]}}, {"reference_trajectory": {}}]}});
    assert_eq!(scores(&world.evaluate(request).await.unwrap()), [0.0, 1.0]);
}

/// An input of an arm that is not computed, with all that it needs.
fn uncomputed(arm: &str) -> Value {
    let texts = json!({"prompt": "Where?", "response": "Here.", "baseline": "There."}).to_string();
    match arm {
        "pointwise_metric_input" => json!({
            "metric_spec": {"metric_prompt_template": "Rate {response}"}, "instance": {"json_instance": texts}}),
        "pairwise_metric_input" => json!({
            "metric_spec": {"metric_prompt_template": "Compare {response} with {baseline}",
                "candidate_response_field_name": "response", "baseline_response_field_name": "baseline"},
            "instance": {"json_instance": texts}}),
        "rubric_based_instruction_following_input" => json!({"instance": {"json_instance": texts}}),
        "label_model_input" => json!({
            "metric_spec": {"input": [{"content": "Good?"}], "labels": ["yes", "no"]}, "instance": {}}),
        "score_model_input" => json!({"metric_spec": {"input": [{"content": "How good?"}]}, "instance": {}}),
        "multi_grader_input" => json!({"metric_spec": {"calculate_output": "a",
            "graders": {"a": {"score_model": {"input": [{"content": "How good?"}]}}}}, "instance": {}}),
        _ if arm.starts_with("summarization_a") || arm == "summarization_completeness_input" => json!({
            "instance": {"transcript": [{"text": "Hello."}],
                "sections": [{"definition": "Say who calls.", "summary": "Nobody."}]}}),
        // Texts, each with its own field.
        _ => {
            let message = |field: FieldDescriptor| field.kind().as_message().unwrap().clone();
            let request = json::pool().get_message_by_name("rapideval.v1.EvaluateInstancesRequest").unwrap();
            let input = message(request.get_field_by_name(arm).unwrap());
            let instance = message(input.get_field_by_name("instance").unwrap());
            let texts = instance.fields().map(|field| (field.name().to_owned(), json!("a text")));
            json!({"instance": texts.collect::<serde_json::Map<_, _>>()})
        }
    }
}

#[tokio::test]
async fn every_other_arm_says_what_it_lacks() {
    let world = World::new().start().await;
    let computed: Vec<String> =
        catalog::COMPUTED.iter().map(|metric| format!("{}_input", metric.name)).collect();
    for arm in MetricInputs::VARIANTS.iter().filter(|arm| !computed.contains(&(**arm).to_owned())) {
        let refused = world.evaluate(json!({*arm: uncomputed(arm)})).await.unwrap_err();
        let (code, word) = match *arm {
            "comet_input" | "metricx_input" => (Code::Unimplemented, "scorer"),
            _ => (Code::FailedPrecondition, "judge"),
        };
        assert_eq!(refused.code(), code, "{arm}: {refused}");
        assert!(refused.message().contains(word), "{arm}: {refused}");
    }
}

#[tokio::test]
async fn methods_that_need_more_than_this_service_has_say_so() {
    let world = World::new().start().await;
    for service in &SERVICES[..2] {
        let dataset = tonic::Request::new(EvaluateDatasetRequest::default());
        let refused =
            world.caller().call::<_, Operation>(service, "EvaluateDataset", dataset).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented);
        assert!(refused.message().contains("EvaluateInstances"), "{refused}");

        let rubrics = tonic::Request::new(GenerateInstanceRubricsRequest::default());
        let refused = world.caller().call::<_, GenerateInstanceRubricsResponse>(
            service,
            "GenerateInstanceRubrics",
            rubrics,
        );
        assert_eq!(refused.await.unwrap_err().code(), Code::FailedPrecondition);
    }
    // Google's v1 has neither method.
    let dataset = tonic::Request::new(EvaluateDatasetRequest::default());
    let refused =
        world.caller().call::<_, Operation>(SERVICES[2], "EvaluateDataset", dataset).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
}

#[tokio::test]
async fn an_unknown_service_is_answered_with_the_names_there_are() {
    let world = World::new().start().await;
    let refused =
        world.caller().evaluate_as("some.Service", message(&rouge("", "a", "a"))).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    for name in SERVICES {
        assert!(refused.message().contains(name), "{refused}");
    }
}

#[tokio::test]
async fn in_the_unified_form_a_metric_that_fails_hurts_no_other() {
    let world = World::new().start().await;
    let request = json!({
        "instance": {"response": {"text": "the cat"}, "reference": {"text": "the cat sat"}},
        "metrics": [
            {"rouge_spec": {"rouge_type": "rougeL"}},
            {"rouge_spec": {"rouge_type": "rougeX"}},
            {"exact_match_spec": {}},
            {"custom_code_execution_spec": {"evaluation_function": "def evaluate(instance): return 1"}},
            {"pointwise_metric_spec": {"metric_prompt_template": "Rate {response}"}},
            {"computation_based_metric_spec": {"type": "ROUGE", "parameters": {"rouge_type": "rouge2"}}},
            {"computation_based_metric_spec": {"type": "ROUGE", "parameters": {"rouge_tipe": "rouge2"}}},
            {},
        ],
        "metric_sources": [{"metric": {"exact_match_spec": {}}}, {"metric_resource_name": "metrics/1"}, {}],
    });
    let answer = world.evaluate(request).await.unwrap();
    let found: Vec<(Option<f32>, Option<Code>)> = answer
        .metric_results
        .iter()
        .map(|result| (result.score, result.error.as_ref().map(|error| Code::from(error.code))))
        .collect();
    assert_eq!(
        found,
        [
            (Some(0.8), None),
            (None, Some(Code::InvalidArgument)),
            (Some(0.0), None),
            (None, Some(Code::Unimplemented)),
            (None, Some(Code::FailedPrecondition)),
            // One bigram of one, out of two: F = 2 · 1/2 / (3/2).
            (Some(2.0 / 3.0), None),
            (None, Some(Code::InvalidArgument)),
            (None, Some(Code::InvalidArgument)),
            (Some(0.0), None),
            (None, Some(Code::NotFound)),
            (None, Some(Code::InvalidArgument)),
        ]
    );
    let words = |index: usize| answer.metric_results[index].error.as_ref().unwrap().message.clone();
    assert!(words(1).starts_with("metrics[1].") && words(1).contains("rouge_type"), "{}", words(1));
    assert!(words(6).starts_with("metrics[6].") && words(6).contains("rouge_tipe"), "{}", words(6));
    assert!(words(10).starts_with("metric_sources[2]"), "{}", words(10));
}

#[tokio::test]
async fn the_error_of_one_metric_in_the_unified_form_has_details_too() {
    let world = World::new().start().await;
    let request = json!({
        "instance": {"response": {"text": "a"}},
        "metrics": [{"exact_match_spec": {}}],
    });
    let answer = world.evaluate(request).await.unwrap();
    let error = answer.metric_results[0].error.as_ref().unwrap();
    assert!(error.message.contains("instance.reference"), "{error:?}");
    assert_eq!(error.details[0].type_url, "type.googleapis.com/google.rpc.BadRequest");
}

#[tokio::test]
async fn details_come_only_when_asked_for() {
    let world = World::new().start().await;
    let mut request = rouge("rougeL", "the cat", "the cat sat");
    let plain = as_json(&world.evaluate(request.clone()).await.unwrap());
    assert_eq!(plain, json!({"rougeResults": {"rougeMetricValues": [{"score": 0.8}]}}));

    request["include_details"] = json!(true);
    let detailed = as_json(&world.evaluate(request).await.unwrap());
    let details = &detailed["rougeResults"]["rougeMetricValues"][0]["details"];
    assert_eq!(details["precision"], json!(1.0));
    assert_eq!(details["recall"], json!(2.0 / 3.0));
    assert_eq!(
        [&details["matches"], &details["predictionUnits"], &details["referenceUnits"]],
        ["2", "2", "3"]
    );

    for (mut request, _) in computed() {
        request["include_details"] = json!(true);
        let answer = world.evaluate(request.clone()).await.unwrap();
        // Metrics of 0 or 1 have nothing more to tell.
        let telling = ["bleu", "rouge", "tool_parameter", "trajectory_precision", "trajectory_recall"];
        let tells =
            telling.iter().any(|name| request.as_object().unwrap().keys().any(|arm| arm.starts_with(name)));
        assert_eq!(as_json(&answer).to_string().contains("details"), tells, "{request}");
    }
}

#[tokio::test]
async fn health_is_told_for_the_whole_and_for_each_name() {
    let world = World::new().start().await;
    for name in SERVICES.into_iter().chain([""]) {
        assert_eq!(world.caller().health(name).await.unwrap(), ServingStatus::Serving, "{name:?}");
    }
    assert_eq!(world.caller().health("some.Service").await.unwrap_err().code(), Code::NotFound);
    let admin = world.admin.unwrap();
    for (path, status) in [("/livez", 200), ("/readyz", 200), ("/", 404)] {
        assert_eq!(world::http::get(admin, path).await.status, status, "{path}");
    }
}

/// The two versions of reflection differ in their package only.
macro_rules! reflection {
    ($world:expr, $version:ident) => {{
        use tonic_reflection::pb::$version::ServerReflectionRequest;
        use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
        use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
        use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;

        let mut client = ServerReflectionClient::new($world.caller().channel());
        let mut ask = async |question: MessageRequest| {
            let request = ServerReflectionRequest { message_request: Some(question), ..Default::default() };
            let answers = client.server_reflection_info(tokio_stream::iter([request])).await.unwrap();
            answers.into_inner().message().await.unwrap().unwrap().message_response.unwrap()
        };
        let MessageResponse::ListServicesResponse(list) =
            ask(MessageRequest::ListServices(String::new())).await
        else {
            panic!("no list")
        };
        let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
        for name in SERVICES.into_iter().chain(["grpc.health.v1.Health"]) {
            assert!(names.contains(&name.to_owned()), "{name} is not in {names:?}");
            let symbol = match name.strip_suffix(".EvaluationService") {
                Some(package) => format!("{package}.EvaluateInstancesRequest"),
                None => name.to_owned(),
            };
            let described = ask(MessageRequest::FileContainingSymbol(symbol.clone())).await;
            assert!(
                matches!(described, MessageResponse::FileDescriptorResponse(_)),
                "{symbol}: {described:?}"
            );
        }
    }};
}

#[tokio::test]
async fn reflection_lists_all_names_in_both_versions() {
    let world = World::new().start().await;
    reflection!(world, v1);
    reflection!(world, v1alpha);
}

#[tokio::test]
async fn reflection_can_be_closed() {
    let world = World::new().set(|settings| settings.server.reflection = false).start().await;
    let client = tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(
        world.caller().channel(),
    );
    let request = tonic_reflection::pb::v1::ServerReflectionRequest::default();
    let refused = { client }.server_reflection_info(tokio_stream::iter([request])).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
}

/// A body of gRPC-Web: the answer, then the trailers as text.
fn read_web(body: &[u8]) -> (Option<EvaluateInstancesResponse>, String) {
    let (mut answer, mut trailers) = (None, String::new());
    for (flag, content) in frames(body) {
        match flag {
            0 => answer = Some(EvaluateInstancesResponse::decode(content).unwrap()),
            0x80 => trailers += std::str::from_utf8(content).unwrap(),
            other => panic!("a frame with the flag {other}"),
        }
    }
    (answer, trailers)
}

fn web_request(service: &str, form: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post(format!("/{service}/EvaluateInstances"))
        .header("host", "localhost")
        .header("content-type", form)
        .header("accept", form)
        .header("x-grpc-web", "1")
        .body(Full::new(body.into()))
        .unwrap()
}

#[tokio::test]
async fn browsers_are_answered_in_both_forms_of_grpc_web() {
    let world = World::new().start().await;
    let body = frame_of(&message(&rouge("rougeL", "the cat", "the cat sat")));
    for service in SERVICES {
        let answer =
            http1(world.address, web_request(service, "application/grpc-web+proto", body.clone())).await;
        assert_eq!(answer.status, 200);
        let (response, trailers) = read_web(&answer.body);
        assert_eq!(rounded(&scores(&response.unwrap())), rounded(&[0.8]));
        assert!(trailers.contains("grpc-status:0"), "{trailers}");

        let answer = http1(
            world.address,
            web_request(service, "application/grpc-web-text+proto", BASE64.encode(&body)),
        )
        .await;
        assert_eq!(answer.status, 200);
        let (response, trailers) = read_web(&decoded(answer.text()));
        assert_eq!(rounded(&scores(&response.unwrap())), rounded(&[0.8]));
        assert!(trailers.contains("grpc-status:0"), "{trailers}");
    }
}

/// Base64 whose pieces may each be padded, as a body in several chunks is.
fn decoded(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(4).flat_map(|four| BASE64.decode(four).unwrap()).collect()
}

#[tokio::test]
async fn browsers_learn_what_is_wrong() {
    let world = World::new().start().await;
    let body = frame_of(&message(&rouge("rougeX", "a", "a")));
    let answer = http1(world.address, web_request(SERVICES[0], "application/grpc-web+proto", body)).await;
    assert_eq!(answer.status, 200);
    let told = match answer.headers.get("grpc-status") {
        Some(status) => format!("grpc-status:{}", status.to_str().unwrap()),
        None => read_web(&answer.body).1,
    };
    assert!(told.contains("grpc-status:3"), "{told}");
}

#[tokio::test]
async fn plain_http_on_the_callers_port_is_told_what_the_port_speaks() {
    let world = World::new().start().await;
    let answer = world::http::get(world.address, "/nowhere").await;
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("/openapi.json"), "{}", answer.text());
}

#[tokio::test]
async fn who_compresses_requests_gets_compressed_answers() {
    let world = World::new().start().await;
    let instances = vec![json!({"prediction": "the cat sat", "reference": "the cat sat"}); 1000];
    let (answer, compressed) = world.caller().evaluate_in_gzip(exact_match(json!(instances))).await.unwrap();
    assert_eq!(scores(&answer), vec![1.0; 1000]);
    assert!(compressed);
}
