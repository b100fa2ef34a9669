//! The judge pool behind the service's doors: several endpoints, and callers in turns.
#![cfg(feature = "server")]

mod world;

use std::time::Duration;

use futures_util::future::join_all;
use rapid_eval::judge::settings::{EndpointSettings, JudgeSettings};
use rapid_eval::wire::v1::EvaluateInstancesResponse;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use world::judge::{Conduct, StubJudge};
use world::{Caller, SERVICES, World, as_json, message};

/// Longer than anything here takes on the slowest machine.
const LONG: Duration = Duration::from_secs(120);

fn verdict(delay_ms: u64) -> Conduct {
    Conduct::Replies(vec![json!({"text": "{\"explanation\": \"fine\", \"score\": 4}", "delay_ms": delay_ms})])
}

fn fluency(prediction: &str, samples: u32) -> Value {
    json!({
        "fluency_input": {"metric_spec": {}, "instance": {"prediction": prediction}},
        "autorater_config": {"sampling_count": samples},
    })
}

/// One judge with these endpoints.
fn judge_of(endpoints: &[&StubJudge]) -> JudgeSettings {
    let mut settings = endpoints[0].settings();
    settings.endpoints = endpoints
        .iter()
        .map(|stub| EndpointSettings {
            base_url: Some(format!("http://{}/v1", stub.address)),
            ..EndpointSettings::default()
        })
        .collect();
    settings.base_url = None;
    settings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_dead_endpoint_of_three_fails_no_request() {
    let dead = StubJudge::start(Conduct::Replies(vec![json!({"status": 503})])).await;
    let (one, two) = (StubJudge::start(verdict(1)).await, StubJudge::start(verdict(1)).await);
    let settings = judge_of(&[&dead, &one, &two]);
    let world = World::new().set(|all| all.judges.push(settings)).start().await;
    for round in 0..10 {
        let texts: Vec<String> = (0..10).map(|item| format!("text {round} {item}")).collect();
        let answers = join_all(texts.iter().map(|text| world.evaluate(fluency(text, 4)))).await;
        for answer in answers {
            answer.unwrap();
        }
    }
    assert_eq!(one.calls() + two.calls(), 400);
    assert!(dead.calls() < 100, "{} calls to an endpoint that is down", dead.calls());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_from_one_connection_does_not_starve_another() {
    let stub = StubJudge::start(verdict(50)).await;
    let mut settings = stub.settings();
    settings.max_concurrency = 1;
    let world = World::new().set(|all| all.judges.push(settings)).start().await;
    let (flooding, single): (Caller, Caller) = (world.new_caller(), world.new_caller());
    let flood: Vec<_> = (0..200)
        .map(|item| {
            let caller = flooding.clone();
            tokio::spawn(async move { caller.evaluate(fluency(&format!("flood {item}"), 1)).await })
        })
        .collect();
    let begun = async {
        while stub.calls() < 3 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LONG, begun).await.expect("the flood begins");
    single.evaluate(fluency("single", 1)).await.unwrap();
    // In the order of arrival it would have been the last of 201.
    let before = stub.calls();
    assert!(before < 150, "{before} calls came before the one of the other caller");
    for call in flood {
        call.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_half_duplicates_makes_exactly_the_distinct_calls() {
    let stub = StubJudge::start(verdict(1)).await;
    let settings = stub.settings();
    let world = World::new().set(|all| all.judges.push(settings)).start().await;
    let texts: Vec<String> = (0..100).map(|item| format!("text {}", item % 50)).collect();
    let answers = join_all(texts.iter().map(|text| world.evaluate(fluency(text, 4)))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    // 50 distinct texts, four samples each.
    assert_eq!(stub.calls(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_equal_requests_at_once_make_one_call_for_each_sample() {
    let stub = StubJudge::start(verdict(20)).await;
    let settings = stub.settings();
    let world = World::new().set(|all| all.judges.push(settings)).start().await;
    let answers = join_all((0..200).map(|_| world.evaluate(fluency("the same", 4)))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(stub.calls(), 4);
    // The tokens of the four calls are those of one request; to the others they cost nothing.
    let mut again = fluency("the same", 4);
    again["include_details"] = json!(true);
    let answer = as_json(&world.evaluate(again).await.unwrap());
    assert_eq!((stub.calls(), answer["fluencyResult"]["score"].as_f64()), (4, Some(4.0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn samples_of_an_item_are_one_call_where_the_endpoint_takes_their_number() {
    let said = [5, 5, 2, 5].map(|score| json!({"explanation": "fine", "score": score}).to_string());
    let stub = StubJudge::start(Conduct::Chooses(said.to_vec())).await;
    let settings = stub.settings();
    let world = World::new().set(|all| all.judges.push(settings)).start().await;
    let mut request = fluency("a text", 4);
    request["include_details"] = json!(true);
    let answer = as_json(&world.evaluate(request.clone()).await.unwrap());
    let result = &answer["fluencyResult"];
    assert_eq!(
        (result["score"].as_f64(), result["confidence"].as_f64()),
        (Some(5.0), Some(0.75)),
        "{answer}"
    );
    // The prompt is charged once, the four replies each.
    let usage = &result["details"]["usage"];
    assert_eq!((usage["inputTokens"].as_str(), usage["outputTokens"].as_str()), (Some("100"), Some("80")));
    assert_eq!((stub.calls(), &stub.asked()[0]["n"]), (1, &json!(4)));
    // Each sample is kept by itself: two more of the same item are two answers of one call.
    let mut more = request;
    more["autorater_config"]["sampling_count"] = json!(6);
    world.evaluate(more).await.unwrap();
    assert_eq!((stub.calls(), &stub.asked()[1]["n"]), (2, &json!(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_can_refuse_kept_answers() {
    let stub = StubJudge::start(verdict(1)).await;
    let settings = stub.settings();
    let world = World::new().set(|all| all.judges.push(settings)).start().await;
    let ask = async |word: &'static str| {
        let mut request = tonic::Request::new(message(&fluency("the same", 2)));
        request.metadata_mut().insert("x-rapid-eval-cache", word.parse().unwrap());
        let answer: Result<tonic::Response<EvaluateInstancesResponse>, _> =
            world.caller().call(SERVICES[0], "EvaluateInstances", request).await;
        answer.map(drop)
    };
    for (word, calls) in [("on", 2), ("on", 2), ("off", 4), ("off", 6), ("on", 6)] {
        ask(word).await.unwrap();
        assert_eq!(stub.calls(), calls, "{word}");
    }
    let refusal = ask("maybe").await.unwrap_err();
    assert_eq!(refusal.message(), "x-rapid-eval-cache: \"maybe\" is neither on nor off");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spent_budget_is_named() {
    let stub = StubJudge::start(verdict(1)).await;
    let mut settings = stub.settings();
    settings.budget.tokens = Some(5);
    let world = World::new().set(|all| all.judges.push(settings)).start().await;
    let refusal = world.evaluate(fluency("text", 4)).await.unwrap_err();
    assert_eq!(refusal.code(), tonic::Code::ResourceExhausted, "{refusal:?}");
    assert!(
        refusal.message().contains("judges.default.budget.tokens: of 5 in 86400 s 0 are spent"),
        "{refusal:?}"
    );
    assert_eq!(stub.calls(), 0);
}
