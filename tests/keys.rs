//! API keys: who has one is let in at every door, who has none learns how to send it and nothing else.
#![cfg(feature = "server")]

mod world;

use std::path::PathBuf;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use rapid_eval::config;
use serde_json::{Map, Value, json};
use tonic::Code;
use tonic_types::StatusExt;
use world::http::{Answer, field, frame_of, framed, grpc, grpc_request, http1, http2};
use world::process::{Process, run};
use world::{Running, World, message};

const ANNS: &str = "anns-key-0123456789";
const BOBS: &str = "bobs-key:9876543210";
const NOBODYS: &str = "nobodys-key-0123456789";

/// Everything that holds one of the keys and is none.
const WRONG: [&str; 5] =
    [NOBODYS, "anns-key-012345678", "anns-key-01234567890", "ANNS-KEY-0123456789", "bob"];

fn file(name: &str, content: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path
}

async fn start(name: &str, change: impl FnOnce(&mut config::Server)) -> Running {
    let keys = file(name, &format!("# who may call\n\n{ANNS}\nbob:{BOBS}\n"));
    let world = World::new().set(|settings| {
        settings.server.api_keys_file = keys;
        change(&mut settings.server);
    });
    world.start().await
}

fn exact_match() -> Value {
    json!({"exact_match_input": {"instances": [{"prediction": "a", "reference": "a"}]}})
}

async fn by_grpc(world: &Running, headers: &[(&str, &str)]) -> Answer {
    grpc(world.address, frame_of(&message(&exact_match())), headers).await
}

async fn by_rest(world: &Running, query: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request =
        Request::post(format!("/v1beta1:evaluateInstances{query}")).header("host", world.address.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::from(exact_match().to_string()));
    http1(world.address, request.body(body).unwrap()).await
}

async fn get(world: &Running, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::get(path).header("host", world.address.to_string());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    http1(world.address, request.body(Full::default()).unwrap()).await
}

/// Whether the schema can be read by reflection.
async fn reflection(world: &Running, headers: &[(&str, &str)]) -> Code {
    let uri = format!("http://{}/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", world.address);
    // list_services
    let question = Full::<Bytes>::from(framed(false, &field(7, b"")));
    http2(world.address, grpc_request(&uri, question, headers)).await.grpc_status().code()
}

