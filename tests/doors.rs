//! Every door gives the same answer: gRPC, REST and the command line, for every arm of the request.
#![cfg(feature = "server")]

mod world;

use std::path::Path;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use rapid_eval::wire::json;
use rapid_eval::wire::v1::EvaluateInstancesRequest;
use serde_json::{Map, Value, json};
use world::http::{Answer, http1};
use world::{Running, World, process};

/// Whom an arm needs for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nobody: it is computed.
    Nobody,
    /// A judge, who gives what `REPLIES` has for its question.
    Judge,
    /// A neural scorer, which no world here has.
    Scorer,
}
use Needs::{Judge, Nobody, Scorer};

/// Every arm. One that is in the schema and not here, or here and no longer there, fails
/// `every_arm_of_the_schema_is_in_the_table`. What a new arm needs beside texts goes into `filled`, and what its judge
/// says into `REPLIES`.
const ARMS: [(&str, Needs); 44] = [
    ("exact_match_input", Nobody),
    ("bleu_input", Nobody),
    ("rouge_input", Nobody),
    ("fluency_input", Judge),
    ("coherence_input", Judge),
    ("summarization_quality_input", Judge),
    ("safety_input", Judge),
    ("groundedness_input", Judge),
    ("question_answering_quality_input", Judge),
    ("fulfillment_input", Judge),
    ("summarization_helpfulness_input", Judge),
    ("summarization_verbosity_input", Judge),
    ("question_answering_relevance_input", Judge),
    ("question_answering_helpfulness_input", Judge),
    ("question_answering_correctness_input", Judge),
    ("tool_call_valid_input", Nobody),
    ("tool_name_match_input", Nobody),
    ("tool_parameter_key_match_input", Nobody),
    ("tool_parameter_kv_match_input", Nobody),
    ("pairwise_summarization_quality_input", Judge),
    ("pairwise_question_answering_quality_input", Judge),
    ("pointwise_metric_input", Judge),
    ("pairwise_metric_input", Judge),
    ("comet_input", Scorer),
    ("metricx_input", Scorer),
    ("trajectory_exact_match_input", Nobody),
    ("trajectory_in_order_match_input", Nobody),
    ("trajectory_any_order_match_input", Nobody),
    ("trajectory_precision_input", Nobody),
    ("trajectory_recall_input", Nobody),
    ("trajectory_single_tool_use_input", Nobody),
    ("rubric_based_instruction_following_input", Judge),
    ("string_check_input", Nobody),
    ("text_similarity_input", Nobody),
    ("label_model_input", Judge),
    ("score_model_input", Judge),
    // Of a string check.
    ("multi_grader_input", Nobody),
    ("keyword_match_input", Nobody),
    ("semantic_similarity_input", Nobody),
    ("compare_meaning_input", Judge),
    ("general_quality_input", Judge),
    ("summarization_accuracy_input", Judge),
    ("summarization_adherence_input", Judge),
    ("summarization_completeness_input", Judge),
];

/// What the judge says, by a part of the form that a question asks for. All scales have a 1; the samples differ, so that
/// confidence and choice of the explanation are no accident.
const REPLIES: &str = r#"
{"when": "\"rubrics\": [", "reply": {"rubrics": ["The answer names the hour.", "The answer is short."]}}
{"when": ["\"verdicts\": [", "attempt to answer"], "reply": {"verdicts": [{"id": 1, "satisfied": true}, {"id": 2, "satisfied": true}, {"id": 3, "satisfied": false}, {"id": 4, "satisfied": true}]}}
{"when": ["\"steps\": [", "the score, a number"], "replies": [{"steps": [], "result": 0.5}, {"steps": [{"description": "Read", "conclusion": "Fair"}], "result": 7}]}
{"when": "\"steps\": [", "replies": [{"steps": [], "result": "other"}, {"steps": [{"description": "Read", "conclusion": "Fair"}], "result": "the passing_labels opens at nine"}]}
{"when": "\"verdicts\": [", "reply": {"verdicts": [{"id": 1, "satisfied": true}, {"id": 2, "satisfied": false}]}}
{"when": "\"choice\": ", "replies": [{"explanation": "Alike.", "choice": "SAME"}, {"explanation": "A.", "choice": "A"}]}
{"when": "\"score\": ", "replies": [{"explanation": "No.", "score": 0}, {"explanation": "A little.", "score": 1}]}
"#;

/// The members of a oneof, from the descriptors.
fn members(message: &str, oneof: &str) -> Vec<FieldDescriptor> {
    let message = json::pool().get_message_by_name(&format!("rapideval.v1.{message}")).unwrap();
    let oneof = message.oneofs().find(|candidate| candidate.name() == oneof).unwrap();
    oneof.fields().collect()
}

/// The arms of the request.
fn arms() -> Vec<FieldDescriptor> {
    members("EvaluateInstancesRequest", "metric_inputs")
}

