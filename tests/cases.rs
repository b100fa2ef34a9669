//! Cases from the field (`vectors/cases/README.md`) and scores that Vertex AI returned, through gRPC.
//!
//! What a case only describes in words is checked by a test of its own:
//!
//! | case | test |
//! |---|---|
//! | 051 messages over 4 MiB | limits.rs: `five_mebibytes_pass_with_the_limits_that_ship`, `the_limit_of_a_message_is_a_setting` |
//! | 053 both versions of reflection | grpc.rs: `reflection_lists_all_names_in_both_versions` |
//! | 054 health by name and without | grpc.rs: `health_is_told_for_the_whole_and_for_each_name` |
//! | 055 idle connections at SIGTERM | shutdown.rs: `idle_connections_do_not_delay_the_end` |
//! | 057 long texts hold up others | overload.rs: `long_texts_hold_up_neither_small_calls_nor_health` |
//! | 058 compressed messages | limits.rs: `compressed_bytes_count_unpacked_and_never_fill_memory`, `a_compressed_message_within_the_limit_is_answered` |
//! | 060 keepalive pings | shutdown.rs: `keepalive_pings_without_calls_are_welcome` |
//! | 061 age of connections | shutdown.rs: `connections_that_grow_old_are_replaced_without_a_failed_call` |
#![cfg(feature = "server")]

mod vectors;
mod world;

use rapid_eval::wire::v1::EvaluateInstancesResponse;
use serde_json::{Value, json};
use tonic::{Code, Status};
use vectors::{field, steps};
use world::{Running, SERVICES, World, as_json, message, scores};

/// Files of [`vectors`] whose requests are answered without a judge.
const FILES: [&str; 7] = ["rouge", "bleu", "exact_match", "tool_call", "trajectory", "wire", "server"];

