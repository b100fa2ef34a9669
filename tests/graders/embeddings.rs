//! Cosine by embeddings. The endpoint of these tests gives each text the vector that is written in it, so that every
//! cosine is arithmetic on paper.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rapid_eval::embeddings::EmbeddingSettings;
use serde_json::{Value, json};
use tonic::Code;
use tonic_types::StatusExt;

use crate::world::http::http1;
use crate::world::judge::{Conduct, StubJudge};
use crate::world::{Running, World, as_json};
use crate::{request, row};

/// A world with an endpoint that first gives these replies, and then vectors.
async fn embedded(first: Vec<Value>, change: impl FnOnce(&mut EmbeddingSettings)) -> (Running, StubJudge) {
    let stub = StubJudge::start(Conduct::Embeds { first, delay_ms: 0 }).await;
    (world_of(&stub, change).await, stub)
}

async fn world_of(stub: &StubJudge, change: impl FnOnce(&mut EmbeddingSettings)) -> Running {
    let mut settings = stub.embeddings();
    change(&mut settings);
    World::new().set(|all| all.embeddings = settings).start().await
}

fn semantic(pairs: &[[&str; 2]]) -> Value {
    let instances: Vec<Value> = pairs.iter().map(|[a, b]| json!({"prediction": a, "reference": b})).collect();
    json!({"semantic_similarity_input": {"instances": instances}})
}

fn grader() -> Value {
    json!({"type": "text_similarity", "name": "near", "evaluation_metric": "cosine", "pass_threshold": 0.5,
           "input": "{{sample.output_text}}", "reference": "{{item.answer}}"})
}

fn similar(pairs: &[[&str; 2]]) -> Value {
    let rows = pairs.iter().map(|[input, reference]| row(&json!({"answer": reference}), &json!(input)));
    request(&grader(), rows.collect())
}

async fn values(world: &Running, asked: Value) -> Vec<Value> {
    let answer = as_json(&world.evaluate(asked).await.unwrap());
    let results = answer.as_object().unwrap().values().next().unwrap();
    results.as_object().unwrap().values().next().unwrap().as_array().unwrap().clone()
}

#[tokio::test]
async fn cosine_is_of_embeddings_where_an_endpoint_gives_them() {
    let (world, stub) = embedded(vec![], |settings| settings.dimensions = 2).await;
    // 1 / (1 · √2); 24 / (5 · 5); at right angles; opposite; one direction.
    let pairs = [
        (["[1, 0]", "[1, 1]"], 0.7071067811865475),
        (["[3, 4]", "[4, 3]"], 0.96),
        (["[1, 0]", "[0, 2]"], 0.0),
        (["[1, 0]", "[-3, 0]"], -1.0),
        (["[0.1, 0.7]", "[0.1, 0.7]"], 1.0),
    ];
    let texts = pairs.map(|(texts, _)| texts);
    let found = values(&world, similar(&texts)).await;
    assert_eq!(found.len(), pairs.len());
    for (value, (texts, cosine)) in found.iter().zip(pairs) {
        assert!((value["score"].as_f64().unwrap() - cosine).abs() < 1e-15, "{texts:?}: {value}");
        assert_eq!(value["passed"], cosine >= 0.5, "{value}");
        assert_eq!(value["vectors"], "TEXT_VECTORS_EMBEDDINGS");
        assert_eq!(value["embeddingModel"], "stub-embeds");
    }
    // Its scale begins at 0, and its default pass score is 0.7.
    for (value, (texts, cosine)) in values(&world, semantic(&texts)).await.iter().zip(pairs) {
        assert!((value["score"].as_f64().unwrap() - cosine.max(0.0)).abs() < 1e-15, "{texts:?}: {value}");
        assert_eq!(value["passed"], cosine >= 0.7, "{value}");
        assert_eq!(value["vectors"], "TEXT_VECTORS_EMBEDDINGS");
        assert_eq!(value["embeddingModel"], "stub-embeds");
    }
    let asked = stub.asked();
    let [asked] = &asked[..] else { panic!("the second call found all vectors kept: {asked:?}") };
    let texts = json!(["[1, 0]", "[1, 1]", "[3, 4]", "[4, 3]", "[0, 2]", "[-3, 0]", "[0.1, 0.7]"]);
    assert_eq!(
        *asked,
        json!({"model": "stub-embeds", "input": texts, "encoding_format": "float", "dimensions": 2})
    );
}

