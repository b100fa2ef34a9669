//! The REST door as its callers see it: paths, queries, bodies, answers, errors, and pages in browsers.
#![cfg(feature = "server")]

mod world;

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use world::http::{Answer, http1, http2};
use world::judge::Conduct;
use world::{Running, World};

const PATH: &str = "/v1beta1/projects/p/locations/us-central1:evaluateInstances";

fn exact_match() -> Value {
    json!({"exactMatchInput": {"instances": [{"prediction": "a", "reference": "a"}]}})
}

/// One request with these headers over HTTP/1.1.
async fn send(
    world: &Running,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("host", world.address.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    http1(world.address, request.body(Full::new(body.into())).unwrap()).await
}

async fn post(world: &Running, path: &str, body: impl Into<Bytes>) -> Answer {
    send(world, Method::POST, path, &[("content-type", "application/json")], body).await
}

fn json_of(answer: &Answer) -> Value {
    assert_eq!(answer.headers["content-type"], "application/json; charset=UTF-8", "{answer:?}");
    serde_json::from_str(answer.text()).unwrap()
}

/// The error of an answer, which has to be of Google's shape.
fn error_of(answer: &Answer) -> Value {
    let body = json_of(answer);
    let error = body["error"].clone();
    assert_eq!(error["code"], json!(answer.status.as_u16()), "{body}");
    assert!(error["message"].is_string() && error["status"].is_string(), "{body}");
    error
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

#[tokio::test]
async fn every_path_of_vertex_is_answered() {
    let world = World::new().start().await;
    let body = exact_match().to_string();
    for path in [
        "/v1/projects/p/locations/us-central1:evaluateInstances",
        "/v1/projects/p/locations/us-central1/:evaluateInstances",
        "/v1/projects/p/locations/us-central1%3AevaluateInstances",
        "/v1beta1/projects/p/locations/us-central1:evaluateInstances",
        "/v1beta1/projects/123456/locations/global/:evaluateInstances",
        "/v1beta1/projects/p/locations/us-central1%3aevaluateInstances",
        "/v1beta1:evaluateInstances",
        "/v1beta1/:evaluateInstances",
        "/v1beta1%3AevaluateInstances",
    ] {
        let answer = post(&world, path, body.clone()).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(
            json_of(&answer),
            json!({"exactMatchResults": {"exactMatchMetricValues": [{"score": 1.0}]}}),
            "{path}"
        );
    }
    for form in
        ["/v1beta1/projects/p/locations/l:", "/v1beta1/projects/p/locations/l/:", "/v1beta1:", "/v1beta1/:"]
    {
        let rubrics = json!({"contents": [{"parts": [{"text": "Write a poem."}]}]}).to_string();
        let answer = post(&world, &format!("{form}generateInstanceRubrics"), rubrics).await;
        assert_eq!(
            (answer.status.as_u16(), &error_of(&answer)["status"]),
            (400, &json!("FAILED_PRECONDITION"))
        );
        let answer = post(&world, &format!("{form}evaluateDataset"), "{}").await;
        assert_eq!((answer.status.as_u16(), &error_of(&answer)["status"]), (501, &json!("UNIMPLEMENTED")));
    }
}

#[tokio::test]
async fn any_other_path_is_not_found_in_googles_shape() {
    let world = World::new().start().await;
    for path in [
        "/nowhere",
        "/v1:evaluateInstances",
        "/v1/projects/p/locations/l:generateInstanceRubrics",
        "/v1/projects/p/locations/l:evaluateDataset",
        "/v2/projects/p/locations/l:evaluateInstances",
        "/v1beta1/projects/p/locations/l:predict",
        "/v1beta1/projects/p:evaluateInstances",
    ] {
        for method in [Method::POST, Method::GET] {
            let answer = send(&world, method, path, &[], "{}").await;
            assert_eq!(answer.status, 404, "{path}");
            assert_eq!(error_of(&answer)["status"], "NOT_FOUND", "{path}");
        }
    }
}

#[tokio::test]
async fn a_path_takes_its_own_method_only() {
    let world = World::new().start().await;
    for (path, methods, allowed) in [
        (PATH, [Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS], "POST"),
        ("/", [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS], "GET, HEAD"),
    ] {
        for method in methods {
            let answer = send(&world, method.clone(), path, &[], "").await;
            assert_eq!(answer.status, 405, "{method} {path}");
            assert_eq!(answer.headers["allow"], allowed, "{method} {path}");
            error_of(&answer);
        }
    }
    let answer = send(&world, Method::HEAD, PATH, &[], "").await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (405, 0));
}

#[tokio::test]
async fn http2_is_answered_as_http1_is() {
    let world = World::new().start().await;
    let request = Request::post(format!("http://{}{PATH}", world.address))
        .body(Full::new(exact_match().to_string().into()))
        .unwrap();
    let answer = http2(world.address, request).await;
    assert_eq!(answer.body, post(&world, PATH, exact_match().to_string()).await.body);
}

#[tokio::test]
async fn googles_system_parameters_and_headers_are_taken() {
    let world = World::new().start().await;
    let query = "alt=json&$alt=json&%24alt=json%3Benum-encoding%3Dint&prettyPrint=false&fields=a&key=k&access_token=t\
                 &oauth_token=t&quotaUser=q&callback=c&uploadType=u&upload_protocol=p&$.xgafv=2&$key=k";
    let headers = [
        ("authorization", "Bearer x"),
        ("x-goog-api-key", "k"),
        ("x-goog-user-project", "p"),
        ("x-goog-api-client", "gl-python/3.11"),
        ("x-goog-request-params", "location=projects/p"),
    ];
    let answer =
        send(&world, Method::POST, &format!("{PATH}?{query}"), &headers, exact_match().to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test]
async fn a_parameter_that_google_does_not_have_is_refused_by_name() {
    let world = World::new().start().await;
    let answer = post(&world, &format!("{PATH}?verbose=true"), exact_match().to_string()).await;
    assert_eq!(answer.status, 400);
    let error = error_of(&answer);
    assert_eq!(error["status"], "INVALID_ARGUMENT");
    assert!(error["message"].as_str().unwrap().contains("Unknown name \"verbose\""), "{error}");
}

#[tokio::test]
async fn enums_are_names_unless_the_caller_asks_for_numbers() {
    let choice = json!({"explanation": "e", "choice": "SAME"}).to_string();
    let (world, _) = World::new().judge_replies([choice.as_str()]).await;
    let world = world.start().await;
    let body = json!({"pairwiseMetricInput": {
        "metricSpec": {"metricPromptTemplate": "Which is better? {baseline_model_response} or {response}"},
        "instance": {"jsonInstance": "{\"response\": \"a\", \"baseline_model_response\": \"b\"}"},
    }});
    for (query, expected) in [("", json!("TIE")), ("?$alt=json;enum-encoding=int", json!(3))] {
        let answer = post(&world, &format!("{PATH}{query}"), body.to_string()).await;
        assert_eq!(json_of(&answer)["pairwiseMetricResult"]["pairwiseChoice"], expected, "{}", answer.text());
    }
}

#[tokio::test]
async fn the_curl_bodies_of_googles_page_work_as_they_stand() {
    let world = World::new().start().await;
    let answer = post(&world, PATH, include_str!("rest/rouge.curl.json")).await;
    let body = json_of(&answer);
    // Words in common in order, of nine on either side: 5 (brown fox over lazy dog), 7 (quick brown fox jumps over
    // the lazy), 8 (all but the second).
    let scores: Vec<f64> = body["rougeResults"]["rougeMetricValues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value["score"].as_f64().unwrap())
        .collect();
    assert_eq!(scores.len(), 3, "{body}");
    for (score, common) in scores.iter().zip([5.0, 7.0, 8.0]) {
        assert!((score - common / 9.0).abs() < 1e-6, "{body}");
    }

    // Well read: what is missing is a judge.
    let answer = post(&world, PATH, include_str!("rest/pairwise.curl.json")).await;
    assert_eq!(error_of(&answer)["status"], "FAILED_PRECONDITION", "{}", answer.text());
}

#[tokio::test]
async fn an_unknown_key_is_refused_in_googles_words() {
    let world = World::new().start().await;
    let answer = post(&world, PATH, r#"{"rougeInput": {"x": 1}}"#).await;
    assert_eq!(answer.status, 400);
    let text = "Invalid JSON payload received. Unknown name \"x\" at 'rouge_input': Cannot find field.";
    assert_eq!(
        json_of(&answer),
        json!({"error": {
            "code": 400,
            "message": text,
            "status": "INVALID_ARGUMENT",
            "details": [{
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": "rouge_input", "description": text}],
            }],
        }})
    );
}

#[tokio::test]
async fn a_wrong_field_is_named_with_its_path() {
    let world = World::new().start().await;
    let body = json!({"rougeInput": {"instances": [
        {"prediction": "a", "reference": "a"}, {"prediction": "a", "reference": "a"}, {"reference": "a"}]}});
    let answer = post(&world, PATH, body.to_string()).await;
    let error = error_of(&answer);
    assert_eq!(error["status"], "INVALID_ARGUMENT");
    assert_eq!(
        error["details"][0]["fieldViolations"][0]["field"], "rouge_input.instances[2].prediction",
        "{error}"
    );
}

#[tokio::test]
async fn an_empty_body_is_a_request_with_nothing_set() {
    let world = World::new().start().await;
    for body in ["", "{}"] {
        let error = error_of(&post(&world, PATH, body).await);
        assert!(error["message"].as_str().unwrap().starts_with("metric_inputs:"), "{error}");
    }
}

#[tokio::test]
async fn what_is_no_json_or_no_text_is_refused_with_its_place() {
    let world = World::new().start().await;
    for (body, told) in [
        (&b"{\"rougeInput\": \n ?}"[..], "Line 2, column 2"),
        (b"[]", "expected an object"),
        (b"{} {}", "expected nothing after"),
        (b"{\"location\": \"\xff\"}", "not UTF-8 from byte 14 on"),
    ] {
        let error = error_of(&post(&world, PATH, body).await);
        assert_eq!(error["code"], 400);
        assert!(error["message"].as_str().unwrap().contains(told), "{error}");
    }
}

#[tokio::test]
async fn gzipped_bodies_are_read() {
    let world = World::new().start().await;
    let packed = gzipped(exact_match().to_string().as_bytes());
    let answer = send(&world, Method::POST, PATH, &[("content-encoding", "gzip")], packed.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let half = packed[..packed.len() / 2].to_vec();
    for (encoding, body) in [("gzip", half), ("gzip", b"{}".to_vec()), ("br", packed)] {
        let answer = send(&world, Method::POST, PATH, &[("content-encoding", encoding)], body).await;
        assert_eq!(error_of(&answer)["status"], "INVALID_ARGUMENT", "{}", answer.text());
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_as_sent_and_as_unpacked() {
    let world = World::new().set(|settings| settings.limits.request_bytes = 1000).start().await;
    let long = vec![b' '; 1001];
    let unpacked = send(&world, Method::POST, PATH, &[("content-encoding", "gzip")], gzipped(&long)).await;
    for answer in [post(&world, PATH, long).await, unpacked] {
        // Google's newest client sends again what met a 429.
        assert_eq!(answer.status, 413);
        let error = error_of(&answer);
        assert_eq!(error["status"], "RESOURCE_EXHAUSTED");
        assert!(error["message"].as_str().unwrap().contains("limits.request_bytes = 1000"), "{error}");
        assert!(!answer.headers.contains_key("retry-after"), "sending it again cannot help");
    }
}

#[tokio::test]
async fn one_request_holds_no_more_than_a_million_parts() {
    let world = World::new().start().await;
    let body = format!("{{\"exactMatchInput\": {{\"instances\": [{}]}}}}", "{},".repeat(1_000_001));
    let error = error_of(&post(&world, PATH, body).await);
    assert_eq!(error["status"], "RESOURCE_EXHAUSTED");
    assert!(error["message"].as_str().unwrap().contains("1000000"), "{error}");
}

#[tokio::test]
async fn an_overload_says_when_to_come_back() {
    // gRPC and REST are let in by one count: a call on either keeps the other out.
    let (world, judge) =
        World::new().judge(Conduct::Replies(vec![json!({"delay_ms": 600_000, "text": "{}"})])).await;
    let world = world.set(|settings| settings.limits.concurrent_requests = 1).start().await;
    let caller = world.caller().clone();
    let waiting = tokio::spawn(async move {
        caller.evaluate(json!({"fluency_input": {"instance": {"prediction": "a"}}})).await
    });
    while judge.calls() == 0 {
        tokio::task::yield_now().await;
    }
    let answer = post(&world, PATH, exact_match().to_string()).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.headers["retry-after"], "1");
    let error = error_of(&answer);
    assert_eq!(
        error["details"],
        json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}]),
        "{error}"
    );
    waiting.abort();
}

#[tokio::test]
async fn the_callers_deadline_ends_a_call() {
    let (world, _) =
        World::new().judge(Conduct::Replies(vec![json!({"delay_ms": 600_000, "text": "{}"})])).await;
    let world = world.start().await;
    let body = json!({"fluencyInput": {"instance": {"prediction": "a"}}}).to_string();
    let answer = send(&world, Method::POST, PATH, &[("x-server-timeout", "0.2")], body.clone()).await;
    assert_eq!((answer.status.as_u16(), &error_of(&answer)["status"]), (504, &json!("DEADLINE_EXCEEDED")));
    let answer = send(&world, Method::POST, PATH, &[("x-server-timeout", "soon")], body).await;
    assert_eq!((answer.status.as_u16(), &error_of(&answer)["status"]), (400, &json!("INVALID_ARGUMENT")));
}

#[tokio::test]
async fn a_judge_that_is_down_is_unavailable_and_says_when_to_come_back() {
    let (world, _) = World::new().judge(Conduct::Replies(vec![json!({"status": 503})])).await;
    let world = world.start().await;
    let body = json!({"fluencyInput": {"instance": {"prediction": "a"}}}).to_string();
    let answer = post(&world, PATH, body).await;
    assert_eq!((answer.status.as_u16(), &error_of(&answer)["status"]), (503, &json!("UNAVAILABLE")));
    assert!(answer.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
}

#[tokio::test]
async fn pages_of_named_origins_are_let_in_and_others_kept_out() {
    let own = "https://app.example.com";
    let world =
        World::new().set(|settings| settings.server.cors_origins = vec![String::from(own)]).start().await;
    let preflight = |origin: &'static str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,x-grpc-web"),
        ];
        let world = &world;
        async move { send(world, Method::OPTIONS, PATH, &headers, "").await }
    };
    let answer = preflight("https://app.example.com").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["access-control-allow-origin"], own);
    assert!(
        !preflight("https://other.example.com").await.headers.contains_key("access-control-allow-origin")
    );

    let body = exact_match().to_string();
    let answer = send(&world, Method::POST, PATH, &[("origin", own)], body.clone()).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["access-control-allow-origin"]),
        (200, &own.parse().unwrap())
    );
    let exposed = answer.headers["access-control-expose-headers"].to_str().unwrap();
    for header in ["grpc-status", "grpc-message", "grpc-status-details-bin"] {
        assert!(exposed.contains(header), "{exposed}");
    }

    let other = [("origin", "https://other.example.com"), ("sec-fetch-site", "cross-site")];
    let answer = send(&world, Method::POST, PATH, &other, body).await;
    assert_eq!((answer.status.as_u16(), &error_of(&answer)["status"]), (403, &json!("PERMISSION_DENIED")));

    // gRPC-Web goes through the same.
    let headers = [
        ("origin", own),
        ("content-type", "application/grpc-web+proto"),
        ("x-grpc-web", "1"),
        ("accept", "*/*"),
    ];
    let path = "/rapideval.v1.EvaluationService/EvaluateInstances";
    let answer = send(&world, Method::POST, path, &headers, world::http::framed(false, &[])).await;
    assert_eq!(answer.headers["access-control-allow-origin"], own, "{answer:?}");
}