/// The ways to send a key in a header.
fn headers(key: &str) -> [(&'static str, String); 5] {
    [
        ("authorization", format!("Bearer {key}")),
        ("authorization", format!("bearer  {key}")),
        ("x-goog-api-key", key.to_owned()),
        ("api-key", key.to_owned()),
        ("X-Goog-Api-Key", key.to_owned()),
    ]
}

#[tokio::test]
async fn a_key_in_any_of_its_headers_lets_in_at_both_doors() {
    let world = start("headers.keys", |_| {}).await;
    for key in [ANNS, BOBS] {
        for (name, value) in headers(key) {
            let sent = [(name, value.as_str())];
            let answer = by_grpc(&world, &[(&name.to_lowercase(), &value)]).await;
            assert_eq!(answer.grpc_status().code(), Code::Ok, "{sent:?}");
            assert_eq!(by_rest(&world, "", &sent).await.status, 200, "{sent:?}");
        }
    }
    // A token for somebody else beside the key.
    let both = [("authorization", "Bearer ya29.token"), ("x-goog-api-key", ANNS)];
    assert_eq!(by_grpc(&world, &both).await.grpc_status().code(), Code::Ok);
}

#[tokio::test]
async fn googles_query_parameter_lets_in_at_the_rest_door() {
    let world = start("query.keys", |_| {}).await;
    for query in [
        format!("?key={ANNS}"),
        format!("?$key={ANNS}&alt=json"),
        format!("?%24key={}", BOBS.replace(':', "%3A")),
    ] {
        assert_eq!(by_rest(&world, &query, &[]).await.status, 200, "{query}");
    }
    for query in
        [format!("?key={NOBODYS}"), format!("?KEY={ANNS}"), format!("?fields={ANNS}"), String::from("?key=")]
    {
        assert_eq!(by_rest(&world, &query, &[]).await.status, 401, "{query}");
    }
}

#[tokio::test]
async fn no_key_or_a_wrong_one_is_unauthenticated_at_the_grpc_door() {
    let world = start("grpc.keys", |_| {}).await;
    let answer = by_grpc(&world, &[]).await;
    let status = answer.grpc_status();
    assert_eq!(status.code(), Code::Unauthenticated);
    assert!(status.message().contains("x-goog-api-key"), "{status}");
    assert_eq!(status.get_details_error_info().unwrap().reason, "CREDENTIALS_MISSING");
    assert_eq!(answer.headers["www-authenticate"], "Bearer realm=\"rapid-eval\"");
    for key in WRONG {
        for (name, value) in headers(key) {
            let answer = by_grpc(&world, &[(&name.to_lowercase(), &value)]).await;
            let status = answer.grpc_status();
            assert_eq!(status.code(), Code::Unauthenticated, "{name}: {value}");
            assert_eq!(status.get_details_error_info().unwrap().reason, "API_KEY_INVALID");
            assert!(!format!("{answer:?}").contains(key), "{answer:?}");
        }
    }
    for other in ["Basic YW5uOmFubnMta2V5LTAxMjM0NTY3ODk=", "Bearer", ""] {
        let answer = by_grpc(&world, &[("authorization", other)]).await;
        assert_eq!(answer.grpc_status().code(), Code::Unauthenticated, "{other}");
    }
}

#[tokio::test]
async fn no_key_or_a_wrong_one_is_401_in_googles_form_at_the_rest_door() {
    let world = start("rest.keys", |_| {}).await;
    let error_of = |answer: &Answer| {
        assert_eq!(answer.status, 401);
        let body: Value = serde_json::from_str(answer.text()).unwrap();
        assert_eq!(body["error"]["code"], 401, "{body}");
        assert_eq!(body["error"]["status"], "UNAUTHENTICATED", "{body}");
        body["error"]["details"][0]["reason"].clone()
    };
    let answer = by_rest(&world, "", &[]).await;
    assert_eq!(error_of(&answer), "CREDENTIALS_MISSING");
    assert_eq!(answer.headers["www-authenticate"], "Bearer realm=\"rapid-eval\"");
    for key in WRONG {
        let answer = by_rest(&world, "", &[("api-key", key)]).await;
        assert_eq!(error_of(&answer), "API_KEY_INVALID");
        assert_eq!(
            answer.headers["www-authenticate"],
            "Bearer realm=\"rapid-eval\", error=\"invalid_token\""
        );
        assert!(!format!("{answer:?}").contains(key), "{answer:?}");
    }
    // Strangers do not learn what is here.
    assert_eq!(get(&world, "/nowhere", &[]).await.status, 401);
    assert_eq!(get(&world, "/nowhere", &[("api-key", ANNS)]).await.status, 404);
}

#[tokio::test]
async fn health_is_open_and_the_rest_closed_unless_the_settings_say_otherwise() {
    const PAGES: [&str; 3] = ["/", "/info.json", "/openapi.json"];
    let key = [("x-goog-api-key", ANNS)];

    let world = start("default.keys", |_| {}).await;
    assert!(world.caller().health("").await.is_ok());
    assert_eq!(reflection(&world, &[]).await, Code::Unauthenticated);
    assert_eq!(reflection(&world, &key).await, Code::Ok);
    for page in PAGES {
        assert_eq!(get(&world, page, &[]).await.status, 401, "{page}");
        assert_eq!(get(&world, page, &key).await.status, 200, "{page}");
    }
    assert_eq!(secured(&get(&world, "/openapi.json", &key).await), (3, 3, false));

    let world = start("other.keys", |server| {
        (server.open_health, server.open_reflection, server.open_page) = (false, true, true);
    })
    .await;
    assert_eq!(world.caller().health("").await.unwrap_err().code(), Code::Unauthenticated);
    assert_eq!(reflection(&world, &[]).await, Code::Ok);
    for page in PAGES {
        assert_eq!(get(&world, page, &[]).await.status, 200, "{page}");
    }
    assert_eq!(secured(&get(&world, "/openapi.json", &[]).await), (3, 3, true));
    assert_eq!(by_rest(&world, "", &[]).await.status, 401);
}

/// Of an OpenAPI document: how many headers for keys it names, how many of them it says are enough, and whether it says
/// that the pages ask for none.
fn secured(answer: &Answer) -> (usize, usize, bool) {
    let document: Value = serde_json::from_str(answer.text()).unwrap();
    let schemes = document["components"]["securitySchemes"].as_object();
    let enough = document["security"].as_array();
    let pages = document["paths"]["/info.json"]["get"].get("security");
    (schemes.map_or(0, Map::len), enough.map_or(0, Vec::len), pages == Some(&json!([])))
}

#[tokio::test]
async fn without_keys_everything_is_open() {
    let world = World::new().start().await;
    assert_eq!(secured(&get(&world, "/openapi.json", &[]).await), (0, 0, false));
    assert_eq!(by_rest(&world, "", &[("api-key", NOBODYS)]).await.status, 200);
    assert_eq!(by_grpc(&world, &[]).await.grpc_status().code(), Code::Ok);
    assert_eq!(reflection(&world, &[]).await, Code::Ok);
}

#[tokio::test]
async fn no_key_is_in_the_log() {
    let keys = file("log.keys", &format!("{ANNS}\n"));
    let process =
        Process::start(&[("server.api_keys_file", keys.to_str().unwrap()), ("log.filter", "trace")]);
    for key in [ANNS, NOBODYS] {
        grpc(process.address, frame_of(&message(&exact_match())), &[("x-goog-api-key", key)]).await;
        let request = Request::post(format!("/v1beta1:evaluateInstances?key={key}"))
            .header("host", "localhost")
            .header("authorization", format!("Bearer {key}"))
            .body(Full::new(Bytes::from(exact_match().to_string())))
            .unwrap();
        http1(process.address, request).await;
    }
    process.terminate();
    let (_, log) = process.ended().await;
    assert!(!log.is_empty());
    for line in log.lines() {
        assert!(!line.contains(ANNS) && !line.contains(NOBODYS), "{line}");
    }
}

#[test]
fn lists_of_keys_that_cannot_be_used_are_named_and_not_shown() {
    let short = file("short.keys", &format!("{ANNS}\n\nbob:hunter2\n"));
    let empty = file("empty.keys", "# nobody\n");
    let wrong = [
        (("server.api_keys_file", "/nowhere/to/be"), "cannot be read"),
        (("server.api_keys_file", short.to_str().unwrap()), "short.keys, line 3: "),
        (("server.api_keys_file", empty.to_str().unwrap()), "holds no key"),
        (("server.api_keys_env", "NOWHERE"), "NOWHERE is not set"),
    ];
    for (setting, why) in wrong {
        for verb in ["check-config", "serve"] {
            let output = run(&[verb], &[setting], "");
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(64), "{said}");
            assert!(
                said.starts_with(&format!("rapid-eval: {}: ", setting.0)) && said.contains(why),
                "{said}"
            );
            assert!(!said.contains("hunter2") && !said.contains(ANNS), "{said}");
        }
    }
}