#[tokio::test]
async fn equal_texts_are_asked_for_once_in_as_few_requests_as_may_be() {
    let (world, stub) = embedded(vec![], |settings| settings.batch_texts = 2).await;
    // Five texts in six places: requests of two, two and one.
    let pairs = [["[1]", "[2]"], ["[3]", "[2]"], ["[4]", "[5]"]];
    assert_eq!(values(&world, semantic(&pairs)).await.len(), 3);
    let mut sizes: Vec<usize> =
        stub.asked().iter().map(|body| body["input"].as_array().unwrap().len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2, 2]);
    // All of them are kept; the other arm has the same.
    values(&world, semantic(&pairs)).await;
    values(&world, similar(&pairs)).await;
    assert_eq!(stub.calls(), 3);
    values(&world, similar(&[["[1]", "[6]"]])).await;
    assert_eq!(stub.asked()[3]["input"], json!(["[6]"]));
    assert_eq!(stub.calls(), 4);
}

#[tokio::test]
async fn nothing_is_kept_without_a_cache() {
    let (world, stub) = embedded(vec![], |settings| settings.cache_bytes = 0).await;
    for calls in 1..=2 {
        values(&world, semantic(&[["[1]", "[2]"]])).await;
        assert_eq!(stub.calls(), calls);
    }
}

#[tokio::test]
async fn many_texts_are_gone_through_in_parts_and_every_pair_gets_its_own_cosine() {
    let change = |settings: &mut EmbeddingSettings| {
        (settings.batch_texts, settings.max_concurrency, settings.cache_bytes) = (4, 2, 0);
    };
    let (world, stub) = embedded(vec![], change).await;
    // The angle's cosine of [1, 0] and [n, 1] is n / √(n² + 1).
    let texts: Vec<String> = (0..50).map(|n| format!("[{n}, 1]")).collect();
    let pairs: Vec<[&str; 2]> = texts.iter().map(|text| ["[1, 0]", text.as_str()]).collect();
    let found = values(&world, similar(&pairs)).await;
    for (n, value) in (0..50).map(f64::from).zip(&found) {
        let cosine = n / (n * n + 1.0).sqrt();
        assert!((value["score"].as_f64().unwrap() - cosine).abs() < 1e-15, "{n}: {value}");
    }
    // A part has at most 8 texts, of which [1, 0] is one: seven pairs, in two requests; the last one has one pair.
    assert_eq!((found.len(), stub.calls()), (50, 7 * 2 + 1));
}

#[tokio::test]
async fn an_empty_text_has_no_direction_and_is_not_asked_for() {
    let (world, stub) = embedded(vec![], |_| {}).await;
    let found = values(&world, semantic(&[["", "[1]"], ["", ""]])).await;
    assert_eq!((&found[0]["score"], &found[1]["score"]), (&json!(0.0), &json!(0.0)));
    assert_eq!(stub.asked()[0]["input"], json!(["[1]"]));
    assert_eq!(stub.calls(), 1);
}