fn needs_of(arm: &str) -> Needs {
    ARMS.iter().find(|(name, _)| *name == arm).unwrap_or_else(|| panic!("{arm} is not in ARMS")).1
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
            // Settled without a judge, it would hide what the judged way answers.
            (Kind::Message(_), "custom_output_format_config") | (_, "allowed_values") => continue,
            (Kind::Message(entry), _) if field.is_map() => {
                let value = entry.map_entry_value_field().kind();
                json!({"a": filled(value.as_message().unwrap())})
            }
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
            (Kind::String, "operation") => json!("ne"),
            (Kind::String, "evaluation_metric") => json!("meteor"),
            (Kind::String, "calculate_output") => json!("2 * a"),
            (Kind::String, "role") => json!("user"),
            (Kind::String, "reasoning_effort") => json!("low"),
            (Kind::String, "labels") => {
                fields.insert(field.json_name().to_owned(), json!(["the passing_labels opens at nine", "other"]));
                continue;
            }
            (Kind::String, name) => json!(format!("the {name} opens at nine")),
            _ => continue,
        };
        let value = if field.is_list() && !field.is_map() { json!([value]) } else { value };
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

/// The same answer from all doors, `judge` being how the command line is told of it; whether it was one.
async fn the_same_from_all(world: &Running, judge: &[&str], arm: &str, request: &Value) -> bool {
    let good = the_same_from_both(world, arm, request).await;
    let output = process::run(&[judge, &["evaluate", "-"]].concat(), &[], &request.to_string());
    let rest = by_rest(world, request).await;
    assert_eq!(output.status.success(), good, "{arm}: {output:?}");
    if good {
        assert_eq!(String::from_utf8(output.stdout).unwrap(), rest.text(), "{arm}");
    } else {
        let told: Value = serde_json::from_str(rest.text()).unwrap();
        let told = told["error"]["message"].as_str().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("rapid-eval: {told}\n"), "{arm}");
    }
    good
}

/// A world with the judge of `REPLIES`, and the flag for it.
async fn judged(file: &str) -> (Running, String) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    std::fs::write(&path, REPLIES).unwrap();
    let judge = format!("scripted:{}", path.display());
    let settings = judge.parse().unwrap();
    (World::new().set(|all| all.judges.push(settings)).start().await, judge)
}

#[test]
fn every_arm_of_the_schema_is_in_the_table() {
    let mut schema: Vec<String> = arms().iter().map(|arm| arm.name().to_owned()).collect();
    let mut table: Vec<String> = ARMS.iter().map(|(name, _)| (*name).to_owned()).collect();
    schema.sort();
    table.sort();
    assert_eq!(schema, table, "left the schema, right ARMS");
}

#[tokio::test]
async fn every_arm_has_one_answer_at_every_door() {
    let (world, judge) = judged("every_arm.jsonl").await;
    for arm in arms() {
        let answered = the_same_from_all(&world, &["--judge", &judge], arm.name(), &smallest(&arm)).await;
        assert_eq!(answered, needs_of(arm.name()) != Scorer, "{}", arm.name());
    }
}

#[tokio::test]
async fn without_a_judge_every_judged_arm_is_refused_alike_at_every_door() {
    let world = World::new().start().await;
    for arm in arms() {
        let answered = the_same_from_all(&world, &[], arm.name(), &smallest(&arm)).await;
        assert_eq!(answered, needs_of(arm.name()) == Nobody, "{}", arm.name());
    }
}

#[tokio::test]
async fn every_metric_of_the_unified_form_has_one_answer_at_every_door() {
    let (world, judge) = judged("every_metric.jsonl").await;
    // One of each, by hand: most have no texts to fill in.
    let specs = json!({
        "pointwise_metric_spec": {"metric_prompt_template": "Rate {response}"},
        "pairwise_metric_spec": {
            "metric_prompt_template": "Compare {response} with {reference}",
            "candidate_response_field_name": "response",
            "baseline_response_field_name": "reference",
        },
        "exact_match_spec": {},
        "bleu_spec": {},
        "rouge_spec": {"rouge_type": "rougeL"},
        "predefined_metric_spec": {"metric_spec_name": "general_quality_v1"},
        "computation_based_metric_spec": {"type": "EXACT_MATCH"},
        "llm_based_metric_spec": {"metric_prompt_template": "Rate {response}"},
        "custom_code_execution_spec": {"evaluation_function": "def evaluate(instance): return 1"},
    });
    let metrics: Vec<Value> = members("Metric", "metric_spec")
        .iter()
        .map(|spec| json!({(spec.name()): specs.get(spec.name()).unwrap_or_else(|| panic!("{}", spec.name()))}))
        .collect();
    let text = |text: &str| json!({"text": text});
    let instance = json!({"prompt": text("When?"), "response": text("At nine."), "reference": text("It opens at nine.")});
    let request = json!({"metrics": metrics, "instance": instance});
    assert!(the_same_from_all(&world, &["--judge", &judge], "metrics", &request).await);
    let answer: Value = serde_json::from_str(by_rest(&world, &request).await.text()).unwrap();
    let failed: Vec<bool> =
        answer["metricResults"].as_array().unwrap().iter().map(|result| !result["error"].is_null()).collect();
    // Code is never run.
    let is_code = |spec: &FieldDescriptor| spec.name() == "custom_code_execution_spec";
    assert_eq!(failed, members("Metric", "metric_spec").iter().map(is_code).collect::<Vec<_>>(), "{answer}");
}

#[test]
fn the_curl_body_of_googles_page_works_on_the_command_line_too() {
    let output = process::run(&["evaluate", "-"], &[], include_str!("rest/rouge.curl.json"));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["rougeResults"]["rougeMetricValues"].as_array().unwrap().len(), 3);
}