#[tokio::test]
async fn no_origin_is_named_by_default() {
    let world = World::new().start().await;
    let headers = [("origin", "https://app.example.com"), ("access-control-request-method", "POST")];
    let answer = send(&world, Method::OPTIONS, PATH, &headers, "").await;
    assert_eq!(answer.status, 405);
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let world = World::new().start().await;
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/page.css", "text/css; charset=utf-8"),
        ("/page.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/info.json", "application/json; charset=UTF-8"),
        ("/openapi.json", "application/json; charset=UTF-8"),
    ] {
        let answer = send(&world, Method::GET, path, &[], "").await;
        assert_eq!(
            (answer.status.as_u16(), &answer.headers["content-type"]),
            (200, &kind.parse().unwrap()),
            "{path}"
        );
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
    let page = send(&world, Method::GET, "/", &[], "").await;
    assert!(!page.text().contains("//"), "an address of another host, or a script in the page");
    assert_eq!(send(&world, Method::HEAD, "/", &[], "").await.status, 200);
}

#[tokio::test]
async fn the_facts_for_programs_name_version_metrics_and_judges() {
    let world = World::new().start().await;
    let info = json_of(&send(&world, Method::GET, "/info.json", &[], "").await);
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(info["judges"], json!([]));
    let rouge = info["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "rouge").unwrap();
    assert_eq!((&rouge["kind"], &rouge["scale"]), (&json!("computed"), &json!("0..1")));
}

#[tokio::test]
async fn the_facts_tell_how_a_judge_fared_when_it_was_last_asked() {
    let world = World::new().set(|settings| settings.judge.sampling_count = 1);
    let replies = vec![json!({"text": r#"{"explanation": "e", "score": 4}"#}), json!({"status": 401})];
    let (world, _) = world.judge(Conduct::Replies(replies)).await;
    let world = world.start().await;
    for (text, state) in [(None, "not_asked"), (Some("a"), "up"), (Some("b"), "failing")] {
        if let Some(text) = text {
            let question = json!({"fluency_input": {"instance": {"prediction": text}}});
            post(&world, PATH, question.to_string()).await;
        }
        let info = json_of(&send(&world, Method::GET, "/info.json", &[], "").await);
        assert_eq!(info["judges"], json!([{"name": "default", "model": "stub", "state": state}]));
    }
}

#[tokio::test]
async fn the_openapi_document_refers_to_nothing_it_does_not_have() {
    let world = World::new().start().await;
    let document = json_of(&send(&world, Method::GET, "/openapi.json", &[], "").await);
    let paths: Vec<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    for path in [
        "/v1/projects/{project}/locations/{location}:evaluateInstances",
        "/v1beta1/projects/{project}/locations/{location}:evaluateInstances",
        "/v1beta1/projects/{project}/locations/{location}:generateInstanceRubrics",
        "/v1beta1/projects/{project}/locations/{location}:evaluateDataset",
        "/v1beta1:evaluateInstances",
        "/v1beta1:generateInstanceRubrics",
        "/v1beta1:evaluateDataset",
    ] {
        assert!(paths.contains(&path), "{paths:?}");
    }
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        open.extend(value.as_object().into_iter().flat_map(|object| object.values()));
        open.extend(value.as_array().into_iter().flatten());
    }
    let rouge = &document["components"]["schemas"]["RougeSpec"]["properties"]["rougeType"];
    assert_eq!(rouge["type"], "string");
    assert!(rouge["description"].as_str().is_some_and(|text| text.contains("rougeL")), "{rouge}");
}