#[tokio::test]
async fn an_answer_that_is_no_vectors_is_an_error_and_never_a_number() {
    let data = |data: Value| json!({"body": {"data": data}});
    for (reply, message) in [
        (data(json!([{"index": 0, "embedding": [1]}])), "the answer has 1 embeddings for 2 texts"),
        (
            data(json!([{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [1]}])),
            "the indexes of the embeddings are not 0 to 1",
        ),
        (
            data(json!([{"index": 0, "embedding": [1]}, {"index": 1, "embedding": []}])),
            "an embedding has no components",
        ),
        (
            data(json!([{"index": 0, "embedding": [1, null]}, {"index": 1, "embedding": [1, 0]}])),
            "an embedding has a component that is no number",
        ),
        (json!({"text": "a chat completion"}), "the answer has 0 embeddings for 2 texts"),
    ] {
        for asked in [semantic(&[["[1]", "[2]"]]), similar(&[["[1]", "[2]"]])] {
            let (world, stub) = embedded(vec![reply.clone()], |_| {}).await;
            let status = world.evaluate(asked).await.unwrap_err();
            assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
            assert_eq!(status.message(), format!("embeddings: {message}"));
            let info = status.get_details_error_info().unwrap();
            assert_eq!((info.reason.as_str(), &*info.metadata["model"]), ("NO_EMBEDDINGS", "stub-embeds"));
            assert_eq!(stub.calls(), 1, "asking again would not help");
        }
    }
    // Two answers, each good by itself.
    let (world, _) = embedded(vec![], |settings| settings.batch_texts = 1).await;
    let status = world.evaluate(semantic(&[["[1, 0]", "[1, 0, 0]"]])).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(status.message(), "embeddings: vectors of 2 and 3 dimensions have no cosine");
}

#[tokio::test]
async fn a_passing_failure_is_waited_out_once() {
    let busy = json!({"status": 429, "headers": {"retry-after-ms": "1"}});
    for first in [busy.clone(), json!({"status": 503})] {
        let (world, stub) = embedded(vec![first], |_| {}).await;
        assert_eq!(values(&world, semantic(&[["[2]", "[3]"]])).await[0]["score"], 1.0);
        assert_eq!(stub.calls(), 2);
    }
    let (world, stub) = embedded(vec![busy.clone(), busy], |_| {}).await;
    let status = world.evaluate(semantic(&[["[2]", "[3]"]])).await.unwrap_err();
    assert_eq!((status.code(), stub.calls()), (Code::Unavailable, 2), "{status}");
    assert!(status.message().ends_with("(2 attempts)"), "{status}");
    // A rest of more than two minutes is not waited for, and the caller learns of it.
    let tired = json!({"status": 429, "headers": {"retry-after": "3000"}});
    let (world, stub) = embedded(vec![tired], |_| {}).await;
    let status = world.evaluate(semantic(&[["[2]", "[3]"]])).await.unwrap_err();
    assert_eq!((status.code(), stub.calls()), (Code::Unavailable, 1), "{status}");
    let rest = status.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!((2990..=3000).contains(&rest.as_secs()), "{rest:?}");
}

#[tokio::test]
async fn a_lasting_failure_says_whose_it_is() {
    let error = |message: &str| json!({"error": {"message": message}});
    for (status, body, code, reason) in [
        (404, error("model not found"), Code::FailedPrecondition, "EMBEDDINGS_MISCONFIGURED"),
        (400, error("bad dimensions"), Code::FailedPrecondition, "EMBEDDINGS_MISCONFIGURED"),
        (
            400,
            error("This model's maximum context length is 8192 tokens"),
            Code::InvalidArgument,
            "TEXT_TOO_LONG",
        ),
    ] {
        let (world, stub) = embedded(vec![json!({"status": status, "body": body})], |_| {}).await;
        let status = world.evaluate(similar(&[["[2]", "[3]"]])).await.unwrap_err();
        assert_eq!((status.code(), stub.calls()), (code, 1), "{status}");
        assert_eq!(status.get_details_error_info().unwrap().reason, reason, "{status}");
    }
    let (world, _) =
        embedded(vec![], |settings| settings.base_url = String::from("http://127.0.0.1:1")).await;
    let status = world.evaluate(semantic(&[["[2]", "[3]"]])).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
}

