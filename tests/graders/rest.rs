//! The graders of OpenAI's API over HTTP.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::said;
use crate::world::http::{Answer, http1};
use crate::world::judge::Conduct;
use crate::world::{Running, World};

const RUN: &str = "/v1/fine_tuning/alpha/graders/run";
const VALIDATE: &str = "/v1/fine_tuning/alpha/graders/validate";

async fn post(world: &Running, path: &str, body: String) -> Answer {
    let request = Request::post(path).header("host", world.address.to_string());
    http1(world.address, request.body(Full::new(Bytes::from(body))).unwrap()).await
}

fn body(answer: &Answer) -> Value {
    serde_json::from_str(answer.text()).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

fn check() -> Value {
    json!({"type": "string_check", "name": "same", "operation": "eq",
           "input": "{{sample.output_text}}", "reference": "{{item.answer}}"})
}

fn model() -> Value {
    json!({"type": "score_model", "name": "taste", "model": "gpt-4o", "range": [0, 1],
           "input": [{"role": "user", "type": "message",
                      "content": {"type": "input_text", "text": "Rate {{sample.output_text}}"}}],
           "sampling_params": {"max_completions_tokens": 50, "seed": null}})
}

async fn run(world: &Running, grader: &Value) -> Value {
    let sent = json!({"grader": grader, "model_sample": "Oslo", "item": {"answer": "Oslo"}});
    let answer = post(world, RUN, sent.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    body(&answer)
}

/// The flags that are raised.
fn flags(answer: &Value) -> Vec<String> {
    let errors = answer["metadata"]["errors"].as_object().unwrap();
    errors.iter().filter(|(_, flag)| **flag == true).map(|(name, _)| name.clone()).collect()
}

#[tokio::test]
async fn a_run_has_every_member_that_openai_has() {
    let world = World::new().start().await;
    let mut answer = run(&world, &check()).await;
    assert!(answer["metadata"]["execution_time"].take().as_f64().unwrap() >= 0.0);
    let expected = json!({
        "reward": 1.0,
        "metadata": {
            "name": "same",
            "type": "string_check",
            "errors": {
                "formula_parse_error": false, "sample_parse_error": false, "truncated_observation_error": false,
                "unresponsive_reward_error": false, "invalid_variable_error": false, "other_error": false,
                "python_grader_server_error": false, "python_grader_server_error_type": null,
                "python_grader_runtime_error": false, "python_grader_runtime_error_details": null,
                "model_grader_server_error": false, "model_grader_refusal_error": false,
                "model_grader_parse_error": false, "model_grader_server_error_details": null, "details": null,
            },
            "execution_time": null,
            "scores": {"same": 1.0},
            "token_usage": null,
            "sampled_model_name": null,
        },
        "sub_rewards": {},
        "model_grader_token_usage_per_model": {},
    });
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn a_judge_is_paid_for_in_the_answer() {
    let (world, _) = World::new().judge_replies([said(1.7).as_str()]).await;
    let world = world.set(|settings| settings.judge.sampling_count = 1).start().await;
    let graders = json!({"same": check(), "taste": model()});
    let multi = json!({"type": "multi", "name": "both", "graders": graders, "calculate_output": "(same + taste) / 4"});
    let answer = run(&world, &multi).await;
    assert_eq!(answer["reward"], 0.5);
    assert_eq!(answer["sub_rewards"], json!({"same": 1.0, "taste": 1.0}));
    assert_eq!(answer["metadata"]["sampled_model_name"], "stub-1");
    let usage =
        json!({"prompt_tokens": 100, "total_tokens": 120, "completion_tokens": 20, "cached_tokens": 0});
    assert_eq!(answer["metadata"]["token_usage"], usage);
    assert_eq!(answer["model_grader_token_usage_per_model"], json!({"stub-1": usage}));
}

#[tokio::test]
async fn a_grader_that_could_not_grade_is_200_with_a_reward_of_0_and_a_flag() {
    let unanswered = |reply: Value| async move {
        let (world, _) = World::new().judge(Conduct::Replies(vec![reply])).await;
        run(&world.start().await, &model()).await
    };
    for (answer, flag) in [
        (unanswered(json!({"text": said("high")})).await, "model_grader_parse_error"),
        (unanswered(json!({"status": 401})).await, "model_grader_server_error"),
        (run(&World::new().start().await, &model()).await, "model_grader_server_error"),
    ] {
        assert_eq!((&answer["reward"], flags(&answer)), (&json!(0.0), vec![flag.to_owned()]), "{answer}");
        let details = &answer["metadata"]["errors"]["model_grader_server_error_details"];
        assert_eq!(details.is_string(), flag == "model_grader_server_error", "{answer}");
    }
    let world = World::new().start().await;
    let mut gone = check();
    gone["reference"] = json!("{{item.gone}}");
    let answer = run(&world, &gone).await;
    assert_eq!((&answer["reward"], flags(&answer)), (&json!(0.0), vec!["invalid_variable_error".to_owned()]));
    // One that fails counts as 0 and raises its flag on the whole.
    let multi = |formula: &str| {
        let graders = json!({"same": check(), "gone": gone});
        json!({"type": "multi", "name": "both", "graders": graders, "calculate_output": formula})
    };
    let answer = run(&world, &multi("same + gone")).await;
    assert_eq!((&answer["reward"], flags(&answer)), (&json!(1.0), vec!["invalid_variable_error".to_owned()]));
    let answer = run(&world, &multi("same +")).await;
    assert_eq!((&answer["reward"], flags(&answer)), (&json!(0.0), vec!["formula_parse_error".to_owned()]));
    let answer = run(&world, &multi("same / gone")).await;
    assert_eq!(answer["reward"], 0.0);
    assert_eq!(flags(&answer), ["invalid_variable_error", "other_error"]);
}

#[tokio::test]
async fn what_is_malformed_is_400_in_openais_form_and_not_worth_a_retry() {
    let world = World::new().start().await;
    let changed = |name: &str, value: Value| {
        let mut grader = check();
        grader[name] = value;
        json!({"grader": grader, "model_sample": "x"})
    };
    let graders_as_list = json!({"grader": {"type": "multi", "name": "m", "graders": [check()],
                                            "calculate_output": "same"}, "model_sample": "x"});
    let image = json!({"grader": {"type": "score_model", "name": "m", "model": "x", "input": [{"role": "user",
        "content": [{"type": "input_image", "image_url": "{{item.x}}"}]}]}, "model_sample": "x"});
    for (path, sent, param) in [
        (RUN, changed("operation", json!("contains")), json!("grader.operation")),
        (VALIDATE, changed("operation", json!("contains")), json!("grader.operation")),
        (RUN, changed("input", json!("{{ output }}")), json!("grader.input")),
        (RUN, changed("type", json!("python")), json!("grader.type")),
        (RUN, changed("name", json!(7)), json!("grader.name")),
        (VALIDATE, graders_as_list, json!("grader.graders")),
        (VALIDATE, image, json!("grader.input[0].content[0].type")),
        (RUN, json!({"grader": check()}), json!("model_sample")),
        (RUN, json!({"model_sample": "x"}), json!("grader")),
        (RUN, json!([]), Value::Null),
    ] {
        let answer = post(&world, path, sent.to_string()).await;
        assert_eq!(answer.status, 400, "{sent}: {answer:?}");
        let error = &body(&answer)["error"];
        assert_eq!((&error["type"], &error["param"]), (&json!("invalid_request_error"), &param), "{error}");
        assert!(error["message"].is_string() && error.get("code") == Some(&Value::Null), "{error}");
        assert_eq!(answer.headers["x-should-retry"], "false");
    }
    let deep = format!("{{\"grader\": {}", "[".repeat(100_000));
    assert_eq!(post(&world, RUN, deep).await.status, 400);
    let many = format!("{{\"grader\": [{}]}}", "0,".repeat(1_000_000));
    let answer = post(&world, RUN, many).await;
    assert_eq!((answer.status.as_u16(), &answer.headers["x-should-retry"]), (413, &"false".parse().unwrap()));
}

#[tokio::test]
async fn a_good_grader_is_given_back_as_it_came() {
    let world = World::new().start().await;
    let mut odd = model();
    odd["unknown"] = json!({"kept": true});
    let label = json!({"type": "label_model", "name": "l", "model": "x", "labels": ["a", "b"],
                       "passing_labels": ["a"], "input": [{"role": "developer", "content": ["one", "two"]}]});
    for grader in [check(), odd, label] {
        let answer = post(&world, VALIDATE, json!({"grader": grader}).to_string()).await;
        assert_eq!((answer.status.as_u16(), body(&answer)), (200, json!({"grader": grader})));
    }
    let multi = json!({"type": "multi", "name": "m", "graders": {"a": check()}, "calculate_output": "a +"});
    assert_eq!(post(&world, VALIDATE, json!({"grader": multi}).to_string()).await.status, 400);
}

#[tokio::test]
async fn older_and_azures_clients_are_understood() {
    let world = World::new().start().await;
    for base in ["/v1", "/openai", "/openai/v1"] {
        let path = format!("{base}/fine_tuning/alpha/graders/run?api-version=2025-04-01-preview");
        let sent = json!({"grader": check(), "model_sample": "Oslo", "reference_answer": {"answer": "Oslo"}});
        assert_eq!(body(&post(&world, &path, sent.to_string()).await)["reward"], 1.0, "{path}");
    }
    let mut grader = check();
    grader["reference"] = json!("{{item.reference_answer}}");
    let sent = json!({"grader": grader, "model_sample": "Oslo", "reference_answer": "Oslo"});
    assert_eq!(body(&post(&world, RUN, sent.to_string()).await)["reward"], 1.0);
    let get = Request::get(RUN).header("host", "x").body(Full::default()).unwrap();
    let answer = http1(world.address, get).await;
    assert_eq!((answer.status.as_u16(), &answer.headers["allow"]), (405, &"POST".parse().unwrap()));
    assert_eq!(body(&answer)["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn a_key_is_asked_for_in_openais_words() {
    let file = std::env::temp_dir().join(format!("rapid-eval-grader-keys-{}", std::process::id()));
    std::fs::write(&file, "0123456789abcdef0123").unwrap();
    let keys = file.clone();
    let world = World::new().set(move |settings| settings.server.api_keys_file = keys).start().await;
    let sent = json!({"grader": check(), "model_sample": "Oslo", "item": {"answer": "Oslo"}}).to_string();
    for (header, value, status) in [
        ("authorization", "Bearer 0123456789abcdef0123", 200),
        ("api-key", "0123456789abcdef0123", 200),
        ("authorization", "Bearer another-key-of-20-char", 401),
        ("x-nothing", "", 401),
    ] {
        let request = Request::post(RUN).header("host", "x").header(header, value);
        let answer = http1(world.address, request.body(Full::new(Bytes::from(sent.clone()))).unwrap()).await;
        assert_eq!(answer.status, status, "{header}: {answer:?}");
        if status == 401 {
            let error = &body(&answer)["error"];
            assert_eq!(
                (&error["type"], &error["code"]),
                (&json!("authentication_error"), &json!("invalid_api_key"))
            );
            assert_eq!(answer.headers["x-should-retry"], "false");
        }
    }
    std::fs::remove_file(file).unwrap();
}