#[tokio::test]
async fn field_cases_hold_under_every_name_that_has_their_metric() {
    let world = World::new().start().await;
    let mut checked = 0;
    for file in FILES {
        for step in steps(&format!("cases/{file}.jsonl")) {
            if step["api"].is_null() {
                // Not about an answer; in the table above.
                continue;
            }
            for service in services(&step) {
                let answer = world.caller().evaluate_as(service, message(&step["request"])).await;
                check(&step, answer.map(tonic::Response::into_inner));
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked}");
}

/// Our own name and the published ones that the case names.
fn services(step: &Value) -> Vec<&'static str> {
    let published: Vec<&str> = field(step, "api").split(", ").collect();
    let named =
        |service: &str| published.iter().any(|version| service.split('.').any(|part| part == *version));
    let named: Vec<&str> =
        SERVICES.into_iter().filter(|service| *service == SERVICES[0] || named(service)).collect();
    assert!(named.len() > published.len(), "{step}");
    named
}

fn check(step: &Value, answer: Result<EvaluateInstancesResponse, Status>) {
    let (id, expect) = (&step["id"], &step["expect"]);
    if let Some(error) = expect.get("error") {
        let refused = answer.expect_err(field(step, "id"));
        assert_eq!(
            format!("{:?}", refused.code()),
            camel_case(field(error, "code"), true),
            "{id}: {refused}"
        );
        for piece in error["message_mentions"].as_array().into_iter().flatten() {
            assert!(refused.message().contains(piece.as_str().unwrap()), "{id}: {refused}");
        }
        if let Some(most) = error["message_max_bytes"].as_u64() {
            assert!(refused.message().len() as u64 <= most, "{id}: {} bytes", refused.message().len());
        }
        return;
    }
    let answer = answer.unwrap_or_else(|status| panic!("{id}: {status}"));
    for path in expect["present"].as_array().into_iter().flatten() {
        let path =
            camel_case(path.as_str().unwrap(), false).replace('[', "/").replace(']', "").replace('.', "/");
        let json = as_json(&answer);
        assert!(json.pointer(&format!("/{path}")).is_some(), "{id}: no {path} in {json}");
    }
    let found = scores(&answer);
    let Some(expected) = expect["scores"].as_array() else { return };
    assert_eq!(found.len(), expected.len(), "{id}");
    let tolerance = expect["tol"].as_f64().unwrap();
    let also = expect["also"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (found, expected) in found.iter().zip(expected) {
        let close =
            |expected: &Value| expected.as_f64().is_none_or(|expected| (found - expected).abs() <= tolerance);
        assert!(close(expected) || also.iter().any(close), "{id}: {found}, not {expected}");
    }
}

/// `INVALID_ARGUMENT` as `InvalidArgument`, `exact_match_results` as `exactMatchResults`.
fn camel_case(name: &str, mut upper: bool) -> String {
    let mut camel = String::new();
    for letter in name.chars() {
        if letter == '_' {
            upper = true;
        } else {
            let letter = if upper { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
            camel.push(letter);
            upper = false;
        }
    }
    camel
}

#[tokio::test]
async fn scores_are_those_that_vertex_returned_for_the_same_texts() {
    let known = include_str!("clients/known_vertex_scores.json");
    let known: Value = serde_json::from_str(known).unwrap();
    let world = World::new().start().await;
    let mut checked = 0;
    for case in known["cases"].as_array().unwrap() {
        let texts: Vec<[&Value; 2]> = if let Some(pairs) = case["pairs"].as_array() {
            pairs.iter().map(|pair| [&pair[0], &pair[1]]).collect()
        } else if let Some(predictions) = case["predictions"].as_array() {
            predictions.iter().map(|prediction| [prediction, &case["reference"]]).collect()
        } else {
            // COMET and MetricX, which are not computed here.
            continue;
        };
        for (metric, recorded) in case["recorded"].as_object().unwrap() {
            let (arm, spec) = match metric.as_str() {
                "exact_match" => ("exact_match_input", json!({})),
                "bleu (BleuSpec{})" => ("bleu_input", json!({})),
                "rouge (RougeSpec{}: no rouge_type)" => ("rouge_input", json!({})),
                rouge_type => ("rouge_input", json!({"rouge_type": rouge_type})),
            };
            let found = evaluate(&world, arm, &spec, &texts).await;
            compare(recorded, &found, metric);
            checked += 1;
        }
    }
    assert_eq!(checked, 7);
}

async fn evaluate(world: &Running, arm: &str, spec: &Value, texts: &[[&Value; 2]]) -> Vec<f64> {
    let instances: Vec<Value> = texts
        .iter()
        .map(|[prediction, reference]| json!({"prediction": prediction, "reference": reference}))
        .collect();
    scores(&world.evaluate(json!({arm: {"metric_spec": spec, "instances": instances}})).await.unwrap())
}

/// Scores were recorded with six decimals; mean and standard deviation in full, of what a `float` is in JSON.
fn compare(recorded: &Value, found: &[f64], metric: &str) {
    if let Some(scores) = recorded["scores"].as_array() {
        let six = |score: f64| format!("{score:.6}");
        let scores: Vec<String> = scores.iter().map(|score| six(score.as_f64().unwrap())).collect();
        assert_eq!(found.iter().copied().map(six).collect::<Vec<_>>(), scores, "{metric}");
    }
    let count = found.len() as f64;
    let mean = found.iter().sum::<f64>() / count;
    if let Some(recorded) = recorded["mean"].as_f64() {
        assert!((mean - recorded).abs() < 1e-12, "{metric}: mean {mean}, not {recorded}");
    }
    if let Some(recorded) = recorded["std"].as_f64() {
        let deviations = found.iter().map(|score| (score - mean).powi(2)).sum::<f64>();
        let std = (deviations / (count - 1.0)).sqrt();
        assert!((std - recorded).abs() < 1e-12, "{metric}: std {std}, not {recorded}");
    }
}

#[test]
fn codes_of_cases_are_spelled_as_those_of_the_library() {
    assert_eq!(camel_case("RESOURCE_EXHAUSTED", true), format!("{:?}", Code::ResourceExhausted));
}
