//! Every recorded answer under `tests/replies/` is read as its file says.
#![cfg(feature = "server")]

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use rapid_eval::judge::providers::{Provider, provider};
use rapid_eval::judge::settings::JudgeSettings;
use rapid_eval::judge::{JudgeError, Reply};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(rename = "made_from")]
    _made_from: String,
    status: u16,
    headers: BTreeMap<String, String>,
    body: Value,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Expect {
    Reply { reply: BTreeMap<String, Value> },
    Error(ExpectedError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedError {
    error: String,
    message_has: String,
    message_lacks: Option<String>,
    message_max_chars: Option<usize>,
    retry_after_ms: Option<u64>,
    should_retry: Option<bool>,
}

fn provider_named(name: &str) -> Box<dyn Provider> {
    let flag = match name {
        "azure" => "azure:https://r.openai.azure.com#m".to_owned(),
        other => format!("{other}:#m"),
    };
    let settings: JudgeSettings = flag.parse().unwrap();
    provider(&settings, &|_| None).unwrap().unwrap()
}

fn read(provider: &dyn Provider, case: &Case) -> Result<Reply, JudgeError> {
    let body = case.body.as_str().map_or_else(|| case.body.to_string(), str::to_owned);
    let mut response = http::Response::builder().status(case.status);
    for (name, value) in &case.headers {
        response = response.header(name, value);
    }
    provider.reply(response.body(Bytes::from(body)).unwrap())
}

fn check_reply(name: &str, expected: &BTreeMap<String, Value>, reply: &Reply) {
    let usage = reply.usage;
    let alternatives: Vec<Vec<Value>> = reply
        .alternatives
        .iter()
        .map(|position| position.iter().map(|chance| json!([chance.token, chance.logprob])).collect())
        .collect();
    let seen = json!({
        "text": reply.text,
        "model": reply.model,
        "id": reply.id,
        "truncated": reply.truncated,
        "usage": [usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.reasoning_tokens],
        "alternatives": alternatives,
    });
    for (field, value) in expected {
        assert_eq!(&seen[field], value, "{name}: {field}");
    }
    assert!(expected.contains_key("text"), "{name}: a case without a text proves nothing");
}

fn check_error(name: &str, expected: &ExpectedError, error: &JudgeError) {
    assert_eq!(format!("{:?}", error.kind), expected.error, "{name}: {error}");
    assert!(error.message.contains(&expected.message_has), "{name}: {error}");
    assert_eq!(
        error.retry_after.map(|wait| wait.as_millis() as u64),
        expected.retry_after_ms,
        "{name}: {error}"
    );
    assert_eq!(error.should_retry, expected.should_retry, "{name}: {error}");
    if let Some(unwanted) = &expected.message_lacks {
        assert!(!error.message.contains(unwanted), "{name}: {error}");
    }
    if let Some(longest) = expected.message_max_chars {
        assert!(error.message.chars().count() <= longest, "{name}: {error}");
    }
}

fn every_answer_of(name: &str, at_least: usize) {
    let provider = provider_named(name);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replies").join(name);
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let case: Case = serde_json::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.display().to_string();
        match (read(provider.as_ref(), &case), &case.expect) {
            (Ok(reply), Expect::Reply { reply: expected }) => check_reply(&name, expected, &reply),
            (Err(error), Expect::Error(expected)) => check_error(&name, expected, &error),
            (seen, _) => panic!("{name}: {seen:?}"),
        }
        count += 1;
    }
    assert!(count >= at_least, "only {count} answers of {name} were found");
}

#[test]
fn every_answer_of_openai_is_read_as_recorded() {
    every_answer_of("openai", 30);
}

#[test]
fn every_answer_of_azure_is_read_as_recorded() {
    every_answer_of("azure", 7);
}

#[test]
fn every_answer_of_anthropic_is_read_as_recorded() {
    every_answer_of("anthropic", 18);
}

#[test]
fn every_answer_of_gemini_is_read_as_recorded() {
    every_answer_of("gemini", 17);
}

#[test]
fn every_answer_of_ollama_is_read_as_recorded() {
    every_answer_of("ollama", 10);
}