#[tokio::test]
async fn the_key_is_sent_and_never_shown() {
    let file = std::env::temp_dir().join(format!("rapid-eval-embeddings-key-{}", std::process::id()));
    std::fs::write(&file, "sk-0123456789abcdef\n").unwrap();
    let quoted =
        json!({"error": {"message": "Incorrect API key: sk-0123456789abcdef", "code": "invalid_api_key"}});
    let key_file = file.clone();
    let reply = json!({"status": 401, "body": quoted});
    let (world, stub) = embedded(vec![reply], move |settings| settings.key_file = key_file).await;
    let status = world.evaluate(semantic(&[["[2]", "[3]"]])).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("***"), "{status}");
    assert!(!format!("{status:?}").contains("0123456789abcdef"), "{status:?}");
    assert_eq!(stub.keys(), ["Bearer sk-0123456789abcdef"]);
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn calls_open_at_one_time_are_bounded_over_all_callers() {
    let stub = StubJudge::start(Conduct::Embeds { first: vec![], delay_ms: 20 }).await;
    let world = world_of(&stub, |settings| (settings.batch_texts, settings.max_concurrency) = (1, 2)).await;
    let texts: Vec<[String; 2]> = (1..=8).map(|n| [format!("[{n}]"), format!("[-{n}]")]).collect();
    let asked = texts.iter().map(|[a, b]| world.evaluate(semantic(&[[a, b]])));
    for answer in futures_util::future::join_all(asked).await {
        answer.unwrap();
    }
    assert_eq!(stub.calls(), 16);
    assert!(stub.most_open() <= 2, "{}", stub.most_open());
}

#[tokio::test]
async fn a_row_without_a_text_is_named_and_other_metrics_ask_for_nothing() {
    let (world, stub) = embedded(vec![], |_| {}).await;
    let rows = vec![row(&json!({"answer": "[1]"}), &json!("[1]")), row(&json!({}), &json!("[1]"))];
    let status = world.evaluate(request(&grader(), rows)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("instances[1]"), "{status}");
    let calls = stub.calls();
    let mut fuzzy = grader();
    fuzzy["evaluation_metric"] = json!("fuzzy_match");
    let rows = vec![row(&json!({"answer": "Oslo"}), &json!("Oslo"))];
    let found = values(&world, request(&fuzzy, rows)).await;
    assert_eq!((&found[0]["score"], found[0].get("vectors")), (&json!(1.0), None));
    assert_eq!(stub.calls(), calls);
}

#[tokio::test]
async fn openais_door_and_graders_of_several_have_embeddings_too() {
    let (world, stub) = embedded(vec![], |_| {}).await;
    let multi =
        json!({"type": "multi", "name": "m", "graders": {"near": grader()}, "calculate_output": "near * 2"});
    let run = async |world: &Running, grader: &Value| -> Value {
        let sent = json!({"grader": grader, "model_sample": "[4, 3]", "item": {"answer": "[3, 4]"}});
        let asked = Request::post("/v1/fine_tuning/alpha/graders/run").header("host", "x");
        let answer =
            http1(world.address, asked.body(Full::new(Bytes::from(sent.to_string()))).unwrap()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str(answer.text()).unwrap()
    };
    assert_eq!(run(&world, &grader()).await["reward"], 0.96);
    assert_eq!(run(&world, &multi).await["reward"], 1.92);
    let row = row(&json!({"answer": "[3, 4]"}), &json!("[4, 3]"));
    let answer = as_json(&world.evaluate(request(&multi, vec![row])).await.unwrap());
    assert_eq!(answer["multiGraderResult"]["score"], 1.92);
    assert_eq!(stub.calls(), 1);
    let (world, _) = embedded(vec![json!({"status": 401})], |_| {}).await;
    let answer = run(&world, &grader()).await;
    assert_eq!(
        (&answer["reward"], &answer["metadata"]["errors"]["other_error"]),
        (&json!(0.0), &json!(true))
    );
    let details = answer["metadata"]["errors"]["details"].as_str().unwrap();
    assert!(details.starts_with("embeddings: "), "{details}");
}
