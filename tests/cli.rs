//! The command without a server: `rapid-eval evaluate` answers as the service does; usage and exit codes.
#![cfg(feature = "server")]

mod world;

use serde_json::{Value, json};
use world::process::{Process, run};
use world::{World, as_json};

fn evaluate(input: &str) -> (Option<i32>, String, String) {
    let output = run(&["evaluate", "-"], &[], input);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn the_command_answers_as_the_service_does() {
    let world = World::new().start().await;
    let pair = |prediction: &str, reference: &str| json!({"prediction": prediction, "reference": reference});
    let call = r#"{"tool_calls": [{"name": "book", "arguments": {"city": "Oslo"}}]}"#;
    let trajectory = json!({"tool_calls": [{"tool_name": "book", "tool_input": "{}"}]});
    let requests = [
        json!({"exact_match_input": {"instances": [pair("Rome", "Paris"), pair("a", "a")]}}),
        json!({"bleuInput": {"metricSpec": {"useEffectiveOrder": true}, "instances": [pair("the cat", "the cat sat")]}}),
        json!({"rouge_input": {"instances": [pair("the cat sat\non the mat", "the cat\nsat")]}, "include_details": true}),
        json!({"tool_parameter_kv_match_input": {"instances": [pair(call, call), pair("none", call)]}}),
        json!({"trajectory_recall_input": {"instances": [{"reference_trajectory": trajectory}]}}),
        json!({"instance": {"response": {"text": "a"}, "reference": {"text": "b"}},
            "metrics": [{"exact_match_spec": {}}, {"rouge_spec": {"rouge_type": "rougeX"}}]}),
    ];
    for request in requests {
        let (code, answer, said) = evaluate(&request.to_string());
        assert_eq!(code, Some(0), "{request}: {said}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer, as_json(&world.evaluate(request.clone()).await.unwrap()), "{request}");
        assert!(said.is_empty(), "{said}");
    }
}

#[tokio::test]
async fn a_request_is_read_from_a_file_too() {
    let path = std::env::temp_dir().join(format!("rapid-eval-request-{}.json", std::process::id()));
    std::fs::write(&path, r#"{"exact_match_input": {"instances": [{"prediction": "", "reference": ""}]}}"#)
        .unwrap();
    let output = run(&["evaluate", path.to_str().unwrap()], &[], "");
    std::fs::remove_file(&path).unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer, json!({"exactMatchResults": {"exactMatchMetricValues": [{"score": 1.0}]}}));
    assert_eq!(run(&["evaluate", path.to_str().unwrap()], &[], "").status.code(), Some(1));
}

#[tokio::test]
async fn the_command_refuses_what_the_service_refuses_in_the_same_words() {
    let world = World::new().start().await;
    let requests = [
        json!({"rouge_input": {"metric_spec": {"rouge_type": "rougeX"}, "instances": [{"prediction": "", "reference": ""}]}}),
        json!({"exact_match_input": {"instances": [{"prediction": ""}]}}),
        json!({"exact_match_input": {"instances": []}}),
        json!({"comet_input": {}}),
        json!({}),
    ];
    for request in requests {
        let refused = world.evaluate(request.clone()).await.unwrap_err();
        let (code, answer, said) = evaluate(&request.to_string());
        assert_eq!(code, Some(1), "{request}: {said}");
        assert!(answer.is_empty());
        assert_eq!(said.trim_end(), format!("rapid-eval: {}", refused.message()), "{request}");
    }
}

#[test]
fn what_is_no_request_is_refused_with_a_reason() {
    let pair = r#"{"instances": [{"prediction": "a", "reference": "a"}]}"#;
    let deep = format!(
        r#"{{"metrics": [{{"computation_based_metric_spec": {{"parameters": {{"a": {}{}}}}}}}]}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let wrong = [
        (String::new(), "the text ends"),
        (String::from("[]"), "expected an object"),
        (format!(r#"{{"exact_match_input": {pair}, "bleu_input": {pair}}}"#), "only one of metric_inputs"),
        (format!(r#"{{"exact_match_inputs": {pair}}}"#), "exact_match_inputs"),
        (format!(r#"{{"exact_match_input": {pair}}} more"#), "nothing after"),
        (
            String::from(r#"{"exact_match_input": {"instances": [{"prediction": 1}]}}"#),
            "instances[0].prediction",
        ),
        (String::from(r#"{"exact_match_input": {"instances": [{"prediction": "\ud800"}]}}"#), "surrogate"),
        (deep, "nested deeper than 128"),
    ];
    for (input, reason) in wrong {
        let (code, answer, said) = evaluate(&input);
        let input = &input[..input.len().min(100)];
        assert_eq!(code, Some(1), "{input}: {said}");
        assert!(answer.is_empty(), "{input}");
        assert!(said.starts_with("rapid-eval: ") && said.contains(reason), "{input}: {said}");
        assert!(said.len() < 1000, "{input}");
    }
}

#[test]
fn wrong_usage_ends_with_64_and_a_sentence_that_names_the_key() {
    /// Arguments, environment, and what the complaint names.
    type Wrong = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str);
    let wrong: [Wrong; 9] = [
        (&["serve", "--listen", "nowhere"], &[], "--listen"),
        (&["sing"], &[], "sing"),
        (&["serve", "--config", "/nowhere/to/be.toml"], &[], "/nowhere/to/be.toml"),
        (&["serve", "--listen", "0.0.0.0:0"], &[], "--insecure-public"),
        (&["serve"], &[("limits.instances", "many")], "instances"),
        (&["serve"], &[("limits.instances", "0")], "limits.instances"),
        (&["serve"], &[("limits.elephants", "3")], "elephants"),
        (&["serve"], &[("log.filter", "rapid_eval=loud")], "log.filter"),
        (&["check-config"], &[("limits.requests_in_flight_bytes", "1")], "limits.requests_in_flight_bytes"),
    ];
    for (arguments, settings, named) in wrong {
        let output = run(arguments, settings, "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{arguments:?} {settings:?}: {said}");
        assert!(said.contains(named), "{arguments:?} {settings:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_port_that_is_taken_ends_with_1_and_its_address() {
    let process = Process::start(&[]);
    let address = process.address.to_string();
    let output = run(&["serve", "--listen", &address, "--admin-listen", "off"], &[], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&address), "{said}");
}

#[test]
fn what_is_asked_for_and_done_ends_with_0() {
    for arguments in [&["--help"][..], &["--version"], &["metrics"], &["check-config"]] {
        let output = run(arguments, &[], "");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}
