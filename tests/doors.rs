//! Every door gives the same answer: gRPC, REST and the command line, for every arm of the request.
#![cfg(feature = "server")]

mod world;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use rapid_eval::wire::json;
use rapid_eval::wire::v1::EvaluateInstancesRequest;
use serde_json::{Map, Value, json};
use world::http::{Answer, http1};
use world::{Running, World, process};

/// Arms that ask a judge, beside those with `quality` in their names.
const JUDGED: [&str; 12] = [
    "fluency_input",
    "coherence_input",
    "safety_input",
    "groundedness_input",
    "fulfillment_input",
    "summarization_helpfulness_input",
    "summarization_verbosity_input",
    "question_answering_relevance_input",
    "question_answering_helpfulness_input",
    "question_answering_correctness_input",
    "pointwise_metric_input",
    "pairwise_metric_input",
];

/// The arms of the request, from the descriptors.
fn arms() -> Vec<FieldDescriptor> {
    let request = json::pool().get_message_by_name("rapideval.v1.EvaluateInstancesRequest").unwrap();
    let inputs = request.oneofs().find(|oneof| oneof.name() == "metric_inputs").unwrap();
    inputs.fields().collect()
}

/// A small valid request of an arm: its texts set, its lists with one entry.
fn smallest(arm: &FieldDescriptor) -> Value {
    let input = arm.kind().as_message().cloned().unwrap();
    json!({(arm.json_name()): filled(&input)})
}

fn filled(message: &MessageDescriptor) -> Value {
    let mut fields = Map::new();
    for field in message.fields() {
        let first_of_its_oneof = match field.containing_oneof() {
            Some(oneof) if !oneof.is_synthetic() => oneof.fields().next().as_ref() == Some(&field),
            _ => true,
        };
        if field.number() >= 1000 || !first_of_its_oneof {
            continue;
        }
        let value = match (field.kind(), field.name()) {
            (Kind::Message(_), "custom_output_format_config") => continue,
            (Kind::Message(inside), _) if inside.full_name().starts_with("rapideval.") => filled(&inside),
            (Kind::String, "json_instance") => json!(
                json!({"response": "It opens at nine.", "baseline_model_response": "At nine.", "prompt": "When?"})
                    .to_string()
            ),
            (Kind::String, "metric_prompt_template") => json!("Compare {response} with {baseline_model_response}"),
            (Kind::String, "rouge_type") => json!("rougeL"),
            (Kind::String, "tool_input") => json!("{\"city\": \"Rome\"}"),
            (Kind::String, "candidate_response_field_name") => json!("response"),
            (Kind::String, "baseline_response_field_name") => json!("baseline_model_response"),
            (Kind::String, "source_language" | "target_language") => json!("en"),
            (Kind::String, name) => json!(format!("the {name} opens at nine")),
            _ => continue,
        };
        let value = if field.is_list() { json!([value]) } else { value };
        fields.insert(field.json_name().to_owned(), value);
    }
    Value::Object(fields)
}

async fn by_rest(world: &Running, request: &Value) -> Answer {
    let request = Request::post("/v1beta1/projects/p/locations/l:evaluateInstances")
        .header("host", world.address.to_string())
        .body(Full::new(Bytes::from(request.to_string())))
        .unwrap();
    http1(world.address, request).await
}

/// The same answer from gRPC and REST; whether it was one.
async fn the_same_from_both(world: &Running, arm: &str, request: &Value) -> bool {
    let rest = by_rest(world, request).await;
    let message: EvaluateInstancesRequest = json::read(&request.to_string()).unwrap();
    match world.caller().evaluate_as(world::SERVICES[0], message).await {
        Ok(response) => {
            let written = json::write(response.get_ref()).unwrap();
            assert_eq!(rest.text().strip_suffix('\n'), Some(written.as_str()), "{arm}");
            true
        }
        Err(status) => {
            let body: Value = serde_json::from_str(rest.text()).unwrap();
            assert_eq!(body["error"]["message"], status.message(), "{arm}");
            let code = body["error"]["status"].as_str().unwrap().replace('_', "").to_lowercase();
            assert_eq!(code, format!("{:?}", status.code()).to_lowercase(), "{arm}");
            false
        }
    }
}

#[tokio::test]
async fn every_arm_has_one_answer_at_every_door() {
    let world = World::new().start().await;
    let mut answered = 0;
    for arm in arms() {
        let request = smallest(&arm);
        let good = the_same_from_both(&world, arm.name(), &request).await;
        let output = process::run(&["evaluate", "-"], &[], &request.to_string());
        let rest = by_rest(&world, &request).await;
        assert_eq!(output.status.success(), good, "{}: {output:?}", arm.name());
        if good {
            assert_eq!(String::from_utf8(output.stdout).unwrap(), rest.text(), "{}", arm.name());
            answered += 1;
        } else {
            let told: Value = serde_json::from_str(rest.text()).unwrap();
            let told = told["error"]["message"].as_str().unwrap();
            assert_eq!(
                String::from_utf8(output.stderr).unwrap(),
                format!("rapid-eval: {told}\n"),
                "{}",
                arm.name()
            );
        }
    }
    // Exact match, BLEU, ROUGE, four of tools, six of trajectories need nobody else.
    assert!(answered >= 13, "{answered}");
}

#[tokio::test]
async fn every_judged_arm_has_one_answer_by_grpc_and_rest() {
    let pairwise = |arm: &str| arm.starts_with("pairwise_");
    // These ask others, or ask the judge for rubrics.
    let others = ["comet_input", "metricx_input", "rubric_based_instruction_following_input"];
    for (reply, is_pairwise) in [
        (json!({"explanation": "e", "score": 1}), false),
        (json!({"explanation": "e", "choice": "SAME"}), true),
    ] {
        let (world, _) = World::new().judge_replies([reply.to_string().as_str()]).await;
        let world = world.start().await;
        for arm in arms() {
            let name = arm.name();
            let answered = the_same_from_both(&world, name, &smallest(&arm)).await;
            let judged = name.contains("quality") || JUDGED.contains(&name);
            let expected = !others.contains(&name) && (!judged || pairwise(name) == is_pairwise);
            assert_eq!(answered, expected, "{name}");
        }
    }
}

#[test]
fn the_curl_body_of_googles_page_works_on_the_command_line_too() {
    let output = process::run(&["evaluate", "-"], &[], include_str!("rest/rouge.curl.json"));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["rougeResults"]["rougeMetricValues"].as_array().unwrap().len(), 3);
}
